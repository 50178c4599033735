//! The call under way: its request id and its span, wherever its work goes.
//!
//! `observe` begins a call; tasks and blocking threads that work for it are started through [`spawn`] and [`carry`], so
//! that whatever they log or fail with has the id.

use std::future::Future;
use std::sync::Arc;

use tracing::{Instrument, Span};

tokio::task_local! {
    static CURRENT: CallContext;
}

#[derive(Debug, Clone)]
pub(super) struct CallContext {
    id: Arc<str>,
    span: Span,
}

impl CallContext {
    pub(super) fn new(id: Arc<str>, span: Span) -> Self {
        Self { id, span }
    }

    /// Runs a future as a part of this call.
    pub(super) fn follow<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        let span = self.span.clone();
        CURRENT.scope(self, work).instrument(span)
    }
}

/// The id of the call that this thread works for.
pub(super) fn current_id() -> Option<Arc<str>> {
    CURRENT.try_with(|call| call.id.clone()).ok()
}

/// Starts a task that belongs to the current call.
pub(super) fn spawn<F>(work: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    match CURRENT.try_with(Clone::clone) {
        Ok(call) => tokio::spawn(call.follow(work)),
        Err(_) => tokio::spawn(work),
    };
}

/// Work of the current call, for another thread.
pub(super) fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let call = CURRENT.try_with(Clone::clone).ok();
    move || match call {
        Some(call) => {
            let span = call.span.clone();
            CURRENT.sync_scope(call, || span.in_scope(work))
        }
        None => work(),
    }
}
