//! RemovePodsViolatingInterPodAntiAffinity: pods whose own required anti-affinity speaks of a pod in the same topology
//! (spec section 12). The pod that states the rule goes, not the one that breaks it.
//!
//! Candidates and peers are the same pods: those that the strategy's namespaces and labels select. Once a pod has gone it
//! is nobody's peer any more.

use std::collections::{BTreeMap, BTreeSet};

use super::{Candidate, Context, Flow, Sink, Strategy, StrategyError, Verdict};
use crate::evict::node_fit::{anti_affinity, term_speaks_of};
use crate::evict::policy::RemovePodsViolatingInterPodAntiAffinityArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId};
use crate::model::Str;

impl Strategy for RemovePodsViolatingInterPodAntiAffinityArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let mut peers = Peers::default();
        for node in context.cancel().guard(context.nodes) {
            let pods = context.selected_active(*node, &self.pods);
            peers.on_node.insert(*node, pods.into_iter().collect());
        }
        for node in context.cancel().guard(context.nodes) {
            let mut pods: Vec<PodId> = peers.on_node.get(node).into_iter().flatten().copied().collect();
            context.sort_by_importance(&mut pods);
            for id in context.cancel().guard(pods) {
                let Some(reason) = peers.conflict(context, id, *node) else { continue };
                if !context.admits(id, sink) {
                    continue;
                }
                let verdict = sink.consider(Candidate::new(id, reason));
                if verdict == Verdict::Evicted
                    && let Some(left) = peers.on_node.get_mut(node)
                {
                    left.remove(&id);
                }
                match Flow::after(verdict) {
                    Flow::Next => {}
                    Flow::NextNode => break,
                    Flow::Stop => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

/// The pods that may still be in conflict.
#[derive(Default)]
struct Peers {
    on_node: BTreeMap<NodeId, BTreeSet<PodId>>,
    /// Nodes by label value, for the topology keys that were asked for.
    domains: BTreeMap<Str, BTreeMap<Str, Vec<NodeId>>>,
}

impl Peers {
    /// The first term, in the pod's order, that speaks of a pod in its topology, and that pod.
    fn conflict(&mut self, context: &Context<'_>, id: PodId, node: NodeId) -> Option<Reason> {
        let pod = context.pod(id);
        for term in context.cancel().guard(anti_affinity(pod)) {
            let nodes = self.domain(context, &term.topology_key, node);
            let mut there = context.cancel().guard(nodes.iter().filter_map(|node| self.on_node.get(node)).flatten());
            if let Some(peer) = there.find(|peer| term_speaks_of(term, pod, context.pod(**peer))) {
                let peer = context.pod(*peer).meta.key().into();
                return Some(Reason::AntiAffinity { peer, topology_key: term.topology_key.clone() });
            }
        }
        None
    }

    /// The nodes of the same topology: the node itself, even without the label, and those with an equal one.
    fn domain(&mut self, context: &Context<'_>, key: &Str, node: NodeId) -> Vec<NodeId> {
        let label = |node: NodeId| context.scene.node(node).node.meta.labels.get(key).cloned();
        let domains = self.domains.entry(key.clone()).or_insert_with(|| {
            let mut domains = BTreeMap::<Str, Vec<NodeId>>::new();
            for node in context.cancel().guard(context.nodes) {
                if let Some(value) = label(*node) {
                    domains.entry(value).or_default().push(*node);
                }
            }
            domains
        });
        label(node).and_then(|value| domains.get(&value).cloned()).unwrap_or_else(|| vec![node])
    }
}
