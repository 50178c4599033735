//! NodeName (spec 4.2): a pod that names its node fits only there.

use crate::cluster::NodeRow;
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::Str;

#[derive(Debug)]
pub struct NodeName;

const EVENTS: EventSet = EventSet::NONE.with(EventResource::Node, &[ActionType::Add]);

impl Plugin for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
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
}

impl FilterPlugin for NodeName {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let wanted = &cycle.pod.pod.spec.node_name;
        if wanted.is_empty() { PreFilter::Skip } else { PreFilter::Filter(Box::new(Filter { wanted })) }
    }
}

struct Filter<'a> {
    wanted: &'a Str,
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        if node.name() == self.wanted { Ok(()) } else { Err(Rejection::unresolvable("NodeName", Reason::NodeName)) }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::testing::scene;
    use crate::model::testing::{node, pod};

    #[test]
    fn a_pod_that_names_a_node_fits_only_there() {
        let v = scene([node("a"), node("b")], []).decide(pod("p").on("a"));
        assert_eq!(v.feasible(), ["a"]);
        assert_eq!(v.refusal("b"), "NodeName UU: node(s) didn't match the requested node name");
    }
}
