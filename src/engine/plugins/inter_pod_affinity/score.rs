//! Preferred terms, in both directions, and what required affinity of bound pods is worth.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Domains, InterPodAffinity, count_key, preferences};
use crate::cluster::NodeRow;
use crate::cluster::counts::CountKey;
use crate::cluster::terms::Role;
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, PreScore, ScorePlugin};
use crate::model::Str;

impl ScorePlugin for InterPodAffinity {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let (view, pod) = (cycle.view, cycle.pod.pod);
        if self.ignore_preferred_terms_of_existing_pods && preferences(pod).next().is_none() {
            return PreScore::Skip;
        }
        let cancel = cycle.cancel;
        // Terms that speak of the same pods are counted once, and their weights are one weight.
        let mut by_set = FxHashMap::<CountKey, BTreeMap<&Str, i64>>::default();
        for (term, weight) in cancel.guard(preferences(pod)) {
            let Some(key) = count_key(term, pod, cycle.profile) else { continue };
            *by_set.entry(key).or_default().entry(&term.topology_key).or_default() += weight;
        }
        let mut worth = Vec::new();
        for (key, weights) in cancel.guard(&by_set) {
            let counts = cycle.counts(key);
            for (topology_key, weight) in weights.iter().filter(|(_, weight)| **weight != 0) {
                let domains = Domains::of_key(&mut worth, topology_key, || cycle.topology(topology_key));
                for (node, count) in cancel.guard(counts.iter()).filter_map(|(o, count)| Some((view.node(o)?, count))) {
                    domains.add(&node, weight * i64::from(count));
                }
            }
        }
        let weight = |role| match role {
            Role::RequiredAffinity => self.hard_pod_affinity_weight,
            Role::RequiredAntiAffinity => 0,
            Role::Preferred(weight) => i64::from(weight),
        };
        let matching = view.terms().matching(pod, view.objects(), |role| weight(role) != 0, cancel);
        for (term, tally) in cancel.guard(matching) {
            let domains = Domains::of_key(&mut worth, &term.topology_key, || cycle.topology(&term.topology_key));
            for (node, count) in cancel.guard(tally.iter()).filter_map(|(o, count)| Some((view.node(o)?, count))) {
                domains.add(&node, weight(term.role) * i64::from(count));
            }
        }
        worth.retain(|domains| !domains.sums.is_empty());
        // Upstream skips only when nothing matched at all; sums that came to nothing score 0 everywhere, which is the same.
        if worth.is_empty() { PreScore::Skip } else { PreScore::Score(Box::new(Score { worth })) }
    }
}

struct Score {
    /// What each domain is worth, by topology key; may be negative.
    worth: Vec<Domains>,
}

impl NodeScore for Score {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        self.worth.iter().map(|domains| domains.sum(node)).sum()
    }

    /// From the lowest to the highest; all equal is 0 for all, not 100.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn normalize(&self, _feasible: &[NodeRow<'_>], scores: &mut [i64]) {
        let min = scores.iter().copied().min().unwrap_or(0);
        let max = scores.iter().copied().max().unwrap_or(0);
        let spread = max - min;
        for score in scores {
            *score = if spread > 0 {
                // In f64 and in this order, as upstream.
                (MAX_SCORE as f64 * ((*score - min) as f64 / spread as f64)) as i64
            } else {
                0
            };
        }
    }
}
