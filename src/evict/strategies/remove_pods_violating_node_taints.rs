//! RemovePodsViolatingNodeTaints: pods that don't tolerate their node's NoSchedule taints (spec section 14). Cordoning adds one, so
//! this drains cordoned nodes unless its key is excluded. NoExecute taints are the taint-eviction controller's.

use super::{Candidate, Context, Sink, Strategy, StrategyError, propose_by_node};
use crate::evict::policy::RemovePodsViolatingNodeTaintsArgs;
use crate::evict::reason::Reason;
use crate::evict::taints;
use crate::model::{Effect, Taint};

impl Strategy for RemovePodsViolatingNodeTaintsArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        propose_by_node(context, sink, |node| {
            let place = &context.scene.node(node).node;
            let considered: Vec<&Taint> = place.taints.iter().filter(|taint| self.considers(taint)).collect();
            if considered.is_empty() {
                return Vec::new();
            }
            let pods = context.selected_active(node, &self.pods);
            let violating = pods.into_iter().filter_map(|id| {
                let tolerations = &context.pod(id).spec.tolerations;
                let taint = considered.iter().find(|taint| !taints::is_tolerated(tolerations, taint))?;
                let (key, value, effect) = (taint.key.clone(), taint.value.clone(), taint.effect);
                Some(Candidate::new(id, Reason::Taint { key, value, effect }))
            });
            violating.collect()
        });
        Ok(())
    }
}

impl RemovePodsViolatingNodeTaintsArgs {
    fn considers(&self, taint: &Taint) -> bool {
        let effect = match taint.effect {
            Effect::NoSchedule => true,
            Effect::PreferNoSchedule => self.include_prefer_no_schedule,
            Effect::NoExecute => false,
        };
        effect && self.taints.admits(taint)
    }
}
