//! Who uses which claims and volumes, over the whole cluster.
//!
//! A claim stands for the volume that it is bound to, or for one that its class will make; which one changes with objects
//! that arrive in any order. So each claim that a pod uses remembers what it stands for and on which nodes, and an event
//! on a claim, volume, class or attachment moves the counts of just the nodes that it concerns. Holds are what decisions
//! chose for claims that no feed has shown as bound yet.
//!
//! Counts wrap, so that what was added is taken away again whatever came in between; they never reach the point, since
//! each user is part of an object in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::{HashMap, OrdMap, OrdSet};
use smallvec::SmallVec;

use super::node_volumes::{NodeVolumes, User};
use super::{ObjectTable, Ordinal, View};
use crate::cluster::pod_info::PodInfo;
use crate::cluster::pod_volumes::{ClaimKey, VolumeBinding};
use crate::model::csi_migration::{VolumeHandle, VolumeId, provisioning_driver};
use crate::model::storage::PvSource;
use crate::model::{Kind, Str};

#[derive(Debug, Clone, Default)]
pub struct VolumeIndex {
    /// Claims that pods on nodes use, whether or not the claim's object is known.
    claims: HashMap<ClaimKey, Arc<ClaimUse>>,
    /// Of those, the ones that name a volume, by that volume, and the ones that stand for what their class will make.
    by_volume: HashMap<Str, OrdSet<ClaimKey>>,
    by_class: HashMap<Str, OrdSet<ClaimKey>>,
    /// VolumeAttachments by name, and their names by volume and by node.
    attachments: HashMap<Str, Attachment>,
    attachments_by_volume: HashMap<Str, OrdSet<Str>>,
    attachments_by_node: HashMap<Str, OrdSet<Str>>,
    /// What decisions chose, with how many pods hold it, by claim and by volume.
    held_claims: HashMap<ClaimKey, OrdMap<VolumeBinding, u32>>,
    held_volumes: HashMap<Str, OrdMap<ClaimKey, u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ClaimUse {
    /// How many volumes of pods name the claim; generic ephemeral volumes aren't counted (spec 1.2, `pvcRefCounts`).
    references: u32,
    /// Volumes of pods by node, generic ephemeral ones included, sorted by ordinal.
    nodes: SmallVec<[(Ordinal, u32); 1]>,
    meaning: Meaning,
}

/// The same without ordinals, to be compared between views.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedClaimUse {
    references: u32,
    nodes: BTreeMap<Str, u32>,
    meaning: Meaning,
}

impl ClaimUse {
    fn change(&mut self, ordinal: Ordinal, delta: i32, is_reference: bool) {
        if is_reference {
            self.references = self.references.wrapping_add_signed(delta);
        }
        let i = match self.nodes.binary_search_by_key(&ordinal, |(at, _)| *at) {
            Ok(i) => i,
            Err(i) => {
                self.nodes.insert(i, (ordinal, 0));
                i
            }
        };
        self.nodes[i].1 = self.nodes[i].1.wrapping_add_signed(delta);
        if self.nodes[i].1 == 0 {
            self.nodes.remove(i);
        }
    }
}

/// What a claim stands for at present.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Meaning {
    /// What it counts as; None: as nothing.
    id: Option<VolumeId>,
    /// The volume it names; empty: none.
    volume: Str,
    /// The class that it was judged by; empty: it wasn't.
    class: Str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Attachment {
    node: Str,
    volume: Str,
    /// None while the volume isn't known, or isn't a CSI volume.
    id: Option<VolumeId>,
}

/// The volume that a claim counts as against CSI limits: that of its volume or, without one, one of its own that its class
/// will make. None: it counts as nothing, such as one that isn't known.
pub fn volume_of_claim(objects: &ObjectTable, namespace: &Str, name: &Str) -> Option<VolumeId> {
    meaning(objects, namespace, name).id
}

fn meaning(objects: &ObjectTable, namespace: &Str, name: &Str) -> Meaning {
    let Some(claim) = objects.claim(namespace, name) else { return Meaning::default() };
    let mut meaning = Meaning { volume: claim.volume_name.clone(), ..Meaning::default() };
    if !claim.volume_name.is_empty()
        && let Some(volume) = objects.persistent_volume(&claim.volume_name)
    {
        meaning.id = VolumeId::of_volume(volume);
        return meaning;
    }
    meaning.class = claim.class();
    // Without a class the claim must be bound before its pod is scheduled, so not counting it is safe.
    if !meaning.class.is_empty()
        && let Some(class) = objects.storage_class(&meaning.class)
        && !class.provisioner.is_empty()
    {
        let handle = VolumeHandle::Claim { namespace: namespace.clone(), name: name.clone() };
        meaning.id = Some(VolumeId { driver: provisioning_driver(&class.provisioner), handle });
    }
    meaning
}

impl VolumeIndex {
    /// Nothing is known of any claim, attachment or hold.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
            && self.by_volume.is_empty()
            && self.by_class.is_empty()
            && self.attachments.is_empty()
            && self.attachments_by_volume.is_empty()
            && self.attachments_by_node.is_empty()
            && self.held_claims.is_empty()
            && self.held_volumes.is_empty()
    }

    /// How many volumes of pods name this claim.
    pub fn claim_references(&self, claim: &ClaimKey) -> u32 {
        self.claims.get(claim).map_or(0, |used| used.references)
    }

    /// What a decision chose for a claim and a pod still holds.
    pub fn binding_of(&self, claim: &ClaimKey) -> Option<&VolumeBinding> {
        self.held_claims.get(claim)?.keys().next()
    }

    /// The claims for which a volume is held.
    pub fn holders(&self, volume: &Str) -> impl Iterator<Item = &ClaimKey> {
        self.held_volumes.get(volume).into_iter().flat_map(|claims| claims.keys())
    }

    /// Claims that pods use, each with all that is known of its use, by `namespace/name`.
    pub(super) fn claims_by_node_name(&self, name: &dyn Fn(Ordinal) -> Str) -> BTreeMap<Str, NamedClaimUse> {
        let use_of = |used: &ClaimUse| NamedClaimUse {
            references: used.references,
            nodes: used.nodes.iter().map(|(ordinal, users)| (name(*ordinal), *users)).collect(),
            meaning: used.meaning.clone(),
        };
        self.claims.iter().map(|((ns, claim), used)| (format!("{ns}/{claim}").into(), use_of(used))).collect()
    }

    /// Of the indexes that hold no ordinals, those that differ.
    pub(super) fn differing_indexes(&self, other: &VolumeIndex) -> impl Iterator<Item = &'static str> + use<> {
        let indexes = [
            ("claims by volume", self.by_volume == other.by_volume),
            ("claims by class", self.by_class == other.by_class),
            ("attachments", self.attachments == other.attachments),
            ("attachments by volume", self.attachments_by_volume == other.attachments_by_volume),
            ("attachments by node", self.attachments_by_node == other.attachments_by_node),
            ("held claims", self.held_claims == other.held_claims),
            ("held volumes", self.held_volumes == other.held_volumes),
        ];
        indexes.into_iter().filter(|(_, same)| !same).map(|(what, _)| what)
    }

    fn forget_meaning(&mut self, claim: &ClaimKey, meaning: &Meaning) {
        unregister(&mut self.by_volume, &meaning.volume, claim);
        unregister(&mut self.by_class, &meaning.class, claim);
    }

    fn learn_meaning(&mut self, claim: &ClaimKey, meaning: &Meaning) {
        register(&mut self.by_volume, &meaning.volume, claim);
        register(&mut self.by_class, &meaning.class, claim);
    }

    fn hold(&mut self, binding: &VolumeBinding, sign: i32) {
        count(&mut self.held_claims, &binding.claim, binding, sign);
        if let Some(volume) = &binding.volume {
            count(&mut self.held_volumes, volume, &binding.claim, sign);
        }
    }
}

fn register<T: Ord + Clone>(index: &mut HashMap<Str, OrdSet<T>>, key: &Str, value: &T) {
    if !key.is_empty() {
        index.entry(key.clone()).or_default().insert(value.clone());
    }
}

fn unregister<T: Ord + Clone>(index: &mut HashMap<Str, OrdSet<T>>, key: &Str, value: &T) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}

fn count<K, T>(index: &mut HashMap<K, OrdMap<T, u32>>, key: &K, value: &T, delta: i32)
where
    K: Clone + Eq + std::hash::Hash,
    T: Clone + Ord,
{
    let counts = index.entry(key.clone()).or_default();
    let number = counts.entry(value.clone()).or_insert(0);
    *number = number.wrapping_add_signed(delta);
    if *number == 0 {
        counts.remove(value);
    }
    if counts.is_empty() {
        index.remove(key);
    }
}

impl View {
    pub fn volumes(&self) -> &VolumeIndex {
        &self.volumes
    }

    /// Holds bindings on a fork without the pod that they were decided for.
    pub fn hold(&mut self, bindings: &[VolumeBinding]) {
        for binding in bindings {
            self.volumes.hold(binding, 1);
        }
    }

    /// Adds (`sign` 1) or takes away (-1) what a pod's volumes are to its node and to other pods.
    pub(super) fn book_volumes(&mut self, pod: &PodInfo, ordinal: Ordinal, sign: i32) {
        for claim in &pod.claims {
            self.use_claim(pod, claim, ordinal, sign, true);
        }
        let Some(volumes) = &pod.volumes else { return };
        for claim in &volumes.ephemeral_claims {
            self.use_claim(pod, claim, ordinal, sign, false);
        }
        for binding in &volumes.bindings {
            self.volumes.hold(binding, sign);
        }
        if volumes.disks.is_empty() && volumes.inline.is_empty() {
            return;
        }
        self.change_node_volumes(ordinal, |node| {
            for id in &volumes.inline {
                node.change(id, User::Pod, sign);
            }
            for disk in &volumes.disks {
                if sign > 0 { node.add_disk(disk) } else { node.remove_disk(disk) }
            }
        });
    }

    fn use_claim(&mut self, pod: &PodInfo, name: &Str, ordinal: Ordinal, sign: i32, is_reference: bool) {
        let key: ClaimKey = (pod.pod.meta.namespace.clone(), name.clone());
        if !self.volumes.claims.contains_key(&key) {
            let meaning = meaning(&self.objects, &key.0, &key.1);
            self.volumes.learn_meaning(&key, &meaning);
            self.volumes.claims.insert(key.clone(), Arc::new(ClaimUse { meaning, ..ClaimUse::default() }));
        }
        let Some(used) = self.volumes.claims.get_mut(&key).map(Arc::make_mut) else { return };
        used.change(ordinal, sign, is_reference);
        let meaning = used.meaning.clone();
        if used.nodes.is_empty() {
            self.volumes.claims.remove(&key);
            self.volumes.forget_meaning(&key, &meaning);
        }
        if let Some(id) = &meaning.id {
            self.change_node_volumes(ordinal, |node| node.change(id, User::Pod, sign));
        }
    }

    /// An object was written or deleted: whatever its volumes mean changes with it.
    pub(super) fn refresh_volumes(&mut self, kind: Kind, namespace: &Str, name: &Str) {
        match kind {
            Kind::PersistentVolumeClaim => self.refresh_claim(&(namespace.clone(), name.clone())),
            Kind::PersistentVolume => {
                for claim in self.volumes.by_volume.get(name).cloned().unwrap_or_default() {
                    self.refresh_claim(&claim);
                }
                for attachment in self.volumes.attachments_by_volume.get(name).cloned().unwrap_or_default() {
                    self.refresh_attachment(&attachment);
                }
            }
            Kind::StorageClass => {
                for claim in self.volumes.by_class.get(name).cloned().unwrap_or_default() {
                    self.refresh_claim(&claim);
                }
            }
            Kind::VolumeAttachment => self.refresh_attachment(name),
            Kind::CsiNode => {
                if let Some(ordinal) = self.ordinal(name) {
                    let csi_node = self.objects.csi_node(name).cloned();
                    self.change_node_volumes(ordinal, |node| node.set_csi_node(csi_node));
                }
            }
            _ => {}
        }
    }

    fn refresh_claim(&mut self, key: &ClaimKey) {
        let Some(used) = self.volumes.claims.get(key).cloned() else { return };
        let meaning = meaning(&self.objects, &key.0, &key.1);
        if meaning == used.meaning {
            return;
        }
        self.volumes.forget_meaning(key, &used.meaning);
        self.volumes.learn_meaning(key, &meaning);
        if meaning.id != used.meaning.id {
            for (ordinal, users) in &used.nodes {
                let users = users.cast_signed();
                self.change_node_volumes(*ordinal, |node| {
                    if let Some(old) = &used.meaning.id {
                        node.change(old, User::Pod, users.wrapping_neg());
                    }
                    if let Some(new) = &meaning.id {
                        node.change(new, User::Pod, users);
                    }
                });
            }
        }
        self.volumes.claims.insert(key.clone(), Arc::new(ClaimUse { meaning, ..ClaimUse::clone(&used) }));
    }

    fn refresh_attachment(&mut self, name: &Str) {
        let new = self.objects.volume_attachment(name).filter(|a| !a.attacher.is_empty()).map(|a| {
            let volume = self.objects.persistent_volume(&a.volume);
            let id = volume.and_then(|volume| match &volume.source {
                // Volumes of migrated types aren't looked at here, as upstream.
                PvSource::Csi { handle, .. } => {
                    Some(VolumeId { driver: a.attacher.clone(), handle: VolumeHandle::Volume(handle.clone()) })
                }
                _ => None,
            });
            Attachment { node: a.node.clone(), volume: a.volume.clone(), id }
        });
        let old = self.volumes.attachments.get(name).cloned();
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.volumes.attachments.remove(name);
            unregister(&mut self.volumes.attachments_by_volume, &old.volume, name);
            unregister(&mut self.volumes.attachments_by_node, &old.node, name);
            self.count_attachment(&old, -1);
        }
        if let Some(new) = new {
            self.count_attachment(&new, 1);
            register(&mut self.volumes.attachments_by_volume, &new.volume, name);
            register(&mut self.volumes.attachments_by_node, &new.node, name);
            self.volumes.attachments.insert(name.clone(), new);
        }
    }

    fn count_attachment(&mut self, attachment: &Attachment, delta: i32) {
        if let (Some(id), Some(ordinal)) = (&attachment.id, self.ordinal(&attachment.node)) {
            self.change_node_volumes(ordinal, |node| node.change(id, User::Attachment, delta));
        }
    }

    /// A node came: what was known of its volumes before it.
    pub(super) fn adopt_node_volumes(&mut self, ordinal: Ordinal, name: &Str) {
        let mut volumes = NodeVolumes::default();
        volumes.set_csi_node(self.objects.csi_node(name).cloned());
        for attachment in self.volumes.attachments_by_node.get(name).into_iter().flatten() {
            if let Some(id) = self.volumes.attachments.get(attachment).and_then(|a| a.id.as_ref()) {
                volumes.change(id, User::Attachment, 1);
            }
        }
        if !volumes.is_empty() {
            self.change_node_volumes(ordinal, |node| *node = volumes);
        }
    }

    fn change_node_volumes(&mut self, ordinal: Ordinal, change: impl FnOnce(&mut NodeVolumes)) {
        let chunk = Arc::make_mut(&mut self.chunks[ordinal.chunk()]);
        let cell = &mut chunk.volumes[ordinal.offset()];
        let volumes = Arc::make_mut(cell.get_or_insert_default());
        change(volumes);
        if volumes.is_empty() {
            *cell = None;
        }
        self.log.push(self.revision, ordinal);
    }
}
