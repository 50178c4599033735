//! What preemption proposes.

use super::decision::within;
use super::{count, object_ref, timestamp};
use crate::api::pb;
use crate::engine::Preemption;
use crate::engine::preemption::Candidate;
use crate::model::Kind;
use crate::service::schedule::PreemptionAnswer;

/// None when there was none to speak of. `budget`: bytes left for the candidates, which are shown if `all` says so.
pub(super) fn preemption(answer: &PreemptionAnswer, all: bool, budget: &mut usize) -> Option<pb::Preemption> {
    let status = match &answer.result {
        Preemption::NotTried => return None,
        Preemption::NotEligible(_) => pb::PreemptionStatus::NotEligible,
        Preemption::NoCandidate { .. } => pb::PreemptionStatus::NoCandidate,
        Preemption::Proposal(_) => pb::PreemptionStatus::Proposed,
    };
    let mut message = pb::Preemption {
        status: status.into(),
        message: answer.tail.clone().unwrap_or_default(),
        nominated_until: answer.nominated_until.map(timestamp),
        lost_nominations: answer.lost_nominations.iter().map(|pod| object_ref(Kind::Pod, &pod.meta)).collect(),
        ..Default::default()
    };
    if let Preemption::Proposal(proposal) = &answer.result {
        message.proposal = proposal.chosen().map(|chosen| candidate(chosen, answer));
        message.candidate_count = count(proposal.candidates.len());
        if all {
            message.candidates = within(budget, proposal.candidates.iter().map(|c| candidate(c, answer))).0;
        }
    }
    Some(message)
}

fn candidate(candidate: &Candidate, answer: &PreemptionAnswer) -> pb::PreemptionCandidate {
    let victims = candidate.victims.iter().map(|victim| {
        let pod = &victim.pod.pod;
        pb::Victim {
            pod: Some(object_ref(Kind::Pod, &pod.meta)),
            priority: pod.priority(),
            violates_pdb: victim.breaks_budget,
            reservation_id: answer.reservations.get(&pod.meta.uid).map(ToString::to_string).unwrap_or_default(),
        }
    });
    pb::PreemptionCandidate {
        node: candidate.node.to_string(),
        victims: victims.collect(),
        pdb_violations: count(candidate.budgets_broken()),
    }
}
