//! WatchRetries, and what a refusal says to wait for.

use berth::api::pb;
use pb::{ActionType, EventResource, Outcome};
use serde_json::json;
use tonic::{Code, Streaming};
use tonic_types::StatusExt;

use crate::support::*;

type Watch = Streaming<pb::WatchRetriesResponse>;

/// A watch that has had its first message.
async fn watch(berth: &Berth, request: pb::WatchRetriesRequest) -> (Watch, pb::WatchRetriesResponse) {
    let mut stream = within(berth.scheduler().watch_retries(request)).await.unwrap().into_inner();
    let first = next(&mut stream).await;
    (stream, first)
}

async fn next(stream: &mut Watch) -> pb::WatchRetriesResponse {
    within(stream.message()).await.unwrap().unwrap()
}

/// What the server's clock would do.
async fn look(berth: &Berth) {
    let service = berth.service.clone();
    tokio::task::spawn_blocking(move || service.look_for_retries()).await.unwrap();
}

fn events(events: &[pb::ClusterEvent]) -> Vec<(EventResource, ActionType)> {
    events.iter().map(|e| (e.resource(), e.action())).collect()
}

#[tokio::test]
async fn a_refusal_says_what_could_change_it_and_a_placed_pod_waits_for_nothing() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let refused = berth.schedule(ask(&pod("p", "3"))).await.unwrap();
    let full = [
        (EventResource::Node, ActionType::Add),
        (EventResource::Node, ActionType::UpdateNodeAllocatable),
        (EventResource::AssignedPod, ActionType::Delete),
        (EventResource::AssignedPod, ActionType::UpdatePodScaleDown),
        (EventResource::UnschedulablePod, ActionType::UpdatePodScaleDown),
    ];
    assert_eq!(events(&refused.retry_on), full);
    let gated = with(pod("g", "1"), "schedulingGates", json!([{ "name": "wait" }]));
    let gated = berth.schedule(ask(&gated)).await.unwrap();
    let gates = (EventResource::UnschedulablePod, ActionType::UpdatePodSchedulingGatesEliminated);
    assert_eq!((gated.outcome(), events(&gated.retry_on)), (Outcome::Gated, vec![gates]));
    assert_eq!(berth.schedule(ask(&pod("q", "1"))).await.unwrap().retry_on, []);
}

#[tokio::test]
async fn a_freed_pod_is_named_to_every_watcher_and_can_then_be_placed() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let (mut one, first) = watch(&berth, pb::WatchRetriesRequest::default()).await;
    assert!(!first.incarnation.is_empty() && !first.overflow && first.retries.is_empty(), "{first:?}");
    let of_default = pb::WatchRetriesRequest { profiles: vec!["default-scheduler".into()], ..Default::default() };
    let (mut two, _) = watch(&berth, of_default).await;
    assert_eq!(berth.schedule(ask(&pod("p", "3"))).await.unwrap().outcome(), Outcome::Unschedulable);
    let ack = berth.feed_nodes(vec![node_manifest(&node("n2", "4"))]).await;
    look(&berth).await;
    for stream in [&mut one, &mut two] {
        let message = next(stream).await;
        let [retry] = &message.retries[..] else { panic!("{message:?}") };
        let object = retry.pod.as_ref().unwrap();
        assert_eq!((object.kind.as_str(), object.namespace.as_str(), object.uid.as_str()), ("Pod", "default", "uid-p"));
        assert_eq!((retry.profile.as_str(), retry.revision), ("default-scheduler", ack.revision));
        assert!(events(&retry.events).contains(&(EventResource::Node, ActionType::Add)), "{retry:?}");
    }
    let (_late, first) = watch(&berth, pb::WatchRetriesRequest::default()).await;
    assert_eq!(first.retries.len(), 1, "who comes late gets it with the first message");
    assert_eq!(berth.schedule(ask(&pod("p", "3"))).await.unwrap().node, "n2");
    let (_later, first) = watch(&berth, pb::WatchRetriesRequest::default()).await;
    assert_eq!(first.retries, []);
}

#[tokio::test]
async fn a_client_of_an_earlier_incarnation_is_told_to_retry_all() {
    let berth = Berth::start().await;
    let earlier = pb::WatchRetriesRequest { incarnation: "earlier".into(), ..Default::default() };
    let (_stream, first) = watch(&berth, earlier).await;
    assert!(first.overflow);
}

#[tokio::test]
async fn an_unknown_profile_and_one_watcher_too_many_are_typed_errors() {
    let berth = Berth::start().await;
    let unknown = pb::WatchRetriesRequest { profiles: vec!["none".into()], ..Default::default() };
    assert_eq!(within(berth.scheduler().watch_retries(unknown)).await.unwrap_err().code(), Code::NotFound);
    let mut watches = Vec::new();
    let status = loop {
        assert!(watches.len() <= berth::service::retries::MAX_WATCHERS);
        match within(berth.scheduler().watch_retries(pb::WatchRetriesRequest::default())).await {
            Ok(stream) => watches.push(stream),
            Err(status) => break status,
        }
    };
    assert_eq!(watches.len(), berth::service::retries::MAX_WATCHERS);
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.get_details_error_info().unwrap().reason, "TOO_MANY_WATCHERS");
    drop(watches);
    eventually(|| async { within(berth.scheduler().watch_retries(pb::WatchRetriesRequest::default())).await.is_ok() })
        .await;
}

#[tokio::test]
async fn a_watch_ends_with_its_deadline_and_with_the_server() {
    let berth = Berth::start().await;
    let mut request = tonic::Request::new(pb::WatchRetriesRequest::default());
    request.set_timeout(std::time::Duration::from_secs(1));
    let mut short = within(berth.scheduler().watch_retries(request)).await.unwrap().into_inner();
    next(&mut short).await;
    assert_eq!(within(short.message()).await.unwrap_err().code(), Code::DeadlineExceeded);
    let (mut stream, _) = watch(&berth, pb::WatchRetriesRequest::default()).await;
    let stopping = tokio::spawn(berth.stop());
    assert_eq!(within(stream.message()).await.unwrap_err().code(), Code::Unavailable);
    drop(stream);
    within(stopping).await.unwrap();
}
