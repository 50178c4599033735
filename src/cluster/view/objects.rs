//! Objects other than nodes and pods that rules look up: services, owners, namespaces, volumes.

use std::sync::Arc;

use imbl::OrdMap;

use super::storage_index::StorageIndex;
use crate::cluster::pod_volumes::ClaimKey;
use crate::model::storage::{
    CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment,
};
use crate::model::{
    Kind, Labels, Namespace, Object, ObjectRef, Quantity, ReplicaSet, ReplicationController, Service, StatefulSet, Str,
};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: Kind,
    namespace: Str,
    name: Str,
}

/// A persistent, ordered table: forks share it, and iteration order is by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectTable {
    pub(super) objects: OrdMap<Key, Object>,
    storage: StorageIndex,
}

macro_rules! look_up {
    ($($(#[$doc:meta])* $method:ident -> $variant:ident($type:ty);)*) => {
        $($(#[$doc])*
        pub fn $method(&self, namespace: &Str, name: &Str) -> Option<&Arc<$type>> {
            match self.get(Kind::$variant, namespace, name)? {
                Object::$variant(object) => Some(object),
                _ => None,
            }
        })*
    };
}

macro_rules! look_up_cluster_wide {
    ($($method:ident -> $variant:ident($type:ty);)*) => {
        $(pub fn $method(&self, name: &Str) -> Option<&Arc<$type>> {
            match self.get(Kind::$variant, &Str::default(), name)? {
                Object::$variant(object) => Some(object),
                _ => None,
            }
        })*
    };
}

impl ObjectTable {
    pub fn get(&self, kind: Kind, namespace: &Str, name: &Str) -> Option<&Object> {
        self.objects.get(&Key { kind, namespace: namespace.clone(), name: name.clone() })
    }

    look_up! {
        replication_controller -> ReplicationController(ReplicationController);
        replica_set -> ReplicaSet(ReplicaSet);
        stateful_set -> StatefulSet(StatefulSet);
        claim -> PersistentVolumeClaim(PersistentVolumeClaim);
    }

    look_up_cluster_wide! {
        persistent_volume -> PersistentVolume(PersistentVolume);
        storage_class -> StorageClass(StorageClass);
        csi_node -> CsiNode(CsiNode);
        csi_driver -> CsiDriver(CsiDriver);
        volume_attachment -> VolumeAttachment(VolumeAttachment);
    }

    /// Volumes of a class that are available, at least this big and reserved for no claim; the smallest first, then by
    /// name. What reservations hold isn't looked at (see `View::volumes`).
    pub fn free_volumes(&self, class: &Str, at_least: Quantity) -> impl Iterator<Item = &Arc<PersistentVolume>> {
        self.storage.free(class, at_least)
    }

    /// Volumes whose `claimRef` names a claim of this name, by name; the uid isn't looked at.
    pub fn volumes_claimed_by(&self, claim: &ClaimKey) -> &[Arc<PersistentVolume>] {
        self.storage.claimed(claim)
    }

    /// The CSIStorageCapacity objects of a class, by namespace and name.
    pub fn capacities(&self, class: &Str) -> impl Iterator<Item = &Arc<CsiStorageCapacity>> {
        self.storage.capacities(class)
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.storage.is_empty()
    }

    /// Labels of a namespace; None when its object isn't known (it then counts as having none).
    pub fn namespace_labels(&self, name: &Str) -> Option<&Labels> {
        match self.get(Kind::Namespace, &Str::default(), name)? {
            Object::Namespace(namespace) => Some(&namespace.meta.labels),
            _ => None,
        }
    }

    /// All namespaces that are known, by name.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<Namespace>> {
        self.of_kind(Kind::Namespace).filter_map(|o| match o {
            Object::Namespace(namespace) => Some(namespace),
            _ => None,
        })
    }

    /// The services of a namespace, by name.
    pub fn services<'a>(&'a self, namespace: &'a Str) -> impl Iterator<Item = &'a Arc<Service>> {
        self.in_namespace(Kind::Service, namespace).filter_map(|o| match o {
            Object::Service(service) => Some(service),
            _ => None,
        })
    }

    /// Objects of all kinds.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// All objects of a kind, by namespace and name.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        let from = Key { kind, namespace: Str::default(), name: Str::default() };
        self.objects.range(from..).take_while(move |(key, _)| key.kind == kind).map(|(_, object)| object)
    }

    /// All objects of a kind in a namespace, by name.
    pub fn in_namespace<'a>(&'a self, kind: Kind, namespace: &'a Str) -> impl Iterator<Item = &'a Object> {
        let from = Key { kind, namespace: namespace.clone(), name: Str::default() };
        self.objects
            .range(from..)
            .take_while(move |(key, _)| key.kind == kind && key.namespace == *namespace)
            .map(|(_, object)| object)
    }

    pub(super) fn insert(&mut self, object: Object) {
        let ObjectRef { kind, namespace, name, .. } = ObjectRef::of(&object);
        self.remove(kind, &namespace, &name);
        self.storage.add(&object);
        self.objects.insert(Key { kind, namespace, name }, object);
    }

    pub(super) fn remove(&mut self, kind: Kind, namespace: &Str, name: &Str) {
        if let Some(object) = self.objects.remove(&Key { kind, namespace: namespace.clone(), name: name.clone() }) {
            self.storage.remove(&object);
        }
    }
}
