//! What PLANNED adds to the strategies: landings, joint moves, gains, and why a pod is left alone.

use std::sync::Arc;

use super::{Given, given, names, old, plan, replica, with_plugin};
use crate::engine::plugins::ScoringStrategy;
use crate::engine::{Override, Profile};
use crate::evict::evictor::Protection;
use crate::evict::outcome::{LeftAlone, NoGain, Outcome};
use crate::evict::policy::{
    HighNodeUtilizationArgs, LowNodeUtilizationArgs, PluginConfig, PluginName, RemoveDuplicatesArgs,
    RemovePodsViolatingNoExecuteTaintsArgs, RemovePodsViolatingNodeTaintsArgs, Thresholds,
};
use crate::model::testing::{PodBuilder, node, pod, selector};
use crate::model::{Effect, ObjectMeta, PodDisruptionBudget};

fn duplicates() -> PluginConfig {
    PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs::default())
}

fn node_taints() -> PluginConfig {
    PluginConfig::RemovePodsViolatingNodeTaints(RemovePodsViolatingNodeTaintsArgs::default())
}

fn cpu(percent: f64) -> Thresholds {
    Thresholds::from([("cpu".into(), percent)])
}

fn low(threshold: f64, target: f64) -> PluginConfig {
    PluginConfig::LowNodeUtilization(LowNodeUtilizationArgs {
        thresholds: cpu(threshold),
        target_thresholds: cpu(target),
        ..LowNodeUtilizationArgs::default()
    })
}

fn high(threshold: f64) -> PluginConfig {
    PluginConfig::HighNodeUtilization(HighNodeUtilizationArgs { thresholds: cpu(threshold), ..Default::default() })
}

/// Why a pod was left alone, by each strategy that looked at it.
fn why(outcome: &Outcome, pod: &str) -> Vec<LeftAlone> {
    outcome.left_alone.iter().filter(|l| &*l.pod.meta.name == pod).map(|l| l.why.clone()).collect()
}

fn moves(outcome: &Outcome) -> Vec<(&str, &str)> {
    outcome.suggestions.iter().map(|s| (&*s.pod.meta.name, s.landing.as_ref().map_or("", |l| &*l.node))).collect()
}

fn budget(allowed: i32, always: bool) -> PodDisruptionBudget {
    PodDisruptionBudget {
        meta: ObjectMeta { name: "b".into(), namespace: "default".into(), ..ObjectMeta::default() },
        selector: selector(&[("app", "web")]),
        disruptions_allowed: allowed,
        always_allow_unhealthy: always,
        ..PodDisruptionBudget::default()
    }
}

#[test]
fn each_suggestion_names_the_landing_and_the_gain() {
    let outcome = given(duplicates(), [replica("a"), replica("b")]).plan();
    assert_eq!(moves(&outcome), [("b", "n2")]);
    let suggestion = &outcome.suggestions[0];
    assert!(!suggestion.landing.as_ref().unwrap().is_source);
    let gain = suggestion.gain.unwrap();
    assert_eq!((gain.before, gain.after), (1, 0));
    assert_eq!((outcome.measures[0].gain.before, outcome.measures[0].gain.after), (1, 0));
    assert!(outcome.look_ahead.unwrap().complete);
}

#[test]
fn a_fresh_pod_may_land_on_its_source_and_says_so() {
    let outcome = given(old(), [replica("a")]).nodes([node("n1").cpu("8"), node("n2").cpu("1")]).plan();
    assert_eq!(moves(&outcome), [("a", "n1")]);
    assert!(outcome.suggestions[0].landing.as_ref().unwrap().is_source);
}

#[test]
fn a_pod_that_would_come_back_is_left_alone() {
    // The other node is small and full, so that the scheduler prefers the one with the duplicates.
    let filler = pod("filler").on("n2").cpu("900m");
    let given = given(duplicates(), [replica("a").cpu("50m"), replica("b").cpu("50m"), filler]);
    let outcome = given.nodes([node("n1").cpu("64"), node("n2").cpu("1").memory("1Gi")]).plan();
    assert_eq!(moves(&outcome), []);
    assert_eq!(why(&outcome, "b"), [LeftAlone::ReturnedToSource]);
}

#[test]
fn a_pod_that_fits_nowhere_is_left_alone_with_what_the_scheduler_says() {
    let pods = [replica("a").cpu("2"), replica("b").cpu("2")];
    let nodes = [node("n1").taint("k", "v", Effect::NoSchedule), node("n2").cpu("1")];
    let outcome = given(node_taints(), pods).nodes(nodes).plan();
    assert_eq!(moves(&outcome), []);
    let [LeftAlone::NoLanding { message }] = &why(&outcome, "a")[..] else { panic!("{:?}", outcome.left_alone) };
    assert!(message.contains("1 Insufficient cpu") && message.contains("untolerated taint"), "{message}");
}

#[test]
fn moves_see_those_before_them() {
    let pods = ["a", "b", "c"].map(|name| replica(name).cpu("2"));
    let tainted = node("n1").cpu("8").taint("node.kubernetes.io/unschedulable", "", Effect::NoSchedule).cordoned();
    let outcome = given(node_taints(), pods).nodes([tainted, node("n2").cpu("3")]).plan();
    assert_eq!(moves(&outcome), [("a", "n2")], "one slot, one move");
}

#[test]
fn unhealthy_pods_follow_the_budgets_policy() {
    let unready = |name: &str| replica(name).label("app", "web").condition("Ready", "False", "");
    let ready = |name: &str| replica(name).label("app", "web").condition("Ready", "True", "");
    let evicted =
        |budget: PodDisruptionBudget| names(&given(old(), [unready("sick"), ready("well")]).object(budget).plan());
    assert_eq!(evicted(budget(0, false)), [""; 0]);
    assert_eq!(evicted(budget(0, true)), ["sick"]);
    assert_eq!(evicted(budget(1, true)), ["sick", "well"], "the unhealthy one draws on no budget");
    let enough = PodDisruptionBudget { current_healthy: 2, desired_healthy: 2, ..budget(0, false) };
    assert_eq!(evicted(enough), ["sick"], "the application has all the healthy pods that it wants");
}

#[test]
fn min_replicas_counts_down_as_the_plan_grows() {
    let pods = ["a", "b", "c"].map(replica);
    let outcome = given(old(), pods).evictor(|args| args.min_replicas = 2).plan();
    assert_eq!(names(&outcome), ["a", "b"]);
    let protection = Protection::MinReplicas { replicas: 1, min: 2 };
    assert_eq!(why(&outcome, "c"), [LeftAlone::Protected(vec![protection])]);
}

/// The policy's plugins of both points, in one profile.
fn with_both(given: Given, plugin: PluginConfig) -> Given {
    given.policy(|policy| {
        let more = with_plugin(plugin, Default::default());
        policy.profiles[0].deschedule.extend(more.deschedule);
        policy.profiles[0].balance.extend(more.balance);
    })
}

#[test]
fn a_strategy_may_not_undo_what_an_earlier_one_is_for() {
    // n1 is over target, and the only node under the thresholds has a pod of the same owner already.
    let mine = |name: &str, on: &str| replica(name).on(on).cpu("1");
    let base = pod("base").owner("apps/v1", "DaemonSet", "ds").on("n1").cpu("2");
    let pods = || [mine("a", "n1"), mine("b", "n2"), base.clone()];
    let nodes = || [node("n1").cpu("4"), node("n2").cpu("8")];
    let alone = given(low(30.0, 60.0), pods()).nodes(nodes()).plan();
    assert_eq!(moves(&alone), [("a", "n2")]);
    let both = with_both(given(duplicates(), pods()).nodes(nodes()), low(30.0, 60.0)).plan();
    assert_eq!(moves(&both), []);
    let undoes = LeftAlone::Undoes { landing: "n2".into(), strategy: PluginName::RemoveDuplicates };
    assert_eq!(why(&both, "a"), [undoes]);
}

#[test]
fn a_pod_too_big_for_the_band_stays() {
    let big = replica("big").cpu("3");
    let outcome = given(low(20.0, 50.0), [big]).plan();
    assert_eq!(moves(&outcome), []);
    assert_eq!(why(&outcome, "big"), [LeftAlone::NoRoomUnderTarget]);
}

#[test]
fn pods_that_relieve_nothing_stay() {
    let idle = replica("idle");
    let busy = replica("busy").cpu("1");
    let base = pod("base").owner("apps/v1", "DaemonSet", "ds").on("n1").cpu("1500m");
    let outcome = given(low(20.0, 50.0), [idle, busy, base]).plan();
    assert_eq!(moves(&outcome), [("busy", "n2")]);
    assert_eq!(why(&outcome, "idle"), [LeftAlone::NoThresholdedRequest]);
}

fn plan_packed(given: &Given) -> Outcome {
    let packs = Override {
        strategy: Some((ScoringStrategy::MostAllocated, Vec::new())),
        disable: ["NodeResourcesBalancedAllocation".to_owned()].into(),
        ..Override::default()
    };
    let profile = Arc::new(packs.apply(&Profile::default()).unwrap());
    let (scene, view) = given.stage();
    plan::plan(scene, view, &given.policy, &|_| Some(profile.clone())).unwrap()
}

/// A pod of an owner of its own.
fn single(name: &str, on: &str, cpu: &str) -> PodBuilder {
    pod(name).owner("apps/v1", "ReplicaSet", name).on(on).cpu(cpu)
}

#[test]
fn packing_empties_whole_nodes_or_none() {
    let nodes = || [node("n1"), node("n2"), node("n3")];
    let pods = || vec![single("a", "n1", "200m"), single("b", "n1", "200m"), single("c", "n2", "2")];
    let packed = plan_packed(&given(high(20.0), pods()).nodes(nodes()));
    assert_eq!(moves(&packed), [("a", "n2"), ("b", "n2")]);
    // A pod that may not go keeps the node, and then nobody has to.
    let bare = pod("bare").on("n1").cpu("100m");
    let mut with_bare = pods();
    with_bare.push(bare);
    let blocked = plan_packed(&given(high(20.0), with_bare).nodes(nodes()));
    assert_eq!(moves(&blocked), []);
    assert_eq!(why(&blocked, "bare"), [LeftAlone::Protected(vec![Protection::BarePods])]);
    assert_eq!(why(&blocked, "a"), [LeftAlone::NodeNotEmptied { blocked_by: "default/bare".into() }]);
    // Under a profile that spreads there is nothing to pack.
    let spreading = given(high(20.0), pods()).nodes(nodes()).plan();
    assert_eq!(moves(&spreading), []);
}

#[test]
fn a_landing_where_the_rule_applies_again_is_no_landing() {
    let args = RemovePodsViolatingNoExecuteTaintsArgs::default();
    let tolerant =
        |name: &str| replica(name).tolerates("k", None, None).with(|pod| pod.spec.tolerations[0].seconds = Some(300));
    let tainted = |name: &str| node(name).taint("k", "", Effect::NoExecute);
    let plugin = PluginConfig::RemovePodsViolatingNoExecuteTaints(args);
    let nowhere = given(plugin.clone(), [tolerant("a")]).nodes([tainted("n1").cpu("1"), tainted("n2")]).plan();
    assert_eq!(moves(&nowhere), []);
    let still = LeftAlone::NoGain { landing: "n2".into(), why: NoGain::StillViolates };
    assert_eq!(why(&nowhere, "a"), [still]);
    let away = given(plugin, [tolerant("a")]).nodes([tainted("n1").cpu("1"), node("n2")]).plan();
    assert_eq!(moves(&away), [("a", "n2")]);
}

#[test]
fn pods_of_an_unknown_scheduler_are_left_alone() {
    let outcome = given(old(), [replica("a").scheduler("other")]).plan();
    assert_eq!(why(&outcome, "a"), [LeftAlone::UnknownProfile("other".into())]);
}

#[test]
fn who_goes_already_is_left_alone_even_with_the_evict_annotation() {
    let forced = replica("a").annotation(crate::evict::evictor::EVICT, "true").terminating();
    let outcome = given(old(), [forced]).plan();
    assert_eq!(why(&outcome, "a"), [LeftAlone::Protected(vec![Protection::Terminating])]);
}

/// A server's threads have 2 MiB of stack, as those of tests do.
#[test]
fn a_long_look_ahead_ends_and_overflows_no_stack() {
    let tainted = node("n1").pods("2000").taint("k", "v", Effect::NoSchedule);
    let pods: Vec<PodBuilder> = (0..1_200).map(|i| replica(&format!("p{i}"))).collect();
    let given = given(node_taints(), pods).nodes([tainted, node("n2").pods("2000")]);
    let outcome = given.policy(|policy| policy.max_total = Some(1)).plan();
    assert_eq!(outcome.suggestions.len(), 1);
    assert!(!outcome.look_ahead.unwrap().complete, "1,199 rounds are more than anybody looks ahead");
}

#[test]
fn amounts_beyond_reason_overflow_nothing() {
    let huge = |name: &str, on: &str| single(name, on, "9000000000000000");
    let nodes = || ["n1", "n2", "n3"].map(|name| node(name).cpu("1m"));
    let pods = || [huge("a", "n1"), huge("b", "n1"), huge("c", "n2"), huge("d", "n3")];
    for plugin in [low(20.0, 50.0), high(20.0)] {
        let outcome = given(plugin, pods()).nodes(nodes()).plan();
        assert_eq!(moves(&outcome), []);
    }
}
