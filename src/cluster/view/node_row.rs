//! One node of a view, as plugins read it.

use std::sync::Arc;

use super::chunk::Chunk;
use super::node_volumes::NodeVolumes;
use super::resource_table::ResourceId;
use super::static_node::StaticNode;
use super::{Ordinal, View};
use crate::cluster::pod_info::{HostPort, PodInfo};
use crate::model::{Labels, Node};

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

    pub fn name(&self) -> &'v crate::model::Str {
        &self.fixed.node.meta.name
    }

    pub fn labels(&self) -> &'v Labels {
        &self.fixed.node.meta.labels
    }

    /// What the node offers: thousandths of cores, bytes, whole units; 0 when it offers none.
    pub fn allocatable(&self, id: ResourceId) -> i64 {
        Chunk::read(&self.chunk.allocatable, id, self.at)
    }

    /// What its pods and reservations take.
    pub fn requested(&self, id: ResourceId) -> i64 {
        Chunk::read(&self.chunk.requested, id, self.at)
    }

    pub fn non_zero_cpu(&self) -> i64 {
        self.chunk.non_zero_cpu[self.at]
    }

    pub fn non_zero_memory(&self) -> i64 {
        self.chunk.non_zero_memory[self.at]
    }

    pub fn allowed_pods(&self) -> i64 {
        self.chunk.allowed_pods[self.at]
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
