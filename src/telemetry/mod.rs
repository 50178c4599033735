//! What an operator sees of the process from outside: its numbers and its log.
//!
//! - [`metrics`] counts and times what happens; [`sizes`] is read when somebody asks. Together they are the page behind
//!   `/metrics`.
//! - [`calls`] are the `grpc_server_*` metrics, one handle a method.
//! - [`log`] writes lines to standard error, as text or JSON, under a filter that can be changed while it runs.
//!
//! Anybody may record here; nothing here knows who does. Promise: recording costs tens of nanoseconds and never waits for
//! a scrape.

pub mod calls;
mod lanes;
pub mod log;
pub mod metrics;
pub mod sizes;
mod timing;
