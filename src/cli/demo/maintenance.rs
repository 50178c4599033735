//! A round of maintenance as clients of Berth carry it out: some nodes are cordoned, their pods evicted and placed elsewhere,
//! and the nodes come back empty. Each evicted pod's owner makes another, which asks for a node like any pod.

use std::collections::BTreeSet;

use tonic::transport::Channel;

use super::feed::{self, Sent};
use super::{Failure, bind, schedule_all, trace};
use crate::api::pb;

/// One node in so many is maintained. The cluster is nearly full: the others take most of the pods, not all.
const EVERY: usize = 25;
/// What `kubectl cordon` puts on a node.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Maintenance {
    pub(super) nodes: usize,
    /// Pods that were evicted.
    pub(super) evicted: usize,
    /// Those of them that fitted nowhere until the nodes were back.
    pub(super) waited: usize,
    /// Those that fit nowhere still.
    pub(super) waiting: usize,
}

pub(super) async fn run(channel: &Channel, nodes: &[pb::Node], bound: &[pb::Pod]) -> Result<Maintenance, Failure> {
    let chosen: Vec<&pb::Node> = nodes.iter().step_by(EVERY).collect();
    let names: BTreeSet<&str> = chosen.iter().filter_map(|n| n.metadata.as_ref()).map(|m| m.name.as_str()).collect();
    feed::nodes(channel, Sent::Changes, chosen.iter().copied().map(cordoned).collect()).await?;

    let is_there = |pod: &&pb::Pod| pod.spec.as_ref().is_some_and(|spec| names.contains(spec.node_name.as_str()));
    let evicted: Vec<&pb::Pod> = bound.iter().filter(is_there).collect();
    feed::pods(channel, Sent::Changes, feed::deletes(evicted.iter().copied())).await?;
    let next: Vec<pb::Pod> = evicted.iter().copied().map(successor).collect();
    let without = place(channel, next).await?;

    feed::nodes(channel, Sent::Changes, chosen.into_iter().cloned().collect()).await?;
    let waited = without.len();
    let waiting = place(channel, without).await?.len();
    Ok(Maintenance { nodes: names.len(), evicted: evicted.len(), waited, waiting })
}

/// Asks for a node for each and binds those that get one; the others.
async fn place(channel: &Channel, pods: Vec<pb::Pod>) -> Result<Vec<pb::Pod>, Failure> {
    let answers = schedule_all(channel, &pods).await?;
    let (mut bound, mut without) = (Vec::new(), Vec::new());
    for (pod, answer) in pods.into_iter().zip(answers) {
        match answer.outcome() {
            pb::Outcome::Placed => bound.push(bind(&pod, &answer.node)),
            _ => without.push(pod),
        }
    }
    feed::pods(channel, Sent::Changes, feed::upserts(bound)).await?;
    Ok(without)
}

fn cordoned(node: &pb::Node) -> pb::Node {
    let taint = pb::Taint { key: CORDONED.to_owned(), effect: "NoSchedule".to_owned(), ..Default::default() };
    let mut node = node.clone();
    let spec = node.spec.get_or_insert_default();
    spec.unschedulable = true;
    spec.taints.push(taint);
    node
}

/// The pod that the owner makes in place of an evicted one.
fn successor(pod: &pb::Pod) -> pb::Pod {
    let mut next = trace::renamed(pod, &format!("{}-again", trace::name(pod)));
    if let Some(spec) = &mut next.spec {
        spec.node_name.clear();
    }
    next.status = None;
    next
}
