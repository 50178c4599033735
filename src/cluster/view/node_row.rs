//! One node of a view, as plugins read it.

use std::sync::Arc;

use super::chunk::Chunk;
use super::column::Columns;
use super::node_volumes::NodeVolumes;
use super::resource_table::ResourceId;
use super::static_node::StaticNode;
use super::{Ordinal, View};
use crate::cluster::pod_info::{HostPort, PodInfo};
use crate::model::{Labels, Node, Str};

/// A borrowed row; copying it is free.
#[derive(Clone, Copy, Debug)]
pub struct NodeRow<'v> {
    view: &'v View,
    chunk: &'v Chunk,
    fixed: &'v StaticNode,
    ordinal: Ordinal,
    at: usize,
}

impl<'v> NodeRow<'v> {
    pub(super) fn new(view: &'v View, chunk: &'v Chunk, fixed: &'v StaticNode, ordinal: Ordinal, at: usize) -> Self {
        Self { view, chunk, fixed, ordinal, at }
    }

    pub fn view(&self) -> &'v View {
        self.view
    }

    pub fn ordinal(&self) -> Ordinal {
        self.ordinal
    }

    pub fn node(&self) -> &'v Node {
        &self.fixed.node
    }

    pub fn fixed(&self) -> &'v StaticNode {
        self.fixed
    }

    pub fn name(&self) -> &'v Str {
        &self.fixed.node.meta.name
    }

    pub fn labels(&self) -> &'v Labels {
        &self.fixed.node.meta.labels
    }

    /// What the node offers: thousandths of cores, bytes, whole units; 0 when it offers none.
    pub fn allocatable(&self, id: ResourceId) -> i64 {
        self.chunk.allocatable.get(id, self.at)
    }

    /// What its pods and reservations take; the largest `i64` where that is more.
    pub fn requested(&self, id: ResourceId) -> i64 {
        self.chunk.requested.get(id, self.at)
    }

    pub fn non_zero_cpu(&self) -> i64 {
        self.chunk.non_zero_cpu.get(self.at)
    }

    pub fn non_zero_memory(&self) -> i64 {
        self.chunk.non_zero_memory.get(self.at)
    }

    pub fn allowed_pods(&self) -> i64 {
        self.chunk.allowed_pods.get(self.at)
    }

    /// What the node offers of each resource of which it offers some. The sums themselves, as [`Self::taken`]'s.
    pub fn offered(&self) -> impl Iterator<Item = (&'v Str, i128)> + use<'v> {
        self.named(&self.chunk.allocatable)
    }

    /// What its pods and reservations take of each resource of which they take some.
    pub fn taken(&self) -> impl Iterator<Item = (&'v Str, i128)> + use<'v> {
        self.named(&self.chunk.requested)
    }

    fn named(&self, columns: &'v Columns) -> impl Iterator<Item = (&'v Str, i128)> + use<'v> {
        let names = self.view.resources().names();
        columns.of_node(self.at).filter_map(move |(id, amount)| Some((names.get(id.index())?, amount)))
    }

    /// The non-zero requests of cpu and memory themselves.
    pub(super) fn non_zero_sums(&self) -> (i128, i128) {
        (self.chunk.non_zero_cpu.sum(self.at), self.chunk.non_zero_memory.sum(self.at))
    }

    /// Pods that take room here, reserved ones included, sorted by uid.
    pub fn pods(&self) -> &'v [Arc<PodInfo>] {
        &self.chunk.pods[self.at]
    }

    /// Occupied host ports.
    pub fn ports(&self) -> &'v [HostPort] {
        self.chunk.ports[self.at].as_ref().map_or(&[], |ports| ports)
    }

    /// Volumes in use; None when there are none and the node has no CSINode object.
    pub fn volumes(&self) -> Option<&'v NodeVolumes> {
        self.chunk.volumes[self.at].as_deref()
    }
}
