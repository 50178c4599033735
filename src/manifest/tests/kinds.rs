//! Which objects are read, skipped and refused, and the kinds other than Pod and Node.

use serde_json::{Value, json};

use super::super::{Item, Options, object, objects};
use super::mistakes;
use crate::model::pdb::IntOrPercent;
use crate::model::storage::{AccessMode, BindingMode, PvSource, VolumeMode};
use crate::model::testing::{quantity, selector};
use crate::model::{Kind, LabelSelector, Object};

fn named(api_version: &str, kind: &str, fields: &Value) -> Value {
    let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
    for (field, field_value) in fields.as_object().into_iter().flatten() {
        value[field] = field_value.clone();
    }
    value
}

fn read(api_version: &str, kind: &str, fields: &Value) -> Object {
    object(&named(api_version, kind, fields), Options::default()).unwrap_or_else(|e| panic!("{e}")).value
}

/// `read!(Service, "v1", {...})`: the object of that variant.
macro_rules! read {
    ($variant:ident, $api_version:literal, $($fields:tt)*) => {
        match read($api_version, Kind::$variant.as_str(), &json!($($fields)*)) {
            Object::$variant(object) => object,
            other => panic!("{other:?}"),
        }
    };
}

#[test]
fn every_kind_is_read_in_its_group_and_refused_in_another() {
    for kind in Kind::ALL {
        let (right, wrong) = match kind {
            Kind::ReplicaSet | Kind::StatefulSet => ("apps/v1", "v1"),
            Kind::PodDisruptionBudget => ("policy/v1beta1", "policy.k8s.io/v1"),
            Kind::PriorityClass => ("scheduling.k8s.io/v1alpha1", "scheduling/v1"),
            Kind::RuntimeClass => ("node.k8s.io/v1", "v1"),
            Kind::NodeMetrics | Kind::PodMetrics => ("metrics.k8s.io/v1beta1", "v1beta1"),
            Kind::StorageClass
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::CsiStorageCapacity
            | Kind::VolumeAttachment => ("storage.k8s.io/v1", "storage.k8s.io/first"),
            _ => ("v1", "apps/v1"),
        };
        let fields = json!({"spec": {"containers": [{"name": "c"}], "attacher": "a", "nodeName": "n"},
                            "storageClassName": "s"});
        let parsed = object(&named(right, kind.as_str(), &fields), Options::default());
        assert_eq!(parsed.map(|p| p.value.kind()), Ok(*kind));
        let found = mistakes(&named(wrong, kind.as_str(), &fields));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("apiVersion: Unsupported value"), "{found:?}");
    }
}

#[test]
fn old_groups_are_taken() {
    assert!(matches!(read("extensions/v1beta1", "ReplicaSet", &json!({})), Object::ReplicaSet(_)));
    assert_eq!(mistakes(&json!({"kind": "Node", "metadata": {"name": "n"}})), ["apiVersion: Required value"]);
}

#[test]
fn kinds_that_arent_read_are_skipped_in_lists_and_refused_alone() {
    let list = json!([
        named("v1", "ConfigMap", &json!({})),
        named("serving.knative.dev/v1", "Service", &json!({})),
        named("v1", "Service", &json!({})),
        named("v1", "pod", &json!({})),
        {"metadata": {"name": "x"}},
        7,
    ]);
    let found = objects(&list, Options::default());
    assert!(matches!(&found[0], Item::Skipped { kind } if kind == "ConfigMap"));
    assert!(matches!(&found[1], Item::Skipped { kind } if kind == "Service.serving.knative.dev"));
    assert!(matches!(&found[2], Item::Read(_)));
    let errors: Vec<String> = found[3..]
        .iter()
        .map(|i| match i {
            Item::Invalid(error) => error.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        errors,
        [
            "pod x is invalid: kind: Unsupported value: \"pod\": supported values: \"Pod\"",
            "object without a kind x is invalid: kind: Required value",
            "object without a kind is invalid: expected an object",
        ]
    );
    let alone = object(&named("v1", "ConfigMap", &json!({})), Options::default()).unwrap_err().to_string();
    assert!(
        alone.starts_with("ConfigMap x is invalid: kind: Unsupported value: \"ConfigMap\": supported values: \"CSI")
    );
}

#[test]
fn lists_of_every_sort_are_flattened() {
    let typed = json!({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]});
    let metrics = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList",
        "items": [{"metadata": {"name": "p"}, "containers": [{"name": "c", "usage": {"cpu": "123456789n"}}]}]});
    let empty = json!({"apiVersion": "v1", "kind": "PodList", "items": null});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [typed, metrics, empty, {"kind": "List"}]});
    let found: Vec<Object> = objects(&list, Options::default())
        .into_iter()
        .map(|i| match i {
            Item::Read(parsed) => parsed.value,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].kind(), Kind::Node);
    let Object::PodMetrics(metrics) = &found[1] else { panic!() };
    assert_eq!(metrics.containers[0].1["cpu"], quantity("123456789n"));
    let broken = objects(&json!({"apiVersion": "v1", "kind": "PodList", "items": {}}), Options::default());
    assert!(matches!(&broken[..], [Item::Invalid(e)] if e.to_string() == "PodList is invalid: items: expected a list"));
}

#[test]
fn services_and_owners() {
    let service = read!(Service, "v1", {"spec": {"selector": {"a": "b"}}});
    assert_eq!(service.selector, Some([("a", "b")].into_iter().collect()));
    assert_eq!(read!(Service, "v1", {"spec": {"selector": null}}).selector, None);
    let controller = read!(ReplicationController, "v1", {"spec": {"replicas": 3, "selector": {"a": "b"}}});
    assert_eq!((controller.replicas, controller.selector.is_some()), (3, true));
    assert_eq!(read!(ReplicationController, "v1", {"spec": {}}).selector, None);
    let set = read!(ReplicaSet, "apps/v1", {"spec": {"selector": {"matchLabels": {"a": "b"}}}});
    assert_eq!((set.replicas, &set.selector), (1, &selector(&[("a", "b")])));
    assert_eq!(read!(StatefulSet, "apps/v1", {}).selector, LabelSelector::Nothing);
}

#[test]
fn disruption_budgets() {
    let pdb = read!(PodDisruptionBudget, "policy/v1", {
        "spec": {"selector": {}, "minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 4,
                   "disruptedPods": {"b": "2026-03-01T00:00:00Z", "a": null}},
    });
    assert_eq!((pdb.min_available, pdb.max_unavailable), (Some(IntOrPercent::Percent(50)), None));
    assert_eq!(pdb.selector, LabelSelector::everything());
    assert!(pdb.always_allow_unhealthy);
    assert_eq!((pdb.disruptions_allowed, pdb.current_healthy, pdb.desired_healthy, pdb.expected_pods), (1, 3, 2, 4));
    assert_eq!(pdb.disrupted_pods.iter().map(|p| &**p).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(read!(PodDisruptionBudget, "policy/v1", {"spec": {}}).selector, LabelSelector::Nothing);
    assert_eq!(
        read!(PodDisruptionBudget, "policy/v1beta1", {"spec": {"selector": {}}}).selector,
        LabelSelector::Nothing
    );
    let spec = json!({"minAvailable": "half", "maxUnavailable": -1, "unhealthyPodEvictionPolicy": "Never",
                      "selector": {"matchLabels": {"a": "-"}}});
    let found = mistakes(&named("policy/v1", "PodDisruptionBudget", &json!({"spec": spec})));
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found[0].starts_with("spec.selector.matchLabels[a]: Invalid value: \"-\""));
    assert!(found[1].starts_with("spec.minAvailable: Invalid value: \"half\": a valid percent string"));
    assert_eq!(found[2], "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0");
}

#[test]
fn classes() {
    let class = read!(PriorityClass, "scheduling.k8s.io/v1", {"value": -5, "globalDefault": true,
                                                             "preemptionPolicy": "Never"});
    assert_eq!((class.value, class.global_default), (-5, true));
    let class = read!(RuntimeClass, "node.k8s.io/v1", {"handler": "x", "overhead": {"podFixed": {"cpu": "0.1m"}}});
    assert_eq!(class.overhead["cpu"], quantity("1m"));
}

#[test]
fn storage() {
    let pv = read!(PersistentVolume, "v1", {
        "spec": {"capacity": {"storage": "1.5Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
                 "storageClassName": "fast", "claimRef": {"namespace": "a", "name": "b", "uid": "c"},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a"]}]}]}},
                 "csi": {"driver": "d", "volumeHandle": "h"}},
        "status": {"phase": "Available"},
    });
    assert_eq!((pv.capacity, &pv.access_modes[..]), (quantity("1.5Gi"), &[AccessMode::ReadWriteOnce][..]));
    assert_eq!((pv.volume_mode, &*pv.storage_class, &*pv.phase), (VolumeMode::Block, "fast", "Available"));
    assert_eq!(pv.source, PvSource::Csi { driver: "d".into(), handle: "h".into() });
    assert!(pv.node_affinity.is_some() && pv.claim_ref.is_some());

    let pvc = read!(PersistentVolumeClaim, "v1", {"spec": {"resources": {"requests": {"storage": "1"}},
                                                           "storageClassName": "", "volumeName": "pv"}});
    assert_eq!((pvc.request, pvc.storage_class.as_deref(), &*pvc.volume_name), (quantity("1"), Some(""), "pv"));
    assert_eq!((&pvc.selector, pvc.volume_mode), (&None, VolumeMode::Filesystem));
    assert_eq!(read!(PersistentVolumeClaim, "v1", {"spec": {}}).storage_class, None);
    let annotated = json!({"name": "x", "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}});
    let pvc = read!(PersistentVolumeClaim, "v1", {"metadata": annotated, "spec": {"storageClassName": "new"}});
    assert_eq!(pvc.storage_class.as_deref(), Some("old"));

    let class = read!(StorageClass, "storage.k8s.io/v1", {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}, {}]});
    assert_eq!(class.binding_mode, Some(BindingMode::WaitForFirstConsumer));
    let labels = [("zone", "a")].into_iter().collect();
    assert!(class.allowed_topologies[0].matches("n", &labels) && !class.allowed_topologies[1].matches("n", &labels));

    let unsaid = read!(StorageClass, "storage.k8s.io/v1", {"provisioner": "p"});
    assert_eq!(unsaid.binding_mode, Some(BindingMode::Immediate), "the API server's default");

    let node = read!(CsiNode, "storage.k8s.io/v1", {"spec": {"drivers": [
        {"name": "d", "nodeID": "n", "topologyKeys": ["zone"], "allocatable": {"count": 5}}, {"name": "e", "nodeID": "n"}]}});
    assert_eq!((node.drivers[0].count, node.drivers[1].count), (Some(5), None));
    let driver = read!(CsiDriver, "storage.k8s.io/v1", {"spec": {"storageCapacity": true}});
    assert!(driver.storage_capacity && !driver.prevent_scheduling_if_missing);
    let capacity = read!(CsiStorageCapacity, "storage.k8s.io/v1", {"storageClassName": "s", "capacity": "1Gi"});
    assert_eq!((capacity.capacity, capacity.maximum_volume_size), (Some(quantity("1Gi")), None));
    assert_eq!(capacity.node_topology, LabelSelector::Nothing);
    let attachment = read!(VolumeAttachment, "storage.k8s.io/v1", {"spec": {"attacher": "d", "nodeName": "n",
        "source": {"persistentVolumeName": "pv"}}});
    assert_eq!((&*attachment.attacher, &*attachment.node, &*attachment.volume), ("d", "n", "pv"));
}
