//! Which nodes changed when, so that whoever caches something per node catches up by visiting only those.

use imbl::Vector;

use super::Ordinal;

/// How many changes are remembered. A cache that fell further behind rebuilds, which costs about as much as replaying this
/// many.
const CAPACITY: usize = 16_384;

#[derive(Debug, Clone, Default)]
pub(super) struct ChangeLog {
    entries: Vector<(u64, Ordinal)>,
    /// Changes up to this revision are no longer all here.
    forgotten: u64,
}

/// The answer to "what changed since".
pub enum Changes<'v> {
    /// These nodes, oldest change first; a node may come more than once.
    Nodes(Box<dyn Iterator<Item = Ordinal> + 'v>),
    /// The log doesn't reach back so far.
    TooOld,
}

impl ChangeLog {
    pub(super) fn push(&mut self, revision: u64, ordinal: Ordinal) {
        if self.entries.back() == Some(&(revision, ordinal)) {
            return;
        }
        if self.entries.len() >= CAPACITY
            && let Some((oldest, _)) = self.entries.pop_front()
        {
            self.forgotten = oldest;
        }
        self.entries.push_back((revision, ordinal));
    }

    pub(super) fn since(&self, revision: u64) -> Changes<'_> {
        if revision < self.forgotten {
            return Changes::TooOld;
        }
        // Revisions never go down, so the newer entries are a suffix.
        let newer = self.entries.iter().rev().take_while(|(at, _)| *at > revision).count();
        Changes::Nodes(Box::new(self.entries.iter().skip(self.entries.len() - newer).map(|(_, ordinal)| *ordinal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(log: &ChangeLog, revision: u64) -> Option<Vec<usize>> {
        match log.since(revision) {
            Changes::Nodes(nodes) => Some(nodes.map(Ordinal::index).collect()),
            Changes::TooOld => None,
        }
    }

    #[test]
    fn only_later_changes_are_told() {
        let mut log = ChangeLog::default();
        for (revision, node) in [(1, 0), (2, 5), (2, 5), (3, 7)] {
            log.push(revision, Ordinal(node));
        }
        assert_eq!(since(&log, 0), Some(vec![0, 5, 7]));
        assert_eq!(since(&log, 2), Some(vec![7]));
        assert_eq!(since(&log, 3), Some(vec![]));
    }

    #[test]
    fn what_was_forgotten_is_admitted() {
        let mut log = ChangeLog::default();
        for revision in 0..=CAPACITY as u64 {
            log.push(revision + 1, Ordinal(0));
        }
        assert_eq!(since(&log, 0), None);
        assert_eq!(since(&log, 1).map(|n| n.len()), Some(CAPACITY));
    }
}
