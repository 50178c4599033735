//! What is seen of every call from outside: its request id, its metrics, its line in the log.
//!
//! A client may bring an `x-request-id` of 1 to 128 visible ASCII characters; else one is made. It comes back in the
//! answer's metadata, OK or not, and stands in every line that is logged for the call.
//!
//! A call begins with its headers and ends with its status, which for most answers is in the trailers: the body is watched
//! until they pass. A body that is dropped before (the client went away, or reset the stream) ends as `Canceled`.
//! Each end is one line at debug, and at warn for INTERNAL. The path of a method that doesn't exist is not written
//! anywhere: it is whatever the client likes.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use http_body::{Frame, SizeHint};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Span;

use super::call::CallContext;
use super::pb;
use crate::telemetry::calls::CallMetrics;
use crate::telemetry::metrics::Metrics;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GRPC_STATUS: &str = "grpc-status";
/// Characters that a client's request id may have.
const MAX_ID: usize = 128;

#[derive(Debug, Clone)]
pub(super) struct ObserveLayer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    methods: HashMap<String, Arc<Method>>,
    unknown: Arc<Method>,
    /// Begins the ids that are made here; another in each life of the process.
    prefix: String,
    last_id: AtomicU64,
}

#[derive(Debug)]
struct Method {
    /// As clients call it, such as `/berth.v1.SchedulerService/Schedule`.
    path: String,
    metrics: Arc<CallMetrics>,
}

impl ObserveLayer {
    /// # Errors
    /// The descriptors that are compiled in can't be read.
    pub(super) fn new(service: &crate::service::Service) -> Result<Self, prost::DecodeError> {
        let incarnation = service.cluster.writer().incarnation().clone();
        // The first block of a UUID: enough to tell lives of the process apart in a log, and short.
        let prefix = incarnation.split('-').next().unwrap_or_default().to_owned();
        let metrics = service.metrics();
        let unknown = Method { path: "unknown".into(), metrics: metrics.calls("unknown", "unknown", "unknown") };
        let (methods, unknown) = (methods(metrics)?, Arc::new(unknown));
        Ok(Self(Arc::new(Shared { methods, unknown, prefix, last_id: AtomicU64::new(0) })))
    }
}

/// All methods that are served, by path.
fn methods(metrics: &Metrics) -> Result<HashMap<String, Arc<Method>>, prost::DecodeError> {
    let mut methods = HashMap::new();
    for encoded in [
        pb::DESCRIPTOR,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ] {
        for file in FileDescriptorSet::decode(encoded)?.file {
            for service in &file.service {
                let service_name = format!("{}.{}", file.package(), service.name());
                for method in &service.method {
                    let grpc_type = match (method.client_streaming(), method.server_streaming()) {
                        (false, false) => "unary",
                        (true, false) => "client_stream",
                        (false, true) => "server_stream",
                        (true, true) => "bidi_stream",
                    };
                    let path = format!("/{service_name}/{}", method.name());
                    let metrics = metrics.calls(grpc_type, &service_name, method.name());
                    methods.insert(path.clone(), Arc::new(Method { path, metrics }));
                }
            }
        }
    }
    Ok(methods)
}

impl Shared {
    /// The id that the client brought, if it is one that can stand in a log; else a new one.
    fn request_id(&self, headers: &HeaderMap) -> (Arc<str>, HeaderValue) {
        let is_sane = |value: &&HeaderValue| {
            (1..=MAX_ID).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        if let Some(value) = headers.get(REQUEST_ID).filter(is_sane)
            && let Ok(text) = value.to_str()
        {
            return (text.into(), value.clone());
        }
        let made = format!("{}-{}", self.prefix, self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        // Hexadecimal, a dash and digits are a header value.
        let value = HeaderValue::try_from(&made).unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        (made.into(), value)
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, shared: self.0.clone() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Observe<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request<Body>> for Observe<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = self.shared.methods.get(request.uri().path()).unwrap_or(&self.shared.unknown).clone();
        let (id, header) = self.shared.request_id(request.headers());
        // At the level of errors, so that also a filter that lets nothing else through keeps the id.
        let span = tracing::error_span!("call", request_id = &*id, method = method.path.as_str());
        method.metrics.started();
        let end = End { method, id: header, span: span.clone(), begun: Instant::now(), over: false };
        let answer = CallContext::new(id, span).follow(self.inner.call(request));
        Box::pin(async move {
            let mut end = end;
            let mut response = answer.await?;
            response.headers_mut().insert(REQUEST_ID, end.id.clone());
            if let Some(code) = code(response.headers()) {
                end.with(code);
                return Ok(response);
            }
            Ok(response.map(|body| Body::new(WatchedBody { body, end })))
        })
    }
}

/// The status that headers or trailers have, if any.
fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get(GRPC_STATUS).map(|value| Code::from_bytes(value.as_bytes()))
}

/// Sees a call to its end, once.
struct End {
    method: Arc<Method>,
    id: HeaderValue,
    span: Span,
    begun: Instant,
    over: bool,
}

impl End {
    fn with(&mut self, code: Code) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let took = self.begun.elapsed();
        let name = self.method.metrics.ended(code as i32, took);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let _entered = self.span.enter();
        if code == Code::Internal {
            tracing::warn!(code = name, micros, "call ended");
        } else {
            tracing::debug!(code = name, micros, "call ended");
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.with(Code::Cancelled);
    }
}

struct WatchedBody {
    body: Body,
    end: End,
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(cx);
        match &mut polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    let code = code(trailers).unwrap_or(Code::Unknown);
                    if code != Code::Ok {
                        // Clients that look only at the error see only its trailers.
                        trailers.insert(REQUEST_ID, self.end.id.clone());
                    }
                    self.end.with(code);
                }
            }
            Poll::Ready(Some(Err(status))) => self.end.with(status.code()),
            // An answer without a status is none that gRPC knows.
            Poll::Ready(None) => self.end.with(Code::Unknown),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn answered(path: &str, id: Option<&[u8]>, layer: &ObserveLayer) -> Response<Body> {
        let inner = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Body::new(String::from("data")))) });
        let mut request = Request::builder().uri(path);
        if let Some(id) = id {
            request = request.header("x-request-id", HeaderValue::from_bytes(id).unwrap());
        }
        layer.layer(inner).oneshot(request.body(Body::default()).unwrap()).await.unwrap()
    }

    fn page(service: &crate::service::Service) -> String {
        service.metrics().render(&service.sizes()).unwrap()
    }

    const SCHEDULE: &str = "/berth.v1.SchedulerService/Schedule";

    #[tokio::test]
    async fn sane_ids_are_kept_and_others_replaced() {
        let layer = ObserveLayer::new(&crate::service::Service::default()).unwrap();
        for (given, kept) in [
            (&b"a-1/b:c"[..], true),
            (&[b'x'; 128], true),
            (&[b'x'; 129], false),
            (b"", false),
            (b"two words", false),
            (b"caf\xc3\xa9", false),
        ] {
            let response = answered(SCHEDULE, Some(given), &layer).await;
            let id = response.headers()["x-request-id"].as_bytes();
            assert_eq!(id == given, kept, "{given:?}");
            assert!((1..=128).contains(&id.len()));
        }
        let (a, b) = (answered(SCHEDULE, None, &layer).await, answered(SCHEDULE, None, &layer).await);
        assert_ne!(a.headers()["x-request-id"], b.headers()["x-request-id"]);
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_to_its_end_is_cancelled() {
        let service = crate::service::Service::default();
        let layer = ObserveLayer::new(&service).unwrap();
        drop(answered(SCHEDULE, None, &layer).await);
        let handled = "grpc_method=\"Schedule\",grpc_code=\"Canceled\"} 1";
        assert!(page(&service).lines().any(|line| line.ends_with(handled)), "{}", page(&service));
    }

    #[tokio::test]
    async fn what_clients_make_up_is_no_label() {
        let service = crate::service::Service::default();
        let layer = ObserveLayer::new(&service).unwrap();
        for path in ["/made.up/One", "/made.up/Two", "/berth.v1.SchedulerService/Three"] {
            drop(answered(path, None, &layer).await);
        }
        let page = page(&service);
        let unknown =
            "grpc_server_started_total{grpc_type=\"unknown\",grpc_service=\"unknown\",grpc_method=\"unknown\"} 3";
        assert!(page.lines().any(|line| line == unknown) && !page.contains("made.up"), "{page}");
    }

    #[test]
    fn all_served_methods_are_known() {
        let methods = methods(&Metrics::default()).unwrap();
        for service in crate::api::server::SERVICES {
            assert!(methods.keys().any(|path| path.starts_with(&format!("/{service}/"))), "{service}");
        }
        for path in ["/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] {
            assert!(methods.contains_key(path), "{path}");
        }
    }
}
