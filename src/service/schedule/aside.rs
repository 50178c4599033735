//! Decisions that may be long: made on a fork, checked again under the writer.
//!
//! The cluster may change while one is made. So before it takes room its node is judged once more, on the view as it is by
//! then; if the pod doesn't fit there any more, it is decided anew, [`ROUNDS`] times at most. A refusal needs no second look:
//! it holds for the view that the answer names.

use std::sync::atomic::{AtomicBool, Ordering};

use super::attempt::Attempt;
use super::choose::{Chosen, Decider, Ground};
use crate::engine::Recheck;
use crate::service::{Service, ServiceError};

/// How often a pod is decided on while others take its nodes from it. Each round has the writer's view of its beginning, so
/// that a second loss in a row takes another caller who wanted the same node within one decision.
const ROUNDS: usize = 4;

impl Attempt {
    pub(super) fn choose_aside(&self, service: &Service, cancel: &AtomicBool) -> Result<Chosen, ServiceError> {
        let decider = Decider::new(service, self, cancel);
        for _ in 0..ROUNDS {
            if cancel.load(Ordering::Relaxed) {
                return Err(ServiceError::Cancelled);
            }
            let writer = service.cluster.writer();
            service.check_basis(&writer, &self.incarnation, self.min_revision)?;
            if let Some(bound) = self.already_bound(service, &writer)? {
                return Ok(bound);
            }
            let ground = Ground::of(service, &writer, self);
            let (mut fork, info) = (writer.view().clone(), service.view_info(&writer));
            let revision = fork.revision();
            drop(writer);
            ground.clear(self, &mut fork);
            let mut choice = decider.choose(&fork, &ground)?;
            if self.dry_run {
                return Ok(self.without_commit(choice, &ground, fork, info));
            }
            let seen = choice.seen(&fork, self);
            // Before the writer is taken again, since it costs about what the filters cost.
            let own_view = choice.own_view.take();
            let on = own_view.as_ref().unwrap_or(&fork);
            let recheck = Recheck::prepare(on, &decider.incoming, &self.profile, cancel)?;
            let mut writer = service.cluster.writer();
            if let Some(bound) = self.already_bound(service, &writer)? {
                return Ok(bound);
            }
            let unchanged = writer.view().revision() == revision;
            if !unchanged && !Ground::of(service, &writer, self).is_still(&ground) {
                continue;
            }
            if unchanged || self.still_holds(&decider, &mut choice, &ground, recheck, &writer)? {
                return self.commit(service, &mut writer, ground, choice, seen);
            }
        }
        Err(ServiceError::Contended { rounds: ROUNDS })
    }
}
