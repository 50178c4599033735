//! Arguments of LowNodeUtilization and HighNodeUtilization (spec 10, 11).

use std::collections::BTreeMap;

use crate::model::Str;

/// Percent of a node's capacity (0 to 100) by resource name. Any name is allowed.
pub type Thresholds = BTreeMap<Str, f64>;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct LowNodeUtilizationArgs {
    /// A node is under if its usage is at most this for all resources. Never empty.
    pub thresholds: Thresholds,
    /// A node is over if its usage is above this for any resource. Same keys as `thresholds`.
    pub target_thresholds: Thresholds,
    /// The two maps are distances from the mean of all nodes.
    pub use_deviation_thresholds: bool,
    /// Acts only if more nodes than this are under.
    pub number_of_nodes: u64,
    /// Pods of these namespaces count as load but are not evicted.
    pub excluded_namespaces: Vec<Str>,
    /// Evictions from one node in one run of this plugin; 0: none at all. None: no limit.
    pub max_per_node: Option<u64>,
    /// What usage is measured by.
    pub usage: UsageSource,
}

/// `metricsUtilization`. Prometheus is refused when a policy is read: Berth asks nobody, metrics are streamed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageSource {
    /// What pods request.
    #[default]
    Requests,
    /// What NodeMetrics and PodMetrics say.
    KubernetesMetrics,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HighNodeUtilizationArgs {
    /// A node is low if its usage is at most this for all resources. Never empty.
    pub thresholds: Thresholds,
    /// Acts only if more nodes than this are low.
    pub number_of_nodes: u64,
    /// Narrow down which pods are evicted.
    pub eviction_modes: Vec<EvictionMode>,
    /// Pods of these namespaces count as load but are not evicted.
    pub excluded_namespaces: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionMode {
    /// Only pods that request one of the resources with a threshold, be it 0 of it.
    OnlyThresholdingResources,
}
