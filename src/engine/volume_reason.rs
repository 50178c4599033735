//! Why volumes keep a pod off a node, or off all of them; `Display` gives upstream's texts (spec sections 4.7 and 4.11 to
//! 4.13).

use std::fmt;

use crate::model::Str;

/// A volume plugin's reason. Names and numbers are more than upstream's texts tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeReason {
    /// A pod of the node uses the disk in a way that excludes this one.
    DiskConflict {
        disk: Str,
    },
    /// Another pod somewhere uses a ReadWriteOncePod claim of this one.
    ClaimInUse,
    /// A claim, volume or class doesn't exist.
    NotFound {
        resource: Resource,
        name: Str,
    },
    /// The same of a claim, as NodeVolumeLimits words it.
    LimitsClaimNotFound {
        namespace: Str,
        claim: Str,
    },
    /// The claim of a generic ephemeral volume doesn't exist yet.
    EphemeralClaimNotFound {
        claim: Str,
    },
    /// A claim has the name of a generic ephemeral volume's but wasn't made for this pod.
    EphemeralClaimNotOwned {
        namespace: Str,
        claim: Str,
        pod: Str,
    },
    ClaimLost {
        claim: Str,
        volume: Str,
    },
    ClaimTerminating {
        claim: Str,
    },
    UnboundImmediateClaims {
        claims: Vec<Str>,
    },
    /// A bound volume can't be reached from the node.
    VolumeNodeAffinity {
        volume: Str,
    },
    /// A claim has neither a volume for this node nor a class that would make one here.
    NoVolumeToBind {
        claim: Str,
    },
    NotEnoughStorage {
        claim: Str,
    },
    BoundVolumeNotFound {
        volume: Str,
    },
    /// The node's limit for a driver, the volumes that it has and how many this pod would add.
    TooManyVolumes {
        driver: Str,
        limit: i64,
        attached: usize,
        new: usize,
    },
    /// A volume's zone label, of which the node has no accepted value.
    Zone {
        volume: Str,
        label: &'static str,
    },
    ClaimWithoutName,
    ClaimWithoutVolumeAndClass {
        claim: Str,
    },
    ClaimWithoutVolume {
        claim: Str,
    },
    BindingModeNotSet {
        class: Str,
    },
}

impl VolumeReason {
    /// Whether both have the same text; the names and numbers that it doesn't tell may differ.
    pub fn same_text(&self, other: &Self) -> bool {
        self == other
            || (std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string())
    }
}

/// Kinds as upstream's error texts name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PersistentVolumeClaim => "persistentvolumeclaim",
            Self::PersistentVolume => "persistentvolume",
            Self::StorageClass => "storageclass.storage.k8s.io",
        })
    }
}

impl fmt::Display for VolumeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskConflict { .. } => f.write_str("node(s) had no available disk"),
            Self::ClaimInUse => f.write_str(
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod",
            ),
            Self::NotFound { resource, name } => write!(f, "{resource} {name:?} not found"),
            Self::LimitsClaimNotFound { namespace, claim } => {
                let resource = Resource::PersistentVolumeClaim;
                write!(f, "looking up PVC {namespace}/{claim}: {resource} {claim:?} not found")
            }
            Self::EphemeralClaimNotFound { claim } => {
                write!(f, "waiting for ephemeral volume controller to create the persistentvolumeclaim {claim:?}")
            }
            Self::EphemeralClaimNotOwned { namespace, claim, pod } => {
                write!(f, "PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)")
            }
            Self::ClaimLost { claim, volume } => {
                write!(f, "persistentvolumeclaim {claim:?} bound to non-existent persistentvolume {volume:?}")
            }
            Self::ClaimTerminating { claim } => write!(f, "persistentvolumeclaim {claim:?} is being deleted"),
            Self::UnboundImmediateClaims { .. } => f.write_str("pod has unbound immediate PersistentVolumeClaims"),
            Self::VolumeNodeAffinity { .. } => f.write_str("node(s) didn't match PersistentVolume's node affinity"),
            Self::NoVolumeToBind { .. } => f.write_str("node(s) didn't find available persistent volumes to bind"),
            Self::NotEnoughStorage { .. } => f.write_str("node(s) did not have enough free storage"),
            Self::BoundVolumeNotFound { .. } => {
                f.write_str("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
            }
            Self::TooManyVolumes { .. } => f.write_str("node(s) exceed max volume count"),
            Self::Zone { .. } => f.write_str("node(s) had no available volume zone"),
            Self::ClaimWithoutName => f.write_str("PersistentVolumeClaim had no name"),
            Self::ClaimWithoutVolumeAndClass { .. } => {
                f.write_str("PersistentVolumeClaim had no pv name and storageClass name")
            }
            Self::ClaimWithoutVolume { .. } => f.write_str("PersistentVolume had no name"),
            Self::BindingModeNotSet { class } => write!(f, "VolumeBindingMode not set for StorageClass {class:?}"),
        }
    }
}
