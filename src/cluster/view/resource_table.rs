//! Numbers for resource names, so that columns are found by index.

use rustc_hash::FxHashMap;

use crate::model::Str;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};

/// The index of a resource's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(u16);

impl ResourceId {
    pub const CPU: Self = Self(0);
    pub const MEMORY: Self = Self(1);
    pub const EPHEMERAL_STORAGE: Self = Self(2);

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Names that nodes offer or pods ask for. The three dedicated resources are always there.
#[derive(Debug, Clone)]
pub struct ResourceTable {
    names: Vec<Str>,
    ids: FxHashMap<Str, ResourceId>,
}

impl Default for ResourceTable {
    fn default() -> Self {
        let names: Vec<Str> = [CPU, MEMORY, EPHEMERAL_STORAGE].map(Str::from).to_vec();
        let ids = names.iter().cloned().zip((0..).map(ResourceId)).collect();
        Self { names, ids }
    }
}

impl ResourceTable {
    pub fn get(&self, name: &str) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    /// Names by id.
    pub fn names(&self) -> &[Str] {
        &self.names
    }

    /// The id of a name, given out anew when there is none. None once 65,536 names are in use: such a resource is then
    /// treated as offered by no node.
    pub(super) fn intern(&mut self, name: &Str) -> Option<ResourceId> {
        if let Some(id) = self.get(name) {
            return Some(id);
        }
        let id = ResourceId(u16::try_from(self.names.len()).ok()?);
        self.names.push(name.clone());
        self.ids.insert(name.clone(), id);
        Some(id)
    }
}
