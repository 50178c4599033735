//! The strategies, each under its upstream name: which pods should go, and in which order.
//!
//! A strategy only proposes. It reads the scene, hands each candidate to a [`Sink`] in its order, and goes on by the verdict;
//! whether a candidate goes is the sink's decision. So COMPATIBLE (limits and budgets) and PLANNED (where would it land?)
//! share the rules. A strategy keeps nothing between runs; its arguments come from the policy.
//!
//! Strategies that only look at pods one by one ask their own rule first and the evictor after it: what is reported as left
//! alone then are the pods that would have gone.

mod high_node_utilization;
pub(super) mod low_node_utilization;
mod pod_life_time;
pub(super) mod remove_duplicates;
mod remove_failed_pods;
mod remove_pods_having_too_many_restarts;
mod remove_pods_violating_inter_pod_anti_affinity;
mod remove_pods_violating_no_execute_taints;
pub(super) mod remove_pods_violating_node_affinity;
mod remove_pods_violating_node_taints;
mod remove_pods_violating_topology_spread_constraint;
pub(super) mod topology_domains;
pub(super) mod utilization;

use super::evictor::Evictor;
use super::outcome::LeftAlone;
use super::policy::{PluginConfig, PodSelection};
use super::reason::Reason;
use super::snapshot::{NodeId, PodId, Scene};
use crate::cluster::Cancel;
use crate::model::{Pod, Str, Time};

/// A strategy with its arguments.
pub trait Strategy {
    /// Ends soon after the scene's flag is set; what it proposed and answers then means nothing.
    ///
    /// # Errors
    /// It can't judge at all, such as without the metrics that it needs. Whatever it proposed before stays.
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError>;
}

/// What a strategy reads.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub scene: &'a Scene<'a>,
    pub evictor: &'a Evictor<'a>,
    /// The policy's nodes, by name.
    pub nodes: &'a [NodeId],
    /// Whether the policy declares actual usage as a source.
    pub has_metrics: bool,
}

/// Decides about candidates, and hears of those that a strategy itself leaves alone.
pub trait Sink {
    fn consider(&mut self, candidate: Candidate) -> Verdict;
    fn leave_alone(&mut self, pod: PodId, why: LeftAlone);
}

/// A pod that a strategy wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub pod: PodId,
    pub reason: Reason,
    /// None: at once.
    pub not_before: Option<Time>,
}

impl Candidate {
    pub fn new(pod: PodId, reason: Reason) -> Self {
        Self { pod, reason, not_before: None }
    }
}

/// What became of a candidate; strategies differ in how they go on (spec section 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Evicted,
    NodeLimit,
    NamespaceLimit,
    TotalLimit,
    /// Anything else: a budget, no landing node.
    Refused,
}

/// Why a strategy can't run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    #[error("metrics source KubernetesMetrics is not in metricsProviders of the policy")]
    NoMetricsProvider,
    #[error("metrics source KubernetesMetrics knows cpu, memory and pods only, and {0} has a threshold")]
    UnmeasuredResource(Str),
    #[error("no NodeMetrics of node {0} are known")]
    NoNodeMetrics(Str),
}

/// The rules that a plugin of a policy stands for.
pub fn of(config: &PluginConfig) -> &dyn Strategy {
    match config {
        PluginConfig::RemoveDuplicates(args) => args,
        PluginConfig::LowNodeUtilization(args) => args,
        PluginConfig::HighNodeUtilization(args) => args,
        PluginConfig::RemovePodsViolatingInterPodAntiAffinity(args) => args,
        PluginConfig::RemovePodsViolatingNodeAffinity(args) => args,
        PluginConfig::RemovePodsViolatingNodeTaints(args) => args,
        PluginConfig::RemovePodsViolatingTopologySpreadConstraint(args) => args,
        PluginConfig::RemovePodsHavingTooManyRestarts(args) => args,
        PluginConfig::PodLifeTime(args) => args,
        PluginConfig::RemoveFailedPods(args) => args,
        PluginConfig::RemovePodsViolatingNoExecuteTaints(args) => args,
    }
}

/// Whether to go on after a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    NextNode,
    Stop,
}

impl Flow {
    /// What most strategies do.
    pub(super) fn after(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Evicted | Verdict::NamespaceLimit | Verdict::Refused => Self::Next,
            Verdict::NodeLimit => Self::NextNode,
            Verdict::TotalLimit => Self::Stop,
        }
    }
}

impl<'a> Context<'a> {
    fn cancel(&self) -> Cancel<'a> {
        self.scene.cancel
    }

    /// The evictor's two checks; what they hold back is reported.
    fn admits(&self, pod: PodId, sink: &mut dyn Sink) -> bool {
        reported(self.evictor.admits(pod), pod, sink)
    }

    fn passes_filter(&self, pod: PodId, sink: &mut dyn Sink) -> bool {
        reported(self.evictor.passes_filter(pod), pod, sink)
    }

    fn passes_pre_eviction(&self, pod: PodId, sink: &mut dyn Sink) -> bool {
        reported(self.evictor.pre_eviction(pod), pod, sink)
    }

    fn pod(&self, pod: PodId) -> &Pod {
        &self.scene.pod(pod).pod
    }

    /// The active pods of a node that the strategy's own arguments select.
    fn selected_active(&self, node: NodeId, selection: &PodSelection) -> Vec<PodId> {
        let active = self.cancel().guard(&self.scene.node(node).active).copied();
        active.filter(|pod| is_selected(self.pod(*pod), selection)).collect()
    }

    /// The eviction order of the strategies that look at priorities (spec section 8.1): the least important first. Equals
    /// stay in the scene's order.
    fn sort_by_importance(&self, pods: &mut [PodId]) {
        pods.sort_by_key(|pod| {
            let subject = self.scene.pod(*pod);
            (subject.pod.spec.priority, subject.qos, super::evictor::prefers_no_eviction(&subject.pod), *pod)
        });
    }
}

fn reported(check: Result<(), LeftAlone>, pod: PodId, sink: &mut dyn Sink) -> bool {
    match check {
        Ok(()) => true,
        Err(why) => {
            sink.leave_alone(pod, why);
            false
        }
    }
}

/// `namespaces` and `labelSelector` of a strategy.
pub(super) fn is_selected(pod: &Pod, selection: &PodSelection) -> bool {
    selection.admits(&pod.meta.namespace, &pod.meta.labels)
}

/// Walks nodes in order: per node the candidates, least first, until a limit says otherwise.
fn propose_by_node(context: &Context<'_>, sink: &mut dyn Sink, mut candidates: impl FnMut(NodeId) -> Vec<Candidate>) {
    for node in context.cancel().guard(context.nodes) {
        for candidate in context.cancel().guard(candidates(*node)) {
            if !context.admits(candidate.pod, sink) {
                continue;
            }
            match Flow::after(sink.consider(candidate)) {
                Flow::Next => {}
                Flow::NextNode => break,
                Flow::Stop => return,
            }
        }
    }
}

/// Whether some owner of a pod has one of these kinds.
pub(super) fn has_owner_kind(pod: &Pod, kinds: &[Str]) -> bool {
    pod.meta.owners.iter().any(|owner| kinds.contains(&owner.kind))
}
