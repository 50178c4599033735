//! Keeps `grpc.health.v1` in step with the service.
//!
//! The process as a whole (`""`), `SchedulerService` and `EvictionService` are SERVING while decisions can be made. `FeedService` and
//! `InspectService` always are: a client that asks for the feed's health before it feeds would otherwise wait for ever for
//! what only it can bring about. When Berth stops, all are NOT_SERVING, and then watchers are let go.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::blocking;
use super::pb::eviction_service_server::EvictionServiceServer;
use super::pb::feed_service_server::FeedServiceServer;
use super::pb::inspect_service_server::InspectServiceServer;
use super::pb::scheduler_service_server::SchedulerServiceServer;
use crate::service::Service;

/// The process as a whole.
const OVERALL: &str = "";
const SCHEDULER: &str = SchedulerServiceServer::<()>::NAME;
const EVICTION: &str = EvictionServiceServer::<()>::NAME;
const FEED: &str = FeedServiceServer::<()>::NAME;
const INSPECT: &str = InspectServiceServer::<()>::NAME;
/// Those that are SERVING once the service is ready.
const NEED_READINESS: [&str; 3] = [OVERALL, SCHEDULER, EVICTION];
/// Those that always are.
const ALWAYS: [&str; 2] = [FEED, INSPECT];

/// How often to look without being woken, for changes that don't come over a feed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(super) struct Health {
    reporter: HealthReporter,
    service: Arc<Service>,
    /// What was said at first. Watchers are told each word, so none is said twice.
    ready_at_first: bool,
}

impl Health {
    /// The first word is said before anybody can ask.
    pub(super) async fn new(reporter: HealthReporter, service: Arc<Service>) -> Self {
        let mut health = Self { reporter, service, ready_at_first: false };
        let ready = health.is_ready().await;
        health.ready_at_first = ready;
        for name in NEED_READINESS {
            health.say(name, ready).await;
        }
        for name in ALWAYS {
            health.say(name, true).await;
        }
        health
    }

    /// Follows the service for ever.
    pub(super) async fn follow(&self, changed: &Notify) -> Infallible {
        let mut said = self.ready_at_first;
        loop {
            let ready = self.is_ready().await;
            if said != ready {
                for name in NEED_READINESS {
                    self.say(name, ready).await;
                }
                said = ready;
            }
            let _ = tokio::time::timeout(LOOK_EVERY, changed.notified()).await;
        }
    }

    pub(super) async fn stop(mut self) {
        for name in NEED_READINESS.into_iter().chain(ALWAYS) {
            self.say(name, false).await;
        }
        // Watchers need a moment to be told before their streams end.
        tokio::time::sleep(Duration::from_millis(50)).await;
        for name in NEED_READINESS.into_iter().chain(ALWAYS) {
            self.reporter.clear_service_status(name).await;
        }
    }

    async fn is_ready(&self) -> bool {
        let service = self.service.clone();
        blocking::run(move || Ok(service.ready().is_ready())).await.unwrap_or(false)
    }

    async fn say(&self, name: &str, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.reporter.set_service_status(name, status).await;
    }
}
