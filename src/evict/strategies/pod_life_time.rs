//! PodLifeTime: pods that are too old, or in a state that they shouldn't stay in (spec section 17). The oldest go first, over
//! all nodes.

use super::{Candidate, Context, Sink, Strategy, StrategyError, Verdict, is_selected};
use crate::evict::policy::{PodConditionFilter, PodLifeTimeArgs};
use crate::evict::reason::Reason;
use crate::evict::snapshot::PodId;
use crate::model::pod_status::{ContainerState, ContainerStatus, PodCondition};
use crate::model::{Pod, Time};

impl Strategy for PodLifeTimeArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let now = context.scene.now;
        let on_nodes = context.nodes.iter().flat_map(|node| &context.scene.node(*node).pods).copied();
        let mut due: Vec<PodId> = context
            .cancel()
            .guard(on_nodes)
            .filter(|id| {
                let pod = context.pod(*id);
                is_selected(pod, &self.pods) && self.is_due(pod, now)
            })
            .collect();
        due.sort_by_key(|id| (context.pod(*id).meta.created, *id));
        for id in context.cancel().guard(due) {
            if !context.admits(id, sink) {
                continue;
            }
            let age = context.pod(id).meta.created.map(|created| now.secs_since(created));
            // Other than elsewhere, a full node is no reason to skip the rest of it: the pods of all nodes are mixed.
            if sink.consider(Candidate::new(id, Reason::LifeTime { age })) == Verdict::TotalLimit {
                break;
            }
        }
        Ok(())
    }
}

impl PodLifeTimeArgs {
    /// Every category that is set must hold; within a category one entry is enough.
    pub(in crate::evict) fn is_due(&self, pod: &Pod, now: Time) -> bool {
        self.max_seconds.is_none_or(|max| is_older(pod, now, max))
            && (self.states.is_empty() || self.is_in_state(pod))
            && (self.conditions.is_empty()
                || pod.status.conditions.iter().any(|c| self.conditions.iter().any(|filter| holds(filter, c, now))))
            && (self.exit_codes.is_empty() || self.has_exit_code(pod))
            && self.owner_kinds.admits(pod.meta.owners.iter().map(|owner| &*owner.kind))
    }

    fn is_in_state(&self, pod: &Pod) -> bool {
        let listed = |state: &str| self.states.iter().any(|s| &**s == state);
        let ephemeral = if self.including_ephemeral_containers { &pod.status.ephemeral_containers[..] } else { &[] };
        listed(pod.status.phase.as_str())
            || listed(&pod.status.reason)
            || self.statuses(pod).chain(ephemeral).any(|status| match &status.state {
                ContainerState::Waiting { reason } | ContainerState::Terminated { reason, .. } => listed(reason),
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

/// Strictly older, in whole seconds; a pod from the future isn't.
fn is_older(pod: &Pod, now: Time, max: u64) -> bool {
    let age = pod.meta.created.map_or(i64::MAX, |created| now.secs_since(created));
    u64::try_from(age).is_ok_and(|age| age > max)
}

/// All fields that the filter sets.
fn holds(filter: &PodConditionFilter, condition: &PodCondition, now: Time) -> bool {
    let same = |wanted: &Option<crate::model::Str>, found: &str| wanted.as_ref().is_none_or(|w| &**w == found);
    same(&filter.kind, &condition.kind)
        && same(&filter.status, &condition.status)
        && same(&filter.reason, &condition.reason)
        && filter.min_seconds_since_last_transition.is_none_or(|min| {
            let elapsed = condition.last_transition.filter(|at| *at <= now).map(|at| now.secs_since(at));
            elapsed.and_then(|secs| u64::try_from(secs).ok()).is_some_and(|secs| secs >= min)
        })
}
