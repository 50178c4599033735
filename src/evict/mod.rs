//! Which running pods should move: the descheduler's strategies over the same view and engine that place pods.
//!
//! `service` calls it with a fork of the view; `config` and `api` use the types of [`policy`]. Promises: no clock (time
//! comes in as `now`), no transport, no randomness, and no panic for any policy or cluster.

pub mod policy;
