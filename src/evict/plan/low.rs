//! LowNodeUtilization, planned: no node is loaded over its target.
//!
//! A pod goes only if it lowers a resource that is over target, and only to a node that is under the thresholds when the
//! strategy starts and stays within the targets with it. Nodes that are furthest over go first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::draft::{Draft, Flow};
use super::measure::{Tracker, is_active};
use super::stage::Move;
use crate::engine::EngineError;
use crate::evict::outcome::{LeftAlone, NoGain};
use crate::evict::policy::{LowNodeUtilizationArgs, Thresholds, UsageSource};
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::strategies::low_node_utilization::{measure, over_target};
use crate::evict::strategies::utilization::{NodeUsage, Usage, tracked, usage_of_pod};
use crate::evict::strategies::{Candidate, Context, StrategyError};
use crate::model::Str;
use crate::model::resources::PODS;

/// What a whole node is in the amount.
const NODE: i128 = 1_000_000;
/// The most that one node counts for. Whoever promises that much of a node's capacity says nothing more by a greater number,
/// and sums over all nodes stay numbers.
const MOST: i128 = NODE * 1_000_000;

#[derive(Debug, Clone)]
pub(super) struct Load<'a> {
    args: &'a LowNodeUtilizationArgs,
    source: UsageSource,
    names: Vec<Str>,
    nodes: BTreeMap<NodeId, NodeUsage>,
    /// Those that were under the thresholds when the strategy began.
    destinations: BTreeSet<NodeId>,
    value: i64,
}

impl<'a> Load<'a> {
    /// # Errors
    /// The metrics that the arguments ask for aren't there.
    pub(super) fn new(args: &'a LowNodeUtilizationArgs, context: &Context<'_>) -> Result<Self, StrategyError> {
        let source = args.source(context)?;
        let names = tracked(&args.thresholds);
        let usage =
            context.scene.cancel.guard(context.nodes).map(|node| Ok((*node, measure(context, *node, &names, source)?)));
        let nodes = usage.collect::<Result<BTreeMap<_, _>, StrategyError>>()?;
        let mut load = Self { args, source, names, nodes, destinations: BTreeSet::new(), value: 0 };
        load.value = load.total(&BTreeMap::new());
        Ok(load)
    }

    /// Whether a request has to read usage anew, since what nodes report doesn't follow the plan.
    pub(super) fn is_reported(&self) -> bool {
        self.source != UsageSource::Requests
    }

    pub(super) fn value(&self) -> i64 {
        self.value
    }

    fn levels(&self, changed: &BTreeMap<NodeId, NodeUsage>) -> (Thresholds, Thresholds) {
        let current = |(id, node)| changed.get(id).unwrap_or(node);
        self.args.levels(self.nodes.iter().map(current))
    }

    /// The amount with some nodes as they would be.
    fn total(&self, changed: &BTreeMap<NodeId, NodeUsage>) -> i64 {
        let (_, high) = self.levels(changed);
        self.nodes.iter().map(|(id, node)| excess(changed.get(id).unwrap_or(node), &high)).sum()
    }

    /// The two nodes of a move, those of the policy.
    fn after(&self, scene: &Scene, moved: &Move) -> BTreeMap<NodeId, NodeUsage> {
        let mut changed = BTreeMap::new();
        let usage = self.usage(scene, moved.id);
        if let Some(node) = self.nodes.get(&moved.from).filter(|_| is_active(&moved.old)) {
            let mut node = node.clone();
            node.take(&usage);
            changed.insert(moved.from, node);
        }
        if let Some(node) = self.nodes.get(&moved.to).filter(|_| is_active(&moved.new)) {
            let node = changed.entry(moved.to).or_insert_with(|| node.clone());
            for (name, amount) in &usage {
                *node.usage.entry(name.clone()).or_default() += *amount;
            }
        }
        changed
    }

    /// One whose usage nobody reports counts as a pod and nothing else.
    fn usage(&self, scene: &Scene, id: PodId) -> Usage {
        let usage = usage_of_pod(scene, id, &self.names, self.source);
        usage.unwrap_or_else(|| Usage::from([(PODS.into(), 1)]))
    }

    pub(super) fn change(&self, scene: &Scene, moved: &Move) -> i64 {
        let changed = self.after(scene, moved);
        if self.args.use_deviation_thresholds {
            return self.total(&changed) - self.value;
        }
        let high = &self.args.target_thresholds;
        let of = |(id, node): (&NodeId, &NodeUsage)| excess(node, high) - excess(&self.nodes[id], high);
        changed.iter().map(of).sum()
    }

    pub(super) fn apply(&mut self, scene: &Scene, moved: &Move) {
        self.value += self.change(scene, moved);
        for (id, node) in self.after(scene, moved) {
            self.nodes.insert(id, node);
        }
    }

    pub(super) fn objection(&self, scene: &Scene, moved: &Move) -> Option<NoGain> {
        if !self.destinations.contains(&moved.to) {
            return Some(NoGain::NotUnderutilized);
        }
        let changed = self.after(scene, moved);
        let (_, high) = self.levels(&changed);
        changed.get(&moved.to).is_some_and(|node| is_over(node, &high)).then_some(NoGain::OverTarget)
    }

    /// Whether taking a pod away lowers what is over on its node, and some destination has room for it under target.
    fn is_worth_asking(&self, scene: &Scene, id: PodId, high: &Thresholds) -> Result<(), LeftAlone> {
        let usage = self.usage(scene, id);
        let node = &self.nodes[&scene.pod(id).node];
        let caps = node.caps(high);
        let is_over = |name: &Str| node.usage.get(name) > caps.get(name);
        if !high.keys().any(|name| is_over(name) && usage.get(name).is_some_and(|amount| *amount > 0)) {
            return Err(LeftAlone::NoThresholdedRequest);
        }
        let has_room = |destination: &NodeId| {
            let node = &self.nodes[destination];
            let caps = node.caps(high);
            high.keys().all(|name| {
                let of = |list: &Usage| list.get(name).copied().unwrap_or(0);
                of(&node.usage) + of(&usage) <= of(&caps)
            })
        };
        if scene.cancel.guard(&self.destinations).any(has_room) { Ok(()) } else { Err(LeftAlone::NoRoomUnderTarget) }
    }
}

/// How far a node is over target, resources added up.
fn excess(node: &NodeUsage, high: &Thresholds) -> i64 {
    let caps = node.caps(high);
    let over = |name: &Str| {
        let (used, cap) = (node.usage.get(name)?, caps.get(name)?);
        let capacity = node.capacity.get(name).filter(|capacity| **capacity > 0)?;
        Some((used - cap).max(0) * NODE / *capacity)
    };
    let total: i128 = high.keys().filter_map(over).sum();
    i64::try_from(total.min(MOST)).unwrap_or(i64::MAX)
}

fn is_over(node: &NodeUsage, high: &Thresholds) -> bool {
    let caps = node.caps(high);
    high.keys().any(|name| node.usage.get(name) > caps.get(name))
}

/// How far over target by its worst resource, in parts of the target.
fn worst(node: &NodeUsage, high: &Thresholds) -> i64 {
    let caps = node.caps(high);
    let part = |name: &Str| {
        let (used, cap) = (node.usage.get(name)?, caps.get(name)?);
        Some(i64::try_from(*used * NODE / (*cap).max(1)).unwrap_or(i64::MAX))
    };
    high.keys().filter_map(part).max().unwrap_or(0)
}

pub(super) fn propose(draft: &mut Draft<'_, '_>, rule: usize) -> Result<(), EngineError> {
    let Some((over, high)) = begin(draft, rule) else { return Ok(()) };
    for node in over {
        let args = tracker(draft, rule).args;
        let mut pods: Vec<PodId> = draft.stage.scene.node(node).active.clone();
        pods.sort_by_key(|id| draft.importance(*id));
        let mut moved = 0;
        for id in pods {
            draft.check()?;
            let load = tracker(draft, rule);
            if !is_over(&load.nodes[&node], &high) {
                break;
            }
            let reason = over_target(&load.nodes[&node], &high);
            if !draft.admits(rule, id) {
                continue;
            }
            let load = tracker(draft, rule);
            let excluded = args.excluded_namespaces.contains(&draft.stage.scene.pod(id).pod.meta.namespace);
            let no_metrics = || usage_of_pod(&draft.stage.scene, id, &load.names, load.source).is_none();
            let held_back = if excluded {
                Some(LeftAlone::NamespaceExcluded)
            } else if no_metrics() {
                Some(LeftAlone::NoMetrics)
            } else if let Some(limit) = args.max_per_node.filter(|limit| moved >= *limit) {
                Some(LeftAlone::StrategyLimit(limit))
            } else {
                load.is_worth_asking(&draft.stage.scene, id, &high).err()
            };
            if let Some(why) = held_back {
                let ends = matches!(why, LeftAlone::StrategyLimit(_));
                draft.leave_alone(rule, id, why);
                if ends {
                    break;
                }
                continue;
            }
            let before = draft.moves();
            match draft.consider(rule, Candidate::new(id, reason))? {
                Flow::Next => moved += draft.moves() - before,
                Flow::NextNode => break,
                Flow::Stop => return Ok(()),
            }
        }
    }
    Ok(())
}

/// The nodes over target, worst first, and the targets; None: there is nothing to do, or nowhere to go.
fn begin(draft: &mut Draft<'_, '_>, rule: usize) -> Option<(Vec<NodeId>, Thresholds)> {
    let load = tracker(draft, rule);
    let (low, high) = load.levels(&BTreeMap::new());
    let cordoned = |id: &NodeId| draft.stage.scene.node(*id).node.unschedulable;
    let under = load.nodes.iter().filter(|(id, node)| !cordoned(id) && node.is_under(&low));
    let destinations: BTreeSet<NodeId> = under.map(|(id, _)| *id).collect();
    let over = load.nodes.iter().filter(|(id, node)| !destinations.contains(id) && is_over(node, &high));
    let mut over: Vec<(Reverse<i64>, NodeId)> = over.map(|(id, node)| (Reverse(worst(node, &high)), *id)).collect();
    over.sort();
    let enough = u64::try_from(destinations.len()).is_ok_and(|n| n > load.args.number_of_nodes);
    if let Tracker::Load(load) = &mut draft.stage.trackers[rule] {
        load.destinations = destinations;
    }
    (enough && !over.is_empty()).then(|| (over.into_iter().map(|(_, node)| node).collect(), high))
}

fn tracker<'d, 'a>(draft: &'d Draft<'_, 'a>, rule: usize) -> &'d Load<'a> {
    match &draft.stage.trackers[rule] {
        Tracker::Load(load) => load,
        _ => unreachable!("the strategy's own tracker"),
    }
}
