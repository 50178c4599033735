//! Snapshots, and when Berth is ready.

use berth::api::pb;
use serde_json::Value;
use tonic::Code;

use crate::support::*;

fn nodes(sequence: u64, manifests: &[Value]) -> pb::UpdateNodesRequest {
    pb::UpdateNodesRequest { sequence, events: manifests.iter().map(node_manifest).collect(), control: None }
}

#[tokio::test]
async fn at_the_end_of_a_snapshot_what_was_not_sent_again_is_removed() {
    let berth = Berth::with_nodes(&[node("by-hand", "1")]).await;
    let mut stream = NodeStream::open(&berth).await;
    stream.control(1, hello("informer")).await;
    stream.control(2, snapshot_begin(&[])).await;
    stream.send(nodes(3, &[node("n1", "1"), node("n2", "1")])).await;
    stream.control(4, snapshot_end()).await;
    assert_eq!(stream.acks_to(4).await.removed, 0);

    stream.control(5, snapshot_begin(&["Node"])).await;
    stream.send(nodes(6, &[node("n2", "1"), node("n3", "1")])).await;
    let before = stream.acks_to(6).await;
    assert_eq!((before.applied, before.removed), (2, 0));
    assert_eq!(berth.node_names().await, ["by-hand", "n1", "n2", "n3"], "visible at once, nothing gone yet");
    stream.control(7, snapshot_end()).await;
    assert_eq!(stream.acks_to(7).await.removed, 1);
    // Another source's objects are none of this one's business.
    assert_eq!(berth.node_names().await, ["by-hand", "n2", "n3"]);
}

#[tokio::test]
async fn a_cut_snapshot_removes_nothing() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    stream.control(1, hello("informer")).await;
    stream.send(nodes(2, &[node("n1", "1"), node("n2", "1")])).await;
    stream.control(3, snapshot_begin(&[])).await;
    stream.send(nodes(4, &[node("n2", "1")])).await;
    stream.acks_to(4).await;
    drop(stream);
    eventually(async || {
        let sources = berth.cluster().await.view.unwrap().sources;
        sources.iter().all(|source| !source.connected)
    })
    .await;
    assert_eq!(berth.node_names().await, ["n1", "n2"]);
    assert!(!berth.cluster().await.ready, "the source said hello, so its snapshot is waited for");
}

#[tokio::test]
async fn snapshots_out_of_place_are_refused() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    stream.control(1, snapshot_begin(&[])).await;
    assert_eq!(stream.ack().await.unwrap_err().code(), Code::InvalidArgument, "without hello");

    for controls in [&[snapshot_end()][..], &[snapshot_begin(&[]), snapshot_begin(&[])], &[snapshot_begin(&["Pod"])]] {
        let mut stream = NodeStream::open(&berth).await;
        stream.control(1, hello("a")).await;
        for (sequence, control) in (2..).zip(controls) {
            stream.control(sequence, control.clone()).await;
        }
        let status = loop {
            if let Err(status) = stream.ack().await {
                break status;
            }
        };
        assert_eq!(status.code(), Code::InvalidArgument, "{controls:?}");
    }
    let mut stream = ObjectStream::open(&berth).await;
    stream.control(1, hello("a")).await;
    stream.control(2, snapshot_begin(&[])).await;
    while let Ok(ack) = stream.ack().await {
        assert!(ack.sequence < 2, "objects are of many kinds, so some must be named");
    }
}

#[tokio::test]
async fn after_hello_decisions_wait_for_the_snapshots_of_nodes_and_pods() {
    let berth = Berth::start().await;
    let ready = async || berth.schedule(ask(&pod("p", "100m"))).await.map_err(|status| status.code());
    assert_eq!(ready().await.unwrap_err(), Code::Unavailable, "nothing is known");
    let mut node_stream = NodeStream::open(&berth).await;
    node_stream.control(1, hello("informer")).await;
    node_stream.control(2, snapshot_begin(&[])).await;
    node_stream.send(nodes(3, &[node("n1", "1")])).await;
    node_stream.control(4, snapshot_end()).await;
    node_stream.acks_to(4).await;
    assert_eq!(ready().await.unwrap_err(), Code::Unavailable, "pods are still to come");
    assert!(berth.cluster().await.not_ready_reason.contains("Pod"));
    let mut pod_stream = PodStream::open(&berth).await;
    pod_stream.control(1, hello("informer")).await;
    pod_stream.control(2, snapshot_begin(&[])).await;
    pod_stream.control(3, snapshot_end()).await;
    let ack = pod_stream.acks_to(3).await;
    let placed = ready().await.unwrap();
    let view = placed.view.unwrap();
    assert!(view.revision >= ack.revision && !view.manual_mode);
    let source = view.sources.iter().find(|s| s.source == "informer").unwrap();
    assert_eq!(
        (source.connected, source.complete_kinds.as_slice()),
        (true, &["Node".to_owned(), "Pod".to_owned()][..])
    );
}

#[tokio::test]
async fn a_snapshot_cut_at_any_message_is_completed_by_the_next() {
    let names = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let batches: Vec<Vec<Value>> = names("n", 6).chunks(2).map(|c| c.iter().map(|n| node(n, "1")).collect()).collect();
    // Hello, begin, the batches, end: after each of them the stream is cut once.
    for messages in 0..=batches.len() + 3 {
        let berth = Berth::start().await;
        let mut first = NodeStream::open(&berth).await;
        first.control(1, hello("informer")).await;
        first.send(nodes(2, &[node("old", "1"), node("n0", "4")])).await;
        first.acks_to(2).await;
        drop(first);
        let mut cut = NodeStream::open(&berth).await;
        let mut sequence = 0;
        for message in 0..messages {
            sequence += 1;
            match message {
                0 => cut.control(sequence, hello("informer")).await,
                1 => cut.control(sequence, snapshot_begin(&[])).await,
                at if at < batches.len() + 2 => cut.send(nodes(sequence, &batches[at - 2])).await,
                _ => cut.control(sequence, snapshot_end()).await,
            }
        }
        if messages > 0 {
            cut.acks_to(sequence).await;
        }
        drop(cut);
        let complete = messages == batches.len() + 3;
        assert_eq!(berth.node_names().await.contains(&"old".to_owned()), !complete, "cut after {messages}");
        let mut resumed = NodeStream::open(&berth).await;
        resumed.control(1, hello("informer")).await;
        resumed.control(2, snapshot_begin(&[])).await;
        for (batch, sequence) in batches.iter().zip(3..) {
            resumed.send(nodes(sequence, batch)).await;
        }
        resumed.control(6, snapshot_end()).await;
        resumed.acks_to(6).await;
        assert_eq!(berth.node_names().await, names("n", 6), "cut after {messages}");
    }
}
