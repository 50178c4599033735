//! Cases from public bug reports (tests/cases/README.md), in process.
//!
//! Where the reference agrees with `expect`, Berth answers so. Where upstream is wrong, Berth answers as upstream by
//! default and as `expect` with the switch of the case's name; what upstream answers is transcribed in [`as_upstream`].
//! Cases that need what isn't there yet are listed with the reason; one that is listed and passes fails the test.
//!
//! Evict-kind cases are answered in COMPATIBLE mode as the descheduler answers them, right or wrong ([`evicted_upstream`]),
//! and in PLANNED mode rightly.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::collections::BTreeMap;
use std::path::Path;

use berth::engine::fixes::Fix;
use berth::evict::Mode;
use berth::service::answer::{Asked, answer};
use serde_json::{Value, json};

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

fn cases(kind: &str) -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases = files.filter(|path| path.extension().is_some_and(|e| e == "json")).map(|path| {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        (case["name"].as_str().unwrap().to_owned(), case)
    });
    cases.filter(|(_, case)| case["kind"] == kind).collect()
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
    let fields = ["name", "config", "policy", "objects", "pending"];
    fields
        .iter()
        .filter_map(|f| Some(((*f).to_owned(), case.get(*f)?.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn cases_are_answered_rightly_or_as_upstream_does() {
    let mut wrong = Vec::new();
    for (name, case) in cases("schedule") {
        if NOT_YET.iter().any(|(listed, _)| *listed == name) {
            continue;
        }
        let agrees = case["agrees"].as_bool().unwrap();
        let expect = if agrees { case["expect"].clone() } else { as_upstream(&name).unwrap_or_default() };
        if expect.is_null() {
            wrong.push(format!("{name}: upstream is wrong, and its answer is not transcribed"));
            continue;
        }
        wrong.extend(
            broken(&answer(&scenario(&case), &Asked::default()), &expect).iter().map(|b| format!("{name}: {b}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn where_upstream_is_wrong_the_switch_of_the_cases_name_is_right() {
    let mut tested = 0;
    for (name, case) in cases("schedule") {
        if case["agrees"] == true || NOT_YET.iter().any(|(listed, _)| *listed == name) {
            continue;
        }
        let fix = Fix::parse(&name).unwrap_or_else(|| panic!("no switch is called {name}"));
        let broken = broken(&answer(&scenario(&case), &Asked { fixes: &[fix], ..Asked::default() }), &case["expect"]);
        assert!(broken.is_empty(), "{name}: {}", broken.join("\n"));
        tested += 1;
    }
    assert_eq!(tested, 3);
}

#[test]
fn cases_that_need_what_is_not_there_say_so_or_fail() {
    let cases = cases("schedule");
    for (name, missing) in NOT_YET {
        let case = cases.get(*name).unwrap_or_else(|| panic!("{name} is listed and isn't there"));
        let broken = broken(&answer(&scenario(case), &Asked::default()), &case["expect"]);
        assert!(!broken.is_empty(), "{name} is listed ({missing}) and passes: take it off the list");
    }
}

/// What the descheduler evicts: the `reference` of each evict-kind case. None: several equal pods could have gone, and
/// `expect`, which it fulfils, allows any of them.
fn evicted_upstream(case: &str) -> Option<&'static [&'static str]> {
    Some(match case {
        "all-listed-resources-must-be-low" | "duplicates-count-usable-nodes-only" | "selector-leaves-a-single-node" => {
            &[]
        }
        "anti-affinity-violation-after-relabel" => &["default/lead"],
        "better-preferred-node-is-full" => &["default/w1"],
        "claims-and-min-replicas-protection" => &["default/trio-1", "default/trio-2", "default/trio-3"],
        "duplicates-need-same-owner-and-images" => &["default/s2"],
        "evict-annotation-set-to-false" => &["default/no", "default/plain", "default/yes"],
        "excluded-namespace-still-counts-as-load" => &["default/w1"],
        "life-time-states" => &["default/crash", "default/pend"],
        "limits-are-shared-by-all-rules" | "pods-without-the-rule-are-left-alone" => return None,
        "packing-onto-an-emptier-node" => &["default/a"],
        "plain-node-selector-lost" => &["default/w2"],
        "requests-not-usage" => &["default/w0"],
        // Which of the equal ones of n4 varies from run to run; the one that goes is the first by name.
        "two-spread-rules-in-conflict" => &["default/w3"],
        "utilization-and-anti-affinity-of-the-moved-pod" => &["default/calm"],
        other => panic!("{other}: what the descheduler evicts is not transcribed"),
    })
}

/// Pods and nodes, sorted.
fn evictions(case: &Value, mode: Mode) -> Vec<(String, String)> {
    let answer = answer(&scenario(case), &Asked { mode, ..Asked::default() });
    let list = answer["evictions"].as_array().unwrap_or_else(|| panic!("{}: {answer}", case["name"]));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut evicted: Vec<(String, String)> = list.iter().map(|e| (text(&e["pod"]), text(&e["node"]))).collect();
    evicted.sort();
    evicted
}

/// `no_return`: with the suggested pods gone, each of them fits somewhere, and the node that it left is not among the best.
fn who_returns(case: &Value, evicted: &[(String, String)]) -> Vec<String> {
    let key = |object: &Value| {
        let meta = &object["metadata"];
        format!("{}/{}", meta["namespace"].as_str().unwrap_or("default"), meta["name"].as_str().unwrap())
    };
    let from = |object: &Value| {
        let pod = (object["kind"] == "Pod").then(|| evicted.iter().find(|(pod, _)| *pod == key(object)));
        pod.flatten().map(|(_, node)| node)
    };
    let objects = case["objects"].as_array().unwrap();
    let (gone, kept): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(|object| from(object).is_some());
    let anew = |pod: &&Value| {
        let mut pod = (*pod).clone();
        pod["spec"].as_object_mut().unwrap().remove("nodeName");
        pod.as_object_mut().unwrap().remove("status");
        pod
    };
    let pending: Vec<Value> = gone.iter().map(anew).collect();
    let scheduled = answer(&json!({"objects": kept, "pending": pending}), &Asked::default());
    let decisions = scheduled["decisions"].as_array().unwrap();
    let stays_away = |(pod, decision): &(&&Value, &Value)| {
        let lands = !decision["feasible"].as_array().unwrap().is_empty();
        lands && !strings(&decision["best"]).contains(&from(pod).unwrap().as_str())
    };
    gone.iter().zip(decisions).filter(|pair| !stays_away(pair)).map(|(pod, _)| key(pod)).collect()
}

/// The assertions on evictions that an answer breaks, but for `no_return`.
fn broken_evictions(evicted: &[(String, String)], expect: &Value) -> Vec<String> {
    let pods: Vec<&str> = evicted.iter().map(|(pod, _)| pod.as_str()).collect();
    let mut per_node = BTreeMap::<&str, u64>::new();
    for (_, node) in evicted {
        *per_node.entry(node).or_default() += 1;
    }
    let mut broken = Vec::new();
    for assertion in expect.as_array().unwrap() {
        for (field, wanted) in assertion.as_object().unwrap() {
            let count = pods.len() as u64;
            let holds = match field.as_str() {
                "evicted" => strings(wanted) == pods,
                "evicted_includes" => strings(wanted).iter().all(|pod| pods.contains(pod)),
                "not_evicted" => strings(wanted).iter().all(|pod| !pods.contains(pod)),
                "evicted_count" => (wanted[0].as_u64().unwrap()..=wanted[1].as_u64().unwrap()).contains(&count),
                "max_per_node" => per_node.values().all(|n| *n <= wanted.as_u64().unwrap()),
                "no_return" => true,
                _ => false,
            };
            if !holds {
                broken.push(format!("{field} {wanted} does not hold: {evicted:?}"));
            }
        }
    }
    broken
}

#[test]
fn evict_cases_are_answered_as_the_descheduler_does() {
    let cases = cases("evict");
    assert_eq!(cases.len(), 17);
    for (name, case) in cases {
        let evicted = evictions(&case, Mode::Compatible);
        if let Some(upstream) = evicted_upstream(&name) {
            assert_eq!(evicted.iter().map(|(pod, _)| pod.as_str()).collect::<Vec<_>>(), upstream, "{name}");
        }
        let broken = broken_evictions(&evicted, &case["expect"]);
        assert_eq!(broken.is_empty(), case["agrees"] == true, "{name}: {}", broken.join("\n"));
    }
}

#[test]
fn evict_cases_are_planned_rightly() {
    for (name, case) in cases("evict") {
        let evicted = evictions(&case, Mode::Planned);
        let broken = broken_evictions(&evicted, &case["expect"]);
        assert!(broken.is_empty(), "{name}: {}", broken.join("\n"));
        let asks = case["expect"].as_array().unwrap().iter().any(|e| e["no_return"] == true);
        let back = if asks { who_returns(&case, &evicted) } else { Vec::new() };
        assert!(back.is_empty(), "{name}: {back:?} may return");
    }
}
