//! The transport: tonic and prost, and nothing else. Handlers convert, call `service`, convert back.
//!
//! - [`server`] binds an address and serves everything; tests and `berth demo` use it in process.
//! - [`client`] connects to such a server; the command line uses it.
//! - `feed`, `scheduler` (with `retries`), `eviction` and `inspect` are the services, `convert` holds their conversions, `error` the way from errors to
//!   status codes, `layer` what goes for every call, `observe` what is seen of it from outside (request id, metrics, access log), `call`
//!   how the id goes along with a call's work, `blocking` how work leaves the async threads.
//!
//! Promises: `tonic::Status` exists only here, and generated types reach no further than `http/` and `cli/`. No async thread
//! works, or waits for the writer, for more than some hundred microseconds.

mod blocking;
mod call;
pub mod client;
pub mod codec;
mod compare;
mod convert;
mod decisions;
mod error;
mod eviction;
mod feed;
mod health;
mod inspect;
mod lanes;
mod layer;
mod observe;
pub mod pb;
mod replies;
mod retries;
mod schedule_stream;
mod scheduler;
pub mod server;

pub use convert::decision::response as schedule_response;
pub use convert::eviction::response as evictions_response;
