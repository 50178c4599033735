//! How work leaves the async threads, stops when nobody waits for it any more, and never takes the process along.
//!
//! Everything that takes the writer runs here, since it may have to wait for a decision under way. Decisions share a few
//! slots: the writer lets only one through at a time anyway, and so they can't use up the threads that feeds need. Unary
//! calls beyond a queue's length are shed at once: an answer after its caller has given up helps nobody. Feeds never are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::Status;

use super::call;
use super::error::{Problem, overloaded, shutting_down};
use crate::service::Service;

/// Runs work on a blocking thread.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Status> {
    let work = call::carry(|| guarded(work));
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Status::from),
        // Panics are caught, so what remains is a runtime that shuts down.
        Err(_) => Err(shutting_down()),
    }
}

/// Runs work that may have a bug: a panic becomes a problem, and is logged under the id that the client is told.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    // Unwind safety: what a panic can leave half done is behind locks that other calls take as they find it, as in any
    // call that fails on the way.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Problem::bug(&format!("panic: {text}")))
    })
}

/// Unary decisions that may wait for a slot. At some 200 us a decision the last of them waits a quarter of a second.
const MAX_WAITING: usize = 1_024;

/// The service, and the slots for its decisions.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    pub(super) service: Arc<Service>,
    slots: Arc<Semaphore>,
    /// Places in the queue of unary calls.
    queue: Arc<Semaphore>,
}

impl Decisions {
    pub(super) fn new(service: Arc<Service>) -> Self {
        // Twice the cores: while one decides, others convert.
        let slots = std::thread::available_parallelism().map_or(4, |cores| cores.get() * 2);
        Self::with_limits(service, slots, MAX_WAITING)
    }

    fn with_limits(service: Arc<Service>, slots: usize, waiting: usize) -> Self {
        Self { service, slots: Arc::new(Semaphore::new(slots)), queue: Arc::new(Semaphore::new(waiting)) }
    }

    /// Waits for a slot. First come, first served. For streams, which stop reading instead of being shed.
    pub(super) async fn slot(&self) -> Result<SemaphorePermit<'_>, Status> {
        // Nobody closes the semaphore.
        self.slots.acquire().await.map_err(|_| shutting_down())
    }

    /// A slot for a unary call.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when too many wait already.
    pub(super) async fn slot_unless_overloaded(&self) -> Result<SemaphorePermit<'_>, Status> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Ok(slot);
        }
        let _place = self.queue.try_acquire().map_err(|_| overloaded())?;
        self.slot().await
    }
}

/// Tells the engine to stop once this is dropped: with the handler of a call that was given up, or with its replies.
#[derive(Debug, Default)]
pub(super) struct CancelOnDrop(Arc<AtomicBool>);

impl CancelOnDrop {
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_with_an_id_and_no_inside() {
        let status = run::<()>(|| panic!("secret {}", 1)).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Internal);
        assert!(status.message().contains("request id") && !status.message().contains("secret"), "{status}");
    }

    #[tokio::test]
    async fn a_panic_is_reported_under_the_id_of_its_call() {
        let call = call::CallContext::new("from-the-client".into(), tracing::Span::none());
        let status = call.follow(run::<()>(|| panic!("oops"))).await.unwrap_err();
        assert!(status.message().ends_with("request id from-the-client"), "{status}");
    }

    #[tokio::test]
    async fn calls_beyond_the_queue_are_shed_and_told_when_to_come_back() {
        use tonic_types::StatusExt;

        let decisions = Decisions::with_limits(Arc::default(), 1, 1);
        let slot = decisions.slot_unless_overloaded().await.unwrap();
        let mut waiting = Box::pin(decisions.slot_unless_overloaded());
        assert!(is_pending(&mut waiting).await, "the second waits");
        let status = decisions.slot_unless_overloaded().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert!(status.get_details_retry_info().is_some());
        drop(slot);
        assert!(waiting.await.is_ok());
    }

    /// Whether a future isn't ready when it is polled once.
    async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())).await
    }

    #[test]
    fn dropping_the_guard_sets_the_flag() {
        let guard = CancelOnDrop::default();
        let flag = guard.flag();
        assert!(!flag.load(Ordering::Relaxed));
        drop(guard);
        assert!(flag.load(Ordering::Relaxed));
    }
}
