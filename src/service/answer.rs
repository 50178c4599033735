//! The batch interface: whole scenarios in, decisions out, in the schema of the conformance vectors
//! (`tests/conformance/README.md`). Outsiders judge Berth by it, so it goes the way of the RPCs: manifests are read, fed
//! through the writer, and decided on a fork by the same engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};

use super::evictions::evictions;
use super::profiles::Profiles;
use super::{ManualClock, Service};
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::cluster::{Ordinal, View};
use crate::config;
use crate::engine::fixes::Fix;
use crate::engine::{self, Decision, Detail, IncomingPod, Options, Outcome, Preemption, Profile, Rejection, message};
use crate::evict::Mode;
use crate::manifest::{self, Item};
use crate::model::{Kind, Object, Pod, Time};

/// The time that eviction scenarios without `now` are judged at: 2026-11-30T20:00:00Z. Never the wall clock, so that the
/// same scenario gives the same answer on every day.
pub const DEFAULT_NOW: Time = Time::from_secs(1_796_068_800);

/// Why a scenario has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("not a scenario: {0}")]
    Malformed(String),
    #[error("{0}")]
    Manifest(String),
    #[error("{0} is not supported yet")]
    Unsupported(String),
    /// All mistakes of the scenario's `config`, a line each.
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Engine(String),
}

/// How scenarios are answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Each is switched on in every profile.
    pub fixes: &'a [Fix],
    pub mode: Mode,
    /// The time, whatever the scenarios say.
    pub now: Option<Time>,
}

/// Answers a scenario: `{name, decisions}`, with a policy `{name, evictions}`, or `{name, error}`.
pub fn answer(scenario: &Value, asked: &Asked<'_>) -> Value {
    let name = scenario.get("name").cloned().unwrap_or(Value::Null);
    match contents(scenario, asked) {
        Ok((field, list)) => json!({ "name": name, field: list }),
        Err(error) => json!({ "name": name, "error": error.to_string() }),
    }
}

fn contents(scenario: &Value, asked: &Asked<'_>) -> Result<(&'static str, Vec<Value>), AnswerError> {
    if !scenario.is_object() {
        return Err(AnswerError::Malformed("expected an object".to_owned()));
    }
    let given = |field: &str| scenario.get(field).filter(|v| !v.is_null());
    let profiles = match given("config") {
        None => vec![Profile::default()],
        Some(value) => {
            let read = config::from_value(value, "config");
            read.map_err(|errors| AnswerError::Config(config::Lines(&errors).to_string()))?.profiles
        }
    };
    let with_fixes = |profile| asked.fixes.iter().fold(profile, |profile: Profile, fix| profile.with_fix(*fix));
    let profiles = Profiles::new(profiles.into_iter().map(with_fixes));
    let service = Service::new(profiles, Arc::new(ManualClock::at(DEFAULT_NOW)));
    let pending = feed(&service, scenario)?;
    if given("policy").is_some() {
        return Ok(("evictions", evictions(&service, scenario, asked.mode, asked.now)?));
    }
    Ok(("decisions", decisions(&service, &pending)?))
}

fn decisions(service: &Service, pending: &[Arc<Pod>]) -> Result<Vec<Value>, AnswerError> {
    let view = service.cluster.fork();
    let profiles = service.profiles();
    let mut answers = Vec::with_capacity(pending.len());
    for pod in pending {
        let profile = profiles.get(&pod.spec.scheduler_name).map_err(|e| AnswerError::Engine(e.to_string()))?;
        answers.push(decide(&view, pod, &profile)?);
    }
    Ok(answers)
}

/// Feeds the objects and the pending pods; the latter are given back in order.
fn feed(service: &Service, scenario: &Value) -> Result<Vec<Arc<Pod>>, AnswerError> {
    let mut warnings = Vec::new();
    let mut pending = Vec::new();
    let mut list = |field: &str, waiting: bool| -> Result<(), AnswerError> {
        let items = match scenario.get(field) {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(AnswerError::Malformed(format!("{field}: expected a list"))),
        };
        for (i, value) in items.iter().enumerate() {
            for item in manifest::objects(value, manifest::Options { allow_missing_uid: true }) {
                let parsed = match item {
                    Item::Read(parsed) => parsed,
                    Item::Skipped { .. } => continue,
                    Item::Invalid(error) => return Err(AnswerError::Manifest(format!("{field}[{i}]: {error}"))),
                };
                let mut object = parsed.value;
                if let Object::Pod(pod) = &mut object {
                    manifest::apply_classes(Arc::make_mut(pod), &service.cluster, &mut warnings);
                    if waiting {
                        pending.push(pod.clone());
                    }
                } else if waiting {
                    let message = format!("{field}[{i}]: expected a Pod, found a {}", object.kind());
                    return Err(AnswerError::Malformed(message));
                }
                let mut writer = service.cluster.writer();
                writer.begin();
                writer.upsert(Prepared::new(object), Origin::file());
            }
        }
        Ok(())
    };
    list("objects", false)?;
    list("pending", true)?;
    if service.cluster.objects().count(Kind::Node) == 0 && pending.is_empty() {
        return Err(AnswerError::Malformed("neither objects nor pending pods".to_owned()));
    }
    Ok(pending)
}

fn decide(view: &View, pod: &Pod, profile: &Profile) -> Result<Value, AnswerError> {
    let options = Options { detail: Detail::Full, ..Options::default() };
    let decision = engine::decide(view, &IncomingPod::new(pod), profile, &options, &AtomicBool::new(false))
        .map_err(|e| AnswerError::Engine(e.to_string()))?;
    if let Outcome::Unsupported(features) = &decision.outcome {
        let names: Vec<String> = features.iter().map(ToString::to_string).collect();
        return Err(AnswerError::Unsupported(names.join("; ")));
    }
    let mut answer = json!({
        "pod": &*pod.meta.name,
        "feasible": names(view, &decision.feasible),
        "best": names(view, &decision.best()),
        "filtered": filtered(view, &decision),
        "scores": scores(view, &decision),
    });
    if let Some(node) = decision.node() {
        answer["chosen"] = json!(&**node);
    }
    if let Some(text) = message::fit_message(&decision) {
        answer["fitMessage"] = json!(text);
        answer["message"] = json!(text);
    }
    if decision.outcome == Outcome::Unschedulable {
        let preemption = engine::preempt(view, &IncomingPod::new(pod), profile, &decision, &AtomicBool::new(false))
            .map_err(|e| AnswerError::Engine(e.to_string()))?;
        add_preemption(&mut answer, &preemption);
        if let (Some(tail), Some(text)) = (preemption.tail(profile, &decision), answer["fitMessage"].as_str()) {
            answer["message"] = json!(format!("{text} {tail}"));
        }
    }
    Ok(answer)
}

fn add_preemption(answer: &mut Value, preemption: &Preemption) {
    answer["preemptEligible"] = json!(!matches!(preemption, Preemption::NotEligible(_)));
    match preemption {
        Preemption::NotTried | Preemption::NoCandidate { .. } => {}
        Preemption::NotEligible(why) => answer["preemptMessage"] = json!(why.to_string()),
        Preemption::Proposal(proposal) => {
            let candidates = proposal.candidates.iter().map(|candidate| {
                let victims: Vec<String> = candidate.victims.iter().map(|victim| victim.pod.pod.meta.key()).collect();
                json!({ "node": &*candidate.node, "victims": victims, "pdbViolations": candidate.budgets_broken() })
            });
            answer["preemptCandidates"] = candidates.collect();
            answer["preemptChosen"] = json!(proposal.chosen().map(|candidate| &*candidate.node));
        }
    }
}

fn name(view: &View, ordinal: Ordinal) -> String {
    view.node(ordinal).map(|row| row.name().to_string()).unwrap_or_default()
}

fn names(view: &View, ordinals: &[Ordinal]) -> Vec<String> {
    let mut names: Vec<String> = ordinals.iter().map(|o| name(view, *o)).collect();
    names.sort();
    names
}

/// Every node that isn't feasible, with the first refusal; a refusal of the whole pod is every node's.
fn filtered(view: &View, decision: &Decision) -> Value {
    let entry = |rejection: &Rejection| {
        let reasons: Vec<String> = rejection.reasons.iter().map(ToString::to_string).collect();
        json!({ "plugin": rejection.plugin, "code": rejection.code.as_str(), "reasons": reasons })
    };
    let mut nodes = Map::new();
    let gated = match &decision.outcome {
        Outcome::Gated(rejection) => Some(rejection),
        _ => None,
    };
    if let Some(whole) = gated.or(decision.pre_filter.as_ref()).or(decision.absent.as_ref()) {
        for row in view.nodes().filter(|row| !decision.feasible.contains(&row.ordinal())) {
            nodes.insert(row.name().to_string(), entry(whole));
        }
    }
    for (ordinal, rejection) in &decision.rejected {
        nodes.insert(name(view, *ordinal), entry(rejection));
    }
    Value::Object(nodes)
}

fn scores(view: &View, decision: &Decision) -> Value {
    let Some(scores) = &decision.scores else { return json!({}) };
    let per_node = decision.feasible.iter().enumerate().map(|(i, ordinal)| {
        let by_plugin = scores.plugins.iter().zip(&scores.by_plugin);
        // A Policy can have several scorers of one name: they show as their sum.
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        for (plugin, column) in by_plugin {
            *sums.entry(plugin).or_default() += column[i];
        }
        let plugins: Map<String, Value> =
            sums.into_iter().map(|(plugin, sum)| (plugin.to_owned(), json!(sum))).collect();
        (name(view, *ordinal), json!({ "total": scores.totals[i], "plugins": plugins }))
    });
    Value::Object(per_node.collect())
}
