//! Which running pods should move, and why: the descheduler's strategies over the cluster that Berth knows.
//!
//! - [`policy`] is what the user asks for, typed and validated.
//! - [`snapshot`] is what strategies read, made from all that the cache knows at one revision.
//! - [`strategies`] propose candidates; [`evictor`] says which pods may go at all; [`limits`] how many.
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
pub mod policy;
pub mod reason;
pub mod snapshot;
pub mod strategies;
pub mod taints;

use crate::cluster::Snapshot;
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
pub fn compatible(snapshot: &Snapshot, policy: &Policy, now: Time) -> Outcome {
    cycle::compatible(&Scene::of(snapshot, now), policy)
}

#[cfg(test)]
mod tests;
