//! The replies of a stream: a bounded queue that a task fills, with the call's deadline.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::{Request, Status};

use super::blocking::CancelOnDrop;
use super::error::deadline_exceeded;
use super::layer::Deadline;

/// What the client reads. Dropped by tonic when the client goes away; whoever fills the queue notices by that.
pub(super) struct Replies<T> {
    queue: mpsc::Receiver<Result<T, Status>>,
    deadline: Option<Pin<Box<Sleep>>>,
    ended: bool,
    /// Stops work on what nobody will read.
    cancel: Option<CancelOnDrop>,
}

impl<T> Replies<T> {
    pub(super) fn new<R>(
        request: &Request<R>,
        queue: mpsc::Receiver<Result<T, Status>>,
        cancel: Option<CancelOnDrop>,
    ) -> Self {
        let deadline = request.extensions().get::<Deadline>();
        let deadline = deadline.map(|Deadline(at)| Box::pin(tokio::time::sleep_until(*at)));
        Self { queue, deadline, ended: false, cancel }
    }
}

impl<T> Stream for Replies<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            self.ended = true;
            self.queue.close();
            self.cancel = None;
            return Poll::Ready(Some(Err(deadline_exceeded())));
        }
        self.queue.poll_recv(cx)
    }
}
