//! The last decisions, for whoever asks what just happened. Bounded; nothing is decided from it.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::model::{Str, Time};

/// How many are remembered: a few seconds of a busy cluster, at some 300 bytes each.
const CAPACITY: usize = 1_000;

#[derive(Debug, Clone)]
pub struct RecentDecision {
    pub namespace: Str,
    pub name: Str,
    pub uid: Str,
    pub node: Option<Str>,
    /// `placed`, `unschedulable`, `already_bound`, `gated`, `unsupported`.
    pub outcome: &'static str,
    /// Why it fits nowhere.
    pub message: String,
    pub revision: u64,
    pub profile: Str,
    pub dry_run: bool,
    pub at: Time,
    pub micros: u64,
}

#[derive(Debug, Default)]
pub struct RecentDecisions(Mutex<VecDeque<RecentDecision>>);

impl RecentDecisions {
    pub fn push(&self, decision: RecentDecision) {
        let mut list = self.0.lock();
        if list.len() >= CAPACITY {
            list.pop_front();
        }
        list.push_back(decision);
    }

    /// Newest first.
    pub fn list(&self) -> Vec<RecentDecision> {
        self.0.lock().iter().rev().cloned().collect()
    }
}
