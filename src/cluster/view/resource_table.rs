//! Numbers for resource names, so that columns are found by index.
//!
//! A name gets its number when a node first offers it or a pod first asks for it. Numbers that nothing uses any more are
//! found by a sweep over the columns (`View::sweep_resources`), each time the names have doubled, and given out again:
//! counting users instead would copy the table for every pod while a fork is held.

use rustc_hash::FxHashMap;

use crate::model::Str;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};

/// The index of a resource's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(u32);

impl ResourceId {
    pub const CPU: Self = Self(0);
    pub const MEMORY: Self = Self(1);
    pub const EPHEMERAL_STORAGE: Self = Self(2);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The three dedicated resources are always there, whoever uses them.
const DEDICATED: [&str; 3] = [CPU, MEMORY, EPHEMERAL_STORAGE];
/// Names below which no sweep is worth its while. Clusters have some ten.
const SWEEP_ABOVE: usize = 64;

/// Names that nodes offer or pods ask for.
#[derive(Debug, Clone)]
pub struct ResourceTable {
    /// By id; empty where the id is free.
    names: Vec<Str>,
    ids: FxHashMap<Str, ResourceId>,
    free: Vec<ResourceId>,
    /// How many names make the next sweep due.
    sweep_at: usize,
}

impl Default for ResourceTable {
    fn default() -> Self {
        let names: Vec<Str> = DEDICATED.map(Str::from).to_vec();
        let ids = names.iter().cloned().zip((0..).map(ResourceId)).collect();
        Self { names, ids, free: Vec::new(), sweep_at: SWEEP_ABOVE }
    }
}

impl ResourceTable {
    pub fn get(&self, name: &str) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    /// Names by id; an id that is free has an empty one, which [`Self::get`] doesn't find.
    pub fn names(&self) -> &[Str] {
        &self.names
    }

    /// The id of a name, given out anew when there is none. None only beyond four billion of them.
    pub(super) fn intern(&mut self, name: &Str) -> Option<ResourceId> {
        if let Some(id) = self.get(name) {
            return Some(id);
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.names[id.index()] = name.clone();
                id
            }
            None => {
                let id = ResourceId(u32::try_from(self.names.len()).ok()?);
                self.names.push(name.clone());
                id
            }
        };
        self.ids.insert(name.clone(), id);
        Some(id)
    }

    pub(super) fn is_sweep_due(&self) -> bool {
        self.ids.len() >= self.sweep_at
    }

    /// Frees the ids that nothing uses.
    pub(super) fn sweep(&mut self, is_used: impl Fn(ResourceId) -> bool) {
        self.ids.retain(|_, id| id.index() < DEDICATED.len() || is_used(*id));
        let kept = self.ids.values().map(|id| id.index() + 1).max().unwrap_or(0);
        self.names.truncate(kept);
        self.free.clear();
        for (name, id) in self.names.iter_mut().zip((0..).map(ResourceId)) {
            if self.ids.get(name) != Some(&id) {
                *name = Str::default();
                self.free.push(id);
            }
        }
        self.ids.shrink_to_fit();
        self.sweep_at = SWEEP_ABOVE.max(2 * self.ids.len());
    }
}
