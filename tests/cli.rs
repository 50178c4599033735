//! The command line as its users see it: output, exit codes, and what it says to wrong input.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn berth(args: &[&str]) -> Output {
    run(args, "")
}

fn run(args: &[&str], input: &str) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

const PLACED: &str = "\
 POD            OUTCOME  NODE  SCORE  FEASIBLE
 default/small  placed   n1    0      1/2
";

const REFUSED: &str = "\
 POD             OUTCOME        NODE  SCORE  FEASIBLE
 shop/large-pod  unschedulable  -     0      0/2

shop/large-pod: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).

 NODES  PLUGIN            REASON                           DETAIL                          EXAMPLE
     1  NodeResourcesFit  Insufficient cpu                 asks 2000m, at most 1000m free  n1
     1  TaintToleration   node(s) had untolerated taint(s)  dedicated=batch:NoSchedule      n2

no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 \
Preemption is not helpful for scheduling.
";

/// Columns are as wide as their content, so runs of blanks say nothing.
fn squeezed(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_placed_pod_is_a_row_and_exit_0() {
    let output = berth(&["schedule", "-f", "small.yaml", "--cluster", "cluster.yaml"]);
    assert_eq!((code(&output), squeezed(&out(&output))), (Some(0), squeezed(PLACED)), "{}", err(&output));
}

#[test]
fn a_refusal_says_why_with_numbers_and_exits_3() {
    let output = berth(&["schedule", "-f", "large.yaml", "--cluster", "cluster.yaml"]);
    assert_eq!((code(&output), squeezed(&out(&output))), (Some(3), squeezed(REFUSED)), "{}", err(&output));
}

#[test]
fn json_and_yaml_say_the_same() {
    let json = berth(&["schedule", "-f", "large.yaml", "--cluster", "cluster.yaml", "-o", "json"]);
    let decisions: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let decision = &decisions["decisions"][0];
    assert_eq!(decision["outcome"], "UNSCHEDULABLE");
    assert_eq!(decision["reasons"][0]["plugin"], "NodeResourcesFit");
    assert_eq!(decision["reasons"][0]["exampleNode"], "n1");
    assert_eq!(decision.get("node"), None);
    let yaml = berth(&["schedule", "-f", "large.yaml", "--cluster", "cluster.yaml", "-o", "yaml"]);
    let same: serde_json::Value = serde_saphyr::from_str(&out(&yaml)).unwrap();
    assert_eq!((code(&json), code(&yaml), same), (Some(3), Some(3), decisions));
}

#[test]
fn reserved_room_is_missing_for_the_next_pod_of_the_file() {
    let two = "
apiVersion: v1
kind: Pod
metadata: {name: a, uid: a}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 600m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, uid: b}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 600m}}}]}
";
    let alone = run(&["schedule", "-f", "-", "--cluster", "cluster.yaml"], two);
    assert_eq!(code(&alone), Some(0), "{}", err(&alone));
    let together = run(&["schedule", "-f", "-", "--cluster", "cluster.yaml", "--reserve"], two);
    assert_eq!(code(&together), Some(3), "{}", out(&together));
}

#[test]
fn every_mistake_of_a_file_is_named_with_document_object_and_field() {
    let output = berth(&["schedule", "-f", "wrong.yaml", "--cluster", "cluster.yaml"]);
    assert_eq!(code(&output), Some(2));
    let text = err(&output);
    for part in [
        "wrong.yaml: document 1: Pod default/Wrong_Name: metadata.name: Invalid value: \"Wrong_Name\"",
        "spec.tolerations[0].operator: Unsupported value: \"Equals\": supported values: \"Equal\", \"Exists\"",
        "spec.containers[0].resources.requests[cpu]: ",
        "wrong.yaml: document 2: Pod default/fine: spec.containers[0].ports[0].containerPort: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn files_that_are_not_there_or_no_manifests_are_usage_errors() {
    for (args, part) in [
        (["schedule", "-f", "absent.yaml", "--cluster", "cluster.yaml"], "absent.yaml: no such file"),
        (["schedule", "-f", "small.yaml", "--cluster", "absent.yaml"], "absent.yaml: no such file"),
        (["schedule", "-f", "cluster.yaml", "--cluster", "small.yaml"], ""),
    ] {
        let output = berth(&args);
        assert!(err(&output).contains(part), "{}", err(&output));
        assert_ne!(code(&output), Some(0), "{args:?}");
    }
    let broken = run(&["schedule", "-f", "-", "--cluster", "cluster.yaml"], "kind: Pod\n  metadata: [");
    assert_eq!(code(&broken), Some(2));
    assert!(err(&broken).contains("standard input:"), "{}", err(&broken));
}

#[test]
fn wrong_usage_exits_2() {
    for args in [
        &["schedule", "-f", "small.yaml"][..],
        &["schedule", "-f", "small.yaml", "--cluster", "cluster.yaml", "--addr", "127.0.0.1:1"],
        &["schedule", "-f", "small.yaml", "--cluster", "cluster.yaml", "-o", "xml"],
        &["schedule", "-f", "small.yaml", "--cluster", "cluster.yaml", "--profile", "nope"],
        &["sail"],
    ] {
        assert_eq!(code(&berth(args)), Some(2), "{args:?}");
    }
}

#[test]
fn an_unknown_profile_names_those_there_are() {
    let output = berth(&["schedule", "-f", "small.yaml", "--cluster", "cluster.yaml", "--profile", "nope"]);
    assert!(err(&output).contains("no profile named \"nope\", there is default-scheduler"), "{}", err(&output));
}

#[test]
fn a_server_that_is_not_there_is_a_failure() {
    let output = berth(&["schedule", "-f", "small.yaml", "--addr", "127.0.0.1:1"]);
    assert_eq!(code(&output), Some(1), "{}", err(&output));
    assert!(err(&output).contains("127.0.0.1:1"), "{}", err(&output));
    assert_eq!(code(&berth(&["healthcheck", "--addr", "127.0.0.1:1"])), Some(1));
}

#[test]
fn serving_beyond_loopback_must_be_asked_for() {
    let output = berth(&["serve", "--addr", "0.0.0.0:0"]);
    assert_eq!(code(&output), Some(2));
    assert!(err(&output).contains("--insecure"), "{}", err(&output));
}

#[test]
fn serving_wrong_manifests_names_them_and_does_not_start() {
    let output = berth(&["serve", "--addr", "127.0.0.1:0", "--cluster", "wrong.yaml"]);
    assert_eq!(code(&output), Some(2));
    assert!(err(&output).contains("wrong.yaml: document 1: Pod default/Wrong_Name"), "{}", err(&output));
}

#[test]
fn answers_come_one_a_line_and_errors_are_answers() {
    let scenario = r#"{"name":"s","objects":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"10"}}}],"pending":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","uid":"p"},"spec":{"containers":[{"name":"c","image":"x"}]}}]}"#;
    let config = scenario.replacen('{', r#"{"config":{},"#, 1);
    let input = format!("{scenario}\nnot json\n\n{config}\n");
    let output = run(&["answer"], &input);
    let lines: Vec<serde_json::Value> = out(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((code(&output), lines.len()), (Some(0), 3));
    assert_eq!(lines[0]["decisions"][0]["chosen"], "n1");
    assert!(lines[1]["error"].as_str().unwrap().starts_with("not JSON"));
    let missing = "config: kind: Required value: one of KubeSchedulerConfiguration, Policy";
    assert_eq!(lines[2]["error"], missing);
}

/// Two nodes, and on one of them a pod that was an hour old at noon; evicted when older than an hour.
fn eviction_scenario() -> String {
    let meta = |name: &str| {
        format!(
            r#""metadata":{{"name":"{name}","uid":"{name}","creationTimestamp":"2026-03-01T11:00:00Z","ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"r"}}]}}"#
        )
    };
    let node = |name: &str| {
        let status = r#""status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}"#;
        format!(r#"{{"kind":"Node","apiVersion":"v1",{},{status}}}"#, meta(name))
    };
    let pod = format!(
        r#"{{"kind":"Pod","apiVersion":"v1",{},"spec":{{"nodeName":"n1","containers":[{{"name":"c","image":"x"}}]}},"status":{{"phase":"Running"}}}}"#,
        meta("p")
    );
    let policy = r#"{"apiVersion":"descheduler/v1alpha2","kind":"DeschedulerPolicy","profiles":[{"name":"p","pluginConfig":[{"name":"PodLifeTime","args":{"maxPodLifeTimeSeconds":3600}}],"plugins":{"deschedule":{"enabled":["PodLifeTime"]}}}]}"#;
    format!(
        r#"{{"name":"t","now":"2026-03-01T12:00:00Z","policy":{policy},"objects":[{},{},{pod}]}}"#,
        node("n1"),
        node("n2")
    )
}

#[test]
fn answers_of_a_policy_are_evictions_at_the_scenarios_time_or_the_one_given() {
    let answer = |args: &[&str]| -> serde_json::Value {
        let output = run(args, &format!("{}\n", eviction_scenario()));
        serde_json::from_str(&out(&output)).unwrap()
    };
    assert_eq!(answer(&["answer"]), serde_json::json!({"name": "t", "evictions": []}), "exactly as old is not older");
    let evicted = serde_json::json!([{"pod": "default/p", "node": "n1", "strategy": "PodLifeTime"}]);
    let later = answer(&["answer", "--mode", "compatible", "--now", "2026-03-01T12:00:01Z"]);
    assert_eq!(later["evictions"], evicted);
    let planned = answer(&["answer", "--mode", "planned", "--now", "2026-11-30T20:00:00Z"]);
    assert_eq!(planned["evictions"], evicted, "a fresh pod may land where it was");
    assert_eq!(code(&run(&["answer", "--now", "noon"], "")), Some(2));
}

#[test]
fn help_names_every_command() {
    let text = out(&berth(&["--help"]));
    for command in ["serve", "schedule", "evict", "compare", "demo", "bench", "answer", "healthcheck"] {
        assert!(text.contains(command), "{command} is not in:\n{text}");
    }
    let text = out(&berth(&["bench", "--help"]));
    assert!(text.contains("soak") && text.contains("resync") && text.contains("evict"), "{text}");
}

#[test]
fn a_bench_measures_judges_and_says_so_in_json() {
    let small = ["--json", "--nodes", "20", "--pods"];
    let soak = berth(&[&["bench", "soak", "--cluster-pods", "64"][..], &small, &["6400"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&soak.stdout).unwrap();
    assert_eq!(report["marks"].as_array().map(Vec::len), Some(10), "{}", err(&soak));
    // So little memory may well move by more than a tenth; that isn't this test's matter.
    assert_eq!(code(&soak), Some(i32::from(report["holds"] != true)));
    let resync = berth(&[&["bench", "resync", "--calls", "10"][..], &small, &["1500"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&resync.stdout).unwrap();
    assert_eq!(report["situations"].as_array().map(Vec::len), Some(3), "{}", err(&resync));
    assert_eq!(code(&resync), Some(i32::from(report["holds"] != true)));
    let little = berth(&["bench", "soak", "--pods", "10", "--cluster-pods", "10"]);
    assert_eq!(code(&little), Some(1), "{}", out(&little));
    let evict = berth(&[&["bench", "evict", "--at-most", "600"][..], &small, &["600"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&evict.stdout).unwrap();
    assert_eq!(report["strategies"].as_array().map(Vec::len), Some(11), "{}", err(&evict));
    assert_eq!((code(&evict), &report["holds"], &report["mode"]), (Some(0), &true.into(), &"PLANNED".into()));
    let too_slow = berth(&[&["bench", "evict", "--at-most", "0"][..], &small, &["600"]].concat());
    assert_eq!(code(&too_slow), Some(1), "{}", out(&too_slow));
}

#[test]
fn a_bench_of_an_unknown_strategy_is_wrong_usage_and_says_what_was_meant() {
    let output = berth(&["bench", "evict", "--strategies", "RemoveDuplicates,NodeTaints"]);
    assert_eq!(code(&output), Some(2));
    assert!(err(&output).contains("did you mean RemovePodsViolatingNodeTaints?"), "{}", err(&output));
}

#[test]
fn a_profile_is_changed_for_one_run() {
    let ask = |more: &[&str]| berth(&[&["schedule", "-f", "small.yaml", "--cluster", "cluster.yaml"], more].concat());
    let output = ask(&["--disable", "TaintToleration", "--weight", "ImageLocality=5"]);
    assert_eq!(code(&output), Some(0), "{}", err(&output));
    assert!(squeezed(&out(&output))[1].ends_with(" 2/2"), "the taint is not looked at: {}", out(&output));
    for (options, part) in [
        (&["--disable", "NoSuch"][..], "override.disable[NoSuch]: no plugin is called \"NoSuch\""),
        (&["--weight", "NodeName=1"], "NodeName doesn't score in profile \"default-scheduler\"; enable it"),
        (&["--weight", "ImageLocality"], "expected PLUGIN=N"),
        (&["--scheduler-config", "cluster.yaml"], "cluster.yaml: "),
    ] {
        let output = ask(options);
        assert_eq!(code(&output), Some(2), "{}", out(&output));
        assert!(err(&output).contains(part), "{}", err(&output));
    }
}
