//! Profiles that change under load: no request is lost, and every answer is from one whole profile.
//!
//! Two configurations that differ in all that an answer shows (which node wins, its score, how many nodes are feasible) are
//! swapped by file while callers ask. How callers and swaps interleave is the machine's; what must hold doesn't depend on it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use berth::manifest;
use berth::model::Pod;
use berth::service::Service;
use berth::service::config_file::Reload;
use berth::service::schedule::{Request, Verdict};
use serde_json::{Value, json};

const CALLERS: usize = 16;
const CALLS: usize = 8_000;

/// One scorer, by one.
const PACKING: &str = "{disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 1}]}";
/// The same, by seven.
const SPREADING: &str = "{disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 7}]}";

fn config(scores: &str, strategy: &str, filter: &str) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {{score: {scores}, filter: {filter}}}
  pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: {{type: {strategy}}}}}}}]
"
    )
}

fn parsed(manifest: &Value) -> Pod {
    manifest::pod_from(manifest, manifest::Options::default()).unwrap().value
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "uid": name },
        "spec": { "containers": [{ "name": "c", "image": "app", "resources": { "requests": { "cpu": cpu, "memory": "1Gi" } } }] },
    })
}

fn node(name: &str, cpu: &str, taints: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "spec": { "taints": taints },
        "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } },
    })
}

/// Node, score and feasible nodes of a dry run.
fn ask(service: &Service, number: usize) -> (String, i64, usize) {
    let request = Request { dry_run: true, ..Request::new(parsed(&pod(&format!("p{number}"), "1"))) };
    let answer = service.schedule(request, &AtomicBool::new(false)).unwrap();
    match answer.verdict {
        Verdict::Placed { node, score, .. } => (node.to_string(), score, answer.feasible_nodes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reload_under_load_loses_no_request_and_mixes_no_profiles() {
    let folder = std::env::temp_dir().join(format!("berth-reload-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, cluster): (PathBuf, PathBuf) = (folder.join("config.yaml"), folder.join("cluster.json"));
    let taint = json!([{ "key": "dedicated", "value": "x", "effect": "NoSchedule" }]);
    let items = [node("big", "16", &json!([])), node("small", "4", &json!([])), node("tainted", "64", &taint)];
    std::fs::write(&cluster, json!({ "kind": "List", "apiVersion": "v1", "items": items }).to_string()).unwrap();

    let texts = [
        config(PACKING, "MostAllocated", "{}"),
        config(SPREADING, "LeastAllocated", "{disabled: [{name: TaintToleration}]}"),
        "kind: KubeSchedulerConfiguration\nprofiles: [{}]\n".to_owned(),
    ];
    let service = Service::default();
    service.load_files(std::slice::from_ref(&cluster)).unwrap();
    // What each configuration answers when nothing changes.
    let expected: Vec<_> = texts[..2]
        .iter()
        .map(|text| {
            std::fs::write(&path, text).unwrap();
            service.load_config(&path).unwrap();
            ask(&service, 0)
        })
        .collect();
    assert_eq!((expected[0].0.as_str(), expected[0].2), ("small", 2));
    assert_eq!((expected[1].0.as_str(), expected[1].2), ("tainted", 3));

    let (next, swaps) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let seen = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while next.load(Ordering::Relaxed) < CALLS {
                let turn = swaps.fetch_add(1, Ordering::Relaxed);
                // Every third file is wrong: it changes nothing.
                std::fs::write(&path, &texts[turn % 3]).unwrap();
                match service.reload_config(true) {
                    Reload::Done { .. } => assert_ne!(turn % 3, 2),
                    Reload::Refused(errors) => assert!(turn % 3 == 2 && errors.len() == 1, "{errors:?}"),
                    Reload::Unchanged => panic!("asked for and not done"),
                }
            }
        });
        let call = || {
            let mut seen: BTreeMap<(String, i64, usize), usize> = BTreeMap::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= CALLS {
                    return seen;
                }
                *seen.entry(ask(&service, number)).or_default() += 1;
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        let mut all: BTreeMap<(String, i64, usize), usize> = BTreeMap::new();
        for caller in callers {
            for (answer, count) in caller.join().unwrap() {
                *all.entry(answer).or_default() += count;
            }
        }
        swapping.join().unwrap();
        all
    });
    assert_eq!(seen.values().sum::<usize>(), CALLS, "{seen:?}");
    assert!(seen.keys().all(|answer| expected.contains(answer)), "{seen:?} is not of {expected:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
