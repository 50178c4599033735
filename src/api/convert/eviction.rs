//! Requests for evictions, and plans.

use prost::Message;

use super::decision::within;
use super::object::json;
use super::{count, micros, micros_of, object_ref, timestamp, view_info, warning};
use crate::api::pb;
use crate::api::pb::suggest_evictions_request::PolicySource as Form;
use crate::evict::Mode;
use crate::evict::evictor::Protection;
use crate::evict::limits::{Budget, Limits};
use crate::evict::outcome::{Failure, Gain, LookAhead, Measured, Suggestion};
use crate::model::{Kind, Time};
use crate::service::FieldError;
use crate::service::evict::{
    Answer, DEFAULT_EXAMPLES, Example, Landing, LeftAloneCount, PodName, PodStory, PolicySource, ProfileStory, Request,
    StrategyStory, Verdict,
};
use crate::service::schedule::Held;

/// Bytes of an answer: 4 MiB, which gRPC clients take by default, less room for the view and what has a fixed size.
const MAX_BYTES: usize = (4 << 20) - (256 << 10);
/// Of these, what suggestions never take, so that the counts of what was left alone have a place.
const RESERVED: usize = 1 << 20;
/// What the lists that grow with the policy take together at most, and what a story does.
const MAX_POLICY_BYTES: usize = 256 << 10;

/// Mistakes go along with the request, to be told with those that only the service can find.
pub(in crate::api) fn request(request: pb::SuggestEvictionsRequest) -> Request {
    let mut mistakes = Vec::new();
    let policy = match request.policy_source {
        None => PolicySource::Own,
        Some(Form::PolicyText(text)) => PolicySource::Text(text),
        Some(Form::Policy(policy)) => {
            let bytes = policy.encoded_len();
            let (value, errors) = json(policy);
            PolicySource::Value { value, errors, bytes }
        }
    };
    let mut refuse = |path: &str, message: String| mistakes.push(FieldError { path: path.to_owned(), message });
    let mode = match pb::EvictionMode::try_from(request.mode) {
        Ok(pb::EvictionMode::Unspecified | pb::EvictionMode::Planned) => Mode::Planned,
        Ok(pb::EvictionMode::Compatible) => Mode::Compatible,
        Err(_) => {
            refuse("mode", format!("{} is no mode", request.mode));
            Mode::Planned
        }
    };
    let now = request.now.as_ref().and_then(|at| {
        let time = micros_of(at);
        if time.is_none() {
            refuse("now", "must be a time from 0001-01-01 to 9999-12-31, with nanos from 0 to 999,999,999".to_owned());
        }
        time.map(Time)
    });
    let limits = request.limits.unwrap_or_default();
    let explain = request.explain_pod.map(|pod| {
        if !matches!(pod.kind.as_str(), "" | "Pod") {
            refuse("explain_pod.kind", format!("Unsupported value: {:?}: supported values: \"Pod\"", pod.kind));
        }
        PodName { namespace: pod.namespace, name: pod.name, uid: pod.uid }
    });
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Request {
        mode,
        limits: Limits {
            per_node: limits.max_per_node.map(u64::from),
            per_namespace: limits.max_per_namespace.map(u64::from),
            total: limits.max_total.map(u64::from),
        },
        now,
        min_revision: request.min_revision,
        incarnation: request.incarnation,
        max_suggestions: request.max_suggestions.map(size),
        max_bytes: Some(MAX_BYTES - RESERVED),
        max_examples: request.max_examples.map_or(DEFAULT_EXAMPLES, size),
        explain,
        hold_landings: request.hold_landings,
        hold_ttl_micros: request.hold_ttl.as_ref().map(micros),
        mistakes,
        ..Request::new(policy)
    }
}

/// A plan as clients get it: its beginning, if it is large.
pub fn response(answer: &Answer) -> pb::SuggestEvictionsResponse {
    let outcome = &answer.outcome;
    let mut policy_bytes = MAX_POLICY_BYTES;
    let (measures, fewer_measures) = within(&mut policy_bytes, outcome.measures.iter().map(measure));
    let (failures, fewer_failures) = within(&mut policy_bytes, outcome.failures.iter().map(failure));
    let warnings = answer.warnings.iter().cloned().map(warning);
    let (warnings, fewer_warnings) = within(&mut policy_bytes, warnings);
    let (pod_story, fewer_profiles) = answer.story.as_ref().map(story).unzip();
    let mut response = pb::SuggestEvictionsResponse {
        view: Some(view_info(&answer.view)),
        mode: mode(answer.mode).into(),
        now: Some(timestamp(answer.now)),
        suggestions: suggestions(answer),
        suggestions_omitted: count(outcome.suggestions.len() - answer.shown().len()),
        left_alone: Vec::new(),
        left_alone_omitted: 0,
        measures,
        failures,
        warnings,
        look_ahead: outcome
            .look_ahead
            .map(|LookAhead { rounds, complete }| pb::LookAhead { rounds: count(rounds), complete }),
        decisions: outcome.decisions as u64,
        skipped_nodes: outcome.skipped.map(count),
        policy_file: answer.policy_file.clone().unwrap_or_default(),
        pod_story,
        truncated: false,
    };
    // Larger already is only what nobody sends: the whole plan, asked for in process without max_bytes.
    let mut left = MAX_BYTES.checked_sub(response.encoded_len()).unwrap_or(RESERVED);
    (response.left_alone, response.left_alone_omitted) = within(&mut left, answer.left_alone.iter().map(left_alone));
    let omitted = [
        response.suggestions_omitted,
        response.left_alone_omitted,
        fewer_measures,
        fewer_failures,
        fewer_warnings,
        fewer_profiles.unwrap_or_default(),
    ];
    response.truncated = omitted.iter().any(|omitted| *omitted > 0);
    response
}

fn mode(mode: Mode) -> pb::EvictionMode {
    match mode {
        Mode::Compatible => pb::EvictionMode::Compatible,
        Mode::Planned => pb::EvictionMode::Planned,
    }
}

fn budget(budget: &Budget) -> pb::ObjectRef {
    pb::ObjectRef {
        kind: Kind::PodDisruptionBudget.as_str().to_owned(),
        namespace: budget.namespace.to_string(),
        name: budget.name.to_string(),
        uid: String::new(),
    }
}

fn suggestions(answer: &Answer) -> Vec<pb::EvictionSuggestion> {
    let holds = answer.holds.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    answer.shown().iter().zip(holds).map(|(shown, hold)| suggestion(shown, hold)).collect()
}

fn suggestion(suggestion: &Suggestion, hold: Option<&Held>) -> pb::EvictionSuggestion {
    pb::EvictionSuggestion {
        pod: Some(object_ref(Kind::Pod, &suggestion.pod.meta)),
        node: suggestion.node.to_string(),
        strategy: suggestion.strategy.as_str().to_owned(),
        profile: suggestion.profile.to_string(),
        reason: suggestion.reason.to_string(),
        landing: suggestion.landing.as_ref().map(|landing| pb::EvictionLanding {
            node: landing.node.to_string(),
            score: landing.score,
            landing_is_source: landing.is_source,
        }),
        gain: suggestion.gain.map(gain),
        budgets: suggestion.budgets.iter().map(budget).collect(),
        grace_period_seconds: suggestion.grace_period_seconds,
        not_before: suggestion.not_before.map(timestamp),
        hold: hold.map(|hold| pb::EvictionHold {
            reservation_id: hold.id.to_string(),
            expires_at: Some(timestamp(hold.expires)),
        }),
    }
}

fn gain(Gain { metric, before, after }: Gain) -> pb::EvictionGain {
    pb::EvictionGain { metric: metric.to_owned(), before, after }
}

fn measure(measured: &Measured) -> pb::StrategyMeasure {
    pb::StrategyMeasure {
        strategy: measured.strategy.as_str().to_owned(),
        profile: measured.profile.to_string(),
        gain: Some(gain(measured.gain)),
    }
}

fn failure(failure: &Failure) -> pb::StrategyFailure {
    pb::StrategyFailure {
        strategy: failure.strategy.as_str().to_owned(),
        profile: failure.profile.to_string(),
        message: failure.error.to_string(),
    }
}

fn left_alone(row: &LeftAloneCount) -> pb::LeftAloneCount {
    let protection = |(name, pods): &(&'static str, usize)| pb::ProtectionCount {
        protection: (*name).to_owned(),
        pods: count(*pods),
    };
    let example = |example: &Example| pb::LeftAloneExample {
        pod: Some(object_ref(Kind::Pod, &example.pod.meta)),
        node: example.node.to_string(),
        message: example.message.clone(),
    };
    pb::LeftAloneCount {
        strategy: row.strategy.as_str().to_owned(),
        profile: row.profile.to_string(),
        kind: row.kind.to_owned(),
        detail: row.detail.clone(),
        pods: count(row.pods),
        protections: row.protections.iter().map(protection).collect(),
        examples: row.examples.iter().map(example).collect(),
    }
}

/// A story, and how many of its profiles were left out.
fn story(story: &PodStory) -> (pb::PodEvictionStory, u32) {
    let budgets = story
        .budgets
        .iter()
        .map(|state| pb::PodBudget { budget: Some(budget(&state.budget)), disruptions_allowed: state.allowed });
    let mut bytes = MAX_POLICY_BYTES;
    let (budgets, fewer_budgets) = within(&mut bytes, budgets);
    let (profiles, fewer_profiles) = within(&mut bytes, story.profiles.iter().map(profile));
    let (landing, no_landing) = match &story.landing {
        Landing::On { node, score, is_source } => {
            let landing = pb::EvictionLanding { node: node.to_string(), score: *score, landing_is_source: *is_source };
            (Some(landing), String::new())
        }
        Landing::Nowhere(message) => (None, message.clone()),
    };
    let told = pb::PodEvictionStory {
        pod: Some(object_ref(Kind::Pod, &story.pod.meta)),
        node: story.pod.spec.node_name.to_string(),
        not_considered: story.not_considered.as_ref().map(ToString::to_string).unwrap_or_default(),
        budgets,
        profiles,
        landing,
        no_landing,
    };
    (told, fewer_budgets + fewer_profiles)
}

fn profile(story: &ProfileStory) -> pb::ProfileStory {
    let protection = |protection: &Protection| pb::PodProtection {
        protection: protection.name().to_owned(),
        message: protection.to_string(),
    };
    pb::ProfileStory {
        profile: story.profile.to_string(),
        protections: story.protections.iter().map(protection).collect(),
        pre_eviction: story.pre_eviction.as_ref().map(ToString::to_string).unwrap_or_default(),
        strategies: story.strategies.iter().map(strategy).collect(),
    }
}

fn strategy(story: &StrategyStory) -> pb::StrategyStory {
    let mut told = pb::StrategyStory { strategy: story.strategy.as_str().to_owned(), ..Default::default() };
    let verdict = match &story.verdict {
        Verdict::Suggested { position, reason } => {
            (told.position, told.message) = (count(*position), reason.to_string());
            pb::StrategyVerdict::Suggested
        }
        Verdict::LeftAlone(why) => {
            (told.kind, told.message) = (why.kind().to_owned(), why.to_string());
            pb::StrategyVerdict::LeftAlone
        }
        Verdict::NotReached(reason) => {
            told.message = reason.to_string();
            pb::StrategyVerdict::NotReached
        }
        Verdict::RuleDoesNotApply => pb::StrategyVerdict::RuleDoesNotApply,
        Verdict::Failed(error) => {
            told.message = error.to_string();
            pb::StrategyVerdict::Failed
        }
    };
    told.verdict = verdict.into();
    told
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::reservation::Basis;
    use crate::evict::Outcome;
    use crate::evict::outcome::Landing as Lands;
    use crate::evict::policy::PluginName;
    use crate::evict::reason::Reason;
    use crate::model::testing::pod;
    use crate::service::Service;

    /// What COMPATIBLE mode never has.
    #[test]
    fn what_a_planned_move_proves_is_in_the_answer() {
        let gain = Gain { metric: "points over target", before: 50, after: 25 };
        let suggestion = Suggestion {
            pod: Arc::new(pod("a").build()),
            node: "n1".into(),
            strategy: PluginName::LowNodeUtilization,
            profile: "p".into(),
            reason: Reason::Underutilized,
            grace_period_seconds: Some(0),
            not_before: Some(Time::from_secs(7)),
            budgets: vec![Budget { namespace: "default".into(), name: "b".into() }],
            landing: Some(Lands { node: "n2".into(), score: 300, is_source: false }),
            gain: Some(gain),
        };
        let outcome = Outcome {
            suggestions: vec![suggestion],
            measures: vec![Measured { strategy: PluginName::LowNodeUtilization, profile: "p".into(), gain }],
            look_ahead: Some(LookAhead { rounds: 2, complete: true }),
            decisions: 9,
            ..Outcome::default()
        };
        let service = Service::default();
        let view = service.summary().view;
        let answer = Answer {
            outcome,
            mode: Mode::Planned,
            now: Time(0),
            view,
            policy: crate::evict::Policy::default(),
            policy_file: None,
            warnings: Vec::new(),
            shown: 1,
            left_alone: Vec::new(),
            story: None,
            holds: vec![Some(Held {
                id: "h".into(),
                node: "n2".into(),
                created: Time(0),
                expires: Time::from_secs(9),
                basis: Basis::Held { victim: "a".into() },
            })],
        };
        let response = response(&answer);
        let hold = response.suggestions[0].hold.as_ref().unwrap();
        assert_eq!((hold.reservation_id.as_str(), hold.expires_at.unwrap().seconds), ("h", 9));
        let told = &response.suggestions[0];
        let landing = pb::EvictionLanding { node: "n2".into(), score: 300, landing_is_source: false };
        assert_eq!(told.landing, Some(landing));
        let gain = pb::EvictionGain { metric: "points over target".into(), before: 50, after: 25 };
        assert_eq!((told.gain.as_ref(), response.measures[0].gain.as_ref()), (Some(&gain), Some(&gain)));
        assert_eq!((told.grace_period_seconds, told.not_before.unwrap().seconds), (Some(0), 7), "0 is not absent");
        let budget = &told.budgets[0];
        assert_eq!((budget.kind.as_str(), budget.name.as_str()), ("PodDisruptionBudget", "b"));
        assert_eq!(response.look_ahead, Some(pb::LookAhead { rounds: 2, complete: true }));
        assert_eq!((response.decisions, response.skipped_nodes), (9, None));
    }
}
