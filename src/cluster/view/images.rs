//! Which nodes have which container image (spec section 5.6).

use imbl::{HashMap, OrdMap};

use crate::model::{Node, Str};

/// Nodes that report an image name, by node name, with the size each reports.
///
/// Upstream keeps one size per name: the first that was reported while any node has the image, which depends on the order
/// of events. Ours is the size that the node with the smallest name reports: the same for every history that ends in the
/// same nodes, and the one that upstream arrives at when it lists the nodes.
#[derive(Debug, Clone, Default)]
pub struct ImageTable {
    images: HashMap<Str, OrdMap<Str, i64>>,
}

impl ImageTable {
    /// The size of an image in bytes and the number of nodes that have it; None when no node has it.
    pub fn get(&self, name: &str) -> Option<(i64, usize)> {
        let nodes = self.images.get(name)?;
        let (_, size) = nodes.get_min()?;
        Some((*size, nodes.len()))
    }

    /// Image names that some node has.
    pub(super) fn len(&self) -> usize {
        self.images.len()
    }

    pub(super) fn add(&mut self, node: &Node) {
        for image in &node.images {
            for name in &image.names {
                let nodes = self.images.entry(name.clone()).or_default();
                // A node that lists a name twice reports its first size.
                nodes.entry(node.meta.name.clone()).or_insert(image.size_bytes);
            }
        }
    }

    pub(super) fn remove(&mut self, node: &Node) {
        for name in node.images.iter().flat_map(|i| &i.names) {
            let Some(nodes) = self.images.get_mut(&**name) else { continue };
            nodes.remove(&*node.meta.name);
            if nodes.is_empty() {
                self.images.remove(&**name);
            }
        }
    }
}
