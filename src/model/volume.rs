//! Volumes of a pod, as far as scheduling and eviction look at them.

use super::Str;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Volume {
    pub name: Str,
    pub source: VolumeSource,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeSource {
    PersistentVolumeClaim {
        claim: Str,
        read_only: bool,
    },
    /// A claim made for this pod, named `<pod>-<volume>`.
    Ephemeral,
    GcePersistentDisk {
        pd_name: Str,
        read_only: bool,
    },
    AwsElasticBlockStore {
        volume_id: Str,
        read_only: bool,
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
    Iscsi {
        iqn: Str,
        read_only: bool,
    },
    Rbd {
        monitors: Vec<Str>,
        pool: Str,
        image: Str,
        read_only: bool,
    },
    /// An inline CSI volume.
    Csi {
        driver: Str,
    },
    /// An OCI image mounted as a volume; ImageLocality counts it.
    Image {
        reference: Str,
    },
    EmptyDir,
    HostPath,
    /// Anything else; no rule reads it.
    Other,
}
