//! When to ask again: the pods that were refused, and which of them a later change may have freed.
//!
//! - `table` remembers the refused pods and what each waits for; pure bookkeeping.
//! - `look` compares the cluster with how it was at the last look, and decides anew on the pods that wait for what
//!   happened since. On a fork, without the writer.
//! - `watch` is what a client that wants to know reads.
//!
//! Who counts: every decision that ended UNSCHEDULABLE and wasn't a dry run. A gated pod doesn't: whoever takes its gates
//! off knows. A pod that could merely preempt where it could not before isn't named either: its client evicts, and it is
//! named once the victims are gone and it fits.
//!
//! Promises: a refused pod that would now fit is named after the next looks, unless it fell out of the table, of which
//! watchers are told (`overflow`) when something happens that it waited for. A name says "may fit", no more. Memory is that
//! of at most [`MAX_PODS`] pods and about [`MAX_BYTES`]. Locks: the looker's, then the writer's or the table's, never both.

mod look;
#[cfg(test)]
mod property_tests;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;

pub use watch::{News, RetryWatch};

use self::table::{Refusal, Table};
use super::profiles::Profiles;
use super::schedule::{Answer, VerdictKind};
use super::{Service, ServiceError};
use crate::cluster::View;
use crate::engine::{EventSet, Profile};
use crate::model::{Pod, Str};

/// Refused pods that are remembered. Twice what waits in a large cluster on a bad day.
pub const MAX_PODS: usize = 16_384;
/// What they may take together, by a rough measure (see [`table`]): requests may have megabytes each.
pub const MAX_BYTES: usize = 128 << 20;
/// Watchers at a time. Each costs a task, and a walk over the names.
pub const MAX_WATCHERS: usize = 64;

#[derive(Debug)]
pub struct Retries {
    table: Mutex<Table>,
    looker: Mutex<Looker>,
    /// Counts up when there is news.
    news: tokio::sync::watch::Sender<u64>,
    watchers: AtomicUsize,
}

/// What the last look saw. Held while a look is under way.
#[derive(Debug, Default)]
struct Looker {
    /// None while no pod waits: a fork makes the writer copy what it changes.
    base: Option<View>,
    /// Where the next sweep begins.
    swept: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self::with_limits(MAX_PODS, MAX_BYTES)
    }
}

impl Retries {
    fn with_limits(pods: usize, bytes: usize) -> Self {
        Self {
            table: Mutex::new(Table::new(pods, bytes)),
            looker: Mutex::default(),
            news: tokio::sync::watch::Sender::new(0),
            watchers: AtomicUsize::new(0),
        }
    }

    /// Whether there is nothing to look at.
    pub fn is_idle(&self) -> bool {
        self.table.lock().is_idle()
    }

    /// Pods that are remembered, those included that were named and not asked for since.
    pub fn len(&self) -> usize {
        self.table.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}

/// A pod that may fit now.
#[derive(Debug, Clone)]
pub struct FreedPod {
    pub pod: Arc<Pod>,
    pub profile: Str,
    /// At which it may fit.
    pub revision: u64,
    /// What did it, or, where that can't be told apart, all that it waited for.
    pub events: EventSet,
}

impl Service {
    pub fn retries(&self) -> &Arc<Retries> {
        &self.retries
    }

    /// Remembers a refusal, and forgets what was remembered of a pod that needs no other try.
    pub(super) fn note_for_retries(
        &self,
        answer: &Answer,
        profile: Arc<Profile>,
        profiles: Arc<Profiles>,
        candidates: Vec<Str>,
    ) {
        let uid = &answer.pod.meta.uid;
        match (answer.verdict.kind(), answer.waiting) {
            (VerdictKind::Unschedulable, Some(waiting)) => {
                let refusal = Refusal {
                    pod: answer.pod.clone(),
                    profile,
                    profiles,
                    candidates,
                    revision: answer.view.revision,
                    waiting,
                    fed: self.cluster.objects().pod(uid),
                };
                if self.retries.table.lock().refuse(refusal) {
                    self.retries.tell();
                }
            }
            _ => self.retries.table.lock().forget(uid),
        }
    }

    /// Watches for pods of these profiles; of all, if none is named. `incarnation` is that of an earlier watch, if any.
    ///
    /// # Errors
    /// A profile isn't known; there are too many watchers.
    pub fn watch_retries(&self, profiles: Vec<String>, incarnation: &str) -> Result<RetryWatch, ServiceError> {
        let known = self.profiles();
        for name in &profiles {
            known.get(name)?;
        }
        let current = self.cluster.writer().incarnation().clone();
        let restarted = !incarnation.is_empty() && *incarnation != *current;
        RetryWatch::new(self.retries.clone(), profiles.into_iter().map(Str::from).collect(), restarted)
    }
}
