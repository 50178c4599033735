//! Arguments of the plugins that look for broken rules: duplicates, affinity, taints, spread (spec 9, 12 to 15).

use super::{Namespaces, PodSelection};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{Str, Taint};

/// Spec 9.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoveDuplicatesArgs {
    pub namespaces: Namespaces,
    /// Pods with any owner of these kinds are skipped. Deployments appear as `ReplicaSet`.
    pub exclude_owner_kinds: Vec<Str>,
}

/// Spec 12.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovePodsViolatingInterPodAntiAffinityArgs {
    pub pods: PodSelection,
}

/// Spec 13.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovePodsViolatingNodeAffinityArgs {
    pub pods: PodSelection,
    /// In the order in which they are processed. Never empty.
    pub types: Vec<NodeAffinityType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAffinityType {
    /// `requiredDuringSchedulingIgnoredDuringExecution`.
    Required,
    /// `preferredDuringSchedulingIgnoredDuringExecution`.
    Preferred,
}

/// Spec 14.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovePodsViolatingNodeTaintsArgs {
    pub pods: PodSelection,
    pub include_prefer_no_schedule: bool,
    pub taints: TaintFilter,
}

/// Berth's own: what the taint eviction controller does with NoExecute taints, which RemovePodsViolatingNodeTaints leaves
/// alone. Honours `tolerationSeconds`. Takes the arguments of its sibling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovePodsViolatingNoExecuteTaintsArgs {
    pub pods: PodSelection,
    pub taints: TaintFilter,
}

/// Which taints are considered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaintFilter {
    /// None: all. An empty list admits no taint at all, as upstream.
    pub included: Option<Vec<TaintPattern>>,
    pub excluded: Vec<TaintPattern>,
}

impl TaintFilter {
    pub fn admits(&self, taint: &Taint) -> bool {
        let any = |patterns: &[TaintPattern]| patterns.iter().any(|p| p.matches(taint));
        !any(&self.excluded) && self.included.as_ref().is_none_or(|included| any(included))
    }
}

/// `key`, which matches any value, or `key=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintPattern {
    pub key: Str,
    pub value: Option<Str>,
}

impl TaintPattern {
    /// A taint with an empty value matches by key only: `key=` matches nothing (spec 14).
    pub fn matches(&self, taint: &Taint) -> bool {
        self.key == taint.key && self.value.as_ref().is_none_or(|v| !v.is_empty() && *v == taint.value)
    }
}

/// Spec 15.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovePodsViolatingTopologySpreadConstraintArgs {
    pub pods: PodSelection,
    /// Constraints of these kinds are looked at.
    pub constraints: Vec<WhenUnsatisfiable>,
    /// Only pods that fit a node of a domain below average are moved. Independent of the evictor's `node_fit`.
    pub topology_balance_node_fit: bool,
}

impl Default for RemovePodsViolatingTopologySpreadConstraintArgs {
    fn default() -> Self {
        Self {
            pods: PodSelection::default(),
            constraints: vec![WhenUnsatisfiable::DoNotSchedule],
            topology_balance_node_fit: true,
        }
    }
}
