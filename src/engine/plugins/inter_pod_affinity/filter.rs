//! Required terms, in both directions.

use super::{Domains, InterPodAffinity, NAME, affinity_key, pod_set, required};
use crate::cluster::counts::CountKey;
use crate::cluster::terms::Role;
use crate::cluster::{Cancel, NodeRow, PodInfo};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::Pod;

impl FilterPlugin for InterPodAffinity {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let (view, pod, profile) = (cycle.view, cycle.pod.pod, cycle.profile);
        let mut existing = Vec::new();
        let cancel = cycle.cancel;
        let matching = view.terms().matching(pod, view.objects(), |role| role == Role::RequiredAntiAffinity);
        for (term, tally) in cancel.guard(matching) {
            let domains = Domains::of_key(&mut existing, &term.topology_key);
            for (node, count) in tally.iter().filter_map(|(ordinal, count)| Some((view.node(ordinal)?, count))) {
                domains.add(&node, i64::from(count));
            }
        }
        let affinity = required(&pod.spec.affinity.pod);
        let anti = required(&pod.spec.affinity.pod_anti);
        if existing.iter().all(|d| d.sums.is_empty()) && affinity.is_empty() && anti.is_empty() {
            return PreFilter::Skip;
        }

        let friends = affinity_key(pod, profile);
        let mut affinity: Vec<Domains> = affinity.iter().map(|t| Domains::new(t.topology_key.clone())).collect();
        if let Some(key) = &friends {
            for (node, count) in cancel.guard(view.counter(key.clone()).nodes()) {
                cancel.guard(&mut affinity).for_each(|domains| domains.add(&node, i64::from(count)));
            }
        }
        let anti = cancel.guard(anti).map(|term| {
            let foes = CountKey::new(pod_set(term, pod, profile), true);
            let mut domains = Domains::new(term.topology_key.clone());
            let counter = view.counter(foes.clone());
            cancel.guard(counter.nodes()).for_each(|(node, count)| domains.add(&node, i64::from(count)));
            (foes, domains)
        });
        let anti = anti.collect();
        let own = friends.as_ref().is_some_and(|key| key.matches(pod, view.objects()));
        PreFilter::Filter(Box::new(Filter { pod, friends, affinity, own, anti, existing, cancel }))
    }
}

struct Filter<'a> {
    pod: &'a Pod,
    /// The pods that match all required affinity terms; None when none can.
    friends: Option<CountKey>,
    /// How many of them are where, for the topology key of each term.
    affinity: Vec<Domains>,
    /// Whether the incoming pod is one of them itself.
    own: bool,
    /// For each required anti-affinity term the pods that it speaks of, and how many are where.
    anti: Vec<(CountKey, Domains)>,
    /// Pods whose required anti-affinity speaks of the incoming pod, by topology key.
    existing: Vec<Domains>,
    cancel: Cancel<'a>,
}

impl Filter<'_> {
    /// The first pod of a set that wants to be together has nobody to join: it may go wherever the labels are.
    fn is_first(&self) -> bool {
        self.own && self.affinity.iter().all(|d| d.sums.is_empty())
    }

    fn check_affinity(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let reject = |domains: &Domains| {
            let reason =
                Reason::PodAffinity { topology_key: domains.key.clone(), domain: domains.domain(node).cloned() };
            Err(Rejection::unresolvable(NAME, reason))
        };
        if let Some(domains) = self.affinity.iter().find(|d| d.domain(node).is_none()) {
            return reject(domains);
        }
        match self.affinity.iter().find(|d| d.sum(node) <= 0) {
            Some(domains) if !self.is_first() => reject(domains),
            _ => Ok(()),
        }
    }

    fn update(&mut self, node: &NodeRow<'_>, other: &PodInfo, delta: i64) {
        let objects = node.view().objects();
        for term in self.cancel.guard(&other.terms).filter(|t| t.role == Role::RequiredAntiAffinity) {
            if term.pods.matches(self.pod, objects) {
                Domains::of_key(&mut self.existing, &term.topology_key).add(node, delta);
            }
        }
        if self.friends.as_ref().is_some_and(|key| key.matches(&other.pod, objects)) {
            self.cancel.guard(&mut self.affinity).for_each(|domains| domains.add(node, delta));
        }
        for (foes, domains) in self.cancel.guard(&mut self.anti) {
            if foes.matches(&other.pod, objects) {
                domains.add(node, delta);
            }
        }
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        self.check_affinity(node)?;
        for (_, domains) in &self.anti {
            if let Some((value, pods)) = domains.occupied(node) {
                let (topology_key, domain) = (domains.key.clone(), value.clone());
                return Err(Rejection::resolvable(NAME, Reason::PodAntiAffinity { topology_key, domain, pods }));
            }
        }
        for domains in &self.existing {
            if let Some((value, pods)) = domains.occupied(node) {
                let (topology_key, domain) = (domains.key.clone(), value.clone());
                let reason = Reason::ExistingPodsAntiAffinity { topology_key, domain, pods };
                return Err(Rejection::resolvable(NAME, reason));
            }
        }
        Ok(())
    }

    fn pod_added(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        self.update(node, pod, 1);
    }

    fn pod_removed(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        self.update(node, pod, -1);
    }
}
