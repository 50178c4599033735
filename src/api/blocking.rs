//! How work leaves the async threads, stops when nobody waits for it any more, and never takes the process along.
//!
//! Everything that takes the writer runs here, since it may have to wait for a decision under way. Decisions share a few
//! slots: the writer lets only one through at a time anyway, and so they can't use up the threads that feeds need.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::Status;

use super::error::{Problem, shutting_down};
use crate::service::Service;

/// Runs work on a blocking thread.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(|| guarded(work)).await {
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

/// The service, and the slots for its decisions.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    pub(super) service: Arc<Service>,
    slots: Arc<Semaphore>,
}

impl Decisions {
    pub(super) fn new(service: Arc<Service>) -> Self {
        // Twice the cores: while one decides, others convert.
        let slots = std::thread::available_parallelism().map_or(4, |cores| cores.get() * 2);
        Self { service, slots: Arc::new(Semaphore::new(slots)) }
    }

    /// Waits for a slot. First come, first served.
    pub(super) async fn slot(&self) -> Result<SemaphorePermit<'_>, Status> {
        // Nobody closes the semaphore.
        self.slots.acquire().await.map_err(|_| shutting_down())
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

    #[test]
    fn dropping_the_guard_sets_the_flag() {
        let guard = CancelOnDrop::default();
        let flag = guard.flag();
        assert!(!flag.load(Ordering::Relaxed));
        drop(guard);
        assert!(flag.load(Ordering::Relaxed));
    }
}
