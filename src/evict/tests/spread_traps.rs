//! Traps 79 to 85, and the vectors of spec section 15: RemovePodsViolatingTopologySpreadConstraint.

use super::{Given, check, given, trap};
use crate::evict::policy::{PluginConfig, RemovePodsViolatingTopologySpreadConstraintArgs};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::volume::VolumeSource;
use crate::model::{Effect, Str, TopologySpreadConstraint};

fn spread() -> PluginConfig {
    spread_with(|_| ())
}

fn spread_with(change: impl FnOnce(&mut RemovePodsViolatingTopologySpreadConstraintArgs)) -> PluginConfig {
    let mut args = RemovePodsViolatingTopologySpreadConstraintArgs::default();
    change(&mut args);
    PluginConfig::RemovePodsViolatingTopologySpreadConstraint(args)
}

fn constraint(max_skew: i32, when: WhenUnsatisfiable) -> TopologySpreadConstraint {
    let key: Str = "topology.kubernetes.io/zone".into();
    TopologySpreadConstraint::new(max_skew, key, when, selector(&[("app", "x")]))
}

fn spreading(name: &str, node: &str) -> PodBuilder {
    plain(name, node).spread(constraint(1, WhenUnsatisfiable::DoNotSchedule))
}

/// Counts for the constraint and doesn't state it.
fn plain(name: &str, node: &str) -> PodBuilder {
    pod(name).owner("apps/v1", "ReplicaSet", "rs").on(node).label("app", "x")
}

/// Nodes n1, n2, ... each a zone of its own.
fn zones(count: usize) -> Vec<NodeBuilder> {
    (1..=count).map(|i| node(&format!("n{i}")).zone(&format!("z{i}")).cpu("1000").pods("1000")).collect()
}

fn two_zones(pods: impl IntoIterator<Item = PodBuilder>) -> Given {
    given(spread(), pods).nodes(zones(2))
}

#[test]
fn how_many_move() {
    let cases: [(&[usize], i32, usize); 10] = [
        (&[2, 1], 1, 0),
        (&[3, 1], 1, 1),
        (&[5, 2], 1, 1),
        (&[4, 0], 1, 2),
        (&[2, 6], 2, 1),
        (&[8, 7, 0], 1, 5),
        (&[0, 1, 3, 5], 1, 3),
        (&[0, 1, 100], 1, 66),
        (&[100, 1, 0], 1, 66),
        (&[2, 5, 3, 8, 5, 7], 1, 5),
    ];
    for (sizes, max_skew, moves) in cases {
        let pods = sizes.iter().enumerate().flat_map(|(zone, size)| {
            let limit = constraint(max_skew, WhenUnsatisfiable::DoNotSchedule);
            let name = move |i: usize| format!("p{zone}-{i}");
            (0..*size).map(move |i| plain(&name(i), &format!("n{}", zone + 1)).spread(limit.clone()))
        });
        assert_eq!(given(spread(), pods).nodes(zones(sizes.len())).evicted().len(), moves, "{sizes:?}");
    }
    let terminating = |name: &str| spreading(name, "n1").terminating();
    let pods = [spreading("a", "n1"), spreading("b", "n1"), terminating("c"), terminating("d")];
    let others = [spreading("e", "n2"), spreading("f", "n2")];
    assert_eq!(two_zones(pods.into_iter().chain(others)).evicted(), [""; 0], "terminating pods don't count");
}

#[test]
fn who_counts_and_who_goes() {
    let held = |name: &str| spreading(name, "n1").volume("v", VolumeSource::EmptyDir);
    let three_b = || ["d", "e", "f"].map(|name| spreading(name, "n2"));
    let bound = |name: &str| spreading(name, "n1").node_selector("disk", "ssd");
    let with_disks = || zones(2).into_iter().map(|n| n.label("disk", "ssd"));
    let soft = |name: &str| plain(name, "n1").spread(constraint(1, WhenUnsatisfiable::ScheduleAnyway));
    check(vec![
        trap(
            79,
            "protected pods don't count",
            two_zones(["a", "b", "c"].map(held).into_iter().chain(three_b())),
            &["f"],
        )
        .fixed(&[]),
        trap(
            80,
            "the most important goes first",
            two_zones([spreading("a", "n1").priority(5), spreading("b", "n1").priority(20)]),
            &["b"],
        )
        .fixed(&["a"]),
        trap(
            81,
            "pods with a node selector go last",
            two_zones([bound("a").priority(20), spreading("b", "n1").priority(5)]).nodes(with_disks()),
            &["b"],
        ),
        trap(
            81,
            "but before those that fit nowhere",
            two_zones([bound("a"), spreading("b", "n1").cpu("2000")]).nodes(with_disks()),
            &["a"],
        ),
        trap(
            82,
            "a pick that fits nowhere isn't replaced",
            two_zones([
                spreading("a", "n1").cpu("2000"),
                spreading("b", "n1").cpu("2000"),
                spreading("c", "n1").cpu("2000"),
                spreading("d", "n1"),
            ]),
            &["d"],
        ),
        trap(
            82,
            "unless it need not fit",
            given(
                spread_with(|args| args.topology_balance_node_fit = false),
                [spreading("a", "n1").cpu("2000"), spreading("b", "n1").cpu("2000")],
            )
            .nodes(zones(2)),
            &["b"],
        ),
        trap(
            83,
            "minDomains isn't looked at",
            two_zones([spreading("a", "n1").with(|p| p.spec.topology_spread[0].min_domains = 3), spreading("b", "n2")]),
            &[],
        ),
        trap(84, "soft constraints by default", two_zones([soft("a"), soft("b")]), &[]),
        trap(
            84,
            "or by the arguments",
            given(
                spread_with(|args| args.constraints = vec![WhenUnsatisfiable::ScheduleAnyway]),
                [soft("a"), soft("b")],
            )
            .nodes(zones(2)),
            &["b"],
        ),
        trap(
            84,
            "a pod that states nothing is moved, too",
            two_zones([spreading("a", "n1"), plain("b", "n1")]),
            &["b"],
        ),
    ]);
}

#[test]
fn each_pass_sees_the_nodes_that_its_pod_may_use() {
    // Only n3 has the disk: for those that want it there is one domain. For the others there are three, and all pods of the
    // selector count in both passes.
    let nodes = || {
        let mut nodes = zones(3);
        nodes[2] = nodes[2].clone().label("disk", "ssd");
        nodes
    };
    let pods = [
        spreading("a", "n3").node_selector("disk", "ssd"),
        spreading("b", "n3").node_selector("disk", "ssd"),
        spreading("c", "n1"),
    ];
    check(vec![trap(85, "different node selectors make two passes", given(spread(), pods).nodes(nodes()), &[])]);
    let cordoned = |effect: Effect| {
        let mut nodes = zones(2);
        nodes[1] = nodes[1].clone().taint("k", "", effect);
        nodes
    };
    let pair = || [spreading("a", "n1"), spreading("b", "n1")];
    let unfit = given(spread(), pair()).nodes(cordoned(Effect::NoSchedule));
    assert_eq!(unfit.evicted(), [""; 0], "the empty domain takes nobody");
    assert_eq!(unfit.outcome().left_alone[0].why.kind(), "NO_NODE_FITS");
}
