//! What is filled in for fields that a manifest leaves out.

use serde_json::{Value, json};

use super::super::{Classes, Options, Warning, apply_classes, derived_uid, object};
use super::{pod, pod_with, pod_with_container, warnings};
use crate::model::pod::PreemptionPolicy;
use crate::model::selector::{Operator, Requirement};
use crate::model::testing::{quantity, selector};
use crate::model::{LabelSelector, Pod, ResourceList};

#[test]
fn requests_default_to_limits() {
    let resources = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}});
    let value = pod_with(&json!({
        "containers": [{"name": "main", "resources": resources}],
        "initContainers": [{"name": "init", "resources": resources}],
    }));
    let spec = pod(&value).spec;
    for container in spec.containers.iter().chain(&spec.init_containers) {
        let requests = &container.resources.requests;
        assert_eq!((requests["cpu"], requests["memory"]), (quantity("500m"), quantity("1Gi")));
    }
}

#[test]
fn each_quantity_is_rounded_up_to_a_whole_milli() {
    let value = pod_with(&json!({
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "0.4m"}, "limits": {"memory": "1.0001"}}}],
        "overhead": {"cpu": "1u"}, "resources": {"requests": {"cpu": "1n"}},
    }));
    let spec = pod(&value).spec;
    let resources = &spec.containers[0].resources;
    assert_eq!((resources.requests["cpu"], resources.limits["memory"]), (quantity("1m"), quantity("1001m")));
    assert_eq!(resources.requests["memory"], quantity("1001m"));
    assert_eq!((spec.overhead["cpu"], spec.resources.unwrap().requests["cpu"]), (quantity("1m"), quantity("1m")));
}

#[test]
fn pod_level_requests_come_from_the_containers_or_else_from_pod_level_limits() {
    let value = |resources: Value| {
        pod_with(&json!({
            "resources": resources, "overhead": {"cpu": "1"},
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "100m"}}},
                           {"name": "b", "resources": {"limits": {"cpu": "200m"}}}],
        }))
    };
    let limits = json!({"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi"});
    let requests = |v: Value| pod(&v).spec.resources.unwrap().requests;
    let found = requests(value(json!({"limits": limits})));
    assert_eq!(found["cpu"], quantity("300m"));
    assert_eq!((found["memory"], found["hugepages-2Mi"]), (quantity("1Gi"), quantity("4Mi")));
    let found = requests(value(json!({"limits": limits, "requests": {"cpu": "700m"}})));
    assert_eq!(found["cpu"], quantity("700m"));
    assert_eq!(requests(value(json!({"requests": {}}))), ResourceList::new());
}

fn anti_affinity(term: &Value) -> LabelSelector {
    let affinity = json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]});
    let pod = pod(&pod_with(&json!({"affinity": {"podAntiAffinity": affinity}})));
    pod.spec.affinity.pod_anti.unwrap().preferred[0].term.selector.clone()
}

#[test]
fn match_label_keys_of_pod_affinity_are_merged_into_the_selector() {
    let merged = anti_affinity(&json!({
        "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["version", "absent"], "mismatchLabelKeys": ["app"],
    }));
    let not_web = Requirement { key: "app".into(), op: Operator::NotIn(vec!["web".into()]) };
    assert_eq!(merged, selector(&[("app", "web"), ("version", "v2")]).and([not_web]));
}

#[test]
fn keys_that_are_merged_already_stay_as_they_were() {
    // What the API server stored when the pod's label was still v1.
    let merged = anti_affinity(&json!({
        "topologyKey": "zone", "matchLabelKeys": ["version"],
        "labelSelector": {"matchExpressions": [{"key": "version", "operator": "In", "values": ["v1"]}]},
    }));
    assert_eq!(merged, selector(&[("version", "v1")]));
    // Another operator on the same key is another requirement.
    let merged = anti_affinity(&json!({
        "topologyKey": "zone", "matchLabelKeys": ["version"],
        "labelSelector": {"matchExpressions": [{"key": "version", "operator": "Exists"}]},
    }));
    let exists = Requirement { key: "version".into(), op: Operator::Exists };
    assert_eq!(merged, selector(&[("version", "v2")]).and([exists]));
}

#[test]
fn nothing_is_merged_into_a_null_selector() {
    assert_eq!(anti_affinity(&json!({"topologyKey": "zone", "matchLabelKeys": ["version"]})), LabelSelector::Nothing);
    let spread = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                        "matchLabelKeys": ["version"]});
    let pod = pod(&pod_with(&json!({"topologySpreadConstraints": [spread]})));
    assert_eq!(pod.spec.topology_spread[0].selector, LabelSelector::Nothing);
    assert_eq!(&*pod.spec.topology_spread[0].match_label_keys[0], "version");
}

#[test]
fn match_label_keys_of_spread_are_merged_into_the_selector() {
    let spread = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {},
                        "matchLabelKeys": ["version", "absent"]});
    let pod = pod(&pod_with(&json!({"topologySpreadConstraints": [spread]})));
    assert_eq!(pod.spec.topology_spread[0].selector, selector(&[("version", "v2")]));
}

struct Known;

impl Classes for Known {
    fn priority(&self, name: &str) -> Option<(i32, PreemptionPolicy)> {
        (name == "polite").then_some((50, PreemptionPolicy::Never))
    }
    fn default_priority(&self) -> Option<(i32, PreemptionPolicy)> {
        Some((10, PreemptionPolicy::PreemptLowerPriority))
    }
    fn overhead(&self, runtime_class: &str) -> Option<ResourceList> {
        (runtime_class == "kata").then(|| [("cpu".into(), quantity("250m"))].into())
    }
}

fn with_classes(spec: &Value) -> (Pod, Vec<Warning>) {
    let (mut pod, mut warnings) = (pod(&pod_with(spec)), Vec::new());
    apply_classes(&mut pod, &Known, &mut warnings);
    (pod, warnings)
}

#[test]
fn priority_comes_from_the_class_where_it_is_null() {
    for (spec, priority, policy) in [
        (json!({"priorityClassName": "polite"}), Some(50), PreemptionPolicy::Never),
        (json!({"priorityClassName": "polite", "priority": 3}), Some(3), PreemptionPolicy::PreemptLowerPriority),
        (
            json!({"priorityClassName": "system-node-critical"}),
            Some(2_000_001_000),
            PreemptionPolicy::PreemptLowerPriority,
        ),
        (json!({}), Some(10), PreemptionPolicy::PreemptLowerPriority),
        (json!({"preemptionPolicy": "Never"}), Some(10), PreemptionPolicy::Never),
    ] {
        let (pod, warnings) = with_classes(&spec);
        assert_eq!((pod.spec.priority, pod.spec.preemption_policy, warnings), (priority, policy, vec![]), "{spec}");
    }
}

#[test]
fn an_unknown_priority_class_is_a_warning() {
    let (pod, warnings) = with_classes(&json!({"priorityClassName": "gone"}));
    assert_eq!(pod.spec.priority, None);
    assert_eq!(
        warnings[0].to_string(),
        "spec.priorityClassName: no PriorityClass \"gone\" is known; the priority counts as 0"
    );
}

#[test]
fn overhead_comes_from_the_runtime_class_where_it_is_empty() {
    let (pod, _) = with_classes(&json!({"runtimeClassName": "kata"}));
    assert_eq!(pod.spec.overhead["cpu"], quantity("250m"));
    let (pod, _) = with_classes(&json!({"runtimeClassName": "kata", "overhead": {"memory": "1Mi"}}));
    assert_eq!(pod.spec.overhead, [("memory".into(), quantity("1Mi"))].into());
    let (pod, _) = with_classes(&json!({"runtimeClassName": "other"}));
    assert!(pod.spec.overhead.is_empty());
}

#[test]
fn a_missing_uid_is_derived_from_namespace_and_name() {
    let mut value = pod_with(&json!({}));
    value["metadata"] = json!({"name": "web"});
    let parsed = object(&value, Options::default()).unwrap();
    assert_eq!(parsed.warnings.len(), 1);
    assert_eq!(parsed.warnings[0].to_string(), "metadata.uid: absent; derived from namespace and name");
    assert_eq!(parsed.value.meta().uid, derived_uid("Pod", "default", "web"));
    // Fixed for ever: clients may have stored it.
    assert_eq!(&*derived_uid("Pod", "default", "web"), "64d49511-36ed-5a08-bdbb-7f11b9bdae90");
    assert_ne!(derived_uid("Pod", "default", "web"), derived_uid("Service", "default", "web"));
    // Other kinds get theirs without a word.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let parsed = object(&node, Options::default()).unwrap();
    assert_eq!((parsed.warnings.len(), &parsed.value.meta().uid), (0, &derived_uid("Node", "", "n1")));
}

#[test]
fn a_stream_that_said_hello_must_send_uids() {
    let options = Options { allow_missing_uid: false };
    let mut value = pod_with_container(&json!({}));
    assert!(object(&value, options).is_ok());
    value["metadata"] = json!({"name": "web"});
    let error = object(&value, options).unwrap_err();
    assert_eq!(super::lines(&error), ["metadata.uid: Required value: a stream that said Hello must send uids"]);
    // Metrics never have one.
    let metrics = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": {"name": "web"}});
    assert!(object(&metrics, options).is_ok());
}

#[test]
fn a_generated_name_stands_in_for_the_name_of_a_pod() {
    let mut value = pod_with(&json!({}));
    value["metadata"] = json!({"generateName": "web-", "uid": "u"});
    assert_eq!(&*pod(&value).meta.name, "web");
    assert_eq!(warnings(&value), ["metadata.name: absent; \"web\" is taken from generateName"]);
}
