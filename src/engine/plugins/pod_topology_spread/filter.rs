//! Hard constraints.

use rustc_hash::FxHashMap;

use super::{Constraint, Counter, NAME, PodTopologySpread, has_all_keys, includes};
use crate::cluster::{Cancel, NodeRow, PodInfo};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{Pod, Str};

impl FilterPlugin for PodTopologySpread {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let pod = cycle.pod.pod;
        let constraints = self.constraints(cycle.view, pod, WhenUnsatisfiable::DoNotSchedule, cycle.cancel).list;
        if constraints.is_empty() {
            return PreFilter::Skip;
        }
        let counters: Vec<Counter<'_>> = constraints.iter().map(|c| Counter::new(cycle.view, pod, c)).collect();
        let mut counts: Vec<FxHashMap<Str, i64>> = vec![FxHashMap::default(); constraints.len()];
        for node in cycle.cancel.guard(cycle.view.nodes()).filter(|n| has_all_keys(&constraints, n.node())) {
            for ((constraint, counter), domains) in cycle.cancel.guard(constraints.iter().zip(&counters).zip(&mut counts)) {
                if !includes(constraint, node.node(), pod, cycle.cancel) {
                    continue;
                }
                if let Some(value) = node.labels().get(&constraint.key) {
                    // Also with no pod at all: an empty domain is a domain.
                    *domains.entry(value.clone()).or_default() += counter.count(&node);
                }
            }
        }
        let hard = constraints.into_iter().zip(counts).map(|(constraint, counts)| {
            let own = i64::from(constraint.selector.matches(&pod.meta.labels));
            let mut hard = Hard { constraint, counts, own, minimum: 0 };
            hard.refresh_minimum();
            hard
        });
        PreFilter::Filter(Box::new(Filter { pod, constraints: hard.collect(), cancel: cycle.cancel }))
    }
}

struct Hard {
    constraint: Constraint,
    /// Matching pods by domain, for the domains that count.
    counts: FxHashMap<Str, i64>,
    /// 1 if the pod itself matches.
    own: i64,
    /// The smallest count; 0 while there are fewer domains than `minDomains`.
    minimum: i64,
}

impl Hard {
    fn refresh_minimum(&mut self) {
        let enough = i64::try_from(self.counts.len()).unwrap_or(i64::MAX) >= i64::from(self.constraint.min_domains);
        self.minimum = if enough { self.counts.values().copied().min().unwrap_or(0) } else { 0 };
    }
}

struct Filter<'a> {
    pod: &'a Pod,
    constraints: Vec<Hard>,
    cancel: Cancel<'a>,
}

impl Filter<'_> {
    /// A pod came to, or left, a node of the fork. Neither deletion nor the special case of `{}` is looked at here, as
    /// upstream.
    fn update(&mut self, node: &NodeRow<'_>, other: &PodInfo, delta: i64) {
        if other.pod.meta.namespace != self.pod.meta.namespace {
            return;
        }
        if !self.constraints.iter().all(|h| node.labels().contains_key(&h.constraint.key)) {
            return;
        }
        for hard in self.cancel.guard(&mut self.constraints) {
            if !includes(&hard.constraint, node.node(), self.pod, self.cancel)
                || !hard.constraint.selector.matches(&other.pod.meta.labels)
            {
                continue;
            }
            if let Some(value) = node.labels().get(&hard.constraint.key) {
                *hard.counts.entry(value.clone()).or_default() += delta;
                hard.refresh_minimum();
            }
        }
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        for hard in &self.constraints {
            let constraint = &hard.constraint;
            let Some(value) = node.labels().get(&constraint.key) else {
                let reason = Reason::TopologySpreadMissingLabel { topology_key: constraint.key.clone() };
                return Err(Rejection::unresolvable(NAME, reason));
            };
            let skew = hard.counts.get(value).copied().unwrap_or(0) + hard.own - hard.minimum;
            if skew > i64::from(constraint.max_skew) {
                let reason = Reason::TopologySpread {
                    topology_key: constraint.key.clone(),
                    skew,
                    max_skew: constraint.max_skew,
                };
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
