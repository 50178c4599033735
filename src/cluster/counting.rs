//! Counts selectors that nobody keeps, several of them in one go.
//!
//! A key is matched with each [group of labels](super::label_sets) of its namespaces once; then the nodes of the groups that
//! match are added up, or, where more than half would be, those of the others taken from the sum of all. So "all pods
//! but a few" (NotIn) costs the few. What keys of one scope share, the groups and the sum, is worked out once.

use rustc_hash::FxHashMap;

use super::Cancel;
use super::counts::{CountKey, Counts, NodeCounts};
use super::label_sets::LabelSet;
use super::pod_set::Namespaces;
use super::view::View;

/// Counts on one view. The counts of a key whose counting the flag ended mean nothing.
#[derive(Debug)]
pub struct Counting<'v> {
    view: &'v View,
    cancel: Cancel<'v>,
    scopes: FxHashMap<ScopeKey, Scope<'v>>,
}

/// In which namespaces pods count, and whether terminating ones do.
type ScopeKey = (Vec<Namespaces>, bool);

#[derive(Debug)]
struct Scope<'v> {
    groups: Vec<&'v LabelSet>,
    /// Groups times the nodes that they are on.
    entries: usize,
    /// What all of them come to by ordinal, once somebody asked.
    total: Option<Vec<u32>>,
}

impl<'v> Counting<'v> {
    pub fn new(view: &'v View, cancel: Cancel<'v>) -> Self {
        Self { view, cancel, scopes: FxHashMap::default() }
    }

    /// The counts of a key: those that are kept, else made on the spot.
    pub fn counts(&mut self, key: &CountKey) -> Counts<'v> {
        match self.view.kept_counts(key) {
            Some(kept) => Counts::Kept(kept),
            None => Counts::Made(self.count(key)),
        }
    }

    /// How many pods of a key are on which nodes.
    pub fn count(&mut self, key: &CountKey) -> NodeCounts {
        let (view, cancel) = (self.view, self.cancel);
        let scope = self.scopes.entry(key.scope()).or_insert_with(|| Scope::new(view, key, cancel));
        let mut matching = Vec::with_capacity(scope.groups.len());
        let mut entries = 0;
        for group in cancel.guard(&scope.groups) {
            let matches = key.selects_labels(group.labels());
            matching.push(matches);
            entries += if matches { group.nodes().len() } else { 0 };
        }
        let adds = entries * 2 <= scope.entries;
        let mut cells = if adds { view.zeros() } else { scope.total(view, cancel).to_vec() };
        let groups = scope.groups.iter().zip(matching);
        for (group, _) in cancel.guard(groups.filter(|(_, matches)| *matches == adds)) {
            for (ordinal, count) in group.nodes().iter() {
                if let Some(cell) = cells.get_mut(ordinal.index()) {
                    // Each group is part of the sum, which so never falls below 0.
                    *cell = if adds { cell.saturating_add(count) } else { cell.saturating_sub(count) };
                }
            }
        }
        NodeCounts::from_cells(&cells)
    }
}

impl<'v> Scope<'v> {
    fn new(view: &'v View, key: &CountKey, cancel: Cancel<'v>) -> Self {
        let index = view.label_sets();
        let namespaces = match key.namespaces() {
            Some(names) => names.iter().collect::<Vec<_>>(),
            None => index.namespaces().collect(),
        };
        let admitted = cancel.guard(namespaces).filter(|name| key.admits(name, view.objects()));
        let groups = admitted.flat_map(|name| index.of_namespace(name));
        let groups: Vec<&LabelSet> =
            cancel.guard(groups).filter(|group| key.counts_terminating() || !group.is_terminating()).collect();
        let entries = groups.iter().map(|group| group.nodes().len()).sum();
        Self { groups, entries, total: None }
    }

    fn total(&mut self, view: &View, cancel: Cancel<'_>) -> &[u32] {
        let groups = &self.groups;
        self.total.get_or_insert_with(|| {
            let mut cells = view.zeros();
            for (ordinal, count) in cancel.guard(groups.iter().flat_map(|group| group.nodes().iter())) {
                if let Some(cell) = cells.get_mut(ordinal.index()) {
                    *cell = cell.saturating_add(count);
                }
            }
            cells
        })
    }
}
