//! RemovePodsViolatingNodeAffinity: pods whose node doesn't satisfy their required node affinity (any more), or that prefer
//! another one (spec section 13). A bare `nodeSelector` is never acted on.
//!
//! Both kinds ask whether some node fits, whatever the evictor's `nodeFit`; for preferences that may be the node it is on,
//! and the preferred one need not fit.

use super::{Candidate, Context, Flow, Sink, Strategy, StrategyError};
use crate::evict::node_fit::{self, Selects};
use crate::evict::outcome::LeftAlone;
use crate::evict::policy::{NodeAffinityType, RemovePodsViolatingNodeAffinityArgs};
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId};
use crate::model::{Node, PreferredNodeTerm};

impl Strategy for RemovePodsViolatingNodeAffinityArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        for kind in &self.types {
            match kind {
                NodeAffinityType::Required => self.propose(context, sink, required_violated),
                NodeAffinityType::Preferred => self.propose(context, sink, preferred_elsewhere),
            }
        }
        Ok(())
    }
}

type Rule = fn(&Context<'_>, PodId, NodeId) -> Option<Reason>;

impl RemovePodsViolatingNodeAffinityArgs {
    /// A total limit ends this kind only; the next one is tried all the same.
    fn propose(&self, context: &Context<'_>, sink: &mut dyn Sink, rule: Rule) {
        for node in context.cancel().guard(context.nodes) {
            for id in context.cancel().guard(context.selected_active(*node, &self.pods)) {
                let Some(reason) = rule(context, id, *node) else { continue };
                if !context.admits(id, sink) {
                    continue;
                }
                if let Err(unfits) = node_fit::fits_any(context.scene, id, context.nodes) {
                    sink.leave_alone(id, LeftAlone::NoNodeFits(unfits));
                    continue;
                }
                match Flow::after(sink.consider(Candidate::new(id, reason))) {
                    Flow::Next => {}
                    Flow::NextNode => break,
                    Flow::Stop => return,
                }
            }
        }
    }
}

fn required_violated(context: &Context<'_>, id: PodId, node: NodeId) -> Option<Reason> {
    let pod = context.pod(id);
    pod.spec.affinity.node.as_ref()?.required.as_ref()?;
    let here = node_fit::selects(pod, &context.scene.node(node).node);
    (here != Selects::Yes).then_some(Reason::RequiredNodeAffinity)
}

fn preferred_elsewhere(context: &Context<'_>, id: PodId, node: NodeId) -> Option<Reason> {
    let terms = context.pod(id).spec.affinity.node.as_ref()?.preferred.as_ref().filter(|terms| !terms.is_empty())?;
    let weight_of = |node: NodeId| weight(terms, &context.scene.node(node).node);
    let here = weight_of(node);
    // The first of the best by name.
    let best = context.cancel().guard(context.nodes.iter().copied().rev()).max_by_key(|node| weight_of(*node))?;
    let name = &context.scene.node(best).node.meta.name;
    (weight_of(best) > here).then(|| Reason::PreferredNodeAffinity { here, best: weight_of(best), node: name.clone() })
}

/// The weights of the terms that a node matches; a term that can't be read matches none.
pub(in crate::evict) fn weight(terms: &[PreferredNodeTerm], node: &Node) -> i64 {
    let matching = terms.iter().filter(|t| t.term.matches(&node.meta.name, &node.meta.labels));
    matching.map(|t| i64::from(t.weight)).sum()
}
