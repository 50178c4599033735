//! Two nodes that the priority alone ranks.

use super::*;

/// The verdict under a Policy of one priority with weight 2; without it the two nodes rank alike.
fn ranks(priority: serde_json::Value, scene: Scene, pod: PodBuilder) -> Verdict {
    let without = scene.clone().profile(priorities(json!([]))).decide(pod.clone());
    let totals = &without.decision.scores.as_ref().unwrap().totals;
    assert!(totals.iter().all(|total| *total == 1), "ranked without the priority: {totals:?}");
    let mut entry = priority;
    entry["weight"] = json!(2);
    scene.profile(priorities(json!([entry]))).decide(pod)
}

fn scores(verdict: &Verdict, plugin: &str) -> (i64, i64) {
    (verdict.score(plugin, "a"), verdict.score(plugin, "b"))
}

/// Nodes `a` and `b`, of which `a` is half full.
fn half_full() -> Scene {
    let used = pod("used").cpu("2").memory("8Gi").on("a");
    scene([node("a"), node("b")], [used])
}

fn asking() -> PodBuilder {
    pod("p").cpu("1").memory("4Gi")
}

#[test]
fn least_requested_priority() {
    let verdict = ranks(named("LeastRequestedPriority"), half_full(), asking());
    assert_eq!(scores(&verdict, "NodeResourcesFit"), (2 * 25, 2 * 75));
}

#[test]
fn most_requested_priority() {
    let verdict = ranks(named("MostRequestedPriority"), half_full(), asking());
    assert_eq!(scores(&verdict, "NodeResourcesFit"), (2 * 75, 2 * 25));
}

#[test]
fn requested_to_capacity_ratio_priority() {
    let shape = json!([{ "utilization": 0, "score": 0 }, { "utilization": 100, "score": 10 }]);
    let resources = json!([{ "name": "cpu", "weight": 1 }, { "name": "memory", "weight": 3 }]);
    let argument = json!({ "requestedToCapacityRatioArguments": { "shape": shape, "resources": resources } });
    let verdict = ranks(json!({ "name": "BinPack", "argument": argument }), half_full(), asking());
    assert_eq!(scores(&verdict, "NodeResourcesFit"), (2 * 75, 2 * 25));
}

#[test]
fn balanced_resource_allocation() {
    // Half of the memory: it balances a node half of whose cores are taken, and unbalances an empty one.
    let scene = scene([node("a"), node("b")], [pod("cpu").cpu("2").on("a")]);
    let verdict = ranks(named("BalancedResourceAllocation"), scene, pod("p").memory("8Gi"));
    let (a, b) = scores(&verdict, "NodeResourcesBalancedAllocation");
    assert!(a > b, "{a} {b}");
}

#[test]
fn selector_spread_priority() {
    let scene = scene([node("a"), node("b")], [pod("one").label("app", "web").on("a")]);
    let scene = scene.object(service("s", &[("app", "web")]));
    let verdict = ranks(named("SelectorSpreadPriority"), scene, pod("p").label("app", "web"));
    let (a, b) = scores(&verdict, "PodTopologySpread");
    assert!(a < b, "{a} {b}");
}

#[test]
fn service_spreading_priority() {
    let scene = scene([node("a"), node("b")], [pod("one").label("app", "web").on("a")]);
    let scene = scene.object(service("s", &[("app", "web")]));
    let verdict = ranks(named("ServiceSpreadingPriority"), scene, pod("p").label("app", "web"));
    assert_eq!(scores(&verdict, "ServiceSpreadingPriority"), (0, 2 * 100));
}

#[test]
fn even_pods_spread_priority() {
    let scene = scene([node("a").zone("a"), node("b").zone("b")], [pod("one").label("app", "web").on("a")]);
    let when = WhenUnsatisfiable::ScheduleAnyway;
    let zone = crate::model::node::ZONE_LABEL.into();
    let soft = TopologySpreadConstraint::new(1, zone, when, selector(&[("app", "web")]));
    let verdict = ranks(named("EvenPodsSpreadPriority"), scene, pod("p").label("app", "web").spread(soft));
    assert_eq!(scores(&verdict, "PodTopologySpread"), (0, 2 * 100));
}

#[test]
fn inter_pod_affinity_priority_counts_required_terms_with_the_hard_weight() {
    let wants_web = pod("one").pod_affinity("kubernetes.io/hostname", selector(&[("app", "web")])).on("a");
    let likes_db = pod("two").preferred_pod_affinity(5, "kubernetes.io/hostname", selector(&[("app", "web")])).on("b");
    let scene = scene([node("a"), node("b")], [wants_web, likes_db]);
    let p = || pod("p").label("app", "web");
    // 1 against 5, and 10 against 5.
    let verdict = ranks(named("InterPodAffinityPriority"), scene.clone(), p());
    assert_eq!(scores(&verdict, "InterPodAffinity"), (0, 2 * 100));
    let hard = of(&json!({
        "predicates": [],
        "priorities": [{ "name": "InterPodAffinityPriority", "weight": 1 }],
        "hardPodAffinitySymmetricWeight": 10
    }));
    assert_eq!(scores(&scene.profile(hard).decide(p()), "InterPodAffinity"), (100, 0));
}

#[test]
fn node_affinity_priority() {
    let term = NodeSelectorTerm {
        expressions: vec![crate::model::node_selector::NodeRequirement {
            key: "disk".into(),
            op: crate::model::node_selector::NodeOperator::In(vec!["ssd".into()]),
        }],
        ..Default::default()
    };
    let scene = scene([node("a"), node("b").label("disk", "ssd")], []);
    let verdict = ranks(named("NodeAffinityPriority"), scene, pod("p").preferred_node_term(5, term));
    assert_eq!(scores(&verdict, "NodeAffinity"), (0, 2 * 100));
}

#[test]
fn taint_toleration_priority() {
    let scene = scene([node("a").taint("k", "v", Effect::PreferNoSchedule), node("b")], []);
    let verdict = ranks(named("TaintTolerationPriority"), scene, pod("p"));
    assert_eq!(scores(&verdict, "TaintToleration"), (0, 2 * 100));
}

#[test]
fn image_locality_priority() {
    let scene = scene([node("a"), node("b").image("app:v1", 1 << 30)], []);
    let verdict = ranks(named("ImageLocalityPriority"), scene, pod("p").image("app:v1"));
    let (a, b) = scores(&verdict, "ImageLocality");
    assert!(a == 0 && b > 0, "{a} {b}");
}

#[test]
fn node_prefer_avoid_pods_priority() {
    let avoided = AvoidedController { kind: "ReplicaSet".into(), uid: "uid-ReplicaSet-web".into() };
    let scene = scene([node("a").with(|n| n.avoided.push(avoided)), node("b")], []);
    let verdict = ranks(named("NodePreferAvoidPodsPriority"), scene, pod("p").owner("apps/v1", "ReplicaSet", "web"));
    assert_eq!(scores(&verdict, "NodePreferAvoidPodsPriority"), (0, 2 * 100));
}

#[test]
fn node_label_priority() {
    let argument = json!({ "labelPreference": { "label": "ssd", "presence": true } });
    let scene = scene([node("a"), node("b").label("ssd", "")], []);
    let verdict = ranks(json!({ "name": "PreferSSD", "argument": argument }), scene, pod("p"));
    assert_eq!(scores(&verdict, "NodeLabelPriority"), (0, 2 * 100));
}

#[test]
fn service_anti_affinity_priority() {
    let argument = json!({ "serviceAntiAffinity": { "label": "rack" } });
    let nodes = [node("a").label("rack", "a"), node("b").label("rack", "b")];
    let scene = scene(nodes, [pod("one").label("app", "web").on("a")]).object(service("s", &[("app", "web")]));
    let verdict = ranks(json!({ "name": "RackSpread", "argument": argument }), scene, pod("p").label("app", "web"));
    assert_eq!(scores(&verdict, "ServiceAntiAffinityPriority"), (0, 2 * 100));
}

#[test]
fn service_anti_affinity_gives_0_to_a_node_without_the_label() {
    let argument = json!({ "serviceAntiAffinity": { "label": "rack" } });
    let scene = scene([node("a"), node("b").label("rack", "b")], []);
    let verdict = ranks(json!({ "name": "RackSpread", "argument": argument }), scene, pod("p"));
    assert_eq!(scores(&verdict, "ServiceAntiAffinityPriority"), (0, 2 * 100));
}

#[test]
fn equal_priority_changes_no_ranking() {
    let verdict = ranks(named("EqualPriority"), half_full(), asking());
    assert_eq!(verdict.decision.scores.as_ref().unwrap().totals, [1, 1]);
    let both = json!([{ "name": "EqualPriority", "weight": 100 }, { "name": "LeastRequestedPriority", "weight": 1 }]);
    let verdict = half_full().profile(priorities(both)).decide(asking());
    assert_eq!(verdict.decision.scores.as_ref().unwrap().totals, [25, 75]);
}
