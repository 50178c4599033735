//! The best of several candidates (spec section 7.5): each criterion leaves those that are best by it.

use super::Candidate;
use crate::cluster::View;
use crate::engine::select::tie_order;

/// Positions of the candidates that no criterion tells apart.
pub(super) fn best(candidates: &[Candidate]) -> Vec<usize> {
    let criteria: [fn(&Candidate) -> i64; 5] =
        [broken_budgets, highest_priority, sum_of_priorities, number_of_victims, earliest_start];
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    for criterion in criteria {
        if left.len() <= 1 {
            break;
        }
        let lowest = left.iter().map(|i| criterion(&candidates[*i])).min();
        left.retain(|i| Some(criterion(&candidates[*i])) == lowest);
    }
    left
}

/// The one of equals that comes first in the profile's tie order.
pub(super) fn first(view: &View, seed: u64, candidates: &[Candidate], best: &[usize]) -> usize {
    let key = |i: &&usize| {
        let candidate = &candidates[**i];
        let hash = view.node(candidate.ordinal).map_or(0, |row| row.fixed().name_hash);
        (tie_order(seed, hash), std::cmp::Reverse(candidate.node.clone()))
    };
    best.iter().max_by_key(key).copied().unwrap_or_default()
}

fn broken_budgets(candidate: &Candidate) -> i64 {
    i64::try_from(candidate.budgets_broken()).unwrap_or(i64::MAX)
}

fn highest_priority(candidate: &Candidate) -> i64 {
    candidate.victims.first().map_or(i64::MIN, |victim| i64::from(victim.pod.pod.priority()))
}

/// Shifted so that fewer pods of negative priority count as less.
fn sum_of_priorities(candidate: &Candidate) -> i64 {
    candidate.victims.iter().map(|victim| i64::from(victim.pod.pod.priority()) + (1 << 31)).sum()
}

fn number_of_victims(candidate: &Candidate) -> i64 {
    i64::try_from(candidate.victims.len()).unwrap_or(i64::MAX)
}

/// Turned round, since the latest is best: the earliest start among the victims of the highest priority. One that has not
/// started is later than all.
fn earliest_start(candidate: &Candidate) -> i64 {
    let highest = candidate.victims.iter().map(|victim| victim.pod.pod.priority()).max();
    let victims = candidate.victims.iter().filter(|victim| Some(victim.pod.pod.priority()) == highest);
    let start = victims.map(|victim| victim.pod.pod.status.started.map_or(i64::MAX, |time| time.0)).min();
    !start.unwrap_or(i64::MAX)
}
