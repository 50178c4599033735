//! Claims that have their volume: the node must be one that the volume can be reached from.

use crate::cluster::NodeRow;
use crate::cluster::view::ObjectTable;
use crate::engine::volume_reason::VolumeReason;
use crate::model::csi_migration::{InTreePlugin, MIGRATED_PLUGINS, translated_affinity};
use crate::model::storage::{PersistentVolume, PersistentVolumeClaim};
use crate::model::{NodeSelector, Str};

/// A bound claim's volume.
pub(super) struct Bound<'a> {
    name: &'a Str,
    /// None: there is no such volume.
    volume: Option<&'a PersistentVolume>,
    /// What the volume asks for on nodes that have migrated its plugin, where that differs.
    migrated: Option<(InTreePlugin, NodeSelector)>,
}

/// Whether a volume's node affinity lets it be used on a node. Upstream hands on the node's labels alone, so that a term on
/// the node's name sees none.
pub(super) fn reaches(affinity: Option<&NodeSelector>, node: &NodeRow<'_>) -> bool {
    affinity.is_none_or(|selector| selector.matches("", node.labels()))
}

impl<'a> Bound<'a> {
    pub(super) fn new(objects: &'a ObjectTable, claim: &'a PersistentVolumeClaim) -> Self {
        let volume = objects.persistent_volume(&claim.volume_name).map(|volume| &**volume);
        let migrated = volume.and_then(|v| Some((InTreePlugin::of_volume(&v.source)?, translated_affinity(v)?)));
        Self { name: &claim.volume_name, volume, migrated }
    }

    pub(super) fn check(&self, node: &NodeRow<'_>) -> Result<(), VolumeReason> {
        let Some(volume) = self.volume else {
            return Err(VolumeReason::BoundVolumeNotFound { volume: self.name.clone() });
        };
        let affinity = match &self.migrated {
            Some((plugin, translated)) if has_migrated(node, *plugin) => Some(translated),
            _ => volume.node_affinity.as_ref(),
        };
        if reaches(affinity, node) {
            Ok(())
        } else {
            Err(VolumeReason::VolumeNodeAffinity { volume: self.name.clone() })
        }
    }
}

/// Whether a node says that it left a plugin to its CSI driver.
fn has_migrated(node: &NodeRow<'_>, plugin: InTreePlugin) -> bool {
    let csi_node = node.volumes().and_then(|volumes| volumes.csi_node());
    let annotation = csi_node.and_then(|csi_node| csi_node.meta.annotations.get(MIGRATED_PLUGINS));
    annotation.is_some_and(|plugins| plugins.split(',').any(|name| name == plugin.name()))
}
