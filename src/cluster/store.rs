//! Every object as it was last fed, in concurrent maps.
//!
//! Only the writer changes the store; anyone reads it, and gets `Arc`s out, never a guard. A read is consistent for one
//! object; whoever needs several to agree works on a fork of the view.

use std::collections::BTreeMap;
use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use crate::model::{Kind, Node, Object, ObjectRef, Pod, Str};

/// The source of objects that came from files at start.
pub const FILE_SOURCE: &str = "file";

/// Who wrote an object last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The source named in the stream's Hello; empty for streams without one, [`FILE_SOURCE`] for files.
    pub source: Str,
    /// The epoch of that Hello. Versions of an object compare only within one source and epoch.
    pub epoch: u64,
    /// The snapshot during which it was written; 0 outside of one.
    pub snapshot: u64,
}

impl Origin {
    pub fn file() -> Self {
        Self { source: FILE_SOURCE.into(), epoch: 0, snapshot: 0 }
    }

    /// A writer that named no source.
    pub fn anonymous() -> Self {
        Self { source: Str::default(), epoch: 0, snapshot: 0 }
    }
}

impl Origin {
    /// Whether both are of one feed, so that versions can be compared.
    pub fn is_same_feed(&self, other: &Origin) -> bool {
        !self.source.is_empty() && self.source == other.source && self.epoch == other.epoch
    }
}

/// An object and its writer.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    pub object: T,
    pub origin: Origin,
}

type Map<K, V> = DashMap<K, V, FxBuildHasher>;

#[derive(Debug)]
pub struct ObjectStore {
    nodes: Map<Str, Stored<Arc<Node>>>,
    /// By uid: a name may be reused while its old pod's deletion is still on the way.
    pods: Map<Str, Stored<Arc<Pod>>>,
    pod_uids: Map<(Str, Str), Str>,
    /// The other kinds, each by namespace and name; every kind has its map from the start.
    others: BTreeMap<Kind, Map<(Str, Str), Stored<Object>>>,
}

impl Default for ObjectStore {
    fn default() -> Self {
        let others = Kind::ALL.iter().map(|kind| (*kind, Map::default())).collect();
        Self { nodes: Map::default(), pods: Map::default(), pod_uids: Map::default(), others }
    }
}

impl ObjectStore {
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(name).map(|entry| entry.object.clone())
    }

    pub fn pod(&self, uid: &str) -> Option<Arc<Pod>> {
        self.pods.get(uid).map(|entry| entry.object.clone())
    }

    /// The uid of the pod that has this name now.
    pub fn pod_uid(&self, namespace: &Str, name: &Str) -> Option<Str> {
        self.pod_uids.get(&(namespace.clone(), name.clone())).map(|entry| entry.clone())
    }

    pub fn other(&self, kind: Kind, namespace: &Str, name: &Str) -> Option<Object> {
        self.others.get(&kind)?.get(&(namespace.clone(), name.clone())).map(|entry| entry.object.clone())
    }

    /// All objects of a kind other than nodes and pods, sorted by namespace and name.
    pub fn others(&self, kind: Kind) -> Vec<Object> {
        let entries = self.others.get(&kind).into_iter().flat_map(Map::iter);
        let mut objects: Vec<Object> = entries.map(|entry| entry.object.clone()).collect();
        objects.sort_by(|a, b| (&a.meta().namespace, &a.meta().name).cmp(&(&b.meta().namespace, &b.meta().name)));
        objects
    }

    /// All pods in no particular order, for callers that sort a part of them themselves.
    pub fn pods_unsorted(&self) -> Vec<Arc<Pod>> {
        self.pods.iter().map(|entry| entry.object.clone()).collect()
    }

    /// All pods, sorted by namespace, name and uid.
    pub fn pods(&self) -> Vec<Arc<Pod>> {
        let mut pods = self.pods_unsorted();
        pods.sort_by(|a, b| {
            let key = |p: &Pod| (p.meta.namespace.clone(), p.meta.name.clone(), p.meta.uid.clone());
            key(a).cmp(&key(b))
        });
        pods
    }

    /// All nodes, sorted by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        let mut nodes: Vec<Arc<Node>> = self.nodes.iter().map(|entry| entry.object.clone()).collect();
        nodes.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        nodes
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Node => self.nodes.len(),
            Kind::Pod => self.pods.len(),
            _ => self.others.get(&kind).map_or(0, Map::len),
        }
    }

    /// What is known under the identity of an object: of a pod by uid, of the others by name.
    pub(super) fn stored(&self, object: &Object) -> Option<Stored<Object>> {
        match object {
            Object::Node(node) => {
                let entry = self.nodes.get(&node.meta.name)?;
                Some(Stored { object: Object::Node(entry.object.clone()), origin: entry.origin.clone() })
            }
            Object::Pod(pod) => {
                let entry = self.pods.get(&pod.meta.uid)?;
                Some(Stored { object: Object::Pod(entry.object.clone()), origin: entry.origin.clone() })
            }
            other => {
                let meta = other.meta();
                let map = self.others.get(&other.kind())?;
                Some(map.get(&(meta.namespace.clone(), meta.name.clone()))?.clone())
            }
        }
    }

    /// The object that is known, where it equals this one; else this one. What a resync sends mostly is known: comparing it
    /// here, without the writer, leaves the writer a comparison of two pointers.
    pub fn known_or(&self, object: Object) -> Object {
        match self.stored(&object) {
            Some(known) if known.object == object => known.object,
            _ => object,
        }
    }

    /// Notes who sent a known object again.
    pub(super) fn renew(&self, object: &Object, origin: Origin) {
        match object {
            Object::Node(node) => {
                if let Some(mut entry) = self.nodes.get_mut(&node.meta.name) {
                    entry.origin = origin;
                }
            }
            Object::Pod(pod) => {
                if let Some(mut entry) = self.pods.get_mut(&pod.meta.uid) {
                    entry.origin = origin;
                }
            }
            other => {
                let meta = other.meta();
                let entry = self.others.get(&other.kind());
                if let Some(mut entry) = entry.and_then(|m| m.get_mut(&(meta.namespace.clone(), meta.name.clone()))) {
                    entry.origin = origin;
                }
            }
        }
    }

    /// Who wrote an object last; a pod is found by its uid.
    pub(super) fn origin(&self, object: &ObjectRef) -> Option<Origin> {
        match object.kind {
            Kind::Node => self.nodes.get(&object.name).map(|e| e.origin.clone()),
            Kind::Pod => self.pods.get(&object.uid).map(|e| e.origin.clone()),
            kind => {
                let map = self.others.get(&kind)?;
                map.get(&(object.namespace.clone(), object.name.clone())).map(|e| e.origin.clone())
            }
        }
    }

    pub(super) fn put_node(&self, node: Arc<Node>, origin: Origin) {
        self.nodes.insert(node.meta.name.clone(), Stored { object: node, origin });
    }

    pub(super) fn take_node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.remove(name).map(|(_, stored)| stored.object)
    }

    pub(super) fn put_pod(&self, pod: Arc<Pod>, origin: Origin) {
        let name = |pod: &Pod| (pod.meta.namespace.clone(), pod.meta.name.clone());
        self.pod_uids.insert(name(&pod), pod.meta.uid.clone());
        let before = self.pods.insert(pod.meta.uid.clone(), Stored { object: pod.clone(), origin });
        // Kubernetes never renames a pod; a client that does must not leave names behind.
        if let Some(before) = before.map(|stored| name(&stored.object)).filter(|before| *before != name(&pod)) {
            self.pod_uids.remove_if(&before, |_, owner| *owner == pod.meta.uid);
        }
    }

    pub(super) fn take_pod(&self, uid: &str) -> Option<Arc<Pod>> {
        let (_, stored) = self.pods.remove(uid)?;
        let meta = &stored.object.meta;
        // The name may already belong to the pod's successor.
        self.pod_uids.remove_if(&(meta.namespace.clone(), meta.name.clone()), |_, owner| **owner == *uid);
        Some(stored.object)
    }

    pub(super) fn put_other(&self, object: Object, origin: Origin) {
        let meta = object.meta();
        let key = (meta.namespace.clone(), meta.name.clone());
        if let Some(map) = self.others.get(&object.kind()) {
            map.insert(key, Stored { object, origin });
        }
    }

    pub(super) fn take_other(&self, kind: Kind, namespace: &Str, name: &Str) -> Option<Object> {
        self.others.get(&kind)?.remove(&(namespace.clone(), name.clone())).map(|(_, stored)| stored.object)
    }

    /// Objects of a kind whose origin passes, sorted by namespace and name. Walks all of them, entry by entry: for use
    /// without the writer held.
    pub(super) fn select(&self, kind: Kind, pick: impl Fn(&Origin) -> bool) -> Vec<ObjectRef> {
        let mut keys: Vec<(Str, Str, Str)> = match kind {
            Kind::Node => {
                let picked = self.nodes.iter().filter(|e| pick(&e.origin));
                picked.map(|e| (Str::default(), e.key().clone(), e.object.meta.uid.clone())).collect()
            }
            Kind::Pod => {
                let picked = self.pods.iter().filter(|e| pick(&e.origin));
                picked.map(|e| (e.object.meta.namespace.clone(), e.object.meta.name.clone(), e.key().clone())).collect()
            }
            _ => {
                let entries = self.others.get(&kind).into_iter().flat_map(Map::iter);
                let picked = entries.filter(|e| pick(&e.origin));
                picked.map(|e| (e.key().0.clone(), e.key().1.clone(), e.object.meta().uid.clone())).collect()
            }
        };
        keys.sort();
        keys.into_iter().map(|(namespace, name, uid)| ObjectRef { kind, namespace, name, uid }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::pod;

    #[test]
    fn a_uid_under_another_name_leaves_no_name_behind() {
        let store = ObjectStore::default();
        for i in 0..10 {
            store.put_pod(Arc::new(pod(&format!("p{i}")).uid("u").build()), Origin::anonymous());
        }
        assert_eq!((store.pods.len(), store.pod_uids.len()), (1, 1));
        store.take_pod("u");
        assert_eq!((store.pods.len(), store.pod_uids.len()), (0, 0));
    }
}
