use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::pod_status::Phase;
use crate::model::testing::{PodBuilder, container, node, pod, selector};
use crate::model::testing_storage::{claim, claim_volume, csi_node, delayed_class, volume};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{Effect, TopologySpreadConstraint};
use crate::service::Service;
use crate::service::source::Source;

fn service(objects: Vec<Object>) -> Service {
    let service = Service::default();
    let mut writer = service.cluster.writer();
    writer.begin();
    for object in objects {
        writer.upsert(Prepared::new(object), Origin::anonymous());
    }
    drop(writer);
    service
}

fn differing(truth: impl Into<Object>, cache: impl Into<Object>) -> Vec<(String, Option<String>, Option<String>)> {
    let fields = differing_fields(&truth.into(), &cache.into());
    fields.into_iter().map(|f| (f.path, f.truth, f.cache)).collect()
}

fn paths(truth: impl Into<Object>, cache: impl Into<Object>) -> Vec<String> {
    differing(truth, cache).into_iter().map(|(path, ..)| path).collect()
}

#[test]
fn a_field_is_told_under_its_kubernetes_name_with_both_values() {
    let told = differing(node("n1").cpu("8").build(), node("n1").zone("z").cordoned().build());
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        told,
        [
            ("metadata.labels[\"topology.kubernetes.io/zone\"]".to_owned(), None, some("z")),
            ("spec.unschedulable".to_owned(), None, some("true")),
            ("status.allocatable[\"cpu\"]".to_owned(), some("8"), some("4")),
        ]
    );
    assert_eq!(
        differing(pod("a").on("n1").build(), pod("a").build()),
        [("spec.nodeName".to_owned(), some("n1"), None), ("status.phase".to_owned(), some("Running"), some("Pending")),]
    );
}

#[test]
fn every_part_of_a_pod_has_a_path() {
    let one = |change: fn(PodBuilder) -> PodBuilder| paths(change(pod("a")).build(), pod("a").build());
    type Change = fn(PodBuilder) -> PodBuilder;
    let cases: [(&str, Change); 12] = [
        ("spec.containers[0].resources.requests[\"cpu\"]", |p| p.cpu("1")),
        ("spec.containers[1].name", |p| p.container(container("x"))),
        ("spec.initContainers[0].restartPolicy", |p| p.init(container("x").sidecar())),
        ("spec.containers[0].ports[0].hostPort", |p| p.host_port("", "TCP", 80)),
        ("spec.nodeSelector", |p| p.with(|p| p.spec.node_selector = Some(crate::model::Labels::default()))),
        ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector", |p| {
            p.pod_anti_affinity("zone", selector(&[("app", "web")]))
        }),
        ("spec.tolerations[0].effect", |p| p.tolerates("k", None, Some(Effect::NoExecute))),
        ("spec.topologySpreadConstraints[0].maxSkew", |p| {
            let when = WhenUnsatisfiable::DoNotSchedule;
            p.spread(TopologySpreadConstraint::new(1, "zone".into(), when, selector(&[])))
        }),
        ("spec.volumes[0].persistentVolumeClaim.claimName", |p| p.volume("v", claim_volume("c"))),
        ("spec.schedulingGates", |p| p.gate("g")),
        ("status.containerStatuses[0].allocatedResources[\"cpu\"]", |p| p.container_in_force("cpu", "1", "2")),
        ("status.conditions[0].type", |p| p.condition("PodScheduled", "True", "")),
    ];
    for (expected, change) in cases {
        let told = one(change);
        assert!(told.iter().any(|path| path == expected), "{expected}: {told:?}");
    }
}

#[test]
fn storage_objects_have_paths_too() {
    assert_eq!(
        paths(volume("v").size("5Gi").claimed_by("c").build(), volume("v").size("6Gi").build()),
        ["spec.capacity[\"storage\"]", "spec.claimRef.name", "spec.claimRef.namespace"]
    );
    assert_eq!(
        paths(claim("c").bound_to("v").build(), claim("c").build())[..1],
        ["metadata.annotations[\"pv.kubernetes.io/bind-completed\"]"]
    );
    assert_eq!(paths(delayed_class("s", "a"), delayed_class("s", "b")), ["provisioner"]);
    assert_eq!(paths(csi_node("n", &[("d", 1)]), csi_node("n", &[("d", 2)])), ["spec.drivers[0].allocatable.count"]);
}

#[test]
fn spelling_is_no_difference() {
    let manifest = |cpu: &str, protocol: Option<&str>| {
        let mut port = json!({ "containerPort": 80 });
        if let Some(protocol) = protocol {
            port["protocol"] = protocol.into();
        }
        let resources = json!({ "limits": { "cpu": cpu } });
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "uid": "u" },
            "spec": { "containers": [{ "name": "c", "image": "x", "ports": [port], "resources": resources }] },
        })
    };
    let service = Service::default();
    let mut told = Truth::default();
    told.add(&service, vec![manifest("1000m", None).into()]).unwrap();
    let mut same = Truth::default();
    same.add(&service, vec![manifest("1", Some("TCP")).into()]).unwrap();
    let objects = same.of_kind(Kind::Pod).map(|(_, object)| object.clone()).collect();
    let comparison = compare(&told, &self::service(objects).cluster.snapshot());
    assert_eq!(comparison.differences, []);
    assert_eq!(comparison.kinds[&Kind::Pod].same, 1);
}

#[test]
fn bad_objects_are_refused_together_and_the_rest_compares() {
    let service = service(vec![node("n1").build().into()]);
    let mut truth = Truth::default();
    let bad =
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "Bad_Name" }, "spec": { "containers": [] } });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n2", "uid": "u" } });
    truth.add(&service, vec![bad.clone().into(), node.into(), Source::Absent, bad.into()]).unwrap();
    let places: Vec<_> = truth.remarks.rejections.iter().map(|r| (r.sequence, r.index, r.errors.len())).collect();
    assert_eq!(places, [(1, 0, 2), (1, 2, 0), (1, 3, 2)]);
    let comparison = compare(&truth, &service.cluster.snapshot());
    let told: Vec<_> = comparison.differences.iter().map(|d| (d.kind, d.object.clone().unwrap().to_string())).collect();
    assert_eq!(
        told,
        [(DifferenceType::ExtraInCache, "Node n1".to_owned()), (DifferenceType::MissingInCache, "Node n2".to_owned())]
    );
}

#[test]
fn only_covered_kinds_can_have_extra_objects() {
    let service = service(vec![node("n1").build().into(), pod("a").build().into()]);
    let kinds = |truth: Truth| -> Vec<Kind> {
        let differences = compare(&truth, &service.cluster.snapshot()).differences;
        differences.iter().map(|d| d.object.as_ref().unwrap().kind).collect()
    };
    assert_eq!(kinds(Truth::default()), []);
    assert_eq!(kinds(Truth::covering(&["Pod".into()]).unwrap()), [Kind::Pod]);
    // Objects of a kind that isn't covered are looked at one by one.
    let mut only_pods = Truth::covering(&["Pod".into()]).unwrap();
    only_pods.extend([Object::from(node("n2").build()), Object::from(pod("a").build())]);
    assert_eq!(kinds(only_pods), [Kind::Node]);
    let Err(crate::service::ServiceError::Invalid(errors)) = Truth::covering(&["Pod".into(), "Deployment".into()])
    else {
        panic!("refused")
    };
    assert_eq!(errors[0].path, "kinds[1]");
}

#[test]
fn long_values_and_many_fields_are_cut() {
    let long = pod("a").annotation("k", &"ä".repeat(1_000)).build();
    let value = differing(long, pod("a").build()).remove(0).1.unwrap();
    assert!(value.len() <= MAX_VALUE_BYTES + 3 && value.ends_with("..."));
    let many = (0..150).fold(pod("a"), |p, i| p.label(&format!("k{i}"), "v")).build();
    let service = service(vec![pod("a").build().into()]);
    let mut truth = Truth::default();
    truth.extend([Object::from(many)]);
    let difference = compare(&truth, &service.cluster.snapshot()).differences.remove(0);
    assert_eq!((difference.fields.len(), difference.fields_omitted), (MAX_FIELDS, 50));
}

#[test]
fn a_view_that_is_not_what_its_objects_make_is_a_mismatch() {
    let service = service(vec![node("n1").build().into(), pod("a").cpu("1").on("n1").build().into()]);
    let mut snapshot = service.cluster.snapshot();
    assert_eq!(compare(&Truth::default(), &snapshot).differences, []);
    let wrong = crate::cluster::PodInfo::on(Arc::new(pod("a").cpu("1").on("n1").build()), "n1".into());
    let wrong = crate::cluster::PodInfo { non_zero: (5, 5), ..wrong };
    snapshot.view.add_pod(Arc::new(wrong));
    let told = compare(&Truth::default(), &snapshot).differences;
    assert!(told.iter().all(|d| d.kind == DifferenceType::ViewMismatch && d.object.is_none()));
    assert!(told.iter().any(|d| d.message.starts_with("node n1: non-zero requests: (5, 5) against")), "{told:#?}");
}

#[test]
fn ended_pods_of_the_truth_that_still_take_room_are_told() {
    let service = service(vec![node("n1").build().into(), pod("a").on("n1").build().into()]);
    let mut truth = Truth::default();
    truth.extend([Object::from(pod("a").on("n1").phase(Phase::Failed).build())]);
    let differences = compare(&truth, &service.cluster.snapshot()).differences;
    let told: Vec<_> = differences.iter().map(|d| (d.kind, d.message.as_str())).collect();
    assert_eq!(told, [(DifferenceType::Different, ""), (DifferenceType::RoomMisplaced, "takes room on n1, has ended")]);
}
