use super::*;
use crate::engine::testing::{Scene, only, scene};
use crate::engine::{Fix, IncomingPod, Profile};
use crate::model::testing::{NodeBuilder, PodBuilder, container, node, pod};

const GPU: &str = "example.com/gpu";

/// Whether a node of these amounts takes a pod of these requests.
fn fits(offers: &[(&str, &str)], requests: &[(&str, &str)]) -> bool {
    let n = offers.iter().fold(node("n"), |n, (name, amount)| n.allocatable(name, amount));
    let p = requests.iter().fold(pod("p"), |p, (name, amount)| p.request(name, amount));
    !scene([n], []).decide(p).feasible().is_empty()
}

// --- amounts ---

#[test]
fn amounts_are_stored_rounded_up() {
    for (resource, request, enough, too_little) in [
        ("memory", "100m", "1", "0"),
        ("cpu", "0.0001", "1m", "0"),
        ("memory", "0.1Gi", "107374183", "107374182"),
        ("memory", "1k", "1000", "999"),
        ("memory", "1Ki", "1024", "1023"),
        ("cpu", "1e3", "1000", "999"),
    ] {
        assert!(fits(&[(resource, enough)], &[(resource, request)]), "{resource} {request} in {enough}");
        assert!(!fits(&[(resource, too_little)], &[(resource, request)]), "{resource} {request} in {too_little}");
    }
}

#[test]
fn containers_are_summed_before_rounding() {
    // An API server has rounded each to 1m already; unrounded ones sum to 0.8m.
    let p = |amount: &str| {
        pod("p").no_containers().container(container("a").cpu(amount)).container(container("b").cpu(amount))
    };
    assert_eq!(scene([node("n").cpu("1m")], []).decide(p("0.4m")).feasible(), ["n"]);
    assert!(scene([node("n").cpu("1m")], []).decide(p("1m")).feasible().is_empty());
}

/// The milli CPU that the filter compares: a node with as much takes the pod, one with less doesn't.
fn cpu_needed(p: &PodBuilder) -> i64 {
    let needed = IncomingPod::new(&p.clone().build()).filter_requests.milli_cpu;
    let fits = |milli: i64| !scene([node("n").cpu(&format!("{milli}m"))], []).decide(p.clone()).feasible().is_empty();
    assert!(fits(needed) && !fits(needed - 1), "the filter compares {needed}");
    needed
}

#[test]
fn only_init_containers_after_a_sidecar_stack_on_it() {
    let running = || pod("p").no_containers().container(container("a").cpu("1")).container(container("b").cpu("1"));
    let init = |name: &str| container(name).cpu("2");
    let sidecar = || container("s").cpu("1").sidecar();
    assert_eq!(cpu_needed(&running().init(init("i1")).init(sidecar()).init(init("i2"))), 3000);
    assert_eq!(cpu_needed(&running().init(sidecar()).init(init("i1")).init(init("i2"))), 3000);
    assert_eq!(cpu_needed(&running().init(init("i1")).init(init("i2"))), 2000);
    let one = pod("p").no_containers().container(container("a").cpu("1"));
    // Before the sidecar the init container runs alone, after it beside it.
    assert_eq!(cpu_needed(&one.clone().init(container("i").cpu("3")).init(sidecar())), 3000);
    assert_eq!(cpu_needed(&one.init(sidecar()).init(container("i").cpu("3"))), 4000);
}

#[test]
fn overhead_comes_on_top_of_the_larger_of_init_and_running() {
    let p = pod("p").cpu("1").init(container("i").cpu("3")).overhead("cpu", "100m");
    assert_eq!(cpu_needed(&p), 3100);
}

#[test]
fn pod_level_requests_decide_the_filter_and_not_the_score() {
    let p = || pod("p").cpu("2").memory("0").pod_level("cpu", "500m");
    assert_eq!(cpu_needed(&p()), 500);
    let cpu_only = || Profile::new("cpu".into(), 0, vec![(least(&[("cpu", 1)]), 1)]);
    let nodes = || [node("n").cpu("4"), node("m").cpu("4")];
    let v = scene(nodes(), []).profile(cpu_only()).decide(p());
    assert_eq!(v.score(NAME, "n"), 50, "the containers' 2 of 4");
    // Those of a bound pod do count: 500m of 4.
    let v = scene(nodes(), [p().on("n")]).profile(cpu_only()).decide(pod("q").cpu("0"));
    assert_eq!(v.score(NAME, "n"), 87);
}

#[test]
fn the_switch_lets_pod_level_requests_decide_the_score_too() {
    // The public case: 8 of 16 cores are used on n, 1 of 4 on m; the pod asks for 3 and 12 Gi at pod level.
    let nodes = [node("n").cpu("16").memory("64Gi"), node("m").cpu("4").memory("16Gi")];
    let bound = [pod("a").cpu("8").memory("32Gi").on("n"), pod("b").cpu("1").memory("4Gi").on("m")];
    let p = || pod("p").pod_level("cpu", "3").pod_level("memory", "12Gi");
    let s = scene(nodes, bound);
    let scores = |s: &Scene, p: PodBuilder| {
        let v = s.decide(p);
        ["n", "m"].map(|n| v.score(NAME, n))
    };
    let (before, fixed) = (s.clone(), s.profile(Profile::default().with_fix(Fix::PodLevelRequestInScore)));
    assert_eq!(scores(&before, p()), [49, 72]);
    assert_eq!(scores(&fixed, p()), [31, 0]);
    // The defaults stand in only for what neither level names.
    let cpu_only = || pod("p").pod_level("cpu", "3");
    assert_eq!(scores(&fixed, cpu_only()), [(31 + 49) / 2, 73 / 2]);
    // Without pod-level requests nothing changes.
    assert_eq!(scores(&fixed, pod("p").cpu("2")), scores(&before, pod("p").cpu("2")));
}

#[test]
fn a_wanted_resize_counts_until_it_is_found_infeasible() {
    let resized = || pod("a").cpu("4").container_in_force("cpu", "2", "2").on("n");
    let s = |p| scene([node("n").cpu("6")], [p]);
    assert!(s(resized()).decide(pod("p").cpu("3")).feasible().is_empty());
    assert_eq!(s(resized()).decide(pod("p").cpu("2")).feasible(), ["n"]);
    let infeasible = resized().condition("PodResizePending", "True", "Infeasible");
    assert_eq!(s(infeasible).decide(pod("p").cpu("4")).feasible(), ["n"]);
}

#[test]
fn the_status_of_an_ordinary_init_container_is_never_used() {
    let bound = |sidecar: bool| {
        let init = container("i").cpu("1");
        let p = pod("a").init(if sidecar { init.sidecar() } else { init });
        p.with(|p| {
            p.status.init_containers.push(crate::model::pod_status::ContainerStatus {
                name: "i".into(),
                requests: Some([(Str::from("cpu"), crate::model::testing::quantity("3"))].into()),
                ..Default::default()
            });
        })
        .on("n")
    };
    assert_eq!(scene([node("n").cpu("4")], [bound(false)]).decide(pod("p").cpu("3")).feasible(), ["n"]);
    assert!(scene([node("n").cpu("4")], [bound(true)]).decide(pod("p").cpu("3")).feasible().is_empty());
}

// --- the filter ---

#[test]
fn an_over_committed_resource_hinders_only_pods_that_ask_for_it() {
    let s = scene([node("n").memory("1Gi")], [pod("a").memory("2Gi").on("n")]);
    assert_eq!(s.decide(pod("p").cpu("1")).feasible(), ["n"]);
    assert_eq!(s.decide(pod("p").memory("0")).feasible(), ["n"]);
    assert_eq!(s.decide(pod("p").memory("1")).refusal("n"), "NodeResourcesFit U: Insufficient memory");
}

#[test]
fn a_node_full_of_pods_takes_none_that_asks_for_nothing() {
    let s = scene([node("n").pods("2")], [pod("a").on("n"), pod("b").on("n")]);
    let v = s.decide(pod("p"));
    assert_eq!(v.refusal("n"), "NodeResourcesFit U: Too many pods");
    assert_eq!(v.rejection("n").reasons[0], Reason::TooManyPods { pods: 2, allowed: 2 });
}

#[test]
fn a_node_that_names_no_number_of_pods_takes_none() {
    let v = scene([node("n").without("pods")], []).decide(pod("p"));
    assert_eq!(v.refusal("n"), "NodeResourcesFit U: Too many pods");
}

#[test]
fn more_than_the_whole_node_is_unresolvable_and_less_is_not() {
    let s = || scene([node("n").cpu("4")], [pod("a").cpu("2").on("n")]);
    assert_eq!(s().decide(pod("p").cpu("8")).refusal("n"), "NodeResourcesFit UU: Insufficient cpu");
    let v = s().decide(pod("p").cpu("3"));
    assert_eq!(v.refusal("n"), "NodeResourcesFit U: Insufficient cpu");
    let numbers =
        Reason::InsufficientResource { resource: "cpu".into(), requested: 3000, free: 2000, allocatable: 4000 };
    assert_eq!(v.rejection("n").reasons[0], numbers);
    assert_eq!(s().decide(pod("p").cpu("4")).refusal("n"), "NodeResourcesFit U: Insufficient cpu", "the whole node");
    // One that the node could never hold decides the code for all.
    let v = s().decide(pod("p").cpu("3").memory("1Ti"));
    assert_eq!(v.refusal("n"), "NodeResourcesFit UU: Insufficient cpu, Insufficient memory");
}

#[test]
fn all_insufficient_resources_are_reported_in_a_fixed_order() {
    let n = node("n").cpu("1").memory("1").ephemeral("1").pods("0").allocatable(GPU, "1");
    let p = pod("p").request("hugepages-2Mi", "2Mi").request(GPU, "2").request("ephemeral-storage", "2");
    let v = scene([n], []).decide(p.cpu("2").memory("2"));
    assert_eq!(
        v.refusal("n"),
        "NodeResourcesFit UU: Too many pods, Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage, \
         Insufficient example.com/gpu, Insufficient hugepages-2Mi"
    );
}

#[test]
fn names_without_a_slash_are_no_resources() {
    assert!(fits(&[], &[("gpu", "5")]));
    assert!(fits(&[], &[("storage", "5Gi")]));
    assert!(!fits(&[], &[(GPU, "1")]));
    assert!(!fits(&[], &[("foo.kubernetes.io/bar", "1")]));
    assert!(!fits(&[], &[("hugepages-2Mi", "2Mi")]));
    assert!(fits(&[(GPU, "1")], &[(GPU, "1")]));
}

#[test]
fn only_extended_resources_can_be_ignored() {
    let ignoring = || {
        only(NodeResourcesFit {
            ignored_resources: vec![GPU.into(), "foo.kubernetes.io/bar".into(), "cpu".into()],
            ignored_groups: vec!["acme.example".into()],
            ..NodeResourcesFit::default()
        })
    };
    let decide = |p| scene([node("n")], []).profile(ignoring()).decide(p);
    assert_eq!(decide(pod("p").request(GPU, "1")).feasible(), ["n"]);
    assert_eq!(decide(pod("p").request("acme.example/x", "1")).feasible(), ["n"]);
    assert_eq!(decide(pod("p").request("acme.example.org/x", "1")).feasible(), Vec::<&str>::new());
    assert!(decide(pod("p").request("foo.kubernetes.io/bar", "1")).feasible().is_empty(), "native");
    assert!(decide(pod("p").cpu("8")).feasible().is_empty());
}

#[test]
fn an_explicit_zero_always_fits() {
    assert!(fits(&[], &[(GPU, "0")]));
    let over = scene([node("n").allocatable(GPU, "1")], [pod("a").request(GPU, "3").on("n")]);
    assert_eq!(over.decide(pod("p").request(GPU, "0")).feasible(), ["n"]);
}

#[test]
fn a_terminating_pod_still_takes_its_room() {
    let s = scene([node("n").cpu("4")], [pod("a").cpu("3").terminating().on("n")]);
    assert_eq!(s.decide(pod("p").cpu("2")).refusal("n"), "NodeResourcesFit U: Insufficient cpu");
}

// --- scores ---

fn least(resources: &[(&str, i64)]) -> Arc<NodeResourcesFit> {
    strategy(ScoringStrategy::LeastAllocated, resources)
}

fn strategy(strategy: ScoringStrategy, resources: &[(&str, i64)]) -> Arc<NodeResourcesFit> {
    NodeResourcesFit::scoring(strategy, resources.iter().map(|(name, weight)| (Str::from(*name), *weight)).collect())
}

/// The score of the first of these nodes; a second one makes sure that there is a choice to score.
fn score(plugin: Arc<NodeResourcesFit>, n: NodeBuilder, bound: &[PodBuilder], p: PodBuilder) -> i64 {
    let nodes = [n, node("other").cpu("1k").memory("1Ti").allocatable(GPU, "1k").ephemeral("1Ti")];
    let bound = bound.iter().map(|b| b.clone().on("n"));
    let profile = Profile::new("test".into(), 0, vec![(plugin as Arc<dyn crate::engine::plugin::Plugin>, 1)]);
    scene(nodes, bound).profile(profile).decide(p).score(NAME, "n")
}

fn shape(points: &[(i64, i64)]) -> ScoringStrategy {
    let points = points.iter().map(|(utilization, score)| ShapePoint { utilization: *utilization, score: *score });
    ScoringStrategy::RequestedToCapacityRatio(points.collect())
}

const BOTH: [(&str, i64); 2] = [("cpu", 1), ("memory", 1)];

#[test]
fn defaults_stand_in_for_absent_requests_and_not_for_zero() {
    // Of 1 core and 2,000 Mi, 100m and 200 Mi are a tenth.
    let n = || node("n").cpu("1").memory("2000Mi");
    for (rule, p, expected) in [
        ("absent", pod("p"), 90),
        ("explicit zero", pod("p").cpu("0").memory("0"), 100),
        ("one of them", pod("p").cpu("0"), 95),
        ("each container", pod("p").container(container("d")), 80),
        ("init container", pod("p").cpu("0").memory("0").init(container("i")), 90),
        ("sidecar", pod("p").init(container("s").sidecar()), 80),
    ] {
        assert_eq!(score(least(&BOTH), n(), &[], p.clone()), expected, "{rule}, incoming");
        // The same of a bound pod.
        let zero = pod("q").cpu("0").memory("0");
        assert_eq!(score(least(&BOTH), n(), &[p], zero), expected, "{rule}, bound");
    }
}

#[test]
fn the_default_for_memory_is_200_mebibytes() {
    assert_eq!(score(least(&[("memory", 1)]), node("n").memory("209715200"), &[], pod("p")), 0);
    assert_eq!(score(least(&[("memory", 1)]), node("n").memory("211854000"), &[], pod("p")), 1);
}

#[test]
fn least_allocated_divides_twice() {
    let n = || node("n").cpu("4").memory("8Gi");
    let bound = [pod("a").cpu("1").memory("2Gi")];
    let p = || pod("p").cpu("500m").memory("1Gi");
    assert_eq!(score(least(&BOTH), n(), &bound, p()), 62);
    // cpu 62 and memory 25, 3:1.
    let weighted = least(&[("cpu", 3), ("memory", 1)]);
    assert_eq!(score(weighted, n(), &bound, pod("p").cpu("500m").memory("4Gi")), (62 * 3 + 25) / 4);
}

#[test]
fn over_commitment_is_0_for_the_least_allocated_and_100_for_the_most() {
    let over = || [pod("a").cpu("5")];
    let p = || pod("p").cpu("0");
    assert_eq!(score(least(&[("cpu", 1)]), node("n").cpu("4"), &over(), p()), 0);
    assert_eq!(score(strategy(ScoringStrategy::MostAllocated, &[("cpu", 1)]), node("n").cpu("4"), &over(), p()), 100);
    let most = strategy(ScoringStrategy::MostAllocated, &BOTH);
    assert_eq!(score(most, node("n").cpu("4").memory("8Gi"), &[], pod("p").cpu("3").memory("2Gi")), (75 + 25) / 2);
}

#[test]
fn the_ratio_is_interpolated_between_the_points_and_truncated() {
    let cpu = |s| strategy(s, &[("cpu", 1)]);
    let n = || node("n").cpu("100m");
    let at = |s, used: i64| score(cpu(s), n(), &[], pod("p").cpu(&format!("{used}m")));
    assert_eq!(at(shape(&[(0, 0), (100, 100)]), 37), 37);
    assert_eq!(at(shape(&[(0, 100), (100, 0)]), 37), 63);
    let bent = || shape(&[(20, 10), (50, 80), (80, 40)]);
    assert_eq!((at(bent(), 10), at(bent(), 20), at(bent(), 35), at(bent(), 90)), (10, 10, 45, 40));
    // 80 + (-40) * 7 / 30 = 80 - 9: truncation is toward zero.
    assert_eq!(at(bent(), 57), 71);
    // More than there is counts as full.
    assert_eq!(score(cpu(shape(&[(0, 0), (99, 0), (100, 70)])), n(), &[pod("a").cpu("300m")], pod("p").cpu("0")), 70);
}

#[test]
fn a_ratio_of_0_drops_the_resource_from_the_mean() {
    let ratio = |p| {
        let s = strategy(shape(&[(0, 0), (100, 100)]), &[("cpu", 1), ("memory", 3)]);
        score(s, node("n").cpu("4").memory("8Gi"), &[], p)
    };
    // Without the rule: (50 + 3 * 0) / 4.
    assert_eq!(ratio(pod("p").cpu("2").memory("0")), 50);
    assert_eq!(ratio(pod("p").cpu("0").memory("0")), 0);
    // (50 + 3 * 25) / 4 = 31.25; (50 + 3 * 26) / 4 = 32; the mean is rounded.
    assert_eq!(ratio(pod("p").cpu("2").memory("2Gi")), 31);
    assert_eq!(ratio(pod("p").cpu("2200m").memory("2Gi")), 33, "32.5 away from zero");
}

#[test]
fn a_scalar_that_the_pod_does_not_ask_for_says_nothing_and_storage_does() {
    let with_gpu = || least(&[("cpu", 1), (GPU, 1)]);
    let n = || node("n").cpu("4").allocatable(GPU, "4").ephemeral("100Gi");
    let used = [pod("a").cpu("0").request(GPU, "3").request("ephemeral-storage", "75Gi")];
    assert_eq!(score(with_gpu(), n(), &used, pod("p").cpu("2")), 50);
    assert_eq!(score(with_gpu(), n(), &used, pod("p").cpu("2").request(GPU, "1")), 25);
    let with_storage = || least(&[("cpu", 1), ("ephemeral-storage", 1)]);
    assert_eq!(score(with_storage(), n(), &used, pod("p").cpu("2")), (50 + 25) / 2);
    // A node without any: left out.
    assert_eq!(score(with_storage(), node("n").cpu("4"), &[], pod("p").cpu("2")), 50);
    assert_eq!(score(least(&[(GPU, 1)]), node("n"), &[], pod("p")), 0, "all left out");
}
