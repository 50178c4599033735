//! Nodes.

use super::{ObjectMeta, ResourceList, Str, Taint};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub meta: ObjectMeta,
    /// Cordoned.
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    /// The only source of what a node offers; capacity is never read for that.
    pub allocatable: ResourceList,
    pub capacity: ResourceList,
    /// Kept for the legacy predicates; today's plugins look at no condition.
    pub conditions: Vec<NodeCondition>,
    pub images: Vec<ContainerImage>,
    pub declared_features: Vec<Str>,
    /// Controllers whose pods the node would rather not have: the `preferAvoidPods` annotation, read.
    pub avoided: Vec<AvoidedController>,
}

/// A pod controller by kind and uid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AvoidedController {
    pub kind: Str,
    pub uid: Str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeCondition {
    pub kind: Str,
    pub status: Str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerImage {
    /// Every tag and digest under which the image is known.
    pub names: Vec<Str>,
    pub size_bytes: i64,
}

/// The annotation behind [`Node::avoided`].
pub const PREFER_AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// The label whose domain is a single node.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
