//! ServiceAntiAffinityPriority (spec 8.3; the argument `serviceAntiAffinity` under a name of one's own): the fewer pods of
//! the pod's service there are in a node's domain of a label, the better. Nodes without the label are worst.

use rustc_hash::FxHashMap;

use crate::cluster::counts::CountKey;
use crate::cluster::{NodeRow, View};
use crate::engine::cost::{Share, Sizes};
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, Plugin, PreScore, ScorePlugin};
use crate::engine::profile::Profile;
use crate::model::{LabelSelector, Pod, Str};

/// `serviceAntiAffinity` of a priority's argument.
#[derive(Debug)]
pub struct ServiceAntiAffinityPriority {
    pub label: Str,
}

/// How the pods of the first service that selects the pod are counted; None where nothing is.
fn key(view: &View, pod: &Pod) -> Option<CountKey> {
    let selector = super::services_of(view, pod).next()?.selector.as_ref().filter(|s| !s.is_empty())?;
    Some(CountKey::in_namespace(pod.meta.namespace.clone(), LabelSelector::from_map(selector), false))
}

impl Plugin for ServiceAntiAffinityPriority {
    fn name(&self) -> &'static str {
        "ServiceAntiAffinityPriority"
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
        key(view, pod).into_iter().collect()
    }
}

impl ScorePlugin for ServiceAntiAffinityPriority {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let mut score = Score { label: &self.label, total: 0, domains: FxHashMap::default() };
        if let Some(key) = key(cycle.view, cycle.pod.pod) {
            let counts = cycle.counts(&key);
            for node in cycle.cancel.guard(feasible) {
                let count = i64::from(counts.get(node.ordinal()));
                score.total += count;
                if let Some(value) = node.labels().get(&self.label) {
                    *score.domains.entry(value.clone()).or_default() += count;
                }
            }
        }
        PreScore::Score(Box::new(score))
    }
}

struct Score<'a> {
    label: &'a Str,
    /// Pods of the service on all nodes that are scored, those without the label too.
    total: i64,
    domains: FxHashMap<Str, i64>,
}

impl NodeScore for Score<'_> {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let Some(value) = node.labels().get(self.label) else { return 0 };
        if self.total == 0 {
            return MAX_SCORE;
        }
        let elsewhere = self.total - self.domains.get(value).copied().unwrap_or(0);
        (MAX_SCORE as f64 * (elsewhere as f64 / self.total as f64)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Verdict, only, scene};
    use crate::model::testing::{node, pod, service};

    fn verdict(pods: &[&str]) -> Verdict {
        let nodes = [
            node("a1").label("rack", "a"),
            node("a2").label("rack", "a"),
            node("b").label("rack", "b"),
            node("unlabelled"),
        ];
        let web = |(i, on): (usize, &&str)| pod(&format!("w{i}")).label("app", "web").on(on);
        let gone = pod("gone").label("app", "web").terminating().on("b");
        let pods = pods.iter().enumerate().map(web).chain([pod("other").on("b"), gone]);
        let rule = ServiceAntiAffinityPriority { label: "rack".into() };
        let scene = scene(nodes, pods).profile(only(rule)).object(service("web", &[("app", "web")]));
        scene.decide(pod("p").label("app", "web"))
    }

    fn scores(verdict: &Verdict) -> Vec<i64> {
        let nodes = ["a1", "a2", "b", "unlabelled"];
        nodes.iter().map(|node| verdict.score("ServiceAntiAffinityPriority", node)).collect()
    }

    #[test]
    fn domains_with_fewer_pods_of_the_service_are_better() {
        // 3 pods in all: 2 in a, none in b, 1 outside of any domain.
        assert_eq!(scores(&verdict(&["a1", "a2", "unlabelled"])), [33, 33, 100, 0]);
    }

    #[test]
    fn without_pods_all_labelled_nodes_are_best() {
        assert_eq!(scores(&verdict(&[])), [100, 100, 100, 0]);
    }
}
