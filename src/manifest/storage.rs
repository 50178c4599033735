//! Storage kinds that the volume plugins read.

use super::Options;
use super::error::unsupported;
use super::meta::meta;
use super::reader::{Reader, str_of};
use super::selectors::{node_selector, optional_selector, selector};
use crate::model::node_selector::{NodeOperator, NodeRequirement};
use crate::model::storage::{
    AccessMode, BindingMode, ClaimRef, CsiDriver, CsiNode, CsiNodeDriver, CsiStorageCapacity, PersistentVolume,
    PersistentVolumeClaim, PvSource, StorageClass, VolumeAttachment, VolumeMode,
};
use crate::model::{Kind, NodeSelectorTerm, ObjectMeta, Quantity, Str};

const ACCESS_MODES: [(&str, AccessMode); 4] = [
    ("ReadOnlyMany", AccessMode::ReadOnlyMany),
    ("ReadWriteMany", AccessMode::ReadWriteMany),
    ("ReadWriteOnce", AccessMode::ReadWriteOnce),
    ("ReadWriteOncePod", AccessMode::ReadWriteOncePod),
];
const VOLUME_MODES: [(&str, VolumeMode); 2] = [("Block", VolumeMode::Block), ("Filesystem", VolumeMode::Filesystem)];
const BINDING_MODES: [(&str, BindingMode); 2] =
    [("Immediate", BindingMode::Immediate), ("WaitForFirstConsumer", BindingMode::WaitForFirstConsumer)];

/// Before there was a field, this annotation named the class; where it is, it wins, as upstream.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn persistent_volume(object: &Reader<'_>, options: Options) -> PersistentVolume {
    let mut pv = PersistentVolume { meta: meta(object, Kind::PersistentVolume, options), ..Default::default() };
    if let Some(r) = object.object("spec") {
        pv.capacity = quantity_in(&r, &["capacity", "storage"]).unwrap_or_default();
        pv.access_modes = access_modes(&r);
        pv.volume_mode = r.choice("volumeMode", &VOLUME_MODES).unwrap_or_default();
        pv.storage_class = storage_class_name(&r, &pv.meta).unwrap_or_default();
        pv.attributes_class = r.str("volumeAttributesClassName");
        pv.claim_ref = r.object("claimRef").map(|c| ClaimRef {
            namespace: c.str("namespace"),
            name: c.str("name"),
            uid: c.str("uid"),
        });
        pv.node_affinity = r.object("nodeAffinity").and_then(|n| node_selector(&n, "required"));
        pv.source = source(&r);
    }
    pv.phase = phase(object);
    pv
}

fn source(spec: &Reader<'_>) -> PvSource {
    if let Some(csi) = spec.object("csi") {
        return PvSource::Csi { driver: csi.required_str("driver"), handle: csi.required_str("volumeHandle") };
    }
    if let Some(ebs) = spec.object("awsElasticBlockStore") {
        return PvSource::AwsElasticBlockStore { volume_id: ebs.required_str("volumeID") };
    }
    if let Some(disk) = spec.object("gcePersistentDisk") {
        return PvSource::GcePersistentDisk { pd_name: disk.required_str("pdName") };
    }
    if let Some(disk) = spec.object("azureDisk") {
        return PvSource::AzureDisk { disk_name: disk.required_str("diskName") };
    }
    if let Some(cinder) = spec.object("cinder") {
        return PvSource::Cinder { volume_id: cinder.required_str("volumeID") };
    }
    if let Some(portworx) = spec.object("portworxVolume") {
        return PvSource::Portworx { volume_id: portworx.required_str("volumeID") };
    }
    PvSource::Other
}

pub(super) fn persistent_volume_claim(object: &Reader<'_>, options: Options) -> PersistentVolumeClaim {
    let mut pvc =
        PersistentVolumeClaim { meta: meta(object, Kind::PersistentVolumeClaim, options), ..Default::default() };
    if let Some(r) = object.object("spec") {
        pvc.request = quantity_in(&r, &["resources", "requests", "storage"]).unwrap_or_default();
        pvc.access_modes = access_modes(&r);
        pvc.volume_mode = r.choice("volumeMode", &VOLUME_MODES).unwrap_or_default();
        pvc.storage_class = storage_class_name(&r, &pvc.meta);
        pvc.attributes_class = r.str("volumeAttributesClassName");
        pvc.volume_name = r.str("volumeName");
        pvc.selector = optional_selector(&r, "selector");
    }
    pvc.phase = phase(object);
    pvc
}

fn phase(object: &Reader<'_>) -> Str {
    object.object("status").map(|s| s.str("phase")).unwrap_or_default()
}

fn storage_class_name(spec: &Reader<'_>, meta: &ObjectMeta) -> Option<Str> {
    let field = spec.text("storageClassName").map(str_of);
    meta.annotations.get(CLASS_ANNOTATION).cloned().or(field)
}

fn access_modes(r: &Reader<'_>) -> Vec<AccessMode> {
    let mut modes = Vec::new();
    r.checked_texts("accessModes", |text, reader| match ACCESS_MODES.iter().find(|(name, _)| *name == text) {
        Some((_, mode)) => modes.push(*mode),
        None => reader.error(unsupported(text, ACCESS_MODES.iter().map(|(name, _)| *name))),
    });
    modes
}

/// A quantity some fields down; sizes of volumes aren't rounded.
fn quantity_in(r: &Reader<'_>, path: &[&str]) -> Option<Quantity> {
    match path {
        [] => None,
        [field] => r.any(field).and_then(|q| q.as_quantity()),
        [field, rest @ ..] => r.object(field).and_then(|below| quantity_in(&below, rest)),
    }
}

pub(super) fn storage_class(object: &Reader<'_>, options: Options) -> StorageClass {
    StorageClass {
        meta: meta(object, Kind::StorageClass, options),
        provisioner: object.str("provisioner"),
        // The API server's default, which most hand-written classes rely on.
        binding_mode: object.choice("volumeBindingMode", &BINDING_MODES).or(Some(BindingMode::Immediate)),
        allowed_topologies: object.list("allowedTopologies", |t| Some(topology_term(t))).unwrap_or_default(),
    }
}

/// A term of `allowedTopologies`, which is a node selector term with other field names and only `In`.
fn topology_term(r: &Reader<'_>) -> NodeSelectorTerm {
    let expressions = r.list("matchLabelExpressions", |e| {
        let key = e.required_str("key");
        let values = e.texts("values");
        if values.is_empty() {
            e.required("values");
        }
        Some(NodeRequirement { key, op: NodeOperator::In(values) })
    });
    NodeSelectorTerm { expressions: expressions.unwrap_or_default(), fields: Vec::new() }
}

pub(super) fn csi_node(object: &Reader<'_>, options: Options) -> CsiNode {
    let meta = meta(object, Kind::CsiNode, options);
    let drivers = object.object("spec").and_then(|r| r.list("drivers", |d| Some(csi_node_driver(d))));
    CsiNode { meta, drivers: drivers.unwrap_or_default() }
}

fn csi_node_driver(r: &Reader<'_>) -> CsiNodeDriver {
    CsiNodeDriver {
        name: r.required_str("name"),
        node_id: r.str("nodeID"),
        topology_keys: r.texts("topologyKeys"),
        count: r.object("allocatable").and_then(|a| a.int32("count")),
    }
}

pub(super) fn csi_driver(object: &Reader<'_>, options: Options) -> CsiDriver {
    let meta = meta(object, Kind::CsiDriver, options);
    let spec = object.object("spec");
    let flag = |field| spec.as_ref().and_then(|r| r.flag(field)).unwrap_or(false);
    CsiDriver {
        meta,
        storage_capacity: flag("storageCapacity"),
        prevent_scheduling_if_missing: flag("preventPodSchedulingIfMissing"),
    }
}

pub(super) fn csi_storage_capacity(object: &Reader<'_>, options: Options) -> CsiStorageCapacity {
    CsiStorageCapacity {
        meta: meta(object, Kind::CsiStorageCapacity, options),
        storage_class: object.required_str("storageClassName"),
        node_topology: selector(object, "nodeTopology"),
        capacity: quantity_in(object, &["capacity"]),
        maximum_volume_size: quantity_in(object, &["maximumVolumeSize"]),
    }
}

pub(super) fn volume_attachment(object: &Reader<'_>, options: Options) -> VolumeAttachment {
    let mut attachment = VolumeAttachment { meta: meta(object, Kind::VolumeAttachment, options), ..Default::default() };
    if let Some(r) = object.object("spec") {
        attachment.attacher = r.required_str("attacher");
        attachment.node = r.required_str("nodeName");
        attachment.volume = r.object("source").map(|s| s.str("persistentVolumeName")).unwrap_or_default();
    }
    attachment
}
