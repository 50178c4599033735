//! Which running pods should move: a plan by a policy, and the whole story of one pod.
//!
//! [`Service::suggest_evictions`] takes a snapshot, lets go of the writer, reads the policy and plans. Nothing of the cluster
//! changes, unless its landings are to be held (`holds`). Handlers call it, and the command line in process: the answer has the plan as a whole.
//!
//! - `policy` reads policies in the forms in which they come, with the priority classes of the snapshot.
//! - `left_alone` counts what was left alone. `story` explains one pod.
//!
//! Promise: equal requests on equal snapshots give equal plans.

mod left_alone;
mod messages;
mod policy;
mod story;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use left_alone::{Example, LeftAloneCount, count_left_alone};
pub use messages::{Answer, DEFAULT_EXAMPLES, MAX_EXAMPLES, PodName, PolicySource, Request};
pub(super) use policy::AnyClass;
pub use story::{BudgetState, Landing, NotConsidered, PodStory, ProfileStory, StrategyStory, Verdict};

use super::holds::{DEFAULT_HOLD_SECS, forget_holds};
use super::schedule::check_ttl;
use super::{FieldError, Service, ServiceError};
use crate::cluster::Snapshot;
use crate::evict::outcome::Suggestion;
use crate::evict::{self, Mode, Outcome, Policy};
use crate::model::Time;
use crate::service::profiles::Profiles;
use crate::telemetry::metrics::PlanResult;

impl Service {
    /// Plans evictions.
    ///
    /// # Errors
    /// All mistakes of the request and its policy at once; that there is no policy; that the cache isn't ready.
    pub fn suggest_evictions(&self, request: Request, cancel: &AtomicBool) -> Result<Answer, ServiceError> {
        let begun = Instant::now();
        let mode = request.mode;
        let planned = self.plan_evictions(request, cancel);
        let result = match &planned {
            Ok(_) => PlanResult::Planned,
            Err(ServiceError::Cancelled) => PlanResult::Cancelled,
            Err(ServiceError::Internal(_)) => PlanResult::Error,
            // Refused before it came to a plan.
            Err(_) => return planned,
        };
        self.metrics.plan(mode_name(mode), result, begun.elapsed());
        planned
    }

    fn plan_evictions(&self, request: Request, cancel: &AtomicBool) -> Result<Answer, ServiceError> {
        let (mut snapshot, view) = {
            let writer = self.cluster.writer();
            self.check_basis(&writer, &request.incarnation, request.min_revision)?;
            (writer.snapshot(), self.view_info(&writer))
        };
        forget_holds(&mut snapshot);
        let mut mistakes = request.mistakes;
        if request.max_examples > MAX_EXAMPLES {
            let message = format!("must be at most {MAX_EXAMPLES}");
            mistakes.push(FieldError { path: "max_examples".to_owned(), message });
        }
        if request.explain.as_ref().is_some_and(|pod| pod.name.is_empty()) {
            mistakes.push(FieldError { path: "explain_pod.name".to_owned(), message: "Required value".to_owned() });
        }
        let hold_ttl = request.hold_ttl_micros.unwrap_or(DEFAULT_HOLD_SECS * 1_000_000);
        if let Err(message) = check_ttl(hold_ttl) {
            mistakes.push(FieldError { path: "hold_ttl".to_owned(), message });
        }
        if request.hold_landings && request.mode == Mode::Compatible {
            let message = "mode COMPATIBLE knows no landings; leave one of both out".to_owned();
            mistakes.push(FieldError { path: "hold_landings".to_owned(), message });
        }
        let read = self.read_policy(request.policy, &snapshot, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(ServiceError::Invalid(mistakes));
        }
        let policy::Read { mut policy, warnings, file } = read?;
        policy.max_per_node = request.limits.per_node.or(policy.max_per_node);
        policy.max_per_namespace = request.limits.per_namespace.or(policy.max_per_namespace);
        policy.max_total = request.limits.total.or(policy.max_total);

        let pod = request.explain.map(|name| story::find(&snapshot, &name)).transpose()?;
        let (mode, now) = (request.mode, request.now.unwrap_or(view.now));
        let profiles = self.profiles();
        let outcome = plan(&snapshot, &policy, mode, &profiles, now, cancel)?;
        let pod = pod.map(|pod| {
            let asked = story::Asked { snapshot: &snapshot, policy: &policy, mode, profiles: &profiles, now, cancel };
            story::tell(&asked, &outcome, pod)
        });
        let story = pod.transpose()?;
        let shown = shown(&outcome.suggestions, request.max_suggestions, request.max_bytes);
        let left_alone = count_left_alone(&outcome.left_alone, request.max_examples);
        let holds = if request.hold_landings {
            self.hold_landings(&outcome.suggestions[..shown], hold_ttl)
        } else {
            Vec::new()
        };
        Ok(Answer { outcome, mode, now, view, policy, policy_file: file, warnings, shown, left_alone, story, holds })
    }
}

/// Plans on a snapshot.
///
/// # Errors
/// The engine's, and that nobody waits any more.
pub(super) fn plan(
    snapshot: &Snapshot,
    policy: &Policy,
    mode: Mode,
    profiles: &Profiles,
    now: Time,
    cancel: &AtomicBool,
) -> Result<Outcome, ServiceError> {
    check(cancel)?;
    let outcome = match mode {
        Mode::Compatible => evict::compatible(snapshot, policy, now, cancel)?,
        Mode::Planned => evict::planned(snapshot, policy, &|name| profiles.find(name), now, cancel)?,
    };
    check(cancel)?;
    Ok(outcome)
}

fn check(cancel: &AtomicBool) -> Result<(), ServiceError> {
    if cancel.load(Ordering::Relaxed) { Err(ServiceError::Cancelled) } else { Ok(()) }
}

/// The word for metrics.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Compatible => "compatible",
        Mode::Planned => "planned",
    }
}

/// How many of the suggestions a reply shows: the first ones, and no more than fit.
fn shown(suggestions: &[Suggestion], most: Option<usize>, max_bytes: Option<usize>) -> usize {
    let most = most.unwrap_or(usize::MAX).min(suggestions.len());
    let Some(mut left) = max_bytes else { return most };
    let fits = |suggestion: &&Suggestion| {
        let bytes = weight(suggestion);
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    suggestions[..most].iter().take_while(fits).count()
}

/// No fewer bytes than a suggestion takes in a reply.
fn weight(suggestion: &Suggestion) -> usize {
    // Tags, lengths and numbers: some 30 fields of at most 12 bytes. Names of strategies have at most 43.
    const FIXED: usize = 512;
    let meta = &suggestion.pod.meta;
    let landing = suggestion.landing.as_ref().map_or(0, |landing| landing.node.len());
    let budgets = suggestion.budgets.iter().map(|budget| budget.namespace.len() + budget.name.len() + 40);
    FIXED
        + meta.namespace.len()
        + meta.name.len()
        + meta.uid.len()
        + suggestion.node.len()
        + suggestion.profile.len()
        + suggestion.reason.to_string().len()
        + suggestion.gain.map_or(0, |gain| gain.metric.len())
        + landing
        + budgets.sum::<usize>()
}
