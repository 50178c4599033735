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
    /// PLANNED: where the replacement goes. None in COMPATIBLE mode, which doesn't ask.
    pub landing: Option<Landing>,
    /// PLANNED: what the strategy measures, at once before and after the move.
    pub gain: Option<Gain>,
}

/// The node that the engine gives a replacement, once all earlier suggestions have moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    pub node: Str,
    /// The weighted total of the profile's scores; 0 if no other node was feasible.
    pub score: i64,
    /// Only for strategies that ask for a fresh pod.
    pub is_source: bool,
}

/// An amount of what a strategy measures, over the whole cluster; the smaller the better, and 0 is perfect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    /// What is counted, in words: "pods over their node's share".
    pub metric: &'static str,
    pub before: i64,
    pub after: i64,
}

/// What an enabled strategy measures over the whole cluster, before the plan and with all of it played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub strategy: PluginName,
    pub profile: Str,
    pub gain: Gain,
}

/// How far a plan was played on to see that no replacement would be moved again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LookAhead {
    /// Requests that were played after this one.
    pub rounds: usize,
    /// Whether the last of them found nothing more to do. If not, the look was ended for its cost.
    pub complete: bool,
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
    /// PLANNED: every destination of LowNodeUtilization would be over target with it.
    NoRoomUnderTarget,
    /// An earlier strategy suggested it.
    AlreadySuggested,
    Limit(Limit),
    /// `evictionLimits.node` of the strategy.
    StrategyLimit(u64),
    /// The API server would refuse: 429.
    BudgetExhausted(Budget),
    /// The API server would refuse: 500, since it can't handle a pod with several budgets.
    SeveralBudgets(Vec<Budget>),
    /// PLANNED: the scheduler would find no node; what it would say.
    NoLanding {
        message: Str,
    },
    /// PLANNED: the scheduler would send the replacement back to where the pod is.
    ReturnedToSource,
    /// PLANNED: the scheduler would send the replacement where the strategy doesn't want it or gains nothing.
    NoGain {
        landing: Str,
        why: NoGain,
    },
    /// PLANNED: the move would undo what an earlier strategy of the policy is for.
    Undoes {
        landing: Str,
        strategy: PluginName,
    },
    /// PLANNED: once the plan is played, a strategy would move the replacement again.
    WouldMoveAgain,
    /// PLANNED: other pods keep the node from being emptied, so moving this one would be for nothing.
    NodeNotEmptied {
        blocked_by: Str,
    },
    /// PLANNED: no profile is configured for the pod's `schedulerName`, so that nobody knows where it would go.
    UnknownProfile(Str),
    /// PLANNED: the pod needs something that Berth can't judge.
    Unsupported(Str),
}

/// What is wrong with a landing in the eyes of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoGain {
    /// What the strategy measures would stay as it is or get worse.
    NotBetter,
    /// LowNodeUtilization: the landing isn't a node under the thresholds.
    NotUnderutilized,
    /// LowNodeUtilization: the pod is too big, the landing would be over target.
    OverTarget,
    /// HighNodeUtilization: the landing is to be emptied itself.
    NotADestination,
    /// The rule would apply to the replacement, too.
    StillViolates,
    /// `nodeFit`: the evictor's node selector doesn't select it, or it is cordoned or not ready.
    NotSelected,
}

impl fmt::Display for NoGain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotBetter => "which is no better",
            Self::NotUnderutilized => "which isn't underutilized",
            Self::OverTarget => "which it would bring over target",
            Self::NotADestination => "which is to be emptied or cordoned",
            Self::NotSelected => "which the evictor's nodeFit doesn't take",
            Self::StillViolates => "where the rule would apply to it again",
        })
    }
}

impl LeftAlone {
    /// The name that answers count by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Protected(_) => "PROTECTED",
            Self::NamespaceNotSelected { .. } => "NAMESPACE_NOT_SELECTED",
            Self::NoNodeFits(_) => "NO_NODE_FITS",
            Self::NoDestinationTolerated => "NO_DESTINATION_TOLERATED",
            Self::NamespaceExcluded => "NAMESPACE_EXCLUDED",
            Self::NoThresholdedRequest => "NO_THRESHOLDED_REQUEST",
            Self::NoMetrics => "NO_METRICS",
            Self::NoRoomUnderTarget => "NO_ROOM_UNDER_TARGET",
            Self::AlreadySuggested => "ALREADY_SUGGESTED",
            Self::Limit(_) => "LIMIT",
            Self::StrategyLimit(_) => "STRATEGY_LIMIT",
            Self::BudgetExhausted(_) => "BUDGET_EXHAUSTED",
            Self::SeveralBudgets(_) => "SEVERAL_BUDGETS",
            Self::NoLanding { .. } => "NO_LANDING",
            Self::ReturnedToSource => "RETURNED_TO_SOURCE",
            Self::NoGain { .. } => "NO_GAIN",
            Self::Undoes { .. } => "UNDOES",
            Self::WouldMoveAgain => "WOULD_MOVE_AGAIN",
            Self::NodeNotEmptied { .. } => "NODE_NOT_EMPTIED",
            Self::UnknownProfile(_) => "UNKNOWN_PROFILE",
            Self::Unsupported(_) => "UNSUPPORTED",
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
            Self::NoRoomUnderTarget => f.write_str("no underutilized node would stay within its target with the pod"),
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
            Self::NoLanding { message } => write!(f, "no node would take the replacement: {message}"),
            Self::ReturnedToSource => f.write_str("the replacement would come back to the same node"),
            Self::NoGain { landing, why } => write!(f, "the replacement would go to {landing}, {why}"),
            Self::Undoes { landing, strategy } => {
                write!(f, "the replacement would go to {landing}, against {}", strategy.as_str())
            }
            Self::WouldMoveAgain => f.write_str("with the plan played, the replacement would have to move again"),
            Self::NodeNotEmptied { blocked_by } => write!(f, "the node can't be emptied: {blocked_by} stays"),
            Self::UnknownProfile(name) => write!(f, "no profile is known for schedulerName {name}"),
            Self::Unsupported(what) => write!(f, "the pod needs what Berth can't judge: {what}"),
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
    /// The policy's nodes were fewer than two, and nothing ran: how many there are. COMPATIBLE only.
    pub skipped: Option<usize>,
    /// PLANNED: for each enabled strategy, in the order in which they ran.
    pub measures: Vec<Measured>,
    /// PLANNED only.
    pub look_ahead: Option<LookAhead>,
    /// PLANNED: how often the engine was asked for a landing, the look ahead included.
    pub decisions: usize,
}
