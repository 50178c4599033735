//! What must hold of every decision, on random clusters with random histories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::plugin::PreFilter;
use super::plugins::InterPodAffinity;
use super::random_cluster::{Dice, History, incoming};
use super::*;
use crate::cluster::counting::Counting;
use crate::cluster::counts::{CountKey, NodeCounts};
use crate::cluster::{NodeRow, VolumeBinding};
use crate::model::{Pod, Str};

fn full(view: &View, pod: &Pod, profile: &Profile) -> Decision {
    let options = Options { detail: Detail::Full, ..Options::default() };
    decide(view, &IncomingPod::new(pod), profile, &options, &AtomicBool::new(false)).unwrap()
}

/// A decision by node name, so that decisions on views with other ordinals compare.
#[derive(Debug, PartialEq, Eq)]
struct ByName {
    choice: Option<Str>,
    feasible: Vec<Str>,
    rejected: Vec<(Str, Rejection)>,
    pre_filter: Option<Rejection>,
    absent: Option<Rejection>,
    scores: Vec<(&'static str, Vec<(Str, i64)>)>,
    bindings: Vec<VolumeBinding>,
}

fn by_name(view: &View, decision: &Decision) -> ByName {
    let name = |o: Ordinal| view.node(o).unwrap().name().clone();
    let sorted = |mut list: Vec<(Str, i64)>| {
        list.sort();
        list
    };
    let mut feasible: Vec<Str> = decision.feasible.iter().map(|o| name(*o)).collect();
    let mut rejected: Vec<(Str, Rejection)> = decision.rejected.iter().map(|(o, r)| (name(*o), r.clone())).collect();
    let scores = decision.scores.clone().unwrap_or_default();
    let columns = scores.plugins.into_iter().chain(["total"]).zip(scores.by_plugin.into_iter().chain([scores.totals]));
    let scores = columns.map(|(plugin, column)| (plugin, sorted(feasible.iter().cloned().zip(column).collect())));
    let scores = scores.collect();
    feasible.sort();
    rejected.sort_by(|a, b| a.0.cmp(&b.0));
    ByName {
        choice: decision.node().cloned(),
        feasible,
        rejected,
        pre_filter: decision.pre_filter.clone(),
        absent: decision.absent.clone(),
        scores,
        bindings: decision.bindings.clone(),
    }
}

fn profiles() -> [Profile; 2] {
    let arguments = InterPodAffinity { hard_pod_affinity_weight: 25, ..InterPodAffinity::default() };
    let mut plugins = registry::default_plugins();
    for (plugin, _) in plugins.iter_mut().filter(|(p, _)| p.name() == "InterPodAffinity") {
        *plugin = Arc::new(InterPodAffinity { ..arguments });
    }
    let other = Profile::new("other".into(), 7, plugins).with_fix(Fix::NamespaceSelectorThatExcludesOwnNamespace);
    [Profile::default(), other]
}

/// Histories of 1,000 events, looked at every 125: enough to see each kind of event before and after each other one.
const EVENTS: usize = 1_000;
const LOOK_EVERY: usize = 125;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn indexes_kept_over_a_history_decide_as_ones_built_from_the_objects(
        events in proptest::collection::vec(any::<u64>(), EVENTS),
    ) {
        let profiles = profiles();
        let mut history = History::new();
        for (i, event) in events.iter().enumerate() {
            history.apply(*event, &profiles[i % 2]);
            if (i + 1) % LOOK_EVERY != 0 {
                continue;
            }
            let rebuilt = history.rebuilt().fork();
            let mut dice = Dice::new(*event);
            for profile in &profiles {
                for _ in 0..5 {
                    let pod = incoming(&mut dice);
                    {
                        let mut writer = history.cluster.writer();
                        let keys = profile.count_keys(writer.view(), &pod);
                        writer.watch(keys);
                    }
                    let view = history.cluster.fork();
                    prop_assert_eq!(view.terms().len(), rebuilt.terms().len());
                    let kept = by_name(&view, &full(&view, &pod, profile));
                    let plain = by_name(&rebuilt, &full(&rebuilt, &pod, profile));
                    prop_assert_eq!(kept, plain);
                }
            }
        }
    }

    #[test]
    fn a_chosen_node_passes_every_filter_and_no_node_is_forgotten(
        events in proptest::collection::vec(any::<u64>(), 150),
        pods in proptest::collection::vec(any::<u64>(), 8),
    ) {
        let mut history = History::new();
        events.iter().for_each(|event| history.apply(*event, &Profile::default()));
        let view = history.cluster.fork();
        for (profile, seed) in profiles().iter().cycle().zip(pods) {
            let pod = incoming(&mut Dice::new(seed));
            let decision = full(&view, &pod, profile);
            let (options, cancel) = (Options::default(), AtomicBool::new(false));
            let brief = decide(&view, &IncomingPod::new(&pod), profile, &options, &cancel).unwrap();
            let told = |d: &Decision| (d.node().cloned(), d.feasible.clone(), d.bindings.clone());
            prop_assert_eq!(told(&brief), told(&decision), "asking for less changes the decision");
            let feasible: BTreeSet<Ordinal> = decision.feasible.iter().copied().collect();
            let rejected: BTreeSet<Ordinal> = decision.rejected.iter().map(|(o, _)| *o).collect();
            prop_assert!(feasible.is_disjoint(&rejected));
            prop_assert_eq!(feasible.len() + rejected.len(), decision.evaluated);
            if decision.absent.is_none() && decision.pre_filter.is_none() {
                prop_assert_eq!(decision.evaluated, view.node_count());
            }
            if let Outcome::Placed { ordinal, .. } = &decision.outcome {
                prop_assert!(feasible.contains(ordinal));
                prop_assert!(decision.best().contains(ordinal));
                let row = view.node(*ordinal).unwrap();
                prop_assert_eq!(refusals(&view, &pod, profile, &row), Vec::<&str>::new());
            } else {
                prop_assert!(feasible.is_empty());
            }
        }
    }
}

/// What a key counts by node name.
fn counted(view: &View, counts: impl Iterator<Item = (Ordinal, u32)>) -> BTreeMap<Str, u32> {
    counts.map(|(ordinal, count)| (view.node(ordinal).unwrap().name().clone(), count)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counting_by_groups_and_taking_counts_over_from_a_fork_is_as_walking_all_pods(
        events in proptest::collection::vec(any::<u64>(), 400),
    ) {
        let profile = Profile::default();
        let mut history = History::new();
        let mut earlier: Option<(View, Vec<(CountKey, NodeCounts)>)> = None;
        for (i, event) in events.iter().enumerate() {
            history.apply(*event, &profile);
            if i % 10 != 0 {
                continue;
            }
            let view = history.cluster.fork();
            let mut dice = Dice::new(*event);
            let keys: Vec<CountKey> = (0..6).flat_map(|_| profile.count_keys(&view, &incoming(&mut dice))).collect();
            let mut counting = Counting::new(&view, Cancel::never());
            for key in &keys {
                let counts = counting.count(key);
                let walked = counted(&view, view.walk_counts(key).into_iter());
                prop_assert_eq!(counted(&view, counts.iter()), walked.clone(), "{:?}", key);
                prop_assert_eq!(counts.total(), walked.values().map(|count| u64::from(*count)).sum::<u64>());
            }
            // What was made some events ago on a fork is taken over by one of now, if little enough changed.
            if let Some((fork, made)) = earlier.take()
                && let Some(changed) = view.recountable_since(&fork, 1_000)
            {
                let mut later = view.clone();
                for (key, counts) in made {
                    later.drop_counts(&key);
                    later.adopt_counts(key.clone(), counts, &changed);
                    let kept = counted(&later, later.kept_counts(&key).unwrap().iter());
                    prop_assert_eq!(kept, counted(&later, later.walk_counts(&key).into_iter()), "{:?}", key);
                }
            }
            let made = view.count_all(keys, Cancel::never().flag()).unwrap();
            earlier = Some((view, made));
        }
    }
}

/// The filters that refuse a node, each asked on its own.
fn refusals(view: &View, pod: &Pod, profile: &Profile, node: &NodeRow<'_>) -> Vec<&'static str> {
    let incoming = IncomingPod::new(pod);
    let cycle = Cycle::new(view, &incoming, profile, Cancel::never());
    let filters = profile.filters().filter_map(|p| Some((p.name(), p.filter()?)));
    let refusing = filters.filter(|(_, filter)| match filter.prepare(&cycle) {
        PreFilter::Skip => false,
        PreFilter::Reject(_) | PreFilter::Error(_) => true,
        PreFilter::Filter(filter) => filter.check(node).is_err(),
        PreFilter::Narrow(names, filter) => !names.contains(node.name()) || filter.check(node).is_err(),
    });
    refusing.map(|(name, _)| name).collect()
}
