//! Whatever a client sends, reading it ends in objects or in errors that say where, never in a panic.
//!
//! Two sources of bad input: JSON made of Kubernetes' own field names in the wrong places, and good objects with one value
//! replaced. Plus text that is neither JSON nor YAML.

use berth::manifest::{Item, Options, objects, parse_json, pod_from, pods, read_pods_str, read_str};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const WORDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "items",
    "name",
    "namespace",
    "labels",
    "containers",
    "template",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "affinity",
    "nodeAffinity",
    "podAntiAffinity",
    "labelSelector",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "weight",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchLabels",
    "key",
    "operator",
    "values",
    "tolerations",
    "taints",
    "effect",
    "topologySpreadConstraints",
    "maxSkew",
    "ports",
    "containerPort",
    "hostNetwork",
    "volumes",
    "allocatable",
    "jobTemplate",
    "ownerReferences",
    "creationTimestamp",
    "uid",
    "selector",
    "minAvailable",
    "",
    "a b",
    "\u{0}\u{1F600}",
];
const TEXTS: &[&str] = &[
    "v1",
    "apps/v1",
    "policy/v1",
    "storage.k8s.io/v1",
    "Pod",
    "Node",
    "List",
    "PodList",
    "Deployment",
    "CronJob",
    "Service",
    "PodDisruptionBudget",
    "PersistentVolume",
    "web",
    "In",
    "Exists",
    "Gt",
    "NoSchedule",
    "TCP",
    "100m",
    "1Gi",
    "-1",
    "1e999",
    "2026-03-01T00:00:00Z",
    "9999999-13-99T99:99:99Z",
    "50%",
    "\u{1F600}",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        (0..200i64).prop_map(Value::from),
        proptest::sample::select(TEXTS).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 64, 6, |inner| {
        let key = proptest::sample::select(WORDS).prop_map(str::to_owned);
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => proptest::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An object of each sort with every field that is read.
fn good() -> Vec<Value> {
    let selector =
        json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]});
    let term = json!({"topologyKey": "zone", "labelSelector": selector, "namespaces": ["x"], "namespaceSelector": {},
                      "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"]});
    let node_term = json!({"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}],
                           "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]});
    let container = json!({"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}],
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": 5}}, "restartPolicyRules": [{"action": "Restart"}]});
    let pod_spec = json!({
        "containers": [container], "initContainers": [{"name": "i", "restartPolicy": "Always"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node_term]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": node_term}]},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity":
                {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector, "minDomains": 2, "matchLabelKeys": ["a"], "nodeTaintsPolicy": "Honor"}],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], "resources": {"limits": {"cpu": 1}},
        "overhead": {"cpu": "1m"}, "nodeSelector": {"a": "b"}, "priority": 1, "schedulingGates": [{"name": "g"}],
        "schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [{"name": "r"}], "hostNetwork": true,
    });
    let meta = json!({"name": "x", "namespace": "y", "uid": "u", "labels": {"a": "b"}, "annotations": {"a": "b"},
        "creationTimestamp": "2026-03-01T00:00:00Z", "ownerReferences": [{"kind": "K", "name": "n", "controller": true}]});
    let status = json!({"phase": "Running", "conditions": [{"type": "t", "lastTransitionTime": "2026-03-01T00:00:00Z"}],
        "containerStatuses": [{"name": "c", "restartCount": 1, "state": {"terminated": {"exitCode": 1}},
                               "resources": {"requests": {"cpu": 1}}, "allocatedResources": {"cpu": 1}}]});
    let node_status = json!({"allocatable": {"cpu": 1}, "capacity": {"cpu": 1}, "images": [{"names": ["i"], "sizeBytes": 1}],
        "conditions": [{"type": "Ready", "status": "True"}], "declaredFeatures": ["f"]});
    let pdb_status = json!({"disruptedPods": {"a": null}, "disruptionsAllowed": 1});
    vec![
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec, "status": status}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": node_status,
               "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true}}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": {"replicas": 1,
               "selector": selector, "template": {"metadata": meta, "spec": pod_spec},
               "volumeClaimTemplates": [{"metadata": {"name": "v"}}]}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "status": pdb_status,
               "spec": {"selector": selector, "minAvailable": "50%"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": {"capacity": {"storage": "1Gi"},
               "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}, "claimRef": {"name": "c"},
               "nodeAffinity": {"required": {"nodeSelectorTerms": [node_term]}}}}),
        json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "PodList", "apiVersion": "v1",
               "items": [{"metadata": meta, "spec": pod_spec}]}]}),
    ]
}

/// Puts `new` in place of the n-th value below `at`, counting in order; returns how many are left to count.
fn replace(at: &mut Value, n: usize, new: &Value) -> Option<usize> {
    if n == 0 {
        *at = new.clone();
        return None;
    }
    let mut left = n - 1;
    let children: Vec<&mut Value> = match at {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    for child in children {
        left = replace(child, left, new)?;
    }
    Some(left)
}

fn read_all_ways(value: &Value) {
    for allow_missing_uid in [true, false] {
        let options = Options { allow_missing_uid };
        for item in objects(value, options) {
            if let Item::Invalid(error) = item {
                assert!(!error.errors.is_empty(), "{value}");
                assert!(!error.to_string().is_empty());
            }
        }
        let _ = pod_from(value, options);
        let _ = pods(value, options);
    }
}

#[test]
fn good_objects_are_good() {
    for value in good() {
        for item in objects(&value, Options::default()) {
            assert!(matches!(item, Item::Read(_)), "{item:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_json_never_panics(value in value()) {
        read_all_ways(&value);
    }

    #[test]
    fn one_wrong_value_never_panics(object in proptest::sample::select(good()), n in 0..160usize, new in value()) {
        let mut object = object;
        replace(&mut object, n, &new);
        read_all_ways(&object);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[-{}\\[\\]:,&*<|> \"a-z0-9\n#%!]{0,60}") {
        let _ = read_str(&text, "text", Options::default());
        let _ = read_pods_str(&text, "text", Options::default());
        let _ = parse_json(text.as_bytes());
    }

    #[test]
    fn json_is_read_as_serde_json_reads_it(value in value()) {
        let text = value.to_string();
        let parsed = parse_json(text.as_bytes()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(parsed, serde_json::from_str::<Value>(&text).unwrap_or_default());
    }
}
