//! EvictionService: plans of evictions.
//!
//! A plan may take long where a decision takes microseconds, so plans have slots and a queue of their own: however many are
//! asked for, decisions go on. A slot is kept until the work has ended, also when its caller has gone: work that hasn't
//! noticed yet still takes a core.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Response, Status};

use super::blocking::{self, CancelOnDrop};
use super::convert::eviction as convert;
use super::error::{Problem, planning, shutting_down};
use super::pb;
use super::pb::eviction_service_server::EvictionService;
use crate::service::Service;

/// Plans that may wait for a slot; the next is shed.
const MAX_WAITING: usize = 16;

#[derive(Debug)]
pub(super) struct Evictions {
    service: Arc<Service>,
    slots: Arc<Semaphore>,
    queue: Semaphore,
}

impl Evictions {
    pub(super) fn new(service: Arc<Service>) -> Self {
        // Half of the cores: the others decide and feed.
        let slots = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
        Self::with_limits(service, slots, MAX_WAITING)
    }

    fn with_limits(service: Arc<Service>, slots: usize, waiting: usize) -> Self {
        Self { service, slots: Arc::new(Semaphore::new(slots)), queue: Semaphore::new(waiting) }
    }

    /// # Errors
    /// RESOURCE_EXHAUSTED when too many wait already.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, Status> {
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            return Ok(slot);
        }
        let _place = self.queue.try_acquire().map_err(|_| planning())?;
        // Nobody closes the semaphore.
        self.slots.clone().acquire_owned().await.map_err(|_| shutting_down())
    }
}

fn suggest(
    service: &Service,
    request: pb::SuggestEvictionsRequest,
    cancel: &AtomicBool,
) -> Result<pb::SuggestEvictionsResponse, Problem> {
    Ok(convert::response(&service.suggest_evictions(convert::request(request), cancel)?))
}

#[tonic::async_trait]
impl EvictionService for Evictions {
    async fn suggest_evictions(
        &self,
        request: Request<pb::SuggestEvictionsRequest>,
    ) -> Result<Response<pb::SuggestEvictionsResponse>, Status> {
        let given_up = CancelOnDrop::default();
        let slot = self.slot().await?;
        let (service, cancel) = (self.service.clone(), given_up.flag());
        let plan = blocking::run(move || {
            let _slot = slot;
            suggest(&service, request.into_inner(), &cancel)
        });
        plan.await.map(Response::new)
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::*;

    #[tokio::test]
    async fn plans_beyond_the_queue_are_shed_and_told_when_to_come_back() {
        let evictions = Evictions::with_limits(Arc::default(), 1, 0);
        let slot = evictions.slot().await.unwrap();
        let status = evictions.slot().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert!(status.get_details_retry_info().is_some());
        drop(slot);
        assert!(evictions.slot().await.is_ok());
    }

    #[test]
    fn a_plan_that_nobody_waits_for_is_not_made() {
        use crate::model::testing::node;

        let service = Service::default();
        let mut writer = service.cluster.writer();
        let node = crate::model::Object::from(node("n1").build());
        writer.upsert(crate::cluster::writer::Prepared::new(node), crate::cluster::store::Origin::file());
        drop(writer);
        let policy = pb::suggest_evictions_request::PolicySource::PolicyText(
            "{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy}".to_owned(),
        );
        let request = pb::SuggestEvictionsRequest { policy_source: Some(policy), ..Default::default() };
        assert!(suggest(&service, request.clone(), &AtomicBool::new(false)).is_ok());
        let status = Status::from(suggest(&service, request, &AtomicBool::new(true)).unwrap_err());
        assert_eq!(status.code(), tonic::Code::Cancelled);
    }
}
