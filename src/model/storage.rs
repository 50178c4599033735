//! Storage kinds that the volume plugins read (spec sections 4.7 and 4.11 to 4.13).

use super::node_selector::NodeSelectorTerm;
use super::{LabelSelector, NodeSelector, ObjectMeta, Quantity, Str};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessMode {
    ReadWriteOnce,
    ReadOnlyMany,
    ReadWriteMany,
    ReadWriteOncePod,
}

impl AccessMode {
    pub const ALL: [AccessMode; 4] =
        [AccessMode::ReadWriteOnce, AccessMode::ReadOnlyMany, AccessMode::ReadWriteMany, AccessMode::ReadWriteOncePod];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadWriteOnce => "ReadWriteOnce",
            Self::ReadOnlyMany => "ReadOnlyMany",
            Self::ReadWriteMany => "ReadWriteMany",
            Self::ReadWriteOncePod => "ReadWriteOncePod",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VolumeMode {
    #[default]
    Filesystem,
    Block,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentVolume {
    pub meta: ObjectMeta,
    pub capacity: Quantity,
    pub access_modes: Vec<AccessMode>,
    pub volume_mode: VolumeMode,
    /// The class by the old annotation, else by the field; empty: none.
    pub storage_class: Str,
    /// `volumeAttributesClassName`; empty: none.
    pub attributes_class: Str,
    pub claim_ref: Option<ClaimRef>,
    /// `nodeAffinity.required`.
    pub node_affinity: Option<NodeSelector>,
    pub source: PvSource,
    /// `status.phase`, such as `Available`.
    pub phase: Str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimRef {
    pub namespace: Str,
    pub name: Str,
    pub uid: Str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum PvSource {
    Csi {
        driver: Str,
        handle: Str,
    },
    AwsElasticBlockStore {
        volume_id: Str,
    },
    GcePersistentDisk {
        pd_name: Str,
    },
    AzureDisk {
        disk_name: Str,
    },
    Cinder {
        volume_id: Str,
    },
    Portworx {
        volume_id: Str,
    },
    #[default]
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentVolumeClaim {
    pub meta: ObjectMeta,
    pub request: Quantity,
    pub access_modes: Vec<AccessMode>,
    pub volume_mode: VolumeMode,
    /// None: no class was named.
    pub storage_class: Option<Str>,
    pub attributes_class: Str,
    /// Empty: not bound.
    pub volume_name: Str,
    /// None: no selector, any volume will do.
    pub selector: Option<LabelSelector>,
    /// `status.phase`: `Pending`, `Bound` or `Lost`.
    pub phase: Str,
}

impl PersistentVolume {
    /// Whether it is reserved for this claim. A reference without a uid names whichever claim has the name.
    pub fn is_claimed_by(&self, claim: &PersistentVolumeClaim) -> bool {
        self.claim_ref.as_ref().is_some_and(|c| {
            c.name == claim.meta.name
                && c.namespace == claim.meta.namespace
                && (c.uid.is_empty() || c.uid == claim.meta.uid)
        })
    }
}

/// The annotation of a claim whose binding was carried through on both sides.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The annotation of a claim that names the node for which a volume is being provisioned.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

impl PersistentVolumeClaim {
    /// Has its volume for good.
    pub fn is_bound(&self) -> bool {
        !self.volume_name.is_empty() && self.meta.annotations.contains_key(BIND_COMPLETED)
    }

    /// The name of its storage class; empty when it has none.
    pub fn class(&self) -> Str {
        self.storage_class.clone().unwrap_or_default()
    }

    /// The node for which its volume is being provisioned.
    pub fn selected_node(&self) -> Option<&Str> {
        self.meta.annotations.get(SELECTED_NODE)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingMode {
    Immediate,
    WaitForFirstConsumer,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StorageClass {
    pub meta: ObjectMeta,
    pub provisioner: Str,
    /// None only for objects that no API server has defaulted.
    pub binding_mode: Option<BindingMode>,
    pub allowed_topologies: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiNode {
    pub meta: ObjectMeta,
    pub drivers: Vec<CsiNodeDriver>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CsiNodeDriver {
    pub name: Str,
    pub node_id: Str,
    pub topology_keys: Vec<Str>,
    /// `allocatable.count`: how many volumes of the driver the node takes. None: no limit.
    pub count: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiDriver {
    pub meta: ObjectMeta,
    /// Whether the scheduler must consult CSIStorageCapacity objects.
    pub storage_capacity: bool,
    pub prevent_scheduling_if_missing: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiStorageCapacity {
    pub meta: ObjectMeta,
    pub storage_class: Str,
    /// None: no node has access.
    pub node_topology: LabelSelector,
    pub capacity: Option<Quantity>,
    pub maximum_volume_size: Option<Quantity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeAttachment {
    pub meta: ObjectMeta,
    pub attacher: Str,
    pub node: Str,
    /// `source.persistentVolumeName`; empty for inline volumes.
    pub volume: Str,
}
