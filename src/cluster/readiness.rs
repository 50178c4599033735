//! Whether the cache holds enough of the truth to decide from it, and who feeds it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Kind, Str, Time};

/// What decisions may rely on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// Files were loaded at start.
    Files,
    /// Each required kind finished a snapshot.
    Snapshots,
    /// Nobody said Hello and at least one node is there: somebody is trying things by hand. Answers are flagged.
    Manual,
    /// Not ready.
    Waiting {
        /// Kinds whose snapshot is still to come; empty when there is simply no node yet.
        kinds: Vec<Kind>,
    },
}

/// What is known of one feeding client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceState {
    pub epoch: u64,
    /// When it last said anything.
    pub last_heard: Time,
    /// Streams that are open now.
    pub streams: usize,
    /// Kinds that it has sent a whole snapshot of.
    pub complete: BTreeSet<Kind>,
}

#[derive(Debug, Clone)]
pub struct Readiness {
    required: BTreeSet<Kind>,
    files_loaded: bool,
    /// By source name; the empty name stands for streams without Hello.
    sources: BTreeMap<Str, SourceState>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { required: [Kind::Node, Kind::Pod].into(), files_loaded: false, sources: BTreeMap::new() }
    }
}

impl Readiness {
    /// Which kinds must have finished a snapshot before decisions are made.
    pub fn require(&mut self, kinds: impl IntoIterator<Item = Kind>) {
        self.required = kinds.into_iter().collect();
    }

    pub fn files_loaded(&mut self) {
        self.files_loaded = true;
    }

    pub fn stream_opened(&mut self, source: &Str, epoch: u64, now: Time) {
        let state = self.sources.entry(source.clone()).or_default();
        state.epoch = state.epoch.max(epoch);
        state.last_heard = now;
        state.streams += 1;
    }

    pub fn stream_closed(&mut self, source: &Str) {
        if let Some(state) = self.sources.get_mut(source) {
            state.streams = state.streams.saturating_sub(1);
        }
    }

    pub fn heard(&mut self, source: &Str, now: Time) {
        if let Some(state) = self.sources.get_mut(source) {
            state.last_heard = state.last_heard.max(now);
        }
    }

    pub fn snapshot_finished(&mut self, source: &Str, kinds: &[Kind]) {
        self.sources.entry(source.clone()).or_default().complete.extend(kinds);
    }

    pub fn sources(&self) -> &BTreeMap<Str, SourceState> {
        &self.sources
    }

    /// The state for a view with this many nodes.
    pub fn check(&self, nodes: usize) -> Ready {
        let done: BTreeSet<Kind> = self.sources.values().flat_map(|s| s.complete.iter().copied()).collect();
        let missing: Vec<Kind> = self.required.difference(&done).copied().collect();
        let anyone_said_hello = self.sources.keys().any(|source| !source.is_empty());
        match (missing.is_empty() && anyone_said_hello, self.files_loaded, anyone_said_hello) {
            (true, _, _) => Ready::Snapshots,
            (_, true, _) => Ready::Files,
            (_, _, true) => Ready::Waiting { kinds: missing },
            (_, _, false) if nodes > 0 => Ready::Manual,
            (_, _, false) => Ready::Waiting { kinds: Vec::new() },
        }
    }
}

impl Ready {
    pub fn is_ready(&self) -> bool {
        !matches!(self, Self::Waiting { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_cache_waits_for_a_node() {
        assert_eq!(Readiness::default().check(0), Ready::Waiting { kinds: vec![] });
    }

    #[test]
    fn without_hello_a_node_is_enough_and_flagged() {
        let mut readiness = Readiness::default();
        readiness.stream_opened(&"".into(), 0, Time(0));
        assert_eq!(readiness.check(1), Ready::Manual);
    }

    #[test]
    fn after_a_hello_every_required_kind_must_finish_a_snapshot() {
        let mut readiness = Readiness::default();
        let source = Str::from("a");
        readiness.stream_opened(&source, 1, Time(0));
        assert_eq!(readiness.check(5), Ready::Waiting { kinds: vec![Kind::Node, Kind::Pod] });
        readiness.snapshot_finished(&source, &[Kind::Node]);
        assert_eq!(readiness.check(5), Ready::Waiting { kinds: vec![Kind::Pod] });
        readiness.snapshot_finished(&source, &[Kind::Pod]);
        assert_eq!(readiness.check(5), Ready::Snapshots);
        readiness.stream_closed(&source);
        assert_eq!(readiness.check(5), Ready::Snapshots);
    }

    #[test]
    fn files_are_enough_even_while_a_source_is_still_sending() {
        let mut readiness = Readiness::default();
        readiness.files_loaded();
        assert_eq!(readiness.check(0), Ready::Files);
        readiness.stream_opened(&"a".into(), 1, Time(0));
        assert_eq!(readiness.check(0), Ready::Files);
    }
}
