//! PriorityClasses: where a pod's `priorityClassName` gets its number from.

use super::ObjectMeta;
use super::pod::PreemptionPolicy;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriorityClass {
    pub meta: ObjectMeta,
    pub value: i32,
    /// The class of pods that name none.
    pub global_default: bool,
    pub preemption_policy: PreemptionPolicy,
}

/// The two classes that every cluster has, whether or not their objects are fed.
pub fn built_in_value(name: &str) -> Option<i32> {
    match name {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}
