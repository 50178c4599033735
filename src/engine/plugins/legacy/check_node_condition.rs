//! CheckNodeCondition (spec 8.1; removed in 1.17, when conditions became taints): a node that isn't ready, has no network,
//! is out of disk space or is cordoned takes no pod, whatever the pod tolerates. A condition that isn't reported is fine.

use smallvec::SmallVec;

use crate::cluster::NodeRow;
use crate::engine::legacy_reason::LegacyReason;
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Code, Reason, Rejection};

const NAME: &str = "CheckNodeCondition";

#[derive(Debug)]
pub struct CheckNodeCondition;

impl Plugin for CheckNodeCondition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }
}

impl FilterPlugin for CheckNodeCondition {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, _cycle: &Cycle<'a>) -> PreFilter<'a> {
        PreFilter::Filter(Box::new(Filter))
    }
}

struct Filter;

impl NodeFilter for Filter {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let node = node.node();
        let mut reasons: SmallVec<[Reason; 1]> = SmallVec::new();
        for condition in &node.conditions {
            let (good, reason) = match &*condition.kind {
                "Ready" => ("True", LegacyReason::NotReady),
                "NetworkUnavailable" => ("False", LegacyReason::NetworkUnavailable),
                "OutOfDisk" => ("False", LegacyReason::OutOfDisk),
                _ => continue,
            };
            if &*condition.status != good {
                reasons.push(Reason::Legacy(reason));
            }
        }
        if node.unschedulable {
            reasons.push(Reason::NodeUnschedulable);
        }
        if reasons.is_empty() {
            return Ok(());
        }
        Err(Rejection { plugin: NAME, code: Code::UnschedulableAndUnresolvable, reasons })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{only, scene};
    use crate::model::NodeCondition;
    use crate::model::testing::{NodeBuilder, node, pod};

    fn reporting(conditions: &[(&str, &str)]) -> NodeBuilder {
        let conditions = conditions.iter().map(|(k, s)| NodeCondition { kind: (*k).into(), status: (*s).into() });
        node("n").with(|n| n.conditions = conditions.collect())
    }

    fn refusal(node: NodeBuilder) -> Option<String> {
        let verdict = scene([node], []).profile(only(CheckNodeCondition)).decide(pod("p").tolerates("", None, None));
        verdict.feasible().is_empty().then(|| verdict.refusal("n"))
    }

    #[test]
    fn each_bad_condition_is_a_reason_and_unknown_is_bad() {
        let all = reporting(&[("OutOfDisk", "Unknown"), ("Ready", "Unknown"), ("NetworkUnavailable", "True")]);
        let text = "CheckNodeCondition UU: node(s) were out of disk space, node(s) were not ready, node(s) had \
                    unavailable network, node(s) were unschedulable";
        assert_eq!(refusal(all.cordoned()).as_deref(), Some(text));
    }

    #[test]
    fn a_condition_that_is_not_reported_is_fine() {
        assert_eq!(refusal(reporting(&[])), None);
        assert_eq!(refusal(reporting(&[("Ready", "True"), ("NetworkUnavailable", "False"), ("Else", "True")])), None);
    }
}
