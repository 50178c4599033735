//! RuntimeClasses: where a pod's `runtimeClassName` gets its overhead from.

use super::{ObjectMeta, ResourceList};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeClass {
    pub meta: ObjectMeta,
    /// `overhead.podFixed`.
    pub overhead: ResourceList,
}
