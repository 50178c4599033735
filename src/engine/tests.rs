use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::cluster::PodInfo;
use crate::model::node_selector::{NODE_NAME_FIELD, NodeOperator, NodeRequirement};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod};
use crate::model::{Effect, NodeSelectorTerm};

fn view(nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>) -> View {
    let mut view = View::default();
    for n in nodes {
        view.upsert_node(Arc::new(n.build()));
    }
    for p in pods {
        assert!(view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.build())))));
    }
    view
}

fn decide_on(view: &View, p: PodBuilder) -> Decision {
    let pod = p.build();
    let options = Options { detail: Detail::Full, ..Options::default() };
    decide(view, &IncomingPod::new(&pod), &Profile::default(), &options, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_cluster_without_nodes_says_so() {
    let decision = decide_on(&View::default(), pod("a"));
    assert_eq!(message::fit_message(&decision).as_deref(), Some("no nodes available to schedule pods"));
}

#[test]
fn the_message_counts_reasons_and_sorts_them_as_text() {
    let mut nodes: Vec<NodeBuilder> = (0..10).map(|i| node(&format!("full{i}")).cpu("1")).collect();
    nodes.extend((0..2).map(|i| node(&format!("cordoned{i}")).cordoned()));
    let decision = decide_on(&view(nodes, vec![]), pod("a").cpu("2"));
    assert_eq!(
        message::fit_message(&decision).as_deref(),
        Some("0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable.")
    );
}

#[test]
fn ties_do_not_depend_on_the_order_of_events() {
    let names = ["a", "b", "c", "d", "e"];
    let forward = view(names.iter().map(|n| node(n)).collect(), vec![]);
    let backward = view(names.iter().rev().map(|n| node(n)).collect(), vec![]);
    assert_eq!(decide_on(&forward, pod("p")).node(), decide_on(&backward, pod("p")).node());
}

#[test]
fn another_seed_gives_another_order_among_equals() {
    let v = view((0..50).map(|i| node(&format!("n{i}"))).collect(), vec![]);
    let pod = pod("p").build();
    let chosen = |seed| {
        let profile = Profile::default().with_seed(seed);
        let cancel = AtomicBool::new(false);
        decide(&v, &IncomingPod::new(&pod), &profile, &Options::default(), &cancel).unwrap().node().cloned()
    };
    let different: std::collections::BTreeSet<_> = (0..20).map(chosen).collect();
    assert!(different.len() > 5, "{different:?}");
}

#[test]
fn a_set_cancel_flag_ends_the_decision() {
    let v = view(vec![node("n1")], vec![]);
    let pod = pod("p").build();
    let result = decide(&v, &IncomingPod::new(&pod), &Profile::default(), &Options::default(), &AtomicBool::new(true));
    assert_eq!(result, Err(EngineError::Cancelled(0)));
}

#[test]
fn only_candidates_are_looked_at() {
    let v = view(vec![node("n1"), node("n2").cpu("64"), node("n3").cordoned()], vec![]);
    let pod = pod("p").build();
    let candidates: Vec<Ordinal> = ["n1", "n3"].iter().filter_map(|n| v.ordinal(n)).collect();
    let options = Options { candidates: Some(&candidates), detail: Detail::Full };
    let decision = decide(&v, &IncomingPod::new(&pod), &Profile::default(), &options, &AtomicBool::new(false)).unwrap();
    assert_eq!((decision.node().map(|n| &**n), decision.nodes, decision.evaluated), (Some("n1"), 2, 2));
}

#[test]
fn a_gated_pod_waits() {
    let decision = decide_on(&view(vec![node("n1")], vec![]), pod("a").gate("x.example/one").gate("two"));
    assert_eq!(message::fit_message(&decision).as_deref(), Some("waiting for scheduling gates: [x.example/one two]"));
}

#[test]
fn only_the_first_failing_plugin_of_a_node_is_reported() {
    let n = node("n").cordoned().taint("k", "", crate::model::Effect::NoSchedule).cpu("1");
    let decision = decide_on(&view(vec![n], vec![]), pod("p").cpu("2").node_selector("absent", ""));
    let plugins: Vec<&str> = decision.rejected.iter().map(|(_, rejection)| rejection.plugin).collect();
    assert_eq!(plugins, ["NodeUnschedulable"]);
}

#[test]
fn a_single_feasible_node_is_taken_without_scoring() {
    let v = view(vec![node("n1"), node("n2").cordoned()], vec![]);
    let pod = pod("p").build();
    let decide = |detail| {
        let options = Options { detail, ..Options::default() };
        decide(&v, &IncomingPod::new(&pod), &Profile::default(), &options, &AtomicBool::new(false)).unwrap()
    };
    assert!(matches!(decide(Detail::Choice).outcome, Outcome::Placed { score: 0, .. }));
    // Scored only for whoever wants to see the scores.
    assert!(matches!(decide(Detail::Full).outcome, Outcome::Placed { score: 1.., .. }));
}

#[test]
fn without_scorers_every_node_scores_1() {
    let v = view(vec![node("n1"), node("n2")], vec![]);
    let pod = pod("p").build();
    let profile = Profile::new("none".into(), 0, vec![]);
    let options = Options { detail: Detail::Full, ..Options::default() };
    let decision = decide(&v, &IncomingPod::new(&pod), &profile, &options, &AtomicBool::new(false)).unwrap();
    assert_eq!(decision.scores.map(|s| s.totals), Some(vec![1, 1]));
}

/// A profile of these plugins by name at PreFilter and Filter.
fn filtering(pre_filters: &[&str], filters: &[&str]) -> Profile {
    let mut made: Vec<Arc<dyn plugin::Plugin>> = Vec::new();
    for name in pre_filters.iter().chain(filters) {
        if made.iter().all(|plugin| plugin.name() != *name) {
            made.push(registry::make(name).unwrap());
        }
    }
    let of = |names: &[&str]| names.iter().map(|n| made.iter().find(|p| p.name() == *n).unwrap().clone()).collect();
    let points = profile::Points { pre_filters: of(pre_filters), filters: of(filters), ..Default::default() };
    Profile::with_points("filtering".into(), 0, points)
}

#[test]
fn the_order_of_filters_decides_which_refuses_first() {
    let cluster = || testing::scene([node("n1").taint("k", "v", Effect::NoSchedule).cordoned()], []);
    for (order, first) in [
        (["NodeUnschedulable", "TaintToleration"], "NodeUnschedulable"),
        (["TaintToleration", "NodeUnschedulable"], "TaintToleration"),
    ] {
        let verdict = cluster().profile(filtering(&[], &order)).decide(pod("p"));
        assert_eq!(verdict.rejection("n1").plugin, first);
    }
}

#[test]
fn checking_all_tells_every_filters_reasons_in_order_with_the_worst_code() {
    let full = || node("n1").allocatable("cpu", "1").taint("k", "v", Effect::NoSchedule);
    let busy = || pod("busy").on("n1").cpu("1");
    let all = filtering(&["NodeResourcesFit"], &["NodeResourcesFit", "TaintToleration"]).with_check_all(true);
    let verdict = testing::scene([full()], [busy()]).profile(all).decide(pod("p").cpu("1"));
    assert_eq!(verdict.refusal("n1"), "NodeResourcesFit UU: Insufficient cpu, node(s) had untolerated taint(s)");
    assert_eq!(
        message::fit_message(&verdict.decision).unwrap(),
        "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
    );
    let first = filtering(&["NodeResourcesFit"], &["NodeResourcesFit", "TaintToleration"]);
    let verdict = testing::scene([full()], [busy()]).profile(first).decide(pod("p").cpu("1"));
    assert_eq!(verdict.refusal("n1"), "NodeResourcesFit U: Insufficient cpu");
}

#[test]
fn a_plugin_at_pre_filter_only_still_narrows_and_one_at_filter_only_refuses_node_by_node() {
    let nodes = || testing::scene([node("n1"), node("n2")], []);
    let name = NodeRequirement { key: NODE_NAME_FIELD.into(), op: NodeOperator::In(vec!["n1".into()]) };
    let term = NodeSelectorTerm { expressions: vec![], fields: vec![name] };
    let wants_n1 = || pod("p").required_node_terms(vec![term.clone()]);
    let narrowed = nodes().profile(filtering(&["NodeAffinity"], &[])).decide(wants_n1());
    assert_eq!(narrowed.feasible(), ["n1"]);
    assert!(narrowed.decision.rejected.is_empty());
    let filtered = nodes().profile(filtering(&[], &["NodeAffinity"])).decide(wants_n1());
    assert_eq!(filtered.feasible(), ["n1"]);
    assert_eq!(filtered.rejection("n2").plugin, "NodeAffinity");
}
