//! Changes to a profile for one request.

use berth::api::pb;
use serde_json::Value;
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::*;

fn dry(manifest: &Value, changes: pb::ProfileOverride) -> pb::ScheduleRequest {
    pb::ScheduleRequest { dry_run: true, r#override: Some(changes), ..ask(manifest) }
}

fn strategy(strategy: pb::ScoringStrategy) -> pb::ProfileOverride {
    pb::ProfileOverride { scoring_strategy: Some(strategy), ..Default::default() }
}

#[tokio::test]
async fn an_override_changes_this_request_alone() {
    let berth = Berth::with_nodes(&[node("big", "16"), node("small", "4")]).await;
    let pod = pod("p", "1");
    let node = async |changes| berth.schedule(dry(&pod, changes)).await.unwrap().node;
    assert_eq!(node(pb::ProfileOverride::default()).await, "big");
    let only_fit = || pb::ProfileOverride {
        disable: vec!["NodeResourcesBalancedAllocation".into()],
        ..strategy(pb::ScoringStrategy {
            r#type: pb::ScoringStrategyType::MostAllocated.into(),
            resources: vec![pb::ResourceWeight { name: "cpu".into(), weight: 0 }],
            shape: Vec::new(),
        })
    };
    assert_eq!(node(only_fit()).await, "small");
    assert_eq!(node(pb::ProfileOverride::default()).await, "big", "the profile is as it was");
    let shape = [(0, 10), (100, 0)].map(|(utilization, score)| pb::ShapePoint { utilization, score });
    let emptier = strategy(pb::ScoringStrategy {
        r#type: pb::ScoringStrategyType::RequestedToCapacityRatio.into(),
        resources: vec![pb::ResourceWeight { name: "cpu".into(), weight: 1 }],
        shape: shape.to_vec(),
    });
    assert_eq!(node(emptier).await, "big");
}

#[tokio::test]
async fn weights_and_switched_off_filters_show_in_the_answer() {
    let berth = Berth::with_nodes(&[node("n1", "2"), node("n2", "2")]).await;
    let asked = dry(
        &pod("p", "4"),
        pb::ProfileOverride {
            disable: vec!["NodeResourcesFit".into(), "NodeResourcesBalancedAllocation".into()],
            score_weights: [("TaintToleration".to_owned(), 11)].into(),
            ..Default::default()
        },
    );
    let answer = berth.schedule(asked).await.unwrap();
    assert_eq!(answer.outcome(), pb::Outcome::Placed);
    assert_eq!(answer.score, 1_100, "100 of TaintToleration times 11, and nothing else scores");
}

#[tokio::test]
async fn asking_again_with_other_changes_decides_anew() {
    let berth = Berth::with_nodes(&[node("big", "16"), node("small", "4")]).await;
    let pod = pod("p", "1");
    let changed = |disable: &[&str]| {
        let mut changes = pb::ProfileOverride {
            disable: disable.iter().map(|name| (*name).to_owned()).collect(),
            ..strategy(pb::ScoringStrategy {
                r#type: pb::ScoringStrategyType::MostAllocated.into(),
                ..Default::default()
            })
        };
        changes.score_weights.insert("NodeResourcesFit".into(), 9);
        pb::ScheduleRequest { r#override: Some(changes), ..ask(&pod) }
    };
    let first = berth.schedule(ask(&pod)).await.unwrap();
    let again = berth.schedule(ask(&pod)).await.unwrap();
    assert_eq!(again.reservation.as_ref().unwrap().id, first.reservation.as_ref().unwrap().id);
    let packed = berth.schedule(changed(&["NodePorts", "NodeName"])).await.unwrap();
    assert_eq!((first.node.as_str(), packed.node.as_str(), packed.previous_node.as_str()), ("big", "small", "big"));
    let same = berth.schedule(changed(&["NodeName", "NodePorts"])).await.unwrap();
    assert_eq!(same.reservation.unwrap().id, packed.reservation.unwrap().id, "the order of names means nothing");
}

#[tokio::test]
async fn mistakes_are_told_at_once_with_their_paths() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let fields = async |changes| {
        let status = berth.schedule(dry(&pod("p", "1"), changes)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let told = status.get_details_bad_request().unwrap().field_violations;
        told.into_iter().map(|violation| violation.field).collect::<Vec<_>>()
    };
    let names = pb::ProfileOverride {
        enable: vec!["NoSuchPlugin".into()],
        disable: vec!["Nodename".into()],
        score_weights: [("ImageLocality".to_owned(), 0), ("NodeName".to_owned(), 1)].into(),
        scoring_strategy: None,
    };
    let expected = [
        "override.enable[NoSuchPlugin]",
        "override.disable[Nodename]",
        "override.score_weights[ImageLocality]",
        "override.score_weights[NodeName]",
    ];
    assert_eq!(fields(names).await, expected);
    let wrong = strategy(pb::ScoringStrategy {
        r#type: 0,
        resources: vec![pb::ResourceWeight { name: String::new(), weight: 101 }],
        shape: vec![pb::ShapePoint { utilization: 101, score: 11 }],
    });
    let expected =
        ["resources[0].name", "resources[0].weight", "shape[0].utilization", "shape[0].score", "shape", "type"];
    assert_eq!(fields(wrong).await, expected.map(|path| format!("override.scoring_strategy.{path}")));
}
