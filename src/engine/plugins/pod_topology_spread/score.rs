//! Soft constraints.
//!
//! All is worked out before the first node is asked for, constraint by constraint: how many pods each domain has, and what
//! that adds to the score of each node, in the order in which upstream adds (sums of floats depend on it).

use std::sync::Arc;

use super::exact::Registered;
use super::facts::Facts;
use super::{PodTopologySpread, count_key};
use crate::cluster::NodeRow;
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, PreScore, ScorePlugin};
use crate::engine::topology::NONE;
use crate::model::Str;
use crate::model::node::HOSTNAME_LABEL;
use crate::model::topology_spread::WhenUnsatisfiable;

impl ScorePlugin for PodTopologySpread {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let (view, pod, cancel) = (cycle.view, cycle.pod.pod, cycle.cancel);
        let constraints = self.constraints(view, pod, WhenUnsatisfiable::ScheduleAnyway, cancel);
        if constraints.list.is_empty() {
            return PreScore::Skip;
        }
        let (require_all, constraints) = (constraints.require_all, constraints.list);
        // Each host is a domain of its own, whatever its name.
        let is_host = |key: &Str| &**key == HOSTNAME_LABEL;
        let mut facts = Facts::new((view, pod, cancel), &constraints, |key| cycle.topology(key), is_host);
        let scored = |facts: &mut Facts<'_>, node: &NodeRow<'_>| !require_all || facts.has_all_keys(node.ordinal());
        let nodes: Vec<&NodeRow<'_>> = cancel.guard(feasible).filter(|node| scored(&mut facts, node)).collect();
        let mut domains_of_key: Vec<Option<Arc<Chosen>>> = vec![None; facts.keys()];
        let mut sums = vec![0.0; nodes.len()];
        for (i, constraint) in cancel.guard(constraints.iter().enumerate()) {
            let key = facts.key_of(i);
            let counts = count_key(pod, &constraint.selector).map(|key| cycle.counts(&key));
            if is_host(&constraint.key) {
                let soft = Soft::new(constraint.max_skew, nodes.len());
                for (node, sum) in nodes.iter().zip(&mut sums) {
                    if facts.domain(key, node.ordinal()) != NONE {
                        let count = counts.as_ref().map_or(0, |counts| i64::from(counts.get(node.ordinal())));
                        *sum += soft.worth(count);
                    }
                }
                continue;
            }
            let chosen =
                domains_of_key[key].get_or_insert_with(|| Arc::new(Chosen::new(&mut facts, key, &nodes))).clone();
            let mut totals = vec![0_i64; facts.topology(key).len()];
            // The pods of all nodes count, though, also of those that aren't feasible.
            for (ordinal, count) in counts.iter().flat_map(|counts| counts.iter()) {
                if (require_all && !facts.has_all_keys(ordinal)) || !facts.includes(constraint, ordinal) {
                    continue;
                }
                let domain = facts.domain(key, ordinal);
                let domain = if domain == NONE { chosen.absent } else { domain } as usize;
                if chosen.registered.contains(domain)
                    && let Some(total) = totals.get_mut(domain)
                {
                    *total += i64::from(count);
                }
            }
            let soft = Soft::new(constraint.max_skew, chosen.registered.len());
            for (node, sum) in nodes.iter().zip(&mut sums) {
                let domain = facts.domain(key, node.ordinal());
                if domain != NONE {
                    *sum += soft.worth(totals.get(domain as usize).copied().unwrap_or(0));
                }
            }
        }
        let mut scores = vec![None; view.ordinals_end()];
        for (node, sum) in nodes.iter().zip(sums) {
            if let Some(score) = scores.get_mut(node.ordinal().index()) {
                *score = Some(rounded(sum));
            }
        }
        PreScore::Score(Box::new(Score { scores }))
    }
}

/// Only domains of nodes that can be chosen are of interest.
struct Chosen {
    registered: Registered,
    /// An absent label is the domain "".
    absent: u32,
}

impl Chosen {
    fn new(facts: &mut Facts<'_>, key: usize, nodes: &[&NodeRow<'_>]) -> Self {
        let mut registered = Registered::default();
        let mut lacking = false;
        for node in nodes {
            match facts.domain(key, node.ordinal()) {
                NONE => lacking = true,
                domain => registered.insert(domain as usize),
            }
        }
        if !lacking {
            return Self { registered, absent: NONE };
        }
        let absent = facts.topology(key).number(&Str::default());
        registered.insert(absent as usize);
        Self { registered, absent }
    }
}

struct Soft {
    /// Grows with the number of domains, so that constraints over few domains don't drown among others.
    weight: f64,
    skew: f64,
}

#[allow(clippy::cast_precision_loss)]
impl Soft {
    fn new(max_skew: i32, size: usize) -> Self {
        Self { weight: ((size + 2) as f64).ln(), skew: f64::from(max_skew) - 1.0 }
    }

    /// What being in a domain with so many pods adds to the score.
    fn worth(&self, count: i64) -> f64 {
        count as f64 * self.weight + self.skew
    }
}

#[allow(clippy::cast_possible_truncation)]
fn rounded(score: f64) -> i64 {
    score.round() as i64
}

struct Score {
    /// By ordinal; None: the node lacks a key, or wasn't asked about.
    scores: Vec<Option<i64>>,
}

impl Score {
    fn of(&self, node: &NodeRow<'_>) -> Option<i64> {
        self.scores.get(node.ordinal().index()).copied().flatten()
    }
}

impl NodeScore for Score {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        self.of(node).unwrap_or(0)
    }

    fn normalize(&self, feasible: &[NodeRow<'_>], scores: &mut [i64]) {
        let scored = feasible.iter().filter_map(|node| self.of(node));
        let (min, max) = scored.fold((i64::MAX, 0), |(min, max), s| (s.min(min), s.max(max)));
        for (node, score) in feasible.iter().zip(scores) {
            *score = match (self.of(node), max) {
                (None, _) => 0,
                (Some(_), 0) => MAX_SCORE,
                (Some(score), max) => MAX_SCORE * (max + min - score) / max,
            };
        }
    }
}
