//! How much work a decision is, before it begins: what may be done under the writer, and what only on a fork.
//!
//! The unit is about one check of one term, constraint or toleration on one node, some 20 to 50 ns.

use super::attempt::Attempt;
use super::choose::{Choice, Chosen, Decided, Decider, Ground, as_decided};
use crate::cluster::counts::CountKey;
use crate::cluster::{View, Writer};
use crate::engine::{Code, Outcome, Recheck};
use crate::service::ServiceError;

/// Work that is done under the writer: some 3 ms, four times a plain decision over 5,000 nodes.
const SHORT: u64 = 150_000;
/// Work on preemption that is done without changing lanes. The writer isn't held for it.
const SHORT_PREEMPTION: u64 = 500_000;
/// Pods that may have changed for a choice to be checked against them under the writer.
const RECHECKED_PODS: usize = 1_024;
/// Selector counts that are kept for one pod. Real pods ask for a handful; those of a pod with thousands would push out
/// everybody else's.
const KEPT_A_POD: usize = 32;

impl Attempt {
    /// Units of work that one node takes.
    fn a_node(&self) -> u64 {
        let spec = &self.pod.spec;
        let node_terms = spec.affinity.node.as_ref().map_or(0, |node| {
            let required = node.required.as_ref().map_or(0, |selector| selector.terms.len());
            required + node.preferred.as_ref().map_or(0, Vec::len)
        });
        let sides = [&spec.affinity.pod, &spec.affinity.pod_anti];
        let pod_terms: usize = sides.into_iter().flatten().map(|side| side.required.len() + side.preferred.len()).sum();
        let rest = spec.topology_spread.len() + spec.tolerations.len() + spec.volumes.len() + spec.containers.len();
        10 + u64::try_from(node_terms + pod_terms + rest).unwrap_or(u64::MAX)
    }

    /// Whether the pod alone, whatever the cluster, says that this may be long. Looks at nothing but the pod.
    pub(super) fn is_surely_long(&self) -> bool {
        self.a_node() > SHORT / 64
    }

    /// Whether a decision on this view may be long.
    pub(super) fn is_long(&self, view: &View) -> bool {
        self.a_node().saturating_mul(view.node_count() as u64) > SHORT
    }

    /// The counts that are worth keeping for the pod.
    pub(super) fn count_keys(&self, view: &View) -> Vec<CountKey> {
        let keys = self.profile.count_keys(view, &self.pod);
        if keys.len() > KEPT_A_POD { Vec::new() } else { keys }
    }

    /// Whether a choice that was made on a fork holds on the writer's view as it is. What may take long to find out counts as
    /// no: then the pod is decided anew.
    pub(super) fn still_holds(
        &self,
        decider: &Decider<'_>,
        choice: &mut Choice,
        ground: &Ground,
        recheck: Recheck<'_>,
        writer: &Writer,
    ) -> Result<bool, ServiceError> {
        let Some(node) = choice.decision.node() else { return Ok(true) };
        let mut cleared = None;
        let view = if ground.is_empty() {
            writer.view()
        } else {
            let view = cleared.insert(writer.view().clone());
            ground.clear(self, view);
            view
        };
        if self.is_long(view) {
            return Ok(recheck.passes(view, node, RECHECKED_PODS) == Some(true));
        }
        let Some(ordinal) = view.ordinal(node) else { return Ok(false) };
        let again = match &ground.before {
            Some(earlier) if choice.again => decider.decide(&as_decided(view, earlier), Some(ordinal))?,
            _ => decider.decide(view, Some(ordinal))?,
        };
        choice.decision.bindings = again.bindings.clone();
        Ok(again.node().is_some())
    }
}

impl Chosen {
    /// Whether what preemption can do takes long to find out.
    pub(super) fn preempts_for_long(&self, attempt: &Attempt) -> bool {
        let Self::Decided(decided) = self else { return false };
        let Decided { decision, seen: Some(view), .. } = &**decided else { return false };
        if decision.outcome != Outcome::Unschedulable {
            return false;
        }
        let possible = match &decision.pre_filter {
            Some(_) => decision.nodes,
            None => decision.rejected.iter().filter(|(_, r)| r.code == Code::Unschedulable).count(),
        };
        // Each pod of a node leaves and mostly comes back.
        let pods = view.pod_count() / view.node_count().max(1) + 1;
        let checks = (possible as u64).saturating_mul(pods as u64);
        checks.saturating_mul(attempt.a_node()) > SHORT_PREEMPTION
    }
}
