//! Decisions that may take long: they have a lane and a longest time of their own, and are answered as the others are.

use std::sync::Arc;
use std::time::Duration;

use berth::api::pb;
use berth::model::Time;
use berth::service::profiles::Profiles;
use berth::service::{ManualClock, Service};
use pb::Outcome;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::stream::Stream;
use crate::support::*;

/// A pod with 10,000 required node affinity terms, of which the last one matches.
fn long(name: &str) -> Value {
    let term = |i: usize| json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [format!("x{i}")] }] });
    let mut terms: Vec<Value> = (1..10_000).map(term).collect();
    terms.push(json!({ "matchExpressions": [{ "key": "disk", "operator": "DoesNotExist" }] }));
    let rules = json!({ "nodeSelectorTerms": terms });
    let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": rules } });
    let mut pod = pod(name, "1");
    pod["spec"]["affinity"] = affinity;
    pod
}

#[tokio::test]
async fn a_pod_with_ten_thousand_terms_gets_its_room_like_any_other() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let answer = berth.schedule(ask(&long("p"))).await.unwrap();
    assert_eq!((answer.outcome(), &*answer.node), (Outcome::Placed, "n1"));
    let again = berth.schedule(ask(&long("p"))).await.unwrap();
    assert_eq!(again.reservation, answer.reservation, "the same request gets the same reservation");
    assert_eq!(berth.schedule(ask(&pod("q", "2"))).await.unwrap().outcome(), Outcome::Unschedulable);
}

#[tokio::test]
async fn a_long_decision_keeps_its_place_in_a_stream() {
    let berth = Berth::with_nodes(&[node("n1", "3")]).await;
    let mut stream = Stream::open(&berth).await;
    stream.send("before", Some(ask(&pod("a", "1")))).await;
    stream.send("long", Some(ask(&long("b")))).await;
    stream.send("after", Some(ask(&pod("c", "2")))).await;
    for (id, outcome) in [("before", Outcome::Placed), ("long", Outcome::Placed), ("after", Outcome::Unschedulable)] {
        let (answered, response) = stream.response().await;
        assert_eq!((&*answered, response.outcome()), (id, outcome), "one CPU is left after two");
    }
}

#[tokio::test]
async fn a_decision_ends_after_the_longest_time_and_takes_no_room() {
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000_000)));
    let mut service = Service::new(Profiles::default(), clock.clone());
    // To read the pod takes longer.
    service.set_max_decision_time(Duration::from_micros(100));
    let berth = Berth::serving(service, clock).await;
    berth.feed_nodes(vec![node_manifest(&node("n1", "2"))]).await;
    let status = berth.schedule(ask(&long("p"))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "DECISION_TOO_LONG");
    assert_eq!(berth.service.cluster.writer().reservations().len(), 0);
}
