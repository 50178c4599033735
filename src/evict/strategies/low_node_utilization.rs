//! LowNodeUtilization: moves load from nodes over target to nodes under threshold (spec section 10).

use std::cmp::Reverse;

use super::utilization::{self, Drain, NodeUsage, Pool, Turn, capacity, removable, requests_of_node, tracked};
use super::{Context, Sink, Strategy, StrategyError};
use crate::evict::policy::{LowNodeUtilizationArgs, Thresholds, UsageSource};
use crate::evict::reason::{Percent, Reason};
use crate::evict::snapshot::NodeId;
use crate::model::Str;
use crate::model::resources::{CPU, MEMORY, PODS};

impl Strategy for LowNodeUtilizationArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let source = self.source(context)?;
        let names = tracked(&self.thresholds);
        let nodes: Vec<NodeUsage> =
            context.nodes.iter().map(|node| measure(context, *node, &names, source)).collect::<Result<_, _>>()?;
        let (low, high) = self.levels(nodes.iter());
        let (mut under, mut over) = (Vec::new(), Vec::new());
        for node in nodes {
            if !context.scene.node(node.node).node.unschedulable && node.is_under(&low) {
                under.push(node);
            } else if node.over(&high).is_some() {
                over.push(node);
            }
        }
        let enough = u64::try_from(under.len()).is_ok_and(|n| n > self.number_of_nodes);
        if under.is_empty() || !enough || over.is_empty() {
            return Ok(());
        }
        let mut pool = Pool::new(under.iter(), &high);
        over.sort_by_key(|node| (Reverse(node.mixed_sum()), node.node));
        let destinations: Vec<NodeId> = under.iter().map(|node| node.node).collect();
        let drain = Drain {
            source,
            names: &names,
            destinations: &destinations,
            excluded_namespaces: &self.excluded_namespaces,
            per_node: self.max_per_node,
            goes_on: &|node| is_over_caps(node, &high),
            reason: &|node| over_target(node, &high),
        };
        for node in &mut over {
            let pods = removable(context, sink, node.node);
            if drain.node(context, sink, node, pods, &mut pool) == Turn::Stop {
                break;
            }
        }
        Ok(())
    }
}

impl LowNodeUtilizationArgs {
    pub(in crate::evict) fn source(&self, context: &Context<'_>) -> Result<UsageSource, StrategyError> {
        if self.usage == UsageSource::KubernetesMetrics {
            if !context.has_metrics {
                return Err(StrategyError::NoMetricsProvider);
            }
            let known = [CPU, MEMORY, PODS];
            if let Some(other) = self.thresholds.keys().find(|name| !known.contains(&&***name)) {
                return Err(StrategyError::UnmeasuredResource(other.clone()));
            }
        }
        Ok(self.usage)
    }

    /// Below which a node is under and above which it is over; in deviation mode from the mean of all nodes that have the
    /// resource, cordoned ones included. A resource that no node has drops out.
    #[allow(clippy::cast_precision_loss, reason = "numbers of nodes")]
    pub(in crate::evict) fn levels<'n>(
        &self,
        nodes: impl Iterator<Item = &'n NodeUsage> + Clone,
    ) -> (Thresholds, Thresholds) {
        if !self.use_deviation_thresholds {
            return (self.thresholds.clone(), self.target_thresholds.clone());
        }
        let mean = |name: &Str| {
            let percents: Vec<f64> = nodes.clone().filter_map(|node| node.percent(name)).collect();
            (!percents.is_empty()).then(|| percents.iter().sum::<f64>() / percents.len() as f64)
        };
        let shifted = |distances: &Thresholds, sign: f64| -> Thresholds {
            let level = |(name, distance): (&Str, &f64)| {
                Some((name.clone(), (mean(name)? + sign * distance).clamp(0.0, 100.0)))
            };
            distances.iter().filter_map(level).collect()
        };
        (shifted(&self.thresholds, -1.0), shifted(&self.target_thresholds, 1.0))
    }
}

/// # Errors
/// Usage is to be read from metrics and the node has none.
pub(in crate::evict) fn measure(
    context: &Context<'_>,
    node: NodeId,
    names: &[Str],
    source: UsageSource,
) -> Result<NodeUsage, StrategyError> {
    let by_requests = requests_of_node(context.scene, node, names);
    if source == UsageSource::Requests {
        return Ok(by_requests);
    }
    let name = &context.scene.node(node).node.meta.name;
    let metrics = context.scene.node_metrics(name).ok_or_else(|| StrategyError::NoNodeMetrics(name.clone()))?;
    let mut usage = utilization::Usage::new();
    for resource in names {
        let used = metrics.usage.get(resource).map_or(0, |q| utilization::amount(resource, *q));
        usage.insert(resource.clone(), used);
    }
    usage.insert(PODS.into(), by_requests.usage.get(PODS).copied().unwrap_or(0));
    Ok(NodeUsage { node, usage, capacity: capacity(context.scene, node, names) })
}

/// In absolute amounts: something is above what the node may be filled to. For a resource without a threshold that is all
/// it has.
fn is_over_caps(node: &NodeUsage, high: &Thresholds) -> bool {
    let caps = node.caps(high);
    node.usage.iter().any(|(name, used)| *used > caps.get(name).copied().unwrap_or(0))
}

pub(in crate::evict) fn over_target(node: &NodeUsage, high: &Thresholds) -> Reason {
    // Between eviction steps the node may be over in amounts and not in per cent; then the first resource stands for it.
    let first = || high.iter().next().map(|(name, limit)| (name, node.percent(name).unwrap_or(0.0), *limit));
    match node.over(high).or_else(first) {
        Some((name, percent, target)) => {
            Reason::Overutilized { resource: name.clone(), percent: Percent::of(percent), target: Percent::of(target) }
        }
        None => Reason::Overutilized { resource: Str::default(), percent: Percent::of(0.0), target: Percent::of(0.0) },
    }
}
