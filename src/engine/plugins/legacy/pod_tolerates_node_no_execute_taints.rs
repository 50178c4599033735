//! PodToleratesNodeNoExecuteTaints (spec 8.1): TaintToleration's rule for NoExecute taints alone, in its words.

use crate::cluster::{Cancel, NodeRow};
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::{Effect, Pod};

const NAME: &str = "PodToleratesNodeNoExecuteTaints";

#[derive(Debug)]
pub struct PodToleratesNodeNoExecuteTaints;

impl Plugin for PodToleratesNodeNoExecuteTaints {
    fn name(&self) -> &'static str {
        NAME
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        Share::a_node(1 + units(sizes.pod.spec.tolerations.len()), 0)
    }
}

impl FilterPlugin for PodToleratesNodeNoExecuteTaints {
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
        let mut evicting = self.cancel.guard(&node.node().taints).filter(|t| t.effect == Effect::NoExecute);
        match evicting.find(|taint| !self.pod.spec.tolerations.iter().any(|t| t.tolerates(taint))) {
            None => Ok(()),
            Some(taint) => Err(Rejection::unresolvable(
                NAME,
                Reason::UntoleratedTaint { key: taint.key.clone(), value: taint.value.clone(), effect: taint.effect },
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{only, scene};
    use crate::model::testing::{node, pod};

    #[test]
    fn only_no_execute_taints_keep_pods_off() {
        let nodes = [
            node("evicting").taint("k", "v", Effect::NoExecute),
            node("closed").taint("k", "v", Effect::NoSchedule),
            node("shy").taint("k", "v", Effect::PreferNoSchedule),
        ];
        let verdict = scene(nodes, []).profile(only(PodToleratesNodeNoExecuteTaints)).decide(pod("p"));
        assert_eq!(verdict.feasible(), ["closed", "shy"]);
        let text = "PodToleratesNodeNoExecuteTaints UU: node(s) had untolerated taint(s)";
        assert_eq!(verdict.refusal("evicting"), text);
    }
}
