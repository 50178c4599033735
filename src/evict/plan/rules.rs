//! The strategies that judge pods one by one: a pod on a node breaks the rule or doesn't, whatever else is there.

use super::stage::{Move, replacement};
use crate::evict::node_fit::{self, Selects};
use crate::evict::outcome::NoGain;
use crate::evict::policy::{
    PodLifeTimeArgs, PodSelection, RemoveFailedPodsArgs, RemovePodsHavingTooManyRestartsArgs,
    RemovePodsViolatingNoExecuteTaintsArgs, RemovePodsViolatingNodeAffinityArgs, RemovePodsViolatingNodeTaintsArgs,
};
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::strategies::is_selected;
use crate::evict::strategies::remove_pods_violating_node_affinity::weight;
use crate::model::{Pod, PreferredNodeTerm};

#[derive(Debug, Clone, Copy)]
pub(super) enum Rule<'a> {
    NodeTaints(&'a RemovePodsViolatingNodeTaintsArgs),
    NoExecuteTaints(&'a RemovePodsViolatingNoExecuteTaintsArgs),
    RequiredNodeAffinity(&'a RemovePodsViolatingNodeAffinityArgs),
    PreferredNodeAffinity(&'a RemovePodsViolatingNodeAffinityArgs),
    TooManyRestarts(&'a RemovePodsHavingTooManyRestartsArgs),
    LifeTime(&'a PodLifeTimeArgs),
    Failed(&'a RemoveFailedPodsArgs),
}

/// Preferred terms that some pods state, and what every node is worth by them.
#[derive(Debug, Clone)]
struct Preference {
    terms: Vec<PreferredNodeTerm>,
    weights: Vec<i64>,
    /// The best of the policy's nodes, the first by name.
    best: Option<NodeId>,
}

#[derive(Debug, Clone)]
pub(super) struct Violations<'a> {
    rule: Rule<'a>,
    preferences: Vec<Preference>,
    /// By pod: the index of its preference.
    preference_of: Vec<Option<u32>>,
    value: i64,
}

impl<'a> Violations<'a> {
    pub(super) fn new(rule: Rule<'a>, scene: &Scene, nodes: &[NodeId]) -> Self {
        let mut this = Self { rule, preferences: Vec::new(), preference_of: Vec::new(), value: 0 };
        if matches!(rule, Rule::PreferredNodeAffinity(_)) {
            this.read_preferences(scene, nodes);
        }
        let on_nodes = scene.cancel.guard(nodes.iter().flat_map(|node| &scene.node(*node).pods));
        this.value = on_nodes.map(|id| this.count(scene, *id, &scene.pod(*id).pod, scene.pod(*id).node)).sum();
        this
    }

    fn read_preferences(&mut self, scene: &Scene, nodes: &[NodeId]) {
        for id in scene.cancel.guard(scene.pods()) {
            let affinity = scene.pod(id).pod.spec.affinity.node.as_ref();
            let terms = affinity.and_then(|a| a.preferred.as_ref()).filter(|terms| !terms.is_empty());
            let Some(terms) = terms else {
                self.preference_of.push(None);
                continue;
            };
            let known = scene.cancel.guard(&self.preferences).position(|p| p.terms == *terms);
            let index = known.unwrap_or_else(|| {
                // A node that isn't looked at any more is worth nothing, so that each has a number.
                let weight = |node| if scene.cancel.is_set() { 0 } else { weight(terms, &scene.node(node).node) };
                let weights: Vec<i64> = scene.nodes().map(weight).collect();
                let best = nodes.iter().copied().rev().max_by_key(|node| weights[node.index()]);
                self.preferences.push(Preference { terms: terms.clone(), weights, best });
                self.preferences.len() - 1
            });
            self.preference_of.push(u32::try_from(index).ok());
        }
    }

    fn preference(&self, id: PodId) -> Option<&Preference> {
        let index = (*self.preference_of.get(id.index())?)?;
        self.preferences.get(usize::try_from(index).ok()?)
    }

    pub(super) fn metric(&self) -> &'static str {
        match self.rule {
            Rule::NodeTaints(_) => "pods on nodes with a taint that they don't tolerate",
            Rule::NoExecuteTaints(_) => "pods that a NoExecute taint will evict",
            Rule::RequiredNodeAffinity(_) => "pods on nodes that their node affinity excludes",
            Rule::PreferredNodeAffinity(_) => "weight of preferred node affinity that is missed",
            Rule::TooManyRestarts(_) => "pods over the restart threshold",
            Rule::LifeTime(_) => "pods that are due",
            Rule::Failed(_) => "failed pods that are due",
        }
    }

    pub(super) fn value(&self) -> i64 {
        self.value
    }

    pub(super) fn change(&self, scene: &Scene, moved: &Move) -> i64 {
        self.count(scene, moved.id, &moved.new, moved.to) - self.count(scene, moved.id, &moved.old, moved.from)
    }

    pub(super) fn apply(&mut self, scene: &Scene, moved: &Move) {
        self.value += self.change(scene, moved);
    }

    pub(super) fn objection(&self, scene: &Scene, moved: &Move) -> Option<NoGain> {
        let still = self.applies(scene, moved.id, &moved.new, moved.to);
        let weighs = matches!(self.rule, Rule::PreferredNodeAffinity(_));
        (still && !weighs).then_some(NoGain::StillViolates)
    }

    /// How much a pod on a node adds to the amount.
    fn count(&self, scene: &Scene, id: PodId, pod: &Pod, node: NodeId) -> i64 {
        match self.rule {
            Rule::PreferredNodeAffinity(args) if is_selected(pod, &args.pods) && !pod.is_terminal() => {
                let missed = |p: &Preference| {
                    let best = p.best.map_or(0, |best| p.weights[best.index()]);
                    (best - p.weights[node.index()]).max(0)
                };
                self.preference(id).map_or(0, missed)
            }
            Rule::PreferredNodeAffinity(_) => 0,
            _ => i64::from(self.applies(scene, id, pod, node)),
        }
    }

    /// A rule that applies to a fresh replacement just as well is of no use, and counts nothing.
    fn applies(&self, scene: &Scene, id: PodId, pod: &Pod, node: NodeId) -> bool {
        let now = scene.now;
        let place = &scene.node(node).node;
        let running = |selection: &PodSelection| !pod.is_terminal() && is_selected(pod, selection);
        match self.rule {
            Rule::NodeTaints(args) => running(&args.pods) && args.violated(pod, place).is_some(),
            Rule::NoExecuteTaints(args) => running(&args.pods) && args.due(pod, place, now).is_some(),
            Rule::RequiredNodeAffinity(args) => {
                running(&args.pods) && states_requirement(pod) && node_fit::selects(pod, place) != Selects::Yes
            }
            Rule::PreferredNodeAffinity(_) => self.count(scene, id, pod, node) > 0,
            Rule::TooManyRestarts(args) => {
                is_selected(pod, &args.pods) && args.is_due(pod) && !args.is_due(&replacement(pod, now))
            }
            Rule::LifeTime(args) => {
                is_selected(pod, &args.pods) && args.is_due(pod, now) && !args.is_due(&replacement(pod, now), now)
            }
            Rule::Failed(args) => is_selected(pod, &args.pods) && args.is_due(pod, now),
        }
    }

    /// Why a pod should leave its node, for the node affinity rules.
    pub(super) fn affinity_reason(&self, scene: &Scene, id: PodId) -> Option<Reason> {
        let subject = scene.pod(id);
        if !self.applies(scene, id, &subject.pod, subject.node) {
            return None;
        }
        match self.rule {
            Rule::RequiredNodeAffinity(_) => Some(Reason::RequiredNodeAffinity),
            Rule::PreferredNodeAffinity(_) => {
                let preference = self.preference(id)?;
                let best = preference.best?;
                let (here, there) = (preference.weights[subject.node.index()], preference.weights[best.index()]);
                let node = scene.node(best).node.meta.name.clone();
                Some(Reason::PreferredNodeAffinity { here, best: there, node })
            }
            _ => None,
        }
    }
}

/// A plain `nodeSelector` binds as required affinity does.
fn states_requirement(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.node.as_ref();
    pod.spec.node_selector.is_some() || affinity.is_some_and(|a| a.required.is_some())
}
