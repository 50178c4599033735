//! The API over gRPC, against a server in this process: what clients can rely on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod assume;
mod codes;
mod compare;
mod detail;
mod evictions;
mod feed;
mod fencing;
mod holds;
mod inspect;
mod long;
mod observe;
mod overrides;
mod preemption;
mod protocol;
mod retries;
mod schedule;
mod snapshot;
mod stream;

#[path = "../support/mod.rs"]
mod support;
