//! NodeUnschedulable (spec 4.1): a cordoned node takes only pods that tolerate the cordon's taint.

use crate::cluster::NodeRow;
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::{Effect, Taint};

#[derive(Debug)]
pub struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }
}

impl FilterPlugin for NodeUnschedulable {
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
