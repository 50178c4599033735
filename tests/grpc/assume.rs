//! What a client replays after Berth restarted: bindings under way, with the volumes that their claims were promised.

use berth::api::pb;
use serde_json::{Value, json};

use crate::support::*;

/// A Berth that knows one node, one free volume and two claims that could have it.
async fn berth() -> Berth {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let claim = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
            "spec": { "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } } },
            "status": { "phase": "Pending" },
        })
    };
    let objects = [
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "local", "uid": "uid-local" },
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "pv1", "uid": "uid-pv1" },
            "spec": { "storageClassName": "local", "capacity": { "storage": "5Gi" }, "accessModes": ["ReadWriteOnce"],
                "local": { "path": "/disk" } },
            "status": { "phase": "Available" },
        }),
        claim("a"),
        claim("b"),
    ];
    let ack = berth.feed_objects(objects.iter().map(object_manifest).collect()).await;
    assert_eq!(ack.applied, 4, "{ack:?}");
    berth
}

fn user(name: &str, claim: &str) -> Value {
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
    with(pod(name, "100m"), "volumes", volumes)
}

async fn assume(berth: &Berth, pod: &Value, volume_bindings: Vec<pb::VolumeBinding>) -> pb::FeedAck {
    let assume = pb::Assume { pod: pod_source(pod), node: "n1".into(), volume_bindings, ..Default::default() };
    berth.feed_pods(vec![pb::PodEvent { event: Some(pb::pod_event::Event::Assume(assume)) }]).await
}

#[tokio::test]
async fn after_a_restart_a_replayed_binding_holds_its_volume() {
    let first = berth().await;
    let placed = first.schedule(ask(&user("p", "a"))).await.unwrap();
    let promised = placed.volume_bindings;
    assert_eq!((promised[0].claim.as_str(), promised[0].volume.as_str()), ("a", "pv1"));
    first.stop().await;

    let second = berth().await;
    assert_eq!(assume(&second, &user("p", "a"), promised).await.applied, 1);
    let refused = second.schedule(ask(&user("q", "b"))).await.unwrap();
    assert_eq!(refused.outcome(), pb::Outcome::Unschedulable, "{refused:?}");

    let forgetful = berth().await;
    assert_eq!(assume(&forgetful, &user("p", "a"), Vec::new()).await.applied, 1);
    let placed = forgetful.schedule(ask(&user("q", "b"))).await.unwrap();
    assert_eq!(placed.outcome(), pb::Outcome::Placed, "nobody told of the volume");
}

#[tokio::test]
async fn a_promise_ends_with_its_reservation() {
    let berth = berth().await;
    let promised = pb::VolumeBinding { claim: "a".into(), volume: "pv1".into(), ..Default::default() };
    assert_eq!(assume(&berth, &user("p", "a"), vec![promised]).await.applied, 1);
    let list = berth.inspect().list_reservations(pb::ListReservationsRequest::default()).await.unwrap().into_inner();
    let request = pb::ReleaseReservationRequest { reservation_id: list.reservations[0].id.clone() };
    berth.scheduler().release_reservation(request).await.unwrap();
    let placed = berth.schedule(ask(&user("q", "b"))).await.unwrap();
    assert_eq!(placed.volume_bindings[0].volume, "pv1");
}

#[tokio::test]
async fn promises_that_can_not_be_are_refused_together() {
    let berth = berth().await;
    let binding = |namespace: &str, claim: &str, volume: &str| pb::VolumeBinding {
        namespace: namespace.into(),
        claim: claim.into(),
        volume: volume.into(),
    };
    let mut pod = user("p", "a");
    pod["spec"]["volumes"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "w", "persistentVolumeClaim": { "claimName": "b" } }));
    let told = vec![
        binding("default", "a", "pv1"),
        binding("", "a", ""),
        binding("other", "b", "pv1"),
        binding("", "c", ""),
        binding("", "", "pv2"),
    ];
    let ack = assume(&berth, &pod, told).await;
    let [refused] = ack.rejections.as_slice() else { panic!("{ack:?}") };
    let fields: Vec<_> =
        refused.violations.iter().map(|v| v.field.trim_start_matches("assume.volume_bindings")).collect();
    assert_eq!(fields, ["[1].claim", "[2].namespace", "[2].volume", "[3].claim", "[4].claim"]);
    assert_eq!(berth.cluster().await.reservations, 0);
}
