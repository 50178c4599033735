//! PodTopologySpread (spec 4.10 and 5.4): keeps the pods of a selector spread over the domains of a topology key.
//!
//! `filter.rs` holds the hard constraints (DoNotSchedule), `score.rs` the soft ones (ScheduleAnyway), `facts.rs` what both
//! ask of nodes; here is which constraints hold for a pod, and how its like are counted. A constraint costs the nodes that
//! have some of the pod's like, and its domains; labels and policies are looked at once a node, however many constraints.

mod exact;
mod facts;
mod filter;
mod score;

use std::collections::BTreeSet;

use crate::cluster::counts::CountKey;
use crate::cluster::{Cancel, View};
use crate::engine::cost::{Share, Sizes, selector, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{FilterPlugin, Plugin, ScorePlugin};
use crate::engine::plugins::node_affinity::{self, Required};
use crate::engine::plugins::taint_toleration;
use crate::engine::profile::Profile;
use crate::model::node::{HOSTNAME_LABEL, ZONE_LABEL};
use crate::model::selector::Requirement;
use crate::model::topology_spread::{InclusionPolicy, WhenUnsatisfiable};
use crate::model::{LabelSelector, Node, Pod, Str, TopologySpreadConstraint};

const NAME: &str = "PodTopologySpread";

#[derive(Debug, Default)]
pub struct PodTopologySpread {
    pub defaults: DefaultConstraints,
}

/// What holds for pods that have no constraints of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DefaultConstraints {
    /// Upstream's: soft, over hosts (maxSkew 3) and zones (maxSkew 5), also where nodes lack the zone label.
    #[default]
    System,
    /// The profile's.
    List(Vec<TopologySpreadConstraint>),
}

/// Upstream leaves out what default constraints take their selectors from, and pods that begin to terminate.
const EVENTS: EventSet = EventSet::NONE
    .with(
        EventResource::Node,
        &[ActionType::Add, ActionType::Delete, ActionType::UpdateNodeLabel, ActionType::UpdateNodeTaint],
    )
    .with(
        EventResource::AssignedPod,
        &[ActionType::Add, ActionType::Delete, ActionType::UpdatePodLabel, ActionType::Update],
    )
    .with(EventResource::UnschedulablePod, &[ActionType::UpdatePodLabel])
    .with(EventResource::Service, ActionType::ANY_CHANGE)
    .with(EventResource::ReplicationController, ActionType::ANY_CHANGE)
    .with(EventResource::ReplicaSet, ActionType::ANY_CHANGE)
    .with(EventResource::StatefulSet, ActionType::ANY_CHANGE);

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let of_kind = |when| {
            let constraints = self.constraints(sizes.view, sizes.pod, when, Cancel::never()).list;
            let keys: BTreeSet<&Str> = constraints.iter().map(|c| &c.key).collect();
            // A few numbers a domain, of which there are as many as nodes at most.
            let counts = constraints.iter().map(|c| match count_key(sizes.pod, &c.selector) {
                Some(key) => sizes.count(&key).saturating_add(sizes.nodes / 4),
                None => sizes.nodes / 4,
            });
            let counts = counts.fold(0, u64::saturating_add);
            // Labels are looked at once a key and node, inclusion policies once a node.
            let labels = sizes.nodes.saturating_mul(units(keys.len()).saturating_mul(2));
            let policies = if constraints.is_empty() { 0 } else { sizes.nodes.saturating_mul(inclusion(sizes.pod)) };
            let matched = constraints.iter().map(|c| 1 + selector(&c.selector)).fold(0, u64::saturating_add);
            (counts.saturating_add(labels).saturating_add(policies), units(keys.len()), matched)
        };
        let (hard, hard_keys, change) = of_kind(WhenUnsatisfiable::DoNotSchedule);
        let (soft, ..) = of_kind(WhenUnsatisfiable::ScheduleAnyway);
        Share { prepare: hard, filter: 1 + hard_keys, prepare_score: soft, score: 1, change }
    }

    fn count_keys(&self, view: &View, pod: &Pod, _profile: &Profile) -> Vec<CountKey> {
        let kinds = [WhenUnsatisfiable::DoNotSchedule, WhenUnsatisfiable::ScheduleAnyway];
        let constraints = kinds.into_iter().flat_map(|when| self.constraints(view, pod, when, Cancel::never()).list);
        constraints.filter_map(|c| count_key(pod, &c.selector)).collect()
    }
}

/// A constraint as it holds for one pod, its selector complete.
struct Constraint {
    max_skew: i32,
    key: Str,
    selector: LabelSelector,
    min_domains: i32,
    honor_affinity: bool,
    honor_taints: bool,
}

struct Constraints {
    list: Vec<Constraint>,
    /// Nodes that lack one of the keys are left out.
    require_all: bool,
}

impl PodTopologySpread {
    /// The pod's constraints of one kind. Defaults hold only for a pod that has no constraint of either kind.
    fn constraints(&self, view: &View, pod: &Pod, when: WhenUnsatisfiable, cancel: Cancel<'_>) -> Constraints {
        let own = &pod.spec.topology_spread;
        if !own.is_empty() {
            let list = cancel.guard(own).filter(|c| c.when_unsatisfiable == when).map(|c| {
                let keys = c.match_label_keys.iter();
                let pairs = keys.filter_map(|k| Some(Requirement::equals(k.clone(), pod.meta.labels.get(k)?.clone())));
                resolve(c, c.selector.and(pairs))
            });
            return Constraints { list: list.collect(), require_all: true };
        }
        let (defaults, require_all) = match &self.defaults {
            DefaultConstraints::System => (system_defaults(), false),
            DefaultConstraints::List(list) => (list.clone(), true),
        };
        let mut wanted = defaults.iter().filter(|c| c.when_unsatisfiable == when).peekable();
        let selector =
            if wanted.peek().is_some() { deduced_selector(view, pod, cancel) } else { LabelSelector::everything() };
        let list = if selector.is_everything() {
            // Nothing owns or serves the pod: there is no set of its like to spread.
            Vec::new()
        } else {
            wanted.map(|c| resolve(c, selector.clone())).collect()
        };
        Constraints { list, require_all }
    }
}

fn resolve(constraint: &TopologySpreadConstraint, selector: LabelSelector) -> Constraint {
    Constraint {
        max_skew: constraint.max_skew,
        key: constraint.topology_key.clone(),
        selector,
        min_domains: constraint.min_domains,
        honor_affinity: constraint.node_affinity_policy == InclusionPolicy::Honor,
        honor_taints: constraint.node_taints_policy == InclusionPolicy::Honor,
    }
}

fn system_defaults() -> Vec<TopologySpreadConstraint> {
    [(3, HOSTNAME_LABEL), (5, ZONE_LABEL)]
        .map(|(skew, key)| {
            let when = WhenUnsatisfiable::ScheduleAnyway;
            TopologySpreadConstraint::new(skew, key.into(), when, LabelSelector::Nothing)
        })
        .to_vec()
}

/// What all services that select a pod select; everything, if none does.
pub(super) fn selector_of_services(view: &View, pod: &Pod, cancel: Cancel<'_>) -> LabelSelector {
    let mut merged = crate::model::Labels::default();
    for service in cancel.guard(view.objects().services(&pod.meta.namespace)) {
        let Some(selector) = &service.selector else { continue };
        if selector.is_subset_of(&pod.meta.labels) {
            for (key, value) in selector.iter() {
                merged.insert(key.clone(), value.clone());
            }
        }
    }
    LabelSelector::from_map(&merged)
}

/// The selector of a pod's like: of all services that select it, and of its controller.
fn deduced_selector(view: &View, pod: &Pod, cancel: Cancel<'_>) -> LabelSelector {
    let namespace = &pod.meta.namespace;
    let objects = view.objects();
    let selector = selector_of_services(view, pod, cancel);
    let Some(owner) = pod.meta.controller() else { return selector };
    let owned = match (&*owner.api_version, &*owner.kind) {
        ("v1", "ReplicationController") => objects
            .replication_controller(namespace, &owner.name)
            .and_then(|rc| Some(LabelSelector::from_map(rc.selector.as_ref()?))),
        ("apps/v1", "ReplicaSet") => objects.replica_set(namespace, &owner.name).map(|rs| rs.selector.clone()),
        ("apps/v1", "StatefulSet") => objects.stateful_set(namespace, &owner.name).map(|set| set.selector.clone()),
        _ => None,
    };
    match owned {
        Some(LabelSelector::Requirements(more)) => selector.and(more),
        Some(LabelSelector::Nothing) | None => selector,
    }
}

/// How the pod's like are counted; None where nothing is counted: an empty selector counts no pods (a special case of
/// upstream's), nor does one that selects nothing.
fn count_key(pod: &Pod, selector: &LabelSelector) -> Option<CountKey> {
    if selector.is_everything() || *selector == LabelSelector::Nothing {
        return None;
    }
    Some(CountKey::in_namespace(pod.meta.namespace.clone(), selector.clone(), false))
}

/// To ask the inclusion policies of a constraint about a node.
fn inclusion(pod: &Pod) -> u64 {
    node_affinity::cost_of_required(pod).saturating_add(units(pod.spec.tolerations.len()))
}

/// Whether a node takes part in counting for a constraint (`nodeAffinityPolicy`, `nodeTaintsPolicy`).
fn includes(constraint: &Constraint, node: &Node, required: &Required<'_>, pod: &Pod, cancel: Cancel<'_>) -> bool {
    (!constraint.honor_affinity || required.matches(node))
        && (!constraint.honor_taints || taint_toleration::untolerated(node, pod, cancel).is_none())
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
