//! RemovePodsViolatingNodeTaints: pods that don't tolerate their node's NoSchedule taints (spec section 14). Cordoning adds one, so
//! this drains cordoned nodes unless its key is excluded. NoExecute taints are the taint-eviction controller's.

use super::{Candidate, Context, Sink, Strategy, StrategyError, propose_by_node};
use crate::evict::policy::RemovePodsViolatingNodeTaintsArgs;
use crate::evict::reason::Reason;
use crate::evict::taints;
use crate::model::{Effect, Node, Pod, Taint};

impl Strategy for RemovePodsViolatingNodeTaintsArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        propose_by_node(context, sink, |node| {
            let place = &context.scene.node(node).node;
            if !place.taints.iter().any(|taint| self.considers(taint)) {
                return Vec::new();
            }
            let pods = context.selected_active(node, &self.pods);
            let violating = pods.into_iter().filter_map(|id| {
                let taint = self.violated(context.pod(id), place)?;
                let (key, value, effect) = (taint.key.clone(), taint.value.clone(), taint.effect);
                Some(Candidate::new(id, Reason::Taint { key, value, effect }))
            });
            violating.collect()
        });
        Ok(())
    }
}

impl RemovePodsViolatingNodeTaintsArgs {
    /// The first taint of the node that the rule looks at and the pod doesn't tolerate.
    pub(in crate::evict) fn violated<'n>(&self, pod: &Pod, node: &'n Node) -> Option<&'n Taint> {
        let mut considered = node.taints.iter().filter(|taint| self.considers(taint));
        considered.find(|taint| !taints::is_tolerated(&pod.spec.tolerations, taint))
    }

    fn considers(&self, taint: &Taint) -> bool {
        let effect = match taint.effect {
            Effect::NoSchedule => true,
            Effect::PreferNoSchedule => self.include_prefer_no_schedule,
            Effect::NoExecute => false,
        };
        effect && self.taints.admits(taint)
    }
}
