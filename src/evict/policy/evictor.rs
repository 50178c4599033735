//! Arguments of DefaultEvictor (spec 5.1): which pods are never touched, and which nodes count as a way out.

use super::LabelQuery;
use crate::model::{LabelSelector, Str};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultEvictorArgs {
    /// Destinations that `node_fit` considers; None: all ready nodes. Independent of the policy's own node selector.
    pub node_selector: Option<LabelQuery>,
    /// Only pods that fit some other node are evicted (spec 5.4, 6).
    pub node_fit: bool,
    /// Owners with fewer pods are left alone; looked at only above 1 (spec 5.3).
    pub min_replicas: u64,
    /// Microseconds since `status.startTime` that a pod must have run. None: any age. Can be negative, as in Go.
    pub min_pod_age_micros: Option<i64>,
    /// Only matching pods are evictable. None: all; `{}` counts as that (spec 5.2).
    pub label_selector: Option<LabelSelector>,
    /// Only pods of matching namespaces, checked late (spec 5.4). None: all; `{}` counts as that.
    pub namespace_label_selector: Option<LabelSelector>,
    /// Pods of this priority and above are protected, while `protections.system_critical` is on (spec 5.2).
    pub priority_threshold: i32,
    /// What the annotation `prefer-no-eviction` means.
    pub no_eviction_policy: NoEvictionPolicy,
    /// What is protected, after `podProtections` or the older booleans.
    pub protections: Protections,
}

impl DefaultEvictorArgs {
    /// `system-cluster-critical`, the highest threshold that upstream allows.
    pub const DEFAULT_PRIORITY_THRESHOLD: i32 = 2_000_000_000;
}

impl Default for DefaultEvictorArgs {
    fn default() -> Self {
        Self {
            node_selector: None,
            node_fit: false,
            min_replicas: 0,
            min_pod_age_micros: None,
            label_selector: None,
            namespace_label_selector: None,
            priority_threshold: Self::DEFAULT_PRIORITY_THRESHOLD,
            no_eviction_policy: NoEvictionPolicy::default(),
            protections: Protections::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoEvictionPolicy {
    /// Such pods go last.
    #[default]
    Preferred,
    /// Such pods never go.
    Mandatory,
}

/// The protections that are on (spec 5.1). The first four are on unless they were switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protections {
    /// `PodsWithLocalStorage`: hostPath and emptyDir volumes.
    pub local_storage: bool,
    /// `DaemonSetPods`.
    pub daemon_sets: bool,
    /// `SystemCriticalPods`; the priority threshold applies only while this is on.
    pub system_critical: bool,
    /// `FailedBarePods`: when off, pods without owner that failed are evictable.
    pub failed_bare: bool,
    /// `PodsWithPVC`. None: off.
    pub claims: Option<ProtectedClaims>,
    /// `PodsWithoutPDB`.
    pub without_pdb: bool,
    /// `PodsWithResourceClaims`.
    pub resource_claims: bool,
}

impl Default for Protections {
    fn default() -> Self {
        Self {
            local_storage: true,
            daemon_sets: true,
            system_critical: true,
            failed_bare: true,
            claims: None,
            without_pdb: false,
            resource_claims: false,
        }
    }
}

/// Which persistent volume claims protect a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtectedClaims {
    All,
    /// Claims of these storage classes; also a claim that can't be found or names no class (spec 5.1).
    OfClasses(Vec<Str>),
}
