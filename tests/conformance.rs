//! Holds the batch interface against what the real kube-scheduler answered, in process (tests/conformance/README.md).
//!
//! The same comparison as `tests/conformance/compare.py`, field by field. `BERTH_CONFORMANCE_DIR` names another folder of
//! vectors. Families that Berth can't answer yet are listed by name, and each of their scenarios must say so in an error:
//! one that is answered although it is listed fails the test, so that the list can't go stale.

#![allow(clippy::print_stdout, reason = "the list of families is what one runs it for")]
#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Families whose scenarios need something that isn't there yet, and what.
const NOT_YET: &[(&str, &str)] = &[];

/// Kinds of vectors of which nothing is answered yet.
const NOT_YET_KINDS: &[&str] = &["eviction"];

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
    let answer = berth::service::answer::answer(scenario, &[]);
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

#[test]
fn kinds_that_are_not_supported_yet_say_so() {
    for (family, path) in NOT_YET_KINDS.iter().flat_map(|kind| families(kind)) {
        println!("{family}: not yet supported");
        for scenario in scenarios(&path).iter().take(5) {
            let answer = berth::service::answer::answer(scenario, &[]);
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(error.ends_with("is not supported yet"), "{}: {answer}", scenario["name"]);
        }
    }
}
