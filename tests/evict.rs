//! `berth evict` as its users see it: plans of dumps and of the served binary, golden, and what it says to wrong input.
//! How PLANNED answers look is tested beside the code that prints them; here what the descheduler itself would do is shown.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/evict");
    command.args(args).current_dir(folder).env_remove("RUST_LOG");
    command
}

/// Code, standard output and standard error.
fn berth(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

const NOW: [&str; 2] = ["--now", "2026-11-30T20:00:00Z"];

/// Of the dump, in COMPATIBLE mode.
fn evict(policy: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let dump = ["evict", "--policy", policy, "--cluster", "cluster.yaml", "--mode", "compatible"];
    berth(&[&dump[..], &NOW, more].concat())
}

struct Served {
    child: Child,
    addr: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let args = [&["serve", "--addr", "127.0.0.1:0", "--admin-addr", "none"], args].concat();
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { child, addr }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Columns are as wide as their content, so runs of blanks say nothing.
fn squeezed(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

const PLAN: &str = "\
 POD         FROM  TO  STRATEGY          GAIN  REASON
 shop/web-2  n1    -   RemoveDuplicates  -     3 pods of ReplicaSet shop/web are on the node, its share is 1
 shop/web-3  n1    -   RemoveDuplicates  -     3 pods of ReplicaSet shop/web are on the node, its share is 1

2 pods should move, in this order: mode COMPATIBLE, as of 2026-11-30T20:00:00Z. Nothing was evicted.

Left alone
 PODS  STRATEGY     WHY                         EXAMPLE
    1  PodLifeTime  BUDGET_EXHAUSTED            shop/store-1 on n1: PodDisruptionBudget shop/store allows no disruption now
    1  PodLifeTime  PROTECTED: DaemonSetPods 1  shop/agent-1 on n1: pod belongs to a DaemonSet
";

#[test]
fn a_plan_is_a_table_of_moves_counts_of_what_stays_and_exit_0() {
    let (code, table, log) = evict("policy.yaml", &[]);
    assert_eq!((code, squeezed(&table)), (Some(0), squeezed(PLAN)), "{table}{log}");
    let warning = "berth evict: warning: policy.yaml: profiles[0].plugins.balance.disabled: has no effect: the \
                   descheduler ignores it\n";
    assert_eq!(log, warning);
}

#[test]
fn a_plan_for_nothing_says_so_and_exits_0() {
    let (code, table, log) = evict("idle.yaml", &[]);
    let expected = "No pod should move: mode COMPATIBLE, as of 2026-11-30T20:00:00Z. Nothing was evicted.\n";
    assert_eq!((code, table.as_str(), log.as_str()), (Some(0), expected, ""));
}

const MISTAKES: &str = "\
berth evict: broken.yaml: maxNoOfPodsToEvictPerNode: Invalid value: -1: must be greater than or equal to 0
berth evict: broken.yaml: profiles[0].nodeFit: unknown field; it belongs in the args of DefaultEvictor: \
profiles[].pluginConfig[name=DefaultEvictor].args.nodeFit
berth evict: broken.yaml: profiles[0].plugins.deschedule.enabled[0]: profile \"broken\" configures deschedule extension \
point of non-existing plugins: RemoveDuplicate; did you mean RemoveDuplicates?
berth evict: broken.yaml: profiles[0].pluginConfig[0].args.thresholds[cpu]: cpu threshold not in [0, 100] range
";

#[test]
fn every_mistake_of_a_policy_is_named_with_file_and_path_whoever_is_asked() {
    let (code, table, log) = evict("broken.yaml", &[]);
    assert_eq!((code, table.as_str(), log.as_str()), (Some(2), "", MISTAKES));
    let served = Served::start(&["--cluster", "cluster.yaml"]);
    let (code, table, log) = berth(&["evict", "--policy", "broken.yaml", "--addr", &served.addr]);
    assert_eq!((code, table.as_str(), log.as_str()), (Some(2), "", MISTAKES));
}

#[test]
fn dumps_and_a_server_that_holds_them_give_the_same_plan() {
    let served = Served::start(&["--cluster", "cluster.yaml"]);
    for mode in ["compatible", "planned"] {
        for more in [&[][..], &["--explain", "shop/store-1"], &["-o", "yaml"]] {
            let ask = |place: &[&str]| {
                let args = ["evict", "--policy", "policy.yaml", "--mode", mode];
                berth(&[&args[..], &NOW, place, more].concat())
            };
            let (here, mut there) = (ask(&["--cluster", "cluster.yaml"]), ask(&["--addr", &served.addr]));
            if more.contains(&"yaml") {
                // Only a server's view says something.
                let mut value: Value = serde_saphyr::from_str(&there.1).unwrap();
                let view = value.as_object_mut().unwrap().remove("view").unwrap();
                assert_eq!(view["nodes"], 3, "{view}");
                there.1 = here.1.clone();
                assert_eq!(value, serde_saphyr::from_str::<Value>(&here.1).unwrap());
            }
            assert_eq!(here, there, "{mode} {more:?}");
            assert_eq!(here.0, Some(0), "{}", here.2);
        }
    }
}

#[test]
fn a_servers_own_policy_is_followed_without_another_and_dumps_need_one() {
    let served = Served::start(&["--cluster", "cluster.yaml", "--descheduler-policy", "policy.yaml"]);
    let ask = |more: &[&str]| {
        let args = ["evict", "--addr", &served.addr, "--mode", "compatible"];
        berth(&[&args[..], &NOW, more].concat())
    };
    let (code, table, log) = ask(&[]);
    assert_eq!((code, squeezed(&table)), (Some(0), squeezed(PLAN)), "{table}{log}");
    assert!(log.contains("policy.yaml: profiles[0].plugins.balance.disabled: has no effect"), "{log}");
    let (_, json, _) = ask(&["-o", "json"]);
    let plan: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(plan["policyFile"], "policy.yaml");
    let without = Served::start(&["--cluster", "cluster.yaml"]);
    let (code, _, log) = berth(&["evict", "--addr", &without.addr]);
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("no policy"), "{log}");
}

#[test]
fn json_and_yaml_have_the_names_of_the_protocol() {
    let (code, text, log) = evict("policy.yaml", &["-o", "json"]);
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!((&plan["mode"], &plan["now"]), (&json!("COMPATIBLE"), &json!("2026-11-30T20:00:00Z")));
    let first = json!({
        "pod": { "kind": "Pod", "namespace": "shop", "name": "web-2", "uid": "web-2" },
        "node": "n1",
        "strategy": "RemoveDuplicates",
        "profile": "tidy",
        "reason": plan["suggestions"][0]["reason"],
        "gracePeriodSeconds": 30,
    });
    assert_eq!(plan["suggestions"][0], first);
    let kept = plan["leftAlone"].as_array().unwrap().iter().find(|row| row["kind"] == "BUDGET_EXHAUSTED").unwrap();
    assert_eq!((&kept["pods"], &kept["strategy"]), (&json!(1), &json!("PodLifeTime")));
    assert_eq!(kept["examples"][0]["pod"]["name"], "store-1");
    assert_eq!((&plan["measures"], plan.get("view")), (&json!([]), None));
    assert_eq!(plan["warnings"][0]["field"], "policy.profiles[0].plugins.balance.disabled");
    let (_, yaml, _) = evict("policy.yaml", &["-o", "yaml"]);
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), plan);
    let (_, empty, _) = evict("idle.yaml", &["-o", "json"]);
    let empty: Value = serde_json::from_str(&empty).unwrap();
    assert_eq!((&empty["suggestions"], &empty["leftAlone"]), (&json!([]), &json!([])));
}

const STORY: &str = "\
 shop/store-1, on n1
 PodDisruptionBudget shop/store selects it and lets 0 go now
 If it alone were evicted, its replacement would go to n2

 Profile \"tidy\"
 No rule of the evictor protects it
 STRATEGY          VERDICT                      WHY
 PodLifeTime       left alone: BUDGET_EXHAUSTED  PodDisruptionBudget shop/store allows no disruption now
 RemoveDuplicates  rule doesn't apply
";

#[test]
fn the_story_of_a_pod_is_told_on_demand() {
    let (code, table, log) = evict("policy.yaml", &["--explain", "shop/store-1"]);
    let told = table.split_once("The story of").map_or("", |(_, told)| told);
    assert_eq!((code, squeezed(told)), (Some(0), squeezed(STORY)), "{table}{log}");
    let (code, _, log) = evict("policy.yaml", &["--explain", "shop/nobody"]);
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("nobody"), "{log}");
    assert_eq!(evict("policy.yaml", &["--explain", "a/b/c"]).0, Some(2));
}

#[test]
fn wrong_usage_and_files_exit_2_and_a_server_that_is_not_there_1() {
    let dump = ["--cluster", "cluster.yaml"];
    let with = |more: &[&'static str]| [&["evict", "--policy", "policy.yaml"][..], more].concat();
    for (args, part) in [
        (with(&[]), "--cluster"),
        (with(&["--cluster", "cluster.yaml", "--addr", "127.0.0.1:1"]), "cannot be used with"),
        ([&["evict"][..], &dump].concat(), "--policy"),
        (with(&["--cluster", "absent.yaml"]), "absent.yaml: no such file"),
        (with(&["--cluster", "cluster.yaml", "--now", "noon"]), "RFC 3339"),
        (with(&["--cluster", "cluster.yaml", "--mode", "rough"]), "possible values: planned, compatible"),
        ([&["evict", "--policy", "absent.yaml"][..], &dump].concat(), "absent.yaml: "),
        ([&["evict", "--policy", "cluster.yaml"][..], &dump].concat(), "cluster.yaml: kind: "),
    ] {
        let (code, _, log) = berth(&args);
        assert_eq!(code, Some(2), "{args:?}: {log}");
        assert!(log.contains(part), "{args:?}: {log}");
    }
    let (code, _, log) = berth(&with(&["--addr", "127.0.0.1:1"]));
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("127.0.0.1:1"), "{log}");
}
