//! WatchRetries: a task that tells one client of refused pods that were freed.
//!
//! It reads the table when that has news and the client has taken what came before; a client that doesn't read costs
//! nothing more.

use std::sync::Arc;

use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::blocking;
use super::call;
use super::convert;
use super::error::shutting_down;
use super::feed::stopped;
use super::pb;
use super::replies::Replies;
use super::server::Stop;
use crate::service::Service;
use crate::service::retries::RetryWatch;

/// Pods that one message names: some 200 bytes each.
const MOST: usize = 1_000;

pub(super) async fn watch(
    service: Arc<Service>,
    request: Request<pb::WatchRetriesRequest>,
    stop: Stop,
) -> Result<Response<Replies<pb::WatchRetriesResponse>>, Status> {
    let (messages, queue) = mpsc::channel(1);
    let replies = Replies::new(&request, queue, None);
    let pb::WatchRetriesRequest { profiles, incarnation } = request.into_inner();
    let opened = blocking::run(move || {
        let watch = service.watch_retries(profiles, &incarnation)?;
        let incarnation = service.cluster.writer().incarnation().to_string();
        Ok((watch, incarnation))
    });
    let (watch, incarnation) = opened.await?;
    call::spawn(tell(watch, incarnation, messages, stop));
    Ok(Response::new(replies))
}

async fn tell(
    mut watch: RetryWatch,
    incarnation: String,
    messages: mpsc::Sender<Result<pb::WatchRetriesResponse, Status>>,
    mut stop: Stop,
) {
    let mut first = true;
    loop {
        let place = tokio::select! {
            place = messages.reserve() => place,
            () = stopped(&mut stop) => break,
        };
        // Without a place nobody reads any more.
        let Ok(place) = place else { return };
        let news = watch.read(MOST);
        if first || !news.is_empty() {
            first = false;
            place.send(Ok(pb::WatchRetriesResponse {
                retries: news.pods.into_iter().map(convert::retries::retry).collect(),
                overflow: news.overflow,
                incarnation: incarnation.clone(),
            }));
            continue;
        }
        drop(place);
        tokio::select! {
            // An error would mean that the service is gone, and the server with it.
            changed = watch.signal().changed() => if changed.is_err() { break },
            () = stopped(&mut stop) => break,
            () = messages.closed() => return,
        }
    }
    let _ = messages.send(Err(shutting_down())).await;
}
