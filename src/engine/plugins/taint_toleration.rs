//! TaintToleration (spec 4.3 and 5.7): NoSchedule and NoExecute taints keep out pods that don't tolerate them, and
//! PreferNoSchedule ones make a node less attractive.

use crate::cluster::{Cancel, NodeRow};
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{
    Cycle, FilterPlugin, NodeFilter, NodeScore, Plugin, PreFilter, PreScore, ScorePlugin, default_normalize,
};
use crate::engine::status::{Reason, Rejection};
use crate::model::{Effect, Node, Pod, Taint, Toleration};

const NAME: &str = "TaintToleration";

#[derive(Debug)]
pub struct TaintToleration;

const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeTaint])
    .with(EventResource::UnschedulablePod, &[ActionType::UpdatePodToleration]);

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn judges_alone(&self) -> bool {
        true
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        // As if every node had a taint of either kind.
        let tolerations = units(sizes.pod.spec.tolerations.len());
        Share { prepare_score: tolerations, ..Share::a_node(1 + tolerations, 1 + tolerations) }
    }
}

/// The first NoSchedule or NoExecute taint that the pod doesn't tolerate.
pub(crate) fn untolerated<'n>(node: &'n Node, pod: &Pod, cancel: Cancel<'_>) -> Option<&'n Taint> {
    let mut forbidding = cancel.guard(&node.taints).filter(|t| t.effect.forbids_scheduling());
    forbidding.find(|taint| !pod.spec.tolerations.iter().any(|t| t.tolerates(taint)))
}

impl FilterPlugin for TaintToleration {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        PreFilter::Filter(Box::new(Filter { pod: cycle.pod.pod, cancel: cycle.cancel }))
    }
}

struct Filter<'a> {
    pod: &'a Pod,
    cancel: Cancel<'a>,
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        if !node.fixed().has_forbidding_taint {
            return Ok(());
        }
        match untolerated(node.node(), self.pod, self.cancel) {
            None => Ok(()),
            Some(taint) => Err(Rejection::unresolvable(
                NAME,
                Reason::UntoleratedTaint { key: taint.key.clone(), value: taint.value.clone(), effect: taint.effect },
            )),
        }
    }
}

impl ScorePlugin for TaintToleration {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let tolerations = &cycle.pod.pod.spec.tolerations;
        let soft = tolerations.iter().filter(|t| t.effect.is_none_or(|e| e == Effect::PreferNoSchedule)).collect();
        PreScore::Score(Box::new(Score { soft, cancel: cycle.cancel }))
    }
}

struct Score<'a> {
    /// Tolerations that could tolerate a PreferNoSchedule taint.
    soft: Vec<&'a Toleration>,
    cancel: Cancel<'a>,
}

impl NodeScore for Score<'_> {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        if !node.fixed().has_soft_taint {
            return 0;
        }
        let soft = self.cancel.guard(&node.node().taints).filter(|t| t.effect == Effect::PreferNoSchedule);
        let untolerated = soft.filter(|taint| !self.soft.iter().any(|t| t.tolerates(taint))).count();
        i64::try_from(untolerated).unwrap_or(i64::MAX)
    }

    fn normalize(&self, _feasible: &[NodeRow<'_>], scores: &mut [i64]) {
        default_normalize(scores, true);
    }
}

#[cfg(test)]
#[path = "taint_toleration_tests.rs"]
mod tests;
