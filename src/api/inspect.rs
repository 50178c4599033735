//! InspectService: what the cache holds.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

use super::blocking;
use super::compare;
use super::convert::inspect as convert;
use super::convert::reservation;
use super::error::{Problem, comparing};
use super::pb;
use super::pb::inspect_service_server::InspectService;
use super::replies::Replies;
use super::server::Stop;
use crate::service::{Service, ServiceError};

#[derive(Debug)]
pub(super) struct Inspect {
    service: Arc<Service>,
    /// Whose turn it is to compare.
    comparing: Arc<Semaphore>,
    stop: Stop,
}

impl Inspect {
    pub(super) fn new(service: Arc<Service>, stop: Stop) -> Self {
        Self { service, comparing: Arc::new(Semaphore::new(1)), stop }
    }

    async fn answer<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Service) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let service = self.service.clone();
        blocking::run(move || look(&service).map_err(Problem::from)).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl InspectService for Inspect {
    type CompareStream = Replies<pb::CompareResponse>;

    async fn compare(
        &self,
        request: Request<Streaming<pb::CompareRequest>>,
    ) -> Result<Response<Self::CompareStream>, Status> {
        let turn = self.comparing.clone().try_acquire_owned().map_err(|_| comparing())?;
        Ok(Response::new(compare::start(self.service.clone(), request, turn, self.stop.clone())))
    }

    async fn get_cluster(
        &self,
        _request: Request<pb::GetClusterRequest>,
    ) -> Result<Response<pb::GetClusterResponse>, Status> {
        self.answer(|service| Ok(convert::cluster(service.summary()))).await
    }

    async fn list_nodes(
        &self,
        request: Request<pb::ListNodesRequest>,
    ) -> Result<Response<pb::ListNodesResponse>, Status> {
        let pb::ListNodesRequest { page_size, page_token, names } = request.into_inner();
        self.answer(move |service| {
            let page = service.list_nodes(&names, &convert::page(page_size, page_token))?;
            let nodes = page.items.into_iter().map(convert::node).collect();
            Ok(pb::ListNodesResponse { nodes, next_page_token: page.next, revision: page.revision })
        })
        .await
    }

    async fn list_pods(&self, request: Request<pb::ListPodsRequest>) -> Result<Response<pb::ListPodsResponse>, Status> {
        let pb::ListPodsRequest { page_size, page_token, node, namespace, states } = request.into_inner();
        self.answer(move |service| {
            let filter = convert::pod_filter(node, namespace, &states)?;
            let page = service.list_pods(&filter, &convert::page(page_size, page_token))?;
            let pods = page.items.into_iter().map(convert::pod).collect();
            Ok(pb::ListPodsResponse { pods, next_page_token: page.next, revision: page.revision })
        })
        .await
    }

    async fn list_reservations(
        &self,
        request: Request<pb::ListReservationsRequest>,
    ) -> Result<Response<pb::ListReservationsResponse>, Status> {
        let pb::ListReservationsRequest { page_size, page_token } = request.into_inner();
        self.answer(move |service| {
            let page = service.list_reservations(&convert::page(page_size, page_token))?;
            let reservations = page.items.iter().map(reservation).collect();
            Ok(pb::ListReservationsResponse { reservations, next_page_token: page.next, revision: page.revision })
        })
        .await
    }

    async fn list_profiles(
        &self,
        request: Request<pb::ListProfilesRequest>,
    ) -> Result<Response<pb::ListProfilesResponse>, Status> {
        let pb::ListProfilesRequest { page_size, page_token } = request.into_inner();
        self.answer(move |service| {
            let page = service.list_profiles(&convert::page(page_size, page_token))?;
            let profiles = page.items.iter().map(|profile| convert::profile(profile)).collect();
            Ok(pb::ListProfilesResponse { profiles, next_page_token: page.next })
        })
        .await
    }

    async fn list_decisions(
        &self,
        request: Request<pb::ListDecisionsRequest>,
    ) -> Result<Response<pb::ListDecisionsResponse>, Status> {
        let pb::ListDecisionsRequest { page_size, page_token } = request.into_inner();
        self.answer(move |service| {
            let page = service.list_decisions(&convert::page(page_size, page_token))?;
            let decisions = page.items.into_iter().map(convert::decision).collect();
            Ok(pb::ListDecisionsResponse { decisions, next_page_token: page.next })
        })
        .await
    }
}
