//! Decisions one by one: outcomes, reservations, and what makes a request impossible.

use berth::api::pb;
use pb::Outcome;
use pb::reason_count::Detail;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::*;

async fn place(berth: &Berth, manifest: &Value) -> pb::ScheduleResponse {
    let response = berth.schedule(ask(manifest)).await.unwrap();
    assert_eq!(response.outcome(), Outcome::Placed, "{response:?}");
    response
}

fn reason(status: &Status) -> String {
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.domain, "berth.dev");
    info.reason
}

#[tokio::test]
async fn a_placed_pod_gets_a_node_and_a_reservation() {
    let berth = Berth::with_nodes(&[node("n1", "4"), node("n2", "4"), node("n3", "1")]).await;
    let response = place(&berth, &pod("p", "2")).await;
    assert_eq!((response.nodes_evaluated, response.feasible_nodes), (3, 2));
    assert!(["n1", "n2"].contains(&response.node.as_str()) && response.score > 0, "{response:?}");
    assert_eq!(response.message, format!("Successfully assigned default/p to {}", response.node));
    assert_eq!((response.profile.as_str(), response.fit_message.as_str()), ("default-scheduler", ""));
    let held = response.reservation.unwrap();
    assert_eq!((&held.node, held.state()), (&response.node, pb::ReservationState::Decided));
    assert_eq!(held.pod.unwrap().uid, "uid-p");
    assert_eq!(held.expires_at.unwrap().seconds - held.created_at.unwrap().seconds, 60);
    let view = response.view.unwrap();
    assert!(view.manual_mode && view.nodes == 3 && !view.incarnation.is_empty());
}

#[tokio::test]
async fn a_pod_is_taken_in_each_form() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let typed = pb::Pod {
        metadata: Some(pb::ObjectMeta { name: "typed".into(), uid: "u".into(), ..Default::default() }),
        spec: Some(pb::PodSpec {
            containers: vec![pb::Container { name: "c".into(), image: "app".into(), ..Default::default() }],
            ..Default::default()
        }),
        status: None,
    };
    let json = pod("json", "1").to_string().into_bytes();
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": "app" }] } } } });
    for source in [
        pb::pod_source::Source::Pod(typed),
        pb::pod_source::Source::Manifest(structure(&pod("manifest", "1"))),
        pb::pod_source::Source::ManifestJson(json),
        pb::pod_source::Source::Manifest(structure(&deployment)),
    ] {
        let pod = Some(pb::PodSource { source: Some(source.clone()) });
        let response = berth.schedule(pb::ScheduleRequest { pod, ..Default::default() }).await.unwrap();
        assert_eq!(response.node, "n1", "{source:?}");
    }
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_is_told_why_with_numbers() {
    let mut tainted = node("n3", "64");
    tainted["spec"]["taints"] = json!([{ "key": "dedicated", "value": "batch", "effect": "NoSchedule" }]);
    let berth = Berth::with_nodes(&[node("n1", "6"), node("n2", "8"), tainted]).await;
    let bound = |name: &str, node: &str| pod_manifest(&with(pod(name, "5"), "nodeName", json!(node)));
    berth.feed_pods(vec![bound("b1", "n1"), bound("b2", "n2")]).await;
    let response = berth.schedule(ask(&pod("p", "5"))).await.unwrap();
    assert_eq!((response.outcome(), response.node.as_str()), (Outcome::Unschedulable, ""));
    let text = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.";
    assert_eq!(response.fit_message, text);
    assert!(response.message.starts_with(text), "{}", response.message);
    let [cpu, taint] = response.reasons.as_slice() else { panic!("{:?}", response.reasons) };
    assert_eq!((cpu.plugin.as_str(), cpu.reason.as_str(), cpu.nodes), ("NodeResourcesFit", "Insufficient cpu", 2));
    assert_eq!((cpu.code(), cpu.example_node.as_str()), (pb::StatusCode::Unschedulable, "n2"));
    let numbers = pb::InsufficientResource { resource: "cpu".into(), requested: 5_000, max_free: 3_000 };
    assert_eq!(cpu.detail, Some(Detail::InsufficientResource(numbers)));
    let detail = pb::UntoleratedTaint { key: "dedicated".into(), value: "batch".into(), effect: "NoSchedule".into() };
    assert_eq!(taint.detail, Some(Detail::UntoleratedTaint(detail)));
    assert_eq!(taint.code(), pb::StatusCode::UnschedulableAndUnresolvable);
    assert!(response.reservation.is_none());
}

#[tokio::test]
async fn gated_unsupported_and_bound_pods_are_outcomes() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let gated = with(pod("gated", "1"), "schedulingGates", json!([{ "name": "example.com/wait" }]));
    let response = berth.schedule(ask(&gated)).await.unwrap();
    assert_eq!(response.outcome(), Outcome::Gated);
    assert!(response.message.contains("example.com/wait"), "{response:?}");

    let claims = json!([{ "name": "gpu", "resourceClaimName": "gpu" }]);
    let response = berth.schedule(ask(&with(pod("dra", "1"), "resourceClaims", claims))).await.unwrap();
    assert_eq!(response.outcome(), Outcome::Unsupported);
    assert!(response.unsupported[0].contains("DynamicResources"), "{response:?}");

    berth.feed_pods(vec![pod_manifest(&with(pod("bound", "1"), "nodeName", json!("n1")))]).await;
    let response = berth.schedule(ask(&pod("bound", "1"))).await.unwrap();
    assert_eq!((response.outcome(), response.node.as_str()), (Outcome::AlreadyBound, "n1"));
    assert_eq!(berth.cluster().await.reservations, 0);
}

#[tokio::test]
async fn before_it_is_ready_berth_is_unavailable_and_says_when_to_retry() {
    let berth = Berth::start().await;
    let status = berth.schedule(ask(&pod("p", "1"))).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "NOT_READY"));
    assert!(status.get_details_retry_info().unwrap().retry_delay.is_some());
    assert!(status.message().contains("UpdateNodes"), "{status}");
}

#[tokio::test]
async fn unknown_profiles_and_candidates_are_not_found() {
    let berth = Berth::with_nodes(&[node("n1", "4"), node("n2", "4")]).await;
    let request = pb::ScheduleRequest { profile: "nope".into(), ..ask(&pod("p", "1")) };
    let status = berth.schedule(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "PROFILE_NOT_FOUND"));
    let own = berth.schedule(ask(&with(pod("p", "1"), "schedulerName", json!("other")))).await.unwrap_err();
    assert_eq!(own.code(), Code::NotFound);

    let candidates = |names: &[&str]| pb::ScheduleRequest {
        candidate_nodes: names.iter().map(ToString::to_string).collect(),
        ..ask(&pod("p", "1"))
    };
    let status = berth.schedule(candidates(&["n1", "n9"])).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "NODE_NOT_FOUND"));
    let response = berth.schedule(candidates(&["n2"])).await.unwrap();
    assert_eq!((response.node.as_str(), response.nodes_evaluated), ("n2", 1));
}

#[tokio::test]
async fn revisions_and_incarnations_are_checked() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let view = berth.cluster().await.view.unwrap();
    let at = |revision, incarnation: &str| pb::ScheduleRequest {
        min_revision: Some(revision),
        incarnation: incarnation.into(),
        dry_run: true,
        ..ask(&pod("p", "1"))
    };
    berth.schedule(at(view.revision, &view.incarnation)).await.unwrap();
    let status = berth.schedule(at(view.revision + 1, "")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "REVISION_NOT_REACHED"));
    assert!(status.get_details_retry_info().is_some());
    let status = berth.schedule(at(0, "another")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "OTHER_INCARNATION"));
}

#[tokio::test]
async fn a_dry_run_takes_no_room() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    for name in ["a", "b"] {
        let request = pb::ScheduleRequest { dry_run: true, ..ask(&pod(name, "1")) };
        let response = berth.schedule(request).await.unwrap();
        assert_eq!((response.node.as_str(), response.reservation), ("n1", None));
    }
    // A pod's own reservation isn't in its way.
    place(&berth, &pod("a", "1")).await;
    let again = pb::ScheduleRequest { dry_run: true, ..ask(&pod("a", "1")) };
    assert_eq!(berth.schedule(again).await.unwrap().node, "n1");
}

#[tokio::test]
async fn asking_again_gives_the_same_reservation() {
    let berth = Berth::with_nodes(&[node("n1", "4"), node("n2", "4")]).await;
    let first = place(&berth, &pod("p", "1")).await;
    berth.clock.advance_secs(10);
    let second = place(&berth, &pod("p", "1")).await;
    let (first_held, second_held) = (first.reservation.unwrap(), second.reservation.unwrap());
    assert_eq!((first_held.id, first.node), (second_held.id, second.node));
    assert_eq!(second.previous_node, "");
    assert_eq!(second_held.expires_at.unwrap().seconds - first_held.expires_at.unwrap().seconds, 10, "renewed");
}

#[tokio::test]
async fn a_reservation_that_no_longer_passes_is_replaced() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let first = place(&berth, &pod("p", "1")).await;
    let mut cordoned = node("n1", "4");
    cordoned["spec"]["unschedulable"] = json!(true);
    berth.feed_nodes(vec![node_manifest(&cordoned), node_manifest(&node("n2", "4"))]).await;
    let second = place(&berth, &pod("p", "1")).await;
    assert_eq!((second.node.as_str(), second.previous_node.as_str()), ("n2", "n1"));
    assert_ne!(first.reservation.unwrap().id, second.reservation.unwrap().id);
    assert_eq!(berth.cluster().await.reservations, 1);
}

#[tokio::test]
async fn room_is_held_until_it_is_released() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    let held = place(&berth, &pod("a", "1")).await.reservation.unwrap();
    assert_eq!(berth.schedule(ask(&pod("b", "1"))).await.unwrap().outcome(), Outcome::Unschedulable);
    let release = async |id: &str| {
        let request = pb::ReleaseReservationRequest { reservation_id: id.into() };
        berth.scheduler().release_reservation(request).await.map(tonic::Response::into_inner)
    };
    assert!(release(&held.id).await.unwrap().released);
    assert!(!release(&held.id).await.unwrap().released);
    assert!(!release("unknown").await.unwrap().released);
    assert_eq!(release("").await.unwrap_err().code(), Code::InvalidArgument);
    place(&berth, &pod("b", "1")).await;
}

#[tokio::test]
async fn the_pods_own_update_confirms_its_reservation() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    place(&berth, &pod("a", "1")).await;
    berth.feed_pods(vec![pod_manifest(&pod("a", "1"))]).await;
    assert_eq!(berth.cluster().await.reservations, 1, "an update without nodeName leaves it alone");
    berth.feed_pods(vec![pod_manifest(&with(pod("a", "1"), "nodeName", json!("n1")))]).await;
    let cluster = berth.cluster().await;
    assert_eq!(cluster.reservations, 0);
    let cpu = cluster.resources.iter().find(|r| r.resource == "cpu").unwrap();
    assert_eq!((cpu.requested, cpu.allocatable), (1_000, 1_000), "counted once");
    berth.clock.advance_secs(3_600);
    assert_eq!(berth.service.expire_reservations(), 0);
    assert_eq!(berth.schedule(ask(&pod("b", "1"))).await.unwrap().outcome(), Outcome::Unschedulable);
}

#[tokio::test]
async fn a_reservation_ends_with_its_time() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    let ttl = Some(prost_types::Duration { seconds: 5, nanos: 0 });
    let request = pb::ScheduleRequest { reservation_ttl: ttl, ..ask(&pod("a", "1")) };
    berth.schedule(request).await.unwrap();
    berth.clock.advance_secs(4);
    assert_eq!(berth.service.expire_reservations(), 0);
    berth.clock.advance_secs(1);
    assert_eq!(berth.service.expire_reservations(), 1);
    place(&berth, &pod("b", "1")).await;
}

#[tokio::test]
async fn a_malformed_request_lists_every_mistake_with_its_path() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let mut wrong = pod("p", "1x");
    wrong["spec"]["tolerations"] = json!([{ "operator": "Equals" }]);
    wrong["spec"]["priority"] = json!(9_007_199_254_740_993_u64);
    let status = berth.schedule(ask(&wrong)).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::InvalidArgument, "INVALID_FIELDS"));
    assert!(status.message().starts_with("Pod default/p is invalid: "), "{status}");
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let mut fields: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
    fields.sort_unstable();
    let expected = ["spec.containers[0].resources.requests[cpu]", "spec.priority", "spec.tolerations[0].operator"];
    assert_eq!(fields, expected);
    let big = violations.iter().find(|v| v.field == "spec.priority").unwrap();
    assert!(big.description.contains("quote it") && big.description.contains("manifest_json"), "{big:?}");

    let field = async |request: pb::ScheduleRequest| {
        let status = berth.schedule(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        status.get_details_bad_request().unwrap().field_violations[0].field.clone()
    };
    assert_eq!(field(pb::ScheduleRequest::default()).await, "pod");
    let json = pb::PodSource { source: Some(pb::pod_source::Source::ManifestJson(b"{]".to_vec())) };
    assert_eq!(field(pb::ScheduleRequest { pod: Some(json), ..Default::default() }).await, "pod");
    for (seconds, nanos) in [(0, 999_999_999), (3_600, 1_000), (-5, 0), (i64::MAX, 0)] {
        let ttl = Some(prost_types::Duration { seconds, nanos });
        assert_eq!(field(pb::ScheduleRequest { reservation_ttl: ttl, ..ask(&pod("p", "1")) }).await, "reservation_ttl");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_given_up_takes_no_room() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    // How long the server takes to notice is its own affair, so this tries again with more patience.
    for patience in 1.. {
        assert!(patience < 50, "never noticed");
        let writer = berth.service.cluster.writer();
        let (mut scheduler, request) = (berth.scheduler(), ask(&pod("p", "1")));
        let call = tokio::spawn(async move { scheduler.schedule(request).await });
        let wait = std::time::Duration::from_millis(20 * patience);
        // The writer is held meanwhile on purpose, so that the decision can't begin.
        std::thread::sleep(wait);
        call.abort();
        std::thread::sleep(wait);
        drop(writer);
        for i in 0..20 {
            let request = pb::ScheduleRequest { dry_run: true, ..ask(&pod(&format!("q{i}"), "1")) };
            berth.schedule(request).await.unwrap();
        }
        let reserved = berth.service.cluster.writer().reservations().of_pod("uid-p").map(|r| r.id.clone());
        match reserved {
            None => break,
            Some(id) => assert!(berth.service.release(&id).0),
        }
    }
}
