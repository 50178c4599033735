//! What goes for every call: its deadline, and the code for a request that is too large.
//!
//! Deadlines: tonic would answer CANCELLED; here a call whose time is up gets DEADLINE_EXCEEDED, and its handler is dropped,
//! which stops the engine (see `blocking::CancelOnDrop`). tonic's own timer runs too and a little later, but is polled after
//! us, so that ours is the answer. Streams get their headers at once; their replies watch the deadline themselves, for
//! which it is put into the request's extensions.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tower::{Layer, Service};

use super::error::{deadline_exceeded, means_too_large, too_large};
use super::server::MAX_REQUEST_BYTES;

/// When a call must have been answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(pub(super) Instant);

#[derive(Debug, Clone, Copy)]
pub(super) struct CallLayer;

impl<S> Layer<S> for CallLayer {
    type Service = Call<S>;

    fn layer(&self, inner: S) -> Call<S> {
        Call { inner }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Call<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for Call<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answer<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // Far beyond what timers hold there is no deadline to speak of.
        let deadline = timeout(request.headers()).and_then(|timeout| Instant::now().checked_add(timeout));
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(Deadline(deadline));
        }
        let timer = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
        Answer { inner: Some(Box::pin(self.inner.call(request))), timer }
    }
}

type BoxedAnswer<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

pub(super) struct Answer<E> {
    /// Dropped as soon as the deadline has passed.
    inner: Option<BoxedAnswer<E>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<E> Future for Answer<E> {
    type Output = Result<Response<Body>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(inner) = &mut self.inner
            && let Poll::Ready(answer) = inner.as_mut().poll(cx)
        {
            return Poll::Ready(answer.map(with_promised_code));
        }
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        // The clock and not the timer alone: tonic's timer may be the one that woke us.
        if timer.as_mut().poll(cx).is_pending() && Instant::now() < timer.deadline() {
            return Poll::Pending;
        }
        self.inner = None;
        Poll::Ready(Ok(deadline_exceeded().into_http()))
    }
}

/// A call that was refused before its handler saw it has its status in the headers.
fn with_promised_code(response: Response<Body>) -> Response<Body> {
    match response.extensions().get::<Status>() {
        Some(status) if means_too_large(status) => too_large(MAX_REQUEST_BYTES).into_http(),
        _ => response,
    }
}

/// The time that a client gives a call: `grpc-timeout`, up to 8 digits and a unit. A header that isn't one is no timeout.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3_600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::Ordering;

    use tonic::codegen::http::HeaderValue;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::api::blocking::CancelOnDrop;

    #[tokio::test]
    async fn a_call_whose_time_is_up_is_told_so_and_its_handler_is_stopped() {
        let guard = CancelOnDrop::default();
        let stopped = guard.flag();
        let mut guard = Some(guard);
        let never = service_fn(move |_| {
            let guard = guard.take();
            async move {
                let _guard = guard;
                std::future::pending::<Result<Response<Body>, Infallible>>().await
            }
        });
        let request = Request::builder().header("grpc-timeout", "5m").body(Body::default()).unwrap();
        let response = CallLayer.layer(never).oneshot(request).await.unwrap();
        assert_eq!(response.headers()["grpc-status"], "4");
        assert!(stopped.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_call_without_a_deadline_gets_its_answer_and_others_can_see_theirs() {
        let echo = service_fn(|request: Request<Body>| async move {
            let mut response = Response::new(Body::default());
            response.extensions_mut().insert(request.extensions().get::<Deadline>().is_some());
            Ok::<_, Infallible>(response)
        });
        for (timeout, seen) in [("", false), ("1H", true)] {
            let request = Request::builder().header("grpc-timeout", timeout).body(Body::default()).unwrap();
            let response = CallLayer.layer(echo).oneshot(request).await.unwrap();
            assert_eq!(response.extensions().get(), Some(&seen));
        }
    }

    #[test]
    fn timeouts_are_read_as_the_protocol_writes_them() {
        let read = |text: &'static str| {
            timeout(&HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), HeaderValue::from_static(text))]))
        };
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(read("1u"), Some(Duration::from_micros(1)));
        for broken in ["", "S", "1", "1x", "-1S", "+1S", "123456789S"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
