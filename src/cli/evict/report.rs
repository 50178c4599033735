//! A plan as people and programs get it. Both are made from the answer of the service, wherever it was asked, so that a
//! plan of dumps and one of a server look alike.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::api::pb;
use crate::cli::schedule::trimmed;

/// What is asked of people and said to them: this command carries nothing out.
const NOTHING_EVICTED: &str = "Nothing was evicted.";

/// Who made a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// This process, whose view is gone when it ends.
    Files,
    Server,
}

/// The page for people.
pub(super) fn page(plan: &pb::SuggestEvictionsResponse) -> String {
    let mut page = String::new();
    // Writing to a String can't fail.
    let _ = write_page(&mut page, plan);
    page
}

fn write_page(page: &mut String, plan: &pb::SuggestEvictionsResponse) -> std::fmt::Result {
    if !plan.suggestions.is_empty() {
        writeln!(page, "{}\n", suggestions(plan))?;
    }
    write!(page, "{}", headline(plan))?;
    if let Some(nodes) = plan.skipped_nodes {
        write!(page, "\nNo strategy ran: ready nodes that the policy selects: {nodes}. It takes two.")?;
    }
    for failure in &plan.failures {
        write!(page, "\n{} (profile {:?}) could not run: {}", failure.strategy, failure.profile, failure.message)?;
    }
    if !plan.measures.is_empty() {
        write!(page, "\n\nWhat the strategies measure, and would with the plan carried out\n{}", measures(plan))?;
    }
    if let Some(look) = plan.look_ahead.filter(|look| !look.complete) {
        let rounds = look.rounds;
        write!(
            page,
            "\nFurther plans after this one were looked at for {rounds} rounds, and there may be more to do."
        )?;
    }
    if !plan.left_alone.is_empty() {
        write!(page, "\n\nLeft alone\n{}", left_alone(plan))?;
    }
    if plan.left_alone_omitted > 0 {
        write!(page, "\n and {} further reasons", plan.left_alone_omitted)?;
    }
    if let Some(story) = &plan.pod_story {
        write!(page, "\n\n{}", super::story::page(story))?;
    }
    Ok(())
}

fn headline(plan: &pb::SuggestEvictionsResponse) -> String {
    let omitted = usize::try_from(plan.suggestions_omitted).unwrap_or(usize::MAX);
    let suggestions = match plan.suggestions.len().saturating_add(omitted) {
        0 => "No pod should move".to_owned(),
        1 => "1 pod should move".to_owned(),
        many => format!("{many} pods should move, in this order"),
    };
    let not_shown = if omitted > 0 { format!(" ({omitted} of them not shown)") } else { String::new() };
    let (mode, now) = (mode(plan), plan.now.as_ref().map(time).unwrap_or_default());
    format!("{suggestions}{not_shown}: mode {mode}, as of {now}. {NOTHING_EVICTED}")
}

fn suggestions(plan: &pb::SuggestEvictionsResponse) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["POD", "FROM", "TO", "STRATEGY", "GAIN", "REASON"]);
    for suggestion in &plan.suggestions {
        let gain = suggestion.gain.as_ref().map_or_else(|| "-".to_owned(), |g| format!("{} -> {}", g.before, g.after));
        table.add_row([
            pod(suggestion.pod.as_ref()),
            suggestion.node.clone(),
            landing(suggestion.landing.as_ref()),
            suggestion.strategy.clone(),
            gain,
            reason(suggestion),
        ]);
    }
    trimmed(&table)
}

/// COMPATIBLE doesn't ask where a pod lands.
pub(super) fn landing(landing: Option<&pb::EvictionLanding>) -> String {
    match landing {
        None => "-".to_owned(),
        Some(landing) if landing.landing_is_source => format!("{} (again)", landing.node),
        Some(landing) => landing.node.clone(),
    }
}

/// The reason and what a client has to mind.
fn reason(suggestion: &pb::EvictionSuggestion) -> String {
    let mut text = suggestion.reason.clone();
    if let Some(at) = &suggestion.not_before {
        text.push_str(&format!("; not before {}", time(at)));
    }
    if !suggestion.budgets.is_empty() {
        let budgets: Vec<String> = suggestion.budgets.iter().map(|budget| pod(Some(budget))).collect();
        text.push_str(&format!("; draws on PodDisruptionBudget {}", budgets.join(", ")));
    }
    text
}

fn measures(plan: &pb::SuggestEvictionsResponse) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["STRATEGY", "PROFILE", "BEFORE", "AFTER", "MEASURE"]);
    for measure in &plan.measures {
        let gain = measure.gain.clone().unwrap_or_default();
        let (before, after) = (gain.before.to_string(), gain.after.to_string());
        table.add_row([measure.strategy.clone(), measure.profile.clone(), before, after, gain.metric]);
    }
    for column in [2, 3] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trimmed(&table)
}

fn left_alone(plan: &pb::SuggestEvictionsResponse) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["PODS", "STRATEGY", "WHY", "EXAMPLE"]);
    for row in &plan.left_alone {
        let example = row.examples.first().map_or_else(String::new, |example| {
            format!("{} on {}: {}", pod(example.pod.as_ref()), example.node, example.message)
        });
        table.add_row([row.pods.to_string(), row.strategy.clone(), why(row), example]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    trimmed(&table)
}

/// `NO_GAIN`, `PROTECTED: DaemonSetPods 3, BarePods 1`.
fn why(row: &pb::LeftAloneCount) -> String {
    if row.protections.is_empty() {
        return row.kind.clone();
    }
    let protections = row.protections.iter().map(|p| format!("{} {}", p.protection, p.pods));
    format!("{}: {}", row.kind, protections.collect::<Vec<_>>().join(", "))
}

/// `default/web-1`.
pub(in crate::cli) fn pod(pod: Option<&pb::ObjectRef>) -> String {
    pod.map(|pod| format!("{}/{}", pod.namespace, pod.name)).unwrap_or_default()
}

fn mode(plan: &pb::SuggestEvictionsResponse) -> &'static str {
    plan.mode().as_str_name().trim_start_matches("EVICTION_MODE_")
}

fn time(at: &prost_types::Timestamp) -> String {
    jiff::Timestamp::new(at.seconds, at.nanos).map(|time| time.to_string()).unwrap_or_default()
}

/// For programs: the fields of SuggestEvictionsResponse under their JSON names, those at their default left out, numbers as
/// numbers. `view` only of a server: that of files says nothing to anyone.
pub(super) fn value(plan: &pb::SuggestEvictionsResponse, asked: Asked) -> Value {
    let view = plan.view.as_ref().filter(|_| asked == Asked::Server);
    let mut value = pruned(json!({
        "view": view.map(|view| {
            json!({ "revision": view.revision, "incarnation": view.incarnation, "nodes": view.nodes })
        }),
        "mode": mode(plan),
        "now": plan.now.as_ref().map(time),
        "suggestionsOmitted": plan.suggestions_omitted,
        "leftAloneOmitted": plan.left_alone_omitted,
        "failures": plan.failures.iter().map(|failure| {
            json!({ "strategy": failure.strategy, "profile": failure.profile, "message": failure.message })
        }).collect::<Vec<_>>(),
        "warnings": plan.warnings.iter().map(|warning| {
            json!({ "field": warning.field, "message": warning.message })
        }).collect::<Vec<_>>(),
        "lookAhead": plan.look_ahead.map(|look| json!({ "rounds": look.rounds, "complete": look.complete })),
        "decisions": plan.decisions,
        "policyFile": plan.policy_file,
        "podStory": plan.pod_story.as_ref().map(super::story::value),
        "truncated": plan.truncated,
    }));
    // Always there, so that a program need not ask whether they are.
    value["suggestions"] = plan.suggestions.iter().map(suggestion_value).collect();
    value["measures"] = plan.measures.iter().map(measure_value).collect();
    value["leftAlone"] = plan.left_alone.iter().map(left_alone_value).collect();
    if let Some(nodes) = plan.skipped_nodes {
        // 0 says something here.
        value["skippedNodes"] = json!(nodes);
    }
    value
}

pub(super) fn object_value(object: Option<&pb::ObjectRef>) -> Value {
    let pb::ObjectRef { kind, namespace, name, uid } = object.cloned().unwrap_or_default();
    pruned(json!({ "kind": kind, "namespace": namespace, "name": name, "uid": uid }))
}

pub(super) fn landing_value(landing: &pb::EvictionLanding) -> Value {
    let mut value = json!({ "node": landing.node, "score": landing.score });
    if landing.landing_is_source {
        value["landingIsSource"] = json!(true);
    }
    value
}

fn gain_value(gain: &pb::EvictionGain) -> Value {
    json!({ "metric": gain.metric, "before": gain.before, "after": gain.after })
}

fn suggestion_value(suggestion: &pb::EvictionSuggestion) -> Value {
    let mut value = pruned(json!({
        "pod": object_value(suggestion.pod.as_ref()),
        "node": suggestion.node,
        "strategy": suggestion.strategy,
        "profile": suggestion.profile,
        "reason": suggestion.reason,
        "landing": suggestion.landing.as_ref().map(landing_value),
        "gain": suggestion.gain.as_ref().map(gain_value),
        "budgets": suggestion.budgets.iter().map(|budget| object_value(Some(budget))).collect::<Vec<_>>(),
        "notBefore": suggestion.not_before.as_ref().map(time),
    }));
    if let Some(seconds) = suggestion.grace_period_seconds {
        // 0 is at once, none is the pod's own.
        value["gracePeriodSeconds"] = json!(seconds);
    }
    value
}

pub(in crate::cli) fn measure_value(measure: &pb::StrategyMeasure) -> Value {
    pruned(json!({
        "strategy": measure.strategy, "profile": measure.profile, "gain": measure.gain.as_ref().map(gain_value),
    }))
}

fn left_alone_value(row: &pb::LeftAloneCount) -> Value {
    let examples = row.examples.iter().map(|example| {
        json!({ "pod": object_value(example.pod.as_ref()), "node": example.node, "message": example.message })
    });
    let protections = row.protections.iter().map(|p| json!({ "protection": p.protection, "pods": p.pods }));
    pruned(json!({
        "strategy": row.strategy, "profile": row.profile, "kind": row.kind, "detail": row.detail, "pods": row.pods,
        "protections": protections.collect::<Vec<_>>(), "examples": examples.collect::<Vec<_>>(),
    }))
}

/// Without fields at their default.
pub(super) fn pruned(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        let is_default =
            |v: &Value| v.is_null() || *v == json!("") || *v == json!(0) || *v == json!([]) || *v == json!(false);
        fields.retain(|_, v| !is_default(v));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str) -> Option<pb::ObjectRef> {
        let (kind, namespace) = (kind.to_owned(), "shop".to_owned());
        Some(pb::ObjectRef { kind, namespace, name: name.to_owned(), uid: String::new() })
    }

    fn gain(before: i64, after: i64) -> Option<pb::EvictionGain> {
        Some(pb::EvictionGain { metric: "pods over their node's share".to_owned(), before, after })
    }

    fn at(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    }

    /// As PLANNED answers: with landings, gains and a look ahead, and with all that is rare.
    fn planned() -> pb::SuggestEvictionsResponse {
        let suggestion = |name: &str, to: &str| pb::EvictionSuggestion {
            pod: object("Pod", name),
            node: "n1".to_owned(),
            strategy: "RemoveDuplicates".to_owned(),
            profile: "p".to_owned(),
            reason: "too many".to_owned(),
            landing: Some(pb::EvictionLanding { node: to.to_owned(), score: 7, landing_is_source: to == "n1" }),
            ..Default::default()
        };
        let moved = pb::EvictionSuggestion {
            gain: gain(2, 0),
            budgets: object("PodDisruptionBudget", "web").into_iter().collect(),
            grace_period_seconds: Some(0),
            not_before: at(60),
            ..suggestion("web-1", "n2")
        };
        let row = pb::LeftAloneCount {
            strategy: "RemoveDuplicates".to_owned(),
            kind: "PROTECTED".to_owned(),
            pods: 3,
            protections: vec![pb::ProtectionCount { protection: "BarePods".to_owned(), pods: 3 }],
            ..Default::default()
        };
        pb::SuggestEvictionsResponse {
            mode: pb::EvictionMode::Planned.into(),
            now: at(0),
            suggestions: vec![moved, suggestion("web-2", "n1")],
            suggestions_omitted: 5,
            left_alone: vec![row],
            measures: vec![pb::StrategyMeasure {
                strategy: "RemoveDuplicates".to_owned(),
                profile: "p".to_owned(),
                gain: gain(2, 0),
            }],
            failures: vec![pb::StrategyFailure {
                strategy: "LowNodeUtilization".to_owned(),
                profile: "p".to_owned(),
                message: "no NodeMetrics are known".to_owned(),
            }],
            look_ahead: Some(pb::LookAhead { rounds: 4, complete: false }),
            decisions: 9,
            truncated: true,
            ..Default::default()
        }
    }

    const PAGE: &str = "\
\x20POD         FROM  TO          STRATEGY          GAIN    REASON
 shop/web-1  n1    n2          RemoveDuplicates  2 -> 0  too many; not before 1970-01-01T00:01:00Z; draws on \
PodDisruptionBudget shop/web
 shop/web-2  n1    n1 (again)  RemoveDuplicates  -       too many

7 pods should move, in this order (5 of them not shown): mode PLANNED, as of 1970-01-01T00:00:00Z. Nothing was evicted.
LowNodeUtilization (profile \"p\") could not run: no NodeMetrics are known

What the strategies measure, and would with the plan carried out
 STRATEGY          PROFILE  BEFORE  AFTER  MEASURE
 RemoveDuplicates  p             2      0  pods over their node's share
Further plans after this one were looked at for 4 rounds, and there may be more to do.

Left alone
 PODS  STRATEGY          WHY                    EXAMPLE
    3  RemoveDuplicates  PROTECTED: BarePods 3";

    #[test]
    fn a_proven_plan_shows_landings_gains_and_measures() {
        assert_eq!(page(&planned()), PAGE);
    }

    #[test]
    fn a_policy_with_too_few_nodes_is_told_from_a_plan_for_nothing() {
        let skipped = pb::SuggestEvictionsResponse { skipped_nodes: Some(0), ..Default::default() };
        assert!(
            page(&skipped).contains("No strategy ran: ready nodes that the policy selects: 0."),
            "{}",
            page(&skipped)
        );
        assert_eq!(value(&skipped, Asked::Files)["skippedNodes"], 0);
        let nothing = pb::SuggestEvictionsResponse::default();
        assert!(!page(&nothing).contains("No strategy ran"));
        assert_eq!(value(&nothing, Asked::Files).get("skippedNodes"), None);
    }

    #[test]
    fn programs_get_numbers_that_say_something_also_when_they_are_0() {
        let value = value(&planned(), Asked::Files);
        let first = &value["suggestions"][0];
        assert_eq!((&first["gracePeriodSeconds"], &first["gain"]["after"]), (&json!(0), &json!(0)));
        assert_eq!(first["landing"], json!({ "node": "n2", "score": 7 }));
        assert_eq!(value["suggestions"][1]["landing"]["landingIsSource"], true);
        assert_eq!(value["lookAhead"], json!({ "rounds": 4, "complete": false }));
        assert_eq!((&value["suggestionsOmitted"], &value["truncated"]), (&json!(5), &json!(true)));
        assert_eq!(value.get("podStory"), None);
    }
}
