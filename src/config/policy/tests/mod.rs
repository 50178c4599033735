//! One test for each predicate and priority, driven by a Policy file: a pod that it alone rejects, or nodes that it alone
//! ranks. Then what the file as a whole says: order, lists that are absent or empty, mistakes.

mod predicate;
mod priority;

use serde_json::json;

use crate::config::{Lines, from_value, load};
use crate::engine::Profile;
use crate::engine::plugin::Plugin;
use crate::engine::testing::{Scene, Verdict, scene};
use crate::model::csi_migration::MIGRATED_PLUGINS;
use crate::model::node::AvoidedController;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector, service};
use crate::model::testing_storage::{claim, claim_volume, csi_node, delayed_class, volume};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::volume::VolumeSource;
use crate::model::{Effect, NodeCondition, NodeSelectorTerm, TopologySpreadConstraint};

fn of(policy: &serde_json::Value) -> Profile {
    let mut policy = policy.clone();
    policy["kind"] = json!("Policy");
    let config = from_value(&policy, "policy.json").unwrap_or_else(|errors| panic!("{}", Lines(&errors)));
    let [profile] = config.profiles.as_slice() else { panic!("{:?}", config.profiles) };
    profile.clone()
}

/// A Policy with these predicates and no scoring.
fn predicates(list: serde_json::Value) -> Profile {
    of(&json!({ "kind": "Policy", "apiVersion": "v1", "predicates": list, "priorities": [] }))
}

/// A Policy with these priorities and no predicates but the mandatory ones.
fn priorities(list: serde_json::Value) -> Profile {
    of(&json!({ "kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": list }))
}

/// The refusal of node `n` of the scene under a Policy of one predicate; checks that without it nothing rejects the pod.
fn rejects_alone(predicate: serde_json::Value, scene: Scene, pod: &PodBuilder) -> String {
    let without = scene.clone().profile(predicates(json!([]))).decide(pod.clone());
    assert!(without.feasible().contains(&"n"), "rejected without the predicate");
    let with = scene.profile(predicates(json!([predicate]))).decide(pod.clone());
    assert!(!with.feasible().contains(&"n"), "not rejected");
    with.refusal("n")
}

fn condition(kind: &str, status: &str) -> NodeCondition {
    NodeCondition { kind: kind.into(), status: status.into() }
}

fn reporting(kind: &str, status: &str) -> NodeBuilder {
    node("n").with(|n| n.conditions.push(condition(kind, status)))
}

fn named(name: &str) -> serde_json::Value {
    json!({ "name": name })
}

fn ebs(id: usize) -> VolumeSource {
    VolumeSource::AwsElasticBlockStore { volume_id: format!("vol-{id}").into(), read_only: false }
}

fn gce(id: usize) -> VolumeSource {
    VolumeSource::GcePersistentDisk { pd_name: format!("pd-{id}").into(), read_only: false }
}

fn azure(id: usize) -> VolumeSource {
    VolumeSource::AzureDisk { disk_name: format!("disk-{id}").into() }
}

fn cinder(id: usize) -> VolumeSource {
    VolumeSource::Cinder { volume_id: format!("cinder-{id}").into() }
}

/// Node `n` with so many volumes of a type in use.
fn in_use(source: fn(usize) -> VolumeSource, volumes: usize) -> Scene {
    let user = (0..volumes).fold(pod("user"), |p, i| p.volume(&format!("v{i}"), source(i)));
    scene([node("n")], [user.on("n")])
}

fn wanting(source: fn(usize) -> VolumeSource) -> PodBuilder {
    pod("p").volume("v", source(900))
}

/// The Policy file of the old posts.
const POSTS: &str = r#"{
  "kind": "Policy",
  "apiVersion": "v1",
  "predicates": [
    {"name": "PodFitsHostPorts", "order": 2},
    {"name": "PodFitsResources", "order": 3},
    {"name": "NoDiskConflict", "order": 5},
    {"name": "PodToleratesNodeTaints", "order": 4},
    {"name": "MatchNodeSelector", "order": 6},
    {"name": "PodFitsHost", "order": 1}
  ],
  "priorities": [
    {"name": "LeastRequestedPriority", "weight": 1},
    {"name": "BalancedResourceAllocation", "weight": 1},
    {"name": "ServiceSpreadingPriority", "weight": 1},
    {"name": "EqualPriority", "weight": 1}
  ],
  "hardPodAffinitySymmetricWeight": 10
}"#;

fn posts() -> serde_json::Value {
    serde_json::from_str(POSTS).unwrap()
}

fn filters(profile: &Profile) -> Vec<&str> {
    profile.filters().map(Plugin::name).collect()
}

#[test]
fn the_old_posts_file_orders_as_it_says() {
    let profile = of(&posts());
    assert_eq!(&**profile.name(), "default-scheduler");
    let in_order = [
        "NodeName",
        "NodePorts",
        "NodeResourcesFit",
        "TaintToleration",
        "VolumeRestrictions",
        "NodeAffinity",
        // Mandatory, and without an order.
        "NodeUnschedulable",
    ];
    assert_eq!(filters(&profile), in_order);
    let scorers: Vec<(&str, i64)> = profile.scorers().map(|(plugin, weight)| (plugin.name(), weight)).collect();
    let weighed = [("NodeResourcesFit", 1), ("NodeResourcesBalancedAllocation", 1), ("ServiceSpreadingPriority", 1)];
    assert_eq!(scorers, weighed);
}

/// A node and a pod that fail all of the posts' predicates but for the name of the host.
fn hopeless() -> (Scene, PodBuilder) {
    let taken = pod("taken").host_port("", "TCP", 80).volume("v", ebs(0)).on("n");
    let node = node("n").cpu("1").taint("k", "v", Effect::NoSchedule).cordoned();
    let p = pod("p").cpu("2").host_port("", "TCP", 80).volume("v", ebs(0)).node_selector("disk", "ssd");
    (scene([node], [taken]), p)
}

#[test]
fn a_node_reports_the_first_failure_by_order() {
    let (scene, p) = hopeless();
    let verdict = scene.clone().profile(of(&posts())).decide(p.clone());
    assert_eq!(verdict.refusal("n"), "NodePorts U: node(s) didn't have free ports for the requested pod ports");
    let mut unordered = posts();
    for predicate in unordered["predicates"].as_array_mut().unwrap() {
        predicate.as_object_mut().unwrap().remove("order");
    }
    let verdict = scene.profile(of(&unordered)).decide(p);
    assert_eq!(verdict.refusal("n"), "NodeUnschedulable UU: node(s) were unschedulable");
}

#[test]
fn all_failures_are_reported_if_the_file_says_so() {
    let mut all = posts();
    all["alwaysCheckAllPredicates"] = json!(true);
    let (scene, p) = hopeless();
    let rejection = scene.profile(of(&all)).decide(p);
    let text = "NodePorts UU: node(s) didn't have free ports for the requested pod ports, Insufficient cpu, node(s) had \
                untolerated taint(s), node(s) had no available disk, node(s) didn't match Pod's node \
                affinity/selector, node(s) were unschedulable";
    assert_eq!(rejection.refusal("n"), text);
}

#[test]
fn without_orders_the_default_order_holds_and_custom_predicates_have_their_place() {
    let every = [
        "MatchInterPodAffinity",
        "EvenPodsSpread",
        "CheckNodeDiskPressure",
        "CheckNodePIDPressure",
        "CheckNodeMemoryPressure",
        "NoVolumeZoneConflict",
        "CheckVolumeBinding",
        "MaxCinderVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxCSIVolumeCountPred",
        "MaxGCEPDVolumeCount",
        "MaxEBSVolumeCount",
        "PodToleratesNodeNoExecuteTaints",
        "PodToleratesNodeTaints",
        "NoDiskConflict",
        "PodFitsResources",
        "MatchNodeSelector",
        "PodFitsHostPorts",
        "HostName",
        "CheckNodeUnschedulable",
        "CheckNodeCondition",
    ];
    let mut list: Vec<serde_json::Value> = every.into_iter().map(named).collect();
    list.push(json!({ "name": "A", "argument": { "serviceAffinity": { "labels": ["region"] } } }));
    list.push(json!({ "name": "B", "argument": { "labelsPresence": { "labels": ["rack"], "presence": true } } }));
    list.push(json!({ "name": "C", "argument": { "serviceAffinity": { "labels": ["rack"] } } }));
    let in_order = [
        "CheckNodeCondition",
        "NodeUnschedulable",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "TaintToleration",
        "PodToleratesNodeNoExecuteTaints",
        "CheckNodeLabelPresence",
        "CheckServiceAffinity",
        "MaxEBSVolumeCount",
        "NodeVolumeLimits",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxCinderVolumeCount",
        "VolumeBinding",
        "VolumeZone",
        "CheckNodeMemoryPressure",
        "CheckNodePIDPressure",
        "CheckNodeDiskPressure",
        "PodTopologySpread",
        "InterPodAffinity",
    ];
    assert_eq!(filters(&predicates(json!(list))), in_order);
}

#[test]
fn general_predicates_and_their_parts_run_once() {
    let list = json!([named("PodFitsResources"), named("GeneralPredicates"), named("HostName")]);
    assert_eq!(filters(&predicates(list)), ["NodeUnschedulable", "GeneralPredicates", "TaintToleration"]);
    let first = json!([{ "name": "PodFitsResources", "order": 1 }, named("GeneralPredicates")]);
    let in_order = ["NodeResourcesFit", "NodeUnschedulable", "GeneralPredicates", "TaintToleration"];
    assert_eq!(filters(&predicates(first)), in_order);
}

#[test]
fn an_empty_list_leaves_the_mandatory_predicates() {
    assert_eq!(filters(&predicates(json!([]))), ["NodeUnschedulable", "TaintToleration"]);
}

#[test]
fn absent_lists_are_those_of_kubernetes_1_20() {
    let profile = of(&json!({ "kind": "Policy", "apiVersion": "v1" }));
    let in_order = [
        "NodeUnschedulable",
        "GeneralPredicates",
        "VolumeRestrictions",
        "TaintToleration",
        "MaxEBSVolumeCount",
        "NodeVolumeLimits",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ];
    assert_eq!(filters(&profile), in_order);
    let scorers: Vec<(&str, i64)> = profile.scorers().map(|(plugin, weight)| (plugin.name(), weight)).collect();
    let weighed = [
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 1),
        ("NodeResourcesFit", 1),
        ("NodeResourcesBalancedAllocation", 1),
        ("NodePreferAvoidPodsPriority", 10_000),
        ("NodeAffinity", 1),
        ("TaintToleration", 1),
        ("ImageLocality", 1),
    ];
    assert_eq!(scorers, weighed);
}

#[test]
fn two_names_of_one_plugin_count_with_the_larger_weight() {
    let list = json!([
        { "name": "SelectorSpreadPriority", "weight": 5 },
        { "name": "EvenPodsSpreadPriority", "weight": 3 }
    ]);
    let profile = priorities(list);
    let scorers: Vec<(&str, i64)> = profile.scorers().map(|(plugin, weight)| (plugin.name(), weight)).collect();
    assert_eq!(scorers, [("PodTopologySpread", 5)]);
}

#[test]
fn keys_match_without_regard_to_case() {
    let policy = json!({
        "APIVersion": "v1",
        "Predicates": [{ "Name": "HostName", "ORDER": 3 }],
        "priorities": [{ "name": "PreferSSD", "Weight": 1, "Argument": { "LabelPreference": { "Label": "ssd" } } }],
        "AlwaysCheckAllPredicates": true
    });
    let profile = of(&policy);
    assert_eq!(filters(&profile), ["NodeName", "NodeUnschedulable", "TaintToleration"]);
    assert!(profile.checks_all());
    assert_eq!(load(r#"{"Kind": "Policy"}"#, "policy.json").unwrap().profiles.len(), 1);
}

#[test]
fn gated_pods_wait_under_a_policy_too() {
    let scene = scene([node("n")], []).profile(of(&posts()));
    assert!(matches!(scene.decide(pod("p").gate("g")).decision.outcome, crate::engine::Outcome::Gated(_)));
}

#[test]
fn a_migrated_type_is_counted_by_the_csi_predicate() {
    let mut csi_node = csi_node("n", &[]);
    csi_node.meta.annotations.insert(MIGRATED_PLUGINS.into(), "kubernetes.io/aws-ebs".into());
    let profile = predicates(json!([named("MaxEBSVolumeCount")]));
    let verdict = in_use(ebs, 39).object(csi_node).profile(profile).decide(wanting(ebs));
    assert_eq!(verdict.feasible(), ["n"]);
}

fn errors(policy: &serde_json::Value) -> String {
    from_value(policy, "policy.json").map(|_| String::new()).unwrap_or_else(|errors| Lines(&errors).to_string())
}

#[test]
fn every_mistake_of_a_file_is_told_at_once() {
    let policy = json!({
        "kind": "Policy", "apiVersion": "v2",
        "predicate": [],
        "predicates": [
            { "name": "PodFitsResource" },
            { "name": "CheckServiceAffinity" },
            { "name": "GpuShare" },
            { "name": "Both", "argument": {
                "labelsPresence": { "labels": ["rack"], "presence": true }, "serviceAffinity": { "labels": ["rack"] } } },
            { "name": "Neither", "argument": {} },
            { "name": "HostName", "order": 2 },
            { "name": "PodFitsHostPorts", "order": 2 },
            { "name": "MatchNodeSelector", "order": -1 },
            { "name": "NoDiskConflict", "order": 0 },
            { "order": "first" },
            { "name": "Typed", "argument": { "labelsPresence": { "labels": [7], "presence": "yes", "present": 1 } } },
            "PodFitsHost"
        ],
        "priorities": [
            { "name": "LeastRequestedPriority", "weight": 0 },
            { "name": "MostRequestedPriority", "weight": 92233720368547758i64 },
            { "name": "LeastRequestdPriority", "weight": 1 },
            { "name": "NodeLabelPriority", "weight": 1 },
            { "name": "Two", "weight": 1, "argument": {
                "serviceAntiAffinity": { "label": "rack" }, "labelPreference": { "label": "ssd" } } },
            { "name": "NoLabel", "weight": 1, "argument": { "labelPreference": { "presence": true } } },
            { "name": "Pack", "weight": 1, "argument": { "requestedToCapacityRatioArguments": {
                "shape": [{ "utilization": 50, "score": 11 }, { "utilization": 50, "score": 0 },
                          { "utilization": 101, "score": -1 }],
                "resources": [{ "name": "cpu", "weight": 101 }, { "name": "cpu" }, { "weight": 1 }] } } },
            { "name": "Again", "weight": 1, "argument": { "requestedToCapacityRatioArguments": { "shape": [] } } }
        ],
        "extenders": [
            { "urlPrefix": "http://127.0.0.1:8080/api", "prioritizeVerb": "prioritize", "bindVerb": "bind",
              "managedResources": [{ "name": "example.com/foo" }, { "name": "cpu" }] },
            { "urlPrefix": "http://127.0.0.1:8081/api", "bindVerb": "bind",
              "managedResources": [{ "name": "example.com/foo" }] }
        ],
        "hardPodAffinitySymmetricWeight": 101,
        "alwaysCheckAllPredicates": "true"
    });
    let told = errors(&policy) + "\n";
    assert_eq!(told, include_str!("../mistakes.golden"), "told now:\n{told}");
}

#[test]
fn wrong_types_and_doubled_keys_are_told() {
    let policy = json!({ "kind": "Policy", "predicates": {} });
    assert_eq!(errors(&policy), "policy.json: predicates: expected a list, found an object");
    let twice = json!({ "kind": "Policy", "Predicates": [], "predicates": [] });
    assert_eq!(errors(&twice), "policy.json: predicates: duplicates predicates");
}

#[test]
fn a_policy_may_be_yaml() {
    let yaml = "kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\npriorities: []\n";
    let config = load(yaml, "policy.yaml").unwrap();
    assert_eq!(filters(&config.profiles[0]), ["NodeUnschedulable", "NodeName", "TaintToleration"]);
}

#[test]
fn a_hard_weight_without_its_priority_is_noted() {
    let text = "hardPodAffinitySymmetricWeight has no effect: InterPodAffinityPriority is not among the priorities";
    assert_eq!(load(POSTS, "policy.json").unwrap().notes, [text]);
    assert!(load(r#"{"kind": "Policy", "hardPodAffinitySymmetricWeight": 5}"#, "p").unwrap().notes.is_empty());
}
