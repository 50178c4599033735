//! What preemption proposes, and nominations.

use berth::api::pb;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::*;

fn ranked(name: &str, cpu: &str, priority: i32) -> Value {
    with(pod(name, cpu), "priority", json!(priority))
}

/// A bound pod of this priority that fills n1.
async fn full() -> Berth {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    berth.feed_pods(vec![pod_manifest(&with(ranked("low", "2", 1), "nodeName", json!("n1")))]).await;
    berth
}

async fn ask_for(berth: &Berth, manifest: &Value, nominate: bool) -> pb::ScheduleResponse {
    berth.schedule(pb::ScheduleRequest { nominate, ..ask(manifest) }).await.unwrap()
}

fn names(candidate: &pb::PreemptionCandidate) -> Vec<&str> {
    candidate.victims.iter().map(|v| v.pod.as_ref().unwrap().name.as_str()).collect()
}

#[tokio::test]
async fn a_refused_pod_is_told_who_would_have_to_leave() {
    let berth = full().await;
    let request = pb::ScheduleRequest { detail: pb::DetailLevel::Full.into(), ..ask(&ranked("high", "1", 10)) };
    let answer = berth.schedule(request).await.unwrap();
    let preemption = answer.preemption.unwrap();
    assert_eq!(preemption.status(), pb::PreemptionStatus::Proposed);
    let proposal = preemption.proposal.unwrap();
    assert_eq!((proposal.node.as_str(), names(&proposal), proposal.victims[0].priority), ("n1", vec!["low"], 1));
    assert_eq!((preemption.candidate_count, preemption.candidates.len()), (1, 1));
    assert_eq!(answer.message, "0/1 nodes are available: 1 Insufficient cpu.", "as upstream, nothing is appended");
    assert!(preemption.nominated_until.is_none());

    let answer = ask_for(&berth, &ranked("equal", "1", 1), false).await;
    let preemption = answer.preemption.unwrap();
    assert_eq!((preemption.status(), preemption.proposal), (pb::PreemptionStatus::NoCandidate, None));
    assert!(preemption.message.ends_with("1 No preemption victims found for incoming pod."), "{}", preemption.message);
    assert_eq!(answer.message, format!("{} {}", answer.fit_message, preemption.message));

    let never = with(ranked("never", "1", 10), "preemptionPolicy", json!("Never"));
    let preemption = ask_for(&berth, &never, false).await.preemption.unwrap();
    assert_eq!(preemption.status(), pb::PreemptionStatus::NotEligible);
}

#[tokio::test]
async fn a_pod_that_only_holds_a_reservation_is_a_victim_to_release() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let held = ask_for(&berth, &ranked("low", "2", 1), false).await.reservation.unwrap();
    let preemption = ask_for(&berth, &ranked("high", "1", 10), false).await.preemption.unwrap();
    assert_eq!(preemption.proposal.unwrap().victims[0].reservation_id, held.id);
}

#[tokio::test]
async fn a_nomination_keeps_the_room_that_victims_leave() {
    let berth = full().await;
    let high = ranked("high", "2", 10);
    let preemption = ask_for(&berth, &high, true).await.preemption.unwrap();
    assert!(preemption.nominated_until.is_some());
    let gone = pb::ObjectRef { name: "low".into(), ..Default::default() };
    berth.feed_pods(vec![pb::PodEvent { event: Some(pb::pod_event::Event::Delete(gone)) }]).await;
    for (name, priority, outcome) in [
        ("lower", 9, pb::Outcome::Unschedulable),
        ("equal", 10, pb::Outcome::Unschedulable),
        ("higher", 11, pb::Outcome::Placed),
    ] {
        let request = pb::ScheduleRequest { dry_run: true, ..ask(&ranked(name, "1", priority)) };
        assert_eq!(berth.schedule(request).await.unwrap().outcome(), outcome, "{name}");
    }
    let rows = berth.inspect().list_pods(pb::ListPodsRequest::default()).await.unwrap().into_inner().pods;
    assert!(rows.is_empty(), "a nomination takes no room and makes no pod: {rows:?}");
    assert_eq!(ask_for(&berth, &high, false).await.node, "n1", "it was kept for this one");
    berth.clock.advance_secs(61);
    berth.service.expire_reservations();
    assert_eq!(ask_for(&berth, &ranked("equal", "1", 10), false).await.node, "n1", "placed, it waits no more");
}

#[tokio::test]
async fn a_nomination_ends_with_its_time() {
    let berth = full().await;
    let ttl = Some(prost_types::Duration { seconds: 10, nanos: 0 });
    let request = pb::ScheduleRequest { nominate: true, nomination_ttl: ttl, ..ask(&ranked("high", "2", 10)) };
    berth.schedule(request).await.unwrap();
    let gone = pb::ObjectRef { name: "low".into(), ..Default::default() };
    berth.feed_pods(vec![pb::PodEvent { event: Some(pb::pod_event::Event::Delete(gone)) }]).await;
    let fits = async || ask_for(&berth, &ranked("low-2", "1", 1), false).await.outcome() == pb::Outcome::Placed;
    assert!(!fits().await);
    berth.clock.advance_secs(11);
    assert_eq!(berth.service.expire_reservations(), 1);
    assert!(fits().await);
}

#[tokio::test]
async fn who_waited_for_the_node_with_a_lower_priority_waits_no_more() {
    let berth = full().await;
    ask_for(&berth, &ranked("middle", "2", 5), true).await;
    let mut fed = ranked("fed", "1", 4);
    fed["status"]["nominatedNodeName"] = json!("n1");
    berth.feed_pods(vec![pod_manifest(&fed)]).await;
    let preemption = ask_for(&berth, &ranked("high", "1", 10), true).await.preemption.unwrap();
    let lost: Vec<_> = preemption.lost_nominations.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(lost, ["fed", "middle"]);
    // The same once more changes nothing: nobody is left to lose anything.
    let preemption = ask_for(&berth, &ranked("high", "1", 10), true).await.preemption.unwrap();
    assert_eq!(preemption.lost_nominations, []);
}

#[tokio::test]
async fn a_dry_run_nominates_nothing_and_says_so() {
    let berth = full().await;
    let ttl = Some(prost_types::Duration { seconds: 0, nanos: 0 });
    let request =
        pb::ScheduleRequest { nominate: true, dry_run: true, nomination_ttl: ttl, ..ask(&ranked("high", "2", 10)) };
    let status = berth.schedule(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let fields: Vec<_> =
        status.get_details_bad_request().unwrap().field_violations.into_iter().map(|v| v.field).collect();
    assert_eq!(fields, ["nomination_ttl", "nominate"]);
}
