//! SchedulingGates (spec 4.14): a pod with gates isn't scheduled yet.

use crate::engine::plugin::Plugin;
use crate::engine::status::{Reason, Rejection};
use crate::model::Pod;

#[derive(Debug)]
pub struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn pre_enqueue(&self, pod: &Pod) -> Option<Rejection> {
        let gates = &pod.spec.scheduling_gates;
        (!gates.is_empty()).then(|| Rejection::unresolvable(self.name(), Reason::SchedulingGates(gates.clone())))
    }
}
