//! What a request for evictions comes to: what to evict, and for everything else that was considered, why not.
//!
//! Reasons are data; their texts are for people who know the descheduler. The typed reason is what gets counted.

use std::fmt;
use std::sync::Arc;

use super::evictor::Protection;
use super::limits::{Budget, Limit};
use super::node_fit::Unfits;
use super::policy::PluginName;
use super::reason::Reason;
use super::strategies::StrategyError;
use crate::model::{Pod, Str, Time};

/// A pod that should go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub pod: Arc<Pod>,
    pub node: Str,
    pub strategy: PluginName,
    pub profile: Str,
    pub reason: Reason,
    /// Seconds for the eviction's delete options; None: the pod's own.
    pub grace_period_seconds: Option<i64>,
    /// Not to be evicted before; None: at once.
    pub not_before: Option<Time>,
    /// The budgets that this eviction draws on.
    pub budgets: Vec<Budget>,
}

/// A pod that a strategy would have moved, and what held it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlonePod {
    pub pod: Arc<Pod>,
    pub node: Str,
    pub strategy: PluginName,
    pub profile: Str,
    pub why: LeftAlone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftAlone {
    /// DefaultEvictor's filter; every rule that speaks against it.
    Protected(Vec<Protection>),
    /// `namespaceLabelSelector`; `known` is false when the namespace's object isn't there.
    NamespaceNotSelected {
        known: bool,
    },
    /// No node would take it.
    NoNodeFits(Unfits),
    /// No destination's taints are all tolerated.
    NoDestinationTolerated,
    /// `evictableNamespaces.exclude`.
    NamespaceExcluded,
    /// Requests none of the resources that thresholds are set for (OnlyThresholdingResources).
    NoThresholdedRequest,
    /// No PodMetrics of it are known.
    NoMetrics,
    /// An earlier strategy suggested it.
    AlreadySuggested,
    Limit(Limit),
    /// `evictionLimits.node` of the strategy.
    StrategyLimit(u64),
    /// The API server would refuse: 429.
    BudgetExhausted(Budget),
    /// The API server would refuse: 500, since it can't handle a pod with several budgets.
    SeveralBudgets(Vec<Budget>),
}

impl LeftAlone {
    /// The name that answers count by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Protected(_) => "Protected",
            Self::NamespaceNotSelected { .. } => "NamespaceNotSelected",
            Self::NoNodeFits(_) => "NoNodeFits",
            Self::NoDestinationTolerated => "NoDestinationTolerated",
            Self::NamespaceExcluded => "NamespaceExcluded",
            Self::NoThresholdedRequest => "NoThresholdedRequest",
            Self::NoMetrics => "NoMetrics",
            Self::AlreadySuggested => "AlreadySuggested",
            Self::Limit(_) => "Limit",
            Self::StrategyLimit(_) => "StrategyLimit",
            Self::BudgetExhausted(_) => "BudgetExhausted",
            Self::SeveralBudgets(_) => "SeveralBudgets",
        }
    }
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protected(protections) => join(f, protections),
            Self::NamespaceNotSelected { known: true } => {
                f.write_str("the labels of the pod's namespace don't match namespaceLabelSelector")
            }
            Self::NamespaceNotSelected { known: false } => {
                f.write_str("namespaceLabelSelector is set and the pod's namespace isn't known")
            }
            Self::NoNodeFits(unfits) => write!(f, "pod fits no node that it may go to: {unfits}"),
            Self::NoDestinationTolerated => f.write_str("pod doesn't tolerate the taints of any destination node"),
            Self::NamespaceExcluded => f.write_str("the pod's namespace is in evictableNamespaces.exclude"),
            Self::NoThresholdedRequest => f.write_str("pod requests none of the resources with a threshold"),
            Self::NoMetrics => f.write_str("no PodMetrics of the pod are known"),
            Self::AlreadySuggested => f.write_str("pod was already suggested by an earlier strategy"),
            Self::Limit(limit) => limit.fmt(f),
            Self::StrategyLimit(limit) => {
                write!(f, "the strategy's own limit of {limit} a node (evictionLimits.node) is reached")
            }
            Self::BudgetExhausted(budget) => write!(f, "PodDisruptionBudget {budget} allows no disruption now"),
            Self::SeveralBudgets(budgets) => {
                f.write_str("more than one PodDisruptionBudget selects the pod, which the eviction API refuses: ")?;
                join(f, budgets)
            }
        }
    }
}

fn join<T: fmt::Display>(f: &mut fmt::Formatter<'_>, list: &[T]) -> fmt::Result {
    for (i, item) in list.iter().enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { "; " })?;
    }
    Ok(())
}

/// A strategy that could not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub strategy: PluginName,
    pub profile: Str,
    pub error: StrategyError,
}

/// Everything that one request came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// In the order in which they were made.
    pub suggestions: Vec<Suggestion>,
    pub left_alone: Vec<LeftAlonePod>,
    /// The other strategies ran all the same.
    pub failures: Vec<Failure>,
    /// The policy's nodes were fewer than two, and nothing ran: how many there are.
    pub skipped: Option<usize>,
}
