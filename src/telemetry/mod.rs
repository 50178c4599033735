//! What an operator sees of the process from outside: its numbers.
//!
//! - [`metrics`] counts and times what happens; [`sizes`] is read when somebody asks. Together they are the page behind
//!   `/metrics`.
//! - [`calls`] are the `grpc_server_*` metrics, one handle a method.
//!
//! Anybody may record here; nothing here knows who does. Promise: recording costs tens of nanoseconds and never waits for
//! a scrape.

pub mod calls;
pub mod metrics;
pub mod sizes;
mod timing;
