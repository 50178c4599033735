//! What batches do, and what their acks say.

use berth::api::pb;
use pb::{RejectionCode, node_event, object_event, pod_event};
use serde_json::json;
use tonic::Code;

use crate::support::*;

fn node_event(event: node_event::Event) -> pb::NodeEvent {
    pb::NodeEvent { event: Some(event) }
}

fn pod_event(event: pod_event::Event) -> pb::PodEvent {
    pb::PodEvent { event: Some(event) }
}

fn typed_meta(name: &str, uid: &str) -> Option<pb::ObjectMeta> {
    Some(pb::ObjectMeta { name: name.into(), uid: uid.into(), ..Default::default() })
}

#[tokio::test]
async fn nodes_are_taken_in_each_form() {
    let berth = Berth::start().await;
    let allocatable = [("cpu", "4"), ("pods", "10")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let typed = pb::Node {
        metadata: typed_meta("typed", "u"),
        status: Some(pb::NodeStatus { allocatable, ..Default::default() }),
        ..Default::default()
    };
    let ack = berth
        .feed_nodes(vec![
            node_event(node_event::Event::Node(typed)),
            node_manifest(&node("manifest", "4")),
            node_event(node_event::Event::ManifestJson(node("json", "4").to_string().into_bytes())),
        ])
        .await;
    assert_eq!((ack.sequence, ack.applied, ack.rejections.len()), (1, 3, 0), "{ack:?}");
    assert_eq!(berth.node_names().await, ["json", "manifest", "typed"]);
    let ack = berth
        .feed_nodes(vec![node_event(node_event::Event::Delete(pb::ObjectRef {
            name: "typed".into(),
            ..Default::default()
        }))])
        .await;
    assert_eq!(ack.applied, 1);
    assert_eq!(berth.node_names().await, ["json", "manifest"]);
}

#[tokio::test]
async fn pods_are_taken_in_each_form() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let typed = pb::Pod {
        metadata: typed_meta("typed", "u"),
        spec: Some(pb::PodSpec {
            node_name: "n1".into(),
            containers: vec![pb::Container { name: "c".into(), image: "app".into(), ..Default::default() }],
            ..Default::default()
        }),
        ..Default::default()
    };
    let bound = with(pod("manifest", "1"), "nodeName", json!("n1"));
    let ack = berth
        .feed_pods(vec![
            pod_event(pod_event::Event::Pod(typed)),
            pod_manifest(&bound),
            pod_event(pod_event::Event::ManifestJson(pod("json", "1").to_string().into_bytes())),
        ])
        .await;
    assert_eq!((ack.applied, ack.rejections.len()), (3, 0), "{ack:?}");
    let states = berth.cluster().await.pods;
    let count = |state: pb::PodState| states.iter().find(|s| s.state() == state).map_or(0, |s| s.count);
    assert_eq!((count(pb::PodState::Bound), count(pb::PodState::Pending)), (2, 1), "{states:?}");
}

#[tokio::test]
async fn other_kinds_are_taken_in_each_form() {
    let berth = Berth::start().await;
    let class = pb::PriorityClass { metadata: typed_meta("high", "u"), value: 1_000, ..Default::default() };
    let typed = pb::Object { object: Some(pb::object::Object::PriorityClass(class)) };
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" } } });
    let ack = berth
        .feed_objects(vec![
            pb::ObjectEvent { event: Some(object_event::Event::Object(typed)) },
            object_manifest(&namespace),
            pb::ObjectEvent { event: Some(object_event::Event::ManifestJson(service.to_string().into_bytes())) },
        ])
        .await;
    assert_eq!((ack.applied, ack.rejections.len()), (3, 0), "{ack:?}");
    let objects: Vec<_> = berth.cluster().await.objects.into_iter().collect();
    let expected = [("Namespace", 1), ("PriorityClass", 1), ("Service", 1)].map(|(k, n)| (k.to_owned(), n));
    assert_eq!(objects, expected);
}

#[tokio::test]
async fn a_bad_item_is_named_and_its_batch_applies() {
    let berth = Berth::start().await;
    let mut bad = node("bad", "4x");
    bad["spec"]["taints"] = json!([{ "key": "a", "effect": "Never" }]);
    let mut big = node("big", "4");
    big["metadata"]["annotations"] = json!({ "a": "x".repeat(2 << 20) });
    let huge = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "huge" },
        "status": { "images": [{ "names": ["a"], "sizeBytes": 9_007_199_254_740_993_u64 }] } });
    let ack = berth
        .feed_nodes(vec![
            node_manifest(&bad),
            pb::NodeEvent { event: None },
            node_event(node_event::Event::ManifestJson(b"{".to_vec())),
            node_manifest(&pod("p", "1")),
            node_event(node_event::Event::ManifestJson(big.to_string().into_bytes())),
            node_manifest(&big),
            node_manifest(&huge),
            node_event(node_event::Event::Delete(pb::ObjectRef { kind: "Node".into(), ..Default::default() })),
            node_manifest(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } })),
            node_manifest(&node("good", "4")),
        ])
        .await;
    assert_eq!(ack.applied, 1);
    let codes: Vec<_> = ack.rejections.iter().map(|r| (r.index, r.code())).collect();
    use RejectionCode::*;
    let expected = [Invalid, Malformed, Malformed, WrongKind, TooLarge, TooLarge, Invalid, Invalid, WrongKind];
    assert_eq!(codes, (0..).zip(expected).collect::<Vec<_>>(), "{:#?}", ack.rejections);
    let fields: Vec<_> = ack.rejections[0].violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["spec.taints[0].effect", "status.allocatable[cpu]"]);
    let named = |i: usize| ack.rejections[i].object.clone().unwrap();
    assert_eq!((named(0).kind.as_str(), named(0).name.as_str()), ("Node", "bad"));
    assert_eq!((named(3).kind.as_str(), named(3).name.as_str()), ("Pod", "p"));
    let integer = &ack.rejections[6].violations[0];
    assert_eq!(integer.field, "status.images[0].sizeBytes");
    assert!(integer.description.contains("manifest_json"), "{integer:?}");
    assert_eq!(berth.node_names().await, ["good"]);
}

#[tokio::test]
async fn acks_are_cumulative() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    for i in 0..50 {
        let events = vec![node_manifest(&node(&format!("n{i}"), "4"))];
        stream.send(pb::UpdateNodesRequest { events, ..Default::default() }).await;
    }
    stream.close();
    let ack = stream.acks_to(50).await;
    assert_eq!((ack.sequence, ack.applied), (50, 50));
    assert_eq!(ack.revision, berth.cluster().await.view.unwrap().revision);
    assert_eq!(stream.ack().await.unwrap_err().code(), Code::Ok, "the stream ends well");
}

#[tokio::test]
async fn a_client_that_reads_no_acks_is_served_all_the_same() {
    const BATCHES: u64 = 40;
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    // Each ack of these would take about 100 KiB: far more in all than the network holds.
    for _ in 0..BATCHES {
        let events = vec![pb::NodeEvent { event: None }; 1_024];
        stream.send(pb::UpdateNodesRequest { events, ..Default::default() }).await;
    }
    stream.send(pb::UpdateNodesRequest { events: vec![node_manifest(&node("last", "1"))], ..Default::default() }).await;
    eventually(async || berth.node_names().await == ["last"]).await;
    let ack = stream.acks_to(BATCHES + 1).await;
    assert_eq!(ack.rejections.len() as u64 + ack.omitted, BATCHES * 1_024);
    assert!(ack.omitted > 0, "some acks were merged");
}

#[tokio::test]
async fn a_batch_has_at_most_1024_events() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    let events = vec![node_manifest(&node("n", "1")); 1_024];
    stream.send(pb::UpdateNodesRequest { events, ..Default::default() }).await;
    assert_eq!(stream.ack().await.unwrap().applied, 1_024);
    let events = vec![node_manifest(&node("m", "1")); 1_025];
    stream.send(pb::UpdateNodesRequest { events, ..Default::default() }).await;
    let status = stream.ack().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("1024"), "{status}");
    assert_eq!(berth.node_names().await, ["n"], "what was acknowledged stays");
}

#[tokio::test]
async fn after_hello_the_sequence_must_grow() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    stream.control(5, hello("a")).await;
    assert_eq!(stream.ack().await.unwrap().sequence, 5);
    stream.send(pb::UpdateNodesRequest { sequence: 5, ..Default::default() }).await;
    let status = stream.ack().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("sequence"), "{status}");
}

#[tokio::test]
async fn after_hello_a_pod_without_uid_is_rejected_and_before_it_is_remarked_on() {
    let berth = Berth::start().await;
    let mut anonymous = pod("a", "1");
    anonymous["metadata"].as_object_mut().unwrap().remove("uid");
    let events = || vec![pod_manifest(&anonymous)];

    let ack = berth.feed_pods(events()).await;
    assert_eq!((ack.applied, ack.warnings.len()), (1, 1), "{ack:?}");
    assert_eq!(ack.warnings[0].warning.as_ref().unwrap().field, "metadata.uid");

    let mut stream = PodStream::open(&berth).await;
    stream.control(1, hello("a")).await;
    stream.send(pb::UpdatePodsRequest { sequence: 2, events: events(), control: None }).await;
    let ack = stream.acks_to(2).await;
    assert_eq!((ack.applied, ack.rejections[0].code()), (0, RejectionCode::MissingUid));
    assert_eq!((ack.rejections[0].sequence, ack.rejections[0].index), (2, 0));
}

#[tokio::test]
async fn hello_comes_first_names_a_source_and_the_right_incarnation() {
    use pb::feed_control::Control;
    let berth = Berth::start().await;
    let refusal = async |controls: &[Control]| {
        let mut stream = NodeStream::open(&berth).await;
        for (sequence, control) in (1..).zip(controls) {
            stream.control(sequence, control.clone()).await;
        }
        loop {
            if let Err(status) = stream.ack().await {
                break status;
            }
        }
    };
    for controls in [&[hello("")][..], &[hello("file")], &[hello("a"), hello("a")]] {
        assert_eq!(refusal(controls).await.code(), Code::InvalidArgument, "{controls:?}");
    }
    let other = pb::Hello { source: "a".into(), epoch: 1, incarnation: "gone".into() };
    assert_eq!(refusal(&[Control::Hello(other)]).await.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_late_delete_spares_the_namesake() {
    let berth = Berth::start().await;
    berth.feed_pods(vec![pod_manifest(&pod("web-0", "1"))]).await;
    let named = |uid: &str| pb::ObjectRef { name: "web-0".into(), uid: uid.into(), ..Default::default() };
    let late = berth.feed_pods(vec![pod_event(pod_event::Event::Delete(named("of-its-forerunner")))]).await;
    assert_eq!((late.applied, late.stale), (0, 1));
    let right = berth.feed_pods(vec![pod_event(pod_event::Event::Delete(named("uid-web-0")))]).await;
    assert_eq!((right.applied, right.stale), (1, 0));
}

#[tokio::test]
async fn an_assume_holds_room_until_the_pod_is_seen() {
    let berth = Berth::with_nodes(&[node("n1", "2"), node("n2", "1")]).await;
    let assume = |name: &str, node: &str, id: &str| {
        pod_event(pod_event::Event::Assume(pb::Assume {
            pod: pod_source(&pod(name, "1500m")),
            node: node.into(),
            reservation_id: id.into(),
            ..Default::default()
        }))
    };
    let ack = berth.feed_pods(vec![assume("a", "n1", "mine"), assume("b", "n9", "")]).await;
    assert_eq!((ack.applied, ack.rejections[0].code()), (1, RejectionCode::UnknownNode));
    let refused = berth.schedule(ask(&pod("c", "1500m"))).await.unwrap();
    assert_eq!(refused.outcome(), pb::Outcome::Unschedulable);
    let list = berth.inspect().list_reservations(pb::ListReservationsRequest::default()).await.unwrap().into_inner();
    let held = &list.reservations[0];
    assert_eq!((held.id.as_str(), held.node.as_str(), held.state()), ("mine", "n1", pb::ReservationState::Assumed));

    // Seen bound: the same binding once more is old news, one elsewhere is wrong.
    berth.feed_pods(vec![pod_manifest(&with(pod("a", "1500m"), "nodeName", json!("n1")))]).await;
    let ack = berth.feed_pods(vec![assume("a", "n1", ""), assume("a", "n2", "")]).await;
    assert_eq!((ack.applied, ack.stale), (0, 1), "{ack:?}");
    assert_eq!((ack.rejections[0].index, ack.rejections[0].code()), (1, RejectionCode::Conflict));
    assert_eq!(berth.cluster().await.reservations, 0);
}

#[tokio::test]
async fn an_assume_with_wrong_fields_says_so() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let ttl = Some(prost_types::Duration { seconds: 3_600, nanos: 1_000_000 });
    let assume = pb::Assume { ttl, ..Default::default() };
    let ack = berth.feed_pods(vec![pod_event(pod_event::Event::Assume(assume))]).await;
    let fields: Vec<_> = ack.rejections[0].violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["assume.pod", "assume.ttl", "assume.node"]);
}
