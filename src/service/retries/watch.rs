//! What a watcher reads: the freed pods from where it was, and whether it must retry all it has.
//!
//! A watcher has no queue: freed pods stay in the table until they are asked for again, and it keeps its place among them.
//! So a slow one costs nothing and misses nothing, and one that comes late gets what was freed before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{FreedPod, MAX_WATCHERS, Retries};
use crate::model::Str;
use crate::service::ServiceError;

#[derive(Debug)]
pub struct RetryWatch {
    retries: Arc<Retries>,
    /// Empty: all.
    profiles: Vec<Str>,
    /// The last freed pod that it saw.
    place: u64,
    overflows: u64,
    /// Its client knew an earlier life of the process, whose refusals are forgotten.
    restarted: bool,
    news: watch::Receiver<u64>,
}

/// What a watcher hasn't been told yet.
#[derive(Debug, Default)]
pub struct News {
    /// Pods may have been freed that aren't named: all that were refused are to be asked for again.
    pub overflow: bool,
    pub pods: Vec<FreedPod>,
}

impl News {
    pub fn is_empty(&self) -> bool {
        !self.overflow && self.pods.is_empty()
    }
}

impl RetryWatch {
    pub(super) fn new(retries: Arc<Retries>, profiles: Vec<Str>, restarted: bool) -> Result<Self, ServiceError> {
        let one_more = |count| (count < MAX_WATCHERS).then_some(count + 1);
        if retries.watchers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
            return Err(ServiceError::TooManyWatchers { most: MAX_WATCHERS });
        }
        let news = retries.news.subscribe();
        // It is told of every overflow there was: its client may have missed it.
        Ok(Self { retries, profiles, place: 0, overflows: 0, restarted, news })
    }

    /// What is new, at most so many pods at a time; empty when it has seen all.
    pub fn read(&mut self, most: usize) -> News {
        // Before the table is read: what comes after that wakes it again.
        self.news.mark_unchanged();
        let table = self.retries.table.lock();
        let overflow = std::mem::take(&mut self.restarted) || table.overflows() > self.overflows;
        self.overflows = table.overflows();
        let mut pods = Vec::new();
        for (number, freed) in table.freed_after(self.place) {
            if pods.len() >= most {
                break;
            }
            self.place = number;
            if self.profiles.is_empty() || self.profiles.contains(&freed.profile) {
                pods.push(freed.clone());
            }
        }
        News { overflow, pods }
    }

    /// Changes when there may be news.
    pub fn signal(&mut self) -> &mut watch::Receiver<u64> {
        &mut self.news
    }
}

impl Drop for RetryWatch {
    fn drop(&mut self) {
        self.retries.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}
