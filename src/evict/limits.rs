//! How much may go: the three limits of a policy and the PodDisruptionBudgets (spec section 7).
//!
//! Budgets count as the API server counts them at an eviction: a pod that one budget selects takes one of its
//! `disruptionsAllowed`, and is refused when none is left; a pod that several select is always refused. What was refused
//! counts against no limit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::outcome::LeftAlone;
use super::snapshot::{NodeId, PodId, Scene, is_healthy};
use super::strategies::Verdict;
use crate::model::pod_status::Phase;
use crate::model::{PodDisruptionBudget, Str};

/// A limit of the policy that was reached, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    Total(u64),
    Node(u64),
    Namespace(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scope, limit) = match self {
            Self::Total(limit) => ("per a descheduling cycle", limit),
            Self::Node(limit) => ("per node", limit),
            Self::Namespace(limit) => ("per namespace", limit),
        };
        write!(f, "maximum number of evicted pods {scope} reached ({limit})")
    }
}

impl Limit {
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Total(_) => Verdict::TotalLimit,
            Self::Node(_) => Verdict::NodeLimit,
            Self::Namespace(_) => Verdict::NamespaceLimit,
        }
    }
}

/// Limits as a policy sets them; None: none. 0 lets nothing go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub per_node: Option<u64>,
    pub per_namespace: Option<u64>,
    pub total: Option<u64>,
}

/// Names a PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget {
    pub namespace: Str,
    pub name: Str,
}

impl Budget {
    pub fn of(budget: &PodDisruptionBudget) -> Self {
        Self { namespace: budget.meta.namespace.clone(), name: budget.meta.name.clone() }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What has been used up so far.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    limits: Limits,
    nodes: BTreeMap<NodeId, u64>,
    namespaces: BTreeMap<Str, u64>,
    total: u64,
    budgets: BTreeMap<Budget, i64>,
}

impl Spent {
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The first limit that one more eviction would go over: total, node, namespace, in upstream's order.
    pub fn limit_reached(&self, scene: &Scene, pod: PodId) -> Option<Limit> {
        let pod = scene.pod(pod);
        let full = |limit: Option<u64>, so_far: u64| limit.filter(|limit| so_far >= *limit);
        let on_node = self.nodes.get(&pod.node).copied().unwrap_or(0);
        let in_namespace = self.namespaces.get(&pod.pod.meta.namespace).copied().unwrap_or(0);
        full(self.limits.total, self.total)
            .map(Limit::Total)
            .or_else(|| full(self.limits.per_node, on_node).map(Limit::Node))
            .or_else(|| full(self.limits.per_namespace, in_namespace).map(Limit::Namespace))
    }

    /// Counts an eviction against the budget that selects the pod and against all limits.
    ///
    /// # Errors
    /// The API server would refuse; nothing is counted.
    pub fn take(&mut self, scene: &Scene, pod: PodId) -> Result<Vec<Budget>, LeftAlone> {
        let subject = scene.pod(pod);
        let budgets: Vec<&Arc<PodDisruptionBudget>> = scene.budgets_of(&subject.pod).collect();
        let names: Vec<Budget> = budgets.iter().map(|budget| Budget::of(budget)).collect();
        match &budgets[..] {
            [] => {}
            [budget] => {
                let used = self.budgets.entry(names[0].clone()).or_default();
                if *used >= i64::from(budget.disruptions_allowed) {
                    return Err(LeftAlone::BudgetExhausted(names[0].clone()));
                }
                *used += 1;
            }
            _ => return Err(LeftAlone::SeveralBudgets(names)),
        }
        self.count(scene, pod, &[]);
        Ok(names)
    }

    /// The budgets that an eviction draws on, by all rules of the eviction API. Pods that ended, wait to start or go already
    /// draw on none. Nor does an unhealthy pod where `unhealthyPodEvictionPolicy` is `AlwaysAllow`, or while enough others
    /// are healthy.
    ///
    /// # Errors
    /// The API server would refuse.
    pub fn allows(&self, scene: &Scene, pod: PodId) -> Result<Vec<Budget>, LeftAlone> {
        let subject = &scene.pod(pod).pod;
        if subject.is_terminal() || subject.status.phase == Phase::Pending || subject.meta.is_terminating() {
            return Ok(Vec::new());
        }
        let budgets: Vec<&Arc<PodDisruptionBudget>> = scene.budgets_of(subject).collect();
        let budget = match &budgets[..] {
            [] => return Ok(Vec::new()),
            [budget] => *budget,
            several => return Err(LeftAlone::SeveralBudgets(several.iter().map(|b| Budget::of(b)).collect())),
        };
        let name = Budget::of(budget);
        let used = self.budgets.get(&name).copied().unwrap_or(0);
        let enough = i64::from(budget.current_healthy) - used >= i64::from(budget.desired_healthy);
        if !is_healthy(subject) && (budget.always_allow_unhealthy || (enough && budget.desired_healthy > 0)) {
            return Ok(Vec::new());
        }
        if used >= i64::from(budget.disruptions_allowed) {
            return Err(LeftAlone::BudgetExhausted(name));
        }
        Ok(vec![name])
    }

    /// Counts an eviction that is going to happen.
    pub fn count(&mut self, scene: &Scene, pod: PodId, budgets: &[Budget]) {
        let subject = scene.pod(pod);
        self.total += 1;
        *self.nodes.entry(subject.node).or_default() += 1;
        *self.namespaces.entry(subject.pod.meta.namespace.clone()).or_default() += 1;
        for budget in budgets {
            *self.budgets.entry(budget.clone()).or_default() += 1;
        }
    }
}
