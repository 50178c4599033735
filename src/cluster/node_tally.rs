//! How many of something each node has, for somethings that few nodes have.

use imbl::OrdMap;

use super::view::Ordinal;

/// Positive numbers by node; a node that isn't named has none. Persistent: a fork shares what neither side changes.
#[derive(Debug, Clone, Default)]
pub struct NodeTally(OrdMap<Ordinal, u32>);

impl NodeTally {
    /// Nodes that have some, by ordinal.
    pub fn iter(&self) -> impl Iterator<Item = (Ordinal, u32)> {
        self.0.iter().map(|(ordinal, count)| (*ordinal, *count))
    }

    /// How many nodes have some.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wraps, so that what was added is taken away again whatever came in between. There are never more somethings than
    /// fit, since each is part of an object in memory.
    pub(super) fn add(&mut self, ordinal: Ordinal, delta: i32) {
        let count = self.0.get(&ordinal).copied().unwrap_or(0).wrapping_add_signed(delta);
        if count == 0 {
            self.0.remove(&ordinal);
        } else {
            self.0.insert(ordinal, count);
        }
    }
}
