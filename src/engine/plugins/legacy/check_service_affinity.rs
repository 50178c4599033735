//! CheckServiceAffinity (spec 8.3): the pods of a service share the values of certain node labels, which the pod's
//! nodeSelector or the oldest of its like sets.
//!
//! "Its like" are the pods of its namespace that carry all its labels. They are found through the count of that selector,
//! so that only nodes that have some are walked.

use crate::cluster::counts::CountKey;
use crate::cluster::{NodeRow, PodInfo, View};
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::legacy_reason::LegacyReason;
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::profile::Profile;
use crate::engine::status::{Reason, Rejection};
use crate::model::{LabelSelector, Pod, Str, Time};

const NAME: &str = "CheckServiceAffinity";

/// `serviceAffinity` of predicates' arguments, all of them together.
#[derive(Debug)]
pub struct CheckServiceAffinity {
    pub labels: Vec<Str>,
}

/// How the pod's like are counted. Terminating ones are among them.
fn like(pod: &Pod) -> CountKey {
    CountKey::in_namespace(pod.meta.namespace.clone(), LabelSelector::from_map(&pod.meta.labels), true)
}

impl CheckServiceAffinity {
    /// Whether other pods have a say.
    fn asks_others(&self, view: &View, pod: &Pod) -> bool {
        let own = |label: &Str| pod.spec.node_selector.as_ref().is_some_and(|s| s.contains_key(label));
        !self.labels.iter().all(own) && super::services_of(view, pod).next().is_some()
    }
}

impl Plugin for CheckServiceAffinity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let keys = self.count_keys(sizes.view, sizes.pod, sizes.profile);
        let counts = keys.iter().map(|key| sizes.count(key)).fold(sizes.nodes, u64::saturating_add);
        Share { prepare: counts, ..Share::a_node(1 + units(self.labels.len()), 0) }
    }

    fn count_keys(&self, view: &View, pod: &Pod, _profile: &Profile) -> Vec<CountKey> {
        self.asks_others(view, pod).then(|| like(pod)).into_iter().collect()
    }
}

impl FilterPlugin for CheckServiceAffinity {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let (view, pod) = (cycle.view, cycle.pod.pod);
        let mut own = Vec::new();
        for label in &self.labels {
            if let Some(value) = pod.spec.node_selector.as_ref().and_then(|s| s.get(label)) {
                own.push((label.clone(), value.clone()));
            }
        }
        let mut filter = Filter { labels: &self.labels, pod, own, others: None, wanted: Vec::new() };
        if self.asks_others(view, pod) {
            let key = like(pod);
            let mut others: Vec<Place> = Vec::new();
            let counts = cycle.counts(&key);
            let rows = counts.iter().filter_map(|(ordinal, _)| view.node(ordinal));
            for row in cycle.cancel.guard(rows) {
                others.extend(row.pods().iter().filter(|p| key.matches(&p.pod, view.objects())).map(|p| Place::of(p)));
            }
            others.sort();
            filter.others = Some(others);
        }
        filter.refresh(view);
        PreFilter::Filter(Box::new(filter))
    }
}

/// A pod of the kind and its node; the oldest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    created: Option<Time>,
    name: Str,
    uid: Str,
    node: Str,
}

impl Place {
    fn of(pod: &PodInfo) -> Self {
        let meta = &pod.pod.meta;
        Self { created: meta.created, name: meta.name.clone(), uid: meta.uid.clone(), node: pod.node.clone() }
    }
}

struct Filter<'a> {
    labels: &'a [Str],
    pod: &'a Pod,
    /// What the pod's nodeSelector says of the labels.
    own: Vec<(Str, Str)>,
    /// Sorted; None where they have no say.
    others: Option<Vec<Place>>,
    /// What the node must have.
    wanted: Vec<(Str, Str)>,
}

impl Filter<'_> {
    fn refresh(&mut self, view: &View) {
        self.wanted.clone_from(&self.own);
        let oldest = self.others.as_ref().and_then(|others| others.first());
        let Some(node) = oldest.and_then(|place| view.node_named(&place.node)) else { return };
        for label in self.labels.iter().filter(|label| self.own.iter().all(|(own, _)| own != *label)) {
            if let Some(value) = node.labels().get(label) {
                self.wanted.push((label.clone(), value.clone()));
            }
        }
    }

    fn is_like(&self, other: &Pod) -> bool {
        other.meta.namespace == self.pod.meta.namespace && self.pod.meta.labels.is_subset_of(&other.meta.labels)
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        match self.wanted.iter().find(|(label, value)| node.labels().get(label) != Some(value)) {
            None => Ok(()),
            Some((key, wanted)) => {
                let reason = LegacyReason::ServiceAffinity { key: key.clone(), wanted: wanted.clone() };
                Err(Rejection::resolvable(NAME, Reason::Legacy(reason)))
            }
        }
    }

    fn pod_added(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        if !self.is_like(&pod.pod) {
            return;
        }
        if let Some(others) = &mut self.others {
            others.push(Place::of(pod));
            others.sort();
            self.refresh(node.view());
        }
    }

    fn pod_removed(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        if !self.is_like(&pod.pod) {
            return;
        }
        if let Some(others) = &mut self.others {
            others.retain(|place| place.uid != pod.pod.meta.uid);
            self.refresh(node.view());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Cancel;
    use crate::engine::testing::{Scene, only, scene};
    use crate::model::testing::{node, pod, service};

    /// Three nodes in two racks; `old` and `new` are pods of the service.
    fn racks() -> Scene {
        let nodes =
            [node("a1").label("rack", "a"), node("a2").label("rack", "a"), node("b1").label("rack", "b"), node("c1")];
        let like = |name: &str| pod(name).label("app", "web");
        let pods = [like("new").created(9).on("a1"), like("old").created(5).label("extra", "1").on("b1")];
        let rule = CheckServiceAffinity { labels: vec!["rack".into()] };
        scene(nodes, pods).profile(only(rule)).object(service("web", &[("app", "web")]))
    }

    #[test]
    fn the_oldest_pod_of_the_kind_sets_the_value() {
        let verdict = racks().decide(pod("p").label("app", "web"));
        assert_eq!(verdict.feasible(), ["b1"]);
        assert_eq!(verdict.refusal("c1"), "CheckServiceAffinity U: node(s) didn't match service affinity");
    }

    #[test]
    fn the_node_selector_comes_first() {
        let verdict = racks().decide(pod("p").label("app", "web").node_selector("rack", "a"));
        assert_eq!(verdict.feasible(), ["a1", "a2"]);
    }

    #[test]
    fn without_a_service_or_others_of_the_kind_there_is_nothing_to_match() {
        assert_eq!(racks().decide(pod("p").label("app", "other")).feasible().len(), 4);
        assert_eq!(racks().decide(pod("p").label("app", "web").label("x", "y")).feasible().len(), 4);
        assert_eq!(racks().decide(pod("p").label("app", "web").namespace("elsewhere")).feasible().len(), 4);
    }

    #[test]
    fn pods_that_come_and_go_on_a_fork_change_the_value() {
        let scene = racks();
        let incoming = pod("p").label("app", "web").build();
        let incoming = crate::engine::IncomingPod::new(&incoming);
        let profile = Profile::default();
        let rule = CheckServiceAffinity { labels: vec!["rack".into()] };
        let PreFilter::Filter(mut filter) =
            rule.prepare(&Cycle::new(&scene.view, &incoming, &profile, Cancel::never()))
        else {
            panic!("no filter")
        };
        let mut fork = scene.view.clone();
        let passes = |filter: &dyn NodeFilter, fork: &View, node: &str| filter.passes(&fork.node_named(node).unwrap());
        let old = fork.remove_pod("uid-default-old").unwrap();
        filter.pod_removed(&fork.node_named("b1").unwrap(), &old);
        assert!(passes(&*filter, &fork, "a2") && !passes(&*filter, &fork, "b1"));
        fork.add_pod(old.clone());
        filter.pod_added(&fork.node_named("b1").unwrap(), &old);
        assert!(!passes(&*filter, &fork, "a2") && passes(&*filter, &fork, "b1"));
    }
}
