//! ServiceSpreadingPriority (spec 8.2 and 8.5): spreads the pods of services over nodes and, with two thirds of the weight,
//! over zones.
//!
//! SelectorSpread's rule with services alone; controllers don't count. SelectorSpreadPriority itself is PodTopologySpread's
//! default constraints today.

use rustc_hash::FxHashMap;

use crate::cluster::counts::CountKey;
use crate::cluster::{Cancel, NodeRow, Ordinal, View};
use crate::engine::cost::{Share, Sizes};
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, Plugin, PreScore, ScorePlugin};
use crate::engine::plugins::pod_topology_spread::selector_of_services;
use crate::engine::profile::Profile;
use crate::model::node::{REGION_LABEL, ZONE_LABEL};
use crate::model::{Labels, Pod};

const NAME: &str = "ServiceSpreadingPriority";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const ZONE_WEIGHT: f64 = 2.0 / 3.0;

#[derive(Debug)]
pub struct ServiceSpreadingPriority;

/// How the pods of the pod's services are counted; None if no service selects it.
fn key(view: &View, pod: &Pod, cancel: Cancel<'_>) -> Option<CountKey> {
    let selector = selector_of_services(view, pod, cancel);
    (!selector.is_everything()).then(|| CountKey::in_namespace(pod.meta.namespace.clone(), selector, false))
}

/// Region and zone; the beta labels win. None: the node has neither.
fn zone_of(labels: &Labels) -> Option<(&str, &str)> {
    let value = |beta, key| labels.get(beta).or_else(|| labels.get(key)).map_or("", |v| &**v);
    let zone = (value(BETA_REGION, REGION_LABEL), value(BETA_ZONE, ZONE_LABEL));
    (zone != ("", "")).then_some(zone)
}

impl Plugin for ServiceSpreadingPriority {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let keys = self.count_keys(sizes.view, sizes.pod, sizes.profile);
        let counts = keys.iter().map(|key| sizes.count(key)).fold(sizes.nodes, u64::saturating_add);
        Share { prepare_score: counts, ..Share::a_node(0, 2) }
    }

    fn count_keys(&self, view: &View, pod: &Pod, _profile: &Profile) -> Vec<CountKey> {
        if pod.spec.topology_spread.is_empty() {
            key(view, pod, Cancel::never()).into_iter().collect()
        } else {
            Vec::new()
        }
    }
}

impl ScorePlugin for ServiceSpreadingPriority {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        // A pod with constraints of its own is spread by those.
        if !cycle.pod.pod.spec.topology_spread.is_empty() {
            return PreScore::Skip;
        }
        let mut score = Score::default();
        let counts = key(cycle.view, cycle.pod.pod, cycle.cancel).map(|key| cycle.counts(&key));
        for node in cycle.cancel.guard(feasible) {
            let count = counts.as_ref().map_or(0, |counts| i64::from(counts.get(node.ordinal())));
            score.most = score.most.max(count);
            score.nodes.insert(node.ordinal(), count);
            if let Some(zone) = zone_of(node.labels()) {
                *score.zones.entry(zone).or_default() += count;
            }
        }
        score.most_in_zone = score.zones.values().copied().max().unwrap_or(0);
        PreScore::Score(Box::new(score))
    }
}

#[derive(Default)]
struct Score<'a> {
    nodes: FxHashMap<Ordinal, i64>,
    most: i64,
    zones: FxHashMap<(&'a str, &'a str), i64>,
    most_in_zone: i64,
}

/// 100 where there are none, 0 where there are most. The order of operations is upstream's.
#[allow(clippy::cast_precision_loss)]
fn fewness(count: i64, most: i64) -> f64 {
    let best = MAX_SCORE as f64;
    if most > 0 { best * ((most - count) as f64 / most as f64) } else { best }
}

impl NodeScore for Score<'_> {
    #[allow(clippy::cast_possible_truncation)]
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let on_node = fewness(self.nodes.get(&node.ordinal()).copied().unwrap_or(0), self.most);
        let in_zone = zone_of(node.labels()).and_then(|zone| self.zones.get(&zone));
        let score = match in_zone {
            None => on_node,
            Some(count) => on_node * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * fewness(*count, self.most_in_zone),
        };
        score as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Scene, only, scene};
    use crate::model::testing::{node, pod, service};

    fn on(nodes: &[&str]) -> Scene {
        let web = nodes.iter().enumerate().map(|(i, on)| pod(&format!("w{i}")).label("app", "web").on(on));
        let others = [pod("other").on("b"), pod("gone").label("app", "web").terminating().on("b")];
        let cluster = [node("a1").zone("a"), node("a2").zone("a"), node("b").zone("b"), node("nowhere")];
        let scene = scene(cluster, web.chain(others)).profile(only(ServiceSpreadingPriority));
        scene.object(service("web", &[("app", "web")]))
    }

    fn scores(scene: &Scene) -> Vec<i64> {
        let verdict = scene.decide(pod("p").label("app", "web"));
        ["a1", "a2", "b", "nowhere"].iter().map(|node| verdict.score(NAME, node)).collect()
    }

    #[test]
    fn nodes_and_zones_with_fewer_pods_of_the_service_are_better() {
        // a1: 100 * 0 / 3 + 200 * 0 / 3; a2: a third for the empty node; b: 1 of 2 on nodes and 1 of 2 in zones.
        assert_eq!(scores(&on(&["a1", "a1", "b"])), [0, 33, 50, 100]);
    }

    #[test]
    fn without_pods_or_a_service_all_nodes_are_best() {
        assert_eq!(scores(&on(&[])), [100; 4]);
        let verdict = on(&["a1"]).decide(pod("p").label("app", "unserved"));
        assert_eq!(verdict.score(NAME, "a1"), 100);
    }

    #[test]
    fn controllers_do_not_count() {
        let verdict = on(&["a1"]).decide(pod("p").owner("apps/v1", "ReplicaSet", "web"));
        assert_eq!(verdict.score(NAME, "a1"), 100);
    }

    #[test]
    fn a_pod_with_constraints_of_its_own_is_not_scored() {
        use crate::model::TopologySpreadConstraint;
        use crate::model::testing::selector;
        use crate::model::topology_spread::WhenUnsatisfiable::ScheduleAnyway;
        let own = TopologySpreadConstraint::new(1, ZONE_LABEL.into(), ScheduleAnyway, selector(&[("app", "web")]));
        assert!(!on(&["a1"]).decide(pod("p").label("app", "web").spread(own)).scored(NAME));
    }
}
