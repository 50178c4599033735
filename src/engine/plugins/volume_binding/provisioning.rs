//! Volumes that a class would make for a claim on a node.

use crate::cluster::{Cancel, NodeRow, View};
use crate::engine::plugins::label_index::{LabelIndex, pairs_of_labels};
use crate::engine::volume_reason::VolumeReason;
use crate::model::node_selector::NodeSelectorTerm;
use crate::model::storage::{CsiStorageCapacity, PersistentVolumeClaim, StorageClass};
use crate::model::{LabelSelector, Str};

/// The provisioner of classes that only name existing volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// What a claim's class can make, and where.
pub(super) struct Provisioning<'a> {
    claim: &'a Str,
    /// None: the class makes no volumes.
    allowed_topologies: Option<&'a [NodeSelectorTerm]>,
    /// None: capacity isn't told, and taken for granted.
    capacity: Option<Capacity<'a>>,
}

/// Where there is room for the claim.
struct Capacity<'a> {
    nodes: Vec<&'a LabelSelector>,
    by_label: LabelIndex<'a>,
}

impl<'a> Provisioning<'a> {
    pub(super) fn of(view: &'a View, claim: &'a PersistentVolumeClaim, cancel: Cancel<'_>) -> Self {
        let class = view.objects().storage_class(&claim.class()).map(|class| &**class);
        let class = class.filter(|c| !c.provisioner.is_empty() && &*c.provisioner != NO_PROVISIONER);
        Self {
            claim: &claim.meta.name,
            allowed_topologies: class.map(|class| class.allowed_topologies.as_slice()),
            capacity: class.and_then(|class| Capacity::of(view, claim, class, cancel)),
        }
    }

    pub(super) fn check(&self, node: &NodeRow<'_>) -> Result<(), VolumeReason> {
        let allowed = self
            .allowed_topologies
            .is_some_and(|terms| terms.is_empty() || terms.iter().any(|term| term.matches("", node.labels())));
        if !allowed {
            return Err(VolumeReason::NoVolumeToBind { claim: self.claim.clone() });
        }
        if self.capacity.as_ref().is_some_and(|capacity| !capacity.reaches(node)) {
            return Err(VolumeReason::NotEnoughStorage { claim: self.claim.clone() });
        }
        Ok(())
    }
}

impl<'a> Capacity<'a> {
    /// None for drivers that don't ask for it, and for claims that ask for no size.
    fn of(view: &'a View, claim: &PersistentVolumeClaim, class: &StorageClass, cancel: Cancel<'_>) -> Option<Self> {
        let driver = view.objects().csi_driver(&class.provisioner)?;
        if !driver.storage_capacity || claim.request.is_zero() {
            return None;
        }
        let size = claim.request.value();
        let enough = |c: &CsiStorageCapacity| c.maximum_volume_size.or(c.capacity).is_some_and(|q| q.value() >= size);
        let capacities = cancel.guard(view.objects().capacities(&class.meta.name));
        let nodes: Vec<&LabelSelector> = capacities.filter(|c| enough(c)).map(|c| &c.node_topology).collect();
        let by_label = LabelIndex::new(nodes.iter().map(|selector| pairs_of_labels(selector)));
        Some(Self { nodes, by_label })
    }

    fn reaches(&self, node: &NodeRow<'_>) -> bool {
        self.by_label.first(node.labels(), |i| self.nodes[i].matches(node.labels())).is_some()
    }
}
