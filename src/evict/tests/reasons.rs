//! What is said of suggestions and of pods that were left alone.

use super::{given, old, replica};
use crate::evict::policy::{LowNodeUtilizationArgs, PluginConfig, RemoveDuplicatesArgs};
use crate::model::Effect;
use crate::model::testing::{node, pod};
use crate::model::volume::VolumeSource;

#[test]
fn every_protection_of_a_pod_is_told() {
    let held = pod("a").on("n1").created(0).volume("v", VolumeSource::HostPath).priority(2_000_000_000).terminating();
    let outcome = given(old(), [held]).outcome();
    assert_eq!(
        outcome.left_alone[0].why.to_string(),
        "pod is terminating; pod has local storage; pod has system critical priority; pod has no owner"
    );
}

#[test]
fn nodes_that_do_not_fit_are_counted_by_reason() {
    let nodes = [
        node("n1"),
        node("n2").cordoned(),
        node("n3").cordoned(),
        node("n4").taint("k", "v", Effect::NoSchedule),
        node("n5").cpu("1"),
    ];
    let given = given(old(), [replica("a").cpu("2")]).nodes(nodes).evictor(|args| args.node_fit = true);
    assert_eq!(
        given.outcome().left_alone[0].why.to_string(),
        "pod fits no node that it may go to: 0/4 nodes fit: 2 node is unschedulable, \
         1 node has the untolerated taint k=v, 1 insufficient cpu"
    );
}

#[test]
fn pods_that_no_rule_speaks_of_are_not_told() {
    let young = replica("a").created(super::NOW).volume("v", VolumeSource::EmptyDir);
    assert_eq!(given(old(), [young]).outcome().left_alone, []);
    let duplicates = PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs::default());
    let held = |name: &str, node: &str| replica(name).on(node).volume("v", VolumeSource::EmptyDir);
    let outcome = given(duplicates, [replica("a"), held("b", "n1"), held("c", "n2")]).outcome();
    let told: Vec<_> = outcome.left_alone.iter().map(|l| &*l.pod.meta.name).collect();
    assert_eq!(told, ["b"], "c has no pod of its kind beside it");
}

#[test]
fn reasons_carry_their_numbers() {
    let text = |plugin: PluginConfig, pods: Vec<crate::model::testing::PodBuilder>| {
        given(plugin, pods).outcome().suggestions[0].reason.to_string()
    };
    let low = PluginConfig::LowNodeUtilization(LowNodeUtilizationArgs {
        thresholds: [("cpu".into(), 20.0)].into(),
        target_thresholds: [("cpu".into(), 50.0)].into(),
        ..LowNodeUtilizationArgs::default()
    });
    assert_eq!(text(low, vec![replica("a").cpu("2500m")]), "node is overutilized: cpu at 62.50%, target 50%");
    assert_eq!(text(old(), vec![replica("a")]), "pod is 1000000s old");
    let duplicates = PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs::default());
    assert_eq!(
        text(duplicates, vec![replica("a"), replica("b")]),
        "2 pods of ReplicaSet default/rs are on the node, its share is 1"
    );
}
