//! HighNodeUtilization, planned: underutilized nodes are emptied, the emptiest first, and each as a whole.
//!
//! A node is emptied only if all of its pods, but those of the node itself (DaemonSets, static pods), would land on nodes
//! that stay: neither underutilized nor cordoned. Otherwise none of them goes, and the answer says which pod keeps the
//! node. Limits may spread the emptying over several requests. A node without one of the thresholded resources is no
//! candidate.

use std::collections::BTreeMap;

use super::draft::{Draft, Flow};
use super::measure::{Tracker, is_active};
use super::stage::Move;
use crate::engine::EngineError;
use crate::evict::evictor::belongs_to_node;
use crate::evict::outcome::{LeftAlone, NoGain};
use crate::evict::policy::{EvictionMode, HighNodeUtilizationArgs, UsageSource};
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::strategies::Candidate;
use crate::evict::strategies::utilization::{NodeUsage, requests_of_node, tracked, usage_of_pod};
use crate::model::{Pod, Str};

#[derive(Debug, Clone)]
struct Place {
    load: NodeUsage,
    /// Pods that could go.
    pods: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Packing<'a> {
    args: &'a HighNodeUtilizationArgs,
    names: Vec<Str>,
    nodes: BTreeMap<NodeId, Place>,
    value: i64,
}

fn is_movable(pod: &Pod) -> bool {
    is_active(pod) && !belongs_to_node(pod)
}

impl<'a> Packing<'a> {
    pub(super) fn new(args: &'a HighNodeUtilizationArgs, scene: &Scene, nodes: &[NodeId]) -> Self {
        let names = tracked(&args.thresholds);
        let place = |node: &NodeId| {
            let active = scene.node(*node).active.iter();
            let pods = active.filter(|id| is_movable(&scene.pod(**id).pod)).count();
            let load = requests_of_node(scene, *node, &names);
            (*node, Place { load, pods: i64::try_from(pods).unwrap_or(i64::MAX) })
        };
        let nodes = scene.cancel.guard(nodes).map(place).collect();
        let mut this = Self { args, names, nodes, value: 0 };
        this.value = this.nodes.values().map(|place| this.pods_if_low(place)).sum();
        this
    }

    fn is_low(&self, place: &Place) -> bool {
        let has_all = self.args.thresholds.keys().all(|name| place.load.capacity.contains_key(name));
        has_all && place.load.is_under(&self.args.thresholds)
    }

    fn pods_if_low(&self, place: &Place) -> i64 {
        if self.is_low(place) { place.pods } else { 0 }
    }

    pub(super) fn value(&self) -> i64 {
        self.value
    }

    fn after(&self, scene: &Scene, moved: &Move) -> BTreeMap<NodeId, Place> {
        let mut changed = BTreeMap::new();
        let usage = usage_of_pod(scene, moved.id, &self.names, UsageSource::Requests).unwrap_or_default();
        if let Some(place) = self.nodes.get(&moved.from).filter(|_| is_active(&moved.old)) {
            let mut place = place.clone();
            place.load.take(&usage);
            place.pods -= i64::from(is_movable(&moved.old));
            changed.insert(moved.from, place);
        }
        if let Some(place) = self.nodes.get(&moved.to).filter(|_| is_active(&moved.new)) {
            let place = changed.entry(moved.to).or_insert_with(|| place.clone());
            for (name, amount) in &usage {
                *place.load.usage.entry(name.clone()).or_default() += *amount;
            }
            place.pods += i64::from(is_movable(&moved.new));
        }
        changed
    }

    pub(super) fn change(&self, scene: &Scene, moved: &Move) -> i64 {
        let changed = self.after(scene, moved);
        changed.iter().map(|(id, place)| self.pods_if_low(place) - self.pods_if_low(&self.nodes[id])).sum()
    }

    pub(super) fn apply(&mut self, scene: &Scene, moved: &Move) {
        let changed = self.after(scene, moved);
        for (id, place) in changed {
            self.value += self.pods_if_low(&place) - self.pods_if_low(&self.nodes[&id]);
            self.nodes.insert(id, place);
        }
    }

    pub(super) fn objection(&self, scene: &Scene, moved: &Move) -> Option<NoGain> {
        let stays = |place: &Place| !self.is_low(place) && !scene.node(moved.to).node.unschedulable;
        let takes = self.nodes.get(&moved.to).is_some_and(stays);
        (!takes).then_some(NoGain::NotADestination)
    }

    /// The nodes to empty, the emptiest first.
    fn low_nodes(&self) -> Vec<NodeId> {
        let low = self.nodes.iter().filter(|(_, place)| self.is_low(place));
        let mut nodes: Vec<(i64, NodeId)> = low.map(|(id, place)| (self.fullness(place), *id)).collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    /// Of its fullest resource, in millionths.
    fn fullness(&self, place: &Place) -> i64 {
        let part = |name: &Str| {
            let (used, capacity) = (place.load.usage.get(name)?, place.load.capacity.get(name)?);
            Some(i64::try_from(*used * 1_000_000 / (*capacity).max(1)).unwrap_or(i64::MAX))
        };
        self.args.thresholds.keys().filter_map(part).max().unwrap_or(0)
    }

    /// OnlyThresholdingResources leaves pods where they are that name none of the resources.
    fn is_meant(&self, pod: &Pod) -> bool {
        let mut containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        !self.args.eviction_modes.contains(&EvictionMode::OnlyThresholdingResources)
            || containers.any(|c| self.args.thresholds.keys().any(|name| c.resources.requests.contains_key(name)))
    }
}

pub(super) fn propose(draft: &mut Draft<'_, '_>, rule: usize) -> Result<(), EngineError> {
    let packing = tracker(draft, rule);
    let low = packing.low_nodes();
    let enough = u64::try_from(low.len()).is_ok_and(|n| n > packing.args.number_of_nodes);
    if !enough || low.len() == packing.nodes.len() {
        return Ok(());
    }
    for node in low {
        // What landed there in the meantime may have made it one that stays.
        let still_low = tracker(draft, rule).nodes.get(&node).is_some_and(|place| tracker(draft, rule).is_low(place));
        if !still_low {
            continue;
        }
        let Some(pods) = emptying(draft, rule, node)? else { continue };
        for id in pods {
            match draft.consider(rule, Candidate::new(id, Reason::Underutilized))? {
                Flow::Next => {}
                Flow::NextNode => break,
                Flow::Stop => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The pods of a node in the order in which they leave, if all of them can.
fn emptying(draft: &mut Draft<'_, '_>, rule: usize, node: NodeId) -> Result<Option<Vec<PodId>>, EngineError> {
    let scene = &draft.stage.scene;
    let mut pods: Vec<PodId> = scene.node(node).active.clone();
    pods.retain(|id| is_movable(&scene.pod(*id).pod));
    pods.sort_by_key(|id| draft.importance(*id));
    let mut leaving = Vec::with_capacity(pods.len());
    let mut blocked_by = None;
    for id in pods {
        draft.check()?;
        let pod = draft.stage.scene.pod(id).pod.clone();
        let args = tracker(draft, rule).args;
        if !tracker(draft, rule).is_meant(&pod) {
            draft.leave_alone(rule, id, LeftAlone::NoThresholdedRequest);
        } else if args.excluded_namespaces.contains(&pod.meta.namespace) {
            draft.leave_alone(rule, id, LeftAlone::NamespaceExcluded);
            blocked_by.get_or_insert(id);
        } else if draft.admits(rule, id) {
            leaving.push(id);
        } else {
            blocked_by.get_or_insert(id);
        }
    }
    if blocked_by.is_none() {
        blocked_by = draft.first_that_stays(rule, &leaving)?;
    }
    let Some(blocker) = blocked_by else { return Ok(Some(leaving)) };
    let name: Str = draft.stage.scene.pod(blocker).pod.meta.key().into();
    for id in leaving.into_iter().filter(|id| *id != blocker) {
        draft.leave_alone(rule, id, LeftAlone::NodeNotEmptied { blocked_by: name.clone() });
    }
    Ok(None)
}

fn tracker<'d, 'a>(draft: &'d Draft<'_, 'a>, rule: usize) -> &'d Packing<'a> {
    match &draft.stage.trackers[rule] {
        Tracker::Packing(packing) => packing,
        _ => unreachable!("the strategy's own tracker"),
    }
}
