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
    /// What it does about pods; None for a source that never opened their stream.
    pub pods: Option<PodFeed>,
}

/// A source's stream of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodFeed {
    pub streams: usize,
    pub last_heard: Time,
    /// A snapshot is on its way.
    pub in_snapshot: bool,
}

/// How long a source's silence about pods may last before nothing expires any more. Clients send bookmarks every few
/// seconds.
const STALE_AFTER_SECS: i64 = 30;

/// Sources without an open stream that are remembered, those last heard of. Clients that reconnect keep their name; one that
/// draws a new name each time must not fill the memory, nor each answer, which lists them all.
const MAX_CLOSED_SOURCES: usize = 128;

#[derive(Debug, Clone)]
pub struct Readiness {
    required: BTreeSet<Kind>,
    files_loaded: bool,
    /// By source name; the empty name stands for streams without Hello.
    sources: BTreeMap<Str, SourceState>,
    /// What stays true of sources that were forgotten.
    ever: Ever,
}

#[derive(Debug, Clone, Default)]
struct Ever {
    /// Some stream said Hello.
    named: bool,
    /// Some stream of pods did.
    named_pods: bool,
    /// Kinds that somebody sent a whole snapshot of.
    complete: BTreeSet<Kind>,
}

impl Default for Readiness {
    fn default() -> Self {
        let required = [Kind::Node, Kind::Pod].into();
        Self { required, files_loaded: false, sources: BTreeMap::new(), ever: Ever::default() }
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

    /// A source opened a stream; `pods`: that of pods.
    pub fn stream_opened(&mut self, source: &Str, epoch: u64, pods: bool, now: Time) {
        self.ever.named |= !source.is_empty();
        self.ever.named_pods |= pods && !source.is_empty();
        let state = self.sources.entry(source.clone()).or_default();
        state.epoch = state.epoch.max(epoch);
        state.last_heard = now;
        state.streams += 1;
        if pods {
            let feed = state.pods.get_or_insert_default();
            feed.streams += 1;
            feed.last_heard = now;
        }
    }

    pub fn stream_closed(&mut self, source: &Str, pods: bool) {
        let Some(state) = self.sources.get_mut(source) else { return };
        state.streams = state.streams.saturating_sub(1);
        if let (true, Some(feed)) = (pods, &mut state.pods) {
            feed.streams = feed.streams.saturating_sub(1);
            feed.in_snapshot = false;
        }
    }

    /// Forgets the sources without a stream that were silent for longest, beyond the last [`MAX_CLOSED_SOURCES`]; gives
    /// their names. What their snapshots completed stays complete.
    pub fn forget_closed(&mut self) -> Vec<Str> {
        let closed = || self.sources.iter().filter(|(name, state)| state.streams == 0 && !name.is_empty());
        let Some(too_many @ 1..) = closed().count().checked_sub(MAX_CLOSED_SOURCES) else { return Vec::new() };
        let mut by_silence: Vec<(Time, Str)> = closed().map(|(name, state)| (state.last_heard, name.clone())).collect();
        by_silence.sort();
        let forgotten: Vec<Str> = by_silence.into_iter().take(too_many).map(|(_, name)| name).collect();
        for name in &forgotten {
            self.sources.remove(name);
        }
        forgotten
    }

    pub fn heard(&mut self, source: &Str, pods: bool, now: Time) {
        let Some(state) = self.sources.get_mut(source) else { return };
        state.last_heard = state.last_heard.max(now);
        if let (true, Some(feed)) = (pods, &mut state.pods) {
            feed.last_heard = feed.last_heard.max(now);
        }
    }

    /// A source's snapshot of pods began, or ended.
    pub fn pod_snapshot(&mut self, source: &Str, open: bool) {
        if let Some(feed) = self.sources.get_mut(source).and_then(|s| s.pods.as_mut()) {
            feed.in_snapshot = open;
        }
    }

    /// Whether some named source feeds pods, and none of them is current: connected, heard of lately, and not in the middle
    /// of a snapshot. Bindings may then be under way that nobody has told us of.
    pub fn pod_feed_is_stale(&self, now: Time) -> bool {
        let named = self.sources.iter().filter(|(name, _)| !name.is_empty());
        let mut feeds = named.filter_map(|(_, state)| state.pods);
        let is_current =
            |feed: PodFeed| feed.streams > 0 && !feed.in_snapshot && now.secs_since(feed.last_heard) < STALE_AFTER_SECS;
        self.ever.named_pods && !feeds.any(is_current)
    }

    pub fn snapshot_finished(&mut self, source: &Str, kinds: &[Kind]) {
        self.ever.complete.extend(kinds);
        self.sources.entry(source.clone()).or_default().complete.extend(kinds);
    }

    pub fn sources(&self) -> &BTreeMap<Str, SourceState> {
        &self.sources
    }

    /// The state for a view with this many nodes.
    pub fn check(&self, nodes: usize) -> Ready {
        let missing: Vec<Kind> = self.required.difference(&self.ever.complete).copied().collect();
        let anyone_said_hello = self.ever.named;
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
        readiness.stream_opened(&"".into(), 0, false, Time(0));
        assert_eq!(readiness.check(1), Ready::Manual);
    }

    #[test]
    fn after_a_hello_every_required_kind_must_finish_a_snapshot() {
        let mut readiness = Readiness::default();
        let source = Str::from("a");
        readiness.stream_opened(&source, 1, false, Time(0));
        assert_eq!(readiness.check(5), Ready::Waiting { kinds: vec![Kind::Node, Kind::Pod] });
        readiness.snapshot_finished(&source, &[Kind::Node]);
        assert_eq!(readiness.check(5), Ready::Waiting { kinds: vec![Kind::Pod] });
        readiness.snapshot_finished(&source, &[Kind::Pod]);
        assert_eq!(readiness.check(5), Ready::Snapshots);
        readiness.stream_closed(&source, false);
        assert_eq!(readiness.check(5), Ready::Snapshots);
    }

    #[test]
    fn files_are_enough_even_while_a_source_is_still_sending() {
        let mut readiness = Readiness::default();
        readiness.files_loaded();
        assert_eq!(readiness.check(0), Ready::Files);
        readiness.stream_opened(&"a".into(), 1, false, Time(0));
        assert_eq!(readiness.check(0), Ready::Files);
    }

    #[test]
    fn the_pod_feed_is_stale_while_no_source_is_current() {
        let mut readiness = Readiness::default();
        let (at, source) = (|secs| Time::from_secs(secs), Str::from("a"));
        readiness.stream_opened(&"".into(), 0, true, at(0));
        assert!(!readiness.pod_feed_is_stale(at(1_000)), "manual mode has nobody to wait for");
        readiness.stream_opened(&source, 1, true, at(0));
        assert!(!readiness.pod_feed_is_stale(at(29)) && readiness.pod_feed_is_stale(at(30)));
        readiness.heard(&source, true, at(30));
        assert!(!readiness.pod_feed_is_stale(at(31)));
        readiness.pod_snapshot(&source, true);
        assert!(readiness.pod_feed_is_stale(at(31)));
        readiness.pod_snapshot(&source, false);
        readiness.stream_closed(&source, true);
        assert!(readiness.pod_feed_is_stale(at(31)));
        readiness.stream_opened(&"b".into(), 1, true, at(31));
        assert!(!readiness.pod_feed_is_stale(at(32)), "another source is enough");
    }

    #[test]
    fn closed_sources_are_forgotten_but_not_what_they_completed() {
        let mut readiness = Readiness::default();
        let first = Str::from("first");
        readiness.stream_opened(&first, 1, true, Time(0));
        readiness.snapshot_finished(&first, &[Kind::Node, Kind::Pod]);
        readiness.stream_closed(&first, true);
        let open = Str::from("open");
        readiness.stream_opened(&open, 1, false, Time(0));
        let mut forgotten = Vec::new();
        for i in 1..=MAX_CLOSED_SOURCES {
            let source = Str::from(format!("s{i}"));
            readiness.stream_opened(&source, 1, true, Time::from_secs(i64::try_from(i).unwrap()));
            readiness.stream_closed(&source, true);
            forgotten.extend(readiness.forget_closed());
        }
        assert_eq!(forgotten, [first], "the one that was silent for longest; open ones stay");
        assert_eq!(readiness.sources().len(), MAX_CLOSED_SOURCES + 1);
        assert_eq!(readiness.check(1), Ready::Snapshots);
        assert!(readiness.pod_feed_is_stale(Time(0)), "somebody fed pods, and nobody does now");
    }
}
