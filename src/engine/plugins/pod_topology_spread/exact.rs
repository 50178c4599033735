//! What each hard constraint counts in each domain, worked out over all nodes, and kept while pods come and go in a fork.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::facts::{Facts, policy};
use super::filter::own;
use super::{Constraint, count_key, includes};
use crate::cluster::counting::Counting;
use crate::cluster::counts::{CountKey, Counts};
use crate::cluster::{Cancel, NodeRow, PodInfo, View};
use crate::engine::plugins::node_affinity::Required;
use crate::engine::topology::Topology;
use crate::model::{Pod, Str};

/// The domains that count for a constraint: those of nodes that have all keys and that the inclusion policies let in.
#[derive(Debug, Clone, Default)]
pub(super) struct Registered {
    is: Vec<bool>,
    domains: usize,
}

impl Registered {
    pub(super) fn insert(&mut self, domain: usize) {
        if self.is.len() <= domain {
            self.is.resize(domain + 1, false);
        }
        if !self.is[domain] {
            self.is[domain] = true;
            self.domains += 1;
        }
    }

    pub(super) fn contains(&self, domain: usize) -> bool {
        self.is.get(domain).copied().unwrap_or(false)
    }

    pub(super) fn len(&self) -> usize {
        self.domains
    }

    /// The smallest count of a domain, be it one without pods; 0 while there are fewer domains than `minDomains`.
    fn minimum(&self, counts: &[i32], min_domains: i32) -> i64 {
        if i64::try_from(self.domains).unwrap_or(i64::MAX) < i64::from(min_domains) {
            return 0;
        }
        let counts = counts.iter().zip(&self.is).filter(|(_, is)| **is).map(|(count, _)| *count);
        i64::from(counts.min().unwrap_or(0))
    }
}

/// What one constraint counts.
pub(super) struct DomainCounts {
    pub(super) registered: Arc<Registered>,
    /// By domain, also for those that don't count. Below 0 where a pod leaves that wasn't counted, as upstream.
    pub(super) counts: Vec<i32>,
    pub(super) minimum: i64,
}

/// Shows `each` the place, the number of the key and the counts of every constraint, in order.
pub(super) fn domains_of<'c>(
    facts: &mut Facts<'_>,
    constraints: &[Constraint],
    counts_of: impl Fn(&CountKey) -> Counts<'c>,
    mut each: impl FnMut(usize, usize, &mut DomainCounts),
) {
    let (view, pod, cancel) = facts.inputs();
    let mut registered = FxHashMap::<(usize, usize), Arc<Registered>>::default();
    let mut domains = DomainCounts { registered: Arc::default(), counts: Vec::new(), minimum: 0 };
    for (i, constraint) in cancel.guard(constraints.iter().enumerate()) {
        let key = facts.key_of(i);
        domains.registered = match registered.get(&(key, policy(constraint))) {
            Some(known) => known.clone(),
            None => {
                let mut found = Registered::default();
                for node in cancel.guard(view.nodes()) {
                    let ordinal = node.ordinal();
                    if facts.has_all_keys(ordinal) && facts.includes(constraint, ordinal) {
                        // Also with no pod at all: an empty domain is a domain.
                        found.insert(facts.domain(key, ordinal) as usize);
                    }
                }
                registered.entry((key, policy(constraint))).or_insert(Arc::new(found)).clone()
            }
        };
        domains.counts.clear();
        domains.counts.resize(facts.topology(key).len(), 0);
        if let Some(count_key) = count_key(pod, &constraint.selector) {
            for (ordinal, count) in counts_of(&count_key).iter() {
                if facts.has_all_keys(ordinal)
                    && facts.includes(constraint, ordinal)
                    && let Some(cell) = domains.counts.get_mut(facts.domain(key, ordinal) as usize)
                {
                    *cell = cell.wrapping_add_unsigned(count);
                }
            }
        }
        domains.minimum = domains.registered.minimum(&domains.counts, constraint.min_domains);
        each(i, key, &mut domains);
    }
}

/// By constraint.
pub(super) struct Exact {
    topologies: Vec<Arc<Topology>>,
    key_of: Vec<usize>,
    /// 1 where the pod itself matches.
    own: Vec<i64>,
    domains: Vec<DomainCounts>,
}

type Inputs<'a> = (&'a View, &'a Pod, Cancel<'a>);

impl Exact {
    pub(super) fn new<'a>(
        inputs: Inputs<'a>,
        constraints: &[Constraint],
        topology: impl Fn(&Str) -> Arc<Topology>,
    ) -> Self {
        let (view, pod, cancel) = inputs;
        let mut facts = Facts::new(inputs, constraints, topology, |_| false);
        let counting = std::cell::RefCell::new(Counting::new(view, cancel));
        let mut exact = Self { topologies: Vec::new(), key_of: Vec::new(), own: Vec::new(), domains: Vec::new() };
        domains_of(
            &mut facts,
            constraints,
            |key| counting.borrow_mut().counts(key),
            |i, key, domains| {
                let DomainCounts { registered, counts, minimum } = domains;
                exact.key_of.push(key);
                exact.own.push(own(&constraints[i], pod));
                exact.domains.push(DomainCounts {
                    registered: registered.clone(),
                    counts: counts.clone(),
                    minimum: *minimum,
                });
            },
        );
        exact.topologies = (0..facts.keys()).map(|key| facts.topology(key).clone()).collect();
        exact
    }

    /// A pod came to, or left, a node of the fork. Neither deletion nor the special case of `{}` is looked at here, as
    /// upstream.
    pub(super) fn update(
        &mut self,
        constraints: &[Constraint],
        (pod, required, cancel): (&Pod, &Required<'_>, Cancel<'_>),
        node: &NodeRow<'_>,
        other: &PodInfo,
        delta: i32,
    ) {
        let domains: Vec<Option<usize>> = self.topologies.iter().map(|topology| topology.domain(node)).collect();
        if domains.iter().any(Option::is_none) {
            return;
        }
        let mut included: [Option<bool>; 4] = [None; 4];
        let kept = constraints.iter().zip(&self.key_of).zip(&mut self.domains);
        for ((constraint, key), kept) in cancel.guard(kept) {
            let included = included[policy(constraint)]
                .get_or_insert_with(|| includes(constraint, node.node(), required, pod, cancel));
            if !*included || !constraint.selector.matches(&other.pod.meta.labels) {
                continue;
            }
            let Some(domain) = domains[*key] else { continue };
            let Some(count) = kept.counts.get_mut(domain) else { continue };
            let before = i64::from(*count);
            *count = count.wrapping_add(delta);
            // Only a domain that was the smallest and grows leaves open which one is now.
            if delta < 0 || before <= kept.minimum {
                kept.minimum = kept.registered.minimum(&kept.counts, constraint.min_domains);
            }
        }
    }

    /// The first constraint that refuses a node, and by which skew; None: for want of its label.
    pub(super) fn first_refusal(
        &self,
        constraints: &[Constraint],
        cancel: Cancel<'_>,
        node: &NodeRow<'_>,
    ) -> Option<(usize, Option<i64>)> {
        let domains: Vec<Option<usize>> = self.topologies.iter().map(|topology| topology.domain(node)).collect();
        let kept = constraints.iter().zip(&self.key_of).zip(self.own.iter().zip(&self.domains)).enumerate();
        cancel.guard(kept).find_map(|(i, ((constraint, key), (own, kept)))| {
            let Some(domain) = domains[*key] else { return Some((i, None)) };
            let count = kept.counts.get(domain).copied().unwrap_or(0);
            let skew = i64::from(count) + own - kept.minimum;
            (skew > i64::from(constraint.max_skew)).then_some((i, Some(skew)))
        })
    }
}
