//! Holds the batch interface against what the real kube-scheduler and descheduler answered, in process
//! (tests/conformance/README.md).
//!
//! The same comparison as `tests/conformance/compare.py`, field by field. `BERTH_CONFORMANCE_DIR` names another folder of
//! vectors. Families that Berth can't answer yet are listed by name, and each of their scenarios must say so in an error:
//! one that is answered although it is listed fails the test, so that the list can't go stale.

#![allow(clippy::print_stdout, reason = "the list of families is what one runs it for")]
#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use berth::service::answer::Asked;
use serde_json::Value;

/// Families whose scenarios need something that isn't there yet, and what.
const NOT_YET: &[(&str, &str)] = &[];

fn vectors() -> PathBuf {
    match std::env::var_os("BERTH_CONFORMANCE_DIR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance"),
    }
}

fn families(kind: &str) -> Vec<(String, PathBuf)> {
    let Ok(folder) = std::fs::read_dir(vectors().join(kind)) else { return Vec::new() };
    let mut families: Vec<(String, PathBuf)> = folder
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().strip_suffix(".jsonl.gz")?.to_owned();
            Some((format!("{kind}/{name}"), path))
        })
        .collect();
    families.sort();
    families
}

fn scenarios(path: &Path) -> Vec<Value> {
    let reader = BufReader::new(flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()));
    reader.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let mut list: Vec<String> =
        value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap_or_default().to_owned()).collect();
    list.sort();
    list
}

type Filtered = BTreeMap<String, (Value, Value, Vec<String>)>;

fn filtered(decision: &Value) -> Filtered {
    let nodes = decision["filtered"].as_object().into_iter().flatten();
    nodes.map(|(n, v)| (n.clone(), (v["plugin"].clone(), v["code"].clone(), strings(&v["reasons"])))).collect()
}

fn scores(decision: &Value) -> BTreeMap<String, (Value, BTreeMap<String, i64>)> {
    let nodes = decision["scores"].as_object().into_iter().flatten();
    nodes
        .map(|(n, v)| {
            let plugins = v["plugins"].as_object().into_iter().flatten();
            let plugins = plugins.filter_map(|(p, x)| Some((p.clone(), x.as_i64()?))).filter(|(_, x)| *x != 0);
            (n.clone(), (v["total"].clone(), plugins.collect()))
        })
        .collect()
}

/// Node, victims with the highest priority first, and how many budgets their eviction breaks.
fn candidates(decision: &Value) -> Vec<(String, Vec<String>, i64)> {
    let list = decision["preemptCandidates"].as_array().into_iter().flatten();
    let mut list: Vec<_> = list
        .map(|c| {
            let victims = c["victims"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
            (c["node"].as_str().unwrap().to_owned(), victims, c["pdbViolations"].as_i64().unwrap_or_default())
        })
        .collect();
    list.sort();
    list
}

/// What differs between an expected decision and an answer.
fn differences(expected: &Value, answer: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = |field: &str, x: String, y: String| {
        if x != y {
            found.push(format!("{} {field}: expected {x} got {y}", expected["pod"]));
        }
    };
    same("pod", expected["pod"].to_string(), answer["pod"].to_string());
    for field in ["feasible", "best"] {
        same(field, format!("{:?}", strings(&expected[field])), format!("{:?}", strings(&answer[field])));
    }
    same("filtered", format!("{:?}", filtered(expected)), format!("{:?}", filtered(answer)));
    same("scores", format!("{:?}", scores(expected)), format!("{:?}", scores(answer)));
    let feasible = !strings(&expected["feasible"]).is_empty();
    let allowed: BTreeSet<String> =
        strings(expected.get("chosenFrom").unwrap_or(&expected["best"])).into_iter().collect();
    match answer.get("chosen").and_then(Value::as_str) {
        Some(node) if feasible && allowed.contains(node) => {}
        None if !feasible => {
            for field in ["fitMessage", "message", "preemptEligible", "preemptMessage"] {
                same(field, expected[field].to_string(), answer[field].to_string());
            }
        }
        other => same("chosen", format!("one of {allowed:?}"), format!("{other:?}")),
    }
    same("preemptCandidates", format!("{:?}", candidates(expected)), format!("{:?}", candidates(answer)));
    let preferred = strings(&expected["preemptChosen"]);
    let chosen = answer["preemptChosen"].as_str().map(str::to_owned);
    if chosen.as_ref().map_or(!preferred.is_empty(), |node| !preferred.contains(node)) {
        same("preemptChosen", format!("one of {preferred:?}"), format!("{chosen:?}"));
    }
    found
}

fn judge(scenario: &Value) -> Vec<String> {
    let answer = berth::service::answer::answer(scenario, &Asked::default());
    if let Some(error) = answer.get("error") {
        return vec![format!("error: {error}")];
    }
    let expected = scenario["expect"]["decisions"].as_array().unwrap();
    let decisions = answer["decisions"].as_array().unwrap();
    if expected.len() != decisions.len() {
        return vec![format!("{} decisions, expected {}", decisions.len(), expected.len())];
    }
    expected.iter().zip(decisions).flat_map(|(e, a)| differences(e, a)).collect()
}

#[test]
fn scheduling_vectors_are_answered_as_by_kube_scheduler() {
    let families = families("scheduling");
    assert!(!families.is_empty(), "no vectors in {}", vectors().display());
    let mut wrong = Vec::new();
    for (family, path) in families {
        let scenarios = scenarios(&path);
        if let Some((_, missing)) = NOT_YET.iter().find(|(name, _)| *name == family) {
            println!("{family}: not yet supported ({missing})");
            let answered = scenarios.iter().filter(|s| judge(s).is_empty()).count();
            if answered == scenarios.len() {
                wrong.push(format!("{family} is listed as not supported and passes: take it off the list"));
            }
            continue;
        }
        let mut passed = 0;
        for scenario in &scenarios {
            let differences = judge(scenario);
            if differences.is_empty() {
                passed += 1;
            } else if wrong.len() < 20 {
                wrong.push(format!("{}: {}", scenario["name"], differences.join("\n    ")));
            }
        }
        println!("{family}: {passed}/{}", scenarios.len());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pods that an eviction takes away, each with its node and strategy.
fn evictions(list: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = list.as_array().unwrap();
    list.iter().map(|e| (text(&e["pod"]), text(&e["node"]), text(&e["strategy"]))).collect()
}

/// How many pods of each owner leave each node: (node, namespace, owner as `kind/name`) and the count.
type ByOwner = BTreeMap<(String, String, String), i64>;

fn by_owner(scenario: &Value, evicted: &[(String, String, String)]) -> ByOwner {
    let mut counts = ByOwner::new();
    for (pod, node, _) in evicted {
        let (namespace, name) = pod.split_once('/').unwrap();
        let object =
            scenario["objects"].as_array().unwrap().iter().find(|o| {
                o["kind"] == "Pod" && o["metadata"]["name"] == *name && o["metadata"]["namespace"] == *namespace
            });
        let owner = &object.unwrap()["metadata"]["ownerReferences"][0];
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let owner = format!("{}/{}", text("kind"), text("name"));
        *counts.entry((node.clone(), namespace.to_owned(), owner)).or_default() += 1;
    }
    counts
}

fn judge_evictions(scenario: &Value) -> Option<String> {
    let answer = berth::service::answer::answer(scenario, &Asked::default());
    if let Some(error) = answer.get("error") {
        return Some(format!("error: {error}"));
    }
    let expected = &scenario["expect"];
    let mut got = evictions(&answer["evictions"]);
    let pods: BTreeSet<&String> = got.iter().map(|(pod, ..)| pod).collect();
    if pods.len() != got.len() {
        return Some("a pod is evicted twice".to_owned());
    }
    if let Some(list) = expected["byOwner"].as_array() {
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
        let wanted: ByOwner = list
            .iter()
            .map(|e| ((text(e, "node"), text(e, "namespace"), text(e, "owner")), e["count"].as_i64().unwrap()))
            .collect();
        let counts = by_owner(scenario, &got);
        let strategies = got.iter().all(|(.., strategy)| strategy == "RemoveDuplicates");
        return (counts != wanted || !strategies).then(|| format!("expected {wanted:?} got {counts:?}"));
    }
    let mut wanted = evictions(&expected["evictions"]);
    if expected["ordered"] != true {
        wanted.sort();
        got.sort();
    }
    (wanted != got).then(|| format!("expected {wanted:?} got {got:?}"))
}

#[test]
fn eviction_vectors_are_answered_as_by_the_descheduler() {
    let families = families("eviction");
    assert!(!families.is_empty(), "no vectors in {}", vectors().display());
    let mut wrong = Vec::new();
    for (family, path) in families {
        let scenarios = scenarios(&path);
        let differences: Vec<String> = scenarios
            .iter()
            .filter_map(|scenario| Some(format!("{}: {}", scenario["name"], judge_evictions(scenario)?)))
            .collect();
        println!("{family}: {}/{}", scenarios.len() - differences.len(), scenarios.len());
        wrong.extend(differences);
    }
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
