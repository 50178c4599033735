//! InspectService.Compare: every form of a truth in, differences and a summary out.

use berth::api::pb;
use pb::true_object::Form;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::*;

fn objects(forms: Vec<Form>) -> pb::CompareRequest {
    let objects = forms.into_iter().map(|form| pb::TrueObject { form: Some(form) }).collect();
    pb::CompareRequest { kinds: Vec::new(), objects }
}

fn kinds(kinds: &[&str]) -> pb::CompareRequest {
    pb::CompareRequest { kinds: kinds.iter().map(ToString::to_string).collect(), objects: Vec::new() }
}

async fn compare(
    berth: &Berth,
    requests: Vec<pb::CompareRequest>,
) -> Result<(Vec<pb::Difference>, pb::CompareSummary), Status> {
    let mut answers = within(berth.inspect().compare(tokio_stream::iter(requests))).await?.into_inner();
    let mut differences = Vec::new();
    while let Some(answer) = within(answers.message()).await? {
        differences.extend(answer.differences);
        if let Some(summary) = answer.summary {
            assert_eq!(summary.differences, differences.len() as u64, "the summary comes last");
            return Ok((differences, summary));
        }
    }
    panic!("no summary")
}

fn told(differences: &[pb::Difference]) -> Vec<(pb::DifferenceType, String)> {
    let name = |d: &pb::Difference| d.object.as_ref().map(|o| o.name.clone()).unwrap_or_default();
    differences.iter().map(|d| (d.r#type(), name(d))).collect()
}

#[tokio::test]
async fn objects_of_every_form_are_compared() {
    let berth = Berth::with_nodes(&[node("n1", "1"), node("n2", "1"), node("n3", "1"), node("n4", "1")]).await;
    let typed = |name: &str, cpu: &str| pb::Node {
        metadata: Some(pb::ObjectMeta {
            name: name.into(),
            uid: format!("uid-{name}"),
            labels: [("kubernetes.io/hostname".to_owned(), name.to_owned())].into(),
            ..Default::default()
        }),
        status: Some(pb::NodeStatus {
            allocatable: [("cpu", cpu), ("memory", "8Gi"), ("pods", "110")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let truth = objects(vec![
        Form::Node(typed("n1", "1000m")),
        Form::Manifest(structure(&node("n2", "2"))),
        Form::ManifestJson(node("n3", "1").to_string().into_bytes()),
        Form::ManifestJson(b"nonsense".to_vec()),
        Form::Manifest(structure(
            &json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "p" }, "spec": {} }),
        )),
    ]);
    let (differences, summary) = compare(&berth, vec![kinds(&["Node"]), truth]).await.unwrap();
    let expected =
        [(pb::DifferenceType::Different, "n2".to_owned()), (pb::DifferenceType::ExtraInCache, "n4".to_owned())];
    assert_eq!(told(&differences), expected);
    let field = &differences[0].fields[0];
    assert_eq!(field.field, "status.allocatable[\"cpu\"]");
    assert_eq!((field.truth.as_deref(), field.cache.as_deref()), (Some("2"), Some("1")));
    let cluster = berth.cluster().await;
    let view = cluster.view.unwrap();
    assert_eq!((summary.revision, summary.incarnation), (view.revision, view.incarnation));
    let [counts] = summary.kinds.as_slice() else { panic!("{:?}", summary.kinds) };
    let numbers = (counts.truth, counts.cache, counts.same, counts.missing, counts.extra, counts.different);
    assert_eq!((counts.kind.as_str(), numbers), ("Node", (3, 4, 2, 0, 1, 1)));
    let rejected: Vec<_> = summary.rejections.iter().map(|r| (r.sequence, r.index, r.code())).collect();
    assert_eq!(rejected, [(2, 3, pb::RejectionCode::Malformed), (2, 4, pb::RejectionCode::Invalid)]);
    assert_eq!(summary.rejections[1].violations[0].field, "spec.containers");
}

#[tokio::test]
async fn what_a_feed_missed_is_told_with_the_side_that_is_behind() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let version = |mut manifest: serde_json::Value, version: &str| {
        manifest["metadata"]["resourceVersion"] = json!(version);
        manifest
    };
    berth.feed_pods(vec![pod_manifest(&version(pod("a", "1"), "7")), pod_manifest(&pod("gone", "1"))]).await;
    berth.schedule(ask(&pod("held", "1"))).await.unwrap();
    let bound = version(with(pod("a", "1"), "nodeName", json!("n2")), "12");
    let held = with(pod("held", "1"), "nodeName", json!("n1"));
    let truth = objects([bound, held].iter().map(|p| Form::Manifest(structure(p))).collect());
    let (differences, _) = compare(&berth, vec![truth]).await.unwrap();
    use pb::DifferenceType::*;
    let expected = [
        (Different, "a"),
        (Orphaned, "a"),
        (ExtraInCache, "gone"),
        (MissingInCache, "held"),
        (StaleReservation, "held"),
    ];
    assert_eq!(told(&differences), expected.map(|(kind, name)| (kind, name.to_owned())));
    assert_eq!(differences[0].version_order(), pb::VersionOrder::CacheOlder);
    assert_eq!((differences[0].truth_version.as_str(), differences[0].cache_version.as_str()), ("12", "7"));
    assert!(
        differences[4].message.ends_with("holds room on n1, and the pod is bound to n1"),
        "{}",
        differences[4].message
    );
}

#[tokio::test]
async fn an_empty_truth_of_a_named_kind_makes_everything_extra() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    assert!(compare(&berth, Vec::new()).await.unwrap().0.is_empty());
    let (differences, summary) = compare(&berth, vec![kinds(&["Node", "Pod"])]).await.unwrap();
    assert_eq!(told(&differences), [(pb::DifferenceType::ExtraInCache, "n1".to_owned())]);
    assert!(summary.kinds.iter().all(|kind| kind.covered) && summary.kinds.len() == 2);
}

#[tokio::test]
async fn wrong_requests_are_invalid_with_their_fields() {
    let berth = Berth::start().await;
    let many = objects(vec![Form::ManifestJson(Vec::new()); 1_025]);
    for (requests, field) in [
        (vec![kinds(&["Deployment"])], "kinds[0]"),
        (vec![kinds(&["Node"]), kinds(&["Pod"])], "kinds"),
        (vec![many], "objects"),
    ] {
        let status = compare(&berth, requests).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, field);
    }
}

#[tokio::test]
async fn one_comparison_runs_at_a_time() {
    let berth = Berth::start().await;
    let (requests, outbound) = mpsc::channel(1);
    let first = within(berth.inspect().compare(ReceiverStream::new(outbound))).await.unwrap();
    let status = compare(&berth, Vec::new()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_some());
    drop(requests);
    let mut first = first.into_inner();
    while within(first.message()).await.unwrap().is_some() {}
    eventually(async || compare(&berth, Vec::new()).await.is_ok()).await;
}
