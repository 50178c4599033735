//! The affinity terms of pods that take room, grouped: the index behind what such pods have to say about a new one.
//!
//! Thousands of replicas carry the same few terms. Each distinct term is kept once, with how many pods on each node carry
//! it, and filed under the pods that it can speak of; a decision visits the terms that match the incoming pod, never the
//! pods. A term lives as long as some pod carries it.

use std::sync::Arc;

use imbl::HashMap;

use super::Cancel;
use super::node_tally::NodeTally;
use super::pod_set::{Namespaces, PodSet, PodSetIndex};
use super::view::{ObjectTable, Ordinal};
use crate::model::{LabelSelector, Pod, PodAffinity, PodAffinityTerm, Str};

/// What a term asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    RequiredAffinity,
    RequiredAntiAffinity,
    /// With its weight; negative for anti-affinity.
    Preferred(i32),
}

/// A term as its pod means it: the namespaces are worked out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    pub role: Role,
    pub pods: PodSet,
    pub topology_key: Str,
}

impl Term {
    /// All terms of a pod that can match anything. A null selector can't.
    pub(super) fn of_pod(pod: &Pod) -> Vec<Arc<Term>> {
        let sides = [(&pod.spec.affinity.pod, 1), (&pod.spec.affinity.pod_anti, -1)];
        let mut terms = Vec::new();
        for (PodAffinity { required, preferred }, sign) in
            sides.into_iter().filter_map(|(s, sign)| Some((s.as_ref()?, sign)))
        {
            let role = if sign > 0 { Role::RequiredAffinity } else { Role::RequiredAntiAffinity };
            terms.extend(required.iter().filter_map(|t| Self::new(role, t, pod)));
            let preferred = preferred.iter();
            terms.extend(preferred.filter_map(|t| Self::new(Role::Preferred(sign * t.weight), &t.term, pod)));
        }
        terms
    }

    fn new(role: Role, term: &PodAffinityTerm, owner: &Pod) -> Option<Arc<Self>> {
        if term.selector == LabelSelector::Nothing {
            return None;
        }
        let namespaces = Namespaces::of_term(term, &owner.meta.namespace);
        let pods = PodSet { namespaces, selector: term.selector.clone() };
        Some(Arc::new(Self { role, pods, topology_key: term.topology_key.clone() }))
    }
}

#[derive(Debug, Clone, Default)]
pub struct TermIndex {
    terms: HashMap<Arc<Term>, NodeTally>,
    by_pod: PodSetIndex<Arc<Term>>,
}

impl TermIndex {
    /// Distinct terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// All terms with the pods that carry them by node, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<Term>, &NodeTally)> {
        self.terms.iter()
    }

    /// How many terms may speak of a pod; the others don't. Costs two look-ups a label.
    pub fn candidates(&self, pod: &Pod) -> usize {
        self.by_pod.count_candidates(pod)
    }

    /// The terms of certain roles that match a pod, in no particular order, each with the pods that carry it by node; a pod
    /// that carries a term twice counts twice.
    pub fn matching(
        &self,
        pod: &Pod,
        objects: &ObjectTable,
        wanted: impl Fn(Role) -> bool,
        cancel: Cancel<'_>,
    ) -> Vec<(Arc<Term>, &NodeTally)> {
        let mut terms = self.by_pod.candidates(pod);
        terms.retain(|term| !cancel.is_set() && wanted(term.role) && term.pods.matches(pod, objects));
        terms.into_iter().filter_map(|term| Some((term.clone(), self.terms.get(&term)?))).collect()
    }

    /// A pod with these terms came to a node (`delta` 1) or left it (-1).
    pub(super) fn update(&mut self, terms: &[Arc<Term>], ordinal: Ordinal, delta: i32) {
        for term in terms {
            match self.terms.get_mut(term) {
                Some(tally) => {
                    tally.add(ordinal, delta);
                    if tally.is_empty() {
                        self.terms.remove(term);
                        self.by_pod.remove(&term.pods, term);
                    }
                }
                None => {
                    let mut tally = NodeTally::default();
                    tally.add(ordinal, delta);
                    self.by_pod.insert(&term.pods, term);
                    self.terms.insert(term.clone(), tally);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{PodInfo, View};
    use crate::model::testing::{PodBuilder, node, pod, selector};

    fn put(view: &mut View, p: PodBuilder) {
        assert!(view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.build())))));
    }

    fn web(name: &str) -> PodBuilder {
        pod(name).label("app", "web").pod_anti_affinity("kubernetes.io/hostname", selector(&[("app", "web")]))
    }

    fn tallies(view: &View, p: PodBuilder) -> Vec<(Role, Vec<u32>)> {
        let terms = view.terms().matching(&p.build(), view.objects(), |_| true, Cancel::never());
        terms.iter().map(|(term, tally)| (term.role, tally.iter().map(|(_, n)| n).collect())).collect()
    }

    #[test]
    fn equal_terms_of_many_pods_are_one_entry() {
        let mut view = View::default();
        for name in ["n1", "n2"] {
            view.upsert_node(Arc::new(node(name).build()));
        }
        for (name, on) in [("a", "n1"), ("b", "n1"), ("c", "n2")] {
            put(&mut view, web(name).on(on));
        }
        assert_eq!(view.terms().len(), 1);
        assert_eq!(tallies(&view, pod("x").label("app", "web")), [(Role::RequiredAntiAffinity, vec![2, 1])]);
        assert!(tallies(&view, pod("x").label("app", "db")).is_empty());
        assert!(tallies(&view, pod("x").label("app", "web").namespace("other")).is_empty());
    }

    #[test]
    fn a_term_goes_with_the_last_pod_that_carries_it() {
        let mut view = View::default();
        view.upsert_node(Arc::new(node("n1").build()));
        put(&mut view, web("a").on("n1"));
        put(&mut view, web("b").on("n1"));
        view.remove_pod("uid-default-a");
        assert_eq!(view.terms().len(), 1);
        // The pod is replaced by one without the term, then its node goes.
        put(&mut view, web("c").on("n1"));
        put(&mut view, pod("b").on("n1"));
        assert_eq!(view.terms().len(), 1);
        view.remove_node("n1");
        assert!(view.terms().is_empty());
    }

    #[test]
    fn anti_affinity_weights_are_negative_and_null_selectors_carry_no_term() {
        let p = pod("a")
            .preferred_pod_affinity(7, "zone", selector(&[("app", "web")]))
            .preferred_pod_anti_affinity(9, "zone", selector(&[("app", "web")]))
            .pod_affinity("zone", LabelSelector::Nothing)
            .build();
        let roles: Vec<Role> = Term::of_pod(&p).iter().map(|t| t.role).collect();
        assert_eq!(roles, [Role::Preferred(7), Role::Preferred(-9)]);
    }
}
