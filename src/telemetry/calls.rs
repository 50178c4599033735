//! The `grpc_server_*` metrics, under the names and labels of go-grpc-prometheus, which most gRPC dashboards read.
//!
//! A method's handles are made once ([`super::metrics::Metrics::calls`]) and kept by the transport, so that a call touches
//! nothing but atomics. Only the transport's own list of methods gets here: a path that a client made up is `unknown`.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

use super::timing::Timing;

/// The status codes by number, as go-grpc-prometheus writes them.
pub const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// What a number that is no code counts as.
const UNKNOWN_CODE: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    grpc_type: &'static str,
    grpc_service: String,
    grpc_method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Handled {
    grpc_type: &'static str,
    grpc_service: String,
    grpc_method: String,
    grpc_code: &'static str,
}

#[derive(Debug)]
pub(super) struct Calls {
    started: Family<Method, Counter>,
    handled: Family<Handled, Counter>,
    seconds: Family<Method, Timing>,
}

impl Calls {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (started, handled, seconds) = (Family::default(), Family::default(), Family::default());
        let grpc = registry.sub_registry_with_prefix("grpc_server");
        grpc.register("started", "Calls that began", started.clone());
        grpc.register("handled", "Calls that ended, by status code", handled.clone());
        let help = "Time of a call from its headers to its status; of a stream, how long it was open";
        grpc.register_with_unit("handling", help, Unit::Seconds, seconds.clone());
        Self { started, handled, seconds }
    }

    pub(super) fn method(&self, grpc_type: &'static str, service: &str, method: &str) -> CallMetrics {
        let labels = Method { grpc_type, grpc_service: service.to_owned(), grpc_method: method.to_owned() };
        CallMetrics {
            started: self.started.get_or_create(&labels).clone(),
            seconds: self.seconds.clone(),
            handled: self.handled.clone(),
            timing: OnceLock::new(),
            by_code: Default::default(),
            labels,
        }
    }
}

/// The handles of one method.
#[derive(Debug)]
pub struct CallMetrics {
    started: Counter,
    seconds: Family<Method, Timing>,
    handled: Family<Handled, Counter>,
    // Made as they are needed: most methods end with three codes at most, and many are never called.
    timing: OnceLock<Timing>,
    by_code: [OnceLock<Counter>; CODES.len()],
    labels: Method,
}

impl CallMetrics {
    pub fn started(&self) {
        self.started.inc();
    }

    /// A call ended with this status code; the code's name.
    pub fn ended(&self, code: i32, took: Duration) -> &'static str {
        let known = usize::try_from(code).ok().filter(|code| *code < CODES.len());
        let code = known.unwrap_or(UNKNOWN_CODE);
        let counter = self.by_code[code].get_or_init(|| {
            let Method { grpc_type, grpc_service, grpc_method } = self.labels.clone();
            self.handled
                .get_or_create(&Handled { grpc_type, grpc_service, grpc_method, grpc_code: CODES[code] })
                .clone()
        });
        counter.inc();
        self.timing.get_or_init(|| self.seconds.get_or_create(&self.labels).clone()).observe(took);
        CODES[code]
    }
}
