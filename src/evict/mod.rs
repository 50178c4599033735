//! Which running pods should move, and why: the descheduler's strategies over the cluster that Berth knows.
//!
//! - [`policy`] is what the user asks for, typed and validated.
//! - [`snapshot`] is what strategies read, made from all that the cache knows at one revision.
//! - [`strategies`] propose candidates; [`evictor`] says which pods may go at all; [`limits`] how many.
//! - `plan` is PLANNED mode: it asks the engine where each pod would land, and plays it.
//! - [`cycle`] runs a policy in COMPATIBLE mode, as the descheduler does, accidents included (docs/spec/eviction.md);
//!   [`outcome`] is the answer, with the reason for each pod that was left alone.
//!
//! `service` calls this. Promises: pure (the time comes in as `now`), nothing of the cluster changes, and equal scenes and
//! policies give equal outcomes.

pub mod cycle;
pub mod evictor;
pub mod limits;
pub mod node_fit;
pub mod outcome;
mod plan;
pub mod policy;
pub mod reason;
pub mod snapshot;
pub mod strategies;
pub mod taints;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cluster::{Cancel, Snapshot};
use crate::engine::{EngineError, Profile};
use crate::model::Time;

pub use outcome::Outcome;
pub use policy::Policy;
pub use snapshot::Scene;

/// Whose rules are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// The descheduler's, accidents included.
    #[default]
    Compatible,
    /// Its strategies with the accidents put right, and only moves that are proven to land.
    Planned,
}

/// What the descheduler would evict in one cycle.
///
/// # Errors
/// [`EngineError::Cancelled`] soon after `cancel` is set.
pub fn compatible(
    snapshot: &Snapshot,
    policy: &Policy,
    now: Time,
    cancel: &AtomicBool,
) -> Result<Outcome, EngineError> {
    cycle::compatible(&Scene::of(snapshot, now, Cancel::new(cancel)), policy)
}

/// The profile that pods of a `schedulerName` are scheduled with, if there is one.
pub type ProfileOf<'a> = dyn Fn(&str) -> Option<Arc<Profile>> + 'a;

/// The moves of one cycle that are proven to land.
///
/// # Errors
/// The engine's own, and [`EngineError::Cancelled`] soon after `cancel` is set.
pub fn planned(
    snapshot: &Snapshot,
    policy: &Policy,
    profiles: &ProfileOf<'_>,
    now: Time,
    cancel: &AtomicBool,
) -> Result<Outcome, EngineError> {
    let scene = Scene::of(snapshot, now, Cancel::new(cancel));
    plan::plan(scene, snapshot.view.clone(), policy, profiles)
}

#[cfg(test)]
mod tests;
