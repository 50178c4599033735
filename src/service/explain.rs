//! How a decision came about, in as much detail as a caller asks for.

use std::cmp::Reverse;

use crate::cluster::{NodeRow, View};
use crate::engine::select::tie_order;
use crate::engine::{Code, Decision, Outcome, Reason, Rejection};
use crate::model::Str;

/// How much of the way an answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetailLevel {
    /// Counted reasons for a pod that fits nowhere. The cheapest that still says why not.
    #[default]
    Refusal,
    /// The outcome alone.
    None,
    /// Counted reasons, also for a placed pod.
    Summary,
    /// Also the best nodes, this many, with each plugin's score.
    TopK(usize),
    /// Every node: its scores, or why it was refused.
    Full,
}

/// What an answer shows of the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explanation {
    /// Why nodes were excluded, most nodes first.
    pub reasons: Vec<CountedReason>,
    /// Feasible nodes, best first, in the order in which they would be chosen.
    pub scored: Vec<ScoredNode>,
    /// Refused nodes, by name.
    pub refused: Vec<RefusedNode>,
}

/// A feasible node's total and what each plugin adds to it, weight included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredNode {
    pub node: Str,
    pub total: i64,
    pub plugins: Vec<(&'static str, i64)>,
}

/// A node and the first plugin that refused it, with all its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedNode {
    pub node: Str,
    pub plugin: &'static str,
    pub code: Code,
    pub reasons: Vec<String>,
}

/// A reason and how many nodes it excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedReason {
    pub plugin: &'static str,
    pub code: Code,
    pub nodes: usize,
    /// The node that `reason`'s numbers are of: the one with the most room left, else the first by name.
    pub example: Str,
    pub reason: Reason,
}

impl DetailLevel {
    /// Whether the engine has to keep every refusal and score.
    pub fn needs_everything(self) -> bool {
        matches!(self, Self::Summary | Self::TopK(_) | Self::Full)
    }
}

/// What a caller of this level is shown of a decision on this view.
pub fn explain(view: &View, decision: &Decision, level: DetailLevel, seed: u64) -> Explanation {
    let reasons = if level == DetailLevel::None { Vec::new() } else { counted_reasons(view, decision) };
    let mut explanation = Explanation { reasons, ..Explanation::default() };
    match level {
        DetailLevel::None | DetailLevel::Refusal | DetailLevel::Summary => {}
        DetailLevel::TopK(k) => {
            explanation.scored = scored(view, decision, seed);
            explanation.scored.truncate(k);
        }
        DetailLevel::Full => {
            explanation.scored = scored(view, decision, seed);
            explanation.refused = refused(view, decision);
        }
    }
    explanation
}

fn scored(view: &View, decision: &Decision, seed: u64) -> Vec<ScoredNode> {
    let Some(scores) = &decision.scores else { return Vec::new() };
    let rows = decision.feasible.iter().enumerate().filter_map(|(i, ordinal)| Some((i, view.node(*ordinal)?)));
    let mut order: Vec<(usize, NodeRow<'_>)> = rows.collect();
    order.sort_by_key(|(i, row)| {
        (Reverse((scores.totals[*i], tie_order(seed, row.fixed().name_hash))), row.name().clone())
    });
    let node = |(i, row): (usize, NodeRow<'_>)| ScoredNode {
        node: row.name().clone(),
        total: scores.totals[i],
        plugins: scores.plugins.iter().zip(&scores.by_plugin).map(|(plugin, column)| (*plugin, column[i])).collect(),
    };
    order.into_iter().map(node).collect()
}

fn refused(view: &View, decision: &Decision) -> Vec<RefusedNode> {
    let entry = |row: NodeRow<'_>, rejection: &Rejection| RefusedNode {
        node: row.name().clone(),
        plugin: rejection.plugin,
        code: rejection.code,
        reasons: rejection.reasons.iter().map(ToString::to_string).collect(),
    };
    let rejected =
        decision.rejected.iter().filter_map(|(ordinal, rejection)| Some(entry(view.node(*ordinal)?, rejection)));
    let mut nodes: Vec<RefusedNode> = rejected.collect();
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    nodes
}

/// The reasons of a decision, counted by plugin and text.
fn counted_reasons(view: &View, decision: &Decision) -> Vec<CountedReason> {
    let mut counted: Vec<CountedReason> = Vec::new();
    let mut count = |rejection: &Rejection, node: Option<NodeRow<'_>>, nodes: usize| {
        let name = node.map(|n| n.name().clone()).unwrap_or_default();
        for reason in &rejection.reasons {
            let same = |c: &&mut CountedReason| {
                c.plugin == rejection.plugin && c.code == rejection.code && c.reason.same_text(reason)
            };
            match counted.iter_mut().find(same) {
                None => counted.push(CountedReason {
                    plugin: rejection.plugin,
                    code: rejection.code,
                    nodes,
                    example: name.clone(),
                    reason: reason.clone(),
                }),
                Some(known) => {
                    known.nodes += nodes;
                    if is_better_example(reason, &name, known) {
                        known.reason = reason.clone();
                        known.example = name.clone();
                    }
                }
            }
        }
    };
    if let Some(rejection) = &decision.pre_filter {
        count(rejection, None, decision.nodes);
    }
    for (ordinal, rejection) in &decision.rejected {
        count(rejection, view.node(*ordinal), 1);
    }
    if let Some(absent) = &decision.absent
        && decision.nodes > decision.evaluated
    {
        count(absent, None, decision.nodes - decision.evaluated);
    }
    if let Outcome::Gated(rejection) = &decision.outcome {
        count(rejection, None, 0);
    }
    counted.sort_by(|a, b| {
        (b.nodes, a.plugin, a.code, a.reason.to_string()).cmp(&(a.nodes, b.plugin, b.code, b.reason.to_string()))
    });
    counted
}

fn is_better_example(reason: &Reason, node: &Str, known: &CountedReason) -> bool {
    let free = |r: &Reason| match r {
        Reason::InsufficientResource { free, .. } => *free,
        Reason::TooManyPods { pods, allowed } => allowed - pods,
        _ => 0,
    };
    (free(reason), std::cmp::Reverse(node)) > (free(&known.reason), std::cmp::Reverse(&known.example))
}
