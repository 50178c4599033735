use super::*;
use crate::engine::testing::{Verdict, only, scene};
use crate::model::testing::{NodeBuilder, PodBuilder, container, node, pod};

const NAME: &str = "NodeResourcesBalancedAllocation";

fn decide(n: NodeBuilder, bound: Vec<PodBuilder>, p: PodBuilder) -> Verdict {
    decide_with(&["cpu", "memory"], n, bound, p)
}

fn decide_with(resources: &[&str], n: NodeBuilder, bound: Vec<PodBuilder>, p: PodBuilder) -> Verdict {
    let resources = resources.iter().map(|r| Str::from(*r)).collect();
    let bound = bound.into_iter().map(|b| b.on("n"));
    let profile = only(NodeResourcesBalancedAllocation { resources });
    scene([n, node("other")], bound).profile(profile).decide(p)
}

fn half() -> NodeBuilder {
    node("n").cpu("4").memory("8Gi")
}

#[test]
fn a_pod_that_leaves_the_balance_scores_75() {
    let v = decide(half(), vec![], pod("p").cpu("1").memory("2Gi"));
    assert_eq!(v.score(NAME, "n"), 75);
    let v = decide(half(), vec![pod("a").cpu("2").memory("4Gi")], pod("p").cpu("1").memory("2Gi"));
    assert_eq!(v.score(NAME, "n"), 75);
}

#[test]
fn worse_balance_scores_less_and_better_more() {
    let v = decide(half(), vec![pod("a").cpu("1").memory("2Gi")], pod("p").cpu("1").memory("1Gi"));
    assert_eq!(v.score(NAME, "n"), 71);
    let v = decide(half(), vec![pod("a").cpu("500m").memory("4Gi")], pod("p").cpu("2"));
    assert_eq!(v.score(NAME, "n"), 81);
}

#[test]
fn a_best_effort_pod_is_not_scored() {
    let v = decide(half(), vec![pod("a").cpu("3")], pod("p"));
    assert!(!v.scored(NAME));
    // Nor one that asks only for what isn't balanced.
    assert!(!decide(half(), vec![], pod("p").request("ephemeral-storage", "1")).scored(NAME));
    assert!(decide(half(), vec![], pod("p").cpu("1m")).scored(NAME));
}

#[test]
fn requests_are_real_without_defaults() {
    // A container that names no memory takes none: 4 of 4 cores against 0 of 8 Gi.
    let v = decide(half(), vec![], pod("p").cpu("4").container(container("d")));
    // With the pod the balance is 50, without it 100: 50 + (50 + 50 - 100) / 2.
    assert_eq!(v.score(NAME, "n"), 50);
    // Pod-level requests count, unlike in the Fit score.
    let v = decide(half(), vec![], pod("p").cpu("1").pod_level("cpu", "2").pod_level("memory", "4Gi"));
    assert_eq!(v.score(NAME, "n"), 75);
}

#[test]
fn fractions_stop_at_1() {
    // Over-committed on both sides: 1 and 1 stay balanced.
    let v = decide(half(), vec![pod("a").cpu("8").memory("8Gi")], pod("p").cpu("1"));
    assert_eq!(v.score(NAME, "n"), 75);
}

#[test]
fn three_resources_use_the_standard_deviation() {
    let n = half().ephemeral("100Gi");
    let v = decide_with(&["cpu", "memory", "ephemeral-storage"], n, vec![], pod("p").cpu("4"));
    // Fractions 1, 0, 0: deviation sqrt(2)/3 = 0.4714, balance trunc(52.86) = 52.
    assert_eq!(v.score(NAME, "n"), 50 + (50 + 52 - 100) / 2);
}

#[test]
fn a_scalar_counts_only_when_asked_for_and_a_resource_only_where_offered() {
    let gpus = ["cpu", "memory", "example.com/gpu"];
    let n = || half().allocatable("example.com/gpu", "4");
    // Not asked for: 1 and 0 of two resources, deviation 0.5.
    let v = decide_with(&gpus, n(), vec![], pod("p").cpu("4"));
    assert_eq!(v.score(NAME, "n"), 75 - 25);
    // Asked for: 1, 1, 0.
    let v = decide_with(&gpus, n(), vec![], pod("p").cpu("4").request("example.com/gpu", "4"));
    assert_eq!(v.score(NAME, "n"), 50 + (50 + 52 - 100) / 2);
    // Without memory there is one resource, which is balanced with itself.
    assert_eq!(decide(half().without("memory"), vec![], pod("p").cpu("4")).score(NAME, "n"), 75);
}
