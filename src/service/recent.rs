//! The last decisions, for whoever asks what just happened. Bounded; nothing is decided from it.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::schedule::VerdictKind;
use crate::model::{Str, Time};

/// How many are remembered: a few seconds of a busy cluster, at some 300 bytes each.
const CAPACITY: usize = 1_000;

#[derive(Debug, Clone)]
pub struct RecentDecision {
    pub namespace: Str,
    pub name: Str,
    pub uid: Str,
    pub node: Option<Str>,
    pub outcome: VerdictKind,
    /// Why it fits nowhere.
    pub message: String,
    pub revision: u64,
    pub profile: Str,
    pub dry_run: bool,
    pub at: Time,
    pub micros: u64,
}

#[derive(Debug, Default)]
pub struct RecentDecisions(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// Oldest first.
    list: VecDeque<RecentDecision>,
    /// How many were forgotten; a decision's number is this plus its place.
    forgotten: u64,
}

impl RecentDecisions {
    pub fn push(&self, decision: RecentDecision) {
        let mut remembered = self.0.lock();
        if remembered.list.len() >= CAPACITY {
            remembered.list.pop_front();
            remembered.forgotten += 1;
        }
        remembered.list.push_back(decision);
    }

    /// Up to `count` decisions with their numbers, newest first: those before number `before`, or the newest of all.
    pub fn page(&self, before: Option<u64>, count: usize) -> Vec<(u64, RecentDecision)> {
        let remembered = self.0.lock();
        let end = remembered.forgotten + remembered.list.len() as u64;
        let numbered = remembered.list.iter().rev().zip(1..).map(|(decision, back)| (end - back, decision));
        let older = numbered.filter(|(number, _)| before.is_none_or(|before| *number < before));
        older.take(count).map(|(number, decision)| (number, decision.clone())).collect()
    }
}
