//! Which evictions would break a PodDisruptionBudget (spec section 7.4).

use std::sync::Arc;

use super::PodOnNode;
use crate::cluster::{Cancel, View};
use crate::model::{Kind, Object, PodDisruptionBudget};

/// The budgets of a view that can protect a pod.
pub(super) struct Budgets<'v> {
    list: Vec<&'v Arc<PodDisruptionBudget>>,
}

impl<'v> Budgets<'v> {
    pub(super) fn new(view: &'v View) -> Self {
        let budgets = view.objects().of_kind(Kind::PodDisruptionBudget).filter_map(|object| match object {
            // Upstream reads an empty selector as one that selects nothing here.
            Object::PodDisruptionBudget(budget) if !budget.selector.is_everything() => Some(budget),
            _ => None,
        });
        Self { list: budgets.collect() }
    }

    /// Parts pods, the most important first, into those whose eviction would break a budget and the others. Each pod uses
    /// up the budgets that it falls under, in this order, before any is spared.
    pub(super) fn split(&self, pods: Vec<PodOnNode>, cancel: Cancel<'_>) -> (Vec<PodOnNode>, Vec<PodOnNode>) {
        if self.list.is_empty() {
            return (Vec::new(), pods);
        }
        let mut allowed: Vec<i64> = self.list.iter().map(|b| i64::from(b.disruptions_allowed)).collect();
        pods.into_iter().partition(|info| {
            let meta = &info.pod.meta;
            let mut breaks = false;
            if meta.labels.is_empty() || cancel.is_set() {
                return false;
            }
            for (budget, left) in self.list.iter().zip(&mut allowed) {
                let covers = budget.meta.namespace == meta.namespace && budget.selector.matches(&meta.labels);
                // Its eviction was granted already and is part of the status.
                if covers && !budget.disrupted_pods.contains(&meta.name) {
                    *left -= 1;
                    breaks |= *left < 0;
                }
            }
            breaks
        })
    }
}
