//! When a refused pod is worth another try: what it waits for, and what happened between two views.
//!
//! [`Waiting::of`] reads a refusal: the events of the plugins that refused some node, or the whole pod. The rule behind it:
//! a node that a plugin refuses stays refused until an event of that plugin comes, and a new node comes with Node/Add. So a
//! pod that waits for the events of all plugins that refused a node can't miss the change that lets it in.
//!
//! [`Difference`] tells what happened from one view to a later one. It compares what the two don't share, so it costs the
//! changed nodes and objects, not the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::decision::{Decision, Outcome};
use super::events::{ActionType, EventResource, EventSet};
use super::profile::Profile;
use super::status::Reason;
use crate::cluster::view::ObjectChange;
use crate::cluster::{Ordinal, PodInfo, View};
use crate::model::{Kind, Node, Pod};

/// What a refused pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub events: EventSet,
    /// All plugins that refused it judge each node by that node alone: only nodes that change can take it.
    pub alone: bool,
}

const NEW_NODE: EventSet = EventSet::NONE.with(EventResource::Node, &[ActionType::Add]);

impl Waiting {
    /// None: the decision is no refusal. A gated pod waits for its gates.
    pub fn of(decision: &Decision, profile: &Profile) -> Option<Self> {
        match decision.outcome {
            Outcome::Unschedulable | Outcome::Gated(_) => {}
            Outcome::NoNodes => return Some(Self { events: NEW_NODE, alone: true }),
            Outcome::Placed { .. } | Outcome::Unsupported(_) => return None,
        }
        let mut plugins: BTreeSet<&str> = decision.refusing_plugins().into_iter().collect();
        // A node that isn't among those of several plugins is kept out by any of them.
        for rejection in decision.pre_filter.iter().chain(&decision.absent) {
            for reason in &rejection.reasons {
                if let Reason::NotAmongNodesOf(names) | Reason::NoNodeOf(names) = reason {
                    plugins.extend(names.iter().copied());
                }
            }
        }
        let first = match decision.outcome {
            Outcome::Gated(_) => EventSet::NONE,
            _ => NEW_NODE,
        };
        let waiting = Self { events: first, alone: true };
        let anything = Self { events: EventSet::ALL, alone: false };
        if profile.checks_all() {
            // A refusal then names only the first of the plugins that have to be content.
            return Some(waiting.and(anything));
        }
        Some(plugins.into_iter().fold(waiting, |waiting, name| {
            let found = profile.plugins_named(name).map(|p| Self { events: p.events(), alone: p.judges_alone() });
            waiting.and(found.reduce(Self::and).unwrap_or(anything))
        }))
    }

    /// For both what this waits for and what the other does.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { events: self.events.union(other.events), alone: self.alone && other.alone }
    }
}

/// What happened from an earlier view to a later one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    pub events: EventSet,
    /// Nodes of the later view that came, changed, or whose pods or nominations did.
    pub nodes: BTreeSet<Ordinal>,
    /// Classes that give pods their priority changed.
    pub priority_classes: bool,
    /// Classes that give pods their overhead changed.
    pub runtime_classes: bool,
}

impl Difference {
    pub fn between(earlier: &View, later: &View) -> Self {
        let mut difference = Self::default();
        for ordinal in later.differing_nodes(earlier) {
            difference.node(ordinal, earlier, later);
        }
        difference.nominations(earlier, later);
        for (kind, change) in later.objects().changes_from(earlier.objects()) {
            difference.object(kind, change);
        }
        difference
    }

    fn add(&mut self, resource: EventResource, action: ActionType) {
        self.events.insert(resource, action);
    }

    fn node(&mut self, ordinal: Ordinal, earlier: &View, later: &View) {
        let (old, new) = (earlier.node(ordinal), later.node(ordinal));
        if new.is_some() {
            self.nodes.insert(ordinal);
        }
        match (&old, &new) {
            (Some(old), Some(new)) if old.name() == new.name() => self.node_object(old.node(), new.node()),
            _ => {
                // An ordinal is used again after its node went.
                if old.is_some() {
                    self.add(EventResource::Node, ActionType::Delete);
                }
                if new.is_some() {
                    self.add(EventResource::Node, ActionType::Add);
                }
            }
        }
        let (mut old, mut new) = (
            old.map_or(&[][..], |row| row.pods()).iter().peekable(),
            new.map_or(&[][..], |row| row.pods()).iter().peekable(),
        );
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(before), Some(after)) => before.pod.meta.uid.cmp(&after.pod.meta.uid),
            };
            let before = order.is_le().then(|| old.next()).flatten();
            let after = order.is_ge().then(|| new.next()).flatten();
            match (before, after) {
                (Some(before), Some(after)) => self.assigned_pod(before, after),
                (Some(_), None) => self.add(EventResource::AssignedPod, ActionType::Delete),
                _ => self.add(EventResource::AssignedPod, ActionType::Add),
            }
        }
    }

    fn node_object(&mut self, old: &Node, new: &Node) {
        let changes = [
            (old.allocatable != new.allocatable, ActionType::UpdateNodeAllocatable),
            (old.meta.labels != new.meta.labels, ActionType::UpdateNodeLabel),
            (old.taints != new.taints || old.unschedulable != new.unschedulable, ActionType::UpdateNodeTaint),
            (old.conditions != new.conditions, ActionType::UpdateNodeCondition),
            (old.meta.annotations != new.meta.annotations, ActionType::UpdateNodeAnnotation),
            (old.declared_features != new.declared_features, ActionType::UpdateNodeDeclaredFeature),
        ];
        for (_, action) in changes.into_iter().filter(|(changed, _)| *changed) {
            self.add(EventResource::Node, action);
        }
    }

    fn assigned_pod(&mut self, old: &Arc<PodInfo>, new: &Arc<PodInfo>) {
        if Arc::ptr_eq(old, new) {
            return;
        }
        let before = self.events;
        self.events = EventSet::NONE;
        if old.pod.meta.labels != new.pod.meta.labels {
            self.add(EventResource::AssignedPod, ActionType::UpdatePodLabel);
        }
        if old.requests != new.requests {
            self.add(EventResource::AssignedPod, ActionType::UpdatePodScaleDown);
        }
        let holds = |p: &PodInfo| (p.ports.clone(), p.claims.clone(), p.volumes.clone(), p.terms.clone());
        if holds(old) != holds(new) || old.pod.meta.namespace != new.pod.meta.namespace {
            // The API lets none of this change: another pod under the uid, or other promises about its volumes.
            self.add(EventResource::AssignedPod, ActionType::Delete);
            self.add(EventResource::AssignedPod, ActionType::Add);
        }
        if self.events.is_empty() {
            self.add(EventResource::AssignedPod, ActionType::Update);
        }
        self.events = self.events.union(before);
    }

    /// A pod that no longer waits for a node leaves the room that others had to leave to it.
    fn nominations(&mut self, earlier: &View, later: &View) {
        for old in earlier.nominations().iter() {
            let still = later.nominations().on(&old.node);
            if !still.iter().any(|new| Arc::ptr_eq(new, old)) {
                self.add(EventResource::AssignedPod, ActionType::Delete);
                self.nodes.extend(later.ordinal(&old.node));
            }
        }
    }

    fn object(&mut self, kind: Kind, change: ObjectChange) {
        let resource = match kind {
            Kind::PersistentVolume => EventResource::PersistentVolume,
            Kind::PersistentVolumeClaim => EventResource::PersistentVolumeClaim,
            Kind::StorageClass => EventResource::StorageClass,
            Kind::CsiNode => EventResource::CsiNode,
            Kind::CsiDriver => EventResource::CsiDriver,
            Kind::CsiStorageCapacity => EventResource::CsiStorageCapacity,
            Kind::VolumeAttachment => EventResource::VolumeAttachment,
            Kind::Namespace => EventResource::Namespace,
            Kind::Service => EventResource::Service,
            Kind::ReplicationController => EventResource::ReplicationController,
            Kind::ReplicaSet => EventResource::ReplicaSet,
            Kind::StatefulSet => EventResource::StatefulSet,
            Kind::PriorityClass => return self.priority_classes = true,
            Kind::RuntimeClass => return self.runtime_classes = true,
            // Nodes and pods are in the rows; the others let no pod fit.
            Kind::Node | Kind::Pod | Kind::PodDisruptionBudget | Kind::NodeMetrics | Kind::PodMetrics => return,
        };
        let action = match change {
            ObjectChange::Added => ActionType::Add,
            ObjectChange::Updated => ActionType::Update,
            ObjectChange::Removed => ActionType::Delete,
        };
        self.add(resource, action);
    }
}

/// What happened to a pod that waits, as far as it matters for where it fits.
pub fn own_changes(old: &Pod, new: &Pod) -> EventSet {
    let mut events = EventSet::NONE;
    if old.meta.labels != new.meta.labels {
        events.insert(EventResource::UnschedulablePod, ActionType::UpdatePodLabel);
    }
    if old.spec != new.spec {
        let named = [
            (old.spec.tolerations != new.spec.tolerations, ActionType::UpdatePodToleration),
            (old.spec.containers != new.spec.containers, ActionType::UpdatePodScaleDown),
        ];
        let mut named = named.into_iter().filter(|(changed, _)| *changed).map(|(_, action)| action).peekable();
        if named.peek().is_none() {
            events.insert(EventResource::UnschedulablePod, ActionType::Update);
        }
        named.for_each(|action| events.insert(EventResource::UnschedulablePod, action));
    }
    events
}

#[cfg(test)]
mod tests;
