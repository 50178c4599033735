//! InspectService: what is known, in pages.

use berth::api::pb;
use serde_json::json;
use tonic::Code;

use crate::support::*;

#[tokio::test]
async fn pages_lead_through_the_whole_list() {
    let nodes: Vec<_> = (0..7).map(|i| node(&format!("n{i}"), "1")).collect();
    let berth = Berth::with_nodes(&nodes).await;
    let mut request = pb::ListNodesRequest { page_size: 3, ..Default::default() };
    let mut sizes = Vec::new();
    let mut names = Vec::new();
    loop {
        let page = within(berth.inspect().list_nodes(request.clone())).await.unwrap().into_inner();
        sizes.push(page.nodes.len());
        names.extend(page.nodes.into_iter().map(|node| node.name));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(names, (0..7).map(|i| format!("n{i}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn tokens_that_berth_did_not_make_and_negative_sizes_are_invalid() {
    let berth = Berth::with_nodes(&[node("a", "1"), node("b", "1")]).await;
    let mut inspect = berth.inspect();
    let page = inspect.list_nodes(pb::ListNodesRequest { page_size: 1, ..Default::default() }).await.unwrap();
    let of_nodes = page.into_inner().next_page_token;
    assert!(!of_nodes.is_empty());
    for page_token in ["nonsense".to_owned(), format!("{of_nodes}00")] {
        let request = pb::ListNodesRequest { page_token, ..Default::default() };
        assert_eq!(inspect.list_nodes(request).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let foreign = pb::ListPodsRequest { page_token: of_nodes, ..Default::default() };
    assert_eq!(inspect.list_pods(foreign).await.unwrap_err().code(), Code::InvalidArgument);
    let negative = pb::ListProfilesRequest { page_size: -1, ..Default::default() };
    assert_eq!(inspect.list_profiles(negative).await.unwrap_err().code(), Code::InvalidArgument);
    let state = pb::ListPodsRequest { states: vec![0], ..Default::default() };
    assert_eq!(inspect.list_pods(state).await.unwrap_err().code(), Code::InvalidArgument);
    let elsewhere = pb::ListPodsRequest { node: "c".into(), ..Default::default() };
    assert_eq!(inspect.list_pods(elsewhere).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn rows_show_what_is_there() {
    let mut tainted = node("n1", "4");
    tainted["spec"] = json!({ "unschedulable": true, "taints": [{ "key": "k", "value": "v", "effect": "NoExecute" }] });
    let berth = Berth::with_nodes(&[tainted, node("n2", "4")]).await;
    berth.feed_pods(vec![pod_manifest(&with(pod("bound", "1500m"), "nodeName", json!("n1")))]).await;
    berth.schedule(ask(&with(pod("held", "1"), "priority", json!(7)))).await.unwrap();
    berth.schedule(ask(&pod("large", "64"))).await.unwrap();

    let request = pb::ListNodesRequest { names: vec!["n1".into(), "absent".into()], ..Default::default() };
    let page = berth.inspect().list_nodes(request).await.unwrap().into_inner();
    let [row] = page.nodes.as_slice() else { panic!("{page:?}") };
    assert_eq!((row.allocatable["cpu"], row.requested["cpu"], row.pods, row.allowed_pods), (4_000, 1_500, 1, 110));
    assert!(row.unschedulable && row.labels["kubernetes.io/hostname"] == "n1");
    assert_eq!((row.taints[0].key.as_str(), row.taints[0].effect.as_str()), ("k", "NoExecute"));

    let reserved = pb::ListPodsRequest { states: vec![pb::PodState::Reserved.into()], ..Default::default() };
    let page = berth.inspect().list_pods(reserved).await.unwrap().into_inner();
    let [row] = page.pods.as_slice() else { panic!("{page:?}") };
    assert_eq!((row.node.as_str(), row.priority, row.requests["cpu"]), ("n2", 7, 1_000));
    assert_eq!(
        (row.pod.as_ref().unwrap().uid.as_str(), row.scheduler_name.as_str()),
        ("uid-held", "default-scheduler")
    );

    let page = berth.inspect().list_profiles(pb::ListProfilesRequest::default()).await.unwrap().into_inner();
    let profile = &page.profiles[0];
    assert_eq!((profile.name.as_str(), profile.seed), ("default-scheduler", 0));
    assert!(profile.filters.iter().any(|name| name == "NodeResourcesFit"));
    assert!(profile.scores.iter().any(|score| score.name == "TaintToleration" && score.weight == 3));

    let page = berth.inspect().list_decisions(pb::ListDecisionsRequest::default()).await.unwrap().into_inner();
    let outcomes: Vec<_> =
        page.decisions.iter().map(|d| (d.pod.as_ref().unwrap().name.as_str(), d.outcome())).collect();
    assert_eq!(outcomes, [("large", pb::Outcome::Unschedulable), ("held", pb::Outcome::Placed)]);
    assert!(page.decisions[0].message.contains("Insufficient cpu"));

    let cluster = berth.cluster().await;
    assert!(cluster.ready && cluster.not_ready_reason.is_empty());
    assert_eq!((cluster.reservations, cluster.profiles.as_slice()), (1, &["default-scheduler".to_owned()][..]));
    assert_eq!(cluster.started_at.unwrap().seconds, 1_000_000);
}

#[tokio::test]
async fn the_configuration_file_shows_with_what_is_wrong_with_it_now() {
    let berth = Berth::start().await;
    assert_eq!(berth.cluster().await.config_file, None);
    let path = std::env::temp_dir().join(format!("berth-inspect-{}.yaml", std::process::id()));
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    std::fs::write(&path, format!("{head}parallelism: 4\nprofiles: [{{schedulerName: one}}]\n")).unwrap();
    berth.service.load_config(&path).unwrap();
    let summary = berth.cluster().await;
    let file = summary.config_file.unwrap();
    assert_eq!((summary.profiles, file.file), (vec!["one".to_owned()], path.display().to_string()));
    assert_eq!(file.notes, ["parallelism has no effect: Berth decides on one thread a request"]);
    assert_eq!((file.loaded_at.unwrap().seconds, file.refused_at, file.errors.len()), (1_000_000, None, 0));

    berth.clock.advance_secs(5);
    std::fs::write(&path, format!("{head}parallelism: 0\nprofile: []\n")).unwrap();
    berth.service.reload_config(false);
    let summary = berth.cluster().await;
    let file = summary.config_file.unwrap();
    assert_eq!(summary.profiles, ["one"], "what was read before is in force");
    assert_eq!((file.loaded_at.unwrap().seconds, file.refused_at.unwrap().seconds), (1_000_000, 1_000_005));
    assert_eq!(file.errors.len(), 2, "{:?}", file.errors);
    std::fs::remove_file(path).unwrap();
}
