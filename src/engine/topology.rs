//! Which domain of a topology key each node is in, as small numbers, so that sums over domains are vectors.
//!
//! A pod may state thousands of constraints and terms over a few topology keys. Labels are looked at once for each key and
//! node, by whoever comes first, and shared by all constraints, terms and plugins of a decision. A decision over one
//! candidate looks at few nodes and pays for those only.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::cluster::{NodeRow, View};
use crate::model::Str;

/// In place of the number of a domain: in none.
pub(crate) const NONE: u32 = u32::MAX;
/// In the memo: nobody has asked yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// The domains of one key over the nodes of one view and its forks, numbered from 0 in the order in which they are met. No
/// answer may depend on that order.
#[derive(Debug)]
pub(crate) struct Topology {
    key: Str,
    /// How many ordinals there are.
    ordinals: usize,
    /// By ordinal. Made when the first node with the label is met: a key that no node has costs nothing.
    memo: OnceLock<Box<[AtomicU32]>>,
    values: Mutex<FxHashMap<Str, u32>>,
}

impl Topology {
    pub(super) fn new(view: &View, key: Str) -> Self {
        Self { key, ordinals: view.ordinals_end(), memo: OnceLock::new(), values: Mutex::default() }
    }

    pub(crate) fn key(&self) -> &Str {
        &self.key
    }

    /// The label's value.
    pub(crate) fn value<'n>(&self, node: &NodeRow<'n>) -> Option<&'n Str> {
        node.labels().get(&self.key)
    }

    /// The node's domain; None when it lacks the label.
    pub(crate) fn domain(&self, node: &NodeRow<'_>) -> Option<usize> {
        let at = node.ordinal().index();
        if let Some(cell) = self.memo.get().and_then(|memo| memo.get(at)) {
            match cell.load(Ordering::Relaxed) {
                UNKNOWN => {}
                NONE => return None,
                number => return Some(number as usize),
            }
        }
        let number = self.value(node).map(|value| self.number(value));
        if number.is_some() || self.memo.get().is_some() {
            let memo = self.memo.get_or_init(|| (0..self.ordinals).map(|_| AtomicU32::new(UNKNOWN)).collect());
            if let Some(cell) = memo.get(at) {
                cell.store(number.unwrap_or(NONE), Ordering::Relaxed);
            }
        }
        number.map(|number| number as usize)
    }

    /// The number of the domain of a value, which needn't have a node.
    pub(crate) fn number(&self, value: &Str) -> u32 {
        let mut values = self.values.lock();
        if let Some(number) = values.get(value) {
            return *number;
        }
        // Fewer than nodes, and one more for a value without any.
        let number = u32::try_from(values.len()).unwrap_or(UNKNOWN - 1);
        values.insert(value.clone(), number);
        number
    }

    /// How many domains have been met so far; all numbers are below that.
    pub(crate) fn len(&self) -> usize {
        self.values.lock().len()
    }
}

/// A number for each domain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    cells: Vec<i64>,
    /// How many aren't 0.
    filled: usize,
}

impl Sums {
    pub(crate) fn get(&self, domain: usize) -> i64 {
        self.cells.get(domain).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, domain: usize, amount: i64) {
        if amount == 0 {
            return;
        }
        if self.cells.len() <= domain {
            self.cells.resize(domain + 1, 0);
        }
        let cell = &mut self.cells[domain];
        let before = *cell;
        // Wrapping, so that what was added is taken away again.
        *cell = cell.wrapping_add(amount);
        match (before, *cell) {
            (0, _) => self.filled += 1,
            (_, 0) => self.filled -= 1,
            _ => {}
        }
    }

    /// Every sum is 0.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    pub(crate) fn to_i32(&self) -> Vec<i32> {
        self.cells.iter().map(|sum| i32::try_from(*sum).unwrap_or(i32::MAX)).collect()
    }

    /// Sets all to 0 and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.filled = 0;
    }

    /// Domains whose sum isn't 0.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, i64)> {
        self.cells.iter().copied().enumerate().filter(|(_, sum)| *sum != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::scene;
    use crate::model::testing::node;

    #[test]
    fn equal_values_are_one_domain_and_nodes_without_the_label_are_in_none() {
        let scene = scene(
            [node("a").label("rack", "1"), node("b").label("rack", "2"), node("c").label("rack", "1"), node("d")],
            [],
        );
        let view = &scene.view;
        let topology = Topology::new(view, "rack".into());
        let domain = |name: &str| topology.domain(&view.node_named(name).unwrap());
        assert_eq!(domain("d"), None);
        let first: Vec<_> = ["a", "b", "c", "d"].map(domain).into();
        assert_eq!(first, [Some(0), Some(1), Some(0), None]);
        assert_eq!(["a", "b", "c", "d"].map(domain).to_vec(), first, "the same when asked again");
        assert_eq!(topology.len(), 2);
    }

    #[test]
    fn sums_that_come_back_to_nothing_are_none() {
        let mut sums = Sums::default();
        sums.add(3, 2);
        sums.add(1, -1);
        assert_eq!(sums.iter().collect::<Vec<_>>(), [(1, -1), (3, 2)]);
        sums.add(3, -2);
        sums.add(1, 1);
        assert!(sums.is_empty() && sums.get(7) == 0);
    }
}
