//! A legacy Policy as the `config` of a scenario: the old posts' file decides, and a wrong one is refused with its mistakes.
//! The rules themselves are tested beside their names, in `src/config/policy/tests/`.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use berth::service::answer::{Asked, answer};
use serde_json::{Value, json};

fn posts() -> Value {
    json!({
        "kind": "Policy", "apiVersion": "v1",
        "predicates": [
            {"name": "PodFitsHostPorts", "order": 2}, {"name": "PodFitsResources", "order": 3},
            {"name": "NoDiskConflict", "order": 5}, {"name": "PodToleratesNodeTaints", "order": 4},
            {"name": "MatchNodeSelector", "order": 6}, {"name": "PodFitsHost", "order": 1}
        ],
        "priorities": [
            {"name": "LeastRequestedPriority", "weight": 1}, {"name": "BalancedResourceAllocation", "weight": 1},
            {"name": "ServiceSpreadingPriority", "weight": 1}, {"name": "EqualPriority", "weight": 1}
        ],
        "hardPodAffinitySymmetricWeight": 10
    })
}

fn node(name: &str, cpu: &str, taints: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    })
}

fn pod(name: &str, node: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i", "resources": {
            "requests": {"cpu": "2", "memory": "1Gi"}}}]}
    })
}

/// Two open nodes of which `a` has a pod of the service, a small tainted one and a tainted one.
fn scenario(config: &Value) -> Value {
    let tainted = json!([{"key": "k", "effect": "NoSchedule"}]);
    json!({
        "name": "posts", "config": config,
        "objects": [
            node("a", "8", &json!([])), node("b", "8", &json!([])), node("small", "1", &tainted),
            node("tainted", "8", &tainted), pod("first", Some("a")),
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}
        ],
        "pending": [pod("q0", None)]
    })
}

#[test]
fn the_old_posts_file_decides() {
    let answer = answer(&scenario(&posts()), &Asked::default());
    let decision = &answer["decisions"][0];
    assert_eq!(decision["chosen"], "b");
    assert_eq!(decision["filtered"]["small"]["plugin"], "NodeResourcesFit", "order 3 comes before order 4");
    assert_eq!(decision["filtered"]["tainted"]["plugin"], "TaintToleration");
    let spreading = |node: &str| decision["scores"][node]["plugins"]["ServiceSpreadingPriority"].clone();
    assert_eq!((spreading("a"), spreading("b")), (json!(0), json!(100)));
}

#[test]
fn scorers_of_one_name_show_as_their_sum() {
    let mut policy = posts();
    policy["priorities"] = json!([
        {"name": "LeastRequestedPriority", "weight": 1}, {"name": "MostRequestedPriority", "weight": 1}
    ]);
    let answer = answer(&scenario(&policy), &Asked::default());
    let b = &answer["decisions"][0]["scores"]["b"];
    assert_eq!(
        (&b["total"], &b["plugins"]),
        (&b["plugins"]["NodeResourcesFit"], &json!({"NodeResourcesFit": b["total"]}))
    );
}

#[test]
fn extenders_are_refused_by_their_address() {
    let mut policy = posts();
    policy["extenders"] = json!([{"urlPrefix": "http://127.0.0.1:8080/api", "filterVerb": "filter"}]);
    let error = answer(&scenario(&policy), &Asked::default())["error"].as_str().unwrap().to_owned();
    assert!(error.contains("extenders[0]: extender \"http://127.0.0.1:8080/api\" is not supported"), "{error}");
}
