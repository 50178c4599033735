//! What LowNodeUtilization and HighNodeUtilization share: usage, percentages, the pool of free room, and the eviction loop
//! (spec sections 10 and 11).
//!
//! Amounts are thousandths of cores for cpu and whole units for all else. The pool is one for all destinations together;
//! no destination is asked whether a pod fits it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Candidate, Context, Sink, Verdict};
use crate::evict::outcome::LeftAlone;
use crate::evict::policy::{Thresholds, UsageSource};
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::taints;
use crate::model::resources::{CPU, MEMORY, PODS};
use crate::model::{Quantity, ResourceList, Str};

/// Amounts by resource: sums that pods leave and come back to, exact however large.
pub(in crate::evict) type Usage = BTreeMap<Str, i128>;

/// One node, measured.
#[derive(Debug, Clone)]
pub(in crate::evict) struct NodeUsage {
    pub(in crate::evict) node: NodeId,
    pub(in crate::evict) usage: Usage,
    /// Of the resources that are tracked, those that the node has.
    pub(in crate::evict) capacity: Usage,
}

pub(in crate::evict) fn amount(name: &str, quantity: Quantity) -> i128 {
    let quantity = quantity.as_summand();
    if name == CPU { quantity.whole_milli() } else { quantity.whole_units() }
}

/// Thresholds' resources and the three that always count.
pub(in crate::evict) fn tracked(thresholds: &Thresholds) -> Vec<Str> {
    let always = [CPU, MEMORY, PODS].map(Str::from);
    let names: BTreeSet<Str> = thresholds.keys().cloned().chain(always).collect();
    names.into_iter().collect()
}

fn amounts(names: &[Str], list: &ResourceList) -> Usage {
    let of = |name: &Str| (name.clone(), amount(name, list.get(name).copied().unwrap_or_default()));
    names.iter().map(of).collect()
}

pub(in crate::evict) fn requests_of_node(scene: &Scene, node: NodeId, names: &[Str]) -> NodeUsage {
    let mut usage = amounts(names, &scene.node(node).requested);
    let pods = scene.node(node).active.len();
    usage.insert(PODS.into(), pods as i128);
    NodeUsage { node, usage, capacity: capacity(scene, node, names) }
}

pub(in crate::evict) fn capacity(scene: &Scene, node: NodeId, names: &[Str]) -> Usage {
    let offered = scene.node(node).capacity();
    names.iter().filter_map(|name| Some((name.clone(), amount(name, *offered.get(name)?)))).collect()
}

/// None: its usage isn't known.
pub(in crate::evict) fn usage_of_pod(scene: &Scene, pod: PodId, names: &[Str], source: UsageSource) -> Option<Usage> {
    let subject = scene.pod(pod);
    let mut usage = match source {
        UsageSource::Requests => amounts(names, &subject.requests),
        UsageSource::KubernetesMetrics => {
            let mut total = ResourceList::new();
            for (_, list) in &scene.pod_metrics(&subject.pod)?.containers {
                for (name, quantity) in list {
                    *total.entry(name.clone()).or_default() += *quantity;
                }
            }
            amounts(names, &total)
        }
    };
    usage.insert(PODS.into(), 1);
    Some(usage)
}

impl NodeUsage {
    /// Of its own capacity; None when it has none of the resource.
    #[allow(clippy::cast_precision_loss, reason = "upstream compares percentages as floats")]
    pub(in crate::evict) fn percent(&self, name: &str) -> Option<f64> {
        let capacity = *self.capacity.get(name)?;
        if capacity == 0 {
            return Some(0.0);
        }
        Some(self.usage.get(name).copied().unwrap_or(0) as f64 / capacity as f64 * 100.0)
    }

    /// At or under every threshold; a resource that it doesn't have is at 0 %.
    pub(in crate::evict) fn is_under(&self, thresholds: &Thresholds) -> bool {
        thresholds.iter().all(|(name, limit)| self.percent(name).unwrap_or(0.0) <= *limit)
    }

    /// The first resource that is over its threshold.
    pub(in crate::evict) fn over<'t>(&self, thresholds: &'t Thresholds) -> Option<(&'t Str, f64, f64)> {
        let mut measured = thresholds.iter().map(|(name, limit)| (name, self.percent(name).unwrap_or(0.0), *limit));
        measured.find(|(_, percent, limit)| percent > limit)
    }

    /// The amounts up to which the node may be filled: by threshold where there is one, else all of it.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "upstream computes the cap in floats and cuts the fraction off"
    )]
    pub(in crate::evict) fn caps(&self, thresholds: &Thresholds) -> Usage {
        let cap = |name: &Str| {
            let capacity = self.capacity.get(name).copied().unwrap_or(0);
            match thresholds.get(name) {
                Some(percent) => (percent * 0.01 * capacity as f64) as i128,
                None => capacity,
            }
        };
        self.usage.keys().map(|name| (name.clone(), cap(name))).collect()
    }

    /// Upstream's order of nodes: cores in thousandths, bytes and all else in one sum, so that memory decides.
    pub(in crate::evict) fn mixed_sum(&self) -> i128 {
        self.usage.values().sum()
    }

    pub(in crate::evict) fn take(&mut self, pod: &Usage) {
        subtract(&mut self.usage, pod);
    }
}

pub(in crate::evict) fn subtract(from: &mut Usage, what: &Usage) {
    for (name, amount) in what {
        if let Some(left) = from.get_mut(name) {
            *left -= *amount;
        }
    }
}

/// The room that destinations have together.
#[derive(Debug, Clone)]
pub(in crate::evict) struct Pool(Usage);

impl Pool {
    pub(in crate::evict) fn new<'n>(
        destinations: impl Iterator<Item = &'n NodeUsage>,
        thresholds: &Thresholds,
    ) -> Self {
        let mut room = Usage::new();
        for node in destinations {
            for (name, cap) in node.caps(thresholds) {
                let used = node.usage.get(&name).copied().unwrap_or(0);
                let entry = room.entry(name).or_default();
                *entry += cap - used;
            }
        }
        Self(room)
    }

    /// One exhausted resource ends it all, even one that no threshold names.
    pub(in crate::evict) fn has_room(&self) -> bool {
        self.0.values().all(|left| *left > 0)
    }
}

/// What the eviction loop needs to know of a strategy.
pub(in crate::evict) struct Drain<'s> {
    pub(in crate::evict) source: UsageSource,
    pub(in crate::evict) names: &'s [Str],
    pub(in crate::evict) destinations: &'s [NodeId],
    pub(in crate::evict) excluded_namespaces: &'s [Str],
    /// At most so many from one node.
    pub(in crate::evict) per_node: Option<u64>,
    /// Whether a node is still to be relieved.
    pub(in crate::evict) goes_on: &'s dyn Fn(&NodeUsage) -> bool,
    pub(in crate::evict) reason: &'s dyn Fn(&NodeUsage) -> Reason,
}

/// How a node's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::evict) enum Turn {
    Done,
    /// The total limit was reached.
    Stop,
}

impl Drain<'_> {
    /// Proposes pods of one node, the least important first, while it goes on and the pool has room. The pod that takes the
    /// last of the pool still goes.
    pub(in crate::evict) fn node(
        &self,
        context: &Context<'_>,
        sink: &mut dyn Sink,
        node: &mut NodeUsage,
        mut removable: Vec<PodId>,
        pool: &mut Pool,
    ) -> Turn {
        context.sort_by_importance(&mut removable);
        let mut evicted = 0;
        for id in context.cancel().guard(removable) {
            if !((self.goes_on)(node) && pool.has_room()) {
                break;
            }
            if let Some(limit) = self.per_node.filter(|limit| evicted >= *limit) {
                sink.leave_alone(id, LeftAlone::StrategyLimit(limit));
                break;
            }
            if let Some(why) = self.holds_back(context, id) {
                sink.leave_alone(id, why);
                continue;
            }
            if !context.passes_pre_eviction(id, sink) {
                continue;
            }
            let Some(usage) = usage_of_pod(context.scene, id, self.names, self.source) else {
                sink.leave_alone(id, LeftAlone::NoMetrics);
                continue;
            };
            match sink.consider(Candidate::new(id, (self.reason)(node))) {
                Verdict::Evicted => {
                    evicted += 1;
                    node.take(&usage);
                    subtract(&mut pool.0, &usage);
                }
                Verdict::NamespaceLimit | Verdict::Refused => {}
                Verdict::NodeLimit => break,
                Verdict::TotalLimit => return Turn::Stop,
            }
        }
        Turn::Done
    }

    fn holds_back(&self, context: &Context<'_>, id: PodId) -> Option<LeftAlone> {
        let pod = context.pod(id);
        let cancel = context.cancel();
        let mut destinations = cancel.guard(self.destinations).map(|node| &context.scene.node(*node).node);
        if !destinations.any(|node| taints::may_be_destination(&pod.spec.tolerations, node, cancel)) {
            return Some(LeftAlone::NoDestinationTolerated);
        }
        self.excluded_namespaces.contains(&pod.meta.namespace).then_some(LeftAlone::NamespaceExcluded)
    }
}

/// The pods of a node that may go by the evictor's filter.
pub(in crate::evict) fn removable(context: &Context<'_>, sink: &mut dyn Sink, node: NodeId) -> Vec<PodId> {
    let active = context.scene.node(node).active.iter().copied();
    context.cancel().guard(active).filter(|pod| context.passes_filter(*pod, sink)).collect()
}
