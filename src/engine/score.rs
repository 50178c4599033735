//! The score phases and the choice.

use super::decision::{Decision, Detail, Outcome, Scores};
use super::filter::Filtered;
use super::plugin::{Cycle, MAX_SCORE, PreScore};
use super::select::tie_order;
use super::{EngineError, check_cancelled};
use crate::cluster::NodeRow;

/// Scores the feasible nodes and picks the best.
pub(super) fn select<'a>(cycle: &Cycle<'a>, filtered: Filtered<'a>, detail: Detail) -> Result<Decision, EngineError> {
    let feasible = filtered.feasible;
    // Upstream takes a single feasible node without scoring it.
    let scores = match feasible.len() {
        0 => None,
        1 if detail == Detail::Choice => None,
        _ => Some(score(cycle, &feasible)?),
    };
    let chosen = match filtered.nominated {
        // Taken unseen, as upstream: the others were not compared with it.
        Some(node) => {
            let at = feasible.iter().position(|row| row.ordinal() == node.ordinal());
            Some((node, at.zip(scores.as_ref()).map_or(0, |(i, s)| s.totals[i])))
        }
        None => choose(cycle.profile.seed(), &feasible, scores.as_ref()),
    };
    let bindings = chosen.iter().flat_map(|(row, _)| filtered.filters.iter().flat_map(|f| f.bindings(row))).collect();
    check_cancelled(cycle.cancel, filtered.evaluated)?;
    let outcome = match chosen {
        None => Outcome::Unschedulable,
        Some((row, score)) => Outcome::Placed { node: row.name().clone(), ordinal: row.ordinal(), score },
    };
    let keep = detail == Detail::Full || feasible.is_empty();
    Ok(Decision {
        outcome,
        nodes: filtered.nodes,
        evaluated: filtered.evaluated,
        feasible: feasible.iter().map(NodeRow::ordinal).collect(),
        rejected: if keep { filtered.rejected } else { Vec::new() },
        pre_filter: filtered.pre_filter,
        absent: filtered.absent,
        scores: scores.filter(|_| detail == Detail::Full),
        bindings,
    })
}

fn score<'a>(cycle: &Cycle<'a>, feasible: &[NodeRow<'a>]) -> Result<Scores, EngineError> {
    let mut scores = Scores { totals: vec![0; feasible.len()], ..Scores::default() };
    let mut any = false;
    for (plugin, weight) in cycle.profile.scorers() {
        let Some(scorer) = plugin.score() else { continue };
        any = true;
        let said = scorer.prepare(cycle, feasible);
        check_cancelled(cycle.cancel, feasible.len())?;
        let PreScore::Score(scorer) = said else { continue };
        let mut column = Vec::with_capacity(feasible.len());
        for (i, node) in feasible.iter().enumerate() {
            check_cancelled(cycle.cancel, i)?;
            column.push(scorer.score(node));
        }
        scorer.normalize(feasible, &mut column);
        check_cancelled(cycle.cancel, feasible.len())?;
        for (value, total) in column.iter_mut().zip(&mut scores.totals) {
            if !(0..=MAX_SCORE).contains(value) {
                return Err(EngineError::InvalidScore { plugin: plugin.name(), score: *value });
            }
            *value *= weight;
            *total += *value;
        }
        scores.plugins.push(plugin.name());
        scores.by_plugin.push(column);
    }
    if !any {
        // Without any scorer every node scores 1.
        scores.totals.fill(1);
    }
    Ok(scores)
}

fn choose<'a>(seed: u64, feasible: &[NodeRow<'a>], scores: Option<&Scores>) -> Option<(NodeRow<'a>, i64)> {
    let total = |i: usize| scores.map_or(0, |s| s.totals[i]);
    let key = |i: usize, row: &NodeRow<'a>| {
        // The name decides only if two names have one hash.
        (total(i), tie_order(seed, row.fixed().name_hash), std::cmp::Reverse(row.name()))
    };
    let (i, row) = feasible.iter().enumerate().max_by(|(i, a), (j, b)| key(*i, a).cmp(&key(*j, b)))?;
    Some((*row, total(i)))
}
