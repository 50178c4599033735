//! RemovePodsHavingTooManyRestarts: pods whose containers restarted too often together (spec section 16). On each node the
//! ones that restarted most go first.

use std::cmp::Reverse;

use super::{Candidate, Context, Sink, Strategy, StrategyError, is_selected, propose_by_node};
use crate::evict::policy::RemovePodsHavingTooManyRestartsArgs;
use crate::evict::reason::Reason;
use crate::model::Pod;
use crate::model::pod_status::{ContainerState, ContainerStatus};

impl Strategy for RemovePodsHavingTooManyRestartsArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let threshold = i64::from(self.restart_threshold);
        propose_by_node(context, sink, |node| {
            let pods = context.scene.node(node).pods.iter().copied();
            let mut due: Vec<_> = pods
                .filter(|id| {
                    let pod = context.pod(*id);
                    is_selected(pod, &self.pods) && self.is_due(pod)
                })
                .collect();
            due.sort_by_key(|id| (Reverse(self.restarts(context.pod(*id))), *id));
            let candidate =
                |id| Candidate::new(id, Reason::Restarts { restarts: self.restarts(context.pod(id)), threshold });
            due.into_iter().map(candidate).collect()
        });
        Ok(())
    }
}

impl RemovePodsHavingTooManyRestartsArgs {
    /// Without the flag sidecars don't count either: they are init containers.
    fn statuses<'p>(&self, pod: &'p Pod) -> impl Iterator<Item = &'p ContainerStatus> {
        let init = if self.including_init_containers { &pod.status.init_containers[..] } else { &[] };
        pod.status.containers.iter().chain(init)
    }

    pub(in crate::evict) fn is_due(&self, pod: &Pod) -> bool {
        self.restarts(pod) >= i64::from(self.restart_threshold) && (self.states.is_empty() || self.is_in_state(pod))
    }

    fn restarts(&self, pod: &Pod) -> i64 {
        self.statuses(pod).map(|status| i64::from(status.restart_count)).sum()
    }

    fn is_in_state(&self, pod: &Pod) -> bool {
        let listed = |state: &str| self.states.iter().any(|s| s.as_str() == state);
        listed(pod.status.phase.as_str())
            || self.statuses(pod).any(|status| match &status.state {
                ContainerState::Waiting { reason } => listed(reason),
                _ => false,
            })
    }
}
