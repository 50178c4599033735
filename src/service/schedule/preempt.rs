//! What preemption can do for a pod that was refused, and the nomination that a client asks for.
//!
//! Worked out on a fork, without the writer: other decisions go on meanwhile. Nothing is evicted; the client does that, and
//! asks again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cluster::View;
use crate::engine::preemption::Candidate;
use crate::engine::{self, Decision, IncomingPod, Preemption, Profile};
use crate::model::{Pod, Str, Time};
use crate::service::{Service, ServiceError};

/// How long a nomination holds unless the request says otherwise. Victims have 30 s to end by default; this covers the
/// longer ones, and still lets go of what nobody comes back for.
pub const DEFAULT_NOMINATION_SECS: i64 = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreemptionAnswer {
    pub result: Preemption,
    /// What upstream appends to the text of the refusal.
    pub tail: Option<String>,
    /// Set when the nomination was recorded: until when it holds.
    pub nominated_until: Option<Time>,
    /// Pods of lower priority that waited for the same node and now wait for nothing.
    pub lost_nominations: Vec<Arc<Pod>>,
    /// Reservations of victims that aren't bound yet, by the pod's uid.
    pub reservations: BTreeMap<Str, Str>,
}

/// A refusal, and the view that it was made on.
pub(super) struct Refused {
    pub(super) decision: Decision,
    pub(super) view: View,
}

pub(super) fn preempt(
    service: &Service,
    refused: &Refused,
    pod: &Pod,
    profile: &Profile,
    cancel: &AtomicBool,
) -> Result<PreemptionAnswer, ServiceError> {
    let Refused { decision, view } = refused;
    let result = engine::preempt(view, &IncomingPod::new(pod), profile, decision, cancel)?;
    let tail = result.tail(profile, decision);
    let mut answer = PreemptionAnswer {
        result,
        tail,
        nominated_until: None,
        lost_nominations: Vec::new(),
        reservations: BTreeMap::new(),
    };
    let unbound: Vec<Str> = match &answer.result {
        Preemption::Proposal(proposal) => {
            let victims = proposal.candidates.iter().flat_map(|candidate| &candidate.victims);
            victims.filter(|v| !v.pod.pod.is_bound()).map(|v| v.pod.pod.meta.uid.clone()).collect()
        }
        _ => Vec::new(),
    };
    if !unbound.is_empty() {
        let writer = service.cluster.writer();
        let held = |uid: &Str| Some((uid.clone(), writer.reservations().of_pod(uid)?.id.clone()));
        answer.reservations = unbound.iter().filter_map(held).collect();
    }
    Ok(answer)
}

impl PreemptionAnswer {
    pub fn chosen(&self) -> Option<&Candidate> {
        match &self.result {
            Preemption::Proposal(proposal) => proposal.chosen(),
            _ => None,
        }
    }

    /// Lets the pod wait for the node that was proposed, until then; pods of lower priority give theirs up. A pod that
    /// nothing can help gives its own up.
    pub(super) fn nominate(&mut self, service: &Service, pod: &Arc<Pod>, expires: Time) {
        let chosen = self.chosen().map(|candidate| candidate.node.clone());
        let mut writer = service.cluster.writer();
        match (chosen, &self.result) {
            (Some(node), _) => {
                // Its node may have gone since the fork, or the pod may have been bound: then there is nothing to wait for.
                if writer.view().ordinal(&node).is_none() {
                    return;
                }
                writer.begin();
                if writer.nominate(pod, node.clone(), expires) {
                    self.nominated_until = Some(expires);
                    let others = writer.view().nominations().on(&node).iter();
                    let lower = others.filter(|other| other.pod.priority() < pod.priority());
                    self.lost_nominations = lower.map(|other| other.pod.clone()).collect();
                    for other in &self.lost_nominations {
                        writer.clear_nomination(&other.meta.uid);
                    }
                }
            }
            (None, Preemption::NoCandidate { .. }) if writer.view().nominations().of(&pod.meta.uid).is_some() => {
                writer.begin();
                writer.clear_nomination(&pod.meta.uid);
            }
            (None, _) => {}
        }
    }
}
