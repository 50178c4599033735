//! Scenarios of the batch interface that ask what to evict (`tests/conformance/README.md`).

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::Service;
use super::answer::{AnswerError, DEFAULT_NOW};
use super::evict::plan;
use crate::config::descheduler;
use crate::evict::{self, Mode};
use crate::manifest;
use crate::model::Time;

/// The suggestions for a cluster that holds the scenario's objects. `now` goes before the scenario's own time.
pub(super) fn evictions(
    service: &Service,
    scenario: &Value,
    mode: Mode,
    now: Option<Time>,
) -> Result<Vec<Value>, AnswerError> {
    let now = match now {
        Some(now) => now,
        None => own_time(scenario)?.unwrap_or(DEFAULT_NOW),
    };
    let read = descheduler::from_value(&scenario["policy"], &service.cluster)
        .map_err(|e| AnswerError::Manifest(format!("policy: {e}")))?;
    let (snapshot, profiles) = (service.cluster.snapshot(), service.profiles());
    let outcome = plan(&snapshot, &read.policy, mode, &profiles, now, &AtomicBool::new(false))
        .map_err(|e| AnswerError::Engine(e.to_string()))?;
    if let Some(failure) = outcome.failures.first() {
        return Err(AnswerError::Engine(format!("{}: {}", failure.strategy.as_str(), failure.error)));
    }
    let entry = |suggestion: &evict::outcome::Suggestion| {
        json!({
            "pod": suggestion.pod.meta.key(),
            "node": &*suggestion.node,
            "strategy": suggestion.strategy.as_str(),
        })
    };
    Ok(outcome.suggestions.iter().map(entry).collect())
}

fn own_time(scenario: &Value) -> Result<Option<Time>, AnswerError> {
    match scenario.get("now") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let time = value.as_str().and_then(manifest::parse_time);
            time.map(Some).ok_or_else(|| {
                AnswerError::Malformed(format!(
                    "now: expected an RFC 3339 time such as \"2026-11-30T20:00:00Z\", found {value}"
                ))
            })
        }
    }
}
