//! ScheduleStream: requests and answers in order.
//!
//! A stream has two tasks. One reads requests, each of which takes its place in the queue of replies before it is read: a
//! client that doesn't read its answers isn't read from either. The other takes what has come, up to a batch, to a blocking
//! thread, which puts each answer into its place as soon as it is there. So requests are decoded while others are decided,
//! and the way between threads is paid once a batch; a stream without work holds no thread. A request that may take long is
//! decided in the long lane, while the rest of its stream waits for it and others don't.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::mpsc;
use tonic::{Request, Status, Streaming};

use super::blocking::{self, CancelOnDrop};
use super::call;
use super::decisions::{Begun, Decisions, Long, TURN_TIME, begin};
use super::error::{Problem, means_too_large, shutting_down, too_large};
use super::feed::stopped;
use super::pb;
use super::pb::schedule_stream_response::Result as StreamResult;
use super::replies::Replies;
use super::server::{MAX_REQUEST_BYTES, Stop};
use crate::service::{Service, ServiceError};

/// Requests of a stream that have no answer yet, or whose answer the client hasn't taken. Enough to keep both tasks and the
/// network busy; an answer has some 500 bytes.
const WINDOW: usize = 1_024;
/// Requests that one turn on a blocking thread decides, so that streams and unary calls take turns.
const TURN: usize = 32;

/// Answers as long as requests come.
pub(super) fn open(
    decisions: Decisions,
    request: Request<Streaming<pb::ScheduleStreamRequest>>,
    stop: Stop,
) -> Replies<pb::ScheduleStreamResponse> {
    let given_up = CancelOnDrop::default();
    let cancel = given_up.flag();
    let (replies, to_client) = mpsc::channel(WINDOW);
    let (to_decide, queue) = mpsc::unbounded_channel();
    let response = Replies::new(&request, to_client, Some(given_up));
    call::spawn(read(request.into_inner(), replies.clone(), to_decide, stop));
    call::spawn(answer(decisions, queue, replies, cancel));
    response
}

type Place = mpsc::OwnedPermit<Result<pb::ScheduleStreamResponse, Status>>;

enum Queued {
    Request(Box<pb::ScheduleStreamRequest>, Place),
    /// How the stream ends, unless well.
    End(Status, Place),
}

/// Reads requests until there are no more, or none that anybody waits for.
async fn read(
    mut requests: Streaming<pb::ScheduleStreamRequest>,
    replies: mpsc::Sender<Result<pb::ScheduleStreamResponse, Status>>,
    queue: mpsc::UnboundedSender<Queued>,
    mut stop: Stop,
) {
    while let Ok(place) = replies.clone().reserve_owned().await {
        let queued = tokio::select! {
            request = requests.message() => match request {
                Ok(Some(request)) => Queued::Request(Box::new(request), place),
                Ok(None) => return,
                Err(status) if means_too_large(&status) => Queued::End(too_large(MAX_REQUEST_BYTES), place),
                Err(status) => Queued::End(status, place),
            },
            () = stopped(&mut stop) => Queued::End(shutting_down(), place),
            () = replies.closed() => return,
        };
        let is_end = matches!(queued, Queued::End(..));
        if queue.send(queued).is_err() || is_end {
            return;
        }
    }
}

/// A request whose decision may take long.
struct Pending {
    id: String,
    long: Long,
    place: Place,
}

/// Decides what was read, in order.
async fn answer(
    decisions: Decisions,
    mut queue: mpsc::UnboundedReceiver<Queued>,
    replies: mpsc::Sender<Result<pb::ScheduleStreamResponse, Status>>,
    cancel: Arc<AtomicBool>,
) {
    let mut waiting = VecDeque::with_capacity(TURN);
    loop {
        if waiting.is_empty() {
            let mut turn = Vec::with_capacity(TURN);
            if queue.recv_many(&mut turn, TURN).await == 0 {
                return;
            }
            waiting.extend(turn);
        }
        let Ok(slot) = decisions.slot_of_stream().await else { return };
        let (service, cancel) = (decisions.service.clone(), cancel.clone());
        let turn = blocking::run(move || {
            let _slot = slot;
            let pending = take_turn(&service, &mut waiting, &cancel);
            Ok((pending, waiting))
        });
        let Ok((pending, left)) = turn.await else { return };
        waiting = left;
        if let Some(Pending { id, long, place }) = pending {
            // Dropping the decision tells the engine that nobody waits any more.
            let decided = tokio::select! {
                decided = decisions.finish_of_stream(long) => decided,
                () = replies.closed() => return,
            };
            place.send(Ok(response(id, decided)));
        }
    }
}

/// Answers requests until there is one that may take long, or others are to have the slot.
fn take_turn(service: &Service, waiting: &mut VecDeque<Queued>, cancel: &AtomicBool) -> Option<Pending> {
    let begun = Instant::now();
    while let Some(queued) = waiting.pop_front() {
        let (request, place) = match queued {
            Queued::Request(request, place) => (*request, place),
            Queued::End(status, place) => {
                place.send(Err(status));
                continue;
            }
        };
        let id = request.id;
        let decided = match request.request {
            Some(request) => begin(service, request, cancel),
            None => Err(ServiceError::invalid("request", "Required value").into()),
        };
        match decided {
            Ok(Begun::Done(answer)) => {
                place.send(Ok(response(id, Ok(*answer))));
            }
            Ok(Begun::Long(long)) => return Some(Pending { id, long, place }),
            Err(problem) => {
                place.send(Ok(response(id, Err(problem))));
            }
        }
        if begun.elapsed() > TURN_TIME {
            break;
        }
    }
    None
}

fn response(id: String, decided: Result<pb::ScheduleResponse, Problem>) -> pb::ScheduleStreamResponse {
    let result = match decided {
        Ok(response) => StreamResult::Response(response),
        Err(problem) => StreamResult::Error(problem.into_answer()),
    };
    pb::ScheduleStreamResponse { id, result: Some(result) }
}
