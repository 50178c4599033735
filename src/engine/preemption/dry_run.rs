//! The victims on one node: all pods of lower priority leave, then as many as possible come back, the most important and
//! those under exhausted budgets first (spec section 7.3).
//!
//! All nodes are tried on one fork with one set of prepared filters; after each node its pods are back, and the filters
//! were told of each coming and going, so that they count as before.

use super::budgets::Budgets;
use super::{NAME, PodOnNode, sort_by_importance};
use crate::cluster::Ordinal;
use crate::engine::filter::{Filters, Judge, Prepared};
use crate::engine::plugin::Cycle;
use crate::engine::status::{Reason, Rejection};
use crate::engine::{EngineError, check_cancelled};
use crate::model::Str;

/// A node on which the pod would fit if the victims were gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub node: Str,
    pub ordinal: Ordinal,
    /// The most important first.
    pub victims: Vec<Victim>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Victim {
    pub pod: PodOnNode,
    /// Its eviction goes beyond what a PodDisruptionBudget allows.
    pub breaks_budget: bool,
}

impl Candidate {
    /// How many of the victims' evictions break a budget.
    pub fn budgets_broken(&self) -> usize {
        self.victims.iter().filter(|victim| victim.breaks_budget).count()
    }
}

pub(super) struct DryRun<'c, 'a> {
    cycle: &'c Cycle<'a>,
    judge: Judge<'c, 'a>,
    filters: Filters<'a>,
    /// PreFilter refused the pod whatever pods leave.
    rejection: Option<Rejection>,
    budgets: Budgets<'a>,
}

impl<'c, 'a> DryRun<'c, 'a> {
    pub(super) fn new(cycle: &'c Cycle<'a>, prepared: Prepared<'a>, budgets: Budgets<'a>) -> Self {
        let Prepared { filters, rejection, .. } = prepared;
        Self { cycle, judge: Judge::new(cycle), filters, rejection, budgets }
    }

    /// The candidate that a node is, or why it is none.
    pub(super) fn on(&mut self, ordinal: Ordinal) -> Result<Result<Candidate, Rejection>, EngineError> {
        let Some(row) = self.cycle.view.node(ordinal) else {
            return Ok(Err(Rejection::unresolvable(NAME, Reason::PreemptionNotHelpful)));
        };
        let priority = self.cycle.pod.pod.priority();
        let mut lower: Vec<PodOnNode> = row.pods().iter().filter(|p| p.pod.priority() < priority).cloned().collect();
        if lower.is_empty() {
            return Ok(Err(Rejection::unresolvable(NAME, Reason::NoPreemptionVictims)));
        }
        if let Some(rejection) = &self.rejection {
            return Ok(Err(rejection.clone()));
        }
        // Upstream leaves the order of equals open; by name it is one.
        lower.sort_by(|a, b| (&a.pod.meta.namespace, &a.pod.meta.name).cmp(&(&b.pod.meta.namespace, &b.pod.meta.name)));
        sort_by_importance(&mut lower, |pod| pod);
        let cancel = self.cycle.cancel;
        cancel.guard(&lower).for_each(|pod| self.judge.remove(&mut self.filters, pod));
        let tried = match self.judge.check(&mut self.filters, ordinal) {
            Err(rejection) => Err(rejection),
            Ok(()) => Ok(self.spare(ordinal, lower.clone())),
        };
        match &tried {
            Err(_) => cancel.guard(&lower).for_each(|pod| self.judge.add(&mut self.filters, pod)),
            Ok(victims) => cancel.guard(victims).for_each(|victim| self.judge.add(&mut self.filters, &victim.pod)),
        }
        // Else one that was let go early would be taken for one without victims.
        check_cancelled(cancel, 0)?;
        let victims = match tried {
            Err(rejection) => return Ok(Err(rejection)),
            Ok(victims) => victims,
        };
        if victims.is_empty() {
            return Err(EngineError::NoVictim { node: row.name().to_string() });
        }
        Ok(Ok(Candidate { node: row.name().clone(), ordinal, victims }))
    }

    /// Lets pods come back while the incoming pod still fits. The rest are the victims.
    fn spare(&mut self, ordinal: Ordinal, lower: Vec<PodOnNode>) -> Vec<Victim> {
        let cancel = self.cycle.cancel;
        let (breaking, others) = self.budgets.split(lower, cancel);
        let both = !breaking.is_empty() && !others.is_empty();
        let mut victims = Vec::new();
        for (pods, breaks_budget) in [(breaking, true), (others, false)] {
            for pod in cancel.guard(pods) {
                self.judge.add(&mut self.filters, &pod);
                if self.judge.check(&mut self.filters, ordinal).is_err() {
                    self.judge.remove(&mut self.filters, &pod);
                    victims.push(Victim { pod, breaks_budget });
                }
            }
        }
        if both {
            sort_by_importance(&mut victims, |victim| &victim.pod);
        }
        victims
    }
}
