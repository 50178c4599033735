//! Which pods a count or an affinity term speaks of: a label selector over the pods of some namespaces.
//!
//! [`PodSet`] is the definition; [`PodSetIndex`] finds, for one pod, the few sets among thousands that it can belong to, by
//! looking up the pod's namespace and label pairs. Whoever wants exact membership asks the set itself.

use std::hash::Hash;
use std::sync::Arc;

use imbl::HashMap;

use super::view::ObjectTable;
use crate::model::selector::Operator;
use crate::model::{LabelSelector, Labels, Pod, PodAffinityTerm, Str};

/// Namespaces by name and by label. Kept normalised, so that equal scopes are equal values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Namespaces {
    /// Every namespace, also those whose object isn't known.
    All,
    /// Those named, and those whose labels match.
    Some {
        /// Sorted, without repeats.
        names: Vec<Str>,
        /// `Nothing`: none by label. A namespace whose object isn't known counts as having no labels.
        selector: LabelSelector,
    },
}

impl Namespaces {
    pub fn one(name: Str) -> Self {
        Self::Some { names: vec![name], selector: LabelSelector::Nothing }
    }

    /// What an affinity term of a pod in namespace `own` means (spec 4.9.1): with neither names nor a selector its own
    /// namespace, else the union of both, to which the own one doesn't belong by itself.
    pub fn of_term(term: &PodAffinityTerm, own: &Str) -> Self {
        if term.applies_to_own_namespace() {
            return Self::one(own.clone());
        }
        match &term.namespace_selector {
            Some(selector) if selector.is_everything() => Self::All,
            selector => {
                let mut names = term.namespaces.clone();
                names.sort();
                names.dedup();
                Self::Some { names, selector: selector.clone().unwrap_or_default() }
            }
        }
    }

    pub fn contains(&self, namespace: &Str, objects: &ObjectTable) -> bool {
        match self {
            Self::All => true,
            Self::Some { names, .. } if names.contains(namespace) => true,
            Self::Some { selector: LabelSelector::Nothing, .. } => false,
            Self::Some { selector, .. } => match objects.namespace_labels(namespace) {
                Some(labels) => selector.matches(labels),
                None => selector.matches(&Labels::default()),
            },
        }
    }

    /// Whether the namespace belongs to it when it has these labels.
    fn contains_labelled(&self, namespace: &Str, labels: &Labels) -> bool {
        match self {
            Self::All => true,
            Self::Some { names, selector } => names.contains(namespace) || selector.matches(labels),
        }
    }

    /// The names, where labels play no part.
    pub fn by_name_only(&self) -> Option<&[Str]> {
        match self {
            Self::Some { names, selector: LabelSelector::Nothing } => Some(names),
            _ => None,
        }
    }
}

/// The pods of some namespaces that a label selector selects.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodSet {
    pub namespaces: Namespaces,
    pub selector: LabelSelector,
}

impl PodSet {
    pub fn matches(&self, pod: &Pod, objects: &ObjectTable) -> bool {
        self.selector.matches(&pod.meta.labels) && self.namespaces.contains(&pod.meta.namespace, objects)
    }

    /// Whether another set of labels on this namespace lets its pods in or out.
    pub fn depends_on(&self, namespace: &Str, before: &Labels, after: &Labels) -> bool {
        let namespaces = &self.namespaces;
        namespaces.contains_labelled(namespace, before) != namespaces.contains_labelled(namespace, after)
    }

    /// The label pairs of which every pod of the set has one: the In requirement with the fewest values.
    fn deciding_pairs(&self) -> Option<Vec<(Str, Str)>> {
        let LabelSelector::Requirements(list) = &self.selector else { return None };
        let fewest = list.iter().filter_map(|r| match &r.op {
            Operator::In(values) => Some((&r.key, values)),
            _ => None,
        });
        let (key, values) = fewest.min_by_key(|(_, values)| values.len())?;
        Some(values.iter().map(|v| (key.clone(), v.clone())).collect())
    }

    /// Of several sets that a pod must all be in, the one that says most about where to look for it.
    pub(super) fn narrowest(sets: &[PodSet]) -> Option<&PodSet> {
        sets.iter().min_by_key(|s| (s.deciding_pairs().is_none(), s.namespaces.by_name_only().is_none()))
    }
}

/// What a pod must have to be in a set: this namespace, this label pair; None where the set doesn't say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Slot {
    namespace: Option<Str>,
    pair: Option<(Str, Str)>,
}

/// Entries under the sets of pods that they speak of. Persistent: a fork shares what neither side changes.
///
/// A pod with L labels costs 2 (L + 1) look-ups, however many entries there are.
#[derive(Debug, Clone)]
pub(super) struct PodSetIndex<K> {
    /// Entries of a slot are sorted. Most slots hold one.
    slots: HashMap<Slot, Arc<Vec<K>>>,
}

impl<K> Default for PodSetIndex<K> {
    fn default() -> Self {
        Self { slots: HashMap::default() }
    }
}

impl<K: Ord + Clone> PodSetIndex<K> {
    pub(super) fn insert(&mut self, set: &PodSet, entry: &K) {
        for slot in slots(set) {
            let entries = Arc::make_mut(self.slots.entry(slot).or_default());
            if let Err(place) = entries.binary_search(entry) {
                entries.insert(place, entry.clone());
            }
        }
    }

    pub(super) fn remove(&mut self, set: &PodSet, entry: &K) {
        for slot in slots(set) {
            let Some(entries) = self.slots.get_mut(&slot) else { continue };
            if let Ok(place) = entries.binary_search(entry) {
                Arc::make_mut(entries).remove(place);
            }
            if entries.is_empty() {
                self.slots.remove(&slot);
            }
        }
    }

    /// Entries whose set the pod may be in, each once; the others it can't be in.
    pub(super) fn candidates(&self, pod: &Pod) -> Vec<K> {
        let mut found = Vec::new();
        self.each_slot(pod, |entries| found.extend(entries.iter().cloned()));
        found
    }

    /// How many of them there are.
    pub(super) fn count_candidates(&self, pod: &Pod) -> usize {
        let mut found = 0;
        self.each_slot(pod, |entries| found += entries.len());
        found
    }

    fn each_slot(&self, pod: &Pod, mut each: impl FnMut(&[K])) {
        if self.slots.is_empty() {
            return;
        }
        let pairs = pod.meta.labels.iter().map(|(key, value)| Some((key.clone(), value.clone())));
        for pair in pairs.chain([None]) {
            // A set is filed under one key only, of which a pod has one value: no entry can come up twice.
            let mut slot = Slot { namespace: Some(pod.meta.namespace.clone()), pair };
            self.slots.get(&slot).into_iter().for_each(|entries| each(entries));
            slot.namespace = None;
            self.slots.get(&slot).into_iter().for_each(|entries| each(entries));
        }
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Where a set is filed: under each of its namespaces if they are known by name, and under each of its deciding pairs.
fn slots(set: &PodSet) -> impl Iterator<Item = Slot> {
    let pairs = match set.deciding_pairs() {
        Some(pairs) => pairs.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let namespaces = match set.namespaces.by_name_only() {
        Some(names) => names.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    namespaces.into_iter().flat_map(move |namespace| {
        pairs.clone().into_iter().map(move |pair| Slot { namespace: namespace.clone(), pair })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::selector::Requirement;
    use crate::model::testing::{pod, selector};
    use crate::model::{Namespace, Object, ObjectMeta};

    fn objects(namespaces: &[(&str, &[(&str, &str)])]) -> ObjectTable {
        let mut view = crate::cluster::View::default();
        for (name, labels) in namespaces {
            let labels = labels.iter().copied().collect();
            let meta = ObjectMeta { name: (*name).into(), labels, ..Default::default() };
            view.set_object(Object::from(Namespace { meta }));
        }
        view.objects().clone()
    }

    fn term(namespaces: &[&str], namespace_selector: Option<LabelSelector>) -> PodAffinityTerm {
        let namespaces = namespaces.iter().map(|n| Str::from(*n)).collect();
        PodAffinityTerm { namespaces, namespace_selector, ..Default::default() }
    }

    fn contains(term: &PodAffinityTerm, namespace: &str) -> bool {
        let objects = objects(&[("own", &[("team", "a")]), ("other", &[("team", "b")])]);
        Namespaces::of_term(term, &"own".into()).contains(&namespace.into(), &objects)
    }

    #[test]
    fn a_term_without_namespaces_means_its_own() {
        let own = term(&[], None);
        assert!(contains(&own, "own") && !contains(&own, "other"));
    }

    #[test]
    fn named_and_selected_namespaces_are_united_and_do_not_imply_the_own_one() {
        let named = term(&["x"], None);
        assert!(contains(&named, "x") && !contains(&named, "own"));
        let selected = term(&[], Some(selector(&[("team", "b")])));
        assert!(contains(&selected, "other") && !contains(&selected, "own") && !contains(&selected, "unknown"));
        let both = term(&["x"], Some(selector(&[("team", "b")])));
        assert!(contains(&both, "x") && contains(&both, "other") && !contains(&both, "own"));
    }

    #[test]
    fn an_empty_namespace_selector_means_all_namespaces() {
        let all = term(&[], Some(LabelSelector::everything()));
        assert_eq!(Namespaces::of_term(&all, &"own".into()), Namespaces::All);
        assert!(contains(&all, "own") && contains(&all, "unknown"));
    }

    #[test]
    fn an_unknown_namespace_has_no_labels() {
        let absent = LabelSelector::new([Requirement { key: "team".into(), op: Operator::DoesNotExist }]);
        assert!(contains(&term(&[], Some(absent.clone())), "unknown") && !contains(&term(&[], Some(absent)), "own"));
    }

    #[test]
    fn candidates_are_all_sets_that_hold_the_pod_and_few_others() {
        let any = |pairs: &[(&str, &str)]| PodSet { namespaces: Namespaces::All, selector: selector(pairs) };
        let within = |name: &str, pairs: &[(&str, &str)]| PodSet {
            namespaces: Namespaces::one(name.into()),
            selector: selector(pairs),
        };
        let two_values =
            LabelSelector::new([Requirement { key: "app".into(), op: Operator::In(vec!["web".into(), "db".into()]) }]);
        let sets = [
            any(&[("app", "web")]),
            any(&[("app", "db")]),
            any(&[]),
            within("default", &[("app", "web")]),
            within("default", &[]),
            within("other", &[("app", "web")]),
            PodSet { namespaces: Namespaces::All, selector: two_values },
        ];
        let mut index = PodSetIndex::default();
        for (i, set) in sets.iter().enumerate() {
            index.insert(set, &i);
        }
        let mut found = index.candidates(&pod("a").label("app", "web").label("tier", "x").build());
        found.sort_unstable();
        assert_eq!(found, [0, 2, 3, 4, 6]);
        for (i, set) in sets.iter().enumerate() {
            index.remove(set, &i);
        }
        assert!(index.is_empty());
    }
}
