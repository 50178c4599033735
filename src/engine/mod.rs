//! Decides where a pod goes: filter, score, select. A pure function of view, pod and profile.
//!
//! [`decide`] runs the phases of the kube-scheduler (spec section 6) over all nodes. Plugins live in `plugins/`, one file
//! each under its upstream name; a [`Profile`] says which run, in which order and with which weights.
//!
//! Promises: no clock, no randomness but the profile's seed, no map order: equal views, pods and profiles give equal
//! decisions, whatever the history of events behind the view. Nothing here blocks, and every loop whose length
//! input controls looks at the [`Cancel`] flag: a decision ends within milliseconds of its being set. This is the plain path: it is the definition that faster ones are held against.

pub mod cost;
pub mod decision;
pub mod events;
pub mod fixes;
pub mod legacy_reason;
pub mod message;
pub mod overrides;
pub mod plugin;
pub mod plugins;
pub mod preemption;
pub mod profile;
mod recheck;
pub mod registry;
pub mod retry;
pub mod select;
pub mod status;
pub mod unsupported;
pub mod volume_reason;

mod filter;
mod score;
pub(crate) mod topology;

use std::sync::atomic::AtomicBool;

pub use cost::{Cost, cost};
pub use decision::{Decision, Detail, Outcome, Scores};
pub use events::{ClusterEvent, EventSet};
pub use fixes::Fix;
pub use overrides::Override;
pub use plugin::{Cycle, IncomingPod};
pub use preemption::{Preemption, preempt};
pub use profile::Profile;
pub use recheck::Recheck;
pub use retry::{Difference, Waiting};
pub use status::{Code, Reason, Rejection};

pub use crate::cluster::Cancel;
use crate::cluster::{Ordinal, View};

/// Why there is no decision at all (a pod that fits nowhere is a decision).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("cancelled after {0} nodes")]
    Cancelled(usize),
    #[error("plugin {plugin:?} returns an invalid score {score}, it should in the range of [0, 100] after normalizing")]
    InvalidScore { plugin: &'static str, score: i64 },
    #[error("running PreFilter plugin {plugin:?}: {error}")]
    PreFilter { plugin: &'static str, error: String },
    #[error("expected at least one victim pod on node {node:?}")]
    NoVictim { node: String },
}

/// What a caller may ask for besides the decision.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Only these nodes are looked at; None: all.
    pub candidates: Option<&'a [Ordinal]>,
    pub detail: Detail,
}

/// Decides where a pod goes in this view.
///
/// # Errors
/// [`EngineError::Cancelled`] soon after `cancel` is set; the others say what is wrong with the cluster or a plugin.
pub fn decide(
    view: &View,
    pod: &IncomingPod<'_>,
    profile: &Profile,
    options: &Options<'_>,
    cancel: &AtomicBool,
) -> Result<Decision, EngineError> {
    let unsupported = unsupported::features(pod.pod);
    if !unsupported.is_empty() {
        return Ok(Decision::without_nodes(Outcome::Unsupported(unsupported)));
    }
    if let Some(rejection) = profile.pre_enqueue(pod.pod) {
        return Ok(Decision::without_nodes(Outcome::Gated(rejection)));
    }
    if view.node_count() == 0 {
        return Ok(Decision::without_nodes(Outcome::NoNodes));
    }
    let cycle = Cycle::new(view, pod, profile, Cancel::new(cancel));
    let filtered = filter::run(&cycle, options.candidates, options.detail == Detail::Full)?;
    score::select(&cycle, filtered, options.detail)
}

/// Before anything is made of what plugins said: after the flag was set that means nothing.
fn check_cancelled(cancel: Cancel<'_>, done: usize) -> Result<(), EngineError> {
    if cancel.is_set() { Err(EngineError::Cancelled(done)) } else { Ok(()) }
}

#[cfg(test)]
mod cancel_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
pub(crate) mod random_cluster;
#[cfg(test)]
mod random_storage;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod testing_views;
#[cfg(test)]
mod tests;
