//! Which args each plugin has, and who reads them.

use super::{fields, hints, lifetime, utilization, violations};
use crate::evict::policy::{PluginConfig, PluginName, RemovePodsViolatingInterPodAntiAffinityArgs};
use crate::manifest::Reader;

pub(super) const EVICTOR: &str = "DefaultEvictor";

pub(super) const EVICTOR_FIELDS: &[&str] = &[
    "evictDaemonSetPods",
    "evictFailedBarePods",
    "evictLocalStoragePods",
    "evictSystemCriticalPods",
    "ignorePodsWithoutPDB",
    "ignorePvcPods",
    "labelSelector",
    "minPodAge",
    "minReplicas",
    "namespaceLabelSelector",
    "noEvictionPolicy",
    "nodeFit",
    "nodeSelector",
    "podProtections",
    "priorityThreshold",
];

pub(super) fn fields_of(plugin: PluginName) -> &'static [&'static str] {
    match plugin {
        PluginName::RemoveDuplicates => &["excludeOwnerKinds", "namespaces"],
        PluginName::LowNodeUtilization => &[
            "evictableNamespaces",
            "evictionLimits",
            "metricsUtilization",
            "numberOfNodes",
            "targetThresholds",
            "thresholds",
            "useDeviationThresholds",
        ],
        PluginName::HighNodeUtilization => &["evictableNamespaces", "evictionModes", "numberOfNodes", "thresholds"],
        PluginName::RemovePodsViolatingInterPodAntiAffinity => &["labelSelector", "namespaces"],
        PluginName::RemovePodsViolatingNodeAffinity => &["labelSelector", "namespaces", "nodeAffinityType"],
        PluginName::RemovePodsViolatingNodeTaints => {
            &["excludedTaints", "includePreferNoSchedule", "includedTaints", "labelSelector", "namespaces"]
        }
        PluginName::RemovePodsViolatingNoExecuteTaints => {
            &["excludedTaints", "includedTaints", "labelSelector", "namespaces"]
        }
        PluginName::RemovePodsViolatingTopologySpreadConstraint => {
            &["constraints", "labelSelector", "namespaces", "topologyBalanceNodeFit"]
        }
        PluginName::RemovePodsHavingTooManyRestarts => {
            &["includingInitContainers", "labelSelector", "namespaces", "podRestartThreshold", "states"]
        }
        PluginName::PodLifeTime => &[
            "conditions",
            "exitCodes",
            "includingEphemeralContainers",
            "includingInitContainers",
            "labelSelector",
            "maxPodLifeTimeSeconds",
            "namespaces",
            "ownerKinds",
            "states",
        ],
        PluginName::RemoveFailedPods => &[
            "excludeOwnerKinds",
            "exitCodes",
            "includingInitContainers",
            "labelSelector",
            "minPodLifetimeSeconds",
            "namespaces",
            "reasons",
        ],
    }
}

/// What decides on errors that upstream finds only when it builds or runs a plugin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) enabled: bool,
    /// Whether the top of the policy declares KubernetesMetrics.
    pub(super) kubernetes_metrics: bool,
}

/// Refuses args of other names; `kind` and `apiVersion` may stand in any args and mean nothing.
pub(super) fn only_args(r: &Reader<'_>, fields: &[&str], hint: impl Fn(&str) -> Option<String>) {
    let known: Vec<&str> = fields.iter().copied().chain(["apiVersion", "kind"]).collect();
    r.only_or(&known, hint);
}

pub(super) fn read(plugin: PluginName, r: &Reader<'_>, context: Context) -> PluginConfig {
    only_args(r, fields_of(plugin), |key| hints::in_args(plugin.as_str(), key));
    match plugin {
        PluginName::RemoveDuplicates => PluginConfig::RemoveDuplicates(violations::duplicates(r)),
        PluginName::LowNodeUtilization => PluginConfig::LowNodeUtilization(utilization::low(r, context)),
        PluginName::HighNodeUtilization => PluginConfig::HighNodeUtilization(utilization::high(r)),
        PluginName::RemovePodsViolatingInterPodAntiAffinity => {
            PluginConfig::RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinityArgs {
                pods: fields::selection(r),
            })
        }
        PluginName::RemovePodsViolatingNodeAffinity => {
            PluginConfig::RemovePodsViolatingNodeAffinity(violations::node_affinity(r))
        }
        PluginName::RemovePodsViolatingNodeTaints => {
            PluginConfig::RemovePodsViolatingNodeTaints(violations::node_taints(r))
        }
        PluginName::RemovePodsViolatingNoExecuteTaints => {
            PluginConfig::RemovePodsViolatingNoExecuteTaints(violations::no_execute_taints(r))
        }
        PluginName::RemovePodsViolatingTopologySpreadConstraint => {
            PluginConfig::RemovePodsViolatingTopologySpreadConstraint(violations::topology_spread(r))
        }
        PluginName::RemovePodsHavingTooManyRestarts => {
            PluginConfig::RemovePodsHavingTooManyRestarts(lifetime::restarts(r))
        }
        PluginName::PodLifeTime => PluginConfig::PodLifeTime(lifetime::life_time(r)),
        PluginName::RemoveFailedPods => PluginConfig::RemoveFailedPods(lifetime::failed_pods(r, fields::selection(r))),
    }
}
