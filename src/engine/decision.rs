//! What came out, and why.

use super::status::Rejection;
use super::unsupported::Feature;
use crate::cluster::{Ordinal, VolumeBinding};
use crate::model::Str;

/// How much of the way is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The choice; for a pod that fits nowhere every node's refusal.
    #[default]
    Choice,
    /// Also every refusal and every plugin's score of each feasible node, even of a single one (which upstream leaves
    /// unscored, and so does [`Detail::Choice`]).
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// `score` is the weighted total; 0 for a single feasible node, which isn't scored.
    Placed { node: Str, ordinal: Ordinal, score: i64 },
    /// Fits nowhere.
    Unschedulable,
    /// Has scheduling gates.
    Gated(Rejection),
    /// The cluster has no node.
    NoNodes,
    /// Needs something that Berth can't judge.
    Unsupported(Vec<Feature>),
}

/// Weighted scores by plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scores {
    pub plugins: Vec<&'static str>,
    /// `by_plugin[p][i]` is what plugin p gives the i-th feasible node, weight included.
    pub by_plugin: Vec<Vec<i64>>,
    pub totals: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub outcome: Outcome,
    /// How many nodes could have been chosen from: all of the view, or the candidates.
    pub nodes: usize,
    /// How many nodes went through the filters.
    pub evaluated: usize,
    /// Nodes that pass every filter.
    pub feasible: Vec<Ordinal>,
    /// Nodes that a filter refused, with the first that did.
    pub rejected: Vec<(Ordinal, Rejection)>,
    /// A refusal of the whole pod before single nodes were looked at.
    pub pre_filter: Option<Rejection>,
    /// What is said of nodes that no filter saw, since PreFilter narrowed the list.
    pub absent: Option<Rejection>,
    pub scores: Option<Scores>,
    /// For a placed pod: how its unbound claims get their volumes there.
    pub bindings: Vec<VolumeBinding>,
}

impl Decision {
    pub(super) fn without_nodes(outcome: Outcome) -> Self {
        Self {
            outcome,
            nodes: 0,
            evaluated: 0,
            feasible: Vec::new(),
            rejected: Vec::new(),
            pre_filter: None,
            absent: None,
            scores: None,
            bindings: Vec::new(),
        }
    }

    pub fn node(&self) -> Option<&Str> {
        match &self.outcome {
            Outcome::Placed { node, .. } => Some(node),
            _ => None,
        }
    }

    /// For a pod that fits nowhere: the plugins that refused a node or the whole pod, each once.
    pub fn refusing_plugins(&self) -> Vec<&'static str> {
        let gate = match &self.outcome {
            Outcome::Gated(rejection) => Some(rejection),
            Outcome::Unschedulable => None,
            Outcome::Placed { .. } | Outcome::NoNodes | Outcome::Unsupported(_) => return Vec::new(),
        };
        let whole = gate.into_iter().chain(&self.pre_filter).chain(&self.absent);
        let mut plugins: Vec<&'static str> = Vec::new();
        for rejection in whole.chain(self.rejected.iter().map(|(_, rejection)| rejection)) {
            if !plugins.contains(&rejection.plugin) {
                plugins.push(rejection.plugin);
            }
        }
        plugins
    }

    /// The feasible nodes with the highest total; all of them when nothing was scored.
    pub fn best(&self) -> Vec<Ordinal> {
        let Some(scores) = &self.scores else { return self.feasible.clone() };
        let best = scores.totals.iter().max();
        let pairs = self.feasible.iter().zip(&scores.totals);
        pairs.filter(|(_, total)| Some(*total) == best).map(|(ordinal, _)| *ordinal).collect()
    }
}
