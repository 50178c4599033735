//! The admin port: plain HTTP for operators, probes and Prometheus. Nothing here decides or changes the cluster.
//!
//! | path | what it gives |
//! | --- | --- |
//! | `/metrics` | all metrics, in the OpenMetrics text format |
//! | `/healthz` | `ok` while the process lives |
//! | `/readyz` | 200 while decisions can be made, else 503 and what it waits for; `?verbose` lists the checks |
//! | `/debug/cache` | what the cache holds, sorted, as text |
//! | `/debug/log` | the log's filter; PUT puts another in force |
//!
//! It stays up while Berth drains, so that probes see why it is not ready, and ends last. Work of more than some hundred
//! microseconds is done on blocking threads.

mod cache;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::cluster::readiness::Ready;
use crate::service::{Service, ServiceError};
use crate::telemetry::log::LogFilter;
use crate::telemetry::metrics;

/// What there is, for people who ask for something else.
const PATHS: &str = "/metrics\n/healthz\n/readyz (?verbose)\n/debug/cache\n/debug/log (GET, PUT)\n";
const TEXT: (HeaderName, &str) = (header::CONTENT_TYPE, "text/plain; charset=utf-8");
/// Bytes of a log filter.
const MAX_BODY: usize = 4 << 10;
/// Dumps at the same time: each holds a fork for as long as its client takes to read.
const MAX_DUMPS: usize = 4;

#[derive(Debug, Clone)]
struct Admin {
    service: Arc<Service>,
    log: LogFilter,
    draining: watch::Receiver<bool>,
    dumps: Arc<Semaphore>,
}

/// Takes the port. Port 0 is any free one; the address that comes back has the real one. The future serves until
/// `shutdown` is done.
///
/// # Errors
/// The address can't be listened on.
pub async fn bind(
    service: Arc<Service>,
    log: LogFilter,
    draining: watch::Receiver<bool>,
    addr: SocketAddr,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<(SocketAddr, impl Future<Output = io::Result<()>> + Send + 'static)> {
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    let admin = Admin { service, log, draining, dumps: Arc::new(Semaphore::new(MAX_DUMPS)) };
    let router = Router::new()
        .route("/", get(async || ([TEXT], PATHS)))
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(async || ([TEXT], "ok\n")))
        .route("/readyz", get(readyz))
        .route("/debug/cache", get(show_cache))
        .route("/debug/log", get(log_filter).put(set_log_filter))
        .fallback(async |uri: Uri| say(StatusCode::NOT_FOUND, format!("no {}; there is\n{PATHS}", uri.path())))
        .method_not_allowed_fallback(async || say(StatusCode::METHOD_NOT_ALLOWED, "not with this method\n".to_owned()))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(admin);
    Ok((addr, async move { axum::serve(listener, router).with_graceful_shutdown(shutdown).await }))
}

fn say(status: StatusCode, text: String) -> Response {
    (status, [TEXT], text).into_response()
}

/// Does what may take long on a thread that may take long.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Response> {
    let failed = |_| say(StatusCode::INTERNAL_SERVER_ERROR, "internal error, or shutting down\n".to_owned());
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

async fn show_metrics(State(admin): State<Admin>) -> Result<Response, Response> {
    let page = aside(move || admin.service.metrics().render(&admin.service.sizes())).await?;
    let page = page.map_err(|error| say(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response())
}

async fn readyz(State(admin): State<Admin>, uri: Uri) -> Result<Response, Response> {
    let draining = *admin.draining.borrow();
    let ready = aside(move || admin.service.ready()).await?;
    let is_ready = ready.is_ready() && !draining;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let verbose =
        uri.query().is_some_and(|query| query.split('&').any(|word| word.split('=').next() == Some("verbose")));
    let text = match (verbose, draining, ready) {
        (true, draining, ready) => checks(draining, &ready),
        (false, true, _) => "not ready: shutting down\n".to_owned(),
        (false, false, Ready::Waiting { kinds }) => format!("{}\n", ServiceError::NotReady(kinds)),
        (false, false, _) => "ok\n".to_owned(),
    };
    Ok(say(status, text))
}

/// One check a line, as the probes of Kubernetes' components write them.
fn checks(draining: bool, ready: &Ready) -> String {
    let mut text = if draining { "[-]serving failed: shutting down\n" } else { "[+]serving ok\n" }.to_owned();
    match ready {
        Ready::Waiting { kinds } if kinds.is_empty() => text.push_str("[-]nodes failed: no node is known yet\n"),
        Ready::Waiting { kinds } => {
            for kind in kinds {
                text.push_str(&format!("[-]snapshot-{} failed: its first snapshot has not ended yet\n", kind.as_str()));
            }
        }
        Ready::Files => text.push_str("[+]cluster ok: loaded from files\n"),
        Ready::Snapshots => text.push_str("[+]cluster ok: every required kind had its snapshot\n"),
        Ready::Manual => text.push_str("[+]cluster ok: fed by hand, without snapshots\n"),
    }
    let passed = ready.is_ready() && !draining;
    text.push_str(if passed { "readyz check passed\n" } else { "readyz check failed\n" });
    text
}

async fn show_cache(State(admin): State<Admin>) -> Result<Response, Response> {
    let busy = |_| say(StatusCode::SERVICE_UNAVAILABLE, format!("{MAX_DUMPS} dumps are under way; try again later\n"));
    let place = admin.dumps.clone().try_acquire_owned().map_err(busy)?;
    let dump = aside(move || cache::Dump::new(admin.service.picture())).await?;
    // The place is free again when the last chunk is taken, or the client is gone.
    let chunks = dump.map(move |chunk| {
        let _held = &place;
        Ok::<_, io::Error>(chunk)
    });
    Ok(([TEXT], Body::from_stream(tokio_stream::iter(chunks))).into_response())
}

async fn log_filter(State(admin): State<Admin>) -> Response {
    match admin.log.get() {
        Ok(filter) => say(StatusCode::OK, format!("{filter}\n")),
        Err(error) => say(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn set_log_filter(State(admin): State<Admin>, filter: String) -> Response {
    if let Err(error) = admin.log.set(&filter) {
        return say(StatusCode::BAD_REQUEST, format!("{error}\n"));
    }
    tracing::info!(filter = filter.trim(), "log filter changed");
    log_filter(State(admin)).await
}

#[cfg(test)]
mod tests;
