//! Traps 1, 12, 13, 91 and 92: the order of plugins, limits and budgets, and what the outcome tells.

use super::{Given, check, given, old, replica, trap, with_plugin};
use crate::evict::limits::Limit;
use crate::evict::outcome::LeftAlone;
use crate::evict::policy::{
    DefaultEvictorArgs, LabelQuery, PluginConfig, RemoveDuplicatesArgs, RemovePodsHavingTooManyRestartsArgs,
};
use crate::model::node_selector::{NodeOperator, NodeRequirement};
use crate::model::pod_status::ContainerStatus;
use crate::model::testing::{node, pod, selector};
use crate::model::{NodeCondition, ObjectMeta, PodDisruptionBudget};

fn budget(name: &str, allowed: i32) -> PodDisruptionBudget {
    PodDisruptionBudget {
        meta: ObjectMeta { name: name.into(), namespace: "default".into(), ..ObjectMeta::default() },
        selector: selector(&[("app", "x")]),
        disruptions_allowed: allowed,
        ..PodDisruptionBudget::default()
    }
}

fn whys(given: &Given) -> Vec<(String, LeftAlone)> {
    let outcome = given.outcome();
    outcome.left_alone.iter().map(|l| (l.pod.meta.name.to_string(), l.why.clone())).collect()
}

#[test]
fn limits_and_which_nodes_count() {
    let three = || given(old(), [replica("a"), replica("b"), replica("c").on("n2")]);
    // A builder's namespace comes with metadata of its own.
    let of = |name: &str, namespace: &str| {
        replica(name).namespace(namespace).owner("apps/v1", "ReplicaSet", "rs").created(0)
    };
    let elsewhere = || given(old(), [of("a", "x"), of("b", "y"), of("c", "x")]);
    check(vec![
        trap(1, "0 lets nothing go", three().policy(|p| p.max_per_node = Some(0)), &[]),
        trap(1, "no limit", three(), &["a", "b", "c"]),
        trap(
            92,
            "a full namespace skips its own pods only",
            elsewhere().policy(|p| p.max_per_namespace = Some(1)),
            &["a", "b"],
        ),
        trap(
            92,
            "a full node, too, where pods of all nodes are mixed",
            three().policy(|p| p.max_per_node = Some(1)),
            &["a", "c"],
        ),
        trap(91, "the total", three().policy(|p| p.max_total = Some(2)), &["a", "b"]),
    ]);
    let requirement = NodeRequirement { key: "pool".into(), op: NodeOperator::Exists };
    let one = three().policy(|p| p.node_selector = Some(LabelQuery::new(vec![requirement])));
    let one = one.nodes([node("n1").label("pool", "a"), node("n2")]);
    check(vec![trap(12, "one policy node", one.clone(), &[]).fixed(&["a", "b"])]);
    assert_eq!(one.outcome().skipped, Some(1));
    let unready = |status: &str| {
        let condition = NodeCondition { kind: "Ready".into(), status: status.into() };
        three().nodes([node("n1"), node("n2").with(|n| n.conditions.push(condition))]).evicted()
    };
    assert_eq!(unready("Unknown"), [""; 0]);
    assert_eq!(unready("True"), ["a", "b", "c"]);
}

#[test]
fn deschedule_comes_before_balance_and_a_reached_total_stops_no_plugin() {
    let restarts = || {
        let args = RemovePodsHavingTooManyRestartsArgs { restart_threshold: 1, ..Default::default() };
        PluginConfig::RemovePodsHavingTooManyRestarts(args)
    };
    let restarted = |name: &str| {
        let status = ContainerStatus { restart_count: 1, ..ContainerStatus::default() };
        replica(name).with(|p| p.status.containers = vec![status])
    };
    let duplicates = PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs::default());
    let second = with_plugin(restarts(), DefaultEvictorArgs::default());
    let pods = [replica("a"), replica("b"), restarted("c"), restarted("d")];
    let given = given(duplicates, pods).policy(|p| p.profiles.push(second));
    // Of four pods each node's share is two: c and d are surplus, and gone already.
    check(vec![trap(13, "the second profile's Deschedule goes first", given.clone(), &["c", "d"])]);
    let already: Vec<_> = whys(&given).into_iter().filter(|(_, why)| *why == LeftAlone::AlreadySuggested).collect();
    assert_eq!(already.len(), 2);
    let limited = given.policy(|p| p.max_total = Some(1));
    check(vec![trap(91, "every later plugin fails on its first", limited.clone(), &["c"])]);
    let d = |why: LeftAlone| ("d".to_owned(), why);
    let c = |why: LeftAlone| ("c".to_owned(), why);
    let total = || LeftAlone::Limit(Limit::Total(1));
    assert_eq!(whys(&limited), [d(total()), c(LeftAlone::AlreadySuggested), d(total())]);
}

#[test]
fn a_budget_is_spent_and_two_of_them_refuse() {
    let pods = || ["a", "b", "c"].map(|name| replica(name).label("app", "x"));
    let one = given(old(), pods()).object(budget("one", 2));
    assert_eq!(one.evicted(), ["a", "b"]);
    assert_eq!(whys(&one)[0].1.to_string(), "PodDisruptionBudget default/one allows no disruption now");
    let first = &one.outcome().suggestions[0];
    assert_eq!(first.budgets.iter().map(ToString::to_string).collect::<Vec<_>>(), ["default/one"]);
    let two = one.object(budget("two", 5));
    assert_eq!(two.evicted(), [""; 0]);
    assert_eq!(whys(&two)[0].1.kind(), "SEVERAL_BUDGETS");
    let blocked = given(old(), pods().into_iter().chain([replica("d")])).object(budget("one", 0));
    assert_eq!(blocked.policy(|p| p.max_total = Some(1)).evicted(), ["d"], "what was refused counts against no limit");
}

#[test]
fn the_policys_grace_period_is_carried() {
    let given = given(old(), [replica("a")]);
    assert_eq!(given.outcome().suggestions[0].grace_period_seconds, None);
    let outcome = given.policy(|p| p.grace_period_seconds = Some(0)).outcome();
    assert_eq!(outcome.suggestions[0].grace_period_seconds, Some(0));
}

#[test]
fn pods_of_unknown_nodes_are_not_seen() {
    assert_eq!(given(old(), [replica("a").on("n9"), pod("b").created(0)]).outcome().left_alone, []);
}
