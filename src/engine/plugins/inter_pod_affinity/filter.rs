//! Required terms, in both directions.
//!
//! Of the incoming pod's anti-affinity terms, of which there may be thousands over a few topology keys, a node needs to know
//! only the first that finds a pod in one of its domains. What every term counts matters only where pods come and go in a
//! fork; then it is worked out once more and kept.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Domains, InterPodAffinity, NAME, affinity_key, pod_set, required};
use crate::cluster::counting::Counting;
use crate::cluster::counts::{CountKey, Counts};
use crate::cluster::terms::Role;
use crate::cluster::{Cancel, NodeRow, PodInfo, View};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, PreFilter};
use crate::engine::profile::Profile;
use crate::engine::status::{Reason, Rejection};
use crate::engine::topology::{Sums, Topology};
use crate::model::{Pod, PodAffinityTerm, Str};

impl FilterPlugin for InterPodAffinity {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let (view, pod, profile, cancel) = (cycle.view, cycle.pod.pod, cycle.profile, cycle.cancel);
        let mut existing = Vec::new();
        let matching = view.terms().matching(pod, view.objects(), |role| role == Role::RequiredAntiAffinity, cancel);
        for (term, tally) in cancel.guard(matching) {
            let domains = Domains::of_key(&mut existing, &term.topology_key, || cycle.topology(&term.topology_key));
            for (node, count) in cancel.guard(tally.iter()).filter_map(|(o, count)| Some((view.node(o)?, count))) {
                domains.add(&node, i64::from(count));
            }
        }
        let affinity = required(&pod.spec.affinity.pod);
        let anti = required(&pod.spec.affinity.pod_anti);
        if existing.iter().all(|d| d.sums.is_empty()) && affinity.is_empty() && anti.is_empty() {
            return PreFilter::Skip;
        }

        let friends = affinity_key(pod, profile);
        // Terms of one key say the same.
        let mut together: Vec<Domains> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for term in cancel.guard(affinity).filter(|term| seen.insert(&term.topology_key)) {
            together.push(Domains::new(cycle.topology(&term.topology_key)));
        }
        if let Some(key) = &friends {
            let counts = cycle.counts(key);
            for (node, count) in cancel.guard(counts.iter()).filter_map(|(o, count)| Some((view.node(o)?, count))) {
                cancel.guard(&mut together).for_each(|domains| domains.add(&node, i64::from(count)));
            }
        }
        let anti = Anti::new(anti, pod, profile, cancel, |key| cycle.topology(key));
        let mut refusals: Vec<Vec<Option<Refusal>>> = vec![Vec::new(); anti.topologies.len()];
        anti.count(
            (view, cancel),
            |key| cycle.counts(key),
            |term, topology, sums| {
                for (domain, pods) in sums.iter() {
                    let of_topology = &mut refusals[topology];
                    if of_topology.len() <= domain {
                        of_topology.resize(domain + 1, None);
                    }
                    // Sets are counted one by one, which isn't the order of the terms.
                    if of_topology[domain].is_none_or(|first: Refusal| term < first.term) {
                        of_topology[domain] = Some(Refusal { term, pods });
                    }
                }
            },
        );
        let own = friends.as_ref().is_some_and(|key| key.matches(pod, view.objects()));
        PreFilter::Filter(Box::new(Filter {
            view,
            pod,
            cancel,
            friends,
            affinity: together,
            own,
            anti,
            refusals,
            exact: None,
            existing,
        }))
    }
}

/// The required anti-affinity terms of the incoming pod, each once.
struct Anti {
    /// The pods that terms speak of.
    sets: Vec<CountKey>,
    topologies: Vec<Arc<Topology>>,
    /// In the pod's order: the numbers of set and topology.
    terms: Vec<(usize, usize)>,
    /// By set: the terms that speak of it, with the numbers of their topologies.
    of_set: Vec<Vec<(usize, usize)>>,
}

impl Anti {
    fn new(
        terms: &[PodAffinityTerm],
        pod: &Pod,
        profile: &Profile,
        cancel: Cancel<'_>,
        topology: impl Fn(&Str) -> Arc<Topology>,
    ) -> Self {
        let mut anti = Self { sets: Vec::new(), topologies: Vec::new(), terms: Vec::new(), of_set: Vec::new() };
        let (mut sets, mut keys) = (FxHashMap::<CountKey, usize>::default(), FxHashMap::<&Str, usize>::default());
        for term in cancel.guard(terms) {
            let foes = CountKey::new(pod_set(term, pod, profile), true);
            let set = *sets.entry(foes).or_insert_with_key(|foes| {
                anti.sets.push(foes.clone());
                anti.of_set.push(Vec::new());
                anti.sets.len() - 1
            });
            let key = *keys.entry(&term.topology_key).or_insert_with_key(|key| {
                anti.topologies.push(topology(key));
                anti.topologies.len() - 1
            });
            // Another one that says the same refuses nothing that the first doesn't.
            if anti.of_set[set].iter().all(|(_, other)| *other != key) {
                anti.of_set[set].push((anti.terms.len(), key));
                anti.terms.push((set, key));
            }
        }
        anti
    }

    /// Shows `each` the place, the number of the topology and the sums of every term, set by set.
    fn count<'c>(
        &self,
        (view, cancel): (&View, Cancel<'_>),
        counts_of: impl Fn(&CountKey) -> Counts<'c>,
        mut each: impl FnMut(usize, usize, &Sums),
    ) {
        let mut sums = Sums::default();
        for (foes, terms) in cancel.guard(self.sets.iter().zip(&self.of_set)) {
            let counts = counts_of(foes);
            for (term, topology) in terms {
                sums.clear();
                for (node, count) in cancel.guard(counts.iter()).filter_map(|(o, count)| Some((view.node(o)?, count))) {
                    if let Some(domain) = self.topologies[*topology].domain(&node) {
                        sums.add(domain, i64::from(count));
                    }
                }
                each(*term, *topology, &sums);
            }
        }
    }
}

/// The first term that finds pods in a domain, and how many.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    term: usize,
    pods: i64,
}

struct Filter<'a> {
    /// As it was before any pod came or went.
    view: &'a View,
    pod: &'a Pod,
    cancel: Cancel<'a>,
    /// The pods that match all required affinity terms; None when none can.
    friends: Option<CountKey>,
    /// How many of them are where, for each topology key.
    affinity: Vec<Domains>,
    /// Whether the incoming pod is one of them itself.
    own: bool,
    anti: Anti,
    /// By topology of the anti-affinity terms and domain.
    refusals: Vec<Vec<Option<Refusal>>>,
    /// By anti-affinity term and domain how many pods there are. Made when the first pod comes or goes, and looked at in
    /// place of the refusals from then on.
    exact: Option<Vec<Vec<i32>>>,
    /// Pods whose required anti-affinity speaks of the incoming pod, by topology key.
    existing: Vec<Domains>,
}

impl Filter<'_> {
    /// The first pod of a set that wants to be together has nobody to join: it may go wherever the labels are.
    fn is_first(&self) -> bool {
        self.own && self.affinity.iter().all(|d| d.sums.is_empty())
    }

    fn check_affinity(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let reject = |domains: &Domains| {
            let (topology_key, domain) = (domains.key().clone(), domains.topology.value(node).cloned());
            Err(Rejection::unresolvable(NAME, Reason::PodAffinity { topology_key, domain }))
        };
        if let Some(domains) = self.affinity.iter().find(|d| d.topology.domain(node).is_none()) {
            return reject(domains);
        }
        match self.affinity.iter().find(|d| d.sum(node) <= 0) {
            Some(domains) if !self.is_first() => reject(domains),
            _ => Ok(()),
        }
    }

    /// The first anti-affinity term that finds pods in a domain of the node, the number of its topology, and how many.
    fn first_foes(&self, node: &NodeRow<'_>) -> Option<(usize, i64)> {
        let Some(exact) = &self.exact else {
            let of_topology = |(i, refusals): (usize, &Vec<Option<Refusal>>)| {
                let refusal = (*refusals.get(self.anti.topologies[i].domain(node)?)?)?;
                Some((refusal.term, i, refusal.pods))
            };
            let refusals = self.refusals.iter().enumerate().filter(|(_, refusals)| !refusals.is_empty());
            let first = refusals.filter_map(of_topology).min_by_key(|(term, ..)| *term);
            return first.map(|(_, topology, pods)| (topology, pods));
        };
        let domains: Vec<Option<usize>> = self.anti.topologies.iter().map(|topology| topology.domain(node)).collect();
        self.cancel.guard(self.anti.terms.iter().zip(exact)).find_map(|((_, topology), counts)| {
            let pods = counts.get(domains[*topology]?).copied().filter(|pods| *pods > 0)?;
            Some((*topology, i64::from(pods)))
        })
    }

    fn update(&mut self, node: &NodeRow<'_>, other: &PodInfo, delta: i32) {
        let (objects, cancel) = (node.view().objects(), self.cancel);
        for term in cancel.guard(&other.terms).filter(|t| t.role == Role::RequiredAntiAffinity) {
            if term.pods.matches(self.pod, objects) {
                let topology = || Arc::new(Topology::new(self.view, term.topology_key.clone()));
                let domains = Domains::of_key(&mut self.existing, &term.topology_key, topology);
                domains.add(node, i64::from(delta));
            }
        }
        if self.friends.as_ref().is_some_and(|key| key.matches(&other.pod, objects)) {
            cancel.guard(&mut self.affinity).for_each(|domains| domains.add(node, i64::from(delta)));
        }
        self.make_exact();
        let Some(exact) = &mut self.exact else { return };
        for (foes, terms) in cancel.guard(self.anti.sets.iter().zip(&self.anti.of_set)) {
            if !foes.matches(&other.pod, objects) {
                continue;
            }
            for (term, topology) in terms {
                let Some(domain) = self.anti.topologies[*topology].domain(node) else { continue };
                let counts = &mut exact[*term];
                if counts.len() <= domain {
                    counts.resize(domain + 1, 0);
                }
                counts[domain] = counts[domain].wrapping_add(delta);
            }
        }
    }

    fn make_exact(&mut self) {
        let Self { anti, view, cancel, .. } = self;
        let (view, cancel) = (*view, *cancel);
        if anti.sets.is_empty() {
            return;
        }
        self.exact.get_or_insert_with(|| {
            let mut exact = vec![Vec::new(); anti.terms.len()];
            let counting = std::cell::RefCell::new(Counting::new(view, cancel));
            anti.count(
                (view, cancel),
                |key| counting.borrow_mut().counts(key),
                |term, _, sums| {
                    exact[term] = sums.to_i32();
                },
            );
            exact
        });
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        self.check_affinity(node)?;
        if let Some((topology, pods)) = self.first_foes(node) {
            let topology = &self.anti.topologies[topology];
            let (topology_key, domain) = (topology.key().clone(), topology.value(node).cloned().unwrap_or_default());
            return Err(Rejection::resolvable(NAME, Reason::PodAntiAffinity { topology_key, domain, pods }));
        }
        for domains in &self.existing {
            let pods = domains.sum(node);
            if pods > 0 {
                let topology_key = domains.key().clone();
                let domain = domains.topology.value(node).cloned().unwrap_or_default();
                let reason = Reason::ExistingPodsAntiAffinity { topology_key, domain, pods };
                return Err(Rejection::resolvable(NAME, reason));
            }
        }
        Ok(())
    }

    fn expect_changes(&mut self) {
        self.make_exact();
    }

    fn pod_added(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        self.update(node, pod, 1);
    }

    fn pod_removed(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        self.update(node, pod, -1);
    }
}
