//! Preemption: which pods of lower priority would have to leave a node so that a pod that fits nowhere fits there (spec
//! section 7). What upstream's DefaultPreemption plugin does after a failed attempt, as a pure function of view, pod,
//! profile and the decision that refused the pod.
//!
//! - this file: who may preempt, which nodes come into question, and the text when none does
//! - `dry_run`: the victims on one node
//! - `budgets`: which evictions would break a PodDisruptionBudget
//! - `ranking`: the best candidate
//!
//! Promises: every node that comes into question is tried, whatever upstream's limits on candidates; nothing is evicted
//! or nominated here.

mod budgets;
mod dry_run;
mod ranking;

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use dry_run::{Candidate, Victim};

use self::budgets::Budgets;
use self::dry_run::DryRun;
use super::decision::{Decision, Outcome};
use super::filter::{self, nominated_node};
use super::message::histogram;
use super::plugin::Cycle;
use super::status::{Code, Reason, Rejection};
use super::{Cancel, EngineError, IncomingPod, Profile, check_cancelled};
use crate::cluster::{Ordinal, View};
use crate::model::Pod;
use crate::model::pod::PreemptionPolicy;

const NAME: &str = "DefaultPreemption";

/// What preemption can do for a pod that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preemption {
    /// Its profile has no preemption, or PreFilter's refusal ended the attempt before it.
    NotTried,
    NotEligible(NotEligible),
    /// It wouldn't help anywhere.
    NoCandidate {
        /// Nodes that were tried, and why it wouldn't help there.
        tried: Vec<(Ordinal, Rejection)>,
        nodes: usize,
    },
    Proposal(Proposal),
}

/// Why a pod may not preempt. Its nomination, if it has one, stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotEligible {
    #[error("not eligible due to preemptionPolicy=Never.")]
    Never,
    #[error("not eligible due to a terminating pod on the nominated node.")]
    TerminatingOnNominatedNode,
}

/// Nodes where preemption would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// All of them: those without a broken budget first, then by node name.
    pub candidates: Vec<Candidate>,
    /// Positions of those that the ranking can't tell apart.
    pub best: Vec<usize>,
    /// The one of them that the profile's tie order takes.
    pub chosen: usize,
}

impl Proposal {
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen)
    }
}

/// Works out what preemption can do for a pod that `decision` refused. The decision must be of this view, pod and profile.
///
/// # Errors
/// As [`super::decide`].
pub fn preempt(
    view: &View,
    pod: &IncomingPod<'_>,
    profile: &Profile,
    decision: &Decision,
    cancel: &AtomicBool,
) -> Result<Preemption, EngineError> {
    let ended_early = decision.pre_filter.as_ref().is_some_and(|r| r.code == Code::UnschedulableAndUnresolvable);
    // The quirk of spec section 3.5: the resource claims' PostFilter runs first and fails without its PreFilter's state.
    let broken_off = ended_early && profile.asks_for_claims_first();
    if decision.outcome != Outcome::Unschedulable || !profile.preempts() || broken_off {
        return Ok(Preemption::NotTried);
    }
    let cycle = Cycle::new(view, pod, profile, Cancel::new(cancel));
    if let Some(why) = not_eligible(&cycle, decision) {
        return Ok(Preemption::NotEligible(why));
    }
    let mut tried = Vec::new();
    let mut candidates = Vec::new();
    let possible = possible_nodes(view, decision);
    if !possible.is_empty() {
        let prepared = filter::prepare(&cycle)?;
        let mut dry_run = DryRun::new(&cycle, prepared, Budgets::new(view));
        for (done, ordinal) in possible.into_iter().enumerate() {
            let tested = dry_run.on(ordinal)?;
            check_cancelled(cycle.cancel, done)?;
            match tested {
                Ok(candidate) => candidates.push(candidate),
                Err(rejection) => tried.push((ordinal, rejection)),
            }
        }
    }
    if candidates.is_empty() {
        return Ok(Preemption::NoCandidate { tried, nodes: decision.nodes });
    }
    candidates.sort_by_cached_key(|candidate| (candidate.budgets_broken() > 0, candidate.node.clone()));
    let best = ranking::best(&candidates);
    let chosen = ranking::first(view, profile.seed(), &candidates, &best);
    Ok(Preemption::Proposal(Proposal { candidates, best, chosen }))
}

/// Nodes whose refusal is one that fewer pods could lift.
fn possible_nodes(view: &View, decision: &Decision) -> Vec<Ordinal> {
    match &decision.pre_filter {
        Some(rejection) if rejection.code == Code::Unschedulable => view.nodes().map(|row| row.ordinal()).collect(),
        Some(_) => Vec::new(),
        None => {
            let resolvable = decision.rejected.iter().filter(|(_, r)| r.code == Code::Unschedulable);
            resolvable.map(|(ordinal, _)| *ordinal).collect()
        }
    }
}

fn not_eligible(cycle: &Cycle<'_>, decision: &Decision) -> Option<NotEligible> {
    let pod = cycle.pod.pod;
    if pod.spec.preemption_policy == PreemptionPolicy::Never {
        return Some(NotEligible::Never);
    }
    let node = nominated_node(cycle)?;
    // A node that nothing can make fit any more is given up at once.
    let of_node = decision.rejected.iter().find(|(ordinal, _)| *ordinal == node.ordinal()).map(|(_, r)| r);
    let status = decision.pre_filter.as_ref().or(of_node).or(decision.absent.as_ref());
    if status.is_none_or(|r| r.code == Code::UnschedulableAndUnresolvable) {
        return None;
    }
    let leaving = |p: &Pod| p.priority() < pod.priority() && p.meta.deleted.is_some() && preempted_by_scheduler(p);
    node.pods().iter().any(|p| leaving(&p.pod)).then_some(NotEligible::TerminatingOnNominatedNode)
}

/// The first `DisruptionTarget` condition says that the scheduler's preemption is what ends the pod.
fn preempted_by_scheduler(pod: &Pod) -> bool {
    let condition = pod.status.conditions.iter().find(|c| &*c.kind == "DisruptionTarget");
    condition.is_some_and(|c| &*c.status == "True" && &*c.reason == "PreemptionByScheduler")
}

impl Preemption {
    /// What upstream appends to the text of the refusal, without the space before it; None when it appends nothing.
    pub fn tail(&self, profile: &Profile, decision: &Decision) -> Option<String> {
        let text = match self {
            Self::NotTried => {
                let unresolvable =
                    decision.pre_filter.as_ref().is_some_and(|r| r.code == Code::UnschedulableAndUnresolvable);
                return (unresolvable && profile.asks_for_claims_first()).then(|| "not found".to_owned());
            }
            Self::Proposal(_) => return None,
            Self::NotEligible(why) => format!("preemption: {why}"),
            Self::NoCandidate { tried, nodes } => {
                let rest = Rejection::unresolvable(NAME, Reason::PreemptionNotHelpful);
                format!("preemption: 0/{nodes} nodes are available:{}", histogram(tried, *nodes, Some(&rest)))
            }
        };
        Some(match profile.asks_for_claims_first() {
            true => format!("no new claims to deallocate, {text}"),
            false => text,
        })
    }
}

/// Pods by importance: higher priority first, then the older one; one that has not started counts as younger than all.
/// Equals stay in the order they come in.
fn sort_by_importance<T>(list: &mut [T], pod: impl Fn(&T) -> &PodOnNode) {
    list.sort_by_key(|item| {
        let pod = &pod(item).pod;
        (Reverse(pod.priority()), pod.status.started.map_or(i64::MAX, |time| time.0))
    });
}

type PodOnNode = Arc<crate::cluster::PodInfo>;

#[cfg(test)]
mod tests;
