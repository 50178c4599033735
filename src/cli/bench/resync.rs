//! `berth bench resync`: what a full resync of the pods costs those who ask meanwhile.
//!
//! The real server on loopback. A client sends the cluster as a snapshot; then another asks, one call after the other, for
//! one pod with one candidate node: first alone, then while all pods are sent again as they are, then while all are sent
//! with new versions and labels. The client's requests are made ready beforehand, but its sending and reading share the
//! machine with the server, as they would on a small node.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tonic::transport::Channel;

use super::{Failure, Outcome};
use crate::api::pb::feed_control::Control;
use crate::api::pb::feed_service_client::FeedServiceClient;
use crate::api::pb::scheduler_service_client::SchedulerServiceClient;
use crate::api::{client, pb, server};
use crate::service::Service;
use crate::service::feed::MAX_EVENTS;

/// Milliseconds that a resync may add to the 99th percentile.
const ALLOWED_MS: f64 = 2.0;

/// Ask for pods while all pods are sent again: a full resync must add less than 2 ms to the p99 of unary Schedule
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Pods of the cluster
    #[arg(long, value_name = "N", default_value_t = 150_000)]
    pods: usize,
    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    nodes: usize,
    /// Calls to time, at least, in each of the three situations
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    calls: usize,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// The calls of one situation.
struct Timed {
    name: &'static str,
    /// Microseconds, sorted.
    micros: Vec<u64>,
    /// Whole resyncs that went on meanwhile.
    resyncs: usize,
    seconds: f64,
}

impl Timed {
    /// The smallest time that `permille` of the calls didn't exceed, in milliseconds.
    #[allow(clippy::cast_precision_loss, reason = "microseconds of a call")]
    fn percentile(&self, permille: usize) -> f64 {
        let rank = (self.micros.len() * permille).div_ceil(1_000).max(1);
        self.micros.get(rank - 1).copied().unwrap_or(0) as f64 / 1_000.0
    }
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    // Threads of their own for each, as they are processes of their own elsewhere: a client that makes a message of 1 MB
    // ready keeps neither the server nor the other client from its calls.
    let server = Builder::new_multi_thread().enable_all().build()?;
    let feeding = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let asking = Builder::new_current_thread().enable_all().build()?;

    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
    };
    let bound = server::bind(Arc::new(Service::default()), ([127, 0, 0, 1], 0).into(), shutdown);
    let (address, serve) = server.block_on(bound)?;
    let serving = server.spawn(serve);
    let feed = feeding.block_on(client::connect(&address.to_string()))?;
    let channel = asking.block_on(client::connect(&address.to_string()))?;
    feeding.block_on(send_nodes(&feed, (0..args.nodes).map(node)))?;
    let same = Arc::new(snapshot(args, 1));
    let seconds = feeding.block_on(send_pods(feed.clone(), same.clone(), 1))?;

    let ask = |name, epoch, resync| asking.block_on(ask(&channel, args, name, epoch, resync));
    let resync = |first, second| Some(Resync { feeding: &feeding, channel: &feed, requests: [first, second] });
    let alone = ask("alone", 2, None)?;
    let unchanged = ask("resync, unchanged", 3, resync(same.clone(), same.clone()))?;
    let changed = ask("resync, all changed", 4, resync(Arc::new(snapshot(args, 2)), same))?;
    let _ = stop.send(());
    drop((feed, channel, feeding, asking));
    server.block_on(serving)??;
    Ok(judge(args, seconds, &[alone, unchanged, changed]))
}

/// Two versions of all pods, to be sent in turn.
struct Resync<'a> {
    feeding: &'a Runtime,
    channel: &'a Channel,
    requests: [Requests; 2],
}

fn judge(args: &Args, seconds: f64, timed: &[Timed]) -> Outcome {
    let p99 = |timed: &Timed| timed.percentile(990);
    let alone = timed.first().map_or(0.0, p99);
    let added = timed.iter().map(|t| p99(t) - alone).fold(0.0, f64::max);
    let holds = added < ALLOWED_MS;
    if args.json {
        let rows = timed.iter().map(|t| {
            json!({
                "situation": t.name, "calls": t.micros.len(), "resyncs": t.resyncs, "seconds": t.seconds,
                "p50_ms": t.percentile(500), "p99_ms": p99(t), "p999_ms": t.percentile(999), "added_ms": p99(t) - alone,
            })
        });
        let rows: Vec<Value> = rows.collect();
        let report = json!({
            "nodes": args.nodes, "pods": args.pods, "first_snapshot_seconds": seconds, "situations": rows,
            "added_ms": added, "holds": holds,
        });
        return Outcome { text: report.to_string(), holds };
    }
    let mut text = format!("{} pods on {} nodes, first sent in {seconds:.1} s\n", args.pods, args.nodes);
    for t in timed {
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{:<20} {:>7} calls  p50 {:>6.3} ms  p99 {:>6.3} ms  p99.9 {:>6.3} ms  {} resyncs in {:.1} s",
            t.name,
            t.micros.len(),
            t.percentile(500),
            p99(t),
            t.percentile(999),
            t.resyncs,
            t.seconds,
        );
    }
    let verdict = if holds { "holds" } else { "does not hold" };
    let _ = write!(text, "a resync adds {added:.3} ms to the p99, less than {ALLOWED_MS} ms are allowed: {verdict}");
    Outcome { text, holds }
}

type Requests = Arc<Vec<pb::UpdatePodsRequest>>;

/// Times calls: the wanted number of them at least, and for as long as a resync goes on.
async fn ask(
    channel: &Channel,
    args: &Args,
    name: &'static str,
    epoch: u64,
    resync: Option<Resync<'_>>,
) -> Result<Timed, Failure> {
    let mut client = SchedulerServiceClient::new(channel.clone());
    let mut timed = Timed { name, micros: Vec::new(), resyncs: 0, seconds: 0.0 };
    let begun = Instant::now();
    let start = |n: usize| -> Option<JoinHandle<Result<f64, Failure>>> {
        let Resync { feeding, channel, requests } = resync.as_ref()?;
        let epoch = epoch * 1_000 + n as u64;
        Some(feeding.spawn(send_pods((*channel).clone(), requests[n % 2].clone(), epoch)))
    };
    let mut sending = start(0);
    loop {
        let i = timed.micros.len();
        let request = request(name, i, i * 7_919 % args.nodes);
        let asked = Instant::now();
        let answer = client.schedule(request).await?.into_inner();
        timed.micros.push(u64::try_from(asked.elapsed().as_micros())?);
        let Some(reservation) = answer.reservation else { return Err(answer.message.into()) };
        client.release_reservation(pb::ReleaseReservationRequest { reservation_id: reservation.id }).await?;
        let enough = timed.micros.len() >= args.calls;
        match &mut sending {
            None if enough => break,
            Some(handle) if handle.is_finished() => {
                handle.await??;
                timed.resyncs += 1;
                if enough {
                    break;
                }
                sending = start(timed.resyncs);
            }
            _ => {}
        }
    }
    timed.seconds = begun.elapsed().as_secs_f64();
    timed.micros.sort_unstable();
    Ok(timed)
}

fn request(name: &str, i: usize, node: usize) -> pb::ScheduleRequest {
    let name = format!("{}-{i}", name.replace([' ', ','], ""));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "asked", "uid": name, "labels": { "app": "asked" } },
        "spec": { "containers": [container(i)] },
    });
    pb::ScheduleRequest {
        pod: Some(pb::PodSource { source: Some(pb::pod_source::Source::ManifestJson(pod.to_string().into_bytes())) }),
        candidate_nodes: vec![format!("node-{node}")],
        ..Default::default()
    }
}

fn hello(epoch: u64) -> Control {
    Control::Hello(pb::Hello { source: "bench".to_owned(), epoch, incarnation: String::new() })
}

fn control(control: Control) -> Option<pb::FeedControl> {
    Some(pb::FeedControl { control: Some(control) })
}

fn snapshot_begin() -> Control {
    Control::SnapshotBegin(pb::SnapshotBegin { kinds: Vec::new() })
}

fn snapshot_end() -> Control {
    Control::SnapshotEnd(pb::SnapshotEnd {})
}

/// A whole snapshot but for its Hello, numbered from 2.
fn snapshot(args: &Args, version: usize) -> Vec<pb::UpdatePodsRequest> {
    let event = |i| pb::PodEvent {
        event: Some(pb::pod_event::Event::ManifestJson(pod(i, i % args.nodes, version).to_string().into_bytes())),
    };
    let request = |events, control| pb::UpdatePodsRequest { sequence: 0, events, control };
    let mut requests = vec![request(Vec::new(), control(snapshot_begin()))];
    for from in (0..args.pods).step_by(MAX_EVENTS) {
        requests.push(request((from..args.pods.min(from + MAX_EVENTS)).map(event).collect(), None));
    }
    requests.push(request(Vec::new(), control(snapshot_end())));
    requests.iter_mut().zip(2..).for_each(|(request, sequence)| request.sequence = sequence);
    requests
}

/// How long it took until all was acknowledged, in seconds.
async fn send_pods(channel: Channel, requests: Requests, epoch: u64) -> Result<f64, Failure> {
    let begun = Instant::now();
    let last = requests.last().map_or(1, |request| request.sequence);
    let first = pb::UpdatePodsRequest { sequence: 1, events: Vec::new(), control: control(hello(epoch)) };
    let rest = (0..requests.len()).map(move |i| requests[i].clone());
    let mut client = FeedServiceClient::new(channel);
    let mut acks = client.update_pods(tokio_stream::iter([first].into_iter().chain(rest))).await?.into_inner();
    let mut acknowledged = 0;
    while let Some(answer) = acks.next().await {
        acknowledged = check(answer?.ack)?;
    }
    if acknowledged == last {
        Ok(begun.elapsed().as_secs_f64())
    } else {
        Err(format!("the stream ended after request {acknowledged} of {last}").into())
    }
}

async fn send_nodes(channel: &Channel, nodes: impl Iterator<Item = Value>) -> Result<(), Failure> {
    let event =
        |node: Value| pb::NodeEvent { event: Some(pb::node_event::Event::ManifestJson(node.to_string().into_bytes())) };
    let events: Vec<pb::NodeEvent> = nodes.map(event).collect();
    let batches = events.chunks(MAX_EVENTS).map(|part| (part.to_vec(), None));
    let before = [hello(1), snapshot_begin()].map(|c| (Vec::new(), control(c)));
    let after = [(Vec::new(), control(snapshot_end()))];
    let requests = before.into_iter().chain(batches).chain(after).zip(1..);
    let requests: Vec<pb::UpdateNodesRequest> =
        requests.map(|((events, control), sequence)| pb::UpdateNodesRequest { sequence, events, control }).collect();
    let mut client = FeedServiceClient::new(channel.clone());
    let mut acks = client.update_nodes(tokio_stream::iter(requests)).await?.into_inner();
    while let Some(answer) = acks.next().await {
        check(answer?.ack)?;
    }
    Ok(())
}

/// The sequence that an ack reaches.
fn check(ack: Option<pb::FeedAck>) -> Result<u64, Failure> {
    let ack = ack.unwrap_or_default();
    match ack.rejections.first() {
        Some(rejection) => Err(rejection.message.clone().into()),
        None => Ok(ack.sequence),
    }
}

fn node(i: usize) -> Value {
    let name = format!("node-{i}");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
            "labels": { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{}", i % 3) },
        },
        "status": { "allocatable": { "cpu": "64", "memory": "256Gi", "pods": "110" } },
    })
}

fn container(i: usize) -> Value {
    json!({
        "name": "main", "image": format!("registry.example/app:{}", i % 100),
        "resources": { "requests": { "cpu": "100m", "memory": "128Mi" }, "limits": { "memory": "256Mi" } },
    })
}

/// A pod as a controller sees it in a list: some 1 KB, with the parts that Berth doesn't read.
fn pod(i: usize, node: usize, version: usize) -> Value {
    let (app, name) = (i % 2_000, format!("app-{}-{i}", i % 2_000));
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": format!("ns-{}", app % 100), "uid": format!("uid-{name}"),
            "resourceVersion": (version * 1_000_000 + i).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "app": format!("app-{app}"), "pod-template-hash": format!("{app:08x}"), "version": version.to_string() },
            "annotations": { "example.com/checksum": format!("{app:064x}") },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("app-{app}"),
                "uid": format!("rs-{app}"), "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": {
            "nodeName": format!("node-{node}"), "containers": [container(app)], "restartPolicy": "Always",
            "serviceAccountName": "default", "schedulerName": "default-scheduler",
            "tolerations": [
                { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
                { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
            ],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ],
        },
    })
}
