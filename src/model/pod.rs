//! Pods.

use super::pod_status::PodStatus;
use super::volume::Volume;
use super::{
    Affinity, Container, Labels, ObjectMeta, ResourceList, ResourceRequirements, Str, Toleration,
    TopologySpreadConstraint,
};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pod {
    pub meta: ObjectMeta,
    pub spec: PodSpec,
    pub status: PodStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSpec {
    /// Empty: not bound.
    pub node_name: Str,
    /// Empty only before defaulting; then `default-scheduler`.
    pub scheduler_name: Str,
    /// None counts as 0.
    pub priority: Option<i32>,
    pub priority_class: Str,
    pub preemption_policy: PreemptionPolicy,
    pub containers: Vec<Container>,
    pub init_containers: Vec<Container>,
    /// Pod-level resources; None when `spec.resources` is null.
    pub resources: Option<ResourceRequirements>,
    pub overhead: ResourceList,
    pub runtime_class: Str,
    /// None and an empty map differ: a null selector lets the NodeAffinity filter be skipped.
    pub node_selector: Option<Labels>,
    pub affinity: Affinity,
    pub tolerations: Vec<Toleration>,
    pub topology_spread: Vec<TopologySpreadConstraint>,
    pub volumes: Vec<Volume>,
    pub scheduling_gates: Vec<Str>,
    /// Names of `spec.resourceClaims[]` (dynamic resource allocation).
    pub resource_claims: Vec<Str>,
    pub host_network: bool,
    /// `hostUsers: false`: the pod runs in its own user namespace.
    pub own_user_namespace: bool,
    pub termination_grace_period_seconds: Option<i64>,
    /// `spec.schedulingGroup.podGroupName`; empty: none.
    pub pod_group: Str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PreemptionPolicy {
    #[default]
    PreemptLowerPriority,
    Never,
}

impl Pod {
    pub fn priority(&self) -> i32 {
        self.spec.priority.unwrap_or(0)
    }

    pub fn is_bound(&self) -> bool {
        !self.spec.node_name.is_empty()
    }

    pub fn is_terminal(&self) -> bool {
        self.status.phase.is_terminal()
    }

    /// Containers that run together: the regular ones and the sidecars, in the order that upstream visits them.
    pub fn long_running_containers(&self) -> impl Iterator<Item = &Container> {
        self.spec.containers.iter().chain(self.spec.init_containers.iter().filter(|c| c.restart_always))
    }

    /// `affinity.podAffinity` or `podAntiAffinity` is present, even with empty lists.
    pub fn has_pod_affinity(&self) -> bool {
        self.spec.affinity.pod.is_some() || self.spec.affinity.pod_anti.is_some()
    }

    pub fn has_required_anti_affinity(&self) -> bool {
        self.spec.affinity.pod_anti.as_ref().is_some_and(|a| !a.required.is_empty())
    }
}
