//! Traps 48 to 54 (duplicates) and 70 to 90 but for spreading: what each rule speaks of.

use super::{NOW, check, given, old, replica, trap};
use crate::evict::policy::{
    NodeAffinityType, PluginConfig, PodConditionFilter, PodLifeTimeArgs, PodSelection, RemoveDuplicatesArgs,
    RemoveFailedPodsArgs, RemovePodsHavingTooManyRestartsArgs, RemovePodsViolatingInterPodAntiAffinityArgs,
    RemovePodsViolatingNoExecuteTaintsArgs, RemovePodsViolatingNodeAffinityArgs, RemovePodsViolatingNodeTaintsArgs,
    TaintFilter, TaintPattern,
};
use crate::model::pod_status::{ContainerState, ContainerStatus, Phase, PodCondition};
use crate::model::testing::{NodeBuilder, PodBuilder, container, node, pod, selector};
use crate::model::testing_storage::node_terms;
use crate::model::{Effect, NodeSelectorTerm, Time};

fn duplicates() -> PluginConfig {
    PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs::default())
}

#[test]
fn what_counts_as_a_duplicate() {
    let two = |a: PodBuilder, b: PodBuilder| given(duplicates(), [a, b]);
    let images = |p: PodBuilder, list: [&str; 2]| p.image(list[0]).container(container("d").image(list[1]));
    let limited_to = |p: PodBuilder, node: &str| p.node_selector("kubernetes.io/hostname", node);
    let only = |kinds: &[&str]| {
        let exclude_owner_kinds = kinds.iter().map(|kind| (*kind).into()).collect();
        PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs { exclude_owner_kinds, ..RemoveDuplicatesArgs::default() })
    };
    let two_owners = |name: &str| replica(name).owner("example/v1", "Custom", "c");
    check(vec![
        trap(48, "other image tags", two(replica("a").image("x:1"), replica("b").image("x:2")), &[]),
        trap(
            49,
            "init images don't matter",
            two(replica("a").init(container("i").image("x")), replica("b").init(container("i").image("y"))),
            &["b"],
        ),
        trap(
            50,
            "nor the order of images",
            two(images(replica("a"), ["x", "y"]), images(replica("b"), ["y", "x"])),
            &["b"],
        ),
        trap(
            51,
            "a protected pod is no original",
            two(replica("a").volume("v", crate::model::volume::VolumeSource::EmptyDir), replica("b")),
            &[],
        ),
        trap(52, "one node to run on", two(limited_to(replica("a"), "n1"), limited_to(replica("b"), "n1")), &[]),
        trap(53, "two owners, submitted once", two(two_owners("a"), two_owners("b")), &["b"]),
        trap(54, "owners are direct ones", given(only(&["Deployment"]), [replica("a"), replica("b")]), &["b"]),
        trap(54, "by their kind", given(only(&["ReplicaSet"]), [replica("a"), replica("b")]), &[]),
    ]);
}

#[test]
fn a_nodes_share_is_the_pods_over_the_usable_nodes_rounded_up() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let spread = |counts: &[usize]| -> Vec<PodBuilder> {
        let nodes = counts.iter().enumerate().flat_map(|(i, n)| std::iter::repeat_n(format!("n{}", i + 1), *n));
        names.iter().zip(nodes).map(|(name, node)| replica(name).on(&node)).collect()
    };
    let nodes = |n: usize| -> Vec<NodeBuilder> { (1..=n).map(|i| node(&format!("n{i}"))).collect() };
    let mut masters = nodes(6);
    for master in &mut masters[3..] {
        *master = master.clone().taint("master", "", Effect::NoSchedule);
    }
    let cases: [(&[usize], Vec<NodeBuilder>, &[&str]); 6] = [
        (&[5, 3, 1], nodes(3), &["d", "e"]),
        (&[5, 3], nodes(2), &["e"]),
        (&[2, 0, 0], nodes(3), &["b"]),
        (&[3, 0], nodes(2), &["c"]),
        (&[4, 4, 4], masters, &[]),
        (&[4, 4, 4], nodes(6), &["c", "d", "g", "h", "k", "l"]),
    ];
    for (counts, nodes, evicted) in cases {
        assert_eq!(given(duplicates(), spread(counts)).nodes(nodes).evicted(), evicted, "{counts:?}");
    }
}

fn node_affinity(kind: NodeAffinityType) -> PluginConfig {
    let args = RemovePodsViolatingNodeAffinityArgs { types: vec![kind], ..Default::default() };
    PluginConfig::RemovePodsViolatingNodeAffinity(args)
}

fn ssd() -> NodeSelectorTerm {
    node_terms("disk", &["ssd"]).terms.remove(0)
}

#[test]
fn node_affinity_rules() {
    let required = || node_affinity(NodeAffinityType::Required);
    let wants_ssd = || replica("a").required_node_terms(vec![ssd()]);
    let prefers_ssd = || replica("a").cpu("1").preferred_node_term(5, ssd());
    let with_ssd = || [node("n1"), node("n2").label("disk", "ssd")];
    check(vec![
        trap(
            70,
            "a bare nodeSelector",
            given(required(), [replica("a").node_selector("disk", "ssd")]).nodes(with_ssd()),
            &[],
        )
        .fixed(&["a"]),
        trap(70, "required affinity", given(required(), [wants_ssd()]).nodes(with_ssd()), &["a"]),
        trap(70, "no node fits", given(required(), [wants_ssd()]), &[]),
        trap(
            71,
            "the better node is full",
            given(node_affinity(NodeAffinityType::Preferred), [prefers_ssd()])
                .nodes([node("n1"), node("n2").label("disk", "ssd").cpu("500m")]),
            &["a"],
        )
        .fixed(&[]),
        trap(71, "no node is better", given(node_affinity(NodeAffinityType::Preferred), [prefers_ssd()]), &[]),
    ]);
}

fn node_taints(change: impl FnOnce(&mut RemovePodsViolatingNodeTaintsArgs)) -> PluginConfig {
    let mut args = RemovePodsViolatingNodeTaintsArgs::default();
    change(&mut args);
    PluginConfig::RemovePodsViolatingNodeTaints(args)
}

#[test]
fn node_taint_rules() {
    let tainted = |key: &str, value: &str, effect: Effect| [node("n1").taint(key, value, effect), node("n2")];
    let pattern = |key: &str, value: Option<&str>| vec![TaintPattern { key: key.into(), value: value.map(Into::into) }];
    let run = |plugin: PluginConfig, nodes: [NodeBuilder; 2]| given(plugin, [replica("a")]).nodes(nodes);
    let hard = || tainted("k", "", Effect::NoSchedule);
    check(vec![
        trap(72, "NoExecute is another's", run(node_taints(|_| ()), tainted("k", "v", Effect::NoExecute)), &[]),
        trap(
            73,
            "a cordoned node drains",
            run(node_taints(|_| ()), tainted("node.kubernetes.io/unschedulable", "", Effect::NoSchedule)),
            &["a"],
        ),
        trap(74, "k= is not k", run(node_taints(|args| args.taints.excluded = pattern("k", Some(""))), hard()), &["a"]),
        trap(74, "k is", run(node_taints(|args| args.taints.excluded = pattern("k", None)), hard()), &[]),
        trap(17, "nothing is included", run(node_taints(|args| args.taints.included = Some(vec![])), hard()), &[]),
        trap(
            17,
            "soft taints by the flag only",
            run(node_taints(|args| args.include_prefer_no_schedule = true), tainted("k", "", Effect::PreferNoSchedule)),
            &["a"],
        ),
        trap(17, "soft taints", run(node_taints(|_| ()), tainted("k", "", Effect::PreferNoSchedule)), &[]),
    ]);
}

fn anti_affinity(selection: PodSelection) -> PluginConfig {
    PluginConfig::RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinityArgs {
        pods: selection,
    })
}

#[test]
fn anti_affinity_rules() {
    let host = "kubernetes.io/hostname";
    let hates = |pod: PodBuilder, app: &str| pod.pod_anti_affinity(host, selector(&[("app", app)]));
    let noisy = || replica("a").label("app", "a").priority(0);
    let lead = || hates(replica("b").label("app", "b").priority(1_000), "a");
    let only_b = || PodSelection { label_selector: Some(selector(&[("app", "b")])), ..PodSelection::default() };
    let mutual = |name: &str| hates(replica(name).label("app", "x"), "x");
    let all = PodSelection::default;
    check(vec![
        trap(75, "who states the rule goes", given(anti_affinity(all()), [noisy(), lead()]), &["b"]).fixed(&["a"]),
        trap(76, "a peer that isn't selected", given(anti_affinity(only_b()), [noisy(), lead()]), &[]),
        trap(
            77,
            "one node without the label is one topology",
            given(anti_affinity(all()), [mutual("a"), mutual("b")]).nodes([node("n1").no_labels(), node("n2")]),
            &["a"],
        ),
        trap(78, "a terminating peer", given(anti_affinity(all()), [noisy().terminating(), lead()]), &["b"]),
        trap(
            78,
            "the least important go, one stays",
            given(anti_affinity(all()), [mutual("a").priority(3), mutual("b").priority(1), mutual("c").priority(2)]),
            &["b", "c"],
        ),
    ]);
}

fn restarted(pod: PodBuilder, counts: &[i32]) -> PodBuilder {
    let status = |count: &i32| ContainerStatus { restart_count: *count, ..ContainerStatus::default() };
    pod.with(|p| p.status.containers = counts.iter().map(status).collect())
}

fn in_state(pod: PodBuilder, state: ContainerState, last_state: ContainerState) -> PodBuilder {
    pod.with(|p| p.status.containers = vec![ContainerStatus { state, last_state, ..ContainerStatus::default() }])
}

fn ended(reason: &str, exit_code: i32) -> ContainerState {
    ContainerState::Terminated { reason: reason.into(), exit_code, finished: None }
}

fn life_time(change: impl FnOnce(&mut PodLifeTimeArgs)) -> PluginConfig {
    let mut args = PodLifeTimeArgs::default();
    change(&mut args);
    PluginConfig::PodLifeTime(args)
}

#[test]
fn restarts_and_ages() {
    let too_many = |restart_threshold: i32| {
        let args = RemovePodsHavingTooManyRestartsArgs { restart_threshold, ..Default::default() };
        PluginConfig::RemovePodsHavingTooManyRestarts(args)
    };
    let failed = |seconds: u64| {
        let args = RemoveFailedPodsArgs { min_pod_lifetime_seconds: seconds, ..Default::default() };
        PluginConfig::RemoveFailedPods(args)
    };
    let minute = || replica("a").created(NOW - 60);
    let oom = || life_time(|args| args.states = vec!["OOMKilled".into()]);
    let pending = || life_time(|args| args.states = vec!["Pending".into()]);
    let running = || ContainerState::Running { started: None };
    check(vec![
        trap(86, "restarts are added up", given(too_many(5), [restarted(replica("a"), &[2, 3])]), &["a"]),
        trap(86, "below the threshold", given(too_many(6), [restarted(replica("a"), &[2, 3])]), &[]),
        trap(87, "exactly as old is not older", given(old(), [minute()]), &[]),
        trap(87, "one second more", given(old(), [minute().created(NOW - 61)]), &["a"]),
        trap(87, "exactly as old is old enough", given(failed(60), [minute().phase(Phase::Failed)]), &["a"]),
        trap(87, "one second less", given(failed(61), [minute().phase(Phase::Failed)]), &[]),
        trap(
            18,
            "an hour by default",
            given(
                PluginConfig::RemoveFailedPods(RemoveFailedPodsArgs::default()),
                [
                    replica("a").phase(Phase::Failed).created(NOW - 3_600),
                    replica("b").phase(Phase::Failed).created(NOW - 3_599),
                ],
            ),
            &["a"],
        ),
        trap(88, "the last state", given(oom(), [in_state(replica("a"), running(), ended("OOMKilled", 137))]), &[]),
        trap(88, "the state", given(oom(), [in_state(replica("a"), ended("OOMKilled", 137), running())]), &["a"]),
        trap(89, "not on a node", given(pending(), [replica("a").on("").phase(Phase::Pending)]), &[]),
        trap(89, "on one", given(pending(), [replica("a").phase(Phase::Pending)]), &["a"]),
        trap(90, "a pod that succeeded is old, too", given(old(), [replica("a").phase(Phase::Succeeded)]), &["a"]),
        trap(
            90,
            "and has restarted",
            given(too_many(5), [restarted(replica("a").phase(Phase::Succeeded), &[5])]),
            &["a"],
        ),
        trap(90, "but is no duplicate", given(duplicates(), [replica("a"), replica("b").phase(Phase::Succeeded)]), &[]),
    ]);
}

#[test]
fn life_time_conditions_and_exit_codes() {
    let unready = |at: i64| {
        replica("a").with(|p| {
            p.status.conditions.push(PodCondition {
                kind: "Ready".into(),
                status: "False".into(),
                reason: "".into(),
                last_transition: Some(Time::from_secs(at)),
            });
        })
    };
    let for_a_minute = || {
        life_time(|args| {
            args.conditions = vec![PodConditionFilter {
                kind: Some("Ready".into()),
                status: Some("False".into()),
                min_seconds_since_last_transition: Some(60),
                ..PodConditionFilter::default()
            }];
        })
    };
    assert_eq!(given(for_a_minute(), [unready(NOW - 60)]).evicted(), ["a"], "inclusive");
    assert_eq!(given(for_a_minute(), [unready(NOW - 59)]).evicted(), [""; 0]);
    assert_eq!(given(for_a_minute(), [unready(NOW + 60)]).evicted(), [""; 0], "from the future");
    let codes = || life_time(|args| args.exit_codes = vec![137]);
    let ended = |code| in_state(replica("a"), ended("Error", code), ContainerState::Unset);
    assert_eq!(given(codes(), [ended(137)]).evicted(), ["a"]);
    assert_eq!(given(codes(), [ended(1)]).evicted(), [""; 0]);
    let both = life_time(|args| (args.exit_codes, args.max_seconds) = (vec![137], Some(60)));
    assert_eq!(given(both, [ended(137).created(NOW)]).evicted(), [""; 0], "categories must all hold");
}

#[test]
fn the_oldest_go_first_over_all_nodes_and_most_restarts_first_on_each() {
    let pods = [replica("a").created(30), replica("b").on("n2").created(10), replica("c").created(20)];
    assert_eq!(given(old(), pods).evicted(), ["b", "c", "a"]);
    let args = RemovePodsHavingTooManyRestartsArgs { restart_threshold: 1, ..Default::default() };
    let pods = [restarted(replica("a"), &[1]), restarted(replica("b").on("n2"), &[9]), restarted(replica("c"), &[5])];
    assert_eq!(given(PluginConfig::RemovePodsHavingTooManyRestarts(args), pods).evicted(), ["c", "a", "b"]);
}

#[test]
fn no_execute_taints_say_when_each_pod_is_due() {
    let tolerating = |name: &str, seconds: Option<i64>| {
        replica(name).tolerates("k", None, Some(Effect::NoExecute)).with(|p| p.spec.tolerations[0].seconds = seconds)
    };
    let tainted =
        node("n1").taint("k", "v", Effect::NoExecute).with(|n| n.taints[0].added = Some(Time::from_secs(500)));
    let plugin = |taints: TaintFilter| {
        let args = RemovePodsViolatingNoExecuteTaintsArgs { taints, ..Default::default() };
        PluginConfig::RemovePodsViolatingNoExecuteTaints(args)
    };
    let pods = || {
        [
            tolerating("a", Some(100)),
            tolerating("b", None),
            replica("c"),
            tolerating("d", Some(-1)),
            pod("e").owner("apps/v1", "ReplicaSet", "rs").on("n2"),
        ]
    };
    let given = given(plugin(TaintFilter::default()), pods()).nodes([tainted.clone(), node("n2")]);
    let due: Vec<(String, Option<Time>)> =
        given.outcome().suggestions.iter().map(|s| (s.pod.meta.name.to_string(), s.not_before)).collect();
    let at = |name: &str, secs: i64| (name.to_owned(), Some(Time::from_secs(secs)));
    assert_eq!(due, [at("c", 500), at("d", 500), at("a", 600)]);
    let excluding = TaintFilter { excluded: vec![TaintPattern { key: "k".into(), value: None }], included: None };
    assert_eq!(super::given(plugin(excluding), pods()).nodes([tainted, node("n2")]).evicted(), [""; 0]);
}
