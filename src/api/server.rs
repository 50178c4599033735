//! Serves everything on one address: the services of `berth.v1`, health, and reflection.
//!
//! [`bind`] takes the port and says which one it is; the future that it gives serves until `shutdown` is done, then stops
//! listening, lets streams end with UNAVAILABLE and calls with their answers, and returns when the last connection is
//! closed. Whoever can't wait for clients bounds that time, as `app` does.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{Error, Server};
use tower::layer::util::{Identity, Stack};

use super::decisions::Decisions;
use super::eviction::Evictions;
use super::feed::Feed;
use super::health::Health;
use super::inspect::Inspect;
use super::layer::CallLayer;
use super::observe::ObserveLayer;
use super::pb;
use super::pb::eviction_service_server::EvictionServiceServer;
use super::pb::feed_service_server::FeedServiceServer;
use super::pb::inspect_service_server::InspectServiceServer;
use super::pb::scheduler_service_server::SchedulerServiceServer;
use super::scheduler::Scheduler;
use crate::service::Service;

/// Bytes that a request may have after decompression.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;
/// The services, as `grpcurl list` shows them.
pub const SERVICES: [&str; 4] =
    ["berth.v1.FeedService", "berth.v1.SchedulerService", "berth.v1.EvictionService", "berth.v1.InspectService"];

/// Bytes that a client may send ahead on a stream and on a connection. HTTP/2's 64 KiB would make a resync wait for the
/// round trip after each of them.
pub(super) const STREAM_WINDOW: u32 = 1 << 20;
pub(super) const CONNECTION_WINDOW: u32 = 4 << 20;
/// How often a silent connection is asked whether it lives: a feed whose client is gone must not count as connected.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// True once the server is to stop.
pub(super) type Stop = watch::Receiver<bool>;

/// Takes the port. Port 0 is any free one; the address that comes back has the real one.
///
/// # Errors
/// The address can't be listened on.
pub async fn bind(
    service: Arc<Service>,
    addr: SocketAddr,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<(SocketAddr, impl Future<Output = Result<(), Error>> + Send + 'static)> {
    let incoming = TcpIncoming::bind(addr)?.with_nodelay(Some(true));
    let addr = incoming.local_addr()?;
    let (reporter, _) = tonic_health::server::health_reporter();
    let health = Health::new(reporter.clone(), service.clone()).await;
    let (stop, stopping) = watch::channel(false);
    let changed = Arc::new(Notify::new());
    let router = router(service, reporter, changed.clone(), stopping)?;
    let serve = async move {
        let stopping_health = health.clone();
        let signal = async move {
            shutdown.await;
            let _ = stop.send(true);
            stopping_health.stop().await;
        };
        tokio::select! {
            served = router.serve_with_incoming_shutdown(incoming, signal) => served,
            never = health.follow(&changed) => match never {},
        }
    };
    Ok((addr, serve))
}

type Routes = Router<Stack<CallLayer, Stack<ObserveLayer, Identity>>>;

fn router(
    service: Arc<Service>,
    reporter: tonic_health::server::HealthReporter,
    changed: Arc<Notify>,
    stop: Stop,
) -> io::Result<Routes> {
    // All services take and give gzip, and take requests up to the one limit.
    macro_rules! configured {
        ($server:expr) => {
            $server.accept_compressed(Gzip).send_compressed(Gzip).max_decoding_message_size(MAX_REQUEST_BYTES)
        };
    }
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(pb::DESCRIPTOR)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // The details of errors, so that grpcurl can print them.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
            .include_reflection_service(false)
    };
    let observe = ObserveLayer::new(&service).map_err(io::Error::other)?;
    let health = tonic_health::server::HealthService::from_health_reporter(reporter);
    let feed = Feed { service: service.clone(), changed, stop: stop.clone() };
    let scheduler = Scheduler { decisions: Decisions::new(service.clone()), stop: stop.clone() };
    let evictions = Evictions::new(service.clone());
    let inspect = Inspect::new(service, stop);
    let mut server = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEPALIVE))
        // The outermost first: what is observed includes what the deadline made of a call.
        .layer(observe)
        .layer(CallLayer);
    Ok(server
        .add_service(configured!(FeedServiceServer::new(feed)))
        .add_service(configured!(SchedulerServiceServer::new(scheduler)))
        .add_service(configured!(EvictionServiceServer::new(evictions)))
        .add_service(configured!(InspectServiceServer::new(inspect)))
        .add_service(configured!(tonic_health::pb::health_server::HealthServer::new(health)))
        .add_service(configured!(reflection().build_v1().map_err(io::Error::other)?))
        .add_service(configured!(reflection().build_v1alpha().map_err(io::Error::other)?)))
}

#[cfg(test)]
mod tests {
    use tonic::server::NamedService;

    use super::*;

    #[test]
    fn the_list_of_services_is_right() {
        let names = [
            FeedServiceServer::<()>::NAME,
            SchedulerServiceServer::<()>::NAME,
            EvictionServiceServer::<()>::NAME,
            InspectServiceServer::<()>::NAME,
        ];
        assert_eq!(names, SERVICES);
    }
}
