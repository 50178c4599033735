//! An object of any kind that Berth knows.

use std::fmt;
use std::sync::Arc;

use super::metrics::{NodeMetrics, PodMetrics};
use super::storage::{
    CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment,
};
use super::{
    Namespace, Node, ObjectMeta, Pod, PodDisruptionBudget, PriorityClass, ReplicaSet, ReplicationController,
    RuntimeClass, Service, StatefulSet, Str,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($type:ty) = $name:literal, $scope:ident;)*) => {
        /// The kinds that Berth reads.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $variant,)* }

        /// An object, shared with whoever holds it.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Object { $($variant(Arc<$type>),)* }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)*];

            /// The name in `kind:`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether objects of the kind live in a namespace.
            pub fn is_namespaced(self) -> bool {
                match self { $(Self::$variant => matches!(stringify!($scope).as_bytes(), b"namespaced"),)* }
            }
        }

        impl Object {
            pub fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$variant,)* }
            }

            pub fn meta(&self) -> &ObjectMeta {
                match self { $(Self::$variant(o) => &o.meta,)* }
            }
        }

        $(impl From<$type> for Object {
            fn from(object: $type) -> Self { Self::$variant(Arc::new(object)) }
        })*
    };
}

kinds! {
    Node(Node) = "Node", cluster;
    Pod(Pod) = "Pod", namespaced;
    Namespace(Namespace) = "Namespace", cluster;
    Service(Service) = "Service", namespaced;
    ReplicationController(ReplicationController) = "ReplicationController", namespaced;
    ReplicaSet(ReplicaSet) = "ReplicaSet", namespaced;
    StatefulSet(StatefulSet) = "StatefulSet", namespaced;
    PodDisruptionBudget(PodDisruptionBudget) = "PodDisruptionBudget", namespaced;
    PriorityClass(PriorityClass) = "PriorityClass", cluster;
    RuntimeClass(RuntimeClass) = "RuntimeClass", cluster;
    PersistentVolume(PersistentVolume) = "PersistentVolume", cluster;
    PersistentVolumeClaim(PersistentVolumeClaim) = "PersistentVolumeClaim", namespaced;
    StorageClass(StorageClass) = "StorageClass", cluster;
    CsiNode(CsiNode) = "CSINode", cluster;
    CsiDriver(CsiDriver) = "CSIDriver", cluster;
    CsiStorageCapacity(CsiStorageCapacity) = "CSIStorageCapacity", namespaced;
    VolumeAttachment(VolumeAttachment) = "VolumeAttachment", cluster;
    NodeMetrics(NodeMetrics) = "NodeMetrics", cluster;
    PodMetrics(PodMetrics) = "PodMetrics", namespaced;
}

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names an object without holding it. `uid` may be empty: then the name alone decides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    pub kind: Kind,
    pub namespace: Str,
    pub name: Str,
    pub uid: Str,
}

impl ObjectRef {
    pub fn of(object: &Object) -> Self {
        let meta = object.meta();
        Self { kind: object.kind(), namespace: meta.namespace.clone(), name: meta.name.clone(), uid: meta.uid.clone() }
    }
}

impl fmt::Display for ObjectRef {
    /// `Pod default/web-1`, `Node n1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}
