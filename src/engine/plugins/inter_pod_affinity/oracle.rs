//! The plugin once more, spelled out from the specification over all pods and terms, for comparison.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{InterPodAffinity, NAME};
use crate::cluster::{NodeRow, View};
use crate::engine::random_cluster::{Dice, History, incoming};
use crate::engine::testing::Scene;
use crate::engine::{Fix, Profile};
use crate::model::{Labels, Pod, PodAffinity, PodAffinityTerm, Str};

/// Sums by topology key and value.
type Map = BTreeMap<(Str, Str), i64>;

fn add(map: &mut Map, node: &NodeRow<'_>, key: &Str, amount: i64) {
    if let Some(value) = node.labels().get(key) {
        *map.entry((key.clone(), value.clone())).or_default() += amount;
    }
}

struct Oracle<'a> {
    view: &'a View,
    pod: &'a Pod,
    intended: bool,
}

impl Oracle<'_> {
    fn labels_of(&self, namespace: &Str) -> Labels {
        self.view.objects().namespace_labels(namespace).cloned().unwrap_or_default()
    }

    /// Whether a term of `owner` matches `other`.
    fn matches(&self, term: &PodAffinityTerm, owner: &Pod, other: &Pod) -> bool {
        let theirs = &other.meta.namespace;
        let named = if term.namespaces.is_empty() && term.namespace_selector.is_none() {
            owner.meta.namespace == *theirs
        } else {
            term.namespaces.contains(theirs)
        };
        let selected = term.namespace_selector.as_ref().is_some_and(|selector| {
            let regression = std::ptr::eq(owner, self.pod) && !self.intended;
            selector.matches(&self.labels_of(theirs)) || (regression && selector.matches(&Labels::default()))
        });
        (named || selected) && term.selector.matches(&other.meta.labels)
    }

    fn every_pod(&self) -> impl Iterator<Item = (NodeRow<'_>, &Pod)> {
        self.view.nodes().flat_map(|row| row.pods().iter().map(move |p| (row, &*p.pod)))
    }

    /// The first failing check of each node: 1 affinity, 2 own anti-affinity, 3 anti-affinity of existing pods.
    fn failures(&self) -> BTreeMap<Str, u8> {
        let none = PodAffinity::default();
        let affinity = &self.pod.spec.affinity.pod.as_ref().unwrap_or(&none).required;
        let anti = &self.pod.spec.affinity.pod_anti.as_ref().unwrap_or(&none).required;
        let (mut aff_counts, mut anti_counts, mut existing) = (Map::new(), Map::new(), Map::new());
        let all = |other: &Pod| !affinity.is_empty() && affinity.iter().all(|t| self.matches(t, self.pod, other));
        for (node, other) in self.every_pod() {
            for term in &other.spec.affinity.pod_anti.as_ref().unwrap_or(&none).required {
                if self.matches(term, other, self.pod) {
                    add(&mut existing, &node, &term.topology_key, 1);
                }
            }
            if all(other) {
                affinity.iter().for_each(|t| add(&mut aff_counts, &node, &t.topology_key, 1));
            }
            for term in anti.iter().filter(|t| self.matches(t, self.pod, other)) {
                add(&mut anti_counts, &node, &term.topology_key, 1);
            }
        }
        let first = aff_counts.is_empty() && all(self.pod);
        let mut failures = BTreeMap::new();
        for node in self.view.nodes() {
            let at = |map: &Map, key: &Str| {
                node.labels().get(key).and_then(|v| map.get(&(key.clone(), v.clone()))).copied().unwrap_or(0)
            };
            let missing = affinity.iter().any(|t| !node.labels().contains_key(&t.topology_key));
            let lonely = affinity.iter().any(|t| at(&aff_counts, &t.topology_key) == 0);
            let failure = if missing || (lonely && !first) {
                1
            } else if anti.iter().any(|t| at(&anti_counts, &t.topology_key) > 0) {
                2
            } else if node.labels().iter().any(|(key, _)| at(&existing, key) > 0) {
                3
            } else {
                continue;
            };
            failures.insert(node.name().clone(), failure);
        }
        failures
    }

    /// What each node is worth before normalisation.
    fn raw(&self, hard_weight: i64) -> BTreeMap<Str, i64> {
        let none = PodAffinity::default();
        let mut map = Map::new();
        let sides = |p: &Pod| {
            let affinity = p.spec.affinity.pod.clone().unwrap_or_default();
            (affinity, p.spec.affinity.pod_anti.clone().unwrap_or_default())
        };
        let mut vote = |node: &NodeRow<'_>, owner: &Pod, other: &Pod| {
            let (affinity, anti) = sides(owner);
            for (preferred, sign) in [(affinity.preferred, 1), (anti.preferred, -1)] {
                for t in preferred.iter().filter(|t| self.matches(&t.term, owner, other)) {
                    add(&mut map, node, &t.term.topology_key, sign * i64::from(t.weight));
                }
            }
        };
        for (node, other) in self.every_pod() {
            vote(&node, self.pod, other);
            vote(&node, other, self.pod);
        }
        for (node, other) in self.every_pod() {
            for term in &other.spec.affinity.pod.as_ref().unwrap_or(&none).required {
                if self.matches(term, other, self.pod) {
                    add(&mut map, &node, &term.topology_key, hard_weight);
                }
            }
        }
        let worth = |node: NodeRow<'_>| {
            let sums = node.labels().iter().filter_map(|(k, v)| map.get(&(k.clone(), v.clone())));
            (node.name().clone(), sums.sum())
        };
        self.view.nodes().map(worth).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn filter_and_score_are_the_specifications(
        events in proptest::collection::vec(any::<u64>(), 150),
        pods in proptest::collection::vec(any::<u64>(), 10),
    ) {
        let mut history = History::new();
        events.iter().for_each(|event| history.apply(*event, &Profile::default()));
        let view = history.cluster.fork();
        for (i, seed) in pods.into_iter().enumerate() {
            let pod = incoming(&mut Dice::new(seed));
            let (intended, hard_pod_affinity_weight) = (i % 2 == 1, 5);
            let plugin = InterPodAffinity { hard_pod_affinity_weight, ..InterPodAffinity::default() };
            let mut profile = Profile::new("only".into(), 0, vec![(std::sync::Arc::new(plugin), 1)]);
            if intended {
                profile = profile.with_fix(Fix::NamespaceSelectorThatExcludesOwnNamespace);
            }
            let verdict = Scene::of(view.clone()).profile(profile).decide_on_pod(&pod);
            let oracle = Oracle { view: &view, pod: &pod, intended };

            let failures = oracle.failures();
            let texts = ["", "pod affinity rules", "match pod anti-affinity rules", "existing pods anti-affinity rules"];
            for row in view.nodes() {
                match failures.get(row.name()) {
                    None => prop_assert!(verdict.feasible().contains(&&**row.name())),
                    Some(failure) => prop_assert!(verdict.refusal(row.name()).contains(texts[usize::from(*failure)])),
                }
            }

            let raw = oracle.raw(hard_pod_affinity_weight);
            let feasible = verdict.feasible();
            let scored: Vec<i64> = feasible.iter().map(|n| raw[&Str::from(*n)]).collect();
            let (min, max) = (scored.iter().min().copied().unwrap_or(0), scored.iter().max().copied().unwrap_or(0));
            for (name, raw) in feasible.iter().zip(&scored) {
                #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
                let expected =
                    if max > min { (100.0 * ((raw - min) as f64 / (max - min) as f64)) as i64 } else { 0 };
                prop_assert_eq!(verdict.score(NAME, name), expected);
            }
        }
    }
}
