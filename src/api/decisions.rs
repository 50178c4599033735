//! A decision's way from its message to its answer, through the lanes.
//!
//! It begins in the short lane, where it is read and, if it is short, decided. A message that is large to read, and what the
//! service says may be long, goes on in the long lane. Both have one deadline, the client's or `--max-decision-time`, after
//! which the engine is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::blocking::{self, CancelOnDrop, guarded};
use super::convert;
use super::error::{Problem, too_long};
use super::lanes::{Lane, Manner, Slot};
use super::pb;
use crate::service::schedule::{Rest, Step};
use crate::service::{Service, ServiceError};
use prost::Message;

/// Bytes of a message up to which reading it is short: a megabyte takes some 10 ms.
const SHORT_MESSAGE: usize = 128 << 10;

/// The service, and the lanes for its decisions.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    pub(super) service: Arc<Service>,
    short: Lane,
    long: Lane,
}

/// How far a decision came in the short lane.
pub(super) enum Begun {
    Done(Box<pb::ScheduleResponse>),
    Long(Long),
}

/// What is left for the long lane.
pub(super) enum Long {
    /// All of it.
    Message(Box<pb::ScheduleRequest>),
    Rest(Rest),
}

impl Decisions {
    pub(super) fn new(service: Arc<Service>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let (short, long) = (service.metrics().lane("short"), service.metrics().lane("long"));
        let long = Lane::long(cores, service.max_decision_time(), long);
        Self { service, short: Lane::short(cores, short), long }
    }

    /// A unary call. Dropping it tells the engine to stop.
    ///
    /// # Errors
    /// The decision's own; RESOURCE_EXHAUSTED if its turn would come too late; DEADLINE_EXCEEDED past the longest time.
    pub(super) async fn decide(
        &self,
        request: pb::ScheduleRequest,
        deadline: Option<Instant>,
    ) -> Result<pb::ScheduleResponse, Problem> {
        let given_up = CancelOnDrop::default();
        let longest = self.service.max_decision_time();
        let end = Instant::now() + longest;
        let deadline = deadline.map_or(end, |deadline| deadline.min(end));
        let decided = async {
            let begun = if is_long_to_read(&request) {
                Begun::Long(Long::Message(Box::new(request)))
            } else {
                let slot = self.short.enter(deadline, Manner::Call).await?;
                let (service, cancel) = (self.service.clone(), given_up.flag());
                blocking::try_run(move || {
                    let _slot = slot;
                    begin(&service, request, &cancel)
                })
                .await?
            };
            match begun {
                Begun::Done(response) => Ok(*response),
                Begun::Long(long) => {
                    let slot = self.long.enter(deadline, Manner::Call).await?;
                    self.finish(long, slot, &given_up).await
                }
            }
        };
        match tokio::time::timeout(longest, decided).await {
            Ok(decided) => decided,
            Err(_) => Err(too_long(longest)),
        }
    }

    /// The long part of a request of a stream, which waits for its turn whatever the others do.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED past the longest time, counted from when its turn came.
    pub(super) async fn finish_of_stream(&self, long: Long) -> Result<pb::ScheduleResponse, Problem> {
        let longest = self.service.max_decision_time();
        let slot = self.long.enter(Instant::now() + longest, Manner::Stream).await?;
        let given_up = CancelOnDrop::default();
        match tokio::time::timeout(longest, self.finish(long, slot, &given_up)).await {
            Ok(decided) => decided,
            Err(_) => Err(too_long(longest)),
        }
    }

    async fn finish(&self, long: Long, slot: Slot, given_up: &CancelOnDrop) -> Result<pb::ScheduleResponse, Problem> {
        let (service, cancel) = (self.service.clone(), given_up.flag());
        blocking::try_run(move || {
            let _slot = slot;
            finish(&service, long, &cancel)
        })
        .await
    }

    /// A slot for a turn of a stream.
    pub(super) async fn slot_of_stream(&self) -> Result<Slot, Problem> {
        self.short.enter(Instant::now() + self.service.max_decision_time(), Manner::Stream).await
    }
}

fn is_long_to_read(request: &pb::ScheduleRequest) -> bool {
    request.encoded_len() > SHORT_MESSAGE
}

fn check(cancel: &AtomicBool) -> Result<(), Problem> {
    // Nobody waits any more: the engine would find out only after it had the writer.
    if cancel.load(Ordering::Relaxed) { Err(ServiceError::Cancelled.into()) } else { Ok(()) }
}

/// All of a decision that is short.
pub(super) fn begin(service: &Service, request: pb::ScheduleRequest, cancel: &AtomicBool) -> Result<Begun, Problem> {
    if is_long_to_read(&request) {
        return Ok(Begun::Long(Long::Message(Box::new(request))));
    }
    guarded(|| {
        check(cancel)?;
        let request = convert::decision::request(request)?;
        Ok(match service.begin_schedule(request, cancel)? {
            Step::Done(answer) => Begun::Done(Box::new(convert::decision::response(*answer))),
            Step::Long(rest) => Begun::Long(Long::Rest(rest)),
        })
    })
}

fn finish(service: &Service, long: Long, cancel: &AtomicBool) -> Result<pb::ScheduleResponse, Problem> {
    guarded(|| {
        check(cancel)?;
        let answer = match long {
            Long::Message(request) => service.schedule(convert::decision::request(*request)?, cancel)?,
            Long::Rest(rest) => service.finish_schedule(rest, cancel)?,
        };
        Ok(convert::decision::response(answer))
    })
}

/// How long a turn of a stream may take before its slot goes to the next; one decision may end after it.
pub(super) const TURN_TIME: Duration = Duration::from_millis(5);
