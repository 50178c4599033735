//! Usage as `metrics.k8s.io` reports it.

use super::{ObjectMeta, ResourceList, Str, Time};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeMetrics {
    pub meta: ObjectMeta,
    pub timestamp: Option<Time>,
    pub usage: ResourceList,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodMetrics {
    pub meta: ObjectMeta,
    pub timestamp: Option<Time>,
    /// Usage by container name.
    pub containers: Vec<(Str, ResourceList)>,
}
