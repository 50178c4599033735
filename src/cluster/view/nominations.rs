//! Pods that wait for a node that was chosen for them and isn't free yet: what upstream calls the nominator.
//!
//! They take no room. The filters of pods of lower or equal priority count them as if they were there (spec section 6.5).

use std::sync::Arc;

use imbl::HashMap;

use crate::cluster::pod_info::PodInfo;
use crate::model::Str;

/// A persistent index by node and by pod; the node needn't be known.
#[derive(Debug, Clone, Default)]
pub struct Nominations {
    by_node: HashMap<Str, Arc<Vec<Arc<PodInfo>>>>,
    nodes: HashMap<Str, Str>,
}

impl Nominations {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Pods nominated to a node, by uid.
    pub fn on(&self, node: &str) -> &[Arc<PodInfo>] {
        self.by_node.get(node).map_or(&[], |pods| pods.as_slice())
    }

    /// The node that a pod is nominated to.
    pub fn of(&self, uid: &str) -> Option<&Str> {
        self.nodes.get(uid)
    }

    /// All of them, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.by_node.values().flat_map(|pods| pods.iter())
    }

    pub(super) fn insert(&mut self, pod: Arc<PodInfo>) {
        let uid = pod.pod.meta.uid.clone();
        self.remove(&uid);
        self.nodes.insert(uid.clone(), pod.node.clone());
        let pods = Arc::make_mut(self.by_node.entry(pod.node.clone()).or_default());
        let place = pods.partition_point(|p| p.pod.meta.uid < uid);
        pods.insert(place, pod);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let node = self.nodes.remove(uid)?;
        let pods = Arc::make_mut(self.by_node.get_mut(&node)?);
        let at = pods.iter().position(|p| *p.pod.meta.uid == *uid)?;
        let pod = pods.remove(at);
        if pods.is_empty() {
            self.by_node.remove(&node);
        }
        Some(pod)
    }
}
