//! The refused pods.
//!
//! ```text
//!   refused --> Fresh --- nothing changed since ---> Settled <--- decided anew: still refused ---+
//!                 |                                     | something happened that it waits for   |
//!                 +--- the view has moved on -----------+--> Due --------------------------------+
//!                                                             | decided anew: fits
//!                                                             v
//!                                                          Freed: told to watchers, now and later
//!   any --- asked for again, placed, bound, ended, deleted, its profile is gone ---> not in the table
//!   any --- the table is full and it is the oldest ---> fallen out: what it waited for is kept, and happens as `overflow`
//! ```
//!
//! A settled pod is known to fit nowhere in the view of the last look (the looker's `base`).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::FreedPod;
use crate::engine::events::{ActionType, EventResource};
use crate::engine::{Difference, EventSet, Profile, Waiting};
use crate::model::{Pod, Str};
use crate::service::profiles::Profiles;

/// A refusal, as the table takes it in.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) pod: Arc<Pod>,
    pub(super) profile: Arc<Profile>,
    /// Those in force at the decision.
    pub(super) profiles: Arc<Profiles>,
    /// The only nodes that come into question; empty: all.
    pub(super) candidates: Vec<Str>,
    /// Of the view that it was made on.
    pub(super) revision: u64,
    pub(super) waiting: Waiting,
    /// The pod as the feed had it.
    pub(super) fed: Option<Arc<Pod>>,
}

/// Which nodes may take a pod that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    /// Those that changed after this revision.
    Since(u64),
    /// Those that this look found changed.
    Changed,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Fresh,
    Settled,
    Due { events: EventSet, scope: Scope },
    Freed { number: u64 },
}

#[derive(Debug)]
struct Entry {
    refusal: Refusal,
    state: State,
    bytes: usize,
}

/// A pod to decide on anew.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) refusal: Refusal,
    pub(super) events: EventSet,
    pub(super) scope: Scope,
}

/// What came of a task.
#[derive(Debug)]
pub(super) enum Found {
    /// It needs no other try.
    Gone,
    /// It fits, or may.
    Freed { revision: u64 },
    /// It waits for this.
    Refused(Waiting),
}

#[derive(Debug)]
pub(super) struct Table {
    most_pods: usize,
    most_bytes: usize,
    /// By number: in the order in which they were refused.
    entries: BTreeMap<u64, Entry>,
    by_uid: FxHashMap<Str, u64>,
    /// First come, first served, so that none starves. Numbers that are no longer due are skipped.
    due: VecDeque<u64>,
    /// By number of its own, so that watchers read on from where they were.
    freed: BTreeMap<u64, (u64, FreedPod)>,
    last: u64,
    bytes: usize,
    fallen: Fallen,
    /// How often all that was refused was to be retried.
    overflows: u64,
}

/// What is kept of the pods that fell out.
#[derive(Debug, Default)]
struct Fallen {
    waiting: EventSet,
    /// Some might have fitted before the next look, unless the view is still at this revision.
    unsettled_at: Option<u64>,
}

impl Table {
    pub(super) fn new(most_pods: usize, most_bytes: usize) -> Self {
        Self {
            most_pods,
            most_bytes,
            entries: BTreeMap::new(),
            by_uid: FxHashMap::default(),
            due: VecDeque::new(),
            freed: BTreeMap::new(),
            last: 0,
            bytes: 0,
            fallen: Fallen::default(),
            overflows: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.fallen.waiting.is_empty() && self.fallen.unsettled_at.is_none()
    }

    pub(super) fn overflows(&self) -> u64 {
        self.overflows
    }

    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Takes a refusal in, in place of an earlier one of the pod; true if watchers must be told of an overflow.
    pub(super) fn refuse(&mut self, refusal: Refusal) -> bool {
        self.forget(&refusal.pod.meta.uid);
        let bytes = weight(&refusal);
        let mut overflow = false;
        while !self.entries.is_empty()
            && (self.entries.len() >= self.most_pods || self.bytes.saturating_add(bytes) > self.most_bytes)
        {
            overflow |= self.drop_oldest();
        }
        let number = self.next_number();
        self.by_uid.insert(refusal.pod.meta.uid.clone(), number);
        self.entries.insert(number, Entry { refusal, state: State::Fresh, bytes });
        self.bytes += bytes;
        overflow
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((number, entry)) = self.entries.first_key_value() else { return false };
        let (number, state) = (*number, entry.state);
        let (waiting, revision) = (entry.refusal.waiting.events, entry.refusal.revision);
        self.remove(number);
        match state {
            State::Settled => self.fallen.waiting = self.fallen.waiting.union(waiting),
            State::Fresh => {
                self.fallen.waiting = self.fallen.waiting.union(waiting);
                let before = self.fallen.unsettled_at.unwrap_or(revision);
                self.fallen.unsettled_at = Some(before.min(revision));
            }
            // Something happened to it already; a watcher may not have read of that yet.
            State::Due { .. } | State::Freed { .. } => {
                self.overflow();
                return true;
            }
        }
        false
    }

    fn overflow(&mut self) {
        self.overflows += 1;
        // Whoever fell out is retried, and then comes back or is placed.
        self.fallen = Fallen::default();
    }

    pub(super) fn forget(&mut self, uid: &str) {
        if let Some(number) = self.by_uid.get(uid) {
            self.remove(*number);
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        self.by_uid.remove(&entry.refusal.pod.meta.uid);
        self.bytes -= entry.bytes;
        if let State::Freed { number } = entry.state {
            self.freed.remove(&number);
        }
    }

    /// A look begins at this revision, with what happened since the last one: pods that wait for some of it become due, and
    /// those that the view had moved on from. True if watchers are to be told something.
    pub(super) fn begin_look(&mut self, revision: u64, difference: &Difference, profiles: &Arc<Profiles>) -> bool {
        let mut told = false;
        let unseen = self.fallen.unsettled_at.is_some_and(|at| at < revision);
        if unseen || !self.fallen.waiting.met_by(difference.events).is_empty() {
            self.overflow();
            told = true;
        } else if self.fallen.unsettled_at.is_some_and(|at| at == revision) {
            self.fallen.unsettled_at = None;
        }
        let (mut gone, mut freed) = (Vec::new(), Vec::new());
        for (number, entry) in &mut self.entries {
            let refusal = &entry.refusal;
            if matches!(entry.state, State::Freed { .. }) {
                continue;
            }
            if refusal.revision > revision {
                // Decided after this look's fork was taken: the next one's.
                continue;
            }
            if !Arc::ptr_eq(&refusal.profiles, profiles) {
                // Upstream restarts for new profiles, and tries every pod again.
                match profiles.get(refusal.profile.name()) {
                    Ok(_) => freed.push(*number),
                    Err(_) => gone.push(*number),
                }
                continue;
            }
            let spec = &refusal.pod.spec;
            if difference.priority_classes || (difference.runtime_classes && !spec.runtime_class.is_empty()) {
                // What classes gave the pod was filled in when it was asked for; it may get something else now.
                freed.push(*number);
                continue;
            }
            let happened = refusal.waiting.events.met_by(difference.events);
            let alone = refusal.waiting.alone;
            entry.state = match entry.state {
                State::Fresh if refusal.revision == revision => State::Settled,
                // Between its decision and this look something may have come and gone that the difference doesn't show.
                State::Fresh => {
                    let scope = if alone { Scope::Since(refusal.revision) } else { Scope::All };
                    State::Due { events: happened, scope }
                }
                State::Settled if happened.is_empty() => State::Settled,
                State::Settled => {
                    let scope = if alone { Scope::Changed } else { Scope::All };
                    State::Due { events: happened, scope }
                }
                State::Due { events, .. } => {
                    entry.state = State::Due { events: events.union(happened), scope: Scope::All };
                    continue;
                }
                freed @ State::Freed { .. } => freed,
            };
            if matches!(entry.state, State::Due { .. }) {
                self.due.push_back(*number);
            }
        }
        gone.into_iter().for_each(|number| self.remove(number));
        let anything = EventSet::NONE.with(EventResource::Wildcard, &[ActionType::All]);
        told |= !freed.is_empty();
        freed.into_iter().for_each(|number| self.free(number, revision, anything));
        told
    }

    pub(super) fn next_due(&mut self) -> Option<Task> {
        while let Some(number) = self.due.pop_front() {
            if let Some(Entry { refusal, state: State::Due { events, scope }, .. }) = self.entries.get(&number) {
                return Some(Task { number, refusal: refusal.clone(), events: *events, scope: *scope });
            }
        }
        None
    }

    /// True if watchers are to be told.
    pub(super) fn settle(&mut self, task: &Task, found: Found) -> bool {
        let Some(entry) = self.entries.get_mut(&task.number) else { return false };
        match found {
            Found::Gone => self.remove(task.number),
            Found::Freed { revision } => {
                self.free(task.number, revision, task.events);
                return true;
            }
            Found::Refused(waiting) => {
                let refusal = &mut entry.refusal;
                // Nodes that weren't looked at still refuse it for what they did before.
                refusal.waiting = if task.scope == Scope::All { waiting } else { waiting.and(refusal.waiting) };
                entry.state = State::Settled;
            }
        }
        false
    }

    fn free(&mut self, number: u64, revision: u64, events: EventSet) {
        let freed = self.next_number();
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let State::Freed { number } = entry.state {
            self.freed.remove(&number);
        }
        entry.state = State::Freed { number: freed };
        let refusal = &entry.refusal;
        let events = if events.is_empty() { refusal.waiting.events } else { events };
        let profile = refusal.profile.name().clone();
        self.freed.insert(freed, (number, FreedPod { pod: refusal.pod.clone(), profile, revision, events }));
    }

    /// Freed pods that come after a number, oldest first, with their numbers.
    pub(super) fn freed_after(&self, number: u64) -> impl Iterator<Item = (u64, &FreedPod)> {
        self.freed.range(number.saturating_add(1)..).map(|(number, (_, pod))| (*number, pod))
    }

    /// Up to `most` pods from a number on, freed ones too, to see whether they still wait: number, pod, and as it was fed.
    pub(super) fn some_from(&self, number: u64, most: usize) -> Vec<(u64, Arc<Pod>, Option<Arc<Pod>>)> {
        let entries = self.entries.range(number..).take(most);
        entries.map(|(number, e)| (*number, e.refusal.pod.clone(), e.refusal.fed.clone())).collect()
    }

    /// The feed has another state of a pod. With `decide`, it is another pod to decide on, and due for these events.
    pub(super) fn fed_anew(&mut self, number: u64, fed: Arc<Pod>, decide: Option<(Arc<Pod>, EventSet)>) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.refusal.fed = Some(fed);
        let Some((pod, events)) = decide else { return };
        entry.refusal.pod = pod;
        match entry.state {
            State::Freed { .. } => {}
            State::Due { events: earlier, .. } => {
                entry.state = State::Due { events: earlier.union(events), scope: Scope::All };
            }
            State::Fresh | State::Settled => {
                entry.state = State::Due { events, scope: Scope::All };
                self.due.push_back(number);
            }
        }
    }
}

/// Bytes that a refusal keeps alive, roughly: the length of its text for debugging, which is of the order of what the
/// fields take. Some 10 us for an ordinary pod, against the hundreds that its decision took.
fn weight(refusal: &Refusal) -> usize {
    struct Length(usize);
    impl fmt::Write for Length {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut length = Length(0);
    // Counting can't fail.
    let _ = fmt::write(&mut length, format_args!("{:?}{:?}", refusal.pod, refusal.candidates));
    length.0
}
