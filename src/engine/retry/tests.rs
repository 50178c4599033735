//! What a refusal waits for, and what a difference tells.

use super::*;
use crate::cluster::View;
use crate::engine::ClusterEvent;
use crate::engine::testing::scene;
use crate::model::Effect;
use crate::model::testing::{node, pod};

fn waiting(nodes: Vec<crate::model::testing::NodeBuilder>, pod: crate::model::testing::PodBuilder) -> Waiting {
    let decision = scene(nodes, []).decide(pod).decision;
    Waiting::of(&decision, &Profile::default()).unwrap()
}

fn has(waiting: &Waiting, resource: EventResource, action: ActionType) -> bool {
    waiting.events.contains(ClusterEvent { resource, action })
}

#[test]
fn a_refusal_waits_for_the_events_of_the_plugins_that_refused_a_node_and_for_new_nodes() {
    let full = waiting(vec![node("n1").cpu("1")], pod("p").cpu("2"));
    assert!(full.alone && has(&full, EventResource::AssignedPod, ActionType::Delete));
    assert!(has(&full, EventResource::Node, ActionType::Add));
    assert!(!has(&full, EventResource::Node, ActionType::UpdateNodeTaint));
    let tainted = node("n2").taint("dedicated", "x", Effect::NoSchedule);
    let both = waiting(vec![node("n1").cpu("1"), tainted], pod("p").cpu("2"));
    assert!(has(&both, EventResource::Node, ActionType::UpdateNodeTaint));
    assert!(has(&both, EventResource::Node, ActionType::UpdateNodeAllocatable));
    let none = waiting(vec![], pod("p"));
    assert_eq!(none.events, NEW_NODE);
    let gated = waiting(vec![node("n1")], pod("p").gate("wait"));
    assert!(has(&gated, EventResource::UnschedulablePod, ActionType::UpdatePodSchedulingGatesEliminated));
    assert_eq!(gated.events.iter().count(), 1);
}

#[test]
fn who_looks_at_other_nodes_does_not_judge_alone() {
    let near = pod("p").pod_affinity("kubernetes.io/hostname", crate::model::testing::selector(&[("app", "web")]));
    assert!(!waiting(vec![node("n1")], near).alone);
}

#[test]
fn equal_views_differ_in_nothing_and_each_change_is_told_with_its_node() {
    let earlier = scene([node("n1"), node("n2")], [pod("a").on("n1")]).view;
    assert_eq!(Difference::between(&earlier, &earlier.clone()), Difference::default());
    let told = |change: &dyn Fn(&mut View)| {
        let mut later = earlier.clone();
        change(&mut later);
        let difference = Difference::between(&earlier, &later);
        let names = difference.nodes.iter().map(|o| later.node(*o).unwrap().name().to_string());
        let events: Vec<String> =
            difference.events.iter().map(|e| format!("{:?}/{:?}", e.resource, e.action)).collect();
        (events.join(" "), names.collect::<Vec<_>>().join(" "))
    };
    let text = |events: &str, nodes: &str| (events.to_owned(), nodes.to_owned());
    let put = |n: crate::model::testing::NodeBuilder| {
        move |view: &mut View| {
            view.upsert_node(Arc::new(n.clone().build()));
        }
    };
    assert_eq!(told(&put(node("n3"))), text("Node/Add", "n3"));
    assert_eq!(told(&put(node("n2").cordoned())), text("Node/UpdateNodeTaint", "n2"));
    assert_eq!(told(&put(node("n2").label("a", "b"))), text("Node/UpdateNodeLabel", "n2"));
    assert_eq!(told(&|view| drop(view.remove_node("n2"))), text("Node/Delete", ""));
    assert_eq!(told(&|view| drop(view.remove_node("n1"))), text("Node/Delete AssignedPod/Delete", ""));
    let add = |p: crate::model::testing::PodBuilder| {
        move |view: &mut View| {
            view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.clone().build()))));
        }
    };
    assert_eq!(told(&add(pod("b").on("n2"))), text("AssignedPod/Add", "n2"));
    assert_eq!(told(&add(pod("a").on("n1").label("x", "y"))), text("AssignedPod/UpdatePodLabel", "n1"));
    assert_eq!(told(&add(pod("a").on("n2"))), text("AssignedPod/Add AssignedPod/Delete", "n1 n2"));
    let replaced = |view: &mut View| {
        view.remove_node("n2");
        view.upsert_node(Arc::new(node("n9").build()));
    };
    assert_eq!(told(&replaced), text("Node/Add Node/Delete", "n9"));
}
