use std::sync::Arc;

use super::*;
use crate::cluster::PodInfo;
use crate::engine::Cancel;
use crate::engine::plugin::{Cycle, IncomingPod, NodeFilter, PreFilter};
use crate::engine::status::Reason;
use crate::engine::testing::{Scene, only, scene};
use crate::model::selector::{Operator, Requirement};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const AFFINITY: &str = "InterPodAffinity UU: node(s) didn't match pod affinity rules";
const ANTI: &str = "InterPodAffinity U: node(s) didn't match pod anti-affinity rules";
const EXISTING: &str = "InterPodAffinity U: node(s) didn't satisfy existing pods anti-affinity rules";

/// Nodes a1 and a2 in zone a, b1 in zone b.
fn zones() -> [NodeBuilder; 3] {
    [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b")]
}

fn web() -> LabelSelector {
    selector(&[("app", "web")])
}

fn negative(key: &str, op: Operator) -> LabelSelector {
    LabelSelector::new([Requirement { key: key.into(), op }])
}

/// A pod whose required term on zones has these namespaces.
fn scoped(anti: bool, names: &[&str], namespace_selector: Option<LabelSelector>) -> PodBuilder {
    let term = PodAffinityTerm {
        selector: web(),
        namespaces: names.iter().map(|n| Str::from(*n)).collect(),
        namespace_selector,
        topology_key: ZONE.into(),
    };
    pod("new").affinity(|a| {
        let side = if anti { &mut a.pod_anti } else { &mut a.pod };
        side.get_or_insert_default().required.push(term);
    })
}

// --- required affinity ---

#[test]
fn required_affinity_admits_only_the_domains_of_matching_pods() {
    let v = scene(zones(), [pod("w").label("app", "web").on("a1")]).decide(pod("new").pod_affinity(ZONE, web()));
    assert_eq!((v.feasible(), v.refusal("b1").as_str()), (vec!["a1", "a2"], AFFINITY));
    let reason = Reason::PodAffinity { topology_key: ZONE.into(), domain: Some("b".into()) };
    assert_eq!(v.rejection("b1").reasons[0], reason);
}

#[test]
fn the_first_pod_of_a_self_affine_set_passes_where_the_label_is() {
    let mut nodes = zones().to_vec();
    nodes.push(node("bare"));
    let v = scene(nodes, []).decide(pod("new").label("app", "web").pod_affinity(ZONE, web()));
    assert_eq!((v.feasible(), v.refusal("bare").as_str()), (vec!["a1", "a2", "b1"], AFFINITY));
    let reason = Reason::PodAffinity { topology_key: ZONE.into(), domain: None };
    assert_eq!(v.rejection("bare").reasons[0], reason);
}

#[test]
fn a_pod_that_does_not_match_its_own_affinity_is_no_first_pod() {
    let v = scene(zones(), []).decide(pod("new").pod_affinity(ZONE, web()));
    assert!(v.feasible().is_empty());
    // Its labels match, but the term speaks of another namespace.
    let v = scene(zones(), []).decide(scoped(false, &["other"], None).label("app", "web"));
    assert!(v.feasible().is_empty());
}

#[test]
fn the_second_pod_of_a_self_affine_set_must_join_the_first() {
    let v = scene(zones(), [pod("w").label("app", "web").on("b1")])
        .decide(pod("new").label("app", "web").pod_affinity(ZONE, web()));
    assert_eq!(v.feasible(), ["b1"]);
}

#[test]
fn a_match_on_a_node_without_the_label_does_not_end_the_first_pod_rule() {
    let nodes = [node("a1").zone("a"), node("bare")];
    let v = scene(nodes, [pod("w").label("app", "web").on("bare")])
        .decide(pod("new").label("app", "web").pod_affinity(ZONE, web()));
    assert_eq!(v.feasible(), ["a1"]);
}

#[test]
fn one_pod_must_match_all_affinity_terms() {
    let both = pod("new").pod_affinity(ZONE, web()).pod_affinity(ZONE, selector(&[("tier", "front")]));
    let apart = [pod("w").label("app", "web").on("a1"), pod("f").label("tier", "front").on("a1")];
    assert!(scene(zones(), apart).decide(both.clone()).feasible().is_empty());
    let one = pod("wf").label("app", "web").label("tier", "front").on("a1");
    assert_eq!(scene(zones(), [one]).decide(both.clone()).feasible(), ["a1", "a2"]);
    // The pods that match only one term don't count, so the first-pod rule still holds.
    let apart = [pod("w").label("app", "web").on("a1"), pod("f").label("tier", "front").on("a1")];
    let own = both.label("app", "web").label("tier", "front");
    assert_eq!(scene(zones(), apart).decide(own).feasible(), ["a1", "a2", "b1"]);
}

#[test]
fn the_domains_of_two_affinity_terms_may_be_filled_by_different_pods() {
    let racks = [
        node("n1").zone("a").label("rack", "r1"),
        node("n2").zone("a").label("rack", "r2"),
        node("n3").zone("b").label("rack", "r2"),
    ];
    let pods = [pod("x").label("app", "web").on("n1"), pod("y").label("app", "web").on("n3")];
    // n2 shares its zone with x and its rack with y.
    let v = scene(racks, pods).decide(pod("new").pod_affinity(ZONE, web()).pod_affinity("rack", web()));
    assert_eq!(v.feasible(), ["n1", "n2", "n3"]);
}

#[test]
fn affinity_is_checked_before_anti_affinity_and_that_before_existing_pods() {
    let pods = [
        pod("w").label("app", "web").pod_anti_affinity(ZONE, selector(&[("app", "new")])).on("a1"),
        pod("l").label("app", "lone").pod_anti_affinity(ZONE, selector(&[("app", "new")])).on("b1"),
    ];
    let s = scene(zones(), pods);
    let new = || pod("new").label("app", "new");
    let all = new().pod_affinity(ZONE, selector(&[("app", "none")])).pod_anti_affinity(ZONE, web());
    assert_eq!(s.decide(all).refusal("a1"), AFFINITY);
    let v = s.decide(new().pod_anti_affinity(ZONE, web()));
    assert_eq!((v.refusal("a1").as_str(), v.refusal("b1").as_str()), (ANTI, EXISTING));
}

// --- required anti-affinity ---

#[test]
fn anti_affinity_refuses_the_domains_of_matching_pods() {
    let v = scene(zones(), [pod("w").label("app", "web").on("a1"), pod("x").label("app", "web").on("a2")])
        .decide(pod("new").pod_anti_affinity(ZONE, web()));
    assert_eq!((v.feasible(), v.refusal("a2").as_str()), (vec!["b1"], ANTI));
    let reason = Reason::PodAntiAffinity { topology_key: ZONE.into(), domain: "a".into(), pods: 2 };
    assert_eq!(v.rejection("a2").reasons[0], reason);
}

#[test]
fn any_anti_affinity_term_refuses() {
    let pods = [pod("w").label("app", "web").on("a1"), pod("f").label("tier", "front").on("b1")];
    let new = pod("new").pod_anti_affinity(HOST, web()).pod_anti_affinity(ZONE, selector(&[("tier", "front")]));
    assert_eq!(scene(zones(), pods).decide(new).feasible(), ["a2"]);
}

#[test]
fn anti_affinity_ignores_nodes_without_the_key() {
    let nodes = [node("a1").zone("a"), node("bare")];
    let pods = [pod("w").label("app", "web").on("a1"), pod("x").label("app", "web").on("bare")];
    assert_eq!(scene(nodes, pods).decide(pod("new").pod_anti_affinity(ZONE, web())).feasible(), ["bare"]);
}

#[test]
fn anti_affinity_of_a_bound_pod_keeps_a_plain_pod_out_of_its_domain() {
    let guard = pod("g").pod_anti_affinity(ZONE, web()).on("a1");
    let s = scene(zones(), [guard]);
    let v = s.decide(pod("new").label("app", "web"));
    assert_eq!((v.feasible(), v.refusal("a2").as_str()), (vec!["b1"], EXISTING));
    let reason = Reason::ExistingPodsAntiAffinity { topology_key: ZONE.into(), domain: "a".into(), pods: 1 };
    assert_eq!(v.rejection("a2").reasons[0], reason);
    assert_eq!(s.decide(pod("new").label("app", "db")).feasible(), ["a1", "a2", "b1"]);
}

#[test]
fn required_affinity_of_a_bound_pod_filters_nothing() {
    let fan = pod("f").pod_affinity(ZONE, web()).on("a1");
    assert_eq!(scene(zones(), [fan]).decide(pod("new").label("app", "web")).feasible(), ["a1", "a2", "b1"]);
}

#[test]
fn terminating_pods_still_count() {
    let s = scene(zones(), [pod("w").label("app", "web").terminating().on("a1")]);
    assert_eq!(s.decide(pod("new").pod_anti_affinity(ZONE, web())).feasible(), ["b1"]);
    assert_eq!(s.decide(pod("new").pod_affinity(ZONE, web())).feasible(), ["a1", "a2"]);
    let guard = pod("g").pod_anti_affinity(ZONE, web()).terminating().on("a1");
    assert_eq!(scene(zones(), [guard]).decide(pod("new").label("app", "web")).feasible(), ["b1"]);
}

#[test]
fn a_null_selector_matches_no_pod_and_an_empty_one_every_pod() {
    let s = || scene(zones(), [pod("w").label("app", "web").on("a1"), pod("plain").on("a2")]);
    let nothing = LabelSelector::Nothing;
    assert_eq!(s().decide(pod("new").pod_anti_affinity(ZONE, nothing.clone())).feasible(), ["a1", "a2", "b1"]);
    assert!(s().decide(pod("new").label("app", "web").pod_affinity(ZONE, nothing.clone())).feasible().is_empty());
    let v = s().decide(pod("new").pod_anti_affinity(HOST, LabelSelector::everything()));
    assert_eq!(v.feasible(), ["b1"]);
    // Also where a bound pod says it.
    let guard = |what| scene(zones(), [pod("g").pod_anti_affinity(ZONE, what).on("a1")]);
    assert_eq!(guard(nothing).decide(pod("new")).feasible(), ["a1", "a2", "b1"]);
    assert_eq!(guard(LabelSelector::everything()).decide(pod("new")).feasible(), ["b1"]);
    assert_eq!(
        guard(LabelSelector::everything()).decide(pod("new").namespace("other")).feasible(),
        ["a1", "a2", "b1"],
        "an empty selector means the pods of the term's namespaces only"
    );
}

// --- namespaces ---

/// One matching pod in each of three namespaces, each on its own node and zone.
fn tenants() -> Scene {
    let nodes = [node("own").zone("a"), node("red").zone("b"), node("blue").zone("c")];
    let on = |namespace: &str, node: &str| pod("w").namespace(namespace).label("app", "web").on(node);
    scene(nodes, [on("default", "own"), on("red", "red"), on("blue", "blue")])
        .namespace("default", &[("team", "own")])
        .namespace("red", &[("team", "red")])
        .namespace("blue", &[("team", "blue")])
}

#[test]
fn without_namespaces_a_term_means_its_own() {
    assert_eq!(tenants().decide(scoped(false, &[], None)).feasible(), ["own"]);
}

#[test]
fn named_and_selected_namespaces_are_united_without_the_own_one() {
    let red = || Some(selector(&[("team", "red")]));
    assert_eq!(tenants().decide(scoped(false, &[], red())).feasible(), ["red"]);
    assert_eq!(tenants().decide(scoped(false, &["blue"], None)).feasible(), ["blue"]);
    assert_eq!(tenants().decide(scoped(false, &["blue"], red())).feasible(), ["blue", "red"]);
    assert_eq!(tenants().decide(scoped(true, &["blue"], red())).feasible(), ["own"]);
}

#[test]
fn an_empty_namespace_selector_means_all_namespaces() {
    let all = || Some(LabelSelector::everything());
    assert_eq!(tenants().decide(scoped(false, &[], all())).feasible(), ["blue", "own", "red"]);
    assert!(tenants().decide(scoped(true, &[], all())).feasible().is_empty());
}

#[test]
fn a_namespace_selector_of_prohibitions_selects_every_namespace_as_in_1_36_2() {
    let not_own = || Some(negative("team", Operator::NotIn(vec!["own".into()])));
    assert!(tenants().decide(scoped(true, &[], not_own())).feasible().is_empty());
    assert_eq!(tenants().decide(scoped(false, &[], not_own())).feasible(), ["blue", "own", "red"]);
    let unlabelled = || Some(negative("team", Operator::DoesNotExist));
    assert!(tenants().decide(scoped(true, &[], unlabelled())).feasible().is_empty());
}

#[test]
fn the_switch_reads_namespace_labels_only() {
    let fixed = || tenants().profile(Profile::default().with_fix(Fix::NamespaceSelectorThatExcludesOwnNamespace));
    let not_own = || Some(negative("team", Operator::NotIn(vec!["own".into()])));
    assert_eq!(fixed().decide(scoped(true, &[], not_own())).feasible(), ["own"]);
    assert_eq!(fixed().decide(scoped(false, &[], not_own())).feasible(), ["blue", "red"]);
    let unlabelled = || Some(negative("team", Operator::DoesNotExist));
    assert_eq!(fixed().decide(scoped(true, &[], unlabelled())).feasible(), ["blue", "own", "red"]);
    // It changes no positive selector.
    assert_eq!(fixed().decide(scoped(false, &[], Some(selector(&[("team", "red")])))).feasible(), ["red"]);
}

#[test]
fn terms_of_bound_pods_read_the_labels_of_the_incoming_pods_namespace() {
    let guard = |namespace_selector| {
        let p = scoped(true, &[], Some(namespace_selector)).namespace("red").uid("guard");
        scene(zones(), [p.on("a1")]).namespace("default", &[("team", "own")])
    };
    let new = || pod("new").label("app", "web");
    assert_eq!(guard(selector(&[("team", "own")])).decide(new()).feasible(), ["b1"]);
    let not_own = || negative("team", Operator::NotIn(vec!["own".into()]));
    assert_eq!(guard(not_own()).decide(new()).feasible(), ["a1", "a2", "b1"], "the regression isn't theirs");
    assert_eq!(guard(not_own()).decide(new().namespace("unknown")).feasible(), ["b1"], "unknown: no labels");
}

// --- Skip, and pods that come and go ---

/// The filter prepared for a pod; None for Skip.
fn filter_after(
    scene: &Scene,
    new: PodBuilder,
    changes: impl FnOnce(&mut dyn NodeFilter, &dyn Fn(&str, PodBuilder) -> PodInfo),
) -> Option<Vec<&'static str>> {
    let new = new.build();
    let (incoming, profile, plugin) = (IncomingPod::new(&new), Profile::default(), InterPodAffinity::default());
    let cycle = Cycle::new(&scene.view, &incoming, &profile, Cancel::never());
    let PreFilter::Filter(mut filter) = FilterPlugin::prepare(&plugin, &cycle) else { return None };
    changes(&mut *filter, &|node, p| PodInfo::on(Arc::new(p.build()), node.into()));
    let names = ["a1", "a2", "b1"];
    Some(names.into_iter().filter(|n| filter.check(&scene.view.node_named(n).unwrap()).is_ok()).collect())
}

#[test]
fn a_pod_that_no_term_concerns_is_skipped() {
    let s = scene(zones(), [pod("g").pod_anti_affinity(ZONE, web()).on("a1")]);
    assert!(filter_after(&s, pod("new"), |_, _| {}).is_none());
    assert!(filter_after(&s, pod("new").label("app", "web"), |_, _| {}).is_some());
    assert!(filter_after(&s, pod("new").pod_affinity(ZONE, web()), |_, _| {}).is_some());
    // A bound pod's term that is in no domain leaves nothing to check either.
    let bare = scene([node("bare")], [pod("g").pod_anti_affinity(ZONE, web()).on("bare")]);
    assert!(filter_after(&bare, pod("new").label("app", "web"), |_, _| {}).is_none());
}

#[test]
fn pods_that_come_and_go_move_all_three_counts() {
    let s = scene(zones(), []);
    let row = |name: &str| s.view.node_named(name).unwrap();
    // Own anti-affinity.
    let new = || pod("new").pod_anti_affinity(ZONE, web());
    let w = || pod("w").label("app", "web");
    assert_eq!(filter_after(&s, new(), |f, on| f.pod_added(&row("a1"), &on("a1", w()))).unwrap(), ["b1"]);
    let back = |f: &mut dyn NodeFilter, on: &dyn Fn(&str, PodBuilder) -> PodInfo| {
        f.pod_added(&row("a1"), &on("a1", w()));
        f.pod_removed(&row("a1"), &on("a1", w()));
    };
    assert_eq!(filter_after(&s, new(), back).unwrap(), ["a1", "a2", "b1"]);
    // Affinity: one match ends the first-pod rule, and its departure restores it.
    let new = || pod("new").label("app", "web").pod_affinity(ZONE, web());
    assert_eq!(filter_after(&s, new(), |f, on| f.pod_added(&row("b1"), &on("b1", w()))).unwrap(), ["b1"]);
    assert_eq!(filter_after(&s, new(), back).unwrap(), ["a1", "a2", "b1"]);
    // Anti-affinity of the pod that comes.
    let guard = || pod("g").pod_anti_affinity(HOST, selector(&[("app", "web")]));
    assert_eq!(filter_after(&s, new(), |f, on| f.pod_added(&row("a2"), &on("a2", guard()))).unwrap(), ["a1", "b1"]);
}

#[test]
fn a_pod_that_leaves_frees_its_domain() {
    let s = scene(zones(), [pod("g").pod_anti_affinity(ZONE, web()).on("a1"), pod("w").label("app", "web").on("b1")]);
    let gone = |name: &str| s.view.pod(name).unwrap().clone();
    let row = |name: &str| s.view.node_named(name).unwrap();
    let new = || pod("new").label("app", "web").pod_anti_affinity(ZONE, web());
    assert!(filter_after(&s, new(), |_, _| {}).unwrap().is_empty());
    let left = filter_after(&s, new(), |f, _| f.pod_removed(&row("a1"), &gone("uid-default-g"))).unwrap();
    assert_eq!(left, ["a1", "a2"]);
    let left = filter_after(&s, new(), |f, _| f.pod_removed(&row("b1"), &gone("uid-default-w"))).unwrap();
    assert_eq!(left, ["b1"]);
}

// --- scores ---

#[test]
fn preferences_of_the_incoming_pod_add_and_subtract() {
    let pods = [pod("w").label("app", "web").on("a1"), pod("d").label("app", "db").on("b1")];
    let new = pod("new")
        .preferred_pod_affinity(10, ZONE, web())
        .preferred_pod_anti_affinity(10, HOST, web())
        .preferred_pod_anti_affinity(30, ZONE, selector(&[("app", "db")]));
    // Raw: a1 10 - 10, a2 10, b1 -30; scaled from -30..10 to 0..100, weight 2.
    let v = scene(zones(), pods).decide(new);
    let score = |n| v.score(NAME, n);
    assert_eq!((score("a1"), score("a2"), score("b1")), (150, 200, 0));
}

#[test]
fn a_preference_counts_every_matching_pod() {
    let pods = [("1", "a1"), ("2", "a2"), ("3", "b1")].map(|(name, on)| pod(name).label("app", "web").on(on));
    let mut nodes = zones().to_vec();
    nodes.push(node("bare"));
    let v = scene(nodes, pods).decide(pod("new").preferred_pod_affinity(5, ZONE, web()));
    let score = |n| v.score(NAME, n);
    assert_eq!((score("a1"), score("b1"), score("bare")), (200, 100, 0));
}

#[test]
fn preferred_terms_are_single_and_need_no_pod_that_matches_them_all() {
    let pods = [pod("w").label("app", "web").on("a1"), pod("f").label("tier", "front").on("b1")];
    let new = pod("new").preferred_pod_affinity(1, ZONE, web()).preferred_pod_affinity(
        2,
        ZONE,
        selector(&[("tier", "front")]),
    );
    let v = scene(zones(), pods).decide(new);
    // Raw 1 and 2: scaled from 1..2.
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "b1")), (0, 200));
}

#[test]
fn preferences_of_bound_pods_act_on_a_plain_pod() {
    let pods = [
        pod("x").preferred_pod_affinity(40, ZONE, web()).on("a1"),
        pod("y").preferred_pod_anti_affinity(60, ZONE, web()).terminating().on("b1"),
    ];
    let s = scene(zones(), pods);
    let v = s.decide(pod("new").label("app", "web"));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "a2"), v.score(NAME, "b1")), (200, 200, 0));
    assert!(!s.decide(pod("new").label("app", "db")).scored(NAME));
}

#[test]
fn required_affinity_of_bound_pods_is_worth_the_hard_weight_to_a_plain_pod() {
    let s = scene(zones(), [pod("f").pod_affinity(ZONE, web()).on("a1")]);
    let v = s.decide(pod("new").label("app", "web"));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "b1")), (200, 0));
    // It is weighed against preferences: 3 x 10 in zone a, 20 in zone b.
    let pods = (0..3).map(|i| pod(&format!("f{i}")).pod_affinity(ZONE, web()).on("a1"));
    let pods = pods.chain([pod("p").preferred_pod_affinity(20, ZONE, web()).on("b1")]);
    let ten = InterPodAffinity { hard_pod_affinity_weight: 10, ..InterPodAffinity::default() };
    let v = scene(zones(), pods.clone()).profile(only(ten)).decide(pod("new").label("app", "web"));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "b1")), (100, 0));
    let none = InterPodAffinity { hard_pod_affinity_weight: 0, ..InterPodAffinity::default() };
    let v = scene(zones(), pods).profile(only(none)).decide(pod("new").label("app", "web"));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "b1")), (0, 100));
}

#[test]
fn ignoring_preferences_of_existing_pods_also_drops_the_hard_weight() {
    let ignoring = || only(InterPodAffinity { ignore_preferred_terms_of_existing_pods: true, ..Default::default() });
    let pods = [pod("f").pod_affinity(ZONE, web()).on("a1"), pod("p").preferred_pod_affinity(20, ZONE, web()).on("b1")];
    let s = scene(zones(), pods).profile(ignoring());
    assert!(!s.decide(pod("new").label("app", "web")).scored(NAME));
    // With a preference of its own, which matches nothing, theirs count as ever.
    let v = s.decide(pod("new").label("app", "web").preferred_pod_affinity(1, ZONE, selector(&[("app", "none")])));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "b1")), (0, 100));
}

#[test]
fn equal_raw_scores_become_0_and_not_100() {
    let pods = [pod("x").label("app", "web").on("a1"), pod("y").label("app", "web").on("b1")];
    let v = scene(zones(), pods).decide(pod("new").preferred_pod_affinity(50, ZONE, web()));
    assert!(v.scored(NAME));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "a2"), v.score(NAME, "b1")), (0, 0, 0));
}

#[test]
fn normalisation_truncates() {
    let pods = [("x", "a1", 3), ("y", "a2", 1)]
        .map(|(name, on, weight)| pod(name).preferred_pod_affinity(weight, HOST, web()).on(on));
    // Raw 3, 1, 0: 100 * (1 / 3) = 33, weight 2.
    let v = scene(zones(), pods).decide(pod("new").label("app", "web"));
    assert_eq!((v.score(NAME, "a1"), v.score(NAME, "a2"), v.score(NAME, "b1")), (200, 66, 0));
}

#[test]
fn nodes_that_cannot_be_chosen_still_lend_their_pods_to_the_domain() {
    let nodes = [node("a1").zone("a").cordoned(), node("a2").zone("a"), node("b1").zone("b")];
    let v =
        scene(nodes, [pod("w").label("app", "web").on("a1")]).decide(pod("new").preferred_pod_affinity(1, ZONE, web()));
    assert_eq!((v.score(NAME, "a2"), v.score(NAME, "b1")), (200, 0));
}

#[test]
fn a_preference_for_null_selectors_matches_nothing() {
    let v =
        scene(zones(), [pod("w").on("a1")]).decide(pod("new").preferred_pod_affinity(9, ZONE, LabelSelector::Nothing));
    assert!(!v.scored(NAME));
}
