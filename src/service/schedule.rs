//! Where should this pod run: decide, and hold the room.
//!
//! A request goes through three values, so that the writer is held for what needs it and no longer:
//!
//! ```text
//!  Request --off the writer--> Attempt: pod, sums, profile, candidates, all checked
//!  Attempt --under it--------> Choice, and its commit: the node, the room on it
//!  Choice  --off it again----> Answer: texts, explanation, preemption
//! ```
//!
//! How long the middle takes is known before it begins ([`engine::cost`]). What is short is decided under the writer, on the
//! view as it is. What may be long is decided on a fork, and its choice checked again under the writer before it takes room
//! (`aside`). A dry run always has a fork, and no commit.
//!
//! [`Service::begin_schedule`] does all that is short and says what is left, so that whoever has threads to give can give the
//! rest a lane of its own; [`Service::schedule`] does both.

mod answer;
mod aside;
mod attempt;
mod choose;
mod messages;
mod preempt;
mod work;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use attempt::Attempt;
pub use messages::{Answer, Held, Request, Verdict, VerdictKind};
pub use preempt::{DEFAULT_NOMINATION_SECS, PreemptionAnswer};

use self::choose::Chosen;
use super::recent::RecentDecision;
use super::{Service, ServiceError};
use crate::cluster::Writer;
use crate::cluster::readiness::Ready;
use crate::telemetry::metrics::AttemptResult;

/// How long room is held unless the request says otherwise.
pub const DEFAULT_TTL_SECS: i64 = 60;
/// The bounds of a request's time to live, in seconds.
pub const TTL_SECS: std::ops::RangeInclusive<i64> = 1..=3_600;

/// Whether a time to live is within its bounds; else what to say.
pub(super) fn check_ttl(micros: i64) -> Result<(), String> {
    let bounds = TTL_SECS.start() * 1_000_000..=TTL_SECS.end() * 1_000_000;
    if bounds.contains(&micros) { Ok(()) } else { Err("must be between 1 s and 1 h".to_owned()) }
}

/// How far a decision came without long work.
#[derive(Debug)]
pub enum Step {
    Done(Box<Answer>),
    Long(Rest),
}

/// The long part of a decision. Dropping it gives the decision up; what it committed stays.
#[derive(Debug)]
pub struct Rest(Box<Part>);

#[derive(Debug)]
enum Part {
    /// All of it.
    Decide(Attempt),
    /// The pod was refused; what preemption can do is left to work out.
    Preempt(Attempt, Chosen),
}

impl Service {
    /// Decides one pod and, unless it is a dry run, holds its room. Takes as long as it takes, or until `cancel` is set.
    pub fn schedule(&self, request: Request, cancel: &AtomicBool) -> Result<Answer, ServiceError> {
        match self.begin_schedule(request, cancel)? {
            Step::Done(answer) => Ok(*answer),
            Step::Long(rest) => self.finish_schedule(rest, cancel),
        }
    }

    /// As [`Self::schedule`], but without what may be long.
    pub fn begin_schedule(&self, request: Request, cancel: &AtomicBool) -> Result<Step, ServiceError> {
        let attempt = Attempt::new(self, request)?;
        let chosen = if attempt.is_surely_long() { Ok(None) } else { attempt.choose_now(self, cancel) };
        match chosen {
            Ok(None) => Ok(Step::Long(Rest(Box::new(Part::Decide(attempt))))),
            Ok(Some(chosen)) if chosen.preempts_for_long(&attempt) => {
                Ok(Step::Long(Rest(Box::new(Part::Preempt(attempt, chosen)))))
            }
            Ok(Some(chosen)) => {
                let answer = attempt.answer(self, chosen, cancel);
                self.conclude(&attempt, answer).map(|answer| Step::Done(Box::new(answer)))
            }
            Err(error) => self.conclude(&attempt, Err(error)).map(|answer| Step::Done(Box::new(answer))),
        }
    }

    /// What [`Self::begin_schedule`] left.
    pub fn finish_schedule(&self, rest: Rest, cancel: &AtomicBool) -> Result<Answer, ServiceError> {
        let (attempt, chosen) = match *rest.0 {
            Part::Decide(attempt) => {
                let chosen = attempt.choose_aside(self, cancel);
                (attempt, chosen)
            }
            Part::Preempt(attempt, chosen) => (attempt, Ok(chosen)),
        };
        let answer = chosen.and_then(|chosen| attempt.answer(self, chosen, cancel));
        self.conclude(&attempt, answer)
    }

    /// Counts a decision and remembers it.
    fn conclude(&self, attempt: &Attempt, answer: Result<Answer, ServiceError>) -> Result<Answer, ServiceError> {
        let took = attempt.begun.elapsed();
        self.count(attempt, &answer, took);
        let answer = answer?;
        if !attempt.dry_run {
            let (profile, profiles) = (attempt.profile.clone(), attempt.profiles.clone());
            self.note_for_retries(&answer, profile, profiles, attempt.candidates.clone());
        }
        let meta = &answer.pod.meta;
        self.recent.push(RecentDecision {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            node: answer.verdict.node().cloned(),
            outcome: answer.verdict.kind(),
            message: answer.message.clone(),
            revision: answer.view.revision,
            profile: answer.profile.clone(),
            dry_run: attempt.dry_run,
            at: answer.view.now,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
        Ok(answer)
    }

    /// Counts a decision that was tried. What was refused before it came to that is no attempt, as in kube-scheduler.
    fn count(&self, attempt: &Attempt, decided: &Result<Answer, ServiceError>, took: Duration) {
        let result = match decided {
            Ok(answer) => match answer.verdict.kind() {
                VerdictKind::Placed => AttemptResult::Scheduled,
                VerdictKind::Unschedulable | VerdictKind::Gated => AttemptResult::Unschedulable,
                VerdictKind::Unsupported => AttemptResult::Error,
                VerdictKind::AlreadyBound => return,
            },
            Err(ServiceError::Cancelled | ServiceError::Contended { .. } | ServiceError::Internal(_)) => {
                AttemptResult::Error
            }
            Err(_) => return,
        };
        if attempt.dry_run {
            self.metrics.dry_run(result, attempt.profile.name());
        } else {
            self.metrics.attempt(result, attempt.profile.name(), took);
        }
    }

    /// Whether the request's idea of the cache agrees with it, and the cache with the cluster.
    pub(super) fn check_basis(&self, writer: &Writer, incarnation: &str, min: Option<u64>) -> Result<(), ServiceError> {
        if !incarnation.is_empty() && *incarnation != **writer.incarnation() {
            return Err(ServiceError::OtherIncarnation {
                named: incarnation.to_owned(),
                current: writer.incarnation().clone(),
            });
        }
        if let Ready::Waiting { kinds } = writer.readiness().check(writer.view().node_count()) {
            return Err(ServiceError::NotReady(kinds));
        }
        let current = writer.view().revision();
        match min {
            Some(wanted) if wanted > current => Err(ServiceError::RevisionNotReached { wanted, current }),
            _ => Ok(()),
        }
    }

    /// Gives a reservation back: whether it lived, and the revision at which its room is free.
    pub fn release(&self, id: &str) -> (bool, u64) {
        let mut writer = self.cluster.writer();
        if writer.reservations().with_id(id).is_none() {
            return (false, writer.view().revision());
        }
        // First, so that whoever asks for the changes since an earlier revision is told of this one.
        writer.begin();
        (writer.release(id), writer.view().revision())
    }
}

#[cfg(test)]
mod tests;
