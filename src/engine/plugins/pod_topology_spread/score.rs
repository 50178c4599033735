//! Soft constraints.

use rustc_hash::FxHashMap;

use super::{Constraint, Counter, PodTopologySpread, has_all_keys, includes};
use crate::cluster::{NodeRow, Ordinal};
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, PreScore, ScorePlugin};
use crate::model::Str;
use crate::model::node::HOSTNAME_LABEL;
use crate::model::topology_spread::WhenUnsatisfiable;

impl ScorePlugin for PodTopologySpread {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let (view, pod) = (cycle.view, cycle.pod.pod);
        let constraints = self.constraints(view, pod, WhenUnsatisfiable::ScheduleAnyway, cycle.cancel);
        if constraints.list.is_empty() {
            return PreScore::Skip;
        }
        let (require_all, constraints) = (constraints.require_all, constraints.list);
        let scored = |node: &NodeRow<'_>| !require_all || has_all_keys(&constraints, node.node());
        let ignored: Vec<Ordinal> = cycle.cancel.guard(feasible).filter(|n| !scored(n)).map(NodeRow::ordinal).collect();

        let mut soft: Vec<Soft<'a>> = Vec::with_capacity(constraints.len());
        for constraint in cycle.cancel.guard(&constraints) {
            let counter = Counter::new(view, pod, constraint);
            if &*constraint.key == HOSTNAME_LABEL {
                let size = feasible.len() - ignored.len();
                soft.push(Soft::new(constraint, size, Domains::Hosts(counter)));
                continue;
            }
            // Only domains of nodes that can be chosen are of interest; an absent label is the domain "".
            let mut domains: FxHashMap<Str, i64> = FxHashMap::default();
            for node in cycle.cancel.guard(feasible).filter(|n| scored(n)) {
                let value = node.labels().get(&constraint.key);
                if !domains.contains_key(value.map_or("", |v| v)) {
                    domains.insert(value.cloned().unwrap_or_default(), 0);
                }
            }
            // The pods of all nodes count, though, also of those that aren't feasible.
            let nodes = cycle.cancel.guard(counter.nodes());
            for (node, count) in nodes.filter(|(n, _)| scored(n) && includes(constraint, n.node(), pod, cycle.cancel)) {
                let value = node.labels().get(&constraint.key).map_or("", |v| v);
                if let Some(total) = domains.get_mut(value) {
                    *total += count;
                }
            }
            soft.push(Soft::new(constraint, domains.len(), Domains::Values(domains)));
        }
        PreScore::Score(Box::new(Score { soft, ignored }))
    }
}

enum Domains<'a> {
    /// Each node is its own domain.
    Hosts(Counter<'a>),
    /// Matching pods by label value.
    Values(FxHashMap<Str, i64>),
}

struct Soft<'a> {
    key: Str,
    max_skew: i32,
    /// Grows with the number of domains, so that constraints over few domains don't drown among others.
    weight: f64,
    domains: Domains<'a>,
}

impl<'a> Soft<'a> {
    #[allow(clippy::cast_precision_loss)]
    fn new(constraint: &Constraint, size: usize, domains: Domains<'a>) -> Self {
        let weight = ((size + 2) as f64).ln();
        Self { key: constraint.key.clone(), max_skew: constraint.max_skew, weight, domains }
    }
}

struct Score<'a> {
    soft: Vec<Soft<'a>>,
    /// Feasible nodes that lack a key, sorted by ordinal.
    ignored: Vec<Ordinal>,
}

impl Score<'_> {
    fn ignores(&self, node: &NodeRow<'_>) -> bool {
        !self.ignored.is_empty() && self.ignored.contains(&node.ordinal())
    }
}

impl NodeScore for Score<'_> {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        if self.ignores(node) {
            return 0;
        }
        let mut score = 0.0;
        for soft in &self.soft {
            let Some(value) = node.labels().get(&soft.key) else { continue };
            let count = match &soft.domains {
                Domains::Hosts(counter) => counter.count(node),
                Domains::Values(counts) => counts.get(value).copied().unwrap_or(0),
            };
            score += count as f64 * soft.weight + f64::from(soft.max_skew - 1);
        }
        score.round() as i64
    }

    fn normalize(&self, feasible: &[NodeRow<'_>], scores: &mut [i64]) {
        let scored = feasible.iter().zip(scores.iter()).filter(|(node, _)| !self.ignores(node)).map(|(_, s)| *s);
        let (min, max) = scored.fold((i64::MAX, 0), |(min, max), s| (s.min(min), s.max(max)));
        for (node, score) in feasible.iter().zip(scores) {
            *score = match (self.ignores(node), max) {
                (true, _) => 0,
                (false, 0) => MAX_SCORE,
                (false, max) => MAX_SCORE * (max + min - *score) / max,
            };
        }
    }
}
