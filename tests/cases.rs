//! Cases from public bug reports (tests/cases/README.md), in process.
//!
//! Where the reference agrees with `expect`, Berth answers so. Where upstream is wrong, Berth answers as upstream by
//! default and as `expect` with the switch of the case's name; what upstream answers is transcribed in [`as_upstream`].
//! Cases that need what isn't there yet are listed with the reason; one that is listed and passes fails the test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::collections::BTreeMap;
use std::path::Path;

use berth::engine::fixes::Fix;
use berth::service::answer::answer;
use serde_json::Value;

/// Schedule-kind cases that need something that isn't there yet, and what.
const NOT_YET: &[(&str, &str)] = &[];

/// What kube-scheduler answers to pod q0 of the cases in which it is wrong: the `reference` of each case in its own words
/// of `expect`.
fn as_upstream(case: &str) -> Option<Value> {
    let expect = match case {
        "namespace-selector-that-excludes-own-namespace" => serde_json::json!([
            { "pod": "q0", "unschedulable": true,
              "message_contains": "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules." }
        ]),
        "zoned-volume-and-node-without-zone" => serde_json::json!([
            { "pod": "q0", "feasible": ["n1", "n3"] }, { "pod": "q0", "best": ["n1", "n3"] }
        ]),
        "pod-level-request-in-score" => serde_json::json!([
            { "pod": "q0", "feasible": ["n1", "n2"] }, { "pod": "q0", "best": ["n2"] }
        ]),
        _ => return None,
    };
    Some(expect)
}

fn cases() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases = files.filter(|path| path.extension().is_some_and(|e| e == "json")).map(|path| {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        (case["name"].as_str().unwrap().to_owned(), case)
    });
    cases.filter(|(_, case)| case["kind"] == "schedule").collect()
}

fn strings(value: &Value) -> Vec<&str> {
    let mut list: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    list.sort_unstable();
    list
}

/// The assertions that an answer breaks.
fn broken(answer: &Value, expect: &Value) -> Vec<String> {
    if let Some(error) = answer.get("error") {
        return vec![format!("error: {error}")];
    }
    let mut broken = Vec::new();
    for assertion in expect.as_array().unwrap() {
        let pod = &assertion["pod"];
        let decisions = answer["decisions"].as_array().unwrap();
        let Some(decision) = decisions.iter().find(|d| d["pod"] == *pod) else {
            broken.push(format!("{pod}: no decision"));
            continue;
        };
        for (field, wanted) in assertion.as_object().unwrap().iter().filter(|(field, _)| *field != "pod") {
            if !holds(decision, field, wanted) {
                broken.push(format!("{pod}: {field} {wanted} does not hold: {decision}"));
            }
        }
    }
    broken
}

fn holds(decision: &Value, field: &str, wanted: &Value) -> bool {
    let message = decision["message"].as_str().unwrap_or_default();
    let filtered = &decision["filtered"];
    match field {
        "feasible" | "best" => strings(&decision[field]) == strings(wanted),
        "node_in" => strings(wanted).contains(&decision["chosen"].as_str().unwrap_or_default()),
        "unschedulable" => decision["feasible"].as_array().is_some_and(Vec::is_empty),
        "reason_contains" => format!("{filtered} {message}").contains(wanted.as_str().unwrap()),
        "preempt" => {
            let candidates = decision["preemptCandidates"].as_array().into_iter().flatten();
            let chosen = candidates.into_iter().find(|c| c["node"] == decision["preemptChosen"]);
            match (chosen, wanted) {
                (None, Value::Null) => true,
                (Some(chosen), wanted) => {
                    chosen["node"] == wanted["node"] && strings(&chosen["victims"]) == strings(&wanted["victims"])
                }
                (None, _) => false,
            }
        }
        "preempt_node_in" => strings(wanted).contains(&decision["preemptChosen"].as_str().unwrap_or_default()),
        "message_contains" => message.contains(wanted.as_str().unwrap()),
        "filtered" => {
            let nodes = wanted.as_object().unwrap();
            nodes.iter().all(|(node, text)| filtered[node].to_string().contains(text.as_str().unwrap()))
        }
        _ => false,
    }
}

fn scenario(case: &Value) -> Value {
    let fields = ["name", "config", "objects", "pending"];
    fields
        .iter()
        .filter_map(|f| Some(((*f).to_owned(), case.get(*f)?.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn cases_are_answered_rightly_or_as_upstream_does() {
    let mut wrong = Vec::new();
    for (name, case) in cases() {
        if NOT_YET.iter().any(|(listed, _)| *listed == name) {
            continue;
        }
        let agrees = case["agrees"].as_bool().unwrap();
        let expect = if agrees { case["expect"].clone() } else { as_upstream(&name).unwrap_or_default() };
        if expect.is_null() {
            wrong.push(format!("{name}: upstream is wrong, and its answer is not transcribed"));
            continue;
        }
        wrong.extend(broken(&answer(&scenario(&case), &[]), &expect).iter().map(|b| format!("{name}: {b}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn where_upstream_is_wrong_the_switch_of_the_cases_name_is_right() {
    let mut tested = 0;
    for (name, case) in cases() {
        if case["agrees"] == true || NOT_YET.iter().any(|(listed, _)| *listed == name) {
            continue;
        }
        let fix = Fix::parse(&name).unwrap_or_else(|| panic!("no switch is called {name}"));
        let broken = broken(&answer(&scenario(&case), &[fix]), &case["expect"]);
        assert!(broken.is_empty(), "{name}: {}", broken.join("\n"));
        tested += 1;
    }
    assert_eq!(tested, 3);
}

#[test]
fn cases_that_need_what_is_not_there_say_so_or_fail() {
    let cases = cases();
    for (name, missing) in NOT_YET {
        let case = cases.get(*name).unwrap_or_else(|| panic!("{name} is listed and isn't there"));
        let broken = broken(&answer(&scenario(case), &[]), &case["expect"]);
        assert!(!broken.is_empty(), "{name} is listed ({missing}) and passes: take it off the list");
    }
}
