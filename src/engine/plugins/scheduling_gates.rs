//! SchedulingGates (spec 4.14): a pod with gates isn't scheduled yet.

use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::Plugin;
use crate::engine::status::{Reason, Rejection};
use crate::model::Pod;

#[derive(Debug)]
pub struct SchedulingGates;

const EVENTS: EventSet =
    EventSet::NONE.with(EventResource::UnschedulablePod, &[ActionType::UpdatePodSchedulingGatesEliminated]);

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn judges_alone(&self) -> bool {
        true
    }

    fn pre_enqueue(&self, pod: &Pod) -> Option<Rejection> {
        let gates = &pod.spec.scheduling_gates;
        (!gates.is_empty()).then(|| Rejection::unresolvable(self.name(), Reason::SchedulingGates(gates.clone())))
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Outcome;
    use crate::engine::testing::scene;
    use crate::model::testing::{node, pod};

    #[test]
    fn gates_are_named_and_end_the_attempt_before_any_node() {
        let v = scene([node("n")], []).decide(pod("p").gate("b.example/x").gate("a"));
        let Outcome::Gated(rejection) = &v.decision.outcome else { panic!("{:?}", v.decision) };
        assert_eq!(rejection.message(), "waiting for scheduling gates: [b.example/x a]");
        assert_eq!((rejection.code.as_str(), v.decision.evaluated), ("UnschedulableAndUnresolvable", 0));
    }
}
