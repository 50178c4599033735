//! The plugin once more, spelled out from the specification over all nodes and pods, for comparison; and filters that were
//! told of pods that come and go against ones prepared anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::{Constraint, NAME, PodTopologySpread};
use crate::cluster::{Cancel, NodeRow, PodInfo, View};
use crate::engine::plugin::{Cycle, IncomingPod, Plugin, PreFilter};
use crate::engine::plugins::node_affinity::matches_required;
use crate::engine::plugins::{InterPodAffinity, taint_toleration};
use crate::engine::profile::Profile;
use crate::engine::random_cluster::{Dice, History, incoming};
use crate::engine::testing::{Scene, only};
use crate::model::node::HOSTNAME_LABEL;
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{LabelSelector, Pod};

struct Oracle<'a> {
    view: &'a View,
    pod: &'a Pod,
}

impl Oracle<'_> {
    fn constraints(&self, when: WhenUnsatisfiable) -> (Vec<Constraint>, bool) {
        let constraints = PodTopologySpread::default().constraints(self.view, self.pod, when, Cancel::never());
        (constraints.list, constraints.require_all)
    }

    fn includes(&self, constraint: &Constraint, node: &NodeRow<'_>) -> bool {
        (!constraint.honor_affinity || matches_required(node.node(), self.pod))
            && (!constraint.honor_taints
                || taint_toleration::untolerated(node.node(), self.pod, Cancel::never()).is_none())
    }

    /// The pod's like on a node.
    fn count(&self, constraint: &Constraint, node: &NodeRow<'_>) -> i64 {
        let counts = |p: &&Arc<PodInfo>| {
            let meta = &p.pod.meta;
            !constraint.selector.is_everything()
                && meta.namespace == self.pod.meta.namespace
                && !meta.is_terminating()
                && constraint.selector.matches(&meta.labels)
        };
        i64::try_from(node.pods().iter().filter(counts).count()).unwrap()
    }

    /// Whether a node passes.
    fn passes(&self, node: &NodeRow<'_>) -> bool {
        let (constraints, _) = self.constraints(WhenUnsatisfiable::DoNotSchedule);
        let has_all = |n: &NodeRow<'_>| constraints.iter().all(|c| n.labels().contains_key(&c.key));
        constraints.iter().all(|constraint| {
            let Some(value) = node.labels().get(&constraint.key) else { return false };
            let mut domains = BTreeMap::new();
            for other in self.view.nodes().filter(|n| has_all(n) && self.includes(constraint, n)) {
                *domains.entry(other.labels().get(&constraint.key).unwrap().clone()).or_insert(0) +=
                    self.count(constraint, &other);
            }
            let enough = domains.len() >= usize::try_from(constraint.min_domains).unwrap();
            let least = if enough { domains.values().copied().min().unwrap_or(0) } else { 0 };
            let own = i64::from(constraint.selector.matches(&self.pod.meta.labels));
            domains.get(value).copied().unwrap_or(0) + own - least <= i64::from(constraint.max_skew)
        })
    }

    /// What each feasible node scores before normalisation; None: it lacks a key.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn raw(&self, feasible: &[NodeRow<'_>]) -> Vec<Option<i64>> {
        let (constraints, require_all) = self.constraints(WhenUnsatisfiable::ScheduleAnyway);
        let scored = |n: &NodeRow<'_>| !require_all || constraints.iter().all(|c| n.labels().contains_key(&c.key));
        let value = |n: &NodeRow<'_>, c: &Constraint| n.labels().get(&c.key).cloned().unwrap_or_default();
        let mut sums: Vec<Option<f64>> = feasible.iter().map(|n| scored(n).then_some(0.0)).collect();
        for c in &constraints {
            let chosen: Vec<&NodeRow<'_>> = feasible.iter().filter(|n| scored(n)).collect();
            let hosts = &*c.key == HOSTNAME_LABEL;
            let domains: BTreeSet<_> = chosen.iter().map(|n| value(n, c)).collect();
            let size = if hosts { chosen.len() } else { domains.len() };
            let weight = ((size + 2) as f64).ln();
            for (node, sum) in feasible.iter().zip(&mut sums) {
                let Some(sum) = sum.as_mut().filter(|_| node.labels().contains_key(&c.key)) else { continue };
                let in_domain = |n: &NodeRow<'_>| scored(n) && self.includes(c, n) && value(n, c) == value(node, c);
                let count: i64 = match hosts {
                    true => self.count(c, node),
                    false => self.view.nodes().filter(in_domain).map(|n| self.count(c, &n)).sum(),
                };
                *sum += count as f64 * weight + f64::from(c.max_skew - 1);
            }
        }
        sums.into_iter().map(|sum| sum.map(|sum| sum.round() as i64)).collect()
    }
}

fn after(events: &[u64]) -> View {
    let mut history = History::new();
    events.iter().for_each(|event| history.apply(*event, &Profile::default()));
    history.cluster.fork()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn filter_and_score_are_the_specifications(
        events in proptest::collection::vec(any::<u64>(), 150),
        pods in proptest::collection::vec(any::<u64>(), 10),
    ) {
        let view = after(&events);
        for seed in pods {
            let mut pod = Pod::clone(&incoming(&mut Dice::new(seed)));
            for constraint in &mut pod.spec.topology_spread {
                constraint.min_domains = 1 + i32::try_from(seed % 4).unwrap();
            }
            let verdict = Scene::of(view.clone()).profile(only(PodTopologySpread::default())).decide_on_pod(&pod);
            let oracle = Oracle { view: &view, pod: &pod };
            let feasible: Vec<NodeRow<'_>> = view.nodes().filter(|node| oracle.passes(node)).collect();
            let mut names: Vec<&str> = feasible.iter().map(|row| &**row.name()).collect();
            names.sort_unstable();
            prop_assert_eq!(verdict.feasible(), names);

            let raw = oracle.raw(&feasible);
            let (min, max) = raw.iter().flatten().fold((i64::MAX, 0), |(min, max), s| (min.min(*s), max.max(*s)));
            for (node, raw) in feasible.iter().zip(raw) {
                let expected = match raw {
                    _ if !verdict.scored(NAME) => 0,
                    None => 0,
                    Some(_) if max == 0 => 100,
                    Some(raw) => 100 * (max + min - raw) / max,
                };
                prop_assert_eq!(verdict.score(NAME, node.name()), expected, "{}", node.name());
            }
        }
    }

    #[test]
    fn filters_that_were_told_of_pods_that_come_and_go_judge_as_ones_prepared_anew(
        events in proptest::collection::vec(any::<u64>(), 150),
        pods in proptest::collection::vec(any::<u64>(), 6),
        changes in proptest::collection::vec(any::<u64>(), 12),
    ) {
        let view = after(&events);
        let plugins: [&dyn Plugin; 2] = [&PodTopologySpread::default(), &InterPodAffinity::default()];
        for (seed, plugin) in pods.into_iter().flat_map(|seed| plugins.map(|plugin| (seed, plugin))) {
            // Upstream counts terminating pods, and those of an empty selector, when they come and go, and not before.
            let mut pod = Pod::clone(&incoming(&mut Dice::new(seed)));
            pod.spec.topology_spread.retain(|c| !c.selector.is_everything() && c.selector != LabelSelector::Nothing);
            let (pod, profile) = (IncomingPod::new(&pod), Profile::default());
            let mut fork = view.clone();
            let cycle = Cycle::new(&view, &pod, &profile, Cancel::never());
            let PreFilter::Filter(mut told) = plugin.filter().unwrap().prepare(&cycle) else { continue };
            for change in &changes {
                let mut dice = Dice::new(*change);
                let nodes: Vec<_> = fork.nodes().map(|row| row.name().clone()).collect();
                let here: Vec<Arc<PodInfo>> = fork.nodes().flat_map(|row| row.pods().to_vec()).collect();
                if dice.one_in(2) && !here.is_empty() {
                    let gone = here[dice.below(here.len())].clone();
                    if gone.pod.meta.is_terminating() {
                        continue;
                    }
                    fork.remove_pod(&gone.pod.meta.uid);
                    told.pod_removed(&fork.node_named(&gone.node).unwrap(), &gone);
                } else if !nodes.is_empty() {
                    let mut new = Pod::clone(&incoming(&mut dice));
                    new.meta.uid = format!("came-{change}").into();
                    let new = Arc::new(PodInfo::on(Arc::new(new), nodes[dice.below(nodes.len())].clone()));
                    if fork.pod(&new.pod.meta.uid).is_none() {
                        fork.add_pod(new.clone());
                        told.pod_added(&fork.node_named(&new.node).unwrap(), &new);
                    }
                }
                let anew = Cycle::new(&fork, &pod, &profile, Cancel::never());
                let PreFilter::Filter(anew) = plugin.filter().unwrap().prepare(&anew) else { continue };
                for row in fork.nodes() {
                    prop_assert_eq!(told.check(&row), anew.check(&row), "{} {}", plugin.name(), row.name());
                    prop_assert_eq!(told.passes(&row), anew.passes(&row));
                }
            }
        }
    }
}
