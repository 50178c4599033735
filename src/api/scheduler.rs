//! SchedulerService: decisions, one by one or pipelined.
//!
//! A stream has two tasks. One reads requests, each of which takes its place in the queue of replies before it is read: a
//! client that doesn't read its answers isn't read from either. The other takes what has come, up to a batch, to a blocking
//! thread, which puts each answer into its place as soon as it is there. So requests are decoded while others are decided,
//! and the way between threads is paid once a batch; a stream without work holds no thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::blocking::{self, CancelOnDrop, Decisions, guarded};
use super::call;
use super::convert;
use super::error::{Problem, means_too_large, shutting_down, too_large};
use super::feed::stopped;
use super::pb;
use super::pb::schedule_stream_response::Result as StreamResult;
use super::pb::scheduler_service_server::SchedulerService;
use super::replies::Replies;
use super::retries;
use super::server::{MAX_REQUEST_BYTES, Stop};
use crate::service::{Service, ServiceError};

/// Requests of a stream that have no answer yet, or whose answer the client hasn't taken. Enough to keep both tasks and the
/// network busy; an answer has some 500 bytes.
const WINDOW: usize = 1_024;
/// Requests that one turn on a blocking thread decides, so that streams and unary calls take turns.
const TURN: usize = 32;

#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) decisions: Decisions,
    pub(super) stop: Stop,
}

fn decide(
    service: &Service,
    request: pb::ScheduleRequest,
    cancel: &AtomicBool,
) -> Result<pb::ScheduleResponse, Problem> {
    guarded(|| {
        // Nobody waits any more: the engine would find out only after it had the writer.
        if cancel.load(Ordering::Relaxed) {
            return Err(ServiceError::Cancelled.into());
        }
        let request = convert::decision::request(request)?;
        Ok(convert::decision::response(service.schedule(request, cancel)?))
    })
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

/// Decides what was read, in order.
async fn answer(decisions: Decisions, mut queue: mpsc::UnboundedReceiver<Queued>, cancel: Arc<AtomicBool>) {
    loop {
        let mut turn = Vec::with_capacity(TURN);
        if queue.recv_many(&mut turn, TURN).await == 0 {
            return;
        }
        let Ok(_slot) = decisions.slot().await else { return };
        let (service, cancel) = (decisions.service.clone(), cancel.clone());
        let turn = blocking::run(move || {
            for queued in turn {
                match queued {
                    Queued::Request(request, place) => {
                        place.send(Ok(stream_response(&service, *request, &cancel)));
                    }
                    Queued::End(status, place) => {
                        place.send(Err(status));
                    }
                }
            }
            Ok(())
        });
        if turn.await.is_err() {
            return;
        }
    }
}

fn stream_response(
    service: &Service,
    request: pb::ScheduleStreamRequest,
    cancel: &AtomicBool,
) -> pb::ScheduleStreamResponse {
    let decided = match request.request {
        Some(request) => decide(service, request, cancel),
        None => Err(ServiceError::invalid("request", "Required value").into()),
    };
    let result = match decided {
        Ok(response) => StreamResult::Response(response),
        Err(problem) => StreamResult::Error(problem.into_answer()),
    };
    pb::ScheduleStreamResponse { id: request.id, result: Some(result) }
}

#[tonic::async_trait]
impl SchedulerService for Scheduler {
    type ScheduleStreamStream = Replies<pb::ScheduleStreamResponse>;
    type WatchRetriesStream = Replies<pb::WatchRetriesResponse>;

    async fn watch_retries(
        &self,
        request: Request<pb::WatchRetriesRequest>,
    ) -> Result<Response<Self::WatchRetriesStream>, Status> {
        retries::watch(self.decisions.service.clone(), request, self.stop.clone()).await
    }

    async fn schedule(&self, request: Request<pb::ScheduleRequest>) -> Result<Response<pb::ScheduleResponse>, Status> {
        let given_up = CancelOnDrop::default();
        let _slot = self.decisions.slot_unless_overloaded().await?;
        let (service, cancel) = (self.decisions.service.clone(), given_up.flag());
        blocking::run(move || decide(&service, request.into_inner(), &cancel)).await.map(Response::new)
    }

    async fn schedule_stream(
        &self,
        request: Request<Streaming<pb::ScheduleStreamRequest>>,
    ) -> Result<Response<Self::ScheduleStreamStream>, Status> {
        let given_up = CancelOnDrop::default();
        let cancel = given_up.flag();
        let (replies, to_client) = mpsc::channel(WINDOW);
        let (to_decide, queue) = mpsc::unbounded_channel();
        let response = Replies::new(&request, to_client, Some(given_up));
        call::spawn(read(request.into_inner(), replies, to_decide, self.stop.clone()));
        call::spawn(answer(self.decisions.clone(), queue, cancel));
        Ok(Response::new(response))
    }

    async fn release_reservation(
        &self,
        request: Request<pb::ReleaseReservationRequest>,
    ) -> Result<Response<pb::ReleaseReservationResponse>, Status> {
        let id = request.into_inner().reservation_id;
        if id.is_empty() {
            return Err(Problem::from(ServiceError::invalid("reservation_id", "Required value")).into());
        }
        let service = self.decisions.service.clone();
        let release = blocking::run(move || Ok(service.release(&id)));
        let (released, revision) = release.await?;
        Ok(Response::new(pb::ReleaseReservationResponse { released, revision }))
    }
}
