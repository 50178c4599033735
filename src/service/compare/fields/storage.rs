//! Volumes, claims, classes and what CSI reports.

use super::writer::FieldWriter;
use super::{names, selectors};
use crate::model::storage::{
    AccessMode, BindingMode, ClaimRef, CsiDriver, CsiNode, CsiNodeDriver, CsiStorageCapacity, PersistentVolume,
    PersistentVolumeClaim, PvSource, StorageClass, VolumeAttachment, VolumeMode,
};

pub(super) fn volume(w: &mut FieldWriter, volume: &PersistentVolume) {
    let PersistentVolume {
        meta: _,
        capacity,
        access_modes,
        volume_mode,
        storage_class,
        attributes_class,
        claim_ref,
        node_affinity,
        source,
        phase,
    } = volume;
    w.inside("spec", |w| {
        w.value("capacity[\"storage\"]", capacity);
        w.texts("accessModes", &names(access_modes, |mode: &AccessMode| mode.as_str()));
        w.flag_as("volumeMode", *volume_mode == VolumeMode::Block, "Block");
        w.text("storageClassName", storage_class);
        w.text("volumeAttributesClassName", attributes_class);
        w.some("claimRef", claim_ref.as_ref(), |w, ClaimRef { namespace, name, uid }| {
            w.text("namespace", namespace);
            w.text("name", name);
            w.text("uid", uid);
        });
        w.inside("nodeAffinity", |w| w.some("required", node_affinity.as_ref(), selectors::node_selector));
        match source {
            PvSource::Csi { driver, handle } => w.some("csi", Some(()), |w, ()| {
                w.text("driver", driver);
                w.text("volumeHandle", handle);
            }),
            PvSource::AwsElasticBlockStore { volume_id } => w.value("awsElasticBlockStore.volumeID", volume_id),
            PvSource::GcePersistentDisk { pd_name } => w.value("gcePersistentDisk.pdName", pd_name),
            PvSource::AzureDisk { disk_name } => w.value("azureDisk.diskName", disk_name),
            PvSource::Cinder { volume_id } => w.value("cinder.volumeID", volume_id),
            PvSource::Portworx { volume_id } => w.value("portworxVolume.volumeID", volume_id),
            PvSource::Other => {}
        }
    });
    w.inside("status", |w| w.text("phase", phase));
}

pub(super) fn claim(w: &mut FieldWriter, claim: &PersistentVolumeClaim) {
    let PersistentVolumeClaim {
        meta: _,
        request,
        access_modes,
        volume_mode,
        storage_class,
        attributes_class,
        volume_name,
        selector,
        phase,
    } = claim;
    w.inside("spec", |w| {
        w.value("resources.requests[\"storage\"]", request);
        w.texts("accessModes", &names(access_modes, |mode: &AccessMode| mode.as_str()));
        w.flag_as("volumeMode", *volume_mode == VolumeMode::Block, "Block");
        w.option("storageClassName", storage_class.as_ref());
        w.text("volumeAttributesClassName", attributes_class);
        w.text("volumeName", volume_name);
        if let Some(selector) = selector {
            selectors::label_selector(w, "selector", selector);
        }
    });
    w.inside("status", |w| w.text("phase", phase));
}

pub(super) fn class(w: &mut FieldWriter, class: &StorageClass) {
    let StorageClass { meta: _, provisioner, binding_mode, allowed_topologies } = class;
    w.text("provisioner", provisioner);
    let mode = binding_mode.map(|mode| match mode {
        BindingMode::Immediate => "Immediate",
        BindingMode::WaitForFirstConsumer => "WaitForFirstConsumer",
    });
    w.option("volumeBindingMode", mode);
    w.each("allowedTopologies", allowed_topologies, selectors::term);
}

pub(super) fn csi_node(w: &mut FieldWriter, node: &CsiNode) {
    let CsiNode { meta: _, drivers } = node;
    w.inside("spec", |w| {
        w.each("drivers", drivers, |w, CsiNodeDriver { name, node_id, topology_keys, count }| {
            w.text("name", name);
            w.text("nodeID", node_id);
            w.texts("topologyKeys", topology_keys);
            w.option("allocatable.count", *count);
        });
    });
}

pub(super) fn csi_driver(w: &mut FieldWriter, driver: &CsiDriver) {
    let CsiDriver { meta: _, storage_capacity, prevent_scheduling_if_missing } = driver;
    w.inside("spec", |w| {
        w.flag("storageCapacity", *storage_capacity);
        w.flag("preventPodSchedulingIfMissing", *prevent_scheduling_if_missing);
    });
}

pub(super) fn capacity(w: &mut FieldWriter, capacity: &CsiStorageCapacity) {
    let CsiStorageCapacity { meta: _, storage_class, node_topology, capacity, maximum_volume_size } = capacity;
    w.text("storageClassName", storage_class);
    selectors::label_selector(w, "nodeTopology", node_topology);
    w.option("capacity", *capacity);
    w.option("maximumVolumeSize", *maximum_volume_size);
}

pub(super) fn attachment(w: &mut FieldWriter, attachment: &VolumeAttachment) {
    let VolumeAttachment { meta: _, attacher, node, volume } = attachment;
    w.inside("spec", |w| {
        w.text("attacher", attacher);
        w.text("nodeName", node);
        w.text("source.persistentVolumeName", volume);
    });
}
