//! RemovePodsViolatingTopologySpreadConstraint: evens out the domains of spread constraints (spec section 15).
//!
//! Constraints are judged one by one, each over all counted pods of its namespace, be they pods that state it or not. Only
//! pods that may be evicted count. From the larger domains the pods without node selector or affinity go first, and among
//! those the ones with the highest priority: what upstream does since v0.33, whatever its comments say.

use std::collections::{BTreeMap, BTreeSet};

use super::topology_domains::{Constraint, Leaver, balance};
use super::{Candidate, Context, Sink, Strategy, StrategyError, Verdict};
use crate::evict::outcome::LeftAlone;
use crate::evict::policy::RemovePodsViolatingTopologySpreadConstraintArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId};
use crate::model::Str;

impl Strategy for RemovePodsViolatingTopologySpreadConstraintArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        let mut told = BTreeSet::<PodId>::new();
        let mut leavers = BTreeMap::<PodId, (Leaver, Constraint)>::new();
        for pods in self.by_namespace(context).values() {
            for constraint in context.cancel().guard(self.constraints_of(context, &pods.counted)) {
                let moves = balance(context, &constraint, &pods.counted, self.topology_balance_node_fit);
                if moves.is_empty() {
                    continue;
                }
                for (pod, why) in pods.protected.iter().filter(|(pod, _)| constraint.speaks_of(context.pod(*pod))) {
                    if told.insert(*pod) {
                        sink.leave_alone(*pod, why.clone());
                    }
                }
                for leaver in moves.leavers {
                    leavers.entry(leaver.pod).or_insert_with(|| (leaver, constraint.clone()));
                }
                for (pod, unfits) in moves.stuck {
                    sink.leave_alone(pod, LeftAlone::NoNodeFits(unfits));
                }
            }
        }
        let mut full = BTreeSet::<NodeId>::new();
        for (id, (leaver, constraint)) in context.cancel().guard(leavers) {
            let node = context.scene.pod(id).node;
            if full.contains(&node) || !context.passes_pre_eviction(id, sink) {
                continue;
            }
            let (topology_key, max_skew) = (constraint.topology_key, constraint.max_skew);
            let reason = Reason::Spread { topology_key, domain: leaver.domain, skew: leaver.skew, max_skew };
            match sink.consider(Candidate::new(id, reason)) {
                Verdict::Evicted | Verdict::NamespaceLimit | Verdict::Refused => {}
                Verdict::NodeLimit => {
                    full.insert(node);
                }
                Verdict::TotalLimit => break,
            }
        }
        Ok(())
    }
}

/// The pods of a namespace. The protected ones don't count for the skew and state nothing.
#[derive(Default)]
struct Pods {
    counted: Vec<PodId>,
    protected: Vec<(PodId, LeftAlone)>,
}

impl RemovePodsViolatingTopologySpreadConstraintArgs {
    fn by_namespace(&self, context: &Context<'_>) -> BTreeMap<Str, Pods> {
        let mut namespaces = BTreeMap::<Str, Pods>::new();
        for node in context.cancel().guard(context.nodes) {
            for id in context.cancel().guard(context.selected_active(*node, &self.pods)) {
                let pods = namespaces.entry(context.pod(id).meta.namespace.clone()).or_default();
                match context.evictor.passes_filter(id) {
                    Ok(()) => pods.counted.push(id),
                    Err(why) => pods.protected.push((id, why)),
                }
            }
        }
        namespaces
    }

    /// The distinct constraints that the pods state, in the pods' order.
    fn constraints_of(&self, context: &Context<'_>, pods: &[PodId]) -> Vec<Constraint> {
        let mut found: Vec<Constraint> = Vec::new();
        for id in context.cancel().guard(pods) {
            let pod = context.pod(*id);
            for spread in context.cancel().guard(&pod.spec.topology_spread) {
                if !self.constraints.contains(&spread.when_unsatisfiable) {
                    continue;
                }
                let constraint = Constraint::of(spread, pod);
                if !context.cancel().guard(&found).any(|known| *known == constraint) {
                    found.push(constraint);
                }
            }
        }
        found
    }
}
