//! Whether a node that was chosen on one view still passes on a later one, without going over all nodes again.
//!
//! A decision that takes long is made on a fork; meanwhile pods come and go. What they change for the other filters is told
//! to those as preemption tells them (`NodeFilter::pod_added`, `pod_removed`), so the second look costs the pods that changed
//! and one node.
//!
//! Promise: a yes or no is what [`super::decide`] says of that node alone on the later view. Where pods aren't all that
//! changed, or the filters count some pods otherwise than when they are prepared, there is no answer, and the pod is to be
//! decided anew.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::filter::{self, Filters};
use super::plugin::Cycle;
use super::{Cancel, EngineError, IncomingPod, Profile, check_cancelled};
use crate::cluster::terms::{Role, Term};
use crate::cluster::view::Changes;
use crate::cluster::{NodeRow, Ordinal, PodInfo, View};
use crate::model::{Kind, Pod};

/// What judged the nodes of a view, kept to judge one of them on a later view of the same history.
pub struct Recheck<'v> {
    earlier: &'v View,
    pod: &'v Pod,
    /// None: the pod asks for something whose filters can't be told what changed.
    filters: Option<Filters<'v>>,
    cancel: Cancel<'v>,
}

impl<'v> Recheck<'v> {
    /// Prepares the filters once more, which costs what they cost in a decision: not for whoever holds the writer.
    ///
    /// # Errors
    /// As of a decision.
    pub fn prepare(
        view: &'v View,
        pod: &'v IncomingPod<'v>,
        profile: &'v Profile,
        cancel: &'v AtomicBool,
    ) -> Result<Self, EngineError> {
        let cancel = Cancel::new(cancel);
        let mut recheck = Self { earlier: view, pod: pod.pod, filters: None, cancel };
        if can_be_told(pod.pod) {
            let mut prepared = filter::prepare(&Cycle::new(view, pod, profile, cancel))?;
            prepared.filters.iter_mut().for_each(|filter| filter.expect_changes());
            check_cancelled(cancel, 0)?;
            recheck.filters = prepared.rejection.is_none().then_some(prepared.filters);
        }
        Ok(recheck)
    }

    /// Whether the node passes on a later view; None: that takes a new decision, or looking at more than `budget` changed
    /// pods, or the flag was set. Judges once: the filters stand where the later view is.
    pub fn passes(self, later: &View, node: &str, budget: usize) -> Option<bool> {
        let Self { earlier, pod, filters, cancel } = self;
        let mut filters = filters?;
        if !same_objects(earlier, later) {
            return None;
        }
        let changed: BTreeSet<Ordinal> = match later.changes_since(earlier.revision()) {
            Changes::Nodes(nodes) => nodes.collect(),
            Changes::TooOld => return None,
        };
        let mut left = budget;
        for ordinal in changed {
            let (old, new) = (earlier.node(ordinal), later.node(ordinal));
            let (Some(old), Some(new)) = (old, new) else { return None };
            if !std::ptr::eq(old.node(), new.node()) {
                return None;
            }
            tell(&mut filters, &old, &new, pod, &mut left)?;
        }
        let row = later.node_named(node)?;
        // Nominated pods are judged twice over; that is for a decision to do.
        if later.nominations().on(row.name()).iter().any(|p| p.pod.meta.uid != pod.meta.uid) {
            return None;
        }
        let passes = filters.iter().all(|filter| filter.passes(&row));
        // Filters that were told less than all, since the flag was set, say nothing.
        (!cancel.is_set()).then_some(passes)
    }
}

/// Tells the filters what came to a node and what left it; None: something can't be told, or there is no budget left.
fn tell(filters: &mut Filters<'_>, old: &NodeRow<'_>, new: &NodeRow<'_>, own: &Pod, left: &mut usize) -> Option<()> {
    let (before, after) = (old.pods(), new.pods());
    let (mut i, mut j) = (0, 0);
    let mut told = |filters: &mut Filters<'_>, pod: &Arc<PodInfo>, came: bool| {
        // Terminating pods count for some filters when they come and not when they were there, as upstream.
        if pod.pod.meta.is_terminating() {
            return None;
        }
        // One that keeps the incoming pod away may be the first to do so; then no filter for that was prepared.
        let objects = new.view().objects();
        let keeps_away = |t: &Arc<Term>| t.role == Role::RequiredAntiAffinity && t.pods.matches(own, objects);
        if pod.pod.meta.uid == own.meta.uid || (came && pod.terms.iter().any(keeps_away)) {
            return None;
        }
        *left = left.checked_sub(1)?;
        filters.iter_mut().for_each(|filter| match came {
            true => filter.pod_added(new, pod),
            false => filter.pod_removed(old, pod),
        });
        Some(())
    };
    // Both lists are sorted by uid.
    while i < before.len() || j < after.len() {
        match (before.get(i), after.get(j)) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => (i, j) = (i + 1, j + 1),
            (Some(a), Some(b)) if a.pod.meta.uid == b.pod.meta.uid => {
                told(filters, a, false)?;
                told(filters, b, true)?;
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), Some(b)) if a.pod.meta.uid > b.pod.meta.uid => {
                told(filters, b, true)?;
                j += 1;
            }
            (Some(a), _) => {
                told(filters, a, false)?;
                i += 1;
            }
            (None, Some(b)) => {
                told(filters, b, true)?;
                j += 1;
            }
            (None, None) => break,
        }
    }
    Some(())
}

/// Whether the filters that this pod has can be told of other pods and count as if prepared anew.
fn can_be_told(pod: &Pod) -> bool {
    // What volumes allow depends on claims, volumes and attachments elsewhere. Empty selectors count no pods when they are
    // prepared and all that come.
    pod.spec.volumes.is_empty() && !pod.spec.topology_spread.iter().any(|c| c.selector.is_everything())
}

/// Whether no object changed that a filter reads.
fn same_objects(earlier: &View, later: &View) -> bool {
    let unread =
        [Kind::PodDisruptionBudget, Kind::NodeMetrics, Kind::PodMetrics, Kind::PriorityClass, Kind::RuntimeClass];
    later.objects().changes_from(earlier.objects()).all(|(kind, _)| unread.contains(&kind))
}

#[cfg(test)]
mod tests;
