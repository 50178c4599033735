//! NodeUnschedulable (spec 4.1): a cordoned node takes only pods that tolerate the cordon's taint.

use crate::cluster::NodeRow;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::{Effect, Taint};

#[derive(Debug)]
pub struct NodeUnschedulable;

const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeTaint])
    .with(EventResource::UnschedulablePod, &[ActionType::UpdatePodToleration]);

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
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

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        Share { prepare: units(sizes.pod.spec.tolerations.len()), ..Share::a_node(1, 0) }
    }
}

impl FilterPlugin for NodeUnschedulable {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            value: "".into(),
            effect: Effect::NoSchedule,
            added: None,
        };
        if cycle.pod.pod.spec.tolerations.iter().any(|t| t.tolerates(&cordon)) {
            return PreFilter::Skip;
        }
        PreFilter::Filter(Box::new(Filter))
    }
}

struct Filter;

impl NodeFilter for Filter {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        if node.node().unschedulable {
            return Err(Rejection::unresolvable("NodeUnschedulable", Reason::NodeUnschedulable));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::testing::scene;
    use crate::model::testing::{node, pod};

    const REFUSAL: &str = "NodeUnschedulable UU: node(s) were unschedulable";

    #[test]
    fn a_cordoned_node_takes_only_pods_that_tolerate_the_cordon() {
        let v = |p| scene([node("n").cordoned()], []).decide(p);
        assert_eq!(v(pod("p")).refusal("n"), REFUSAL);
        let key = "node.kubernetes.io/unschedulable";
        let no_schedule = Some(crate::model::Effect::NoSchedule);
        for (rule, p, fits) in [
            ("everything", pod("p").tolerates("", None, None), true),
            ("the key", pod("p").tolerates(key, None, no_schedule), true),
            ("the key with an empty value", pod("p").tolerates(key, Some(""), None), true),
            ("another value", pod("p").tolerates(key, Some("x"), None), false),
            ("another effect", pod("p").tolerates(key, None, Some(crate::model::Effect::NoExecute)), false),
            ("another key", pod("p").tolerates("x", None, None), false),
        ] {
            assert_eq!(!v(p).feasible().is_empty(), fits, "{rule}");
        }
    }

    #[test]
    fn conditions_of_a_node_are_not_consulted() {
        let ready = crate::model::NodeCondition { kind: "Ready".into(), status: "False".into() };
        let not_ready = node("n").with(|n| n.conditions.push(ready));
        assert_eq!(scene([not_ready], []).decide(pod("p")).feasible(), ["n"]);
    }
}
