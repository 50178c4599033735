//! FeedService: three streams of batches in, acks out.
//!
//! One task a stream takes a batch, has it read and applied on a blocking thread, and goes on. Acks wait in one place and
//! merge there until the client has taken the one before: a client that never reads gets one ack later, and its batches are
//! applied all the same.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc, watch};
use tonic::{Request, Response, Status, Streaming};

use super::blocking;
use super::call;
use super::convert;
use super::error::{Problem, fenced, means_too_large, shutting_down, too_large};
use super::pb;
use super::pb::feed_service_server::FeedService;
use super::replies::Replies;
use super::server::{MAX_REQUEST_BYTES, Stop};
use crate::service::Service;
use crate::service::feed::{Ack, Batch, FeedSession, Fence, StreamKind};

#[derive(Debug)]
pub(super) struct Feed {
    pub(super) service: Arc<Service>,
    /// Woken after each batch, since it may change whether decisions can be made.
    pub(super) changed: Arc<Notify>,
    pub(super) stop: Stop,
}

impl Feed {
    fn stream<Req, Res>(
        &self,
        kind: StreamKind,
        request: Request<Streaming<Req>>,
        batch: fn(Req) -> Batch,
        response: fn(pb::FeedAck) -> Res,
    ) -> Response<Replies<Res>>
    where
        Req: Send + 'static,
        Res: Send + 'static,
    {
        let (acks, queue) = mpsc::channel(1);
        let replies = Replies::new(&request, queue, None);
        let session = FeedSession::new(self.service.clone(), kind);
        let fence = session.fence();
        let feed = OpenFeed { session, fence, ack: None, changed: self.changed.clone() };
        call::spawn(feed.run(request.into_inner(), batch, acks, response, self.stop.clone()));
        Response::new(replies)
    }
}

struct OpenFeed {
    session: FeedSession,
    fence: Arc<Fence>,
    /// What the client hasn't been told yet.
    ack: Option<Ack>,
    changed: Arc<Notify>,
}

impl OpenFeed {
    async fn run<Req: Send + 'static, Res>(
        mut self,
        mut requests: Streaming<Req>,
        batch: fn(Req) -> Batch,
        acks: mpsc::Sender<Result<Res, Status>>,
        response: fn(pb::FeedAck) -> Res,
        mut stop: Stop,
    ) {
        let end = loop {
            let request = tokio::select! {
                biased;
                place = acks.reserve(), if self.ack.is_some() => {
                    // Without a place nobody reads any more: the client has gone.
                    let (Ok(place), Some(ack)) = (place, self.ack.take()) else { break None };
                    place.send(Ok(response(convert::feed::ack(ack))));
                    continue;
                }
                () = stopped(&mut stop) => break Some(shutting_down()),
                // Also a stream that is silent ends, so that its client learns of its successor.
                () = self.fence.signal().notified() => break Some(fenced()),
                request = requests.message() => request,
                () = acks.closed() => break None,
            };
            match request {
                Ok(Some(request)) => match self.apply(request, batch).await {
                    Ok(open) => self = open,
                    Err((ack, status)) => return finish(acks, response, ack, Some(status)).await,
                },
                Ok(None) => break None,
                Err(status) if means_too_large(&status) => break Some(too_large(MAX_REQUEST_BYTES)),
                Err(status) => break Some(status),
            }
        };
        let OpenFeed { session, ack, changed, .. } = self;
        close(session, changed).await;
        finish(acks, response, ack, end).await;
    }

    /// Reads and applies a batch aside. On an error the session is closed; the ack for what came before remains.
    async fn apply<Req: Send + 'static>(
        mut self,
        request: Req,
        batch: fn(Req) -> Batch,
    ) -> Result<Self, (Option<Ack>, Status)> {
        let mut session = self.session;
        // An error drops the session there, aside, where it may wait for the writer.
        let applied = blocking::run(move || {
            let ack = session.apply(batch(request)).map_err(Problem::from)?;
            Ok((session, ack))
        });
        let applied = applied.await;
        self.changed.notify_one();
        let (session, news) = applied.map_err(|status| (self.ack.take(), status))?;
        match &mut self.ack {
            Some(ack) => ack.merge(news),
            none => *none = Some(news),
        }
        Ok(Self { session, fence: self.fence, ack: self.ack, changed: self.changed })
    }
}

async fn close(session: FeedSession, changed: Arc<Notify>) {
    let _ = blocking::run(move || {
        drop(session);
        Ok(())
    })
    .await;
    changed.notify_one();
}

/// Tells the client what it hasn't been told, and how the stream ended.
async fn finish<Res>(
    acks: mpsc::Sender<Result<Res, Status>>,
    response: fn(pb::FeedAck) -> Res,
    ack: Option<Ack>,
    end: Option<Status>,
) {
    if let Some(ack) = ack {
        // A client that has gone needs no ack.
        let _ = acks.send(Ok(response(convert::feed::ack(ack)))).await;
    }
    if let Some(status) = end {
        let _ = acks.send(Err(status)).await;
    }
}

/// Waits until the server is to stop.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone took the server with it.
    let _ = stop.wait_for(|stop| *stop).await;
}

#[tonic::async_trait]
impl FeedService for Feed {
    type UpdateNodesStream = Replies<pb::UpdateNodesResponse>;
    type UpdatePodsStream = Replies<pb::UpdatePodsResponse>;
    type UpdateObjectsStream = Replies<pb::UpdateObjectsResponse>;

    async fn update_nodes(
        &self,
        request: Request<Streaming<pb::UpdateNodesRequest>>,
    ) -> Result<Response<Self::UpdateNodesStream>, Status> {
        let response = |ack| pb::UpdateNodesResponse { ack: Some(ack) };
        Ok(self.stream(StreamKind::Nodes, request, convert::feed::nodes, response))
    }

    async fn update_pods(
        &self,
        request: Request<Streaming<pb::UpdatePodsRequest>>,
    ) -> Result<Response<Self::UpdatePodsStream>, Status> {
        let response = |ack| pb::UpdatePodsResponse { ack: Some(ack) };
        Ok(self.stream(StreamKind::Pods, request, convert::feed::pods, response))
    }

    async fn update_objects(
        &self,
        request: Request<Streaming<pb::UpdateObjectsRequest>>,
    ) -> Result<Response<Self::UpdateObjectsStream>, Status> {
        let response = |ack| pb::UpdateObjectsResponse { ack: Some(ack) };
        Ok(self.stream(StreamKind::Objects, request, convert::feed::objects, response))
    }
}
