//! The columns of 256 consecutive node ordinals.
//!
//! A chunk sits behind an `Arc` and is written through `Arc::make_mut`: in place while no fork holds it, else copied once.
//! 256 keeps that copy at a few microseconds (some 30 KiB of numbers) while 5,000 nodes still need only 20 pointers for a
//! fork. What isn't numbers lies in [`Cells`], a second level of sharing: to copy a chunk is to count up 16 references each
//! instead of 256, which lie scattered over the heap, and to count them down again when the fork is dropped.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

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

#[derive(Debug, Clone)]
pub(in crate::cluster) struct Chunk {
    pub(super) nodes: Cells<Option<Arc<StaticNode>>>,
    pub(super) pods: Cells<PodList>,
    /// Occupied host ports, sorted, one entry for each pod that holds one. None for the many nodes without any.
    pub(super) ports: Cells<Option<Arc<Vec<HostPort>>>>,
    /// Volumes in use. None for nodes without any CSI driver, attachment or pod volume.
    pub(super) volumes: Cells<Option<Arc<NodeVolumes>>>,
    pub(super) allowed_pods: Vec<i64>,
    pub(super) non_zero_cpu: Vec<i64>,
    pub(super) non_zero_memory: Vec<i64>,
    /// By resource id.
    pub(super) allocatable: Vec<Vec<i64>>,
    pub(super) requested: Vec<Vec<i64>>,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            nodes: Cells::default(),
            pods: Cells::default(),
            ports: Cells::default(),
            volumes: Cells::default(),
            allowed_pods: vec![0; CHUNK],
            non_zero_cpu: vec![0; CHUNK],
            non_zero_memory: vec![0; CHUNK],
            allocatable: Vec::new(),
            requested: Vec::new(),
        }
    }
}

impl Chunk {
    fn column(columns: &mut Vec<Vec<i64>>, id: ResourceId) -> &mut Vec<i64> {
        let index = id.index();
        if columns.len() <= index {
            columns.resize_with(index + 1, Vec::new);
        }
        let column = &mut columns[index];
        if column.is_empty() {
            column.resize(CHUNK, 0);
        }
        column
    }

    pub(super) fn set_allocatable(&mut self, at: usize, id: ResourceId, amount: i64) {
        Self::column(&mut self.allocatable, id)[at] = amount;
    }

    pub(super) fn add_requested(&mut self, at: usize, id: ResourceId, amount: i64) {
        let cell = &mut Self::column(&mut self.requested, id)[at];
        *cell = cell.saturating_add(amount);
    }

    pub(super) fn clear_allocatable(&mut self, at: usize) {
        for column in self.allocatable.iter_mut().filter(|c| !c.is_empty()) {
            column[at] = 0;
        }
    }

    /// Whether some node here offers the resource or some pod takes any of it.
    pub(super) fn uses(&self, id: ResourceId) -> bool {
        let columns = [&self.allocatable, &self.requested];
        columns.into_iter().filter_map(|columns| columns.get(id.index())).flatten().any(|amount| *amount != 0)
    }

    /// Whether there are columns of such resources.
    pub(super) fn has_columns(&self, of: impl Fn(usize) -> bool) -> bool {
        let columns = [&self.allocatable, &self.requested];
        columns.into_iter().any(|columns| columns.iter().enumerate().any(|(i, column)| !column.is_empty() && of(i)))
    }

    pub(super) fn drop_columns(&mut self, of: impl Fn(usize) -> bool) {
        for columns in [&mut self.allocatable, &mut self.requested] {
            for (_, column) in columns.iter_mut().enumerate().filter(|(i, _)| of(*i)) {
                *column = Vec::new();
            }
            let used = columns.iter().rposition(|column| !column.is_empty()).map_or(0, |last| last + 1);
            columns.truncate(used);
            columns.shrink_to_fit();
        }
    }

    pub(super) fn read(columns: &[Vec<i64>], id: ResourceId, at: usize) -> i64 {
        columns.get(id.index()).and_then(|column| column.get(at)).copied().unwrap_or(0)
    }
}
