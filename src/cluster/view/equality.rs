//! Whether two views tell the same, whatever the histories that led to them.
//!
//! Two views are the same if every reading method answers the same for the same names. Ordinals, revisions, the change log
//! and the numbers given to resources may differ, since no answer may depend on them. Which counts are kept may differ too;
//! what they count may not. Used by tests, and by `InspectService.Compare` against a view built anew from the objects.
//!
//! Costs a walk over everything: some hundred milliseconds at 150,000 pods. For forks, off the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::{NodeRow, Ordinal, View};
use crate::cluster::Cancel;
use crate::cluster::counts::CountKey;
use crate::cluster::label_sets::LabelSet;
use crate::cluster::pod_info::PodInfo;
use crate::model::{Kind, Labels, Object, ObjectRef, Str};

/// Differences that are spelt out; a broken index may make one of each pod.
const MAX_DIFFERENCES: usize = 1_000;

#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn check<T: PartialEq + Debug>(&mut self, what: impl FnOnce() -> String, one: T, other: T) {
        if one != other && self.0.len() < MAX_DIFFERENCES {
            self.0.push(format!("{}: {one:?} against {other:?}", what()));
        }
    }

    fn say(&mut self, what: String) {
        if self.0.len() < MAX_DIFFERENCES {
            self.0.push(what);
        }
    }
}

impl View {
    /// What this view tells differently from another, each with the node or key that it is about; empty if they are the
    /// same. In a fixed order, at most a thousand.
    pub fn differences(&self, other: &View) -> Vec<String> {
        let mut found = Found::default();
        let names = |view: &View| view.nodes().map(|row| row.name().clone()).collect::<BTreeSet<Str>>();
        let (mine, theirs) = (names(self), names(other));
        for name in mine.symmetric_difference(&theirs) {
            found.say(format!(
                "node {name}: is only in the {} view",
                if mine.contains(name) { "first" } else { "second" }
            ));
        }
        for name in mine.intersection(&theirs) {
            if let (Some(one), Some(other)) = (self.node_named(name), other.node_named(name)) {
                compare_nodes(&one, &other, &mut found);
            }
        }
        found.check(|| "pods in all".into(), self.pod_count(), other.pod_count());
        for view in [self, other] {
            view.check_pod_index(&mut found);
        }
        self.compare_images(other, &mut found);
        self.compare_counts(other, &mut found);
        self.compare_terms(other, &mut found);
        self.compare_groups(other, &mut found);
        self.compare_objects(other, &mut found);
        let nominated = |view: &View| -> BTreeMap<Str, PodInfo> {
            let pods = view.nominations.iter();
            pods.map(|info| (info.pod.meta.uid.clone(), PodInfo::clone(info))).collect()
        };
        compare_maps("nomination of", &nominated(self), &nominated(other), &mut found);
        let claims = |view: &View| view.volumes.claims_by_node_name(&|ordinal| view.name_of(ordinal));
        compare_maps("claim", &claims(self), &claims(other), &mut found);
        for what in self.volumes.differing_indexes(&other.volumes) {
            found.say(format!("index of {what} differs"));
        }
        found.0
    }

    /// Has another view keep the counts that this one keeps.
    pub(in crate::cluster) fn keep_same_counts(&self, other: &mut View) {
        other.keep_all_counts(self.counts.keys().cloned(), Cancel::never());
    }

    /// The name of the node at an ordinal.
    fn name_of(&self, ordinal: Ordinal) -> Str {
        self.node(ordinal).map_or_else(|| format!("none at {}", ordinal.index()).into(), |row| row.name().clone())
    }

    fn compare_objects(&self, other: &View, found: &mut Found) {
        if self.objects == other.objects {
            return;
        }
        let by_ref = |view: &View| -> BTreeMap<ObjectRef, Object> {
            let objects = Kind::ALL.iter().flat_map(|kind| view.objects.of_kind(*kind));
            objects.map(|object| (ObjectRef::of(object), object.clone())).collect()
        };
        let (mine, theirs) = (by_ref(self), by_ref(other));
        if mine == theirs {
            found.say("index of storage objects differs".into());
        }
        for object in mine.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
            found.check(|| object.to_string(), mine.get(object), theirs.get(object));
        }
    }

    fn by_name(&self, numbers: impl Iterator<Item = (Ordinal, u32)>) -> BTreeMap<Str, u32> {
        numbers.map(|(ordinal, number)| (self.name_of(ordinal), number)).collect()
    }

    /// Every pod is found by its uid where it is listed, and nothing else is.
    fn check_pod_index(&self, found: &mut Found) {
        let mut listed = 0;
        for row in self.nodes() {
            for pod in row.pods() {
                listed += 1;
                let indexed = self.pod_nodes.get(&pod.pod.meta.uid).copied();
                if indexed != Some(row.ordinal()) {
                    found.say(format!("node {}: pod {} isn't found by its uid", row.name(), pod.pod.meta.key()));
                }
            }
        }
        found.check(|| "pods listed and pods indexed".into(), listed, self.pod_nodes.len());
    }

    fn compare_images(&self, other: &View, found: &mut Found) {
        let names = |view: &View| -> BTreeMap<Str, Option<(i64, usize)>> {
            let images = view.nodes().flat_map(|row| row.node().images.iter().flat_map(|image| &image.names));
            images.map(|name| (name.clone(), view.images.get(name))).collect()
        };
        let (mine, theirs) = (names(self), names(other));
        compare_maps("image", &mine, &theirs, found);
        for (view, names) in [(self, mine.len()), (other, theirs.len())] {
            found.check(|| "images indexed and images reported".into(), view.images.len(), names);
        }
    }

    /// The groups of pods that selectors see, by namespace.
    fn compare_groups(&self, other: &View, found: &mut Found) {
        /// Labels, whether it terminates, pods by node.
        type Group = (Vec<(Str, Str)>, bool, BTreeMap<Str, u32>);
        let groups = |view: &View| -> BTreeMap<Str, Vec<Group>> {
            let of = |namespace: &Str| {
                let pairs = |labels: &Labels| labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                let groups = view.label_sets.of_namespace(namespace);
                let group = |g: &LabelSet| (pairs(g.labels()), g.is_terminating(), view.by_name(g.nodes().iter()));
                let mut groups: Vec<_> = groups.map(group).collect();
                groups.sort();
                groups
            };
            view.label_sets.namespaces().map(|namespace| (namespace.clone(), of(namespace))).collect()
        };
        compare_maps("pods of namespace", &groups(self), &groups(other), found);
    }

    /// Keys that either keeps; the other side counts by walking if it doesn't.
    fn compare_counts(&self, other: &View, found: &mut Found) {
        let keys: BTreeSet<&CountKey> = self.counts.keys().chain(other.counts.keys()).collect();
        for key in keys {
            let count = |view: &View| -> BTreeMap<Str, u32> {
                match view.kept_counts(key) {
                    Some(kept) => view.by_name(kept.iter()),
                    None => view.by_name(view.walk_counts(key).into_iter()),
                }
            };
            found.check(|| format!("counts of {key:?}"), count(self), count(other));
            for view in [self, other] {
                if let Some(kept) = view.kept_counts(key) {
                    let sum = kept.iter().map(|(_, count)| u64::from(count)).sum::<u64>();
                    found.check(|| format!("total of {key:?}"), kept.total(), sum);
                }
            }
        }
    }

    fn compare_terms(&self, other: &View, found: &mut Found) {
        let terms = |view: &View| -> BTreeMap<_, _> {
            view.terms.iter().map(|(term, tally)| (term.clone(), view.by_name(tally.iter()))).collect()
        };
        let (mine, theirs) = (terms(self), terms(other));
        for term in mine.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
            found.check(|| format!("term {term:?}"), mine.get(term), theirs.get(term));
        }
    }
}

fn compare_maps<V: PartialEq + Debug>(what: &str, one: &BTreeMap<Str, V>, other: &BTreeMap<Str, V>, found: &mut Found) {
    for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
        found.check(|| format!("{what} {key}"), one.get(key), other.get(key));
    }
}

fn compare_nodes(one: &NodeRow<'_>, other: &NodeRow<'_>, found: &mut Found) {
    let name = one.name();
    let mut check = |what: &str, a: &dyn Debug, b: &dyn Debug, same: bool| {
        if !same {
            found.say(format!("node {name}: {what}: {a:?} against {b:?}"));
        }
    };
    check("object", one.node(), other.node(), one.node() == other.node());
    check("allowed pods", &one.allowed_pods(), &other.allowed_pods(), one.allowed_pods() == other.allowed_pods());
    let (offered, taken) = (|row: &NodeRow<'_>| sorted(row.offered()), |row: &NodeRow<'_>| sorted(row.taken()));
    for (what, a, b) in [("allocatable", offered(one), offered(other)), ("requested", taken(one), taken(other))] {
        for resource in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
            let amount = |amounts: &BTreeMap<Str, i128>| amounts.get(resource).copied().unwrap_or_default();
            if amount(&a) != amount(&b) {
                check(&format!("{what} {resource}"), &amount(&a), &amount(&b), false);
            }
        }
    }
    let non_zero = (one.non_zero_sums(), other.non_zero_sums());
    check("non-zero requests", &non_zero.0, &non_zero.1, non_zero.0 == non_zero.1);
    let pods = |row: &NodeRow<'_>| row.pods().iter().map(|p| p.pod.meta.key()).collect::<Vec<_>>();
    let same_pods =
        one.pods().len() == other.pods().len() && one.pods().iter().zip(other.pods()).all(|(a, b)| PodInfo::eq(a, b));
    if pods(one) == pods(other) {
        for (a, b) in one.pods().iter().zip(other.pods()) {
            check("pod", a, b, a == b);
        }
    } else {
        check("pods", &pods(one), &pods(other), same_pods);
    }
    check("ports", &one.ports(), &other.ports(), one.ports() == other.ports());
    check("volumes", &one.volumes(), &other.volumes(), one.volumes() == other.volumes());
}

fn sorted<'a>(amounts: impl Iterator<Item = (&'a Str, i128)>) -> BTreeMap<Str, i128> {
    amounts.map(|(name, amount)| (name.clone(), amount)).collect()
}
