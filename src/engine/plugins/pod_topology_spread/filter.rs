//! Hard constraints.
//!
//! A node is judged by its domains alone. So each constraint is worked out domain by domain, and of thousands of constraints
//! over a few topology keys only this remains: for each domain the first that refuses it. What every constraint counts
//! matters only where pods come and go in a fork; then it is worked out once more and kept (`exact.rs`).

use std::sync::Arc;

use super::exact::{Exact, domains_of};
use super::facts::Facts;
use super::{Constraint, NAME, PodTopologySpread};
use crate::cluster::{Cancel, NodeRow, PodInfo, View};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, PreFilter};
use crate::engine::plugins::node_affinity::Required;
use crate::engine::status::{Reason, Rejection};
use crate::engine::topology::Topology;
use crate::model::Pod;
use crate::model::topology_spread::WhenUnsatisfiable;

impl FilterPlugin for PodTopologySpread {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let (view, pod, cancel) = (cycle.view, cycle.pod.pod, cycle.cancel);
        let constraints = self.constraints(view, pod, WhenUnsatisfiable::DoNotSchedule, cancel).list;
        if constraints.is_empty() {
            return PreFilter::Skip;
        }
        let mut facts = Facts::new((view, pod, cancel), &constraints, |key| cycle.topology(key), |_| false);
        let mut keys: Vec<Key> = (0..facts.keys())
            .map(|key| Key {
                topology: facts.topology(key).clone(),
                first: usize::MAX,
                refusals: Vec::new(),
                of_others: None,
            })
            .collect();
        domains_of(
            &mut facts,
            &constraints,
            |key| cycle.counts(key),
            |i, key, domains| {
                let own = own(&constraints[i], pod);
                let key = &mut keys[key];
                key.first = key.first.min(i);
                key.refusals.resize(key.refusals.len().max(domains.counts.len()), None);
                let counts = domains.counts.iter().copied().chain(std::iter::once(0));
                for (refusal, count) in key.refusals.iter_mut().chain(std::iter::once(&mut key.of_others)).zip(counts) {
                    let skew = i64::from(count) + own - domains.minimum;
                    if refusal.is_none() && skew > i64::from(constraints[i].max_skew) {
                        *refusal = Some(Refusal { constraint: i, skew });
                    }
                }
            },
        );
        PreFilter::Filter(Box::new(Filter { view, pod, cancel, constraints, keys, exact: None, required: None }))
    }
}

/// 1 if the pod itself matches.
pub(super) fn own(constraint: &Constraint, pod: &Pod) -> i64 {
    i64::from(constraint.selector.matches(&pod.meta.labels))
}

/// The first constraint that refuses a domain.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    constraint: usize,
    skew: i64,
}

struct Key {
    topology: Arc<Topology>,
    /// The first constraint with this key.
    first: usize,
    /// By domain.
    refusals: Vec<Option<Refusal>>,
    /// Of domains that no node with all keys is in.
    of_others: Option<Refusal>,
}

struct Filter<'a> {
    /// As it was before any pod came or went.
    view: &'a View,
    pod: &'a Pod,
    cancel: Cancel<'a>,
    constraints: Vec<Constraint>,
    keys: Vec<Key>,
    /// Made when the first pod comes or goes, and looked at in place of the refusals from then on.
    exact: Option<Exact>,
    /// Made with it.
    required: Option<Required<'a>>,
}

impl Filter<'_> {
    fn update(&mut self, node: &NodeRow<'_>, other: &PodInfo, delta: i32) {
        if other.pod.meta.namespace != self.pod.meta.namespace {
            return;
        }
        self.make_exact();
        let (Some(exact), Some(required)) = (&mut self.exact, &self.required) else { return };
        exact.update(&self.constraints, (self.pod, required, self.cancel), node, other, delta);
    }

    fn make_exact(&mut self) {
        self.required.get_or_insert_with(|| Required::new(self.pod, self.cancel));
        self.exact.get_or_insert_with(|| {
            let topologies = &self.keys;
            let topology = |key: &_| {
                let found = topologies.iter().find(|k| k.topology.key() == key);
                found.map_or_else(|| Arc::new(Topology::new(self.view, Clone::clone(key))), |k| k.topology.clone())
            };
            Exact::new((self.view, self.pod, self.cancel), &self.constraints, topology)
        });
    }

    fn missing(&self, constraint: usize) -> Rejection {
        let topology_key = self.constraints[constraint].key.clone();
        Rejection::unresolvable(NAME, Reason::TopologySpreadMissingLabel { topology_key })
    }

    fn skewed(&self, constraint: usize, skew: i64) -> Rejection {
        let Constraint { key, max_skew, .. } = &self.constraints[constraint];
        let reason = Reason::TopologySpread { topology_key: key.clone(), skew, max_skew: *max_skew };
        Rejection::resolvable(NAME, reason)
    }

    /// The first constraint that refuses a node, and by which skew; None: for want of its label.
    fn first_refusal(&self, node: &NodeRow<'_>) -> Option<(usize, Option<i64>)> {
        let of_key = |key: &Key| match key.topology.domain(node) {
            None => Some((key.first, None)),
            Some(domain) => {
                let refusal = (*key.refusals.get(domain).unwrap_or(&key.of_others))?;
                Some((refusal.constraint, Some(refusal.skew)))
            }
        };
        self.keys.iter().filter_map(of_key).min_by_key(|(constraint, _)| *constraint)
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let refusal = match &self.exact {
            None => self.first_refusal(node),
            Some(exact) => exact.first_refusal(&self.constraints, self.cancel, node),
        };
        match refusal {
            None => Ok(()),
            Some((constraint, None)) => Err(self.missing(constraint)),
            Some((constraint, Some(skew))) => Err(self.skewed(constraint, skew)),
        }
    }

    fn passes(&self, node: &NodeRow<'_>) -> bool {
        match &self.exact {
            None => self.first_refusal(node).is_none(),
            Some(_) => self.check(node).is_ok(),
        }
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
