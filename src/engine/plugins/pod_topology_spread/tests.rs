use std::sync::Arc;

use super::*;
use crate::cluster::PodInfo;
use crate::engine::Cancel;
use crate::engine::plugin::{Cycle, IncomingPod, NodeFilter, PreFilter};
use crate::engine::profile::Profile;
use crate::engine::status::Reason;
use crate::engine::testing::{Scene, only, scene};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector, service};
use crate::model::{Effect, ObjectMeta, ReplicaSet};

const SKEWED: &str = "PodTopologySpread U: node(s) didn't match pod topology spread constraints";
const UNLABELLED: &str =
    "PodTopologySpread UU: node(s) didn't match pod topology spread constraints (missing required label)";

fn web() -> LabelSelector {
    selector(&[("app", "web")])
}

fn hard(skew: i32, key: &str, selector: LabelSelector) -> TopologySpreadConstraint {
    TopologySpreadConstraint::new(skew, key.into(), WhenUnsatisfiable::DoNotSchedule, selector)
}

fn soft(skew: i32, key: &str, selector: LabelSelector) -> TopologySpreadConstraint {
    TopologySpreadConstraint::new(skew, key.into(), WhenUnsatisfiable::ScheduleAnyway, selector)
}

fn new() -> PodBuilder {
    pod("new").label("app", "web")
}

/// Nodes a1 and a2 in zone a, b1 in zone b.
fn zones() -> Vec<NodeBuilder> {
    vec![node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b")]
}

/// Pods that match, on these nodes.
fn webs(nodes: &[&str]) -> Vec<PodBuilder> {
    nodes.iter().enumerate().map(|(i, n)| pod(&format!("w{i}")).label("app", "web").on(n)).collect()
}

// --- hard constraints ---

#[test]
fn the_fuller_domain_is_refused_and_the_numbers_are_told() {
    let v = scene(zones(), webs(&["a1", "a2"])).decide(new().spread(hard(1, ZONE_LABEL, web())));
    assert_eq!((v.feasible(), v.refusal("a1").as_str()), (vec!["b1"], SKEWED));
    let reason = Reason::TopologySpread { topology_key: ZONE_LABEL.into(), skew: 3, max_skew: 1 };
    assert_eq!(v.rejection("a1").reasons[0], reason);
    let v = scene(zones(), webs(&["a1", "a2"])).decide(new().spread(hard(3, ZONE_LABEL, web())));
    assert_eq!(v.feasible(), ["a1", "a2", "b1"]);
}

#[test]
fn a_node_without_the_key_is_unresolvable() {
    let mut nodes = zones();
    nodes.push(node("bare"));
    let v = scene(nodes, []).decide(new().spread(hard(1, ZONE_LABEL, web())));
    assert_eq!(v.refusal("bare"), UNLABELLED);
}

#[test]
fn an_empty_selector_counts_no_pods_but_the_incoming_one() {
    let s = || scene(zones(), webs(&["a1", "a1", "a2"]));
    assert_eq!(s().decide(new().spread(hard(1, ZONE_LABEL, LabelSelector::everything()))).feasible().len(), 3);
}

#[test]
fn a_null_selector_counts_nothing_and_still_wants_the_key() {
    let mut nodes = zones();
    nodes.push(node("bare"));
    let v = scene(nodes, webs(&["a1", "a1"])).decide(new().spread(hard(1, ZONE_LABEL, LabelSelector::Nothing)));
    assert_eq!((v.feasible(), v.refusal("bare").as_str()), (vec!["a1", "a2", "b1"], UNLABELLED));
}

#[test]
fn a_pod_that_does_not_match_its_own_selector_adds_no_skew() {
    let other = || pod("new").label("app", "db").spread(hard(1, ZONE_LABEL, web()));
    assert_eq!(scene(zones(), webs(&["a1"])).decide(other()).feasible(), ["a1", "a2", "b1"]);
    assert_eq!(scene(zones(), webs(&["a1", "a2"])).decide(other()).feasible(), ["b1"]);
    assert_eq!(scene(zones(), webs(&["a1"])).decide(new().spread(hard(1, ZONE_LABEL, web()))).feasible(), ["b1"]);
}

#[test]
fn an_empty_tainted_zone_blocks_the_others_unless_taints_are_honoured() {
    let mut nodes = zones();
    nodes.push(node("c1").zone("c").taint("k", "", Effect::NoSchedule));
    let s = scene(nodes, webs(&["a1", "b1"]));
    let mut constraint = hard(1, ZONE_LABEL, web());
    assert!(s.decide(new().spread(constraint.clone())).feasible().is_empty(), "ignored by default");
    constraint.node_taints_policy = InclusionPolicy::Honor;
    assert_eq!(s.decide(new().spread(constraint.clone())).feasible(), ["a1", "a2", "b1"]);
    let tolerant = new().tolerates("k", None, None);
    assert_eq!(s.decide(tolerant.spread(constraint)).feasible(), ["c1"]);
    // Cordons are no taints here: an empty cordoned zone blocks too.
    let mut nodes = zones();
    nodes.push(node("c1").zone("c").cordoned());
    assert!(scene(nodes, webs(&["a1", "b1"])).decide(new().spread(hard(1, ZONE_LABEL, web()))).feasible().is_empty());
}

#[test]
fn nodes_outside_the_pods_affinity_are_no_domains_unless_ignored() {
    let mut nodes = zones();
    nodes.iter_mut().for_each(|n| *n = n.clone().label("pool", "x"));
    nodes.push(node("c1").zone("c"));
    let s = scene(nodes, webs(&["a1", "b1"]));
    let p = || new().node_selector("pool", "x");
    let mut constraint = hard(1, ZONE_LABEL, web());
    assert_eq!(s.decide(p().spread(constraint.clone())).feasible(), ["a1", "a2", "b1"], "honoured by default");
    constraint.node_affinity_policy = InclusionPolicy::Ignore;
    assert!(s.decide(p().spread(constraint)).feasible().is_empty());
}

#[test]
fn fewer_domains_than_min_domains_make_the_minimum_0() {
    let with = |min: i32| {
        let mut constraint = hard(1, ZONE_LABEL, web());
        constraint.min_domains = min;
        scene(zones(), webs(&["a1", "b1"])).decide(new().spread(constraint))
    };
    assert_eq!(with(2).feasible(), ["a1", "a2", "b1"]);
    assert!(with(3).feasible().is_empty());
}

#[test]
fn a_node_that_lacks_one_key_counts_for_no_constraint() {
    let nodes =
        vec![node("a1").zone("a").label("rack", "1"), node("b1").zone("b").label("rack", "2"), node("a9").zone("a")];
    // The three pods on a9, which has no rack, don't count for the zone either.
    let s = scene(nodes, webs(&["a9", "a9", "a9"]));
    let v = s.decide(new().spread(hard(1, ZONE_LABEL, web())).spread(hard(1, "rack", web())));
    assert_eq!((v.feasible(), v.refusal("a9").as_str()), (vec!["a1", "b1"], UNLABELLED));
    assert_eq!(s.decide(new().spread(hard(1, ZONE_LABEL, web()))).feasible(), ["b1"]);
}

#[test]
fn all_constraints_must_hold() {
    let s = scene(zones(), webs(&["a1", "b1"]));
    let v = s.decide(new().spread(hard(1, ZONE_LABEL, web())).spread(hard(1, HOSTNAME_LABEL, web())));
    assert_eq!(v.feasible(), ["a2"]);
}

#[test]
fn terminating_pods_and_other_namespaces_are_not_counted() {
    let pods =
        [pod("t").label("app", "web").terminating().on("a1"), pod("o").label("app", "web").namespace("other").on("a1")];
    assert_eq!(scene(zones(), pods).decide(new().spread(hard(1, ZONE_LABEL, web()))).feasible().len(), 3);
}

#[test]
fn match_label_keys_narrow_the_selector_to_the_pods_own_values() {
    let mut constraint = hard(1, ZONE_LABEL, web());
    constraint.match_label_keys = vec!["version".into(), "absent".into()];
    let old = webs(&["a1", "a2"]).into_iter().map(|w| w.label("version", "1"));
    let v = scene(zones(), old).decide(new().label("version", "2").spread(constraint));
    assert_eq!(v.feasible(), ["a1", "a2", "b1"]);
}

// --- pods that come and go ---

fn passing(s: &Scene, p: PodBuilder, changes: impl FnOnce(&mut dyn NodeFilter)) -> Vec<&'static str> {
    let p = p.build();
    let (incoming, profile, plugin) = (IncomingPod::new(&p), Profile::default(), PodTopologySpread::default());
    let cycle = Cycle::new(&s.view, &incoming, &profile, Cancel::never());
    let PreFilter::Filter(mut filter) = FilterPlugin::prepare(&plugin, &cycle) else { panic!("skipped") };
    changes(&mut *filter);
    ["a1", "a2", "b1"].into_iter().filter(|n| filter.check(&s.view.node_named(n).unwrap()).is_ok()).collect()
}

#[test]
fn pods_that_come_and_go_move_the_counts() {
    let s = scene(zones(), webs(&["a1"]));
    let row = |name: &str| s.view.node_named(name).unwrap();
    let p = || new().spread(hard(1, ZONE_LABEL, web()));
    let come = |on: &str, p: PodBuilder| PodInfo::on(Arc::new(p.build()), on.into());
    assert_eq!(passing(&s, p(), |_| {}), ["b1"]);
    let to_b = |f: &mut dyn NodeFilter| f.pod_added(&row("b1"), &come("b1", pod("x").label("app", "web")));
    assert_eq!(passing(&s, p(), to_b), ["a1", "a2", "b1"]);
    let first = s.view.pod("uid-default-w0").unwrap().clone();
    assert_eq!(passing(&s, p(), |f| f.pod_removed(&row("a1"), &first)), ["a1", "a2", "b1"]);
    let foreign = |f: &mut dyn NodeFilter| {
        f.pod_added(&row("b1"), &come("b1", pod("x").label("app", "web").namespace("other")));
        f.pod_added(&row("b1"), &come("b1", pod("y").label("app", "db")));
    };
    assert_eq!(passing(&s, p(), foreign), ["b1"]);
}

// --- soft constraints ---

#[test]
fn the_emptiest_domain_scores_100_and_the_fullest_in_proportion() {
    let v = scene(zones(), webs(&["a1", "a1"])).decide(new().spread(soft(1, ZONE_LABEL, web())));
    // Raw round(2 ln 4) = 3 and 0; weight 2.
    assert_eq!(["a1", "a2", "b1"].map(|n| v.score(NAME, n)), [0, 0, 200]);
    let v = scene(zones(), webs(&["a1", "a1", "b1"])).decide(new().spread(soft(1, ZONE_LABEL, web())));
    // Raw 3 and round(ln 4) = 1: 100 * (3 + 1 - 3) / 3 = 33 and 100.
    assert_eq!(["a1", "b1"].map(|n| v.score(NAME, n)), [66, 200]);
}

#[test]
fn with_nothing_to_count_every_node_scores_100() {
    let v = scene(zones(), []).decide(new().spread(soft(1, ZONE_LABEL, web())));
    assert_eq!(["a1", "a2", "b1"].map(|n| v.score(NAME, n)), [200, 200, 200]);
}

#[test]
fn a_feasible_node_without_the_key_scores_0() {
    let mut nodes = zones();
    nodes.push(node("bare"));
    let v = scene(nodes, webs(&["a1"])).decide(new().spread(soft(1, ZONE_LABEL, web())));
    assert_eq!((v.score(NAME, "bare"), v.score(NAME, "b1")), (0, 200));
}

#[test]
fn pods_of_nodes_that_are_not_feasible_count_for_their_domain() {
    let nodes = vec![node("a1").zone("a").cordoned(), node("a2").zone("a"), node("b1").zone("b")];
    let v = scene(nodes, webs(&["a1", "a1"])).decide(new().spread(soft(1, ZONE_LABEL, web())));
    assert_eq!((v.score(NAME, "a2"), v.score(NAME, "b1")), (0, 200));
}

#[test]
fn nodes_outside_the_pods_affinity_lend_their_pods_only_where_affinity_is_ignored() {
    let nodes =
        vec![node("a1").zone("a"), node("a2").zone("a").label("pool", "x"), node("b1").zone("b").label("pool", "x")];
    let s = scene(nodes, webs(&["a1", "a1"]));
    let score = |policy, n| {
        let mut constraint = soft(1, ZONE_LABEL, web());
        constraint.node_affinity_policy = policy;
        s.decide(new().node_selector("pool", "x").spread(constraint)).score(NAME, n)
    };
    assert_eq!((score(InclusionPolicy::Honor, "a2"), score(InclusionPolicy::Honor, "b1")), (200, 200));
    assert_eq!((score(InclusionPolicy::Ignore, "a2"), score(InclusionPolicy::Ignore, "b1")), (0, 200));
}

#[test]
fn the_hostname_key_counts_the_node_itself() {
    let v = scene(zones(), webs(&["a1", "a2", "a2"])).decide(new().spread(soft(1, HOSTNAME_LABEL, web())));
    // ln 5 = 1.609: raw 2, 3, 0.
    assert_eq!(["a1", "a2", "b1"].map(|n| v.score(NAME, n)), [66, 0, 200]);
}

// --- default constraints ---

/// Two pods of a kind on a1.
fn pair() -> Vec<PodBuilder> {
    webs(&["a1", "a1"])
}

#[test]
fn a_service_that_selects_the_pod_spreads_it_by_default() {
    let s = || scene(zones(), pair()).object(service("web", &[("app", "web")]));
    let v = s().decide(new());
    assert!(v.scored(NAME));
    assert!(v.score(NAME, "b1") > v.score(NAME, "a2") && v.score(NAME, "a2") > v.score(NAME, "a1"));
    assert_eq!(v.feasible().len(), 3, "softly");
    assert!(!s().decide(pod("other").label("app", "db")).scored(NAME));
}

#[test]
fn a_pod_that_nothing_owns_or_serves_is_not_spread() {
    assert!(!scene(zones(), pair()).decide(new()).scored(NAME));
    let elsewhere = service("web", &[("app", "db")]);
    assert!(!scene(zones(), pair()).object(elsewhere).decide(new()).scored(NAME));
}

#[test]
fn a_job_is_no_owner_and_a_replica_set_is() {
    let set = ReplicaSet {
        meta: ObjectMeta { name: "web".into(), namespace: "default".into(), ..Default::default() },
        selector: web(),
        ..Default::default()
    };
    let s = || scene(zones(), pair()).object(set.clone());
    assert!(s().decide(new().owner("apps/v1", "ReplicaSet", "web")).scored(NAME));
    assert!(!s().decide(new().owner("batch/v1", "Job", "web")).scored(NAME));
    assert!(!s().decide(new().owner("apps/v1", "ReplicaSet", "unknown")).scored(NAME));
    assert!(!s().decide(new().owner("other/v1", "ReplicaSet", "web")).scored(NAME));
}

#[test]
fn a_constraint_of_the_pods_own_displaces_the_defaults_of_both_kinds() {
    let list = vec![hard(1, ZONE_LABEL, LabelSelector::Nothing), soft(1, ZONE_LABEL, LabelSelector::Nothing)];
    let s = || {
        let defaults = only(PodTopologySpread { defaults: DefaultConstraints::List(list.clone()) });
        scene(zones(), pair()).object(service("web", &[("app", "web")])).profile(defaults)
    };
    assert_eq!(s().decide(new()).feasible(), ["b1"], "the default constraint is hard");
    let v = s().decide(new().spread(soft(1, HOSTNAME_LABEL, web())));
    assert_eq!(v.feasible(), ["a1", "a2", "b1"]);
    // Only over hosts: a2 and b1 are equal.
    assert_eq!(["a1", "a2", "b1"].map(|n| v.score(NAME, n)), [0, 100, 100]);
    let v = s().decide(new().spread(hard(9, ZONE_LABEL, web())));
    assert!(!v.scored(NAME), "no soft default either");
}

#[test]
fn system_defaults_also_judge_nodes_without_a_zone() {
    let nodes = vec![node("a1"), node("a2"), node("b1").zone("b")];
    let v = scene(nodes, pair()).object(service("web", &[("app", "web")])).decide(new());
    // The list of a profile would leave them out with 0.
    assert!(v.score(NAME, "a2") > v.score(NAME, "a1") && v.score(NAME, "a1") > 0, "{:?}", v.decision.scores);
}
