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
    /// What is protected, after `podProtections` or the older booleans. No repeats.
    pub protections: Vec<PodProtection>,
    /// With `PodsWithPVC`: only claims of these classes protect, and claims that can't be found or name no class (spec 5.1).
    /// Empty: all claims do.
    pub protected_storage_classes: Vec<Str>,
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
            protections: PodProtection::DEFAULT.to_vec(),
            protected_storage_classes: Vec::new(),
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

/// A kind of pod that isn't evicted (spec 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodProtection {
    /// hostPath and emptyDir volumes.
    PodsWithLocalStorage,
    DaemonSetPods,
    /// The priority threshold applies only while this is on.
    SystemCriticalPods,
    /// Without it, pods without owner that failed are evictable.
    FailedBarePods,
    PodsWithPVC,
    PodsWithoutPDB,
    PodsWithResourceClaims,
}

impl PodProtection {
    /// On unless they are switched off.
    pub const DEFAULT: [PodProtection; 4] =
        [Self::PodsWithLocalStorage, Self::DaemonSetPods, Self::SystemCriticalPods, Self::FailedBarePods];
    /// Off unless they are switched on.
    pub const EXTRA: [PodProtection; 3] = [Self::PodsWithPVC, Self::PodsWithoutPDB, Self::PodsWithResourceClaims];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::PodsWithLocalStorage => "PodsWithLocalStorage",
            Self::DaemonSetPods => "DaemonSetPods",
            Self::SystemCriticalPods => "SystemCriticalPods",
            Self::FailedBarePods => "FailedBarePods",
            Self::PodsWithPVC => "PodsWithPVC",
            Self::PodsWithoutPDB => "PodsWithoutPDB",
            Self::PodsWithResourceClaims => "PodsWithResourceClaims",
        }
    }
}
