//! Looking for refused pods that would now fit.
//!
//! A look takes a fork, works out what happened since the one before, and decides anew on pods that wait for some of that:
//! on the changed nodes alone where only those can help. It stops after [`NODES_A_LOOK`] and the next look goes on, first
//! come, first served. Where a decision fails the pod is named: to be asked for in vain costs less than to be forgotten.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::table::{Found, Scope, Task};
use crate::cluster::view::Changes;
use crate::cluster::{Ordinal, View};
use crate::engine::retry::own_changes;
use crate::engine::{self, Difference, IncomingPod, Options, Outcome, Waiting};
use crate::manifest;
use crate::model::Pod;
use crate::service::Service;

/// Nodes that one look judges at most, summed over its pods: some tens of milliseconds.
const NODES_A_LOOK: usize = 100_000;
/// What a node costs an ordinary pod, in the engine's units: one with thousands of terms counts for as many nodes more.
const UNITS_A_NODE: u64 = 40;
/// What a pod costs whatever its nodes, in nodes.
const NODES_A_POD: usize = 50;
/// Pods whose state in the feed one look compares, besides those that it decides on.
const SWEPT_A_LOOK: usize = 1_024;

impl Service {
    /// Names the refused pods that would now fit; how many pods it decided on. Takes the writer for a fork only. For
    /// whoever has a clock, some ten times a second.
    pub fn look_for_retries(&self) -> usize {
        self.look(NODES_A_LOOK)
    }

    pub(super) fn look(&self, budget: usize) -> usize {
        let retries = &self.retries;
        let mut looker = retries.looker.lock();
        if retries.is_idle() {
            looker.base = None;
            return 0;
        }
        let profiles = self.profiles();
        let view = self.cluster.fork();
        let difference = looker.base.as_ref().map(|base| Difference::between(base, &view)).unwrap_or_default();
        let mut news = retries.table.lock().begin_look(view.revision(), &difference, &profiles);
        looker.swept = self.sweep(looker.swept);
        let (mut spent, mut decided) = (0, 0);
        while spent < budget {
            let Some(task) = retries.table.lock().next_due() else { break };
            let (found, nodes) = self.decide_anew(&task, &view, &difference);
            spent = spent.saturating_add(nodes).saturating_add(NODES_A_POD);
            decided += 1;
            news |= retries.table.lock().settle(&task, found);
        }
        looker.base = Some(view);
        drop(looker);
        if news {
            retries.tell();
        }
        decided
    }

    fn decide_anew(&self, task: &Task, view: &View, difference: &Difference) -> (Found, usize) {
        let refusal = &task.refusal;
        if self.needs_no_try(&refusal.pod, refusal.fed.as_ref(), view) {
            return (Found::Gone, 0);
        }
        let nodes = candidates(task, view, difference);
        let options = Options { candidates: nodes.as_deref(), ..Options::default() };
        let pod = IncomingPod::new(&refusal.pod);
        let cost = engine::cost(view, &pod, &refusal.profile, nodes.as_ref().map(Vec::len)).total / UNITS_A_NODE;
        let cost = usize::try_from(cost).unwrap_or(usize::MAX);
        let cancel = AtomicBool::new(false);
        match engine::decide(view, &pod, &refusal.profile, &options, &cancel) {
            Ok(decision) => match (&decision.outcome, Waiting::of(&decision, &refusal.profile)) {
                (Outcome::Unschedulable | Outcome::NoNodes | Outcome::Gated(_), Some(waiting)) => {
                    (Found::Refused(waiting), cost.max(decision.evaluated))
                }
                _ => (Found::Freed { revision: view.revision() }, cost.max(decision.evaluated)),
            },
            Err(_) => (Found::Freed { revision: view.revision() }, 0),
        }
    }

    /// Whether a pod has room, or is over.
    fn needs_no_try(&self, pod: &Pod, fed: Option<&Arc<Pod>>, view: &View) -> bool {
        match self.cluster.objects().pod(&pod.meta.uid) {
            Some(known) => known.is_bound() || known.is_terminal() || view.pod(&pod.meta.uid).is_some(),
            // A pod needn't have been fed; one that was is gone.
            None => fed.is_some() || view.pod(&pod.meta.uid).is_some(),
        }
    }

    /// Compares some pods with what the feed says of them now; where the next sweep begins.
    fn sweep(&self, from: u64) -> u64 {
        let some = self.retries.table.lock().some_from(from, SWEPT_A_LOOK);
        let next = if some.len() < SWEPT_A_LOOK { 0 } else { some.last().map_or(0, |(number, ..)| number + 1) };
        let view = self.cluster.fork();
        for (number, pod, fed) in some {
            if self.needs_no_try(&pod, fed.as_ref(), &view) {
                self.retries.table.lock().remove(number);
                continue;
            }
            let Some(known) = self.cluster.objects().pod(&pod.meta.uid) else { continue };
            if fed.as_ref().is_some_and(|fed| Arc::ptr_eq(fed, &known)) {
                continue;
            }
            let events = fed.map(|fed| own_changes(&fed, &known)).filter(|events| !events.is_empty());
            let decide = events.map(|events| {
                let mut changed = Pod::clone(&known);
                manifest::apply_classes(&mut changed, &self.cluster, &mut Vec::new());
                (Arc::new(changed), events)
            });
            self.retries.table.lock().fed_anew(number, known, decide);
        }
        next
    }
}

/// The nodes that may take the pod; None: all.
fn candidates(task: &Task, view: &View, difference: &Difference) -> Option<Vec<Ordinal>> {
    let changed: Option<Vec<Ordinal>> = match task.scope {
        Scope::All => None,
        Scope::Changed => Some(difference.nodes.iter().copied().collect()),
        Scope::Since(revision) => match view.changes_since(revision) {
            Changes::TooOld => None,
            Changes::Nodes(nodes) => {
                let mut nodes: Vec<Ordinal> = nodes.filter(|ordinal| view.node(*ordinal).is_some()).collect();
                nodes.sort_unstable();
                nodes.dedup();
                Some(nodes)
            }
        },
    };
    if task.refusal.candidates.is_empty() {
        return changed;
    }
    // A node that the client named may have gone, or come back.
    let named = task.refusal.candidates.iter().filter_map(|name| view.ordinal(name));
    let relevant =
        named.filter(|ordinal| changed.as_ref().is_none_or(|changed| changed.binary_search(ordinal).is_ok()));
    Some(relevant.collect())
}
