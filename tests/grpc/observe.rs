//! What is seen of calls from outside: request ids in answers, and the metrics that calls move.

use berth::api::pb;
use tokio_stream::once;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request};

use crate::support::*;

fn with_id<T>(message: T, id: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-request-id", id.parse().unwrap());
    request
}

fn id(metadata: &MetadataMap) -> String {
    metadata.get("x-request-id").expect("a request id").to_str().unwrap().to_owned()
}

fn metrics(berth: &Berth) -> String {
    berth.service.metrics().render(&berth.service.sizes()).unwrap()
}

/// The value of the one line that begins so; 0 where there is none yet.
fn value(page: &str, series: &str) -> f64 {
    let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' ')).collect();
    assert!(found.len() <= 1, "{series} is there {} times", found.len());
    found.first().map_or(0.0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn the_clients_request_id_comes_back_with_answers_and_with_errors() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let response = within(berth.scheduler().schedule(with_id(ask(&pod("p", "1")), "mine-1"))).await.unwrap();
    assert_eq!(id(response.metadata()), "mine-1");
    let wrong = with_id(pb::ScheduleRequest::default(), "mine-2");
    let status = within(berth.scheduler().schedule(wrong)).await.unwrap_err();
    assert_eq!((status.code(), id(status.metadata())), (Code::InvalidArgument, "mine-2".to_owned()));
}

#[tokio::test]
async fn a_request_without_a_sane_id_gets_one_of_its_own() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let mut seen = std::collections::BTreeSet::new();
    for name in ["p", "q"] {
        let response = within(berth.scheduler().schedule(ask(&pod(name, "1")))).await.unwrap();
        seen.insert(id(response.metadata()));
    }
    let long = "x".repeat(200);
    let response = within(berth.scheduler().schedule(with_id(ask(&pod("r", "1")), &long))).await.unwrap();
    seen.insert(id(response.metadata()));
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen.iter().all(|id| id.len() < 64), "{seen:?}");
}

#[tokio::test]
async fn a_stream_has_its_id_in_its_headers_and_in_the_error_that_ends_it() {
    let berth = Berth::start().await;
    let batch = pb::UpdateNodesRequest {
        control: Some(pb::FeedControl { control: Some(snapshot_begin(&[])) }),
        ..Default::default()
    };
    let response = within(berth.feed().update_nodes(with_id(once(batch), "feed-1"))).await.unwrap();
    assert_eq!(id(response.metadata()), "feed-1");
    let status = within(response.into_inner().message()).await.unwrap_err();
    assert_eq!((status.code(), id(status.metadata())), (Code::InvalidArgument, "feed-1".to_owned()));
}

#[tokio::test]
async fn decisions_and_calls_are_counted() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    berth.schedule(ask(&pod("fits", "1"))).await.unwrap();
    berth.schedule(ask(&pod("too-large", "1"))).await.unwrap();
    berth.schedule(pb::ScheduleRequest { dry_run: true, ..ask(&pod("dry", "1")) }).await.unwrap();
    berth.schedule(pb::ScheduleRequest::default()).await.unwrap_err();
    let method = "grpc_type=\"unary\",grpc_service=\"berth.v1.SchedulerService\",grpc_method=\"Schedule\"";
    let page = metrics(&berth);
    for (series, expected) in [
        ("berth_schedule_attempts_total{result=\"scheduled\",profile=\"default-scheduler\"}", 1.0),
        ("berth_schedule_attempts_total{result=\"unschedulable\",profile=\"default-scheduler\"}", 1.0),
        ("berth_schedule_attempts_total{result=\"error\",profile=\"default-scheduler\"}", 0.0),
        ("berth_dry_runs_total{result=\"unschedulable\",profile=\"default-scheduler\"}", 1.0),
        ("berth_unschedulable_attempts_total{plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"}", 2.0),
        ("berth_scheduling_algorithm_duration_seconds_count", 3.0),
        ("berth_reservations{state=\"decided\"}", 1.0),
        ("berth_feed_events_total{stream=\"nodes\",result=\"applied\"}", 1.0),
        (&format!("grpc_server_started_total{{{method}}}"), 4.0),
        (&format!("grpc_server_handled_total{{{method},grpc_code=\"OK\"}}"), 3.0),
        (&format!("grpc_server_handled_total{{{method},grpc_code=\"InvalidArgument\"}}"), 1.0),
        (&format!("grpc_server_handling_seconds_count{{{method}}}"), 4.0),
    ] {
        assert_eq!(value(&page, series), expected, "{series} in\n{page}");
    }
}

#[tokio::test]
async fn open_feeds_and_their_snapshots_are_counted() {
    let berth = Berth::start().await;
    let mut stream = NodeStream::open(&berth).await;
    stream.control(1, hello("informer")).await;
    stream.control(2, snapshot_begin(&[])).await;
    stream.acks_to(2).await;
    let page = metrics(&berth);
    assert_eq!(value(&page, "berth_feed_streams{stream=\"nodes\"}"), 1.0, "{page}");
    assert_eq!(value(&page, "berth_feed_snapshots_total{event=\"begun\"}"), 1.0, "{page}");
    assert_eq!(value(&page, "berth_feed_staleness_seconds{source=\"informer\"}"), 0.0, "{page}");
    berth.clock.advance_secs(7);
    assert_eq!(value(&metrics(&berth), "berth_feed_staleness_seconds{source=\"informer\"}"), 7.0);
    drop(stream);
    eventually(async || value(&metrics(&berth), "berth_feed_streams{stream=\"nodes\"}") == 0.0).await;
    assert_eq!(value(&metrics(&berth), "berth_feed_snapshots_total{event=\"cut\"}"), 1.0);
}
