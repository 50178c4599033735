//! HighNodeUtilization: empties nodes under threshold, so that they can be taken away (spec section 11). It goes by requests
//! only, and makes sense beside a scheduler that packs.

use super::utilization::{Drain, NodeUsage, Pool, Turn, removable, requests_of_node, tracked};
use super::{Context, Sink, Strategy, StrategyError};
use crate::evict::outcome::LeftAlone;
use crate::evict::policy::{EvictionMode, HighNodeUtilizationArgs, Thresholds, UsageSource};
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId};
use crate::model::Pod;

impl Strategy for HighNodeUtilizationArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let names = tracked(&self.thresholds);
        let all = context.nodes.iter().map(|node| requests_of_node(context.scene, *node, &names));
        // A cordoned node may be emptied and never filled.
        let (mut low, others): (Vec<NodeUsage>, Vec<NodeUsage>) = all.partition(|node| node.is_under(&self.thresholds));
        let destinations: Vec<NodeUsage> =
            others.into_iter().filter(|node| !context.scene.node(node.node).node.unschedulable).collect();
        let enough = u64::try_from(low.len()).is_ok_and(|n| n > self.number_of_nodes);
        if low.is_empty() || !enough || destinations.is_empty() {
            return Ok(());
        }
        let full: Thresholds = self.thresholds.keys().map(|name| (name.clone(), 100.0)).collect();
        let mut pool = Pool::new(destinations.iter(), &full);
        low.sort_by_key(|node| (node.mixed_sum(), node.node));
        let destinations: Vec<NodeId> = destinations.iter().map(|node| node.node).collect();
        let drain = Drain {
            source: UsageSource::Requests,
            names: &names,
            destinations: &destinations,
            excluded_namespaces: &self.excluded_namespaces,
            per_node: None,
            goes_on: &|_| true,
            reason: &|_| Reason::Underutilized,
        };
        for node in &mut low {
            let mut pods = removable(context, sink, node.node);
            pods.retain(|pod| self.takes(context, sink, *pod));
            if drain.node(context, sink, node, pods, &mut pool) == Turn::Stop {
                break;
            }
        }
        Ok(())
    }
}

impl HighNodeUtilizationArgs {
    fn takes(&self, context: &Context<'_>, sink: &mut dyn Sink, pod: PodId) -> bool {
        let takes = !self.eviction_modes.contains(&EvictionMode::OnlyThresholdingResources)
            || self.requests_thresholded(context.pod(pod));
        if !takes {
            sink.leave_alone(pod, LeftAlone::NoThresholdedRequest);
        }
        takes
    }

    /// Some container names a resource with a threshold, be the amount 0.
    fn requests_thresholded(&self, pod: &Pod) -> bool {
        let mut containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        containers.any(|c| self.thresholds.keys().any(|name| c.resources.requests.contains_key(name)))
    }
}
