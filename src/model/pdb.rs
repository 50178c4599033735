//! PodDisruptionBudgets.

use super::{LabelSelector, ObjectMeta, Str};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodDisruptionBudget {
    pub meta: ObjectMeta,
    pub selector: LabelSelector,
    pub min_available: Option<IntOrPercent>,
    pub max_unavailable: Option<IntOrPercent>,
    /// `AlwaysAllow` lets unhealthy pods be evicted whatever the budget.
    pub always_allow_unhealthy: bool,
    /// How many evictions the budget allows now.
    pub disruptions_allowed: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub expected_pods: i32,
    /// Names of pods whose eviction was granted and isn't seen yet; sorted.
    pub disrupted_pods: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntOrPercent {
    Int(i32),
    Percent(i32),
}
