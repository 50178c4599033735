//! One number a node, exact whatever is added and taken away.
//!
//! What is kept is the sum itself, however far beyond an `i64` it lies; only reading saturates. So adding and removing any
//! amounts in any order comes back to where it was, and a column that returns to nothing weighs nothing.
//!
//! A column holds either a list of the nodes that have some, or a cell for each node of the chunk: most clusters have a
//! handful of resources that nearly every node offers, and may be fed thousands of names that a node or two know.

use std::sync::Arc;

use super::chunk::CHUNK;
use super::resource_table::ResourceId;

/// A list that would grow beyond this becomes cells: 16 entries are found in 4 comparisons and take 512 bytes, cells take
/// 2 KiB.
const MOST_LISTED: usize = 16;
/// Cells of which fewer than this are used become a list again. Well below the other bound, so that one pod that comes and
/// goes doesn't convert a column each time.
const FEWEST_IN_CELLS: usize = 8;

/// Numbers by a node's place in its chunk; 0 for those without any.
#[derive(Debug, Clone, Default)]
pub(super) enum Column {
    /// All are 0.
    #[default]
    Empty,
    /// Sorted by place, without zeros.
    List(Arc<Vec<(u8, i128)>>),
    Cells(Arc<Cells>),
}

#[derive(Debug, Clone)]
pub(super) struct Cells {
    /// What is read: the sum, or the nearest number that fits.
    shown: [i64; CHUNK],
    /// The sums that don't fit, sorted by place. As good as always empty.
    beyond: Vec<(u8, i128)>,
    /// Cells that aren't 0.
    used: usize,
}

fn saturated(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum > 0 { i64::MAX } else { i64::MIN })
}

/// The place as it is kept in lists. A chunk has 256 nodes, so that nothing is cut off.
#[allow(clippy::cast_possible_truncation)]
fn key(at: usize) -> u8 {
    debug_assert!(at < CHUNK);
    at as u8
}

fn find(list: &[(u8, i128)], at: usize) -> Result<usize, usize> {
    list.binary_search_by_key(&key(at), |(place, _)| *place)
}

/// Writes a number to a sorted list that holds no zeros.
fn put(list: &mut Vec<(u8, i128)>, at: usize, number: i128) {
    match (find(list, at), number) {
        (Ok(i), 0) => {
            list.remove(i);
        }
        (Ok(i), number) => list[i].1 = number,
        (Err(_), 0) => {}
        (Err(i), number) => list.insert(i, (key(at), number)),
    }
}

impl Cells {
    fn of(list: &[(u8, i128)]) -> Self {
        let mut cells = Self { shown: [0; CHUNK], beyond: Vec::new(), used: 0 };
        for (at, number) in list {
            cells.set(usize::from(*at), *number);
        }
        cells
    }

    fn sum(&self, at: usize) -> i128 {
        let shown = self.shown[at];
        let beyond = match shown {
            i64::MAX | i64::MIN => find(&self.beyond, at).ok().map(|i| self.beyond[i].1),
            _ => None,
        };
        beyond.unwrap_or(i128::from(shown))
    }

    fn set(&mut self, at: usize, number: i128) {
        let shown = saturated(number);
        // What is beyond is never shown as 0.
        self.used = self.used + usize::from(shown != 0) - usize::from(self.shown[at] != 0);
        let fits = i128::from(shown) == number;
        if !fits || !self.beyond.is_empty() {
            put(&mut self.beyond, at, if fits { 0 } else { number });
        }
        self.shown[at] = shown;
    }

    fn listed(&self) -> Vec<(u8, i128)> {
        (0..CHUNK).filter(|at| self.shown[*at] != 0).map(|at| (key(at), self.sum(at))).collect()
    }
}

impl Column {
    /// The number, or the nearest that an `i64` can hold.
    pub(super) fn get(&self, at: usize) -> i64 {
        match self {
            Self::Cells(cells) => cells.shown[at],
            Self::Empty => 0,
            Self::List(list) => find(list, at).map_or(0, |i| saturated(list[i].1)),
        }
    }

    /// The number itself.
    pub(super) fn sum(&self, at: usize) -> i128 {
        match self {
            Self::Cells(cells) => cells.sum(at),
            Self::Empty => 0,
            Self::List(list) => find(list, at).map_or(0, |i| list[i].1),
        }
    }

    pub(super) fn set(&mut self, at: usize, number: i128) {
        if self.sum(at) == number {
            // Nothing to write, and nothing to copy for it.
            return;
        }
        match self {
            Self::Empty => *self = Self::List(Arc::new(vec![(key(at), number)])),
            Self::List(list) => {
                if number != 0 && list.len() >= MOST_LISTED && find(list, at).is_err() {
                    let mut cells = Cells::of(list);
                    cells.set(at, number);
                    *self = Self::Cells(Arc::new(cells));
                    return;
                }
                let list = Arc::make_mut(list);
                put(list, at, number);
                if list.is_empty() {
                    *self = Self::Empty;
                }
            }
            Self::Cells(cells) => {
                let cells = Arc::make_mut(cells);
                cells.set(at, number);
                if cells.used < FEWEST_IN_CELLS {
                    *self = Self::List(Arc::new(cells.listed()));
                }
            }
        }
    }

    /// Adds to a number; a negative amount takes away. Sums of fewer than 2^63 amounts of an `i64` each fit: more than any
    /// memory holds.
    pub(super) fn add(&mut self, at: usize, amount: i128) {
        self.set(at, self.sum(at).wrapping_add(amount));
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }
}

/// The columns that aren't empty, sorted by resource id.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns(Vec<(ResourceId, Column)>);

impl Columns {
    /// Ids are given out from 0 and most nodes offer the same resources: as a rule a column's place is its id.
    fn find(&self, id: ResourceId) -> Result<usize, usize> {
        match self.0.get(id.index()) {
            Some((there, _)) if *there == id => Ok(id.index()),
            _ => self.0.binary_search_by_key(&id, |(id, _)| *id),
        }
    }

    pub(super) fn get(&self, id: ResourceId, at: usize) -> i64 {
        self.find(id).map_or(0, |i| self.0[i].1.get(at))
    }

    /// What a node has of each resource of which it has some, by resource id.
    pub(super) fn of_node(&self, at: usize) -> impl Iterator<Item = (ResourceId, i128)> {
        self.0.iter().map(move |(id, column)| (*id, column.sum(at))).filter(|(_, sum)| *sum != 0)
    }

    pub(super) fn set(&mut self, id: ResourceId, at: usize, number: i128) {
        self.change(id, |column| column.set(at, number));
    }

    pub(super) fn add(&mut self, id: ResourceId, at: usize, amount: i128) {
        if amount != 0 {
            self.change(id, |column| column.add(at, amount));
        }
    }

    fn change(&mut self, id: ResourceId, change: impl FnOnce(&mut Column)) {
        match self.find(id) {
            Ok(i) => {
                change(&mut self.0[i].1);
                if self.0[i].1.is_empty() {
                    self.0.remove(i);
                }
            }
            Err(i) => {
                let mut column = Column::default();
                change(&mut column);
                if !column.is_empty() {
                    self.0.insert(i, (id, column));
                }
            }
        }
    }

    /// A node has nothing any more.
    pub(super) fn clear(&mut self, at: usize) {
        self.0.iter_mut().for_each(|(_, column)| column.set(at, 0));
        self.0.retain(|(_, column)| !column.is_empty());
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether some node has some of it.
    pub(super) fn uses(&self, id: ResourceId) -> bool {
        self.find(id).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(column: &Column) -> &'static str {
        match column {
            Column::Empty => "empty",
            Column::List(_) => "list",
            Column::Cells(_) => "cells",
        }
    }

    #[test]
    fn a_sum_beyond_an_i64_is_shown_as_the_largest_and_comes_back() {
        for nodes in [1, CHUNK] {
            let mut column = Column::default();
            for at in 0..nodes {
                column.add(at, 3_000);
            }
            column.add(0, i128::from(i64::MAX));
            column.add(0, i128::from(i64::MAX));
            assert_eq!((column.get(0), column.sum(0)), (i64::MAX, 2 * i128::from(i64::MAX) + 3_000));
            column.add(0, -i128::from(i64::MAX));
            column.add(0, -i128::from(i64::MAX));
            assert_eq!((column.get(0), column.sum(0)), (3_000, 3_000), "{nodes} nodes");
        }
    }

    #[test]
    fn a_column_is_cells_only_while_many_nodes_have_some() {
        let mut column = Column::default();
        for at in 0..MOST_LISTED {
            column.set(at * 3, 7);
        }
        assert_eq!(form(&column), "list");
        column.set(250, 7);
        assert_eq!(form(&column), "cells");
        for at in (0..MOST_LISTED).skip(FEWEST_IN_CELLS - 2) {
            column.set(at * 3, 0);
        }
        assert_eq!(form(&column), "list");
        assert_eq!((column.get(250), column.get(0), column.get(1)), (7, 7, 0));
        for at in 0..CHUNK {
            column.set(at, 0);
        }
        assert_eq!(form(&column), "empty");
    }

    #[test]
    fn columns_that_are_empty_are_no_longer_there() {
        let mut columns = Columns::default();
        columns.add(ResourceId::EPHEMERAL_STORAGE, 9, 4);
        columns.add(ResourceId::CPU, 9, 4);
        let of_node = |columns: &Columns| columns.of_node(9).collect::<Vec<_>>();
        assert_eq!(of_node(&columns), [(ResourceId::CPU, 4), (ResourceId::EPHEMERAL_STORAGE, 4)]);
        // With a gap before it, a column isn't where its id says.
        let read = |columns: &Columns, id| (columns.get(id, 9), columns.get(id, 8), columns.uses(id));
        assert_eq!(read(&columns, ResourceId::EPHEMERAL_STORAGE), (4, 0, true));
        assert_eq!(read(&columns, ResourceId::MEMORY), (0, 0, false));
        columns.add(ResourceId::CPU, 9, -4);
        assert_eq!((of_node(&columns), columns.len()), (vec![(ResourceId::EPHEMERAL_STORAGE, 4)], 1));
        columns.clear(9);
        assert_eq!(columns.len(), 0);
    }

    fn amount() -> impl Strategy<Value = i64> {
        prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(5 << 60), Just(0), Just(1), -3..3i64]
    }

    proptest! {
        /// Against plain numbers, in every form that a column takes.
        #[test]
        fn columns_hold_what_plain_numbers_would(
            steps in prop::collection::vec((0..40usize, amount(), any::<bool>()), 0..300),
        ) {
            let (mut column, mut plain) = (Column::default(), [0i128; CHUNK]);
            for (at, amount, add) in steps {
                let amount = i128::from(amount);
                if add {
                    column.add(at, amount);
                    plain[at] += amount;
                } else {
                    column.set(at, amount);
                    plain[at] = amount;
                }
                for (at, number) in plain.iter().enumerate() {
                    prop_assert_eq!(column.sum(at), *number);
                    prop_assert_eq!(column.get(at), saturated(*number));
                }
                let used = plain.iter().filter(|number| **number != 0).count();
                let fits = match form(&column) {
                    "empty" => used == 0,
                    "list" => (1..=MOST_LISTED).contains(&used),
                    _ => used >= FEWEST_IN_CELLS,
                };
                prop_assert!(fits, "{} of {used}", form(&column));
            }
        }
    }
}
