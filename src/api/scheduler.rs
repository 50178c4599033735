//! SchedulerService: decisions, one by one or pipelined (`schedule_stream`).

use tonic::{Request, Response, Status, Streaming};

use super::blocking;
use super::decisions::Decisions;
use super::error::Problem;
use super::layer::Deadline;
use super::pb;
use super::pb::scheduler_service_server::SchedulerService;
use super::replies::Replies;
use super::retries;
use super::schedule_stream;
use super::server::Stop;
use crate::service::ServiceError;

#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) decisions: Decisions,
    pub(super) stop: Stop,
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
        let deadline = request.extensions().get::<Deadline>().map(|Deadline(at)| at.into_std());
        Ok(Response::new(self.decisions.decide(request.into_inner(), deadline).await?))
    }

    async fn schedule_stream(
        &self,
        request: Request<Streaming<pb::ScheduleStreamRequest>>,
    ) -> Result<Response<Self::ScheduleStreamStream>, Status> {
        Ok(Response::new(schedule_stream::open(self.decisions.clone(), request, self.stop.clone())))
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
