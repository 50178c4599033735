//! How much of the way an answer shows.

use berth::api::pb;
use pb::{DetailLevel, Outcome};
use serde_json::{Value, json};
use tonic::Code;

use crate::support::*;

async fn asked(berth: &Berth, manifest: &Value, detail: DetailLevel, top_k: u32) -> pb::ScheduleResponse {
    let request = pb::ScheduleRequest { dry_run: true, detail: detail.into(), top_k, ..ask(manifest) };
    berth.schedule(request).await.unwrap()
}

/// Three nodes that a pod of 2 cores fits on, the emptiest best, and two that it doesn't.
async fn five_nodes() -> Berth {
    Berth::with_nodes(&[node("n1", "4"), node("n2", "8"), node("n3", "16"), node("small", "1"), node("tiny", "1")])
        .await
}

#[tokio::test]
async fn more_detail_shows_more_and_decides_the_same() {
    let berth = five_nodes().await;
    let p = pod("p", "2");
    for (detail, reasons, scored, refused) in [
        (DetailLevel::Unspecified, 0, 0, 0),
        (DetailLevel::None, 0, 0, 0),
        (DetailLevel::Summary, 1, 0, 0),
        (DetailLevel::TopK, 1, 3, 0),
        (DetailLevel::Full, 1, 3, 2),
    ] {
        let answer = asked(&berth, &p, detail, 0).await;
        assert_eq!((answer.node.as_str(), answer.feasible_nodes, answer.truncated), ("n3", 3, false), "{detail:?}");
        let shown = (answer.reasons.len(), answer.scored_nodes.len(), answer.refused_nodes.len());
        assert_eq!(shown, (reasons, scored, refused), "{detail:?}");
    }
}

#[tokio::test]
async fn scored_nodes_come_best_first_and_add_up() {
    let berth = five_nodes().await;
    let answer = asked(&berth, &pod("p", "2"), DetailLevel::TopK, 2).await;
    let names: Vec<&str> = answer.scored_nodes.iter().map(|n| n.node.as_str()).collect();
    assert_eq!((names.as_slice(), answer.score), (&["n3", "n2"][..], answer.scored_nodes[0].total));
    for node in &answer.scored_nodes {
        assert_eq!(node.total, node.plugins.iter().map(|p| p.score).sum::<i64>(), "{node:?}");
        assert!(node.plugins.iter().any(|p| p.plugin == "NodeResourcesFit"), "{node:?}");
    }
}

#[tokio::test]
async fn full_detail_says_of_each_refused_node_why() {
    let berth = five_nodes().await;
    let answer = asked(&berth, &pod("p", "2"), DetailLevel::Full, 0).await;
    let refused: Vec<(&str, &str, pb::StatusCode, &[String])> =
        answer.refused_nodes.iter().map(|n| (n.node.as_str(), n.plugin.as_str(), n.code(), &n.reasons[..])).collect();
    let reasons = &["Insufficient cpu".to_owned()][..];
    let code = pb::StatusCode::UnschedulableAndUnresolvable;
    assert_eq!(refused, [("small", "NodeResourcesFit", code, reasons), ("tiny", "NodeResourcesFit", code, reasons)]);
    let nowhere = asked(&berth, &pod("p", "99"), DetailLevel::Full, 0).await;
    assert_eq!((nowhere.outcome(), nowhere.refused_nodes.len()), (Outcome::Unschedulable, 5));
}

#[tokio::test]
async fn a_refusal_without_detail_still_has_its_message() {
    let berth = five_nodes().await;
    let answer = asked(&berth, &pod("p", "99"), DetailLevel::None, 0).await;
    assert_eq!(
        (answer.reasons.len(), answer.fit_message.as_str()),
        (0, "0/5 nodes are available: 5 Insufficient cpu.")
    );
}

#[tokio::test]
async fn an_answer_over_the_limit_is_cut_to_whole_nodes_best_first() {
    // Node names of 250 characters make an answer of some 20,000 nodes too large.
    let berth = Berth::start().await;
    let name = |i: usize| format!("{}{i:05}", "n".repeat(245));
    for batch in (0..14_000usize).collect::<Vec<_>>().chunks(1_000) {
        let events = batch.iter().map(|i| {
            let cpu = if i % 2 == 0 { "4" } else { "1" };
            let manifest = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name(*i) },
                "status": { "allocatable": { "cpu": cpu, "memory": "1Gi", "pods": "10" } } });
            node_manifest(&manifest)
        });
        berth.feed_nodes(events.collect()).await;
    }
    let answer = asked(&berth, &pod("p", "2"), DetailLevel::Full, 0).await;
    assert!(answer.truncated);
    let shown = (answer.scored_nodes.len(), answer.refused_nodes.len());
    assert_eq!(shown.0 + answer.scored_nodes_omitted as usize, 7_000);
    assert_eq!(shown.1 + answer.refused_nodes_omitted as usize, 7_000);
    assert!(answer.refused_nodes_omitted > 0, "refused nodes are left out before scored ones: {shown:?}");
    assert_eq!(answer.scored_nodes[0].node, answer.node);
    assert!(prost::Message::encoded_len(&answer) < 4 << 20);
}

#[tokio::test]
async fn a_number_of_nodes_needs_the_level_that_shows_them() {
    let berth = five_nodes().await;
    for (detail, top_k) in [(DetailLevel::Full as i32, 3), (DetailLevel::TopK as i32, 1_001), (99, 0)] {
        let request = pb::ScheduleRequest { detail, top_k, ..ask(&pod("p", "1")) };
        assert_eq!(berth.schedule(request).await.unwrap_err().code(), Code::InvalidArgument, "{detail} {top_k}");
    }
}
