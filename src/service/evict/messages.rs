//! What is asked of a plan and what comes back, whatever the transport.

use serde_json::Value;

use super::left_alone::LeftAloneCount;
use super::story::PodStory;
use crate::evict::limits::Limits;
use crate::evict::outcome::Suggestion;
use crate::evict::{Mode, Outcome, Policy};
use crate::manifest::Warning;
use crate::model::Time;
use crate::service::schedule::Held;
use crate::service::{FieldError, ViewInfo};

/// Examples of each reason, unless the request says otherwise.
pub const DEFAULT_EXAMPLES: usize = 5;
/// The most of them that a request may ask for.
pub const MAX_EXAMPLES: usize = 100;

#[derive(Debug, Clone)]
pub struct Request {
    pub policy: PolicySource,
    pub mode: Mode,
    /// Go before the policy's; None: the policy's.
    pub limits: Limits,
    /// None: the service's clock.
    pub now: Option<Time>,
    pub min_revision: Option<u64>,
    /// Empty: any.
    pub incarnation: String,
    /// The most suggestions that a reply shows; None: no limit.
    pub max_suggestions: Option<usize>,
    /// The most bytes that the shown suggestions have in a reply; None: no limit.
    pub max_bytes: Option<usize>,
    /// Of each reason.
    pub max_examples: usize,
    /// The pod whose story to tell.
    pub explain: Option<PodName>,
    /// Hold the landings of the shown suggestions.
    pub hold_landings: bool,
    /// How long, in microseconds; None: [`DEFAULT_HOLD_SECS`](crate::service::holds::DEFAULT_HOLD_SECS).
    pub hold_ttl_micros: Option<i64>,
    /// What was wrong with the form in which the request came; told together with the other mistakes.
    pub mistakes: Vec<FieldError>,
}

impl Request {
    /// PLANNED, by the policy's own limits, at the clock's time.
    pub fn new(policy: PolicySource) -> Self {
        Self {
            policy,
            mode: Mode::Planned,
            limits: Limits::default(),
            now: None,
            min_revision: None,
            incarnation: String::new(),
            max_suggestions: None,
            max_bytes: None,
            max_examples: DEFAULT_EXAMPLES,
            explain: None,
            hold_landings: false,
            hold_ttl_micros: None,
            mistakes: Vec::new(),
        }
    }
}

/// Where a policy comes from.
#[derive(Debug, Clone)]
pub enum PolicySource {
    /// The service's own file.
    Own,
    /// A policy as JSON.
    Value {
        value: Value,
        /// What could not be taken over from the form that the client used.
        errors: Vec<FieldError>,
        /// Size of that form.
        bytes: usize,
    },
    /// The text of a file, YAML or JSON.
    Text(String),
    /// Read already.
    Read(Box<Policy>),
}

/// A pod as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
    /// Empty: whichever pod has the name.
    pub uid: String,
}

#[derive(Debug, Clone)]
pub struct Answer {
    /// The whole plan.
    pub outcome: Outcome,
    pub mode: Mode,
    /// The time that ages were judged at.
    pub now: Time,
    pub view: ViewInfo,
    /// What was planned by, the request's limits included.
    pub policy: Policy,
    /// The service's policy file, if the plan follows it.
    pub policy_file: Option<String>,
    /// Remarks about the policy.
    pub warnings: Vec<Warning>,
    /// How many of the suggestions a reply shows, from the first.
    pub shown: usize,
    /// Most pods first.
    pub left_alone: Vec<LeftAloneCount>,
    pub story: Option<PodStory>,
    /// For each shown suggestion, if landings were to be held; None where there is nothing to hold.
    pub holds: Vec<Option<Held>>,
}

impl Answer {
    /// The suggestions that a reply shows.
    pub fn shown(&self) -> &[Suggestion] {
        &self.outcome.suggestions[..self.shown.min(self.outcome.suggestions.len())]
    }
}
