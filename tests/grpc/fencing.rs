//! Epochs: which stream speaks for a source, and what that means for versions of objects.

use berth::api::pb;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::*;

fn nodes(sequence: u64, manifests: &[Value]) -> pb::UpdateNodesRequest {
    pb::UpdateNodesRequest { sequence, events: manifests.iter().map(node_manifest).collect(), control: None }
}

fn versioned(name: &str, cpu: &str, version: &str) -> Value {
    let mut manifest = node(name, cpu);
    manifest["metadata"]["resourceVersion"] = json!(version);
    manifest
}

/// The status that a stream ends with, whatever acks come before.
async fn end(stream: &mut NodeStream) -> tonic::Status {
    loop {
        if let Err(status) = stream.ack().await {
            return status;
        }
    }
}

#[tokio::test]
async fn a_higher_epoch_ends_the_older_stream_even_while_it_is_silent() {
    let berth = Berth::start().await;
    let mut old = NodeStream::open(&berth).await;
    old.control(1, hello_of("informer", 1)).await;
    old.acks_to(1).await;
    let mut new = NodeStream::open(&berth).await;
    new.control(1, hello_of("informer", 2)).await;
    new.acks_to(1).await;
    let status = within(end(&mut old)).await;
    assert_eq!(status.code(), Code::Aborted, "{status}");
    new.send(nodes(2, &[node("n1", "1")])).await;
    assert_eq!(new.acks_to(2).await.applied, 1);
}

#[tokio::test]
async fn of_equal_epochs_the_newest_stream_wins() {
    let berth = Berth::start().await;
    let mut old = NodeStream::open(&berth).await;
    old.control(1, hello_of("informer", 1)).await;
    old.acks_to(1).await;
    let mut new = NodeStream::open(&berth).await;
    new.control(1, hello_of("informer", 1)).await;
    new.acks_to(1).await;
    assert_eq!(within(end(&mut old)).await.code(), Code::Aborted);
}

#[tokio::test]
async fn a_lower_epoch_is_refused_also_after_the_higher_one_has_gone() {
    let berth = Berth::start().await;
    let mut new = NodeStream::open(&berth).await;
    new.control(1, hello_of("informer", 2)).await;
    new.acks_to(1).await;
    drop(new);
    let mut old = NodeStream::open(&berth).await;
    old.control(1, hello_of("informer", 1)).await;
    assert_eq!(within(end(&mut old)).await.code(), Code::Aborted);
    let mut other = NodeStream::open(&berth).await;
    other.control(1, hello_of("other", 1)).await;
    other.acks_to(1).await;
}

#[tokio::test]
async fn streams_of_other_kinds_and_without_hello_are_not_fenced() {
    let berth = Berth::start().await;
    let mut node_stream = NodeStream::open(&berth).await;
    node_stream.control(1, hello_of("informer", 1)).await;
    node_stream.acks_to(1).await;
    let mut pod_stream = PodStream::open(&berth).await;
    pod_stream.control(1, hello_of("informer", 7)).await;
    pod_stream.acks_to(1).await;
    assert_eq!(berth.feed_nodes(vec![node_manifest(&node("by-hand", "1"))]).await.applied, 1);
    node_stream.send(nodes(2, &[node("n1", "1")])).await;
    assert_eq!(node_stream.acks_to(2).await.applied, 1);
}

#[tokio::test]
async fn object_streams_share_a_source_while_their_kinds_differ() {
    let berth = Berth::start().await;
    let mut services = ObjectStream::open(&berth).await;
    services.control(1, hello_of("informer", 1)).await;
    services.control(2, snapshot_begin(&["Service"])).await;
    services.acks_to(2).await;
    let mut budgets = ObjectStream::open(&berth).await;
    budgets.control(1, hello_of("informer", 1)).await;
    budgets.control(2, snapshot_begin(&["PodDisruptionBudget"])).await;
    budgets.acks_to(2).await;
    services.control(3, snapshot_end()).await;
    services.acks_to(3).await;
    let mut again = ObjectStream::open(&berth).await;
    again.control(1, hello_of("informer", 1)).await;
    again.control(2, snapshot_begin(&["Service"])).await;
    again.acks_to(2).await;
    let ended = within(async {
        loop {
            if let Err(status) = services.ack().await {
                return status;
            }
        }
    });
    assert_eq!(ended.await.code(), Code::Aborted);
    budgets.control(3, snapshot_end()).await;
    budgets.acks_to(3).await;
}

#[tokio::test]
async fn after_an_etcd_restore_a_new_epoch_takes_versions_that_went_back() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    stream.control(1, hello_of("informer", 1)).await;
    stream.send(nodes(2, &[versioned("n1", "1", "1000")])).await;
    stream.send(nodes(3, &[versioned("n1", "2", "999")])).await;
    let ack = stream.acks_to(3).await;
    assert_eq!(ack.stale, 1, "{ack:?}");
    let mut restored = NodeStream::open(&berth).await;
    restored.control(1, hello_of("informer", 2)).await;
    restored.send(nodes(2, &[versioned("n1", "3", "17")])).await;
    let ack = restored.acks_to(2).await;
    assert_eq!((ack.applied, ack.stale), (1, 0), "{ack:?}");
    let rows = berth.inspect().list_nodes(pb::ListNodesRequest::default()).await.unwrap().into_inner().nodes;
    assert_eq!(rows[0].allocatable["cpu"], 3_000);
}
