//! Why a use case could not be carried out. `api/` turns each into a status code with details.

use crate::engine::EngineError;
use crate::manifest::ManifestError;
use crate::model::{Kind, Str};

pub use crate::manifest::FieldError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Every mistake of the request.
    #[error("invalid request: {}", list(.0))]
    Invalid(Vec<FieldError>),
    /// Every mistake of an object in the request; paths are relative to the object.
    #[error(transparent)]
    InvalidObject(Box<ManifestError>),
    #[error("no {what} named {name:?}{}", suggestion(.known))]
    NotFound {
        what: &'static str,
        name: String,
        /// What there is, where the list is short.
        known: Vec<Str>,
    },
    #[error("not ready: {}", waiting(.0))]
    NotReady(Vec<Kind>),
    #[error("revision {wanted} is not reached yet, the view is at {current}")]
    RevisionNotReached { wanted: u64, current: u64 },
    #[error("incarnation {named:?} is over, this is {current:?}; send snapshots and assumes again")]
    OtherIncarnation { named: String, current: Str },
    #[error("another stream speaks for source {client:?} now, under epoch {epoch}; say hello again with a higher one")]
    Fenced { client: Str, epoch: u64 },
    #[error("over {most} objects; compare fewer kinds at a time")]
    TooManyObjects { most: usize },
    #[error("{most} clients watch for retries already; share a stream, or ask again later")]
    TooManyWatchers { most: usize },
    #[error("no policy: set policy or policy_text, or start Berth with --descheduler-policy FILE")]
    NoPolicy,
    /// The service's own policy can't be used with the cluster as it is; all that stands in the way.
    #[error("the server's policy {file} can't be used now: {}", list(.errors))]
    PolicyFile { file: String, errors: Vec<FieldError> },
    #[error("pod {0} has ended; there is no room to hold for it")]
    PodEnded(String),
    #[error("others took the chosen node {rounds} times while the pod was decided; ask again")]
    Contended { rounds: usize },
    #[error("cancelled, or the deadline passed")]
    Cancelled,
    #[error("{0}")]
    Internal(String),
}

impl ServiceError {
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { path: path.into(), message: message.into() }])
    }
}

impl From<EngineError> for ServiceError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Cancelled(_) => Self::Cancelled,
            EngineError::InvalidScore { .. } | EngineError::PreFilter { .. } | EngineError::NoVictim { .. } => {
                Self::Internal(error.to_string())
            }
        }
    }
}

fn list(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn suggestion(known: &[Str]) -> String {
    if known.is_empty() { String::new() } else { format!(", there is {}", known.join(", ")) }
}

fn waiting(kinds: &[Kind]) -> String {
    if kinds.is_empty() {
        return "no node is known yet; feed nodes with UpdateNodes, or start with --cluster".to_owned();
    }
    let names: Vec<&str> = kinds.iter().map(|k| k.as_str()).collect();
    format!("the first snapshot of {} has not ended yet", names.join(", "))
}
