//! Plans of evictions: the forms of a policy, what is refused and how, the story of one pod. What a plan should hold is
//! tested where it is made, in `src/evict/`.

use berth::api::pb;
use pb::suggest_evictions_request::PolicySource as Form;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::*;

/// As the posts about it show it.
const LOW_NODE_UTILIZATION: &str = "
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  LowNodeUtilization:
    enabled: true
    params:
      nodeResourceUtilizationThresholds:
        thresholds: {cpu: 20, memory: 20, pods: 20}
        targetThresholds: {cpu: 50, memory: 50, pods: 50}
";

/// The same in today's version.
fn low_node_utilization() -> Value {
    json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
        "profiles": [{
            "name": "default",
            "pluginConfig": [{
                "name": "LowNodeUtilization",
                "args": {
                    "thresholds": { "cpu": 20, "memory": 20, "pods": 20 },
                    "targetThresholds": { "cpu": 50, "memory": 50, "pods": 50 },
                },
            }],
            "plugins": { "balance": { "enabled": ["LowNodeUtilization"] } },
        }],
    })
}

/// A running pod of a replica set.
fn owned(name: &str, node: &str) -> Value {
    let mut pod = with(pod(name, "500m"), "nodeName", json!(node));
    pod["status"] = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    pod["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": true }]);
    pod
}

/// Six pods of 500m on n1 of 4 cores, which is 75 %, and nothing on n2.
async fn lopsided() -> Berth {
    let berth = Berth::with_nodes(&[node("n1", "4"), node("n2", "4")]).await;
    let pods = (0..6).map(|i| pod_manifest(&owned(&format!("web-{i}"), "n1"))).collect();
    berth.feed_pods(pods).await;
    berth
}

fn by(policy: &Value) -> pb::SuggestEvictionsRequest {
    pb::SuggestEvictionsRequest { policy_source: Some(Form::Policy(structure(policy))), ..Default::default() }
}

fn by_text(text: &str) -> pb::SuggestEvictionsRequest {
    pb::SuggestEvictionsRequest { policy_source: Some(Form::PolicyText(text.into())), ..Default::default() }
}

async fn suggest(
    berth: &Berth,
    request: pb::SuggestEvictionsRequest,
) -> Result<pb::SuggestEvictionsResponse, tonic::Status> {
    within(berth.evictions().suggest_evictions(request)).await.map(tonic::Response::into_inner)
}

async fn refused(berth: &Berth, request: pb::SuggestEvictionsRequest) -> (Code, String, String) {
    let status = suggest(berth, request).await.unwrap_err();
    (status.code(), status.get_details_error_info().unwrap().reason, status.message().to_owned())
}

async fn fields(berth: &Berth, request: pb::SuggestEvictionsRequest) -> Vec<String> {
    let status = suggest(berth, request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    status.get_details_bad_request().unwrap().field_violations.into_iter().map(|v| v.field).collect()
}

#[tokio::test]
async fn the_posts_policy_relieves_the_full_node_in_either_form_and_mode() {
    let berth = lopsided().await;
    for mode in [pb::EvictionMode::Planned, pb::EvictionMode::Compatible] {
        let mode = i32::from(mode);
        let pasted =
            suggest(&berth, pb::SuggestEvictionsRequest { mode, ..by(&low_node_utilization()) }).await.unwrap();
        assert_eq!(pasted.suggestions.len(), 2, "from 75 % to the target of 50 %: {pasted:?}");
        for suggestion in &pasted.suggestions {
            let pod = suggestion.pod.as_ref().unwrap();
            assert_eq!((pod.kind.as_str(), pod.namespace.as_str()), ("Pod", "default"));
            assert_eq!(pod.uid, format!("uid-{}", pod.name));
            assert_eq!((suggestion.node.as_str(), suggestion.strategy.as_str()), ("n1", "LowNodeUtilization"));
        }
        assert_eq!(pasted.suggestions[0].reason, "node is overutilized: cpu at 75%, target 50%");
        let view = pasted.view.as_ref().unwrap();
        assert!(view.manual_mode && view.nodes == 2 && view.revision > 0, "{view:?}");
        assert_eq!((pasted.mode, pasted.truncated, pasted.policy_file.as_str()), (mode, false, ""));
        assert_eq!(pasted.now.unwrap().seconds, 1_000_000, "the server's clock");

        let text =
            suggest(&berth, pb::SuggestEvictionsRequest { mode, ..by_text(LOW_NODE_UTILIZATION) }).await.unwrap();
        let pods = |answer: &pb::SuggestEvictionsResponse| -> Vec<_> {
            answer.suggestions.iter().map(|s| (s.pod.clone(), s.reason.clone())).collect()
        };
        assert_eq!(pods(&text), pods(&pasted));
    }
    let unspecified = suggest(&berth, by(&low_node_utilization())).await.unwrap();
    assert_eq!(unspecified.mode(), pb::EvictionMode::Planned);
}

#[tokio::test]
async fn planning_changes_nothing_and_equal_requests_get_equal_plans() {
    let berth = lopsided().await;
    let (before, view) = (berth.cluster().await, berth.service.cluster.fork());
    let request = || pb::SuggestEvictionsRequest {
        explain_pod: Some(pb::ObjectRef { name: "web-1".into(), ..Default::default() }),
        ..by(&low_node_utilization())
    };
    let first = suggest(&berth, request()).await.unwrap();
    assert_eq!(suggest(&berth, request()).await.unwrap(), first);
    assert_eq!(berth.service.cluster.fork().differences(&view), [] as [String; 0]);
    assert_eq!(first.view.unwrap().revision, before.view.as_ref().unwrap().revision);
    assert_eq!(berth.cluster().await, before);
}

#[tokio::test]
async fn all_mistakes_are_told_at_once_with_their_paths() {
    let berth = lopsided().await;
    let mut policy = low_node_utilization();
    policy["profiles"][0]["pluginConfig"][0]["args"]["targetThresholds"]["cpu"] = json!(10);
    policy["profiles"][0]["plugins"]["balance"]["enabled"] = json!(["LowNodeUtilisation"]);
    policy["nodeFit"] = json!(true);
    policy["maxNoOfPodsToEvictPerNode"] = json!(1e16);
    let request = pb::SuggestEvictionsRequest {
        mode: 7,
        now: Some(prost_types::Timestamp { seconds: 0, nanos: -1 }),
        max_examples: Some(101),
        explain_pod: Some(pb::ObjectRef { kind: "Node".into(), ..Default::default() }),
        ..by(&policy)
    };
    let mut fields = fields(&berth, request).await;
    fields.sort();
    assert_eq!(
        fields,
        [
            "explain_pod.kind",
            "explain_pod.name",
            "max_examples",
            "mode",
            "now",
            "policy.maxNoOfPodsToEvictPerNode",
            "policy.nodeFit",
            "policy.profiles[0].pluginConfig[0].args.thresholds",
            "policy.profiles[0].plugins.balance.enabled[0]",
        ]
    );
}

#[tokio::test]
async fn a_text_that_is_no_policy_is_refused_with_its_path() {
    let berth = lopsided().await;
    for text in ["", "a: [", "kind: Pod", "--- 1\n--- 2"] {
        let fields = fields(&berth, by_text(text)).await;
        assert!(!fields.is_empty() && fields.iter().all(|f| f.starts_with("policy")), "{text:?}: {fields:?}");
    }
    let large = format!("# {}", "x".repeat(1_600_000));
    assert_eq!(fields(&berth, by_text(&large)).await, ["policy"]);
}

#[tokio::test]
async fn without_a_policy_of_the_requests_the_servers_is_followed_if_there_is_one() {
    let berth = lopsided().await;
    let (code, reason, message) = refused(&berth, pb::SuggestEvictionsRequest::default()).await;
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "NO_POLICY"));
    assert!(message.contains("--descheduler-policy"), "{message}");

    let file = std::env::temp_dir().join(format!("berth-{}-grpc-policy.yaml", std::process::id()));
    std::fs::write(&file, LOW_NODE_UTILIZATION).unwrap();
    berth.service.load_policy(&file).unwrap();
    let answer = suggest(&berth, pb::SuggestEvictionsRequest::default()).await.unwrap();
    assert_eq!((answer.suggestions.len(), answer.policy_file.as_str()), (2, file.to_str().unwrap()));
    let other = by(&json!({ "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy" }));
    assert_eq!(suggest(&berth, other).await.unwrap().policy_file, "", "the request's goes before it");
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_priority_class_in_the_servers_policy_counts_from_when_it_is_fed() {
    let berth = lopsided().await;
    let file = std::env::temp_dir().join(format!("berth-{}-grpc-class.yaml", std::process::id()));
    let with_class = LOW_NODE_UTILIZATION.replace("    params:", "    params:\n      thresholdPriorityClassName: low");
    std::fs::write(&file, with_class).unwrap();
    berth.service.load_policy(&file).unwrap();
    let (code, reason, message) = refused(&berth, pb::SuggestEvictionsRequest::default()).await;
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "POLICY_UNUSABLE"));
    assert!(message.contains(file.to_str().unwrap()) && message.contains("thresholdPriorityClassName"), "{message}");

    let class = json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "low" }, "value": 5 });
    berth.feed_objects(vec![object_manifest(&class)]).await;
    assert_eq!(suggest(&berth, pb::SuggestEvictionsRequest::default()).await.unwrap().suggestions.len(), 2);
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn limits_of_the_request_go_before_the_policys_and_0_lets_nothing_go() {
    let berth = lopsided().await;
    let mut policy = low_node_utilization();
    policy["maxNoOfPodsToEvictPerNode"] = json!(1);
    let planned = async |limits| {
        let request = pb::SuggestEvictionsRequest { limits: Some(limits), ..by(&policy) };
        suggest(&berth, request).await.unwrap()
    };
    assert_eq!(planned(pb::EvictionLimits::default()).await.suggestions.len(), 1);
    let answer = planned(pb::EvictionLimits { max_per_node: Some(5), ..Default::default() }).await;
    assert_eq!(answer.suggestions.len(), 2);
    for limits in [
        pb::EvictionLimits { max_per_node: Some(0), ..Default::default() },
        pb::EvictionLimits { max_per_namespace: Some(0), ..Default::default() },
        pb::EvictionLimits { max_total: Some(0), ..Default::default() },
    ] {
        let answer = planned(limits).await;
        assert_eq!(answer.suggestions.len(), 0);
        assert!(answer.left_alone.iter().any(|row| row.kind == "LIMIT"), "{:?}", answer.left_alone);
    }
}

#[tokio::test]
async fn a_reply_shows_the_beginning_of_the_plan_and_counts_the_rest() {
    let berth = lopsided().await;
    let shown = async |max_suggestions| {
        suggest(&berth, pb::SuggestEvictionsRequest { max_suggestions, ..by(&low_node_utilization()) }).await.unwrap()
    };
    let all = shown(None).await;
    assert_eq!((all.suggestions_omitted, all.truncated), (0, false));
    let one = shown(Some(1)).await;
    assert_eq!((one.suggestions.as_slice(), one.suggestions_omitted), (&all.suggestions[..1], 1));
    assert!(one.truncated);
    let none = shown(Some(0)).await;
    assert_eq!((none.suggestions.len(), none.suggestions_omitted), (0, 2));
    assert_eq!(none.left_alone, all.left_alone, "what is shown changes no plan");
}

#[tokio::test]
async fn an_answer_stays_below_4_mib_whatever_the_plan() {
    let berth = Berth::with_nodes(&[node("n1", "9000"), node("n2", "9000")]).await;
    let long = "x".repeat(200);
    for batch in 0..8 {
        let failed = |i: usize| {
            let mut pod = owned(&format!("{long}-{batch}-{i}"), "n1");
            pod["status"] = json!({ "phase": "Failed", "reason": "x".repeat(4_000) });
            pod_manifest(&pod)
        };
        berth.feed_pods((0..128).map(failed).collect()).await;
    }
    let policy = json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
        "profiles": [{
            "name": "p",
            "pluginConfig": [{ "name": "RemoveFailedPods" }],
            "plugins": { "deschedule": { "enabled": ["RemoveFailedPods"] } },
        }],
    });
    let request = pb::SuggestEvictionsRequest { mode: pb::EvictionMode::Compatible.into(), ..by(&policy) };
    let answer = suggest(&berth, request).await.unwrap();
    assert!(answer.truncated && !answer.suggestions.is_empty());
    assert_eq!(answer.suggestions.len() + answer.suggestions_omitted as usize, 1_024);
    assert!(prost::Message::encoded_len(&answer) < 4 << 20);
}

#[tokio::test]
async fn what_is_left_alone_is_counted_by_reason_with_examples() {
    let berth = lopsided().await;
    let mut daemon = owned("agent", "n1");
    daemon["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    let bare = with(pod("bare", "500m"), "nodeName", json!("n1"));
    let also_bare = with(pod("bare-2", "500m"), "nodeName", json!("n1"));
    berth.feed_pods([daemon, bare, also_bare].iter().map(pod_manifest).collect()).await;
    let request = pb::SuggestEvictionsRequest { max_examples: Some(1), ..by(&low_node_utilization()) };
    let answer = suggest(&berth, request).await.unwrap();
    let row = answer.left_alone.iter().find(|row| row.kind == "PROTECTED").unwrap();
    assert_eq!((row.strategy.as_str(), row.profile.as_str(), row.pods), ("LowNodeUtilization", "default", 3));
    let protections: Vec<_> = row.protections.iter().map(|p| (p.protection.as_str(), p.pods)).collect();
    assert_eq!(protections, [("BarePods", 2), ("DaemonSetPods", 1)]);
    let [example] = &row.examples[..] else { panic!("{:?}", row.examples) };
    assert_eq!((example.pod.as_ref().unwrap().name.as_str(), example.node.as_str()), ("agent", "n1"));
    assert_eq!(example.message, "pod belongs to a DaemonSet");
}

#[tokio::test]
async fn basis_and_readiness_are_checked_as_for_a_decision() {
    let berth = Berth::start().await;
    let status = suggest(&berth, by(&low_node_utilization())).await.unwrap_err();
    assert_eq!(
        (status.code(), status.get_details_error_info().unwrap().reason.as_str()),
        (Code::Unavailable, "NOT_READY")
    );
    assert!(status.get_details_retry_info().unwrap().retry_delay.is_some());
    berth.stop().await;

    let berth = lopsided().await;
    let view = berth.cluster().await.view.unwrap();
    let basis = |revision, incarnation: &str| pb::SuggestEvictionsRequest {
        min_revision: Some(revision),
        incarnation: incarnation.into(),
        ..by(&low_node_utilization())
    };
    assert!(suggest(&berth, basis(view.revision, &view.incarnation)).await.is_ok());
    let (code, reason, _) = refused(&berth, basis(view.revision + 1, &view.incarnation)).await;
    assert_eq!((code, reason.as_str()), (Code::Unavailable, "REVISION_NOT_REACHED"));
    let (code, reason, _) = refused(&berth, basis(0, "another")).await;
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "OTHER_INCARNATION"));
}

#[tokio::test]
async fn ages_are_judged_at_the_time_of_the_request() {
    let berth = lopsided().await;
    let mut old = owned("old", "n1");
    old["metadata"]["creationTimestamp"] = json!("2026-11-30T11:00:00Z");
    berth.feed_pods(vec![pod_manifest(&old)]).await;
    let policy = json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
        "profiles": [{
            "name": "p",
            "pluginConfig": [{ "name": "PodLifeTime", "args": { "maxPodLifeTimeSeconds": 3600 } }],
            "plugins": { "deschedule": { "enabled": ["PodLifeTime"] } },
        }],
    });
    let at = async |seconds| {
        let now = Some(prost_types::Timestamp { seconds, nanos: 0 });
        let answer = suggest(&berth, pb::SuggestEvictionsRequest { now, ..by(&policy) }).await.unwrap();
        assert_eq!(answer.now, now);
        // Pods without a creation time are as old as time.
        answer.suggestions.iter().filter(|s| s.pod.as_ref().unwrap().name == "old").count()
    };
    // Noon of that day, and a second later.
    assert_eq!((at(1_796_040_000).await, at(1_796_040_001).await), (0, 1));
}

async fn story(berth: &Berth, policy: &Value, pod: &str) -> pb::PodEvictionStory {
    let explain_pod = Some(pb::ObjectRef { name: pod.into(), ..Default::default() });
    let request = pb::SuggestEvictionsRequest { explain_pod, ..by(policy) };
    suggest(berth, request).await.unwrap().pod_story.unwrap()
}

#[tokio::test]
async fn the_story_of_a_pod_has_protections_budgets_every_strategy_and_a_landing() {
    let berth = lopsided().await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "all", "namespace": "default" },
        "spec": { "selector": {} }, "status": { "disruptionsAllowed": 3 },
    });
    berth.feed_objects(vec![object_manifest(&budget)]).await;
    let mut policy = low_node_utilization();
    policy["profiles"][0]["plugins"]["deschedule"] = json!({ "enabled": ["RemovePodsViolatingNodeTaints"] });
    let configured = json!({ "name": "RemovePodsViolatingNodeTaints" });
    policy["profiles"][0]["pluginConfig"].as_array_mut().unwrap().push(configured);
    let planned = suggest(&berth, by(&policy)).await.unwrap();
    let going = planned.suggestions[0].pod.as_ref().unwrap();
    assert_eq!(planned.suggestions[0].budgets[0].name, "all");

    let told = story(&berth, &policy, &going.name).await;
    assert_eq!((told.pod.as_ref(), told.node.as_str(), told.not_considered.as_str()), (Some(going), "n1", ""));
    let [budget] = &told.budgets[..] else { panic!("{:?}", told.budgets) };
    assert_eq!((budget.budget.as_ref().unwrap().name.as_str(), budget.disruptions_allowed), ("all", 3));
    let landing = told.landing.unwrap();
    assert_eq!((landing.node.as_str(), landing.landing_is_source, told.no_landing.as_str()), ("n2", false, ""));
    let [profile] = &told.profiles[..] else { panic!("{:?}", told.profiles) };
    assert_eq!(
        (profile.profile.as_str(), profile.protections.len(), profile.pre_eviction.as_str()),
        ("default", 0, "")
    );
    let verdicts: Vec<_> = profile.strategies.iter().map(|s| (s.strategy.as_str(), s.verdict(), s.position)).collect();
    assert_eq!(
        verdicts,
        [
            ("RemovePodsViolatingNodeTaints", pb::StrategyVerdict::RuleDoesNotApply, 0),
            ("LowNodeUtilization", pb::StrategyVerdict::Suggested, 0),
        ]
    );
    assert_eq!(profile.strategies[1].message, planned.suggestions[0].reason);
}

#[tokio::test]
async fn the_story_says_why_a_pod_stays() {
    let berth = lopsided().await;
    berth.feed_pods(vec![pod_manifest(&with(pod("bare", "500m"), "nodeName", json!("n1")))]).await;
    let bare = story(&berth, &low_node_utilization(), "bare").await;
    let profile = &bare.profiles[0];
    assert_eq!(profile.protections[0].protection, "BarePods");
    assert_eq!(profile.strategies[0].verdict(), pb::StrategyVerdict::LeftAlone);
    assert_eq!(
        (profile.strategies[0].kind.as_str(), profile.strategies[0].message.as_str()),
        ("PROTECTED", "pod has no owner")
    );

    // With nothing to go, each pod's turn would have come.
    let mut policy = low_node_utilization();
    policy["maxNoOfPodsToEvictTotal"] = json!(1);
    let planned = suggest(&berth, by(&policy)).await.unwrap();
    assert_eq!(planned.suggestions.len(), 1);
    let going = planned.suggestions[0].pod.as_ref().unwrap();
    let mut verdicts = std::collections::BTreeMap::new();
    for name in (0..6).map(|i| format!("web-{i}")).filter(|name| *name != going.name) {
        let verdict = story(&berth, &policy, &name).await.profiles[0].strategies[0].verdict();
        *verdicts.entry(format!("{verdict:?}")).or_insert(0) += 1;
    }
    assert_eq!(verdicts.keys().collect::<Vec<_>>(), ["LeftAlone", "NotReached"], "the limit, and those after it");
}

#[tokio::test]
async fn the_story_of_a_pod_that_would_fit_nowhere_has_the_schedulers_words() {
    let berth = lopsided().await;
    let stuck = with(with(pod("stuck", "1"), "nodeName", json!("n1")), "nodeSelector", json!({ "disk": "ssd" }));
    berth.feed_pods(vec![pod_manifest(&stuck)]).await;
    let told = story(&berth, &low_node_utilization(), "stuck").await;
    assert_eq!(told.landing, None);
    assert!(told.no_landing.starts_with("0/2 nodes are available: 2 node(s) didn't match"), "{}", told.no_landing);

    let other = with(with(pod("other", "1"), "nodeName", json!("n1")), "schedulerName", json!("volcano"));
    berth.feed_pods(vec![pod_manifest(&other)]).await;
    let told = story(&berth, &low_node_utilization(), "other").await;
    assert_eq!(told.no_landing, "no profile is known for schedulerName volcano");
}

#[tokio::test]
async fn a_pod_that_is_on_no_node_has_a_story_too_and_an_unknown_one_none() {
    let berth = lopsided().await;
    berth.feed_pods(vec![pod_manifest(&pod("pending", "1")), pod_manifest(&owned("lost", "n9"))]).await;
    let told = story(&berth, &low_node_utilization(), "pending").await;
    assert!(told.not_considered.starts_with("the pod isn't bound to a node"), "{}", told.not_considered);
    assert_eq!((told.profiles.len(), told.node.as_str(), told.landing.unwrap().node.as_str()), (0, "", "n2"));
    berth.schedule(ask(&pod("pending", "1"))).await.unwrap();
    let told = story(&berth, &low_node_utilization(), "pending").await;
    assert!(told.not_considered.contains("holds a reservation on node n2"), "{}", told.not_considered);
    let told = story(&berth, &low_node_utilization(), "lost").await;
    assert!(told.not_considered.contains("node n9, which isn't known"), "{}", told.not_considered);

    for pod in [
        pb::ObjectRef { name: "nobody".into(), ..Default::default() },
        pb::ObjectRef { name: "web-0".into(), uid: "another".into(), ..Default::default() },
        pb::ObjectRef { name: "web-0".into(), namespace: "elsewhere".into(), ..Default::default() },
    ] {
        let request = pb::SuggestEvictionsRequest { explain_pod: Some(pod), ..by(&low_node_utilization()) };
        let (code, reason, _) = refused(&berth, request).await;
        assert_eq!((code, reason.as_str()), (Code::NotFound, "POD_NOT_FOUND"));
    }
}

#[tokio::test]
async fn a_plan_is_counted_and_a_refused_request_is_not() {
    let berth = lopsided().await;
    suggest(&berth, by(&low_node_utilization())).await.unwrap();
    suggest(&berth, pb::SuggestEvictionsRequest { mode: 7, ..by(&low_node_utilization()) }).await.unwrap_err();
    let page = berth.service.metrics().render(&berth.service.sizes()).unwrap();
    let counted = "berth_eviction_plans_total{mode=\"planned\",result=\"planned\"} 1";
    assert!(page.lines().any(|line| line == counted), "{page}");
    assert_eq!(page.matches("berth_eviction_plans_total{").count(), 1, "{page}");
}

#[tokio::test]
async fn a_plan_ends_with_its_deadline() {
    let berth = lopsided().await;
    let writer = berth.service.clone();
    let (begin, begun) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let standstill = std::thread::spawn(move || {
        let _writer = writer.cluster.writer();
        begin.send(()).unwrap();
        let _ = ended.recv();
    });
    begun.recv().unwrap();
    // Nobody can plan while the writer is held, so that the deadline passes on any machine.
    let mut request = tonic::Request::new(by(&low_node_utilization()));
    request.set_timeout(std::time::Duration::from_millis(20));
    let status = within(berth.evictions().suggest_evictions(request)).await.unwrap_err();
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
    drop(end);
    standstill.join().unwrap();
    assert!(suggest(&berth, by(&low_node_utilization())).await.is_ok(), "the slot is free again");
}
