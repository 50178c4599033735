//! NodeResourcesBalancedAllocation (spec 5.3): prefers nodes whose resources the pod brings closer to being used alike.

use smallvec::SmallVec;

use super::node_resources_fit::{cpu_and_memory, is_scalar};
use crate::cluster::NodeRow;
use crate::cluster::view::ResourceId;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::plugin::{Cycle, NodeScore, Plugin, PreScore, ScorePlugin};
use crate::model::Str;

#[derive(Debug)]
pub struct NodeResourcesBalancedAllocation {
    /// Resources to balance.
    pub resources: Vec<Str>,
}

impl Default for NodeResourcesBalancedAllocation {
    fn default() -> Self {
        Self { resources: cpu_and_memory().into_iter().map(|(name, _)| name).collect() }
    }
}

impl Plugin for NodeResourcesBalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, _sizes: &Sizes<'_>) -> Share {
        Share::a_node(0, 1 + units(self.resources.len()))
    }
}

impl ScorePlugin for NodeResourcesBalancedAllocation {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let requests = &cycle.pod.in_force;
        if self.resources.iter().all(|name| requests.get(name) == 0) {
            // A best-effort pod changes no balance.
            return PreScore::Skip;
        }
        let balanced = self.resources.iter().filter(|name| requests.get(name) != 0 || !is_scalar(name));
        let table = cycle.view.resources();
        let resources = balanced.filter_map(|name| Some((table.get(name)?, requests.get(name)))).collect();
        PreScore::Score(Box::new(Score { resources }))
    }
}

struct Score {
    resources: SmallVec<[(ResourceId, i64); 2]>,
}

impl NodeScore for Score {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let mut with = SmallVec::<[f64; 4]>::new();
        let mut without = SmallVec::<[f64; 4]>::new();
        for (id, request) in &self.resources {
            let allocatable = node.allocatable(*id);
            if allocatable != 0 {
                let requested = node.requested(*id);
                with.push(fraction(requested.saturating_add(*request), allocatable));
                without.push(fraction(requested, allocatable));
            }
        }
        50 + (50 + balance(&with) - balance(&without)) / 2
    }
}

/// What is used of a resource. Between 0 and 1 whatever a node claims to have.
#[allow(clippy::cast_precision_loss)] // upstream computes in f64 as well
fn fraction(part: i64, whole: i64) -> f64 {
    (part as f64 / whole as f64).clamp(0.0, 1.0)
}

/// 100 when all fractions are equal, less the further they are apart (down to 50).
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn balance(fractions: &[f64]) -> i64 {
    let deviation = match fractions {
        [] | [_] => 0.0,
        [a, b] => (a - b).abs() / 2.0,
        many => {
            let n = many.len() as f64;
            let mean = many.iter().sum::<f64>() / n;
            (many.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>() / n).sqrt()
        }
    };
    ((1.0 - deviation) * 100.0) as i64
}

#[cfg(test)]
#[path = "node_resources_balanced_allocation_tests.rs"]
mod tests;
