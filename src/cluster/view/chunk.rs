//! The columns of 256 consecutive node ordinals.
//!
//! A chunk sits behind an `Arc` and is written through `Arc::make_mut`: in place while no fork holds it, else copied once.
//! 256 keeps that copy at a few microseconds while 5,000 nodes still need only 20 pointers for a fork. Numbers lie in
//! columns, which are shared one by one: to write to a pod's node is to copy the 2 KiB of each resource that it asks for.
//! What isn't numbers lies in [`Cells`], a second level of sharing: to copy a chunk is to count up 16 references each
//! instead of 256, which lie scattered over the heap, and to count them down again when the fork is dropped.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use super::column::{Column, Columns};
use super::node_volumes::NodeVolumes;
use super::resource_table::ResourceId;
use super::static_node::StaticNode;
use crate::cluster::pod_info::{HostPort, PodInfo};

/// Nodes a chunk.
pub const CHUNK: usize = 256;

/// Pods on a node, sorted by uid: the same pods give the same list whatever the order in which they came.
pub(in crate::cluster) type PodList = Arc<Vec<Arc<PodInfo>>>;

/// Cells that are shared and copied together; the square root of a chunk.
const BLOCK: usize = 16;

/// One cell a node. Written through `IndexMut`, which copies the cell's block if a fork holds it.
#[derive(Debug, Clone)]
pub(in crate::cluster) struct Cells<T>([Arc<[T; BLOCK]>; CHUNK / BLOCK]);

impl<T: Default> Default for Cells<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::new(std::array::from_fn(|_| T::default()))))
    }
}

impl<T> Cells<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|block| block.iter())
    }
}

impl<T> Index<usize> for Cells<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.0[at / BLOCK][at % BLOCK]
    }
}

impl<T: Clone> IndexMut<usize> for Cells<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.0[at / BLOCK])[at % BLOCK]
    }
}

#[derive(Debug, Clone, Default)]
pub(in crate::cluster) struct Chunk {
    pub(super) nodes: Cells<Option<Arc<StaticNode>>>,
    pub(super) pods: Cells<PodList>,
    /// Occupied host ports, sorted, one entry for each pod that holds one. None for the many nodes without any.
    pub(super) ports: Cells<Option<Arc<Vec<HostPort>>>>,
    /// Volumes in use. None for nodes without any CSI driver, attachment or pod volume.
    pub(super) volumes: Cells<Option<Arc<NodeVolumes>>>,
    pub(super) allowed_pods: Column,
    pub(super) non_zero_cpu: Column,
    pub(super) non_zero_memory: Column,
    pub(super) allocatable: Columns,
    pub(super) requested: Columns,
}

impl Chunk {
    /// Leaves nothing of a node: the next one in its place starts from nothing.
    pub(super) fn clear(&mut self, at: usize) {
        self.nodes[at] = None;
        self.pods[at] = PodList::default();
        self.ports[at] = None;
        self.volumes[at] = None;
        for column in [&mut self.allowed_pods, &mut self.non_zero_cpu, &mut self.non_zero_memory] {
            column.set(at, 0);
        }
        self.allocatable.clear(at);
        self.requested.clear(at);
    }

    /// Whether some node here offers the resource or some pod takes any of it.
    pub(super) fn uses(&self, id: ResourceId) -> bool {
        self.allocatable.uses(id) || self.requested.uses(id)
    }
}
