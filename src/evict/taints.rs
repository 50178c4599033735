//! Which taints a pod's tolerations cover, by the descheduler's rules (spec section 8.3).
//!
//! They differ from the scheduler's filter in one thing: the operators `Gt` and `Lt` are honoured.

use crate::cluster::Cancel;
use crate::model::taint::TolerationOperator;
use crate::model::{Node, Taint, Toleration};

pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let compared = |holds: fn(i64, i64) -> bool| {
        let numbers = (taint.value.parse::<i64>(), toleration.value.parse::<i64>());
        matches!(numbers, (Ok(taint), Ok(bound)) if holds(taint, bound))
    };
    let covers = toleration.effect.is_none_or(|e| e == taint.effect)
        && (toleration.key.is_empty() || toleration.key == taint.key);
    covers
        && match toleration.op {
            TolerationOperator::Lt => compared(|taint, bound| taint < bound),
            TolerationOperator::Gt => compared(|taint, bound| taint > bound),
            TolerationOperator::Equal | TolerationOperator::Exists => toleration.tolerates(taint),
        }
}

pub fn is_tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|t| tolerates(t, taint))
}

/// The first taint of a node that keeps the pod off it: NoSchedule or NoExecute, and not tolerated.
pub fn first_forbidding<'n>(tolerations: &[Toleration], node: &'n Node, cancel: Cancel<'_>) -> Option<&'n Taint> {
    cancel.guard(&node.taints).find(|t| t.effect.forbids_scheduling() && !is_tolerated(tolerations, t))
}

/// Whether the utilisation strategies take a node as a destination of a pod. A compatible quirk: every taint must be
/// tolerated, PreferNoSchedule too, and a pod with fewer tolerations than the node has taints is turned away, although one
/// toleration may cover them all.
pub fn may_be_destination(tolerations: &[Toleration], node: &Node, cancel: Cancel<'_>) -> bool {
    tolerations.len() >= node.taints.len() && cancel.guard(&node.taints).all(|t| is_tolerated(tolerations, t))
}
