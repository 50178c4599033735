//! InterPodAffinity (spec 4.9 and 5.5): pods that must, must not, would like or would not like to share a domain of a
//! topology key with certain other pods.
//!
//! `filter.rs` holds the required terms, `score.rs` the preferred ones; here is what both share. What the incoming pod says
//! of others is read from counts of matching pods by node, what others say of it from the index of their terms; so a
//! decision visits nodes and distinct terms, not pods.

mod filter;
mod score;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::counts::CountKey;
use crate::cluster::pod_set::{Namespaces, PodSet};
use crate::cluster::{NodeRow, View};
use crate::engine::cost::{Share, Sizes, selector, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::fixes::Fix;
use crate::engine::plugin::{FilterPlugin, Plugin, ScorePlugin};
use crate::engine::profile::Profile;
use crate::engine::topology::{Sums, Topology};
use crate::model::{LabelSelector, Labels, Pod, PodAffinity, PodAffinityTerm, Str, WeightedPodAffinityTerm};

const NAME: &str = "InterPodAffinity";

/// The plugin's arguments (`InterPodAffinityArgs`).
#[derive(Debug)]
pub struct InterPodAffinity {
    /// What a required affinity term of a bound pod that matches the incoming one is worth, 0 to 100.
    pub hard_pod_affinity_weight: i64,
    /// Don't score pods that have no preferences of their own. Upstream then leaves out the required terms of bound pods
    /// as well.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Default for InterPodAffinity {
    fn default() -> Self {
        Self { hard_pod_affinity_weight: 1, ignore_preferred_terms_of_existing_pods: false }
    }
}

/// Upstream leaves namespaces out, whose labels its terms select by.
const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeLabel])
    .with(
        EventResource::AssignedPod,
        &[ActionType::Add, ActionType::Delete, ActionType::UpdatePodLabel, ActionType::Update],
    )
    .with(EventResource::UnschedulablePod, &[ActionType::UpdatePodLabel])
    .with(EventResource::Namespace, ActionType::ANY_CHANGE);

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let Sizes { view, pod, profile, nodes } = *sizes;
        let count = |key: CountKey| sizes.count(&key).saturating_add(nodes / 4);
        let own = |terms: &mut dyn Iterator<Item = CountKey>| terms.map(count).fold(0, u64::saturating_add);
        let anti = required(&pod.spec.affinity.pod_anti).iter().filter_map(|t| count_key(t, pod, profile));
        let hard = own(&mut affinity_key(pod, profile).into_iter().chain(anti));
        let soft = own(&mut preferences(pod).filter_map(|(t, _)| count_key(t, pod, profile)));
        // Bound pods' terms that may speak of it, each with some nodes that have such pods.
        let found = units(view.terms().candidates(pod));
        let theirs = found.saturating_mul(4 + nodes / 64).saturating_add(2 * units(pod.meta.labels.len()));
        let keys = |terms: &mut dyn Iterator<Item = &Str>| units(terms.collect::<BTreeSet<_>>().len());
        let terms = required(&pod.spec.affinity.pod).iter().chain(required(&pod.spec.affinity.pod_anti));
        let change = terms.clone().map(|t| 1 + selector(&t.selector)).fold(2, u64::saturating_add);
        let hard_keys = keys(&mut terms.map(|t| &t.topology_key));
        let soft_keys = keys(&mut preferences(pod).map(|(t, _)| &t.topology_key));
        Share {
            prepare: hard.saturating_add(theirs),
            filter: 1 + hard_keys,
            prepare_score: soft.saturating_add(theirs),
            score: 1 + soft_keys,
            change,
        }
    }

    fn count_keys(&self, _view: &View, pod: &Pod, profile: &Profile) -> Vec<CountKey> {
        let anti = required(&pod.spec.affinity.pod_anti).iter().filter_map(|t| count_key(t, pod, profile));
        let preferred = preferences(pod).filter_map(|(t, _)| count_key(t, pod, profile));
        affinity_key(pod, profile).into_iter().chain(anti).chain(preferred).collect()
    }
}

/// The required terms of a side, if the pod has that side.
fn required(side: &Option<PodAffinity>) -> &[PodAffinityTerm] {
    side.as_ref().map_or(&[], |side| &side.required)
}

fn preferred(side: &Option<PodAffinity>) -> &[WeightedPodAffinityTerm] {
    side.as_ref().map_or(&[], |side| &side.preferred)
}

/// The pod's preferred terms with their weights, negative for anti-affinity.
fn preferences(pod: &Pod) -> impl Iterator<Item = (&PodAffinityTerm, i64)> {
    let affinity = preferred(&pod.spec.affinity.pod).iter().map(|t| (&t.term, i64::from(t.weight)));
    affinity.chain(preferred(&pod.spec.affinity.pod_anti).iter().map(|t| (&t.term, -i64::from(t.weight))))
}

/// The pods that a term of the incoming pod speaks of.
fn pod_set(term: &PodAffinityTerm, pod: &Pod, profile: &Profile) -> PodSet {
    let namespaces = match Namespaces::of_term(term, &pod.meta.namespace) {
        // 1.36.2 resolves the selector to names, but keeps it as well and evaluates it against no labels at all.
        Namespaces::Some { selector, .. }
            if selector.matches(&Labels::default())
                && !profile.has_fix(Fix::NamespaceSelectorThatExcludesOwnNamespace) =>
        {
            Namespaces::All
        }
        namespaces => namespaces,
    };
    PodSet { namespaces, selector: term.selector.clone() }
}

/// How the pods of a term are counted; None for a term that matches no pod. Terminating pods count.
fn count_key(term: &PodAffinityTerm, pod: &Pod, profile: &Profile) -> Option<CountKey> {
    (term.selector != LabelSelector::Nothing).then(|| CountKey::new(pod_set(term, pod, profile), true))
}

/// How the pods that match all required affinity terms are counted; None when no pod can, or there are no such terms.
fn affinity_key(pod: &Pod, profile: &Profile) -> Option<CountKey> {
    let terms = required(&pod.spec.affinity.pod);
    if terms.iter().any(|t| t.selector == LabelSelector::Nothing) {
        return None;
    }
    CountKey::all_of(terms.iter().map(|t| pod_set(t, pod, profile)).collect(), true)
}

/// Sums over the domains of one topology key.
struct Domains {
    topology: Arc<Topology>,
    sums: Sums,
}

impl Domains {
    fn new(topology: Arc<Topology>) -> Self {
        Self { topology, sums: Sums::default() }
    }

    fn key(&self) -> &Str {
        self.topology.key()
    }

    /// The entry of a key in a list that is sorted by key.
    fn of_key<'d>(list: &'d mut Vec<Domains>, key: &Str, topology: impl FnOnce() -> Arc<Topology>) -> &'d mut Domains {
        let place = match list.binary_search_by(|d| d.key().cmp(key)) {
            Ok(place) => place,
            Err(place) => {
                list.insert(place, Domains::new(topology()));
                place
            }
        };
        &mut list[place]
    }

    /// Adds to the sum of the node's domain. A node without the label is in no domain.
    fn add(&mut self, node: &NodeRow<'_>, amount: i64) {
        if let Some(domain) = self.topology.domain(node) {
            self.sums.add(domain, amount);
        }
    }

    /// The sum of the node's domain.
    fn sum(&self, node: &NodeRow<'_>) -> i64 {
        self.topology.domain(node).map_or(0, |domain| self.sums.get(domain))
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
