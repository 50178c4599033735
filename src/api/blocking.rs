//! How work leaves the async threads, stops when nobody waits for it any more, and never takes the process along.
//!
//! Everything that takes the writer runs here, since it may have to wait for a decision under way. Decisions wait in lanes
//! ([`Decisions`]), so that they can't use up the threads that feeds need; feeds never are refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tonic::Status;

use super::call;
use super::error::{Problem, stopping};

/// Runs work on a blocking thread.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Status> {
    try_run(work).await.map_err(Status::from)
}

/// As [`run`], for an answer within a stream.
pub(super) async fn try_run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let work = call::carry(|| guarded(work));
    // Panics are caught, so what remains is a runtime that shuts down.
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(stopping()))
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

    #[test]
    fn dropping_the_guard_sets_the_flag() {
        let guard = CancelOnDrop::default();
        let flag = guard.flag();
        assert!(!flag.load(Ordering::Relaxed));
        drop(guard);
        assert!(flag.load(Ordering::Relaxed));
    }
}
