//! Traps 22 to 38: which pods may go at all.

use super::{Given, check, given, old, replica, trap};
use crate::evict::policy::{DefaultEvictorArgs, NoEvictionPolicy, PodProtection};
use crate::model::pod_status::Phase;
use crate::model::testing::{node, pod, selector};
use crate::model::testing_storage::{claim, claim_volume};
use crate::model::volume::VolumeSource;
use crate::model::{LabelSelector, Namespace, ObjectMeta, PodDisruptionBudget};

const EVICT: &str = "descheduler.alpha.kubernetes.io/evict";
const PREFER_NO_EVICTION: &str = "descheduler.alpha.kubernetes.io/prefer-no-eviction";

fn old_pods(pods: impl IntoIterator<Item = crate::model::testing::PodBuilder>) -> Given {
    given(old(), pods)
}

fn without(protection: PodProtection) -> impl FnOnce(&mut DefaultEvictorArgs) {
    move |args| args.protections.retain(|p| *p != protection)
}

fn with(protection: PodProtection) -> impl FnOnce(&mut DefaultEvictorArgs) {
    move |args| args.protections.push(protection)
}

fn budget(allowed: i32, selector: LabelSelector) -> PodDisruptionBudget {
    PodDisruptionBudget {
        meta: ObjectMeta { name: "pdb".into(), namespace: "default".into(), ..ObjectMeta::default() },
        selector,
        disruptions_allowed: allowed,
        ..PodDisruptionBudget::default()
    }
}

#[test]
fn annotations_decide_by_presence() {
    let prefers = || replica("a").annotation(PREFER_NO_EVICTION, "");
    check(vec![
        trap(
            22,
            "evict: \"false\" forces",
            old_pods([replica("a").volume("v", VolumeSource::EmptyDir).annotation(EVICT, "false")]),
            &["a"],
        )
        .fixed(&[]),
        trap(
            23,
            "evict goes over terminating and static",
            old_pods([
                replica("a").terminating().annotation(EVICT, ""),
                replica("b").annotation("kubernetes.io/config.source", "file").annotation(EVICT, ""),
            ]),
            &["a", "b"],
        ),
        trap(
            24,
            "evict wins over prefer-no-eviction",
            old_pods([prefers().annotation(EVICT, ""), prefers().uid("u").with(|p| p.meta.name = "b".into())])
                .evictor(|args| args.no_eviction_policy = NoEvictionPolicy::Mandatory),
            &["a"],
        ),
        trap(
            25,
            "evict does not go over nodeFit",
            old_pods([replica("a").cpu("2").annotation(EVICT, "")])
                .nodes([node("n1"), node("n2").cpu("1")])
                .evictor(|args| args.node_fit = true),
            &[],
        ),
    ]);
}

#[test]
fn priorities() {
    let with_priority = |name: &str, priority: Option<i32>| replica(name).with(|p| p.spec.priority = priority);
    let threshold = |value: i32| move |args: &mut DefaultEvictorArgs| args.priority_threshold = value;
    let three = || [with_priority("a", None), with_priority("b", Some(-6)), with_priority("c", Some(-5))];
    check(vec![
        trap(26, "none is below every number", old_pods(three()).evictor(threshold(-5)), &["a", "b"]),
        trap(27, "equal is protected", old_pods([with_priority("a", Some(10))]).evictor(threshold(10)), &[]),
        trap(
            28,
            "the threshold goes with the protection of critical pods",
            old_pods([with_priority("a", Some(5_000))])
                .evictor(threshold(1_000))
                .evictor(without(PodProtection::SystemCriticalPods)),
            &["a"],
        ),
        trap(28, "critical pods stay", old_pods([with_priority("a", Some(2_000_000_000))]), &[]),
    ]);
}

#[test]
fn owners_and_volumes() {
    let bare = |name: &str, phase: Phase| pod(name).on("n1").created(0).started(0).phase(phase);
    let bare_pods = || old_pods([bare("a", Phase::Running), bare("b", Phase::Failed)]);
    let of_class = |args: &mut DefaultEvictorArgs| {
        args.protections.push(PodProtection::PodsWithPVC);
        args.protected_storage_classes = vec!["fast".into()];
    };
    let claiming = |name: &str, claim: &str| replica(name).volume("v", claim_volume(claim));
    check(vec![
        trap(29, "bare pods stay", bare_pods(), &[]),
        trap(29, "or go if they failed", bare_pods().evictor(without(PodProtection::FailedBarePods)), &["b"]),
        trap(
            30,
            "emptyDir is local, in memory, too",
            old_pods([replica("a").volume("v", VolumeSource::EmptyDir)]),
            &[],
        ),
        trap(30, "and so is hostPath", old_pods([replica("a").volume("v", VolumeSource::HostPath)]), &[]),
        trap(
            31,
            "a generic ephemeral volume is neither local nor a claim",
            old_pods([replica("a").volume("v", VolumeSource::Ephemeral)]).evictor(with(PodProtection::PodsWithPVC)),
            &["a"],
        ),
        trap(
            32,
            "a claim that isn't known or has no class protects",
            old_pods([claiming("a", "gone"), claiming("b", "slow"), claiming("c", "fast"), claiming("d", "none")])
                .object(claim("slow").class("slow").build())
                .object(claim("fast").class("fast").build())
                .object(claim("none").build())
                .evictor(of_class),
            &["b"],
        ),
        trap(
            38,
            "DaemonSets of any group",
            old_pods([pod("a").owner("apps.example/v1", "DaemonSet", "d").on("n1").created(0).started(0)]),
            &[],
        ),
        trap(
            38,
            "unless the protection is off",
            old_pods([pod("a").owner("apps/v1", "DaemonSet", "d").on("n1").created(0).started(0)])
                .evictor(without(PodProtection::DaemonSetPods)),
            &["a"],
        ),
    ]);
}

#[test]
fn without_a_budget() {
    let both = || {
        old_pods([replica("a").label("app", "a"), replica("b")])
            .object(budget(1, selector(&[("app", "a")])))
            .evictor(with(PodProtection::PodsWithoutPDB))
    };
    // The descheduler sees no budgets at this point, whatever the spec says.
    check(vec![trap(33, "PodsWithoutPDB protects all", both(), &[]).fixed(&["a"])]);
    let given = both();
    let scene = given.scene();
    let args = &given.policy.profiles[0].evictor;
    let planned = crate::evict::evictor::Evictor::new(&scene, args, crate::evict::Mode::Planned);
    let pods = &scene.node(scene.node_named("n1").unwrap()).active;
    let protected: Vec<bool> = pods.iter().map(|pod| !planned.filter(*pod).is_empty()).collect();
    assert_eq!(protected, [false, true]);
}

#[test]
fn replicas_and_age() {
    let owned = |name: &str, phase: Phase| replica(name).phase(phase);
    let fail = |name: &str| owned(name, Phase::Failed).on("n2").phase(Phase::Failed).created(999_999);
    let at_least = |min: u64| move |args: &mut DefaultEvictorArgs| args.min_replicas = min;
    check(vec![
        trap(
            34,
            "two owners aren't counted",
            old_pods([replica("a").owner("example/v1", "Custom", "c")]).evictor(at_least(10)),
            &["a"],
        ),
        trap(
            35,
            "pods in any phase count as replicas",
            old_pods([owned("a", Phase::Running), fail("b"), fail("c"), fail("d")]).evictor(at_least(2)),
            &["a"],
        )
        .fixed(&[]),
        trap(35, "a single one stays", old_pods([replica("a")]).evictor(at_least(2)), &[]),
        trap(
            35,
            "pods without a node count",
            old_pods([replica("a"), replica("b").on("")]).evictor(at_least(2)),
            &["a"],
        ),
        trap(
            36,
            "age counts from the start",
            old_pods([replica("a").with(|p| p.status.started = None), replica("b").started(900_000), replica("c")])
                .evictor(|args| args.min_pod_age_micros = Some(200_000 * 1_000_000)),
            &["c"],
        ),
        trap(
            37,
            "config.source api is not static",
            old_pods([
                replica("a").annotation("kubernetes.io/config.source", "api"),
                replica("b").annotation("kubernetes.io/config.source", "http"),
                replica("c").annotation("kubernetes.io/config.mirror", "x"),
            ]),
            &["a"],
        ),
    ]);
}

#[test]
fn selectors_of_the_evictor_ignore_the_empty_one() {
    let namespace = |labels: &[(&str, &str)]| Namespace {
        meta: ObjectMeta { name: "default".into(), labels: labels.iter().copied().collect(), ..ObjectMeta::default() },
    };
    let by_namespace = |args: &mut DefaultEvictorArgs| {
        args.namespace_label_selector = Some(selector(&[("team", "a")]));
    };
    let pods = || old_pods([replica("a"), replica("b").label("app", "x")]);
    assert_eq!(pods().evictor(|args| args.label_selector = Some(selector(&[("app", "x")]))).evicted(), ["b"]);
    assert_eq!(pods().evictor(|args| args.label_selector = Some(LabelSelector::everything())).evicted(), ["a", "b"]);
    assert_eq!(pods().evictor(by_namespace).evicted(), [""; 0], "a namespace that isn't known");
    assert_eq!(pods().object(namespace(&[])).evictor(by_namespace).evicted(), [""; 0]);
    assert_eq!(pods().object(namespace(&[("team", "a")])).evictor(by_namespace).evicted(), ["a", "b"]);
}
