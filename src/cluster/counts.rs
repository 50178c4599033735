//! How many pods on each node match a selector: the index behind topology spreading and inter-pod affinity.
//!
//! A count is named by a [`CountKey`] and, once asked for, kept current with every pod that comes or goes; decisions then
//! read a number per node instead of walking its pods. Which keys are kept is the writer's business (see
//! `Writer::watch`); a key that isn't kept is counted by walking, with the same result.

use std::sync::Arc;

use imbl::{HashMap, OrdSet};

use super::pod_info::PodInfo;
use super::view::{CHUNK, Ordinal};
use crate::model::selector::Operator;
use crate::model::{LabelSelector, Labels, Pod, Str};

/// Which pods are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountKey {
    /// Pods of this namespace only.
    pub namespace: Str,
    pub selector: LabelSelector,
    /// Whether terminating pods count (they do for affinity, not for spreading).
    pub terminating: bool,
}

impl CountKey {
    pub fn matches(&self, pod: &Pod) -> bool {
        (self.terminating || !pod.meta.is_terminating())
            && self.namespace == pod.meta.namespace
            && self.selector.matches(&pod.meta.labels)
    }

    /// Counts by walking a node's pods: the definition.
    pub fn count(&self, pods: &[Arc<PodInfo>]) -> u32 {
        u32::try_from(pods.iter().filter(|p| self.matches(&p.pod)).count()).unwrap_or(u32::MAX)
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

    fn add(&mut self, ordinal: Ordinal, delta: i32) {
        if self.chunks.len() <= ordinal.chunk() {
            self.chunks.resize_with(ordinal.chunk() + 1, || Arc::new([0; CHUNK]));
        }
        let cell = &mut Arc::make_mut(&mut self.chunks[ordinal.chunk()])[ordinal.offset()];
        *cell = cell.saturating_add_signed(delta);
        self.total = self.total.saturating_add_signed(i64::from(delta));
    }
}

/// All counts that are kept, found by the labels that a pod must have to matter to them.
#[derive(Debug, Clone, Default)]
pub struct CountIndex {
    counts: HashMap<CountKey, Arc<NodeCounts>>,
    /// Keys whose selector asks for one of a few values of a label, by one such label pair each: a pod with other values
    /// can't match them.
    by_pair: HashMap<(Str, Str), OrdSet<CountKey>>,
    /// Keys without such a requirement, by namespace.
    by_namespace: HashMap<Str, OrdSet<CountKey>>,
}

/// The label pairs of which a matching pod must have one: the In requirement with the fewest values.
fn deciding_pairs(selector: &LabelSelector) -> Option<Vec<(Str, Str)>> {
    let LabelSelector::Requirements(list) = selector else { return None };
    let fewest = list.iter().filter_map(|r| match &r.op {
        Operator::In(values) => Some((&r.key, values)),
        _ => None,
    });
    let (key, values) = fewest.min_by_key(|(_, values)| values.len())?;
    Some(values.iter().map(|v| (key.clone(), v.clone())).collect())
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

    /// Begins to keep a key whose present counts are `nodes`.
    pub(super) fn insert(&mut self, key: CountKey, nodes: impl Iterator<Item = (Ordinal, u32)>) {
        let mut counts = NodeCounts::default();
        for (ordinal, count) in nodes.filter(|(_, count)| *count > 0) {
            counts.add(ordinal, i32::try_from(count).unwrap_or(i32::MAX));
        }
        match deciding_pairs(&key.selector) {
            Some(pairs) => {
                for pair in pairs {
                    self.by_pair.entry(pair).or_default().insert(key.clone());
                }
            }
            None => {
                self.by_namespace.entry(key.namespace.clone()).or_default().insert(key.clone());
            }
        }
        self.counts.insert(key, Arc::new(counts));
    }

    /// Stops keeping a key.
    pub(super) fn remove(&mut self, key: &CountKey) {
        if self.counts.remove(key).is_none() {
            return;
        }
        for pair in deciding_pairs(&key.selector).unwrap_or_default() {
            if let Some(keys) = self.by_pair.get_mut(&pair) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_pair.remove(&pair);
                }
            }
        }
        if let Some(keys) = self.by_namespace.get_mut(&key.namespace) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_namespace.remove(&key.namespace);
            }
        }
    }

    /// A pod came to a node (`delta` 1) or left it (-1).
    pub(super) fn update(&mut self, pod: &Pod, ordinal: Ordinal, delta: i32) {
        if self.counts.is_empty() {
            return;
        }
        for key in self.candidates(pod) {
            if key.matches(pod)
                && let Some(counts) = self.counts.get_mut(&key)
            {
                Arc::make_mut(counts).add(ordinal, delta);
            }
        }
    }

    fn candidates(&self, pod: &Pod) -> Vec<CountKey> {
        let labels: &Labels = &pod.meta.labels;
        let mut keys: Vec<CountKey> = Vec::new();
        if !self.by_pair.is_empty() {
            for (key, value) in labels.iter() {
                if let Some(found) = self.by_pair.get(&(key.clone(), value.clone())) {
                    keys.extend(found.iter().cloned());
                }
            }
        }
        if let Some(found) = self.by_namespace.get(&pod.meta.namespace) {
            keys.extend(found.iter().cloned());
        }
        keys
    }
}
