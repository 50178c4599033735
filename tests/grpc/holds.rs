//! Landings of a plan that are held for its replacements, over gRPC. The life of a hold is tested edge by edge in
//! `src/service/holds_tests.rs`.

use berth::api::pb;
use pb::suggest_evictions_request::PolicySource as Form;
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::*;

fn request(mode: pb::EvictionMode, ttl_seconds: i64) -> pb::SuggestEvictionsRequest {
    let policy = "{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy}";
    pb::SuggestEvictionsRequest {
        policy_source: Some(Form::PolicyText(policy.into())),
        mode: mode.into(),
        hold_landings: true,
        hold_ttl: Some(prost_types::Duration { seconds: ttl_seconds, nanos: 0 }),
        ..Default::default()
    }
}

#[tokio::test]
async fn only_planned_landings_can_be_held_and_for_a_second_to_an_hour() {
    let berth = Berth::with_nodes(&[node("n1", "4"), node("n2", "4")]).await;
    for (mode, ttl, wrong) in [
        (pb::EvictionMode::Compatible, 0, &["hold_ttl", "hold_landings"][..]),
        (pb::EvictionMode::Planned, 3_601, &["hold_ttl"]),
        (pb::EvictionMode::Compatible, 60, &["hold_landings"]),
    ] {
        let status = within(berth.evictions().suggest_evictions(request(mode, ttl))).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations.iter().map(|v| v.field.as_str()).collect::<Vec<_>>(), wrong);
    }
    assert!(within(berth.evictions().suggest_evictions(request(pb::EvictionMode::Planned, 3_600))).await.is_ok());
}

const LOW_NODE_UTILIZATION: &str = "
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
";

fn replica(name: &str) -> serde_json::Value {
    let mut pod = pod(name, "500m");
    pod["metadata"]["ownerReferences"] = serde_json::json!(
        [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": true }]
    );
    pod
}

fn running(name: &str, node: &str) -> pb::PodEvent {
    let mut pod = with(replica(name), "nodeName", serde_json::json!(node));
    pod["status"] = serde_json::json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    pod_manifest(&pod)
}

#[tokio::test]
async fn a_plan_with_held_landings_is_carried_out_while_other_pods_arrive() {
    let berth = Berth::with_nodes(&[node("n1", "4"), node("n2", "4")]).await;
    berth.feed_pods((0..6).map(|i| running(&format!("web-{i}"), "n1")).collect()).await;
    let hold = |hold_landings| pb::SuggestEvictionsRequest {
        policy_source: Some(Form::PolicyText(LOW_NODE_UTILIZATION.into())),
        hold_landings,
        ..Default::default()
    };
    let suggest = async |request| within(berth.evictions().suggest_evictions(request)).await.unwrap().into_inner();
    let plan = suggest(hold(true)).await;
    assert_eq!(plan.suggestions.len(), 2, "{plan:?}");
    let ids = |plan: &pb::SuggestEvictionsResponse| -> Vec<String> {
        plan.suggestions.iter().map(|s| s.hold.as_ref().unwrap().reservation_id.clone()).collect()
    };
    let list = berth.inspect().list_reservations(pb::ListReservationsRequest::default()).await.unwrap().into_inner();
    assert_eq!(list.reservations.len(), 2);
    for suggestion in &plan.suggestions {
        let id = &suggestion.hold.as_ref().unwrap().reservation_id;
        let held = list.reservations.iter().find(|held| held.id == *id).unwrap();
        assert_eq!((held.state(), held.node.as_str()), (pb::ReservationState::Held, "n2"));
        assert_eq!(held.pod.as_ref().unwrap().uid, format!("hold:{}", suggestion.pod.as_ref().unwrap().uid));
        assert_eq!(suggestion.landing.as_ref().unwrap().node, "n2");
    }
    assert_eq!(berth.cluster().await.pods[0].count, 6, "holds are no pods");

    // With its holds alive the plan is the same, and so are they.
    let again = suggest(hold(true)).await;
    let moves = |plan: &pb::SuggestEvictionsResponse| -> Vec<_> {
        plan.suggestions.iter().map(|s| (s.pod.clone(), s.landing.clone(), s.gain.clone())).collect()
    };
    assert_eq!((moves(&again), ids(&again)), (moves(&plan), ids(&plan)));

    // 4 cores less 1 that is held.
    let stranger = berth.schedule(ask(&pod("stranger", "3500m"))).await.unwrap();
    assert_eq!(stranger.outcome(), pb::Outcome::Unschedulable);
    for (i, suggestion) in plan.suggestions.iter().enumerate() {
        let evicted = suggestion.pod.clone().unwrap();
        berth.feed_pods(vec![pb::PodEvent { event: Some(pb::pod_event::Event::Delete(evicted)) }]).await;
        let replacement = berth.schedule(ask(&replica(&format!("new-{i}")))).await.unwrap();
        assert_eq!((replacement.node.as_str(), &replacement.hold_taken), ("n2", &ids(&plan)[i]));
    }
    assert_eq!(suggest(hold(false)).await.suggestions.len(), 0, "nothing is left to do");
}
