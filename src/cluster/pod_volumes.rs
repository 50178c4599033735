//! What a pod's volumes mean to the node it is on, worked out once per pod, and what was decided about its claims.
//!
//! Held by [`super::PodInfo`]; the view's indexes (`view/volume_index.rs`) are kept from it, and plugins compare it.

use crate::model::csi_migration::VolumeId;
use crate::model::volume::VolumeSource;
use crate::model::{Pod, Str};

/// Namespace and name of a claim.
pub type ClaimKey = (Str, Str);

/// How a claim that waits for its first consumer gets a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeBinding {
    pub claim: ClaimKey,
    /// The node that the decision is for.
    pub node: Str,
    /// The volume to bind; None: the claim's class provisions one for the node.
    pub volume: Option<Str>,
}

/// A pod's volumes, as far as they take anything from its node or from other pods besides plain claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodVolumes {
    /// Disks that pods name themselves and can't always share.
    pub disks: Vec<Disk>,
    /// Volumes of migrated types that the pod names itself: they count against CSI limits.
    pub inline: Vec<VolumeId>,
    /// Claims made for this pod's generic ephemeral volumes.
    pub ephemeral_claims: Vec<Str>,
    /// What a decision chose for the pod's claims: held against other pods until the claims are bound.
    pub bindings: Vec<VolumeBinding>,
}

impl PodVolumes {
    /// None for the many pods without such volumes.
    pub(super) fn of(pod: &Pod) -> Option<Box<Self>> {
        let mut volumes = Self::default();
        for volume in &pod.spec.volumes {
            volumes.disks.extend(Disk::of(&volume.source));
            volumes.inline.extend(VolumeId::of_inline(&volume.source));
            if volume.source == VolumeSource::Ephemeral {
                volumes.ephemeral_claims.push(ephemeral_claim(pod, &volume.name));
            }
        }
        (volumes != Self::default()).then(|| Box::new(volumes))
    }
}

/// The name of the claim that is made for a generic ephemeral volume.
pub fn ephemeral_claim(pod: &Pod, volume: &str) -> Str {
    format!("{}-{volume}", pod.meta.name).into()
}

/// A disk that a pod names itself, as VolumeRestrictions compares it (spec 4.7).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Disk {
    GcePersistentDisk { pd_name: Str, read_only: bool },
    AwsElasticBlockStore { volume_id: Str },
    Iscsi { iqn: Str, read_only: bool },
    Rbd { monitors: Vec<Str>, pool: Str, image: Str, read_only: bool },
}

impl Disk {
    /// None for volumes that any number of pods may use.
    pub fn of(source: &VolumeSource) -> Option<Self> {
        Some(match source {
            VolumeSource::GcePersistentDisk { pd_name, read_only } => {
                Self::GcePersistentDisk { pd_name: pd_name.clone(), read_only: *read_only }
            }
            VolumeSource::AwsElasticBlockStore { volume_id, .. } => {
                Self::AwsElasticBlockStore { volume_id: volume_id.clone() }
            }
            VolumeSource::Iscsi { iqn, read_only } => Self::Iscsi { iqn: iqn.clone(), read_only: *read_only },
            VolumeSource::Rbd { monitors, pool, image, read_only } => Self::Rbd {
                monitors: monitors.clone(),
                pool: pool.clone(),
                image: image.clone(),
                read_only: *read_only,
            },
            _ => return None,
        })
    }

    /// Whether two pods on one node can't use both. Read-only use is shared, except of EBS volumes; LUN and portal of an
    /// iSCSI target don't tell disks apart.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::GcePersistentDisk { pd_name: a, read_only: a_ro },
                Self::GcePersistentDisk { pd_name: b, read_only: b_ro },
            )
            | (Self::Iscsi { iqn: a, read_only: a_ro }, Self::Iscsi { iqn: b, read_only: b_ro }) => {
                a == b && !(*a_ro && *b_ro)
            }
            (Self::AwsElasticBlockStore { volume_id: a }, Self::AwsElasticBlockStore { volume_id: b }) => a == b,
            (
                Self::Rbd { monitors: a, pool: a_pool, image: a_image, read_only: a_ro },
                Self::Rbd { monitors: b, pool: b_pool, image: b_image, read_only: b_ro },
            ) => {
                a_pool == b_pool
                    && a_image == b_image
                    && !(*a_ro && *b_ro)
                    && a.iter().any(|monitor| b.contains(monitor))
            }
            _ => false,
        }
    }

    /// Its name, for reasons.
    pub fn name(&self) -> &Str {
        match self {
            Self::GcePersistentDisk { pd_name, .. } => pd_name,
            Self::AwsElasticBlockStore { volume_id } => volume_id,
            Self::Iscsi { iqn, .. } => iqn,
            Self::Rbd { image, .. } => image,
        }
    }
}
