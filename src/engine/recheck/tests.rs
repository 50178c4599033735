use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::Recheck;
use crate::cluster::{PodInfo, View};
use crate::engine::random_cluster::{Dice, History, incoming};
use crate::engine::testing_views::view_of;
use crate::engine::{IncomingPod, Options, Profile, decide};
use crate::model::Pod;
use crate::model::testing::{PodBuilder, node, pod, selector};

const HOST: &str = "kubernetes.io/hostname";

/// What a decision on that node alone says.
fn plain(view: &View, pod: &Pod, name: &str) -> bool {
    let candidates: Vec<_> = view.ordinal(name).into_iter().collect();
    let options = Options { candidates: Some(&candidates), ..Options::default() };
    let decision = decide(view, &IncomingPod::new(pod), &Profile::default(), &options, &AtomicBool::new(false));
    decision.unwrap().node().is_some()
}

fn recheck(earlier: &View, later: &View, pod: &Pod, name: &str, budget: usize) -> Option<bool> {
    let (incoming, profile, cancel) = (IncomingPod::new(pod), Profile::default(), AtomicBool::new(false));
    Recheck::prepare(earlier, &incoming, &profile, &cancel).unwrap().passes(later, name, budget)
}

fn with(mut view: View, pods: impl IntoIterator<Item = PodBuilder>) -> View {
    for p in pods {
        view.advance();
        assert!(view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.build())))));
    }
    view
}

fn two_nodes() -> View {
    let nodes = ["n1", "n2"].map(|n| node(n).cpu("4").label(HOST, n).label("zone", "a"));
    view_of(nodes.into(), Vec::new(), Vec::new())
}

#[test]
fn room_that_was_taken_meanwhile_is_seen() {
    let view = two_nodes();
    let full = with(view.clone(), [pod("other").cpu("3").on("n1")]);
    let p = pod("p").cpu("2").build();
    assert_eq!(recheck(&view, &full, &p, "n1", 10), Some(false));
    assert_eq!(recheck(&view, &full, &p, "n2", 10), Some(true));
}

#[test]
fn a_pod_elsewhere_in_the_domain_is_seen() {
    let view = two_nodes();
    let foe = with(view.clone(), [pod("foe").label("app", "web").on("n2")]);
    let p = pod("p").pod_anti_affinity("zone", selector(&[("app", "web")])).build();
    assert_eq!(recheck(&view, &foe, &p, "n1", 10), Some(false));
    assert_eq!(recheck(&view, &with(view.clone(), [pod("o").on("n2")]), &p, "n1", 10), Some(true));
}

#[test]
fn the_first_pod_that_keeps_the_incoming_one_away_takes_a_new_decision() {
    let view = two_nodes();
    let shy = pod("shy").pod_anti_affinity("zone", selector(&[("app", "web")])).on("n2");
    let p = pod("p").label("app", "web").build();
    assert_eq!(recheck(&view, &with(view.clone(), [shy]), &p, "n1", 10), None);
}

#[test]
fn more_changes_than_the_budget_take_a_new_decision() {
    let view = two_nodes();
    let later = with(view.clone(), ["a", "b", "c"].map(|name| pod(name).on("n2")));
    let p = pod("p").build();
    assert_eq!(recheck(&view, &later, &p, "n1", 3), Some(true));
    assert_eq!(recheck(&view, &later, &p, "n1", 2), None);
}

#[test]
fn a_node_that_changed_or_went_takes_a_new_decision() {
    let view = two_nodes();
    let mut later = view.clone();
    later.advance();
    later.upsert_node(Arc::new(node("n2").cpu("4").label(HOST, "n2").build()));
    let p = pod("p").build();
    assert_eq!(recheck(&view, &later, &p, "n1", 10), None);
    let mut later = view.clone();
    later.advance();
    later.remove_node("n1");
    assert_eq!(recheck(&view, &later, &p, "n1", 10), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_answered_is_what_a_decision_says(
        before in proptest::collection::vec(any::<u64>(), 200),
        meanwhile in proptest::collection::vec(any::<u64>(), 12),
        pods in proptest::collection::vec(any::<u64>(), 6),
    ) {
        let profile = Profile::default();
        let mut history = History::new();
        before.iter().for_each(|event| history.apply(*event, &profile));
        let earlier = history.cluster.fork();
        for event in meanwhile {
            history.apply(event, &profile);
            let later = history.cluster.fork();
            for seed in &pods {
                let pod = incoming(&mut Dice::new(*seed));
                for row in later.nodes() {
                    if let Some(passes) = recheck(&earlier, &later, &pod, row.name(), 100) {
                        prop_assert_eq!(passes, plain(&later, &pod, row.name()), "{} on {}", pod.meta.name, row.name());
                    }
                }
            }
        }
    }
}
