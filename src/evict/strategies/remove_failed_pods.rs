//! RemoveFailedPods: pods in phase Failed (spec section 18).

use super::{Candidate, Context, Sink, Strategy, StrategyError, has_owner_kind, is_selected, propose_by_node};
use crate::evict::policy::RemoveFailedPodsArgs;
use crate::evict::reason::Reason;
use crate::model::pod_status::{ContainerState, ContainerStatus, Phase};
use crate::model::{Pod, Str, Time};

impl Strategy for RemoveFailedPodsArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let now = context.scene.now;
        propose_by_node(context, sink, |node| {
            let pods = context.scene.node(node).pods.iter().copied();
            let failed = pods.filter(|id| {
                let pod = context.pod(*id);
                is_selected(pod, &self.pods) && self.is_due(pod, now)
            });
            failed.map(|id| Candidate::new(id, Reason::Failed { reason: why(context.pod(id)) })).collect()
        });
        Ok(())
    }
}

impl RemoveFailedPodsArgs {
    pub(in crate::evict) fn is_due(&self, pod: &Pod, now: Time) -> bool {
        pod.status.phase == Phase::Failed
            && is_old_enough(pod, now, self.min_pod_lifetime_seconds)
            && !has_owner_kind(pod, &self.exclude_owner_kinds)
            && (self.reasons.is_empty() || self.has_reason(pod))
            && (self.exit_codes.is_empty() || self.has_exit_code(pod))
    }

    fn has_reason(&self, pod: &Pod) -> bool {
        self.reasons.contains(&pod.status.reason)
            || self.statuses(pod).any(|status| match &status.state {
                ContainerState::Waiting { reason } | ContainerState::Terminated { reason, .. } => {
                    self.reasons.contains(reason)
                }
                ContainerState::Unset | ContainerState::Running { .. } => false,
            })
    }

    fn has_exit_code(&self, pod: &Pod) -> bool {
        self.statuses(pod).any(|status| match status.state {
            ContainerState::Terminated { exit_code, .. } => self.exit_codes.contains(&exit_code),
            _ => false,
        })
    }

    fn statuses<'p>(&self, pod: &'p Pod) -> impl Iterator<Item = &'p ContainerStatus> {
        let init = if self.including_init_containers { &pod.status.init_containers[..] } else { &[] };
        pod.status.containers.iter().chain(init)
    }
}

/// Inclusive, other than for PodLifeTime. A pod from the future isn't old enough.
fn is_old_enough(pod: &Pod, now: Time, min: u64) -> bool {
    let age = pod.meta.created.map_or(i64::MAX, |created| now.secs_since(created));
    pod.meta.created.is_none_or(|created| created <= now) && u64::try_from(age).is_ok_and(|age| age >= min)
}

/// The pod's own reason, else the first of a container.
fn why(pod: &Pod) -> Str {
    if !pod.status.reason.is_empty() {
        return pod.status.reason.clone();
    }
    let reasons = pod.status.containers.iter().filter_map(|status| match &status.state {
        ContainerState::Waiting { reason } | ContainerState::Terminated { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_default()
}
