//! Decisions and preemption end soon after their flag is set, whenever that is: counted in looks at the flag, of which there
//! is one for each node, term, constraint, taint, claim or pod that is visited.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::cluster::PodInfo;
use crate::cluster::cancel::looks;
use crate::engine::random_cluster::{Dice, History, incoming};
use crate::model::testing::{PodBuilder, node, pod, selector};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{PodAffinity, PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm};

const ZONE: &str = "topology.kubernetes.io/zone";
/// Looks that it takes to come out of everything: some for each plugin, none for each node or term.
const TO_COME_OUT: u64 = 100;

fn view(nodes: usize, pods_a_node: usize) -> View {
    let mut view = View::default();
    for i in 0..nodes {
        let name = format!("n{i}");
        let n =
            node(&name).cpu("1").zone(&format!("z{}", i % 3)).taint("a", "b", crate::model::Effect::PreferNoSchedule);
        view.upsert_node(Arc::new(n.build()));
        for j in 0..pods_a_node {
            let app = format!("app-{}", (i + j) % 7);
            let p = pod(&format!("p{i}-{j}")).label("app", &app).cpu("200m").host_port("", "TCP", 80);
            let p = p.pod_anti_affinity("rack", selector(&[("app", "new")]));
            view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.on(&name).build()))));
        }
    }
    view
}

/// A pod with so many of everything.
fn heavy(count: usize) -> PodBuilder {
    let of = |i: usize| selector(&[("app", &format!("app-{i}"))]);
    let mut p = pod("new").label("app", "new").cpu("900m").priority(10);
    let mut anti = PodAffinity::default();
    for i in 0..count {
        for when in [WhenUnsatisfiable::ScheduleAnyway, WhenUnsatisfiable::DoNotSchedule] {
            p = p.spread(TopologySpreadConstraint::new(1_000, ZONE.into(), when, of(i)));
        }
        let term = PodAffinityTerm { selector: of(i + 100), topology_key: ZONE.into(), ..Default::default() };
        anti.required.push(term.clone());
        anti.preferred.push(WeightedPodAffinityTerm { weight: 1, term: PodAffinityTerm { selector: of(i), ..term } });
        p = p.host_port("", "TCP", u16::try_from(1_000 + i).unwrap());
    }
    p.affinity(|a| a.pod_anti = Some(anti))
}

/// Sets the flag after each of some numbers of looks.
fn ends_soon<T: std::fmt::Debug>(run: impl Fn() -> Result<T, EngineError>) -> u64 {
    let (result, all) = looks::set_after(u64::MAX, &run);
    result.unwrap();
    for part in 0..40 {
        let after = all * part / 40;
        let (result, looks) = looks::set_after(after, &run);
        assert!(matches!(result, Err(EngineError::Cancelled(_))), "set after {after} of {all} looks: {result:?}");
        assert!(looks <= after + TO_COME_OUT, "set after {after} looks, and {} more", looks - after);
    }
    all
}

#[test]
fn a_decision_ends_soon_whenever_its_flag_is_set() {
    let (view, never) = (view(40, 2), AtomicBool::new(false));
    for detail in [Detail::Choice, Detail::Full] {
        let decide_on = |p: &PodBuilder| {
            let p = p.clone().build();
            let options = Options { detail, ..Options::default() };
            ends_soon(|| decide(&view, &IncomingPod::new(&p), &Profile::default(), &options, &never))
        };
        // It looks at the flag for each constraint and term.
        let (light, heavy) = (decide_on(&heavy(1)), decide_on(&heavy(40)));
        assert!(heavy > 5 * light, "{light} looks and {heavy}");
    }
}

#[test]
fn preemption_ends_soon_whenever_its_flag_is_set() {
    let (view, never, profile) = (view(12, 4), AtomicBool::new(false), Profile::default());
    let pod = heavy(8).build();
    let pod = IncomingPod::new(&pod);
    let decision = decide(&view, &pod, &profile, &Options::default(), &never).unwrap();
    assert_eq!(decision.outcome, Outcome::Unschedulable);
    ends_soon(|| preempt(&view, &pod, &profile, &decision, &never));
    assert!(matches!(preempt(&view, &pod, &profile, &decision, &never), Ok(Preemption::Proposal(_))));
}

#[test]
fn decisions_on_random_clusters_end_soon_whenever_their_flag_is_set() {
    let never = AtomicBool::new(false);
    for seed in 0..30 {
        let mut history = History::new();
        let mut dice = Dice::new(seed);
        (0..150).for_each(|_| history.apply(u64::try_from(dice.below(usize::MAX)).unwrap(), &Profile::default()));
        let view = history.cluster.fork();
        let pod = incoming(&mut dice);
        let options = Options { detail: Detail::Full, ..Options::default() };
        if view.node_count() > 0 {
            ends_soon(|| decide(&view, &IncomingPod::new(&pod), &Profile::default(), &options, &never));
        }
    }
}
