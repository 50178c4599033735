//! Traps 39 to 47: what `nodeFit` sees and doesn't.

use super::{Trap, check, given, old, replica, trap};
use crate::model::Effect;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector};

/// Whether a pod of `n1` finds `n2` fit, as an eviction of pod `a`.
fn fit(
    number: u32,
    what: &'static str,
    a: PodBuilder,
    n2: NodeBuilder,
    others: impl IntoIterator<Item = PodBuilder>,
    compatible: &'static [&'static str],
) -> Trap {
    // The others are too young to go themselves.
    let others = others.into_iter().map(|p| p.created(super::NOW));
    let given = given(old(), [a].into_iter().chain(others)).nodes([node("n1").zone("z1"), n2]);
    trap(number, what, given.evictor(|args| args.node_fit = true), compatible)
}

fn other(name: &str) -> PodBuilder {
    pod(name).on("n2").label("app", "db")
}

#[test]
fn node_fit() {
    let db = || selector(&[("app", "db")]);
    let zone = "topology.kubernetes.io/zone";
    let plain = || node("n2").zone("z2");
    let tolerant = replica("a").tolerates("node.kubernetes.io/unschedulable", None, None);
    check(vec![
        fit(39, "cordoned", tolerant, plain().cordoned(), [], &[]),
        fit(40, "only a soft taint", replica("a"), plain().taint("k", "v", Effect::PreferNoSchedule), [], &["a"]),
        fit(40, "a hard one", replica("a"), plain().taint("k", "v", Effect::NoExecute), [], &[]),
        fit(
            41,
            "anti-affinity over a zone sees the node itself only",
            replica("a").pod_anti_affinity(zone, db()),
            plain(),
            [pod("b").on("n3").label("app", "db")],
            &["a"],
        ),
        fit(41, "its own node", replica("a").pod_anti_affinity(zone, db()), plain(), [other("b")], &[]),
        fit(
            42,
            "another pod's anti-affinity isn't seen",
            replica("a").label("app", "web"),
            plain(),
            [other("b").pod_anti_affinity(zone, selector(&[("app", "web")]))],
            &["a"],
        )
        .fixed(&[]),
        fit(
            43,
            "pods of one name never meet",
            replica("a").pod_anti_affinity(zone, db()).with(|p| {
                p.spec.affinity.pod_anti.as_mut().unwrap().required[0].namespaces = vec!["x".into()];
            }),
            plain(),
            [pod("a").namespace("x").on("n2").label("app", "db")],
            &["a"],
        ),
        fit(
            45,
            "host ports aren't seen",
            replica("a").host_port("", "TCP", 80),
            plain(),
            [other("b").host_port("", "TCP", 80)],
            &["a"],
        )
        .fixed(&[]),
        fit(46, "none of what isn't there", replica("a").request("example.com/gpu", "0"), plain(), [], &["a"]),
        fit(46, "one of what isn't there", replica("a").request("example.com/gpu", "1"), plain(), [], &[]),
        fit(
            47,
            "a terminating pod takes room",
            replica("a").cpu("2"),
            plain().cpu("3"),
            [other("b").cpu("2").terminating()],
            &[],
        ),
        fit(
            47,
            "one that ended takes none",
            replica("a").cpu("2"),
            plain().cpu("3"),
            [other("b").cpu("2").phase(crate::model::pod_status::Phase::Succeeded)],
            &["a"],
        ),
        fit(47, "no slot is left", replica("a"), plain().pods("1"), [other("b")], &[]),
    ]);
}

#[test]
fn each_pod_is_asked_about_by_itself() {
    let pods = ["a", "b", "c"].map(|name| replica(name).cpu("2"));
    let given = given(old(), pods).nodes([node("n1").cpu("8"), node("n2").cpu("3900m")]);
    check(vec![
        trap(44, "three pods, room for one", given.evictor(|args| args.node_fit = true), &["a", "b", "c"])
            .fixed(&["a"]),
    ]);
}

#[test]
fn destinations_are_the_evictors_nodes_and_not_the_policys() {
    use crate::evict::policy::LabelQuery;
    use crate::model::node_selector::{NodeOperator, NodeRequirement};
    let pool_a = || {
        let op = NodeOperator::In(vec!["a".into()]);
        Some(LabelQuery::new(vec![NodeRequirement { key: "pool".into(), op }]))
    };
    let nodes =
        [node("n1").label("pool", "a"), node("n2").label("pool", "a").cordoned(), node("n3").label("pool", "b")];
    let given = given(old(), [replica("a")]).nodes(nodes).policy(|p| p.node_selector = pool_a());
    let given = given.evictor(|args| args.node_fit = true);
    check(vec![
        trap(11, "a node outside the policy's selector fits", given.clone(), &["a"]),
        trap(11, "the evictor's own selector limits", given.evictor(|args| args.node_selector = pool_a()), &[]),
    ]);
}
