//! The demo's feeding client: whole snapshots, and changes after them.

use tokio_stream::StreamExt;
use tonic::transport::Channel;

use super::Failure;
use crate::api::pb;
use crate::api::pb::feed_control::Control;
use crate::api::pb::feed_service_client::FeedServiceClient;

/// Objects a feed batch may have.
const BATCH: usize = crate::service::feed::MAX_EVENTS;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// All there is: what isn't in it is gone.
    Snapshot,
    /// What is different.
    Changes,
}

pub(super) async fn nodes(channel: &Channel, sent: Sent, nodes: Vec<pb::Node>) -> Result<(), Failure> {
    let events = nodes.into_iter().map(|node| pb::NodeEvent { event: Some(pb::node_event::Event::Node(node)) });
    let requests: Vec<pb::UpdateNodesRequest> = batches(sent, events.collect())
        .into_iter()
        .map(|(sequence, events, control)| pb::UpdateNodesRequest { sequence, events, control })
        .collect();
    let mut client = FeedServiceClient::new(channel.clone());
    let mut acks = client.update_nodes(tokio_stream::iter(requests)).await?.into_inner();
    while let Some(answer) = acks.next().await {
        check(answer?.ack)?;
    }
    Ok(())
}

pub(super) async fn pods(channel: &Channel, sent: Sent, events: Vec<pb::PodEvent>) -> Result<(), Failure> {
    let requests: Vec<pb::UpdatePodsRequest> = batches(sent, events)
        .into_iter()
        .map(|(sequence, events, control)| pb::UpdatePodsRequest { sequence, events, control })
        .collect();
    let mut client = FeedServiceClient::new(channel.clone());
    let mut acks = client.update_pods(tokio_stream::iter(requests)).await?.into_inner();
    while let Some(answer) = acks.next().await {
        check(answer?.ack)?;
    }
    Ok(())
}

pub(super) fn upserts(pods: impl IntoIterator<Item = pb::Pod>) -> Vec<pb::PodEvent> {
    let event = |pod| pb::PodEvent { event: Some(pb::pod_event::Event::Pod(pod)) };
    pods.into_iter().map(event).collect()
}

pub(super) fn deletes<'a>(pods: impl IntoIterator<Item = &'a pb::Pod>) -> Vec<pb::PodEvent> {
    let event = |pod: &pb::Pod| {
        let meta = pod.metadata.clone().unwrap_or_default();
        let gone = pb::ObjectRef { kind: "Pod".to_owned(), namespace: meta.namespace, name: meta.name, uid: meta.uid };
        pb::PodEvent { event: Some(pb::pod_event::Event::Delete(gone)) }
    };
    pods.into_iter().map(event).collect()
}

fn control(control: Control) -> Option<pb::FeedControl> {
    Some(pb::FeedControl { control: Some(control) })
}

/// The controls and batches of a stream, numbered from 1.
fn batches<E>(sent: Sent, events: Vec<E>) -> Vec<(u64, Vec<E>, Option<pb::FeedControl>)> {
    let hello = pb::Hello { source: "demo".to_owned(), epoch: 1, incarnation: String::new() };
    let mut requests = vec![(control(Control::Hello(hello)), Vec::new())];
    if sent == Sent::Snapshot {
        requests.push((control(Control::SnapshotBegin(pb::SnapshotBegin { kinds: Vec::new() })), Vec::new()));
    }
    let mut events = events.into_iter().peekable();
    while events.peek().is_some() {
        requests.push((None, events.by_ref().take(BATCH).collect()));
    }
    if sent == Sent::Snapshot {
        requests.push((control(Control::SnapshotEnd(pb::SnapshotEnd {})), Vec::new()));
    }
    (1..).zip(requests).map(|(sequence, (control, events))| (sequence, events, control)).collect()
}

fn check(ack: Option<pb::FeedAck>) -> Result<(), Failure> {
    match ack.as_ref().and_then(|ack| ack.rejections.first()) {
        Some(rejection) => Err(rejection.message.clone().into()),
        None => Ok(()),
    }
}
