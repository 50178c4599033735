//! Where each field of the model comes from, and what null and empty mean.

use serde_json::json;

use super::{node, pod, pod_with, pod_with_container};
use crate::model::container::ContainerPort;
use crate::model::pod::PreemptionPolicy;
use crate::model::pod_status::{ContainerState, Phase};
use crate::model::taint::TolerationOperator;
use crate::model::testing::{quantity, selector};
use crate::model::topology_spread::InclusionPolicy;
use crate::model::volume::VolumeSource;
use crate::model::{Effect, LabelSelector, NodeAffinity, Str, Time};

#[test]
fn null_is_absent() {
    let value = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "uid": "u", "namespace": null, "creationTimestamp": null, "labels": null,
                     "ownerReferences": null},
        "spec": {
            "containers": [{"name": "main", "resources": null, "ports": null, "restartPolicy": null}],
            "nodeSelector": null, "affinity": null, "priority": null, "tolerations": null, "resources": null,
            "hostNetwork": null, "schedulerName": null,
        },
        "status": null,
    });
    let without = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "uid": "u"},
        "spec": {"containers": [{"name": "main"}]},
    });
    assert_eq!(pod(&value), pod(&without));
    let pod = pod(&value);
    assert_eq!(pod.spec.node_selector, None);
    assert_eq!((&*pod.meta.namespace, &*pod.spec.scheduler_name), ("default", "default-scheduler"));
    assert_eq!(pod.spec.resources, None);
}

#[test]
fn empty_is_not_null_where_upstream_tells_them_apart() {
    let value = pod_with(&json!({
        "nodeSelector": {}, "resources": {},
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}, "podAntiAffinity": {}},
    }));
    let spec = pod(&value).spec;
    assert_eq!(spec.node_selector, Some([("", ""); 0].into_iter().collect()));
    assert!(spec.resources.is_some());
    assert_eq!(spec.affinity.node, Some(NodeAffinity { required: None, preferred: Some(vec![]) }));
    assert!(spec.affinity.pod.is_none() && spec.affinity.pod_anti.is_some());

    let plain = json!({"topologyKey": "zone"});
    let empty = json!({"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}, "namespaces": ["a"]});
    let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": [plain, empty]});
    let terms = pod(&pod_with(&json!({"affinity": {"podAffinity": affinity}}))).spec.affinity.pod.unwrap().required;
    assert_eq!((&terms[0].selector, &terms[0].namespace_selector), (&LabelSelector::Nothing, &None));
    assert!(terms[0].applies_to_own_namespace());
    assert_eq!(terms[1].selector, LabelSelector::everything());
    assert_eq!(terms[1].namespace_selector, Some(LabelSelector::everything()));
    assert_eq!(terms[1].namespaces, [Str::from("a")]);
}

#[test]
fn a_null_node_affinity_term_is_one_without_requirements() {
    let terms = json!([null, {"matchExpressions": null}]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let affinity = pod(&pod_with(&json!({"affinity": {"nodeAffinity": required}}))).spec.affinity;
    let terms = affinity.node.unwrap().required.unwrap().terms;
    assert_eq!(terms.len(), 2);
    assert!(terms.iter().all(|t| t.expressions.is_empty() && t.fields.is_empty()));
}

#[test]
fn a_pod_keeps_what_decisions_read() {
    let value = pod_with(&json!({
        "nodeName": "n1", "priority": 7, "priorityClassName": "high", "preemptionPolicy": "Never", "hostUsers": false,
        "hostNetwork": true, "runtimeClassName": "kata", "overhead": {"cpu": "10m"},
        "schedulingGates": [{"name": "example.com/wait"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}],
        "schedulingGroup": {"podGroupName": "gang"}, "terminationGracePeriodSeconds": 30.0,
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
            "minDomains": 3, "nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore"}],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "once", "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}],
    }));
    let spec = pod(&value).spec;
    assert_eq!((&*spec.node_name, spec.priority, &*spec.priority_class), ("n1", Some(7), "high"));
    assert_eq!(spec.preemption_policy, PreemptionPolicy::Never);
    assert!(spec.own_user_namespace && spec.host_network);
    assert_eq!((&*spec.runtime_class, spec.overhead.get("cpu")), ("kata", Some(&quantity("10m"))));
    assert_eq!((&*spec.scheduling_gates[0], &*spec.resource_claims[0]), ("example.com/wait", "gpu"));
    assert_eq!((&*spec.pod_group, spec.termination_grace_period_seconds), ("gang", Some(30)));
    let toleration = &spec.tolerations[0];
    assert_eq!((toleration.op, toleration.effect), (TolerationOperator::Exists, Some(Effect::NoExecute)));
    assert_eq!(toleration.seconds, Some(300));
    let spread = &spec.topology_spread[0];
    assert_eq!((spread.max_skew, spread.min_domains, &spread.selector), (2, 3, &LabelSelector::Nothing));
    assert_eq!(spread.node_affinity_policy, InclusionPolicy::Ignore);
    assert_eq!(spread.node_taints_policy, InclusionPolicy::Honor);
    let [side, once] = &spec.init_containers[..] else { panic!() };
    assert!(side.restart_always && !once.restart_always);
    assert!(!side.restarts_all_containers && once.restarts_all_containers);
}

#[test]
fn only_init_containers_are_sidecars() {
    let spec = pod(&pod_with_container(&json!({"restartPolicy": "Always"}))).spec;
    assert!(!spec.containers[0].restart_always);
}

#[test]
fn metadata_is_kept_without_kubectls_copy() {
    let value = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "42",
            "creationTimestamp": "2026-03-01T00:00:00Z", "deletionTimestamp": "2026-03-01T01:00:00.5+01:00",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "1"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r",
                                 "controller": true}],
        },
        "spec": {"containers": [{"name": "main"}]},
    });
    let meta = pod(&value).meta;
    assert_eq!(meta.key(), "shop/web");
    assert_eq!((&*meta.uid, &*meta.resource_version), ("u", "42"));
    assert_eq!(meta.annotations, [("a", "1")].into_iter().collect());
    assert_eq!(meta.created, Some(Time::from_secs(1_772_323_200)));
    assert_eq!(meta.deleted, Some(Time(1_772_323_200_500_000)));
    assert_eq!(meta.controller().map(|o| (&*o.kind, &*o.name, &*o.uid)), Some(("ReplicaSet", "web", "r")));
}

#[test]
fn status_tells_null_resources_from_empty_ones() {
    let mut value = pod_with(&json!({}));
    value["status"] = json!({
        "phase": "Running", "nominatedNodeName": "n2", "startTime": "2026-03-01T00:00:00Z", "qosClass": "Burstable",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "resources": {"requests": {"cpu": "0.4m"}}, "allocatedResources": {"cpu": "1"},
        "containerStatuses": [
            {"name": "a", "restartCount": 3, "ready": true, "state": {"running": {"startedAt": "2026-03-01T00:00:00Z"}},
             "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": null}}},
            {"name": "b", "resources": {}, "allocatedResources": {"cpu": "2"}, "state": {"waiting": {"reason": "Pull"}}},
        ],
    });
    let status = pod(&value).status;
    assert_eq!((status.phase, &*status.nominated_node, &*status.qos_class), (Phase::Running, "n2", "Burstable"));
    assert!(status.resize_infeasible());
    assert_eq!(status.resources.and_then(|r| r.get("cpu").copied()), Some(quantity("1m")));
    assert_eq!(status.allocated_resources.get("cpu"), Some(&quantity("1")));
    let [a, b] = &status.containers[..] else { panic!() };
    assert_eq!((a.requests.is_none(), a.restart_count, a.ready), (true, 3, true));
    assert_eq!(a.state, ContainerState::Running { started: Some(Time::from_secs(1_772_323_200)) });
    let killed = ContainerState::Terminated { reason: "OOMKilled".into(), exit_code: 137, finished: None };
    assert_eq!(a.last_state, killed);
    assert_eq!((&b.requests, b.allocated.get("cpu")), (&Some([].into()), Some(&quantity("2"))));
    assert_eq!(b.state, ContainerState::Waiting { reason: "Pull".into() });
}

#[test]
fn volumes_are_told_apart_by_their_source() {
    let value = pod_with(&json!({"volumes": [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c", "readOnly": true}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "c", "rbd": {"monitors": ["m"], "image": "i"}},
        {"name": "d", "configMap": {"name": "x"}},
        {"name": "e"},
        {"name": "f", "hostPath": {"path": "/x"}, "emptyDir": null},
        {"name": "g", "image": {"reference": "registry.example/x"}},
    ]}));
    let volumes = pod(&value).spec.volumes;
    let sources: Vec<VolumeSource> = volumes.into_iter().map(|v| v.source).collect();
    assert_eq!(
        sources,
        [
            VolumeSource::PersistentVolumeClaim { claim: "c".into(), read_only: true },
            VolumeSource::Ephemeral,
            VolumeSource::Rbd { monitors: vec!["m".into()], pool: "rbd".into(), image: "i".into(), read_only: false },
            VolumeSource::Other,
            VolumeSource::EmptyDir,
            VolumeSource::HostPath,
            VolumeSource::Image { reference: "registry.example/x".into() },
        ]
    );
}

#[test]
fn ports_default_to_tcp_and_to_the_container_port_on_the_host_network() {
    let ports =
        json!([{"containerPort": 80}, {"containerPort": 53, "hostPort": 5353, "protocol": "UDP", "hostIP": "::"}]);
    let port = |container_port, host_port, protocol: &str, host_ip: &str| ContainerPort {
        container_port,
        host_port,
        protocol: protocol.into(),
        host_ip: host_ip.into(),
    };
    let mut value = pod_with_container(&json!({"ports": ports}));
    let second = port(53, 5353, "UDP", "::");
    assert_eq!(pod(&value).spec.containers[0].ports, [port(80, 0, "TCP", ""), second.clone()]);
    value["spec"]["hostNetwork"] = json!(true);
    assert_eq!(pod(&value).spec.containers[0].ports, [port(80, 80, "TCP", ""), second]);
}

#[test]
fn a_node_keeps_what_decisions_read() {
    let node = node(&json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "namespace": "ignored", "labels": {"zone": "a"}},
        "spec": {"unschedulable": true,
                 "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-03-01T00:00:00Z"}]},
        "status": {
            "allocatable": {"cpu": "3.9999", "memory": 1024, "pods": "110"}, "capacity": {"cpu": 4},
            "conditions": [{"type": "Ready", "status": "True"}], "declaredFeatures": ["F"],
            "images": [{"names": ["a", "b"], "sizeBytes": 5e9}, {"names": null}],
        },
    }));
    assert_eq!((&*node.meta.namespace, node.unschedulable), ("", true));
    assert_eq!(node.taints[0].added, Some(Time::from_secs(1_772_323_200)));
    assert_eq!(node.allocatable["cpu"], quantity("4"));
    assert_eq!(node.allocatable["memory"], quantity("1Ki"));
    assert_eq!((&*node.conditions[0].kind, &*node.declared_features[0]), ("Ready", "F"));
    assert_eq!(node.images[0].size_bytes, 5_000_000_000);
    assert_eq!((node.images[0].names.len(), node.images[1].names.len()), (2, 0));
}

#[test]
fn quantities_come_as_strings_or_numbers() {
    let value = pod_with_container(&json!({"resources": {"requests": {
        "cpu": 2.0, "memory": 1.5e3, "ephemeral-storage": 1e20, "example.com/a": "3", "example.com/b": 4,
    }}}));
    let requests = &pod(&value).spec.containers[0].resources.requests;
    assert_eq!(requests["cpu"], quantity("2"));
    assert_eq!(requests["memory"], quantity("1500"));
    assert_eq!(requests["ephemeral-storage"], quantity("100E"));
    assert_eq!(requests["example.com/a"], quantity("3"));
    assert_eq!(requests["example.com/b"], quantity("4"));
    let value = pod_with_container(&json!({"resources": {"requests": {"cpu": 0.1}}}));
    assert_eq!(pod(&value).spec.containers[0].resources.requests["cpu"], quantity("100m"));
}

#[test]
fn selectors_join_labels_and_expressions() {
    let expression = json!({"key": "tier", "operator": "In", "values": ["x"]});
    let term = json!({"topologyKey": "zone",
                      "labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [expression]}});
    let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let spec = pod(&pod_with(&json!({"affinity": {"podAntiAffinity": affinity}}))).spec;
    assert_eq!(spec.affinity.pod_anti.unwrap().required[0].selector, selector(&[("app", "web"), ("tier", "x")]));
}

#[test]
fn the_pods_that_a_node_avoids_are_in_an_annotation() {
    use crate::model::node::{AvoidedController, PREFER_AVOID_PODS};
    let avoided = |annotation: &str| {
        node(&json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n1", "uid": "u", "annotations": {PREFER_AVOID_PODS: annotation}},
        }))
        .avoided
    };
    let set = AvoidedController { kind: "ReplicaSet".into(), uid: "u1".into() };
    let json = r#"{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "u1"}},
                   "reason": "x"}, {"podSignature": {}}, 7]}"#;
    assert_eq!(avoided(json), [set]);
    for unreadable in ["", "{", "[]", "null", r#"{"preferAvoidPods": {}}"#] {
        assert_eq!(avoided(unreadable), [], "{unreadable}");
    }
}
