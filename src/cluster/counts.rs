//! How many pods on each node match a selector: the index behind topology spreading and inter-pod affinity.
//!
//! A count is named by a [`CountKey`] and, once asked for, kept current with every pod that comes or goes and with every
//! change of a namespace's labels; decisions then read a number per node instead of walking its pods. Which keys are kept
//! is the writer's business (see `Writer::watch`); a key that isn't kept is counted by walking, with the same result.
//! [`Counter`] reads either.

use std::sync::Arc;

use imbl::{HashMap, OrdSet};

use super::pod_info::PodInfo;
use super::pod_set::{Namespaces, PodSet, PodSetIndex};
use super::view::{CHUNK, NodeRow, ObjectTable, Ordinal, View};
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
    pub(super) fn selects(&self, pod: &Pod) -> bool {
        (self.terminating || !pod.meta.is_terminating())
            && self.sets.iter().all(|set| set.selector.matches(&pod.meta.labels))
    }

    /// Counts by walking a node's pods: the definition.
    pub fn count(&self, pods: &[Arc<PodInfo>], objects: &ObjectTable) -> u32 {
        u32::try_from(pods.iter().filter(|p| self.matches(&p.pod, objects)).count()).unwrap_or(u32::MAX)
    }

    /// The only namespaces that counted pods can be in, where names alone tell.
    pub(super) fn namespaces(&self) -> Option<&[Str]> {
        self.sets.iter().find_map(|set| set.namespaces.by_name_only())
    }

    /// Whether namespace labels play a part.
    fn reads_namespace_labels(&self) -> bool {
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

    pub(super) fn set(&mut self, ordinal: Ordinal, count: u32) {
        let before = self.get(ordinal);
        if count != before {
            let number = |count| i32::try_from(count).unwrap_or(i32::MAX);
            self.add(ordinal, number(count) - number(before));
        }
    }

    fn add(&mut self, ordinal: Ordinal, delta: i32) {
        if self.chunks.len() <= ordinal.chunk() {
            self.chunks.resize_with(ordinal.chunk() + 1, || Arc::new([0; CHUNK]));
        }
        let cell = &mut Arc::make_mut(&mut self.chunks[ordinal.chunk()])[ordinal.offset()];
        *cell = cell.saturating_add_signed(delta);
        self.total = self.total.saturating_add_signed(i64::from(delta));
    }
}

/// Reads the counts of a key: the kept ones, or by walking pods where the key isn't kept.
#[derive(Debug)]
pub struct Counter<'v> {
    view: &'v View,
    key: CountKey,
    kept: Option<&'v NodeCounts>,
}

impl<'v> Counter<'v> {
    pub(super) fn new(view: &'v View, key: CountKey) -> Self {
        Self { view, kept: view.kept_counts(&key), key }
    }

    /// How many pods are counted on a node of the counter's view.
    pub fn count(&self, node: &NodeRow<'_>) -> u32 {
        match self.kept {
            Some(kept) => kept.get(node.ordinal()),
            None => self.key.count(node.pods(), self.view.objects()),
        }
    }

    /// Nodes on which some are counted, by ordinal.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeRow<'v>, u32)> {
        let kept = self.kept.into_iter().flat_map(NodeCounts::iter);
        let kept = kept.filter_map(|(ordinal, count)| Some((self.view.node(ordinal)?, count)));
        let walk = self.kept.is_none().then(|| self.view.nodes_that_may_count(&self.key)).into_iter().flatten();
        let walked = walk.map(|row| (row, self.key.count(row.pods(), self.view.objects())));
        kept.chain(walked.filter(|(_, count)| *count > 0))
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

    /// Begins to keep a key whose present counts are `nodes`.
    pub(super) fn insert(&mut self, key: CountKey, nodes: impl Iterator<Item = (Ordinal, u32)>) {
        let mut counts = NodeCounts::default();
        nodes.for_each(|(ordinal, count)| counts.set(ordinal, count));
        self.adopt(key, counts);
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
