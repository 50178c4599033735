//! Mistakes: each with its path, all at once, in the API server's words.

use serde_json::json;

use super::super::{Options, object};
use super::{mistakes, node_with, pod_with, pod_with_container, warnings};

const QUANTITY: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

#[test]
fn all_mistakes_are_reported_at_once() {
    let bad = json!({
        "apiVersion": "apps/v1", "kind": "Pod",
        "metadata": {"name": "Web", "namespace": "shop", "labels": {"bad key": "x"}, "creationTimestamp": "yesterday"},
        "spec": {
            "nodeSelector": "ssd",
            "containers": [
                {"name": "main", "resources": {"requests": {"cpu": "one", "memory": "-1Gi"}, "limits": []}},
                {"image": "x", "ports": [{"containerPort": 70000, "protocol": "tcp"}]},
                {"name": "main"},
            ],
            "tolerations": [{"operator": "Foo"}, {"key": "k", "effect": "Never"}],
            "topologySpreadConstraints": [{"maxSkew": 0}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 101, "preference": {"matchExpressions": [{"key": "k", "operator": "In"}]}},
            ]}},
        },
    });
    let error = object(&bad, Options::default()).unwrap_err();
    assert_eq!(error.object(), "Pod shop/Web");
    let subdomain = "Invalid value: \"Web\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
        characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
        for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let label = "Invalid value: \"bad key\": name part must consist of alphanumeric characters, '-', '_' or '.', and \
        must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
        validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let affinity = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
    assert_eq!(
        super::lines(&error),
        [
            "apiVersion: Unsupported value: \"apps/v1\": supported values: \"v1\"".to_owned(),
            format!("metadata.name: {subdomain}"),
            format!("metadata.labels[bad key]: {label}"),
            "metadata.creationTimestamp: Invalid value: \"yesterday\": must be an RFC 3339 time such as \
             \"2026-03-01T00:00:00Z\""
                .to_owned(),
            format!("spec.containers[0].resources.requests[cpu]: {QUANTITY}"),
            "spec.containers[0].resources.requests[memory]: Invalid value: \"-1Gi\": must be greater than or equal to 0"
                .to_owned(),
            "spec.containers[0].resources.limits: expected an object, found a list".to_owned(),
            "spec.containers[1].name: Required value".to_owned(),
            "spec.containers[1].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
                .to_owned(),
            "spec.containers[1].ports[0].protocol: Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \
             \"UDP\""
                .to_owned(),
            "spec.containers[2].name: Duplicate value: \"main\"".to_owned(),
            "spec.nodeSelector: expected an object, found a string".to_owned(),
            format!("{affinity}.preference.matchExpressions[0].values: Required value: must be specified when \
                     `operator` is 'In' or 'NotIn'"),
            format!("{affinity}.weight: Invalid value: 101: must be in the range 1-100"),
            "spec.tolerations[0].operator: Unsupported value: \"Foo\": supported values: \"Equal\", \"Exists\", \"Gt\", \
             \"Lt\""
                .to_owned(),
            "spec.tolerations[1].effect: Unsupported value: \"Never\": supported values: \"NoExecute\", \
             \"NoSchedule\", \"PreferNoSchedule\""
                .to_owned(),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero".to_owned(),
            "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty".to_owned(),
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Required value".to_owned(),
        ]
    );
}

#[test]
fn an_error_names_its_object_and_lists_its_mistakes_on_one_line() {
    let bad = pod_with(&json!({"containers": [{"image": "x"}], "priority": "high"}));
    assert_eq!(
        object(&bad, Options::default()).unwrap_err().to_string(),
        "Pod default/web is invalid: spec.containers[0].name: Required value; spec.priority: expected an integer, found a \
         string"
    );
}

#[test]
fn a_field_of_the_wrong_type_is_reported_once() {
    let bad = pod_with(&json!({
        "containers": {}, "tolerations": [{"operator": 1}, 7], "nodeName": 7, "hostNetwork": "yes", "volumes": "none",
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": true, "whenUnsatisfiable": []}],
        "terminationGracePeriodSeconds": 1.5, "priority": 3_000_000_000_u32,
    }));
    let mut found = mistakes(&bad);
    found.sort();
    assert_eq!(
        found,
        [
            "spec.containers: expected a list, found an object",
            "spec.hostNetwork: expected a boolean, found a string",
            "spec.nodeName: expected a string, found a number (quote it)",
            "spec.priority: Invalid value: 3000000000: must fit in 32 bits",
            "spec.terminationGracePeriodSeconds: Invalid value: 1.5: must be an integer",
            "spec.tolerations[0].operator: expected a string, found a number (quote it)",
            "spec.tolerations[1]: expected an object, found a number",
            "spec.topologySpreadConstraints[0].topologyKey: expected a string, found a boolean (quote it)",
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: expected a string, found a list",
            "spec.volumes: expected a list, found a string",
        ]
    );
}

#[test]
fn names_are_required() {
    assert_eq!(
        mistakes(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}})),
        ["metadata.name: Required value", "spec.containers: Required value"]
    );
    assert_eq!(mistakes(&json!({"apiVersion": "v1", "kind": "Node"})), ["metadata.name: Required value"]);
    assert_eq!(
        mistakes(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": 5}})),
        ["metadata.name: expected a string, found a number (quote it)"]
    );
    let bad = mistakes(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}));
    assert!(bad[0].starts_with("metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label"), "{bad:?}");
}

#[test]
fn tolerations_follow_the_api_servers_rules() {
    let bad = pod_with(&json!({"tolerations": [
        {"operator": "Equal", "value": "x"},
        {"key": "k", "operator": "Exists", "value": "x"},
        {"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
        {"key": "k", "value": "a b"},
        {"operator": "Exists"},
        {"key": "k", "operator": "", "effect": "", "value": "v"},
    ]}));
    let found = mistakes(&bad);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(
        found[0],
        "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \
         \"match all values and all keys\""
    );
    assert_eq!(
        found[1],
        "spec.tolerations[1].value: Invalid value: \"x\": value must be empty when `operator` is 'Exists'"
    );
    assert_eq!(
        found[2],
        "spec.tolerations[2].tolerationSeconds: Invalid value: 5: effect must be 'NoExecute' when `tolerationSeconds` is \
         set"
    );
    assert!(found[3].starts_with("spec.tolerations[3].value: Invalid value: \"a b\": a valid label"), "{found:?}");
}

#[test]
fn taints_need_a_key_and_an_effect() {
    let bad = node_with(&json!({"spec": {"taints": [{"value": "v"}, {"key": "k", "effect": "noschedule"}]}}));
    assert_eq!(
        mistakes(&bad),
        [
            "spec.taints[0].key: Required value",
            "spec.taints[0].effect: Required value",
            "spec.taints[1].effect: Unsupported value: \"noschedule\": supported values: \"NoExecute\", \"NoSchedule\", \
             \"PreferNoSchedule\"",
        ]
    );
}

#[test]
fn selectors_take_only_known_operators_with_the_right_number_of_values() {
    let expressions = json!([
        {"key": "a", "operator": "in", "values": ["x"]},
        {"key": "b", "operator": "Exists", "values": ["x"]},
        {"key": "c", "operator": "NotIn", "values": []},
        {"key": "d"},
        {"operator": "DoesNotExist"},
        {"key": "e", "operator": "Gt", "values": ["1"]},
    ]);
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchExpressions": expressions}});
    let bad =
        pod_with(&json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}));
    let at =
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions";
    assert_eq!(
        mistakes(&bad),
        [
            format!("{at}[0].operator: Invalid value: \"in\": not a valid selector operator"),
            format!("{at}[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
            format!("{at}[2].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
            format!("{at}[3].operator: Invalid value: \"\": not a valid selector operator"),
            format!("{at}[4].key: Required value"),
            format!("{at}[5].operator: Invalid value: \"Gt\": not a valid selector operator"),
        ]
    );
}

#[test]
fn node_selector_terms_take_one_bound_and_one_field() {
    let terms = json!([
        {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["1", "2"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
                         {"key": "spec.name", "operator": "Exists"}]},
    ]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    assert_eq!(
        mistakes(&pod_with(&json!({"affinity": {"nodeAffinity": required}}))),
        [
            format!(
                "{at}[0].matchExpressions[0].values: Required value: must be specified single value when `operator` \
                     is 'Lt' or 'Gt'"
            ),
            format!(
                "{at}[1].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or \
                     'NotIn' for node field selector"
            ),
            format!("{at}[1].matchFields[1].key: Invalid value: \"spec.name\": not a valid field selector key"),
            format!("{at}[1].matchFields[1].operator: Invalid value: \"Exists\": not a valid selector operator"),
        ]
    );
}

#[test]
fn quantities_are_checked_by_what_they_are_for() {
    let found = mistakes(&pod_with_container(&json!({"resources": {
        "requests": {"nvidia.com/gpu": "0.5", "memory": "1KB", "bad name": 1, "cpu": [], "hugepages-2Mi": "1ki"},
    }})));
    let at = "spec.containers[0].resources.requests";
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found[0].starts_with(&format!("{at}[bad name]: Invalid value: \"bad name\": name part must")), "{found:?}");
    assert_eq!(
        found[1..],
        [
            format!("{at}[cpu]: expected a quantity, found a list"),
            format!("{at}[hugepages-2Mi]: unable to parse quantity's suffix"),
            format!("{at}[memory]: {QUANTITY}"),
            format!("{at}[nvidia.com/gpu]: Invalid value: \"0.5\": must be an integer"),
        ]
    );
    let node = node_with(&json!({"status": {"allocatable": {"cpu": "4x", "memory": "-1"}, "capacity": {"cpu": ""}}}));
    assert_eq!(
        mistakes(&node),
        [
            format!("status.allocatable[cpu]: {QUANTITY}"),
            "status.allocatable[memory]: Invalid value: \"-1\": must be greater than or equal to 0".to_owned(),
            format!("status.capacity[cpu]: {QUANTITY}"),
        ]
    );
}

#[test]
fn requests_over_limits_are_left_alone() {
    let pod = pod_with_container(&json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}));
    assert_eq!(mistakes(&pod), Vec::<String>::new());
}

#[test]
fn names_of_containers_are_unique_over_both_lists() {
    let bad = pod_with(&json!({"initContainers": [{"name": "main"}, {"name": "a.b", "restartPolicy": "always"}]}));
    let found = mistakes(&bad);
    assert_eq!(found[0], "spec.initContainers[0].name: Duplicate value: \"main\"");
    assert!(found[1].starts_with("spec.initContainers[1].name: Invalid value: \"a.b\": a lowercase RFC 1123 label"));
    assert_eq!(
        found[2],
        "spec.initContainers[1].restartPolicy: Unsupported value: \"always\": supported values: \"Always\", \"Never\", \
         \"OnFailure\""
    );
}

#[test]
fn a_term_that_the_scheduler_cant_parse_is_a_warning_and_matches_nothing() {
    use crate::model::Labels;
    let terms = json!([
        {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["150.1"]}]},
        {"matchExpressions": [{"key": "n", "operator": "NotIn", "values": ["a b"]}]},
    ]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let value = pod_with(&json!({"affinity": {"nodeAffinity": required}}));
    assert_eq!(warnings(&value).len(), 2);
    let required = super::pod(&value).spec.affinity.node.and_then(|n| n.required).unwrap();
    let labels: Labels = [("n", "151")].into_iter().collect();
    assert!(!required.matches("n1", &labels));
}

#[test]
fn misspelt_fields_give_a_warning() {
    let value = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "lables": {}},
        "spec": {
            "schedulername": "x", "nodeselector": {}, "toleration": [],
            "containers": [{"name": "main", "resource": {}, "resources": {"request": {"cpu": "1"}}}],
        },
    });
    assert_eq!(
        warnings(&value),
        [
            "metadata.lables: unknown field; did you mean labels?",
            "spec.nodeselector: unknown field; did you mean nodeSelector?",
            "spec.schedulername: unknown field; did you mean schedulerName?",
            "spec.toleration: unknown field; did you mean tolerations?",
            "spec.containers[0].resources.request: unknown field; did you mean requests?",
        ]
    );
    let value = node_with(&json!({"spec": {"taint": [], "unschedulabel": true}, "status": {"allocateable": {}}}));
    assert_eq!(warnings(&value).len(), 3);
}

#[test]
fn an_error_is_bounded() {
    let labels: serde_json::Map<_, _> = (0..10_000).map(|i| (format!("bad key {i}"), json!("v"))).collect();
    let bad = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n".repeat(100_000), "labels": labels}});
    let error = object(&bad, Options::default()).unwrap_err();
    assert_eq!(error.errors.len(), super::super::MAX_REPORTED + 1);
    assert_eq!(error.errors.last().map(ToString::to_string).as_deref(), Some("and 9745 further errors"));
    assert!(error.to_string().len() < 200_000);
}

/// `n` resources, the first of them called after `from`.
fn resources(from: usize, n: usize) -> serde_json::Value {
    (from..from + n).map(|i| (format!("x.example/r{i}"), json!("1"))).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn an_object_names_256_resources_at_most() {
    let list = |n| pod_with_container(&json!({"name": "c", "resources": {"requests": resources(0, n)}}));
    assert_eq!(mistakes(&list(256)), [""; 0]);
    let path = "spec.containers[0].resources.requests";
    assert_eq!(mistakes(&list(40_000)), [format!("{path}: Too many: 40000: must have at most 256 resources")]);
    let offered = node_with(&json!({"status": {"allocatable": resources(0, 257), "capacity": resources(0, 256)}}));
    assert_eq!(mistakes(&offered), ["status.allocatable: Too many: 257: must have at most 256 resources"]);

    let container = |i: usize, from| json!({"name": format!("c{i}"), "resources": {"requests": resources(from, 200)}});
    let pod = |second| pod_with(&json!({"containers": [container(0, 0), container(1, second)]}));
    assert_eq!(mistakes(&pod(56)), [""; 0], "0 to 255");
    assert_eq!(mistakes(&pod(57)), ["spec: Too many: 257: must have at most 256 different resources"]);
    let mut reported = pod(56);
    let status = |from: usize| json!({"name": "c0", "resources": {"requests": resources(from, 200)}});
    reported["status"] = json!({"containerStatuses": [status(0), status(100)]});
    assert_eq!(mistakes(&reported), ["status: Too many: 300: must have at most 256 different resources"]);
}
