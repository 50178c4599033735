//! The pods that take room, grouped by all that a selector sees of them: namespace, labels, and whether they terminate.
//!
//! Replicas have equal labels, so a cluster of 50,000 pods has some thousand groups. To count a selector is to match it with
//! each group once and to add up how many of the group's pods are on which nodes; pods aren't visited. A group lives as long
//! as it has pods, and forks share what neither side changes.
//!
//! Groups are found by a hash of the labels that is worked out when a [`PodInfo`] is made, off the lock. It has keys of its
//! own in each process, so that nobody can make labels that collide; no answer depends on it.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use imbl::shared_ptr::DefaultSharedPtr;
use imbl::{GenericHashMap, HashMap};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::node_tally::NodeTally;
use super::pod_info::PodInfo;
use super::view::Ordinal;
use crate::model::{Labels, Pod, Str};

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What the groups of a namespace are found by.
pub(super) fn label_hash(pod: &Pod) -> u64 {
    HASHER.hash_one((pod.meta.is_terminating(), &pod.meta.labels))
}

/// Pods of one namespace and equal labels, terminating all or none.
#[derive(Debug, Clone)]
pub struct LabelSet {
    labels: Arc<Labels>,
    terminating: bool,
    nodes: NodeTally,
}

impl LabelSet {
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    pub fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// How many of the pods are on which nodes.
    pub fn nodes(&self) -> &NodeTally {
        &self.nodes
    }

    fn holds(&self, pod: &Pod) -> bool {
        self.terminating == pod.meta.is_terminating() && *self.labels == pod.meta.labels
    }
}

/// Groups of one hash: one, but for a collision.
type Bucket = Arc<SmallVec<[LabelSet; 1]>>;
type Buckets = GenericHashMap<u64, Bucket, FxBuildHasher, DefaultSharedPtr>;

#[derive(Debug, Clone, Default)]
pub struct LabelSetIndex {
    namespaces: HashMap<Str, Buckets>,
    /// Over all namespaces.
    buckets: usize,
}

impl LabelSetIndex {
    /// The namespaces that have pods, in no particular order.
    pub fn namespaces(&self) -> impl Iterator<Item = &Str> {
        self.namespaces.keys()
    }

    /// The groups of a namespace, in no particular order.
    pub fn of_namespace(&self, namespace: &Str) -> impl Iterator<Item = &LabelSet> {
        let buckets = self.namespaces.get(namespace).into_iter().flat_map(|buckets| buckets.values());
        buckets.flat_map(|bucket| bucket.iter())
    }

    /// Groups over all namespaces, but for collisions of hashes.
    pub fn len(&self) -> usize {
        self.buckets
    }

    /// Groups of a namespace, likewise.
    pub fn len_of(&self, namespace: &Str) -> usize {
        self.namespaces.get(namespace).map_or(0, GenericHashMap::len)
    }

    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// A pod came to a node (`delta` 1) or left it (-1).
    pub(super) fn update(&mut self, info: &PodInfo, ordinal: Ordinal, delta: i32) {
        let namespace = &info.pod.meta.namespace;
        let buckets = match self.namespaces.get_mut(namespace) {
            Some(buckets) => buckets,
            None => self.namespaces.entry(namespace.clone()).or_default(),
        };
        let hash = info.label_hash;
        match buckets.get_mut(&hash) {
            Some(bucket) => {
                let sets = Arc::make_mut(bucket);
                match sets.iter().position(|set| set.holds(&info.pod)) {
                    Some(at) => {
                        sets[at].nodes.add(ordinal, delta);
                        if sets[at].nodes.is_empty() {
                            sets.remove(at);
                        }
                    }
                    None => sets.push(new_set(&info.pod, ordinal, delta)),
                }
                if sets.is_empty() {
                    buckets.remove(&hash);
                    self.buckets -= 1;
                }
            }
            None => {
                let set = new_set(&info.pod, ordinal, delta);
                buckets.insert(hash, Arc::new(SmallVec::from_buf([set])));
                self.buckets += 1;
            }
        }
        if buckets.is_empty() {
            self.namespaces.remove(namespace);
        }
    }
}

fn new_set(pod: &Pod, ordinal: Ordinal, delta: i32) -> LabelSet {
    let mut nodes = NodeTally::default();
    nodes.add(ordinal, delta);
    LabelSet { labels: Arc::new(pod.meta.labels.clone()), terminating: pod.meta.is_terminating(), nodes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::View;
    use crate::model::testing::{PodBuilder, node, pod};

    fn put(view: &mut View, p: PodBuilder) {
        assert!(view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.build())))));
    }

    fn view() -> View {
        let mut view = View::default();
        for name in ["n1", "n2"] {
            view.upsert_node(Arc::new(node(name).build()));
        }
        view
    }

    fn sizes(view: &View, namespace: &str) -> Vec<(usize, bool, Vec<u32>)> {
        let namespace = namespace.into();
        let sets = view.label_sets().of_namespace(&namespace);
        let counts = |set: &LabelSet| set.nodes().iter().map(|(_, count)| count).collect();
        let mut sizes: Vec<_> = sets.map(|set| (set.labels().len(), set.is_terminating(), counts(set))).collect();
        sizes.sort();
        sizes
    }

    #[test]
    fn pods_of_equal_labels_are_one_group_and_terminating_ones_another() {
        let mut view = view();
        for (name, on) in [("a", "n1"), ("b", "n1"), ("c", "n2")] {
            put(&mut view, pod(name).label("app", "web").on(on));
        }
        put(&mut view, pod("d").label("app", "web").terminating().on("n1"));
        put(&mut view, pod("e").on("n1"));
        put(&mut view, pod("a").namespace("other").label("app", "web").on("n1"));
        assert_eq!(sizes(&view, "default"), [(0, false, vec![1]), (1, false, vec![2, 1]), (1, true, vec![1])]);
        assert_eq!((sizes(&view, "other").len(), view.label_sets().len()), (1, 4));
    }

    #[test]
    fn a_group_goes_with_its_last_pod_and_a_fork_keeps_its_own() {
        let mut view = view();
        put(&mut view, pod("a").label("app", "web").on("n1"));
        put(&mut view, pod("b").label("app", "web").on("n1"));
        let fork = view.clone();
        put(&mut view, pod("b").label("app", "db").on("n1"));
        assert_eq!(view.label_sets().len(), 2);
        view.remove_node("n1");
        assert!(view.label_sets().is_empty());
        assert_eq!(sizes(&fork, "default"), [(1, false, vec![2])]);
    }
}
