//! `spec.topologySpreadConstraints[]` (spec section 4.10).

use super::{LabelSelector, Str};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopologySpreadConstraint {
    /// At least 1.
    pub max_skew: i32,
    pub topology_key: Str,
    pub when_unsatisfiable: WhenUnsatisfiable,
    pub selector: LabelSelector,
    /// At least 1; only DoNotSchedule looks at it.
    pub min_domains: i32,
    pub node_affinity_policy: InclusionPolicy,
    pub node_taints_policy: InclusionPolicy,
    /// Keys whose values on the pod are added to the selector. `manifest` merges them into `selector`; they stay here for
    /// constraints that come by another way, and merging twice changes nothing.
    pub match_label_keys: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhenUnsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

/// Whether nodes that the pod couldn't use anyway count as domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InclusionPolicy {
    Honor,
    Ignore,
}

impl TopologySpreadConstraint {
    /// A constraint with upstream's defaults: minDomains 1, affinity honoured, taints ignored.
    pub fn new(max_skew: i32, topology_key: Str, when: WhenUnsatisfiable, selector: LabelSelector) -> Self {
        Self {
            max_skew,
            topology_key,
            when_unsatisfiable: when,
            selector,
            min_domains: 1,
            node_affinity_policy: InclusionPolicy::Honor,
            node_taints_policy: InclusionPolicy::Ignore,
            match_label_keys: Vec::new(),
        }
    }
}
