//! How many pods on each node match a selector: the index behind topology spreading and inter-pod affinity.
//!
//! A count is named by a [`CountKey`] and, once asked for, kept current with every pod that comes or goes and with every
//! change of a namespace's labels; decisions then read a number per node. Which keys are kept is the writer's business (see
//! `Writer::watch`); one that isn't is [counted](super::counting) when it is asked for, with the same result.

use std::ops::Deref;
use std::sync::Arc;

use imbl::{HashMap, OrdSet};

use super::pod_info::PodInfo;
use super::pod_set::{Namespaces, PodSet, PodSetIndex};
use super::view::{CHUNK, ObjectTable, Ordinal};
use crate::model::{LabelSelector, Labels, Pod, Str};

/// Which pods are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountKey {
    /// A pod must be in all of these. Sorted, without repeats, never empty.
    sets: Vec<PodSet>,
    /// Whether terminating pods count (they do for affinity, not for spreading).
    terminating: bool,
}

impl CountKey {
    pub fn new(set: PodSet, terminating: bool) -> Self {
        Self { sets: vec![set], terminating }
    }

    /// The pods that are in every one of these sets; None without any set.
    pub fn all_of(mut sets: Vec<PodSet>, terminating: bool) -> Option<Self> {
        sets.sort();
        sets.dedup();
        (!sets.is_empty()).then_some(Self { sets, terminating })
    }

    /// The pods of one namespace that a selector selects.
    pub fn in_namespace(namespace: Str, selector: LabelSelector, terminating: bool) -> Self {
        Self::new(PodSet { namespaces: Namespaces::one(namespace), selector }, terminating)
    }

    pub fn matches(&self, pod: &Pod, objects: &ObjectTable) -> bool {
        // Most pods that a walk meets are of other namespaces; names are compared faster than labels.
        self.namespaces().is_none_or(|names| names.contains(&pod.meta.namespace))
            && self.selects(pod)
            && self.admits(&pod.meta.namespace, objects)
    }

    /// Whether pods of a namespace can be counted.
    pub(super) fn admits(&self, namespace: &Str, objects: &ObjectTable) -> bool {
        self.sets.iter().all(|set| set.namespaces.contains(namespace, objects))
    }

    /// Whether a pod is counted in a namespace that is admitted.
    fn selects(&self, pod: &Pod) -> bool {
        (self.terminating || !pod.meta.is_terminating()) && self.selects_labels(&pod.meta.labels)
    }

    /// Whether pods with these labels are counted, in a namespace that is admitted.
    pub(super) fn selects_labels(&self, labels: &Labels) -> bool {
        self.sets.iter().all(|set| set.selector.matches(labels))
    }

    pub(super) fn counts_terminating(&self) -> bool {
        self.terminating
    }

    /// What pods must match.
    pub fn selectors(&self) -> impl Iterator<Item = &LabelSelector> {
        self.sets.iter().map(|set| &set.selector)
    }

    /// In which namespaces pods count, and whether terminating ones do.
    pub(super) fn scope(&self) -> (Vec<Namespaces>, bool) {
        (self.sets.iter().map(|set| set.namespaces.clone()).collect(), self.terminating)
    }

    /// Counts by walking a node's pods: the definition.
    pub fn count(&self, pods: &[Arc<PodInfo>], objects: &ObjectTable) -> u32 {
        u32::try_from(pods.iter().filter(|p| self.matches(&p.pod, objects)).count()).unwrap_or(u32::MAX)
    }

    /// The only namespaces that counted pods can be in, where names alone tell.
    pub fn namespaces(&self) -> Option<&[Str]> {
        self.sets.iter().find_map(|set| set.namespaces.by_name_only())
    }

    /// Whether namespace labels play a part.
    pub(super) fn reads_namespace_labels(&self) -> bool {
        self.sets.iter().any(
            |set| matches!(&set.namespaces, Namespaces::Some { selector, .. } if *selector != LabelSelector::Nothing),
        )
    }
}

/// One number per node, in chunks that forks share.
#[derive(Debug, Clone, Default)]
pub struct NodeCounts {
    chunks: Vec<Arc<[u32; CHUNK]>>,
    total: u64,
}

impl NodeCounts {
    pub fn get(&self, ordinal: Ordinal) -> u32 {
        self.chunks.get(ordinal.chunk()).map_or(0, |chunk| chunk[ordinal.offset()])
    }

    /// Pods counted over all nodes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Nodes that have some, by ordinal.
    pub fn iter(&self) -> impl Iterator<Item = (Ordinal, u32)> {
        let cells = self.chunks.iter().flat_map(|chunk| chunk.iter().copied()).enumerate();
        cells.filter(|(_, count)| *count > 0).filter_map(|(i, count)| Some((Ordinal::new(i)?, count)))
    }

    /// From one number per ordinal.
    pub(super) fn from_cells(cells: &[u32]) -> Self {
        let chunks = cells.chunks(CHUNK).map(|cells| {
            let mut chunk = [0; CHUNK];
            chunk[..cells.len()].copy_from_slice(cells);
            Arc::new(chunk)
        });
        Self { chunks: chunks.collect(), total: cells.iter().map(|count| u64::from(*count)).sum() }
    }

    /// Counts a node anew.
    pub(super) fn set(&mut self, ordinal: Ordinal, count: u32) {
        let before = self.get(ordinal);
        if before != count {
            self.add(ordinal, count.wrapping_sub(before).cast_signed());
        }
    }

    fn add(&mut self, ordinal: Ordinal, delta: i32) {
        if self.chunks.len() <= ordinal.chunk() {
            self.chunks.resize_with(ordinal.chunk() + 1, || Arc::new([0; CHUNK]));
        }
        let cell = &mut Arc::make_mut(&mut self.chunks[ordinal.chunk()])[ordinal.offset()];
        // Wrapping, so that what was added is taken away again whatever came in between. Neither number is ever passed:
        // each counted pod is an object in memory.
        *cell = cell.wrapping_add_signed(delta);
        self.total = self.total.wrapping_add_signed(i64::from(delta));
    }
}

/// The counts of a key on one view.
#[derive(Debug)]
pub enum Counts<'v> {
    Kept(&'v NodeCounts),
    Made(NodeCounts),
}

impl Deref for Counts<'_> {
    type Target = NodeCounts;

    fn deref(&self) -> &NodeCounts {
        match self {
            Self::Kept(counts) => counts,
            Self::Made(counts) => counts,
        }
    }
}

/// All counts that are kept.
#[derive(Debug, Clone, Default)]
pub struct CountIndex {
    counts: HashMap<Arc<CountKey>, Arc<NodeCounts>>,
    by_pod: PodSetIndex<Arc<CountKey>>,
    /// Those whose counts a change of a namespace's labels can change.
    by_namespace_label: OrdSet<Arc<CountKey>>,
}

impl CountIndex {
    pub fn get(&self, key: &CountKey) -> Option<&NodeCounts> {
        self.counts.get(key).map(|counts| &**counts)
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The keys that are kept, in no particular order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &CountKey> {
        self.counts.keys().map(|key| &**key)
    }

    /// Begins to keep a key with its present counts.
    pub(super) fn adopt(&mut self, key: CountKey, counts: NodeCounts) {
        let key = Arc::new(key);
        if let Some(set) = PodSet::narrowest(&key.sets) {
            self.by_pod.insert(set, &key);
        }
        if key.reads_namespace_labels() {
            self.by_namespace_label.insert(key.clone());
        }
        self.counts.insert(key, Arc::new(counts));
    }

    /// Stops keeping a key.
    pub(super) fn remove(&mut self, key: &CountKey) {
        let Some((key, _)) = self.counts.remove_with_key(key) else { return };
        if let Some(set) = PodSet::narrowest(&key.sets) {
            self.by_pod.remove(set, &key);
        }
        self.by_namespace_label.remove(&key);
    }

    /// A pod came to a node (`delta` 1) or left it (-1).
    pub(super) fn update(&mut self, pod: &Pod, objects: &ObjectTable, ordinal: Ordinal, delta: i32) {
        for key in self.by_pod.candidates(pod) {
            if key.matches(pod, objects) {
                self.add(&key, ordinal, delta);
            }
        }
    }

    /// Adds to the count of a node.
    pub(super) fn add(&mut self, key: &CountKey, ordinal: Ordinal, delta: i32) {
        if let Some(counts) = self.counts.get_mut(key) {
            Arc::make_mut(counts).add(ordinal, delta);
        }
    }

    /// Keys that count other pods of a namespace once its labels change from `before` to `after`.
    pub(super) fn depending_on(&self, namespace: &Str, before: &Labels, after: &Labels) -> Vec<Arc<CountKey>> {
        let keys = self.by_namespace_label.iter();
        keys.filter(|key| key.sets.iter().any(|set| set.depends_on(namespace, before, after))).cloned().collect()
    }
}
