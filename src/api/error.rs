//! From errors to status codes with details (DESIGN section 5).
//!
//! | situation | code | `ErrorInfo.reason` |
//! | --- | --- | --- |
//! | a malformed field or object | INVALID_ARGUMENT, `BadRequest` | `INVALID_FIELDS` |
//! | no such profile, node, pod | NOT_FOUND | `PROFILE_NOT_FOUND`, `NODE_NOT_FOUND`, `POD_NOT_FOUND` |
//! | not ready | UNAVAILABLE, `RetryInfo` | `NOT_READY` |
//! | `min_revision` not reached | UNAVAILABLE, `RetryInfo` | `REVISION_NOT_REACHED` |
//! | another stream has taken its place | ABORTED | `FENCED` |
//! | another incarnation named | FAILED_PRECONDITION | `OTHER_INCARNATION` |
//! | no policy, neither in the request nor the server's | FAILED_PRECONDITION | `NO_POLICY` |
//! | the server's policy names what isn't known | FAILED_PRECONDITION | `POLICY_UNUSABLE` |
//! | a request over 16 MiB | RESOURCE_EXHAUSTED | `MESSAGE_TOO_LARGE` |
//! | a comparison with over 1,000,000 objects | RESOURCE_EXHAUSTED | `TOO_MANY_OBJECTS` |
//! | 64 clients watch for retries already | RESOURCE_EXHAUSTED | `TOO_MANY_WATCHERS` |
//! | another comparison is under way | RESOURCE_EXHAUSTED, `RetryInfo` | `OVERLOADED` |
//! | a decision's turn would come too late, or too many plans wait | RESOURCE_EXHAUSTED, `RetryInfo` | `OVERLOADED` |
//! | the deadline passed | DEADLINE_EXCEEDED | `DEADLINE_EXCEEDED` |
//! | a decision took longer than `--max-decision-time` | DEADLINE_EXCEEDED | `DECISION_TOO_LONG` |
//! | others took the nodes of a long decision, again and again | ABORTED, `RetryInfo` | `CONTENDED` |
//! | the pod has ended | FAILED_PRECONDITION | `POD_ENDED` |
//! | the client gave up | CANCELLED | `CANCELLED` |
//! | Berth shuts down | UNAVAILABLE, `RetryInfo` | `SHUTTING_DOWN` |
//! | a bug | INTERNAL | `INTERNAL`, with a request id |
//!
//! Promise: what a status says fits into the 8 KiB of headers that gRPC clients take by default; more would reach the
//! client as another error altogether. Where mistakes are left out, the last violation counts them.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use super::{call, pb};
use crate::service::{FieldError, ServiceError};

/// Whose reasons these are.
pub(super) const DOMAIN: &str = "berth.dev";
/// Bytes of a status's message; percent-encoding may treble them.
const MAX_MESSAGE: usize = 1_024;
/// Bytes of the violations in a status; base64 adds a third.
const MAX_VIOLATIONS: usize = 2_560;
/// When to ask again while the first snapshot is on its way.
const READY_RETRY: Duration = Duration::from_secs(1);
/// When to ask again after being shed: by then a full queue has emptied.
const OVERLOAD_RETRY: Duration = Duration::from_millis(250);
/// When to ask again for a revision that is on its way on another stream.
const REVISION_RETRY: Duration = Duration::from_millis(50);

/// An error on its way to the client.
#[derive(Debug)]
pub(super) struct Problem(Box<Content>);

#[derive(Debug)]
struct Content {
    code: Code,
    reason: &'static str,
    message: String,
    violations: Vec<FieldError>,
    retry: Option<Duration>,
    metadata: HashMap<String, String>,
}

impl Problem {
    fn new(code: Code, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Content { code, reason, message, violations: Vec::new(), retry: None, metadata: HashMap::new() }))
    }

    fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.0.metadata.insert(key.to_owned(), value.to_string());
        self
    }

    fn violations(mut self, violations: Vec<FieldError>) -> Self {
        self.0.violations = violations;
        self
    }

    fn retry(mut self, after: Duration) -> Self {
        self.0.retry = Some(after);
        self
    }

    /// Something that must not happen. The client gets its request's id, the log says what it stands for.
    pub(super) fn bug(what: &str) -> Self {
        // Work that belongs to no call has an id of its own.
        let id = call::current_id().unwrap_or_else(|| crate::cluster::fresh_id::fresh_id().to_string().into());
        tracing::error!(request_id = %id, "internal error: {what}");
        let message = format!("internal error; Berth's log has it under request id {id}");
        Self::new(Code::Internal, "INTERNAL", message).with("request_id", id)
    }

    /// The error as an answer within a stream.
    pub(super) fn into_answer(self) -> pb::ErrorStatus {
        let Content { code, message, violations, .. } = *self.0;
        let violations = violations.into_iter();
        let violations = violations.map(|e| pb::FieldViolation { field: e.path, description: e.message });
        pb::ErrorStatus { code: code as i32, message, violations: violations.collect() }
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let message = error.to_string();
        let problem = |code, reason| Self::new(code, reason, message);
        match error {
            ServiceError::Invalid(errors) => problem(Code::InvalidArgument, "INVALID_FIELDS").violations(errors),
            ServiceError::InvalidObject(error) => {
                let object = error.object();
                problem(Code::InvalidArgument, "INVALID_FIELDS").with("object", object).violations(error.errors)
            }
            ServiceError::NotFound { what, name, .. } => {
                let reason = match what {
                    "profile" => "PROFILE_NOT_FOUND",
                    "node" => "NODE_NOT_FOUND",
                    "pod" => "POD_NOT_FOUND",
                    _ => "NOT_FOUND",
                };
                problem(Code::NotFound, reason).with("name", name)
            }
            ServiceError::NotReady(_) => problem(Code::Unavailable, "NOT_READY").retry(READY_RETRY),
            ServiceError::RevisionNotReached { wanted, current } => {
                let problem = problem(Code::Unavailable, "REVISION_NOT_REACHED").retry(REVISION_RETRY);
                problem.with("wanted", wanted).with("current", current)
            }
            ServiceError::OtherIncarnation { named, current } => {
                let problem = problem(Code::FailedPrecondition, "OTHER_INCARNATION");
                problem.with("named", named).with("current", current)
            }
            ServiceError::Fenced { client, epoch } => {
                problem(Code::Aborted, "FENCED").with("source", client).with("epoch", epoch)
            }
            ServiceError::TooManyObjects { most } => {
                problem(Code::ResourceExhausted, "TOO_MANY_OBJECTS").with("limit", most)
            }
            ServiceError::TooManyWatchers { most } => {
                problem(Code::ResourceExhausted, "TOO_MANY_WATCHERS").with("limit", most)
            }
            ServiceError::NoPolicy => problem(Code::FailedPrecondition, "NO_POLICY"),
            ServiceError::PolicyFile { file, errors } => {
                let problem = problem(Code::FailedPrecondition, "POLICY_UNUSABLE").with("file", file);
                match errors.first() {
                    Some(error) => problem.with("path", &error.path),
                    None => problem,
                }
            }
            ServiceError::PodEnded(_) => problem(Code::FailedPrecondition, "POD_ENDED"),
            ServiceError::Contended { .. } => problem(Code::Aborted, "CONTENDED").retry(OVERLOAD_RETRY),
            ServiceError::Cancelled => problem(Code::Cancelled, "CANCELLED"),
            ServiceError::Internal(what) => Self::bug(&what),
        }
    }
}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let Content { code, reason, message, violations, retry, metadata } = *problem.0;
        // A client may have put any text into a name.
        let metadata: HashMap<_, _> = metadata.into_iter().map(|(key, value)| (key, cut(value, 256))).collect();
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
        if !violations.is_empty() {
            details.set_bad_request(bounded(violations));
        }
        if retry.is_some() {
            details.set_retry_info(retry);
        }
        Status::with_error_details(code, cut(message, MAX_MESSAGE), details)
    }
}

fn bounded(errors: Vec<FieldError>) -> Vec<FieldViolation> {
    let total = errors.len();
    let mut violations = Vec::new();
    let mut bytes = 0;
    for FieldError { path, message } in errors {
        let (path, message) = (cut(path, 512), cut(message, 512));
        bytes += path.len() + message.len() + 8;
        if bytes > MAX_VIOLATIONS {
            violations.push(FieldViolation::new("", format!("and {} further mistakes", total - violations.len())));
            break;
        }
        violations.push(FieldViolation::new(path, message));
    }
    violations
}

/// At most `max` bytes of a text, and a sign where some were left out.
fn cut(mut text: String, max: usize) -> String {
    const SIGN: &str = "...";
    if text.len() > max {
        let end = (0..=max - SIGN.len()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(SIGN);
    }
    text
}

pub(super) fn shutting_down() -> Status {
    stopping().into()
}

pub(super) fn stopping() -> Problem {
    Problem::new(Code::Unavailable, "SHUTTING_DOWN", "Berth is shutting down").retry(READY_RETRY)
}

/// For a decision whose turn would come too late.
pub(super) fn overloaded() -> Problem {
    let message = "the decision's turn would come too late, too many are waiting; ask again later";
    Problem::new(Code::ResourceExhausted, "OVERLOADED", message).retry(OVERLOAD_RETRY)
}

/// For a decision that took longer than any may.
pub(super) fn too_long(longest: Duration) -> Problem {
    let message = format!("the decision took longer than {longest:?}, the most that --max-decision-time allows");
    Problem::new(Code::DeadlineExceeded, "DECISION_TOO_LONG", message)
}

/// For a plan that would have to wait behind too many others.
pub(super) fn planning() -> Status {
    let problem = Problem::new(Code::ResourceExhausted, "OVERLOADED", "too many plans are waiting; ask again later");
    problem.retry(READY_RETRY).into()
}

/// For a comparison that would run beside another.
pub(super) fn comparing() -> Status {
    let problem =
        Problem::new(Code::ResourceExhausted, "OVERLOADED", "another comparison is under way; ask again later");
    problem.retry(READY_RETRY).into()
}

/// For a stream that learns of its successor while it is silent.
pub(super) fn fenced() -> Status {
    let message = "another stream speaks for this source now; say hello again with a higher epoch";
    Problem::new(Code::Aborted, "FENCED", message).into()
}

pub(super) fn deadline_exceeded() -> Status {
    Problem::new(Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "the deadline passed before there was an answer").into()
}

/// What tonic says of a request over the limit, said as the protocol promises.
pub(super) fn too_large(limit: usize) -> Status {
    let message = format!("a request may have {} MiB after decompression", limit >> 20);
    Problem::new(Code::ResourceExhausted, "MESSAGE_TOO_LARGE", message).with("limit_bytes", limit).into()
}

/// Whether a status of tonic's means that a message is over the limit. tonic says OUT_OF_RANGE of the length as sent and
/// RESOURCE_EXHAUSTED of the length after decompression; Berth itself says neither before a message is read.
pub(super) fn means_too_large(status: &Status) -> bool {
    status.details().is_empty() && matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_fits_into_the_headers_that_clients_take() {
        let mistake =
            |i| FieldError { path: format!("spec.containers[{i}].name"), message: "Required value ✗".into() };
        let status = Status::from(Problem::from(ServiceError::Invalid((0..256).map(mistake).collect())));
        let response = status.clone().into_http::<tonic::body::Body>();
        let bytes: usize = response.headers().iter().map(|(k, v)| k.as_str().len() + v.len()).sum();
        assert!(bytes < 7_500, "{bytes}");
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert!(violations.len() > 40, "{}", violations.len());
        assert_eq!(violations.last().unwrap().description, format!("and {} further mistakes", 257 - violations.len()));
    }

    #[test]
    fn a_few_mistakes_are_all_told() {
        let errors: Vec<_> = ["a", "b"].map(|p| FieldError { path: p.into(), message: "no".into() }).to_vec();
        let status = Status::from(Problem::from(ServiceError::Invalid(errors)));
        assert_eq!(status.get_details_bad_request().unwrap().field_violations.len(), 2);
        assert_eq!(status.get_details_error_info().unwrap().domain, DOMAIN);
    }
}
