//! The volumes in use on one node.

use std::sync::Arc;

use crate::cluster::pod_volumes::Disk;
use crate::model::csi_migration::VolumeId;
use crate::model::storage::CsiNode;

/// Kept current with every pod, attachment, claim and volume, so that a limit is checked by two binary searches instead of
/// a walk over the node's pods and their claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeVolumes {
    csi_node: Option<Arc<CsiNode>>,
    /// Sorted, one entry for each volume of each pod.
    disks: Vec<Disk>,
    /// Sorted by driver and handle.
    attached: Vec<(VolumeId, Uses)>,
}

/// Who uses a volume on a node. Never both 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Uses {
    /// Volumes of pods.
    pods: u32,
    /// VolumeAttachment objects.
    attachments: u32,
}

/// What uses a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Pod,
    Attachment,
}

impl NodeVolumes {
    pub fn csi_node(&self) -> Option<&Arc<CsiNode>> {
        self.csi_node.as_ref()
    }

    /// Disks that pods name themselves, sorted.
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// Whether some pod here uses the volume.
    pub fn is_used_by_pods(&self, id: &VolumeId) -> bool {
        self.find(id).is_ok_and(|i| self.attached[i].1.pods > 0)
    }

    /// How many different volumes of a driver pods use here or are attached.
    pub fn count(&self, driver: &str) -> usize {
        let from = self.attached.partition_point(|(id, _)| *id.driver < *driver);
        self.attached[from..].partition_point(|(id, _)| *id.driver == *driver)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.csi_node.is_none() && self.disks.is_empty() && self.attached.is_empty()
    }

    pub(super) fn set_csi_node(&mut self, csi_node: Option<Arc<CsiNode>>) {
        self.csi_node = csi_node;
    }

    pub(super) fn add_disk(&mut self, disk: &Disk) {
        let place = self.disks.partition_point(|d| d < disk);
        self.disks.insert(place, disk.clone());
    }

    pub(super) fn remove_disk(&mut self, disk: &Disk) {
        if let Ok(i) = self.disks.binary_search(disk) {
            self.disks.remove(i);
        }
    }

    /// Adds users of a volume or takes them away.
    pub(super) fn change(&mut self, id: &VolumeId, user: User, delta: i32) {
        let i = match self.find(id) {
            Ok(i) => i,
            Err(i) => {
                self.attached.insert(i, (id.clone(), Uses::default()));
                i
            }
        };
        let uses = &mut self.attached[i].1;
        let count = match user {
            User::Pod => &mut uses.pods,
            User::Attachment => &mut uses.attachments,
        };
        *count = count.saturating_add_signed(delta);
        if *uses == Uses::default() {
            self.attached.remove(i);
        }
    }

    fn find(&self, id: &VolumeId) -> Result<usize, usize> {
        self.attached.binary_search_by(|(other, _)| other.cmp(id))
    }
}
