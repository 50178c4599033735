//! Services and pod owners: default topology spreading deduces its selector from them (spec section 5.4.3).

use super::{LabelSelector, Labels, ObjectMeta};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    pub meta: ObjectMeta,
    /// None selects nothing.
    pub selector: Option<Labels>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplicationController {
    pub meta: ObjectMeta,
    pub selector: Option<Labels>,
    pub replicas: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplicaSet {
    pub meta: ObjectMeta,
    pub selector: LabelSelector,
    pub replicas: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatefulSet {
    pub meta: ObjectMeta,
    pub selector: LabelSelector,
    pub replicas: i32,
}
