//! Namespaces: their labels are what `namespaceSelector` reads.

use super::ObjectMeta;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    pub meta: ObjectMeta,
}
