use super::*;
use crate::engine::testing::{Verdict, scene};
use crate::model::taint::TolerationOperator;
use crate::model::testing::{PodBuilder, node, pod};

const REFUSAL: &str = "TaintToleration UU: node(s) had untolerated taint(s)";

/// On a node with the taint `key=value:effect`.
fn decide(effect: Effect, p: PodBuilder) -> Verdict {
    scene([node("n").taint("key", "value", effect)], []).decide(p)
}

#[test]
fn taint_without_toleration_rejects() {
    for effect in [Effect::NoSchedule, Effect::NoExecute] {
        let v = decide(effect, pod("p"));
        assert_eq!(v.refusal("n"), REFUSAL);
        let taint = Reason::UntoleratedTaint { key: "key".into(), value: "value".into(), effect };
        assert_eq!(v.rejection("n").reasons[0], taint);
    }
    assert_eq!(decide(Effect::PreferNoSchedule, pod("p")).feasible(), ["n"]);
}

#[test]
fn tolerations_match_by_effect_key_and_operator() {
    let (no_schedule, no_execute) = (Some(Effect::NoSchedule), Some(Effect::NoExecute));
    for (rule, key, value, effect, tolerated) in [
        ("equal", "key", Some("value"), no_schedule, true),
        ("equal, all effects", "key", Some("value"), None, true),
        ("equal, another value", "key", Some("other"), None, false),
        ("exists", "key", None, None, true),
        ("exists, another key", "other", None, None, false),
        ("everything", "", None, None, true),
        ("everything with this effect", "", None, no_schedule, true),
        ("NoExecute doesn't cover NoSchedule", "key", None, no_execute, false),
    ] {
        let v = decide(Effect::NoSchedule, pod("p").tolerates(key, value, effect));
        assert_eq!(!v.feasible().is_empty(), tolerated, "{rule}");
    }
}

fn odd(op: TolerationOperator, value: &str) -> PodBuilder {
    let toleration = Toleration { key: "key".into(), op, value: value.into(), effect: None, seconds: None };
    pod("p").with(|p| p.spec.tolerations.push(toleration))
}

#[test]
fn exists_ignores_its_value() {
    assert_eq!(decide(Effect::NoSchedule, odd(TolerationOperator::Exists, "other")).feasible(), ["n"]);
}

#[test]
fn comparisons_are_gated_off() {
    for value in ["7", "07"] {
        let n = node("n").taint("key", value, Effect::NoSchedule);
        let v = scene([n], []).decide(odd(TolerationOperator::Gt, "5"));
        assert_eq!(v.refusal("n"), REFUSAL);
    }
}

#[test]
fn every_forbidding_taint_must_be_tolerated() {
    let n = || node("n").taint("a", "", Effect::NoSchedule).taint("b", "", Effect::NoExecute);
    let v = scene([n()], []).decide(pod("p").tolerates("a", None, None));
    assert_eq!(
        v.rejection("n").reasons[0],
        Reason::UntoleratedTaint { key: "b".into(), value: "".into(), effect: Effect::NoExecute }
    );
    let both = pod("p").tolerates("a", None, None).tolerates("b", None, None);
    assert_eq!(scene([n()], []).decide(both).feasible(), ["n"]);
}

#[test]
fn toleration_seconds_mean_nothing_to_the_filter() {
    let p = odd(TolerationOperator::Exists, "").with(|p| p.spec.tolerations[0].seconds = Some(0));
    assert_eq!(decide(Effect::NoExecute, p).feasible(), ["n"]);
}

#[test]
fn without_soft_taints_every_node_gets_the_full_300() {
    let v = scene([node("a"), node("b")], []).decide(pod("p"));
    assert_eq!((v.score(NAME, "a"), v.score(NAME, "b")), (300, 300));
}

#[test]
fn fewer_untolerated_soft_taints_are_better() {
    let nodes = (0..4)
        .map(|n| (0..n).fold(node(&format!("n{n}")), |b, i| b.taint(&format!("k{i}"), "", Effect::PreferNoSchedule)));
    let s = scene(nodes, []);
    let scores = |p: PodBuilder| ["n0", "n1", "n2", "n3"].map(|n| s.decide(p.clone()).score(NAME, n) / 3);
    assert_eq!(scores(pod("p")), [100, 67, 34, 0]);
    // Only tolerations of that effect, or of all, count here.
    let soft = Some(Effect::PreferNoSchedule);
    assert_eq!(scores(pod("p").tolerates("k0", None, soft).tolerates("k1", None, None)), [100, 100, 100, 0]);
    assert_eq!(scores(pod("p").tolerates("k0", None, Some(Effect::NoSchedule))), [100, 67, 34, 0]);
    assert_eq!(scores(pod("p").tolerates("", None, None)), [100, 100, 100, 100]);
}
