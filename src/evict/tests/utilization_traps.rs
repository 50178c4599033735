//! Traps 55 to 69, and actual usage: LowNodeUtilization and HighNodeUtilization.

use super::{Given, check, given, trap};
use crate::evict::policy::{
    EvictionMode, HighNodeUtilizationArgs, LowNodeUtilizationArgs, PluginConfig, Thresholds, UsageSource,
};
use crate::evict::strategies::StrategyError;
use crate::model::metrics::{NodeMetrics, PodMetrics};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, quantity};
use crate::model::{Effect, ObjectMeta};

fn percentages(list: &[(&str, f64)]) -> Thresholds {
    list.iter().map(|(name, percent)| ((*name).into(), *percent)).collect()
}

fn low_with(change: impl FnOnce(&mut LowNodeUtilizationArgs)) -> PluginConfig {
    let (thresholds, target_thresholds) = (percentages(&[("cpu", 20.0)]), percentages(&[("cpu", 50.0)]));
    let mut args = LowNodeUtilizationArgs { thresholds, target_thresholds, ..LowNodeUtilizationArgs::default() };
    change(&mut args);
    PluginConfig::LowNodeUtilization(args)
}

fn low() -> PluginConfig {
    low_with(|_| ())
}

fn high_with(change: impl FnOnce(&mut HighNodeUtilizationArgs)) -> PluginConfig {
    let mut args = HighNodeUtilizationArgs { thresholds: percentages(&[("cpu", 20.0)]), ..Default::default() };
    change(&mut args);
    PluginConfig::HighNodeUtilization(args)
}

/// A pod that may go.
fn load(name: &str, node: &str, cpu: &str) -> PodBuilder {
    pod(name).owner("apps/v1", "ReplicaSet", "rs").on(node).cpu(cpu)
}

/// One that may not, so that a node has some load whatever goes.
fn base(node: &str, cpu: &str) -> PodBuilder {
    pod(&format!("base-{node}")).owner("apps/v1", "DaemonSet", "ds").on(node).cpu(cpu)
}

#[test]
fn classes_of_nodes() {
    let of = |n1: &str, n2: &str| given(low(), [load("a", "n1", "1"), base("n1", n1), base("n2", n2)]);
    let with_nodes =
        |given: Given, change: fn(NodeBuilder) -> NodeBuilder| given.nodes([node("n1"), change(node("n2"))]);
    check(vec![
        trap(55, "at target is not over", of("1", "800m"), &[]),
        trap(55, "at threshold is under", of("1001m", "800m"), &["a"]),
        trap(55, "above threshold is not under", of("2", "801m"), &[]),
        trap(
            14,
            "one level for both",
            given(
                low_with(|args| args.thresholds = args.target_thresholds.clone()),
                [load("a", "n1", "1"), base("n1", "1001m"), base("n2", "2")],
            ),
            &[],
        ),
        trap(56, "a cordoned node is not under", with_nodes(of("2", "0"), NodeBuilder::cordoned), &[]),
        trap(
            56,
            "but is emptied",
            given(high_with(|_| ()), [load("a", "n1", "400m"), base("n2", "1")])
                .nodes([node("n1").cordoned(), node("n2")]),
            &["a"],
        ),
        trap(
            58,
            "as many under as numberOfNodes",
            given(low_with(|args| args.number_of_nodes = 1), [load("a", "n1", "3")]),
            &[],
        ),
        trap(
            58,
            "one more",
            given(low_with(|args| args.number_of_nodes = 1), [load("a", "n1", "3")]).nodes([
                node("n1"),
                node("n2"),
                node("n3"),
            ]),
            &["a"],
        ),
        trap(59, "all are under", of("0", "0"), &[]),
        trap(59, "all are low", given(high_with(|_| ()), [load("a", "n1", "100m")]), &[]),
    ]);
}

#[test]
fn extended_resources_that_some_nodes_lack() {
    let gpu = "example.com/gpu";
    let by_gpu = low_with(|args| {
        args.thresholds = percentages(&[(gpu, 20.0)]);
        args.target_thresholds = percentages(&[(gpu, 50.0)]);
    });
    let pods = || [load("a", "n1", "1").request(gpu, "1"), load("b", "n1", "1").request(gpu, "1")];
    let gpus = |name: &str| node(name).allocatable(gpu, "2");
    check(vec![
        trap(57, "the destination has none", given(by_gpu.clone(), pods()).nodes([gpus("n1"), node("n2")]), &[]),
        trap(57, "it has some", given(by_gpu, pods()).nodes([gpus("n1"), gpus("n2")]), &["a"]),
    ]);
}

#[test]
fn taints_of_destinations() {
    let tolerant = || load("a", "n1", "2").tolerates("", None, None);
    let tainted = |node: NodeBuilder, effect: Effect| node.taint("x", "", effect);
    let hard = |n: NodeBuilder| tainted(tainted(n, Effect::NoSchedule), Effect::NoExecute);
    check(vec![
        trap(
            60,
            "one toleration, two taints",
            given(low(), [tolerant(), base("n1", "1")]).nodes([node("n1"), hard(node("n2"))]),
            &[],
        )
        .fixed(&["a"]),
        trap(
            61,
            "a soft taint keeps pods away",
            given(low(), [load("a", "n1", "2"), base("n1", "1")])
                .nodes(["n1", "n2"].map(|name| tainted(node(name), Effect::PreferNoSchedule))),
            &[],
        )
        .fixed(&["a"]),
    ]);
}

#[test]
fn how_far_it_goes() {
    let many = || ["a", "b", "c"].map(|name| load(name, "n1", "1"));
    let limited = |limit: u64| given(low_with(|args| args.max_per_node = Some(limit)), many());
    let slots = |pods: &str| given(low(), many()).nodes([node("n1"), node("n2").pods(pods)]);
    let excluding = low_with(|args| args.excluded_namespaces = vec!["core".into()]);
    let in_core = load("a", "n1", "2").namespace("core").with(|p| p.spec.priority = Some(1));
    check(vec![
        trap(55, "down to the target", given(low(), many()), &["a"]),
        trap(62, "no slots are left", slots("1"), &["a"]),
        trap(62, "none were", slots("0"), &[]),
        trap(66, "no eviction at all", limited(0), &[]),
        trap(
            67,
            "an excluded namespace is load",
            given(excluding, [in_core.owner("apps/v1", "ReplicaSet", "rs"), load("b", "n1", "1").priority(2)]),
            &["b"],
        ),
        trap(
            68,
            "distances from the mean of 40 %",
            given(
                low_with(|args| {
                    args.use_deviation_thresholds = true;
                    args.thresholds = percentages(&[("cpu", 10.0)]);
                    args.target_thresholds = percentages(&[("cpu", 10.0)]);
                    args.number_of_nodes = 1;
                }),
                [load("a", "n1", "3200m"), base("n2", "1200m"), base("n3", "400m")],
            )
            .nodes([node("n1"), node("n2"), node("n3")]),
            &["a"],
        ),
        trap(
            69,
            "an explicit 0 is a request",
            given(
                high_with(|args| args.eviction_modes = vec![EvictionMode::OnlyThresholdingResources]),
                [
                    load("a", "n1", "0"),
                    load("b", "n1", "0").with(|p| p.spec.containers[0].resources.requests.clear()),
                    base("n2", "1"),
                ],
            ),
            &["a"],
        ),
    ]);
}

#[test]
fn the_least_important_go_first_from_the_fullest_node() {
    let guaranteed = |p: PodBuilder| {
        p.memory("1Gi").with(|p| {
            let resources = &mut p.spec.containers[0].resources;
            resources.limits = resources.requests.clone();
        })
    };
    let mark = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
    let pods = [
        load("a", "n1", "500m").priority(5),
        guaranteed(load("b", "n1", "500m")),
        load("c", "n1", "500m").annotation(mark, ""),
        load("d", "n1", "500m"),
        base("n1", "2"),
        load("e", "n3", "3").memory("8Gi"),
    ];
    let nodes = [node("n1").cpu("4"), node("n2").cpu("40"), node("n3")];
    // n3 has more memory in use; n1 is then relieved of 2 cores.
    assert_eq!(given(low(), pods).nodes(nodes).evicted(), ["e", "d", "c", "b", "a"]);
}

#[test]
fn what_was_refused_relieves_nothing_and_counts_nowhere() {
    use crate::model::testing::selector;
    let pods = [load("a", "n1", "1").label("app", "x"), load("b", "n1", "1"), load("c", "n1", "1")];
    let budget = crate::model::PodDisruptionBudget {
        meta: ObjectMeta { name: "pdb".into(), namespace: "default".into(), ..ObjectMeta::default() },
        selector: selector(&[("app", "x")]),
        ..Default::default()
    };
    let limited = low_with(|args| args.max_per_node = Some(1));
    check(vec![trap(63, "429 for the first", given(limited, pods).object(budget), &["b"])]);
}

#[test]
fn actual_usage_comes_from_streamed_metrics() {
    let measured = || low_with(|args| args.usage = UsageSource::KubernetesMetrics);
    let node_metrics = |name: &str, cpu: &str| NodeMetrics {
        meta: ObjectMeta { name: name.into(), ..ObjectMeta::default() },
        usage: [("cpu".into(), quantity(cpu))].into(),
        ..NodeMetrics::default()
    };
    let pod_metrics = |name: &str, cpu: &str| PodMetrics {
        meta: ObjectMeta { name: name.into(), namespace: "default".into(), ..ObjectMeta::default() },
        containers: vec![("c".into(), [("cpu".into(), quantity(cpu))].into())],
        ..PodMetrics::default()
    };
    let pods = || ["a", "b", "c"].map(|name| load(name, "n1", "0"));
    let declared = |given: Given| given.policy(|p| p.kubernetes_metrics = true);
    let failure = |given: Given| given.outcome().failures[0].error.clone();
    assert_eq!(failure(given(measured(), pods())), StrategyError::NoMetricsProvider);
    let one = declared(given(measured(), pods())).object(node_metrics("n1", "3"));
    assert_eq!(failure(one.clone()), StrategyError::NoNodeMetrics("n2".into()));
    let both = one.object(node_metrics("n2", "100m"));
    assert_eq!(both.evicted(), [""; 0], "no pod's usage is known");
    let all = both.object(pod_metrics("b", "600m")).object(pod_metrics("c", "600m"));
    assert_eq!(all.evicted(), ["b", "c"]);
    let by_disk = low_with(|args| {
        args.usage = UsageSource::KubernetesMetrics;
        args.thresholds = percentages(&[("ephemeral-storage", 20.0)]);
        args.target_thresholds = percentages(&[("ephemeral-storage", 50.0)]);
    });
    let unmeasured = StrategyError::UnmeasuredResource("ephemeral-storage".into());
    assert_eq!(failure(declared(given(by_disk, pods()))), unmeasured);
}
