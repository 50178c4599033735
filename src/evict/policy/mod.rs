//! What is to be evicted and what is protected: a `DeschedulerPolicy` after reading, validation and defaulting.
//!
//! Plain data without any text format: `config::descheduler` makes it from `descheduler/v1alpha2` and `v1alpha1` files,
//! tests build it with `..Default::default()`. Section numbers in the comments are those of `docs/spec/eviction.md`.
//!
//! Promises: a value that `config::descheduler` made is complete and valid. Every enabled plugin has its arguments, defaults
//! are applied, names of priority classes are resolved to numbers. Strategies need not check arguments again; numbers are
//! what upstream's types allow, so arithmetic on them must saturate.

mod evictor;
mod lifetime;
mod plugin;
mod query;
mod selection;
mod utilization;
mod violations;

pub use evictor::{DefaultEvictorArgs, NoEvictionPolicy, PodProtection};
pub use lifetime::{
    OwnerKinds, PodConditionFilter, PodLifeTimeArgs, RemoveFailedPodsArgs, RemovePodsHavingTooManyRestartsArgs,
    RestartState,
};
pub use plugin::{ExtensionPoint, PluginConfig, PluginName};
pub use query::LabelQuery;
pub use selection::{Namespaces, PodSelection};
pub use utilization::{EvictionMode, HighNodeUtilizationArgs, LowNodeUtilizationArgs, Thresholds, UsageSource};
pub use violations::{
    NodeAffinityType, RemoveDuplicatesArgs, RemovePodsViolatingInterPodAntiAffinityArgs,
    RemovePodsViolatingNoExecuteTaintsArgs, RemovePodsViolatingNodeAffinityArgs, RemovePodsViolatingNodeTaintsArgs,
    RemovePodsViolatingTopologySpreadConstraintArgs, TaintFilter, TaintPattern,
};

use crate::model::Str;

/// A whole policy (spec 3.1, 3.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// The policy nodes: sources, destinations and topology domains. None: all nodes.
    pub node_selector: Option<LabelQuery>,
    /// Evictions from one node in one cycle. None: no limit; 0: none at all.
    pub max_per_node: Option<u64>,
    /// Evictions from one namespace in one cycle. None: no limit; 0: none at all.
    pub max_per_namespace: Option<u64>,
    /// Evictions in one cycle. None: no limit; 0: none at all.
    pub max_total: Option<u64>,
    /// Seconds handed on with each eviction; 0 is at once. None: each pod's own grace period.
    pub grace_period_seconds: Option<i64>,
    /// Upstream emits an event when an eviction fails. Berth evicts nothing; the client may want to know.
    pub eviction_failure_event_notification: bool,
    /// Whether actual usage was declared as a source (`metricsProviders` or the older `metricsCollector`).
    pub kubernetes_metrics: bool,
    /// In the order of the file.
    pub profiles: Vec<PolicyProfile>,
}

/// One profile: an evictor and the plugins that it serves (spec 3.4).
///
/// All Deschedule plugins of all profiles run before any Balance plugin of any profile (spec 2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyProfile {
    /// May be empty or used twice.
    pub name: Str,
    pub evictor: DefaultEvictorArgs,
    /// In the order of `plugins.deschedule.enabled`; a plugin that stands there twice runs twice.
    pub deschedule: Vec<PluginConfig>,
    /// In the order of `plugins.balance.enabled`; a plugin that stands there twice runs twice.
    pub balance: Vec<PluginConfig>,
}
