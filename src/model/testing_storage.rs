//! Fluent builders for storage objects in tests, as [`super::testing`] has them for pods and nodes.

use super::node_selector::{NodeOperator, NodeRequirement};
use super::storage::{
    AccessMode, BindingMode, ClaimRef, CsiDriver, CsiNode, CsiNodeDriver, CsiStorageCapacity, PersistentVolume,
    PersistentVolumeClaim, PvSource, StorageClass, VolumeAttachment,
};
use super::testing::{quantity, selector};
use super::volume::VolumeSource;
use super::{LabelSelector, NodeSelector, NodeSelectorTerm, ObjectMeta, Str, Time};

fn meta(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: name.into(),
        namespace: namespace.into(),
        uid: format!("uid-{namespace}-{name}").into(),
        ..Default::default()
    }
}

fn term(key: &str, values: &[&str]) -> NodeSelectorTerm {
    let op = NodeOperator::In(values.iter().copied().map(Str::from).collect());
    NodeSelectorTerm { expressions: vec![NodeRequirement { key: key.into(), op }], fields: Vec::new() }
}

/// One term: the label must have one of the values.
pub fn node_terms(key: &str, values: &[&str]) -> NodeSelector {
    NodeSelector { terms: vec![term(key, values)] }
}

/// A pod's volume that is a claim.
pub fn claim_volume(claim: &str) -> VolumeSource {
    VolumeSource::PersistentVolumeClaim { claim: claim.into(), read_only: false }
}

/// An available ReadWriteOnce volume of 10 GiB without a class.
pub fn volume(name: &str) -> VolumeBuilder {
    VolumeBuilder(PersistentVolume {
        meta: meta("", name),
        capacity: quantity("10Gi"),
        access_modes: vec![AccessMode::ReadWriteOnce],
        phase: "Available".into(),
        ..Default::default()
    })
}

#[derive(Debug, Clone)]
pub struct VolumeBuilder(PersistentVolume);

impl VolumeBuilder {
    #[must_use]
    pub fn size(mut self, size: &str) -> Self {
        self.0.capacity = quantity(size);
        self
    }
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        self.0.storage_class = class.into();
        self
    }
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.meta.labels.insert(key.into(), value.into());
        self
    }
    #[must_use]
    pub fn source(mut self, source: PvSource) -> Self {
        self.0.source = source;
        self
    }
    #[must_use]
    pub fn csi(self, driver: &str, handle: &str) -> Self {
        self.source(PvSource::Csi { driver: driver.into(), handle: handle.into() })
    }
    /// Only for nodes whose label has one of the values.
    #[must_use]
    pub fn on_nodes(mut self, key: &str, values: &[&str]) -> Self {
        self.0.node_affinity = Some(node_terms(key, values));
        self
    }
    /// `claimRef` to a claim of namespace `default`, without a uid.
    #[must_use]
    pub fn claimed_by(mut self, claim: &str) -> Self {
        self.0.claim_ref = Some(ClaimRef { namespace: "default".into(), name: claim.into(), uid: Str::default() });
        self
    }
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.0.meta.deleted = Some(Time::from_secs(1));
        self
    }
    /// Any other field.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut PersistentVolume)) -> Self {
        change(&mut self.0);
        self
    }
    pub fn build(self) -> PersistentVolume {
        self.0
    }
}

/// A pending ReadWriteOnce claim of namespace `default` that asks for 1 GiB, without a class.
pub fn claim(name: &str) -> ClaimBuilder {
    ClaimBuilder(PersistentVolumeClaim {
        meta: meta("default", name),
        request: quantity("1Gi"),
        access_modes: vec![AccessMode::ReadWriteOnce],
        phase: "Pending".into(),
        ..Default::default()
    })
}

#[derive(Debug, Clone)]
pub struct ClaimBuilder(PersistentVolumeClaim);

impl ClaimBuilder {
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.meta = meta(namespace, &self.0.meta.name.clone());
        self
    }
    #[must_use]
    pub fn size(mut self, size: &str) -> Self {
        self.0.request = quantity(size);
        self
    }
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        self.0.storage_class = Some(class.into());
        self
    }
    #[must_use]
    pub fn access(mut self, mode: AccessMode) -> Self {
        self.0.access_modes = vec![mode];
        self
    }
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0.meta.annotations.insert(key.into(), value.into());
        self
    }
    #[must_use]
    pub fn selector(mut self, pairs: &[(&str, &str)]) -> Self {
        self.0.selector = Some(selector(pairs));
        self
    }
    /// Fully bound.
    #[must_use]
    pub fn bound_to(mut self, volume: &str) -> Self {
        self.0.volume_name = volume.into();
        self.0.phase = "Bound".into();
        self.annotation(super::storage::BIND_COMPLETED, "yes")
    }
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.0.meta.deleted = Some(Time::from_secs(1));
        self
    }
    /// Any other field.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut PersistentVolumeClaim)) -> Self {
        change(&mut self.0);
        self
    }
    pub fn build(self) -> PersistentVolumeClaim {
        self.0
    }
}

/// A class that binds with the first consumer.
pub fn delayed_class(name: &str, provisioner: &str) -> StorageClass {
    StorageClass {
        meta: meta("", name),
        provisioner: provisioner.into(),
        binding_mode: Some(BindingMode::WaitForFirstConsumer),
        allowed_topologies: Vec::new(),
    }
}

/// A class that binds at once.
pub fn immediate_class(name: &str) -> StorageClass {
    StorageClass { binding_mode: Some(BindingMode::Immediate), ..delayed_class(name, "x.example") }
}

/// The class, provisioning only for nodes whose label has one of the values (or those of an earlier call).
#[must_use]
pub fn allowed_on(mut class: StorageClass, key: &str, values: &[&str]) -> StorageClass {
    class.allowed_topologies.push(term(key, values));
    class
}

/// The CSI drivers of a node, with how many volumes each takes.
pub fn csi_node(node: &str, limits: &[(&str, i32)]) -> CsiNode {
    let drivers = limits.iter().map(|(name, count)| CsiNodeDriver {
        name: (*name).into(),
        node_id: node.into(),
        topology_keys: Vec::new(),
        count: Some(*count),
    });
    CsiNode { meta: meta("", node), drivers: drivers.collect() }
}

/// A driver whose capacity objects must be consulted.
pub fn capacity_driver(name: &str) -> CsiDriver {
    CsiDriver { meta: meta("", name), storage_capacity: true, ..Default::default() }
}

/// How much of a class there is on the nodes that a selector matches.
pub fn storage_capacity(name: &str, class: &str, nodes: LabelSelector, capacity: &str) -> CsiStorageCapacity {
    CsiStorageCapacity {
        meta: meta("default", name),
        storage_class: class.into(),
        node_topology: nodes,
        capacity: Some(quantity(capacity)),
        maximum_volume_size: None,
    }
}

/// A volume that a driver has attached to a node.
pub fn attachment(name: &str, attacher: &str, node: &str, volume: &str) -> VolumeAttachment {
    VolumeAttachment { meta: meta("", name), attacher: attacher.into(), node: node.into(), volume: volume.into() }
}
