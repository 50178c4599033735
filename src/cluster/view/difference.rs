//! What two forks of one history don't share, by comparing pointers.
//!
//! Promise: what isn't told is the same in both. Both are alive, so neither was written to in place since they parted: what
//! has one address has one content. What is told may be equal all the same.

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::chunk::{CHUNK, Chunk};
use super::objects::ObjectTable;
use super::{Ordinal, View};
use crate::model::Kind;

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectChange {
    Added,
    Updated,
    Removed,
}

impl View {
    /// Ordinals at which the node's object or its pods differ, ascending. Costs a look at each chunk, and one at each node
    /// of those that differ.
    pub fn differing_nodes<'v>(&'v self, earlier: &'v View) -> impl Iterator<Item = Ordinal> + 'v {
        let chunks = self.chunks.len().max(earlier.chunks.len());
        let pairs = (0..chunks).map(|c| (c, self.chunks.get(c), earlier.chunks.get(c)));
        let differing = pairs.filter(|(_, new, old)| !matches!((new, old), (Some(a), Some(b)) if Arc::ptr_eq(a, b)));
        differing.flat_map(|(c, new, old)| {
            let at = (0..CHUNK).filter(move |at| differs(new.map(|c| &**c), old.map(|c| &**c), *at));
            at.filter_map(move |at| Ordinal::new(c * CHUNK + at))
        })
    }
}

fn differs(new: Option<&Chunk>, old: Option<&Chunk>, at: usize) -> bool {
    let node = |chunk: Option<&Chunk>| chunk.and_then(|c| c.nodes[at].as_ref().map(Arc::as_ptr));
    let pods = |chunk: Option<&Chunk>| chunk.filter(|c| !c.pods[at].is_empty()).map(|c| Arc::as_ptr(&c.pods[at]));
    node(new) != node(old) || pods(new) != pods(old)
}

impl ObjectTable {
    /// Objects that came, changed or went.
    pub fn changes_from<'t>(&'t self, earlier: &'t Self) -> impl Iterator<Item = (Kind, ObjectChange)> + 't {
        earlier.objects.diff(&self.objects).map(|item| match item {
            DiffItem::Add(key, _) => (key.kind, ObjectChange::Added),
            DiffItem::Update { new: (key, _), .. } => (key.kind, ObjectChange::Updated),
            DiffItem::Remove(key, _) => (key.kind, ObjectChange::Removed),
        })
    }
}
