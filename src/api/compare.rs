//! InspectService.Compare: objects in, differences out.
//!
//! One task takes a request, has it read on a blocking thread, and goes on; at the end of the requests the comparison runs
//! on one too. The answers wait for the client in a short queue. Truths may be large, so there is one comparison at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::{Request, Status, Streaming};

use super::blocking;
use super::convert::compare as convert;
use super::error::{Problem, means_too_large, shutting_down, too_large};
use super::feed::stopped;
use super::pb;
use super::replies::Replies;
use super::server::{MAX_REQUEST_BYTES, Stop};
use crate::service::compare::{Truth, compare};
use crate::service::{Service, ServiceError};

/// Answers that wait for the client; each has up to 3 MiB.
const WINDOW: usize = 2;

/// Takes the requests of a call and answers them. `turn` is held until the last answer is on its way.
pub(super) fn start(
    service: Arc<Service>,
    request: Request<Streaming<pb::CompareRequest>>,
    turn: OwnedSemaphorePermit,
    stop: Stop,
) -> Replies<pb::CompareResponse> {
    let (answers, queue) = mpsc::channel(WINDOW);
    let replies = Replies::new(&request, queue, None);
    let requests = request.into_inner();
    tokio::spawn(async move {
        if let Err(status) = run(service, requests, &answers, turn, stop).await {
            // A client that has gone needs no answer.
            let _ = answers.send(Err(status)).await;
        }
    });
    replies
}

async fn run(
    service: Arc<Service>,
    mut requests: Streaming<pb::CompareRequest>,
    answers: &mpsc::Sender<Result<pb::CompareResponse, Status>>,
    turn: OwnedSemaphorePermit,
    mut stop: Stop,
) -> Result<(), Status> {
    let mut truth = None;
    loop {
        let request = tokio::select! {
            request = requests.message() => request,
            () = stopped(&mut stop) => return Err(shutting_down()),
            () = answers.closed() => return Ok(()),
        };
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => break,
            Err(status) if means_too_large(&status) => return Err(too_large(MAX_REQUEST_BYTES)),
            Err(status) => return Err(status),
        };
        let service = service.clone();
        truth = blocking::run(move || add(truth, request, &service).map(Some).map_err(Problem::from)).await?;
    }
    let compared = blocking::run(move || {
        let truth = truth.unwrap_or_default();
        let comparison = compare(&truth, &service.cluster.snapshot());
        Ok(convert::answers(comparison, truth.remarks))
    });
    let pages = compared.await?;
    let mut turn = Some(turn);
    let (mut page, mut pages) = next(pages).await?;
    while let Some(answer) = page {
        (page, pages) = next(pages).await?;
        if page.is_none() {
            // Whoever has read the last answer may ask again.
            turn.take();
        }
        if answers.send(Ok(answer)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Making a page takes some milliseconds.
async fn next<P>(mut pages: P) -> Result<(Option<pb::CompareResponse>, P), Status>
where
    P: Iterator<Item = pb::CompareResponse> + Send + 'static,
{
    blocking::run(move || Ok((pages.next(), pages))).await
}

fn add(truth: Option<Truth>, request: pb::CompareRequest, service: &Service) -> Result<Truth, ServiceError> {
    let mut truth = match truth {
        None => Truth::covering(&request.kinds)?,
        Some(truth) if request.kinds.is_empty() => truth,
        Some(_) => return Err(ServiceError::invalid("kinds", "only the first request may name kinds")),
    };
    truth.add(service, request.objects.into_iter().map(convert::source).collect())?;
    Ok(truth)
}
