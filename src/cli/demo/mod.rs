//! `berth demo`: the real server, a real client and a real cluster, in one process.

mod feed;
mod maintenance;
mod plan;
mod report;
mod trace;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use self::feed::Sent;
use self::report::Report;
use super::{Exit, output};
use crate::api::pb::inspect_service_client::InspectServiceClient;
use crate::api::pb::schedule_stream_response::Result as StreamResult;
use crate::api::pb::scheduler_service_client::SchedulerServiceClient;
use crate::api::{client, pb, server};
use crate::service::Service;

/// Unary calls that are timed.
const PROBES: usize = 1_000;
/// The longest that room is held for, so that no reservation ends during the demo.
const TTL_SECONDS: i64 = 3_600;

/// Watch Berth place the pods of a real 1,523-node GPU cluster
///
/// Starts the server on a free loopback port, streams in the nodes, schedules all 8,152 pods of the trace over one
/// ScheduleStream, confirms them over the feed, and times 1,000 unary dry runs. Then some nodes are cordoned, emptied and come
/// back, and SuggestEvictions is asked which pods should move to even that out. Nothing else is touched.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON object instead of the page
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(format!("berth demo: can't start: {error}"));
            return Exit::Failed;
        }
    };
    match runtime.block_on(demo()) {
        Ok(report) => {
            let printed = if args.json { output::line(report.json()) } else { output::line(report.text()) };
            if printed { Exit::Done } else { Exit::Failed }
        }
        Err(error) => {
            output::complain(format!("berth demo: {error}"));
            Exit::Failed
        }
    }
}

/// What can go wrong is a bug or a machine without loopback; the text is all that anyone needs of it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn demo() -> Result<Report, Failure> {
    let (nodes, pods) = (trace::nodes()?, trace::pods()?);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
    };
    let (address, serve) = server::bind(Arc::new(Service::default()), ([127, 0, 0, 1], 0).into(), shutdown).await?;
    let serving = tokio::spawn(serve);
    let channel = client::connect(&address.to_string()).await?;

    let begun = Instant::now();
    let (node_count, pod_count) = (nodes.len(), pods.len());
    feed::nodes(&channel, Sent::Snapshot, nodes.clone()).await?;
    feed::pods(&channel, Sent::Snapshot, Vec::new()).await?;
    let feed_seconds = begun.elapsed().as_secs_f64();
    let before = totals(&channel).await?;

    let begun = Instant::now();
    let answers = schedule_all(&channel, &pods).await?;
    let schedule_seconds = begun.elapsed().as_secs_f64();
    let (mut placements, mut refusals, mut bound) = (Vec::new(), Vec::new(), Vec::new());
    for (pod, answer) in pods.iter().zip(answers) {
        let name = trace::name(pod).to_owned();
        if answer.outcome() == pb::Outcome::Placed {
            bound.push(bind(pod, &answer.node));
            placements.push((name, answer.node));
        } else {
            refusals.push((name, answer));
        }
    }
    feed::pods(&channel, Sent::Snapshot, feed::upserts(bound.clone())).await?;
    let after = totals(&channel).await?;
    let (unary_micros, unary_placed) = probe(&channel, &pods).await?;
    let cluster = InspectServiceClient::new(channel.clone()).get_cluster(pb::GetClusterRequest {}).await?.into_inner();
    let maintenance = maintenance::run(&channel, &nodes, &bound).await?;
    let planned = plan::ask(&channel, maintenance).await?;
    let _ = stop.send(());
    serving.await??;
    Ok(Report {
        address: address.to_string(),
        nodes: node_count,
        pods: pod_count,
        placements,
        refusals,
        feed_seconds,
        schedule_seconds,
        unary_micros,
        unary_placed,
        before,
        after,
        revision: cluster.view.map_or(0, |v| v.revision),
        planned,
    })
}

async fn totals(channel: &Channel) -> Result<Vec<pb::ResourceTotal>, Failure> {
    let mut client = InspectServiceClient::new(channel.clone());
    Ok(client.get_cluster(pb::GetClusterRequest {}).await?.into_inner().resources)
}

fn ask(pod: pb::Pod, dry_run: bool) -> pb::ScheduleRequest {
    pb::ScheduleRequest {
        pod: Some(pb::PodSource { source: Some(pb::pod_source::Source::Pod(pod)) }),
        dry_run,
        reservation_ttl: Some(prost_types::Duration { seconds: TTL_SECONDS, nanos: 0 }),
        ..Default::default()
    }
}

/// One answer for each pod, in order.
async fn schedule_all(channel: &Channel, pods: &[pb::Pod]) -> Result<Vec<pb::ScheduleResponse>, Failure> {
    let (send, requests) = mpsc::channel(256);
    let to_send: Vec<pb::Pod> = pods.to_vec();
    tokio::spawn(async move {
        for pod in to_send {
            let request = pb::ScheduleStreamRequest { request: Some(ask(pod, false)), id: String::new() };
            if send.send(request).await.is_err() {
                return;
            }
        }
    });
    let progress = progress_bar(pods.len(), "placing pods");
    let mut client = SchedulerServiceClient::new(channel.clone());
    let mut stream = client.schedule_stream(ReceiverStream::new(requests)).await?.into_inner();
    let mut answers = Vec::with_capacity(pods.len());
    while let Some(answer) = stream.next().await {
        match answer?.result {
            Some(StreamResult::Response(response)) => answers.push(response),
            Some(StreamResult::Error(error)) => return Err(error.message.into()),
            None => return Err("an empty answer".into()),
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    if answers.len() != pods.len() {
        return Err(format!("{} answers to {} requests", answers.len(), pods.len()).into());
    }
    Ok(answers)
}

/// Times dry runs of pods like those of the trace, one after the other: microseconds, sorted, and how many would fit.
async fn probe(channel: &Channel, pods: &[pb::Pod]) -> Result<(Vec<u64>, usize), Failure> {
    let mut client = SchedulerServiceClient::new(channel.clone());
    let (mut micros, mut placed) = (Vec::with_capacity(PROBES), 0);
    let progress = progress_bar(PROBES, "asking what if");
    for i in 0..PROBES {
        // A stride that is prime to the trace's length visits pods of all its parts.
        let pod = trace::renamed(&pods[i * 7919 % pods.len()], &format!("probe-{i}"));
        let request = ask(pod, true);
        let begun = Instant::now();
        let answer = client.schedule(request).await?.into_inner();
        micros.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
        placed += usize::from(answer.outcome() == pb::Outcome::Placed);
        progress.inc(1);
    }
    progress.finish_and_clear();
    micros.sort_unstable();
    Ok((micros, placed))
}

/// The pod as the API server shows it once it is bound.
fn bind(pod: &pb::Pod, node: &str) -> pb::Pod {
    let mut pod = pod.clone();
    if let Some(spec) = &mut pod.spec {
        spec.node_name = node.to_owned();
    }
    pod.status = Some(pb::PodStatus { phase: "Running".to_owned(), ..Default::default() });
    pod
}

/// Shown on a terminal only.
fn progress_bar(length: usize, what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length as u64).with_message(what);
    match ProgressStyle::with_template("{msg:>16} [{bar:40}] {pos}/{len} {per_sec}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
