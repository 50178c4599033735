//! RemovePodsViolatingNoExecuteTaints: what the taint-eviction controller of Kubernetes does, as a suggestion. No strategy of
//! the descheduler has it.
//!
//! A pod that doesn't tolerate some NoExecute taint of its node goes at once. One that tolerates them all goes when the first
//! tolerated time is over: `tolerationSeconds` of the first toleration that covers a taint, counted from the taint's
//! `timeAdded` (from now if it has none). Without seconds it stays. Each suggestion says when it is due; the
//! most urgent come first, over all nodes, so that limits spare those with the most time left.

use super::{Candidate, Context, Sink, Strategy, StrategyError, Verdict};
use crate::evict::policy::RemovePodsViolatingNoExecuteTaintsArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::PodId;
use crate::evict::taints;
use crate::model::{Effect, Node, Pod, Taint, Time};

impl Strategy for RemovePodsViolatingNoExecuteTaintsArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let mut due: Vec<(Time, PodId, Reason)> = Vec::new();
        for node in context.cancel().guard(context.nodes) {
            let place = &context.scene.node(*node).node;
            if place.taints.iter().all(|t| t.effect != Effect::NoExecute) {
                continue;
            }
            for id in context.cancel().guard(context.selected_active(*node, &self.pods)) {
                if let Some((time, reason)) = self.due(context.pod(id), place, context.scene.now) {
                    due.push((time, id, reason));
                }
            }
        }
        due.sort_by_key(|(time, id, _)| (*time, *id));
        for (time, pod, reason) in context.cancel().guard(due) {
            if !context.admits(pod, sink) {
                continue;
            }
            if sink.consider(Candidate { pod, reason, not_before: Some(time) }) == Verdict::TotalLimit {
                break;
            }
        }
        Ok(())
    }
}

impl RemovePodsViolatingNoExecuteTaintsArgs {
    /// When a pod has to leave a node, and which taint says so; None: never.
    pub(in crate::evict) fn due(&self, pod: &Pod, node: &Node, now: Time) -> Option<(Time, Reason)> {
        let considered = node.taints.iter().filter(|t| t.effect == Effect::NoExecute && self.taints.admits(t));
        first_due(pod, considered, now)
    }
}

fn first_due<'t>(pod: &Pod, taints: impl Iterator<Item = &'t Taint>, now: Time) -> Option<(Time, Reason)> {
    let mut first: Option<(Time, Reason)> = None;
    for taint in taints {
        let added = taint.added.unwrap_or(now);
        let (key, value) = (taint.key.clone(), taint.value.clone());
        match pod.spec.tolerations.iter().find(|t| taints::tolerates(t, taint)) {
            None => return Some((added, Reason::Taint { key, value, effect: taint.effect })),
            Some(toleration) => {
                let Some(seconds) = toleration.seconds.map(|s| s.max(0)) else { continue };
                let time = Time(added.0.saturating_add(seconds.saturating_mul(1_000_000)));
                if first.as_ref().is_none_or(|(earliest, _)| time < *earliest) {
                    first = Some((time, Reason::TolerationEnds { key, value, seconds }));
                }
            }
        }
    }
    first
}
