//! What a decision will cost, told before it starts.
//!
//! The unit is about one check of one term, constraint, toleration or label requirement on one node, one domain or one
//! [group of pods](crate::cluster::label_sets): some 10 to 50 ns on a machine of 2026 (`benches/heavy.rs` holds them against
//! the clock). Numbers are upper estimates made from sizes alone: of the pod, of the profile and of the view's indexes. They
//! are worked out in the time that it takes to read the pod once, and they stop at the largest `u64`.
//!
//! Whoever holds something that others wait for asks first, and does what may take long elsewhere.

use super::plugin::IncomingPod;
use super::profile::Profile;
use crate::cluster::View;
use crate::cluster::counts::CountKey;
use crate::model::selector::Operator;
use crate::model::{LabelSelector, Pod};

/// What a decision costs, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// To filter one given node once more, of which most is to prepare the filters.
    pub recheck: u64,
    /// To tell prepared filters of one pod that came or went (see [`super::Recheck`]).
    pub change: u64,
    /// The whole: filters and scores over all nodes, or over the candidates.
    pub total: u64,
}

/// A plugin's share of a decision, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Before the first node is filtered.
    pub prepare: u64,
    /// To filter a node.
    pub filter: u64,
    /// Before the first node is scored.
    pub prepare_score: u64,
    /// To score a node.
    pub score: u64,
    /// To be told of a pod that came or went.
    pub change: u64,
}

/// What shares are worked out from.
#[derive(Clone, Copy)]
pub struct Sizes<'a> {
    pub view: &'a View,
    pub pod: &'a Pod,
    pub profile: &'a Profile,
    /// Of the whole view.
    pub nodes: u64,
}

/// What deciding on a pod costs; `candidates`: how many nodes are looked at, None: all.
pub fn cost(view: &View, pod: &IncomingPod<'_>, profile: &Profile, candidates: Option<usize>) -> Cost {
    let nodes = units(view.node_count());
    let looked_at = candidates.map_or(nodes, |candidates| units(candidates).min(nodes));
    let sizes = Sizes { view, pod: pod.pod, profile, nodes };
    let mut sum = Share::default();
    for plugin in profile.plugins() {
        sum = sum.and(plugin.cost(&sizes));
    }
    // Each node is visited, and compared with the best.
    let a_node = sum.filter.saturating_add(sum.score).saturating_add(2);
    let total = sum.prepare.saturating_add(sum.prepare_score).saturating_add(a_node.saturating_mul(looked_at));
    Cost { recheck: sum.prepare.saturating_add(sum.filter), change: sum.change, total }
}

pub(crate) fn units(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl Share {
    /// The same for each node that is filtered, and for each that is scored.
    pub fn a_node(filter: u64, score: u64) -> Self {
        Self { filter, score, ..Self::default() }
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            prepare: self.prepare.saturating_add(other.prepare),
            filter: self.filter.saturating_add(other.filter),
            prepare_score: self.prepare_score.saturating_add(other.prepare_score),
            score: self.score.saturating_add(other.score),
            change: self.change.saturating_add(other.change),
        }
    }
}

impl Sizes<'_> {
    /// Names of resources that the pod's containers name, repeats included.
    pub(crate) fn resources(&self) -> u64 {
        let containers = self.pod.spec.containers.iter().chain(&self.pod.spec.init_containers);
        units(containers.map(|c| c.resources.requests.len()).sum())
    }

    /// To have the counts of a key: nothing much where they are kept, else each group of its namespaces once, and half of
    /// the places where their pods are.
    pub fn count(&self, key: &CountKey) -> u64 {
        // To read them is to pass each node.
        let read = self.nodes / 8;
        if self.view.kept_counts(key).is_some() {
            return read;
        }
        let index = self.view.label_sets();
        let all = units(index.len()).max(1);
        let groups = match key.namespaces() {
            Some(names) => names.iter().map(|name| units(index.len_of(name))).fold(0, u64::saturating_add).min(all),
            None => all,
        };
        // As if namespaces' groups were of one size.
        let places = units(self.view.pod_count()).saturating_mul(groups) / all;
        let requirements = key.selectors().map(selector).fold(1, u64::saturating_add);
        groups.saturating_mul(requirements).saturating_add(places / 4).saturating_add(read)
    }
}

/// To match a selector with labels.
pub(crate) fn selector(selector: &LabelSelector) -> u64 {
    let LabelSelector::Requirements(list) = selector else { return 1 };
    let requirement = |op: &Operator| match op {
        Operator::In(values) | Operator::NotIn(values) => 1 + values_compared(values.len()),
        Operator::Exists | Operator::DoesNotExist => 1,
    };
    list.iter().map(|r| requirement(&r.op)).fold(0, u64::saturating_add)
}

/// To look for a value in a list: eight comparisons of texts are a unit.
pub(crate) fn values_compared(values: usize) -> u64 {
    units(values / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::scene;
    use crate::model::node_selector::{NodeOperator, NodeRequirement, NodeSelectorTerm};
    use crate::model::testing::{PodBuilder, node, pod};
    use crate::model::topology_spread::WhenUnsatisfiable;
    use crate::model::{
        NodeAffinity, NodeSelector, PodAffinity, PodAffinityTerm, Toleration, TopologySpreadConstraint,
        WeightedPodAffinityTerm,
    };

    fn view() -> View {
        let nodes = (0..100).map(|i| node(&format!("n{i}")).zone(&format!("z{}", i % 3)));
        let pods = (0..300).map(|i| {
            let app = format!("app-{}", i % 50);
            pod(&format!("p{i}")).label("app", &app).on(&format!("n{}", i % 100))
        });
        scene(nodes, pods).view
    }

    fn of(view: &View, pod: PodBuilder, candidates: Option<usize>) -> Cost {
        let pod = pod.build();
        cost(view, &IncomingPod::new(&pod), &Profile::default(), candidates)
    }

    fn app(i: usize) -> LabelSelector {
        crate::model::testing::selector(&[("app", &format!("app-{i}"))])
    }

    fn term(i: usize) -> PodAffinityTerm {
        PodAffinityTerm { selector: app(i), topology_key: "zone".into(), ..Default::default() }
    }

    fn node_term(i: usize) -> NodeSelectorTerm {
        let op = NodeOperator::In(vec![format!("z{i}").into()]);
        NodeSelectorTerm { expressions: vec![NodeRequirement { key: "zone".into(), op }], fields: vec![] }
    }

    /// Pods with so many of something.
    fn heavy(count: usize) -> Vec<(&'static str, PodBuilder)> {
        let spread = |when| {
            let one = |i| TopologySpreadConstraint::new(1, "zone".into(), when, app(i));
            (0..count).fold(pod("a"), |p, i| p.spread(one(i)))
        };
        let weighted = |i| WeightedPodAffinityTerm { weight: 1, term: term(i) };
        let required = PodAffinity { required: (0..count).map(term).collect(), ..Default::default() };
        let preferred = PodAffinity { preferred: (0..count).map(weighted).collect(), ..Default::default() };
        let terms = Some(NodeSelector { terms: (0..count).map(node_term).collect() });
        let node_affinity = NodeAffinity { required: terms, ..Default::default() };
        let toleration = |i| Toleration {
            key: format!("k{i}").into(),
            op: crate::model::taint::TolerationOperator::Exists,
            value: "".into(),
            effect: None,
            seconds: None,
        };
        let ports = (0..count).fold(pod("a"), |p, i| p.host_port("", "TCP", u16::try_from(i + 1).unwrap()));
        vec![
            ("soft constraints", spread(WhenUnsatisfiable::ScheduleAnyway)),
            ("hard constraints", spread(WhenUnsatisfiable::DoNotSchedule)),
            ("anti-affinity", pod("a").affinity(|a| a.pod_anti = Some(required.clone()))),
            ("affinity", pod("a").affinity(|a| a.pod = Some(required))),
            ("preferences", pod("a").affinity(|a| a.pod = Some(preferred))),
            ("node affinity", pod("a").affinity(|a| a.node = Some(node_affinity))),
            ("tolerations", pod("a").with(|p| p.spec.tolerations = (0..count).map(toleration).collect())),
            ("ports", ports),
        ]
    }

    #[test]
    fn whatever_a_pod_brings_by_the_thousand_costs() {
        let view = view();
        for ((what, few), (_, many)) in heavy(100).into_iter().zip(heavy(1_000)) {
            let (few, many) = (of(&view, few, None), of(&view, many, None));
            assert!(many.total > 4 * few.total, "{what}: {few:?} and {many:?}");
            assert!(few.recheck <= few.total && many.recheck <= many.total, "{what}");
        }
    }

    #[test]
    fn candidates_cost_less_than_all_nodes_and_hard_rules_less_than_the_whole() {
        let view = view();
        let all = of(&view, pod("a"), None);
        let one = of(&view, pod("a"), Some(1));
        assert!(one.total * 20 < all.total, "{one:?} and {all:?}");
        assert_eq!(of(&view, pod("a"), Some(1_000_000)), all, "there are no more nodes");
        let [(_, soft), (_, hard), ..] = &heavy(1_000)[..] else { panic!("there are more kinds") };
        let (soft, hard) = (of(&view, soft.clone(), None), of(&view, hard.clone(), None));
        assert!(soft.recheck * 20 < soft.total && hard.recheck * 2 > hard.total, "{soft:?} and {hard:?}");
    }

    #[test]
    fn a_count_that_is_kept_costs_less() {
        let mut view = view();
        let spread = TopologySpreadConstraint::new(1, "zone".into(), WhenUnsatisfiable::DoNotSchedule, app(1));
        let pod = pod("a").spread(spread);
        let before = of(&view, pod.clone(), None);
        for key in Profile::default().count_keys(&view, &pod.clone().build()) {
            view.keep_counts(key);
        }
        assert!(of(&view, pod, None).total < before.total);
    }

    #[test]
    fn costs_stop_at_the_largest_number() {
        let most = Share { prepare: u64::MAX, filter: u64::MAX, ..Share::default() };
        assert_eq!(most.and(most).filter, u64::MAX);
    }
}
