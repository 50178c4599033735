//! What decisions read: numbers in columns, by dense node ordinal, and the indexes over them.
//!
//! A `View` is a value: cloning it is the fork that what-if, explanation and planning work on, and costs a pointer per 256
//! nodes plus the roots of persistent maps. The writer changes its own in place while no fork holds a chunk, and copies a
//! chunk once when one does. Every change names its node, so each method's cost is that of one node and of the selectors
//! that the pod can match; nothing is rebuilt.
//!
//! Post-condition of every method: the same nodes, pods and objects give equal answers from every reading method, whatever
//! the history (ordinals excepted, which no answer may depend on).

mod change_log;
mod chunk;
mod column;
mod difference;
mod equality;
mod images;
mod node_row;
mod node_volumes;
mod nominations;
mod objects;
mod resource_table;
mod static_node;
mod storage_index;
mod volume_index;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use imbl::HashMap;

pub use change_log::Changes;
pub use chunk::CHUNK;
pub use difference::ObjectChange;
pub use images::ImageTable;
pub use node_row::NodeRow;
pub use node_volumes::{DriverVolumes, NodeVolumes};
pub use nominations::Nominations;
pub use objects::ObjectTable;
pub use resource_table::{ResourceId, ResourceTable};
pub use static_node::{StaticNode, name_hash};
pub use volume_index::{VolumeIndex, volume_of_claim};

use self::change_log::ChangeLog;
use self::chunk::Chunk;
use super::Cancel;
use super::counting::Counting;
use super::counts::{CountIndex, CountKey, NodeCounts};
use super::label_sets::LabelSetIndex;
use super::pod_info::PodInfo;
use super::terms::TermIndex;
use crate::model::requests::Amounts;
use crate::model::{Kind, Labels, Node, Object, ObjectRef, Str};

/// A node's place in the columns. Reused after the node is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ordinal(u32);

impl Ordinal {
    pub(in crate::cluster) fn new(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(in crate::cluster) fn chunk(self) -> usize {
        self.index() / CHUNK
    }

    pub(in crate::cluster) fn offset(self) -> usize {
        self.index() % CHUNK
    }
}

/// A consistent picture of the cluster at one revision.
#[derive(Debug, Clone, Default)]
pub struct View {
    revision: u64,
    chunks: Vec<Arc<Chunk>>,
    ordinals: HashMap<Str, Ordinal>,
    free: imbl::Vector<Ordinal>,
    resources: Arc<ResourceTable>,
    images: ImageTable,
    counts: CountIndex,
    terms: TermIndex,
    objects: ObjectTable,
    volumes: VolumeIndex,
    pod_nodes: HashMap<Str, Ordinal>,
    label_sets: LabelSetIndex,
    nominations: Nominations,
    log: ChangeLog,
}

impl View {
    /// Grows with every change that became visible.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn node_count(&self) -> usize {
        self.ordinals.len()
    }

    /// Pods that take room on some node, reserved ones included.
    pub fn pod_count(&self) -> usize {
        self.pod_nodes.len()
    }

    pub fn resources(&self) -> &ResourceTable {
        &self.resources
    }

    pub fn images(&self) -> &ImageTable {
        &self.images
    }

    pub fn objects(&self) -> &ObjectTable {
        &self.objects
    }

    pub fn ordinal(&self, name: &str) -> Option<Ordinal> {
        self.ordinals.get(name).copied()
    }

    /// The node at an ordinal; None when there is none.
    pub fn node(&self, ordinal: Ordinal) -> Option<NodeRow<'_>> {
        let chunk = self.chunks.get(ordinal.chunk())?;
        let at = ordinal.offset();
        let fixed = chunk.nodes[at].as_deref()?;
        Some(NodeRow::new(self, chunk, fixed, ordinal, at))
    }

    pub fn node_named(&self, name: &str) -> Option<NodeRow<'_>> {
        self.node(self.ordinal(name)?)
    }

    /// All nodes, by ordinal.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRow<'_>> {
        self.chunks.iter().enumerate().flat_map(move |(c, chunk)| {
            chunk.nodes.iter().enumerate().filter_map(move |(at, fixed)| {
                let ordinal = Ordinal::new(c * CHUNK + at)?;
                Some(NodeRow::new(self, chunk, fixed.as_deref()?, ordinal, at))
            })
        })
    }

    /// The pod with this uid that takes room on some node.
    pub fn pod(&self, uid: &str) -> Option<&Arc<PodInfo>> {
        let pods = &self.chunks.get(self.pod_nodes.get(uid)?.chunk())?.pods[self.pod_nodes.get(uid)?.offset()];
        pods.binary_search_by(|p| (*p.pod.meta.uid).cmp(uid)).ok().map(|i| &pods[i])
    }

    /// Counts of a key, when they are kept.
    pub fn kept_counts(&self, key: &CountKey) -> Option<&NodeCounts> {
        self.counts.get(key)
    }

    pub fn kept_keys(&self) -> usize {
        self.counts.len()
    }

    /// The pods that take room, grouped by what selectors see of them.
    pub fn label_sets(&self) -> &LabelSetIndex {
        &self.label_sets
    }

    /// Counts a key by walking over all pods: the definition that kept counts, and those made from groups, are held against.
    pub fn walk_counts(&self, key: &CountKey) -> Vec<(Ordinal, u32)> {
        let counts = self.nodes().map(|row| (row.ordinal(), key.count(row.pods(), &self.objects)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// One past the largest ordinal that a node may have.
    pub fn ordinals_end(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// A zero for each ordinal.
    pub(in crate::cluster) fn zeros(&self) -> Vec<u32> {
        vec![0; self.ordinals_end()]
    }

    /// The affinity terms of the pods that take room.
    pub fn terms(&self) -> &TermIndex {
        &self.terms
    }

    /// Pods that wait for a node that was chosen for them.
    pub fn nominations(&self) -> &Nominations {
        &self.nominations
    }

    /// The ordinals of nodes that changed after a revision; [`Changes::TooOld`] when the log no longer reaches back.
    pub fn changes_since(&self, revision: u64) -> Changes<'_> {
        self.log.since(revision)
    }

    // --- changes: the writer's own view, or a fork that its holder may write to ---

    /// Begins a new revision; changes that follow belong to it.
    pub fn advance(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// Adds a node or replaces its object; its pods stay.
    pub fn upsert_node(&mut self, node: Arc<Node>) -> Option<Ordinal> {
        let name = node.meta.name.clone();
        let known = self.ordinal(&name);
        let ordinal = match known {
            Some(ordinal) => ordinal,
            None => self.new_ordinal()?,
        };
        let fixed = Arc::new(StaticNode::new(node));
        self.sweep_resources();
        let amounts: Vec<(ResourceId, i64)> =
            fixed.allocatable().filter_map(|(name, amount)| Some((self.intern(name)?, amount))).collect();
        let images_differ = self.node(ordinal).is_none_or(|old| old.node().images != fixed.node.images);
        if images_differ {
            if let Some(old) = self.chunks[ordinal.chunk()].nodes[ordinal.offset()].clone() {
                self.images.remove(&old.node);
            }
            self.images.add(&fixed.node);
        }
        let at = ordinal.offset();
        let chunk = Arc::make_mut(&mut self.chunks[ordinal.chunk()]);
        chunk.allowed_pods.set(at, fixed.allowed_pods.into());
        // Only what differs is written: most updates of a node are about its conditions.
        let offered: Vec<ResourceId> = chunk.allocatable.of_node(at).map(|(id, _)| id).collect();
        for id in offered.into_iter().filter(|id| amounts.iter().all(|(offered, _)| offered != id)) {
            chunk.allocatable.set(id, at, 0);
        }
        for (id, amount) in amounts {
            chunk.allocatable.set(id, at, amount.into());
        }
        chunk.nodes[at] = Some(fixed);
        if known.is_none() {
            self.adopt_node_volumes(ordinal, &name);
        }
        self.ordinals.insert(name, ordinal);
        self.log.push(self.revision, ordinal);
        Some(ordinal)
    }

    /// Takes a node out and gives back the pods that were on it.
    pub fn remove_node(&mut self, name: &str) -> Vec<Arc<PodInfo>> {
        let Some(ordinal) = self.ordinal(name) else { return Vec::new() };
        let pods = self.node(ordinal).map(|row| row.pods().to_vec()).unwrap_or_default();
        for pod in &pods {
            self.remove_pod(&pod.pod.meta.uid);
        }
        let at = ordinal.offset();
        let chunk = Arc::make_mut(&mut self.chunks[ordinal.chunk()]);
        if let Some(old) = chunk.nodes[at].take() {
            self.images.remove(&old.node);
        }
        chunk.clear(at);
        self.ordinals.remove(name);
        self.free.push_back(ordinal);
        self.log.push(self.revision, ordinal);
        pods
    }

    /// Puts a pod on its node, in place of an earlier entry of the same uid. False when the node isn't there.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) -> bool {
        let Some(ordinal) = self.ordinal(&pod.node) else { return false };
        self.remove_pod(&pod.pod.meta.uid);
        self.book(&pod, ordinal, 1);
        let at = ordinal.offset();
        let chunk = Arc::make_mut(&mut self.chunks[ordinal.chunk()]);
        let list = Arc::make_mut(&mut chunk.pods[at]);
        let place = list.partition_point(|p| p.pod.meta.uid < pod.pod.meta.uid);
        list.insert(place, pod.clone());
        if !pod.ports.is_empty() {
            let ports = Arc::make_mut(chunk.ports[at].get_or_insert_default());
            ports.extend(pod.ports.iter().cloned());
            ports.sort();
        }
        self.pod_nodes.insert(pod.pod.meta.uid.clone(), ordinal);
        true
    }

    /// Takes a pod off its node.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let ordinal = self.pod_nodes.remove(uid)?;
        let at = ordinal.offset();
        let chunk = Arc::make_mut(&mut self.chunks[ordinal.chunk()]);
        let list = Arc::make_mut(&mut chunk.pods[at]);
        let place = list.binary_search_by(|p| (*p.pod.meta.uid).cmp(uid)).ok()?;
        let pod = list.remove(place);
        if chunk.ports[at].is_some()
            && let Some(ports) = &mut chunk.ports[at]
        {
            let ports = Arc::make_mut(ports);
            for port in &pod.ports {
                if let Ok(i) = ports.binary_search(port) {
                    ports.remove(i);
                }
            }
        }
        if chunk.ports[at].as_ref().is_some_and(|ports| ports.is_empty()) {
            chunk.ports[at] = None;
        }
        self.book(&pod, ordinal, -1);
        Some(pod)
    }

    /// Lets a pod wait for a node, in place of one that it waited for before.
    pub fn nominate(&mut self, pod: Arc<PodInfo>) {
        self.withdraw_nomination(&pod.pod.meta.uid.clone());
        self.log_node(&pod.node.clone());
        self.nominations.insert(pod);
    }

    /// Lets a pod wait for no node any more; false when it didn't.
    pub fn withdraw_nomination(&mut self, uid: &str) -> bool {
        let Some(pod) = self.nominations.remove(uid) else { return false };
        self.log_node(&pod.node);
        true
    }

    fn log_node(&mut self, name: &str) {
        if let Some(ordinal) = self.ordinal(name) {
            self.log.push(self.revision, ordinal);
        }
    }

    pub fn set_object(&mut self, object: Object) {
        let ObjectRef { kind, namespace, name, .. } = ObjectRef::of(&object);
        match &object {
            Object::Namespace(namespace) => {
                let (name, labels) = (namespace.meta.name.clone(), namespace.meta.labels.clone());
                self.relabel_namespace(&name, &labels, |objects| objects.insert(object));
            }
            _ => self.objects.insert(object),
        }
        self.refresh_volumes(kind, &namespace, &name);
    }

    pub fn remove_object(&mut self, kind: Kind, namespace: &Str, name: &Str) {
        match kind {
            Kind::Namespace => {
                self.relabel_namespace(name, &Labels::default(), |objects| objects.remove(kind, namespace, name));
            }
            _ => self.objects.remove(kind, namespace, name),
        }
        self.refresh_volumes(kind, namespace, name);
    }

    /// Changes a namespace's object. Costs nothing more unless a kept count lets the namespace in or out by its labels;
    /// then one visit to each group of the namespace's pods.
    fn relabel_namespace(&mut self, name: &Str, labels: &Labels, change: impl FnOnce(&mut ObjectTable)) {
        let before = self.objects.namespace_labels(name).cloned().unwrap_or_default();
        let keys = self.counts.depending_on(name, &before, labels);
        self.recount(name, &keys, -1);
        change(&mut self.objects);
        self.recount(name, &keys, 1);
    }

    /// Adds the pods of a namespace to these kept counts (`sign` 1), or takes them away (-1).
    fn recount(&mut self, namespace: &Str, keys: &[Arc<CountKey>], sign: i32) {
        for key in keys.iter().filter(|key| key.admits(namespace, &self.objects)) {
            for group in self.label_sets.of_namespace(namespace) {
                let counts = key.counts_terminating() || !group.is_terminating();
                if counts && key.selects_labels(group.labels()) {
                    let nodes = group.nodes().iter();
                    nodes.for_each(|(node, pods)| self.counts.add(key, node, pods.cast_signed().wrapping_mul(sign)));
                }
            }
        }
    }

    /// Begins to keep the counts of a key; each pod event keeps them current from then on.
    pub fn keep_counts(&mut self, key: CountKey) {
        self.keep_all_counts([key], Cancel::never());
    }

    /// Begins to keep the counts of several keys, those that aren't kept yet; none of them once the flag is set.
    pub fn keep_all_counts(&mut self, keys: impl IntoIterator<Item = CountKey>, cancel: Cancel<'_>) {
        let missing = keys.into_iter().filter(|key| self.counts.get(key).is_none()).collect();
        for (key, counts) in self.count_all(missing, cancel.flag()).into_iter().flatten() {
            self.counts.adopt(key, counts);
        }
    }

    /// The counts of keys, made here whether they are kept or not; None once `cancel` is set. For a fork: the writer isn't
    /// held for it.
    pub fn count_all(&self, keys: Vec<CountKey>, cancel: &AtomicBool) -> Option<Vec<(CountKey, NodeCounts)>> {
        let cancel = Cancel::new(cancel);
        let mut counting = Counting::new(self, cancel);
        let counted = cancel.guard(keys).map(|key| {
            let counts = counting.count(&key);
            (key, counts)
        });
        let counted = counted.collect();
        (!cancel.is_set()).then_some(counted)
    }

    /// The nodes on which counts that were made on an earlier fork may differ by now; None: they are more than `most`, or
    /// namespaces changed, which can change counts anywhere.
    pub fn recountable_since(&self, fork: &View, most: usize) -> Option<Vec<Ordinal>> {
        if self.objects.changes_from(&fork.objects).any(|(kind, _)| kind == Kind::Namespace) {
            return None;
        }
        let Changes::Nodes(nodes) = self.changes_since(fork.revision) else { return None };
        let mut changed: Vec<Ordinal> = nodes.take(most + 1).collect();
        if changed.len() > most {
            return None;
        }
        changed.sort_unstable();
        changed.dedup();
        Some(changed)
    }

    /// Begins to keep counts that were made on an earlier fork, but for these nodes, which are counted again.
    pub fn adopt_counts(&mut self, key: CountKey, mut counts: NodeCounts, changed: &[Ordinal]) {
        for ordinal in changed {
            let count = self.node(*ordinal).map_or(0, |row| key.count(row.pods(), &self.objects));
            counts.set(*ordinal, count);
        }
        self.counts.adopt(key, counts);
    }

    pub fn drop_counts(&mut self, key: &CountKey) {
        self.counts.remove(key);
    }

    fn new_ordinal(&mut self) -> Option<Ordinal> {
        if let Some(ordinal) = self.free.pop_front() {
            return Some(ordinal);
        }
        let ordinal = Ordinal::new(self.ordinals.len())?;
        if self.chunks.len() <= ordinal.chunk() {
            self.chunks.push(Arc::default());
        }
        Some(ordinal)
    }

    fn intern(&mut self, name: &Str) -> Option<ResourceId> {
        match self.resources.get(name) {
            Some(id) => Some(id),
            None => Arc::make_mut(&mut self.resources).intern(name),
        }
    }

    /// Forgets the resource names that no node offers and no pod asks for, once they have doubled: a look at each chunk for each.
    /// Before names are given numbers, never between that and the use of the numbers.
    fn sweep_resources(&mut self) {
        if !self.resources.is_sweep_due() {
            return;
        }
        let chunks = &self.chunks;
        Arc::make_mut(&mut self.resources).sweep(|id| chunks.iter().any(|chunk| chunk.uses(id)));
    }

    /// Adds (`sign` 1) or takes away (-1) what a pod weighs in the columns and counts of its node.
    fn book(&mut self, pod: &PodInfo, ordinal: Ordinal, sign: i32) {
        let Amounts { milli_cpu, memory, ephemeral_storage, scalars } = &pod.requests;
        if sign > 0 && !scalars.is_empty() {
            self.sweep_resources();
        }
        // A name that a pod took with it has a number, or was swept because its amounts are 0.
        let mut id = |name| if sign > 0 { self.intern(name) } else { self.resources.get(name) };
        let scalars: smallvec::SmallVec<[(ResourceId, i64); 2]> =
            scalars.iter().filter_map(|(name, amount)| Some((id(name)?, *amount))).collect();
        let at = ordinal.offset();
        let chunk = Arc::make_mut(&mut self.chunks[ordinal.chunk()]);
        let signed = |amount: i64| i128::from(sign) * i128::from(amount);
        chunk.requested.add(ResourceId::CPU, at, signed(*milli_cpu));
        chunk.requested.add(ResourceId::MEMORY, at, signed(*memory));
        chunk.requested.add(ResourceId::EPHEMERAL_STORAGE, at, signed(*ephemeral_storage));
        for (id, amount) in scalars {
            chunk.requested.add(id, at, signed(amount));
        }
        chunk.non_zero_cpu.add(at, signed(pod.non_zero.0));
        chunk.non_zero_memory.add(at, signed(pod.non_zero.1));
        self.counts.update(&pod.pod, &self.objects, ordinal, sign);
        self.terms.update(&pod.terms, ordinal, sign);
        self.label_sets.update(pod, ordinal, sign);
        self.book_volumes(pod, ordinal, sign);
        self.log.push(self.revision, ordinal);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod volume_tests;
