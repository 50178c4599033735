//! `metadata` of any object.

use super::{Labels, Str, Time};

/// What Berth keeps of `metadata`. `uid` is never empty: `manifest` fills it in where a hand-written object has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectMeta {
    pub name: Str,
    /// Empty for cluster-scoped kinds.
    pub namespace: Str,
    pub uid: Str,
    /// Opaque to Kubernetes' clients; a decimal in practice. Empty when the object didn't come from an API server.
    pub resource_version: Str,
    pub labels: Labels,
    pub annotations: Labels,
    pub owners: Vec<OwnerReference>,
    pub created: Option<Time>,
    /// Set while the object is being deleted ("terminating").
    pub deleted: Option<Time>,
}

impl ObjectMeta {
    /// The owner with `controller: true`, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owners.iter().find(|o| o.controller)
    }

    pub fn is_terminating(&self) -> bool {
        self.deleted.is_some()
    }

    /// `namespace/name`, or the bare name of a cluster-scoped object.
    pub fn key(&self) -> String {
        if self.namespace.is_empty() { self.name.to_string() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnerReference {
    pub api_version: Str,
    pub kind: Str,
    pub name: Str,
    pub uid: Str,
    pub controller: bool,
}
