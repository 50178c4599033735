//! NodePreferAvoidPodsPriority (spec 8.6): a node can ask, by an annotation, not to be given pods of certain controllers.

use crate::cluster::NodeRow;
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, Plugin, PreScore, ScorePlugin};
use crate::model::OwnerReference;

const NAME: &str = "NodePreferAvoidPodsPriority";

#[derive(Debug)]
pub struct NodePreferAvoidPodsPriority;

impl Plugin for NodePreferAvoidPodsPriority {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }
}

impl ScorePlugin for NodePreferAvoidPodsPriority {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let controller = cycle.pod.pod.meta.controller();
        let avoidable = controller.filter(|o| matches!(&*o.kind, "ReplicationController" | "ReplicaSet"));
        PreScore::Score(Box::new(Score { avoidable }))
    }
}

struct Score<'a> {
    /// The pod's controller, if it is of a kind that nodes can avoid.
    avoidable: Option<&'a OwnerReference>,
}

impl NodeScore for Score<'_> {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let Some(owner) = self.avoidable else { return MAX_SCORE };
        let avoided = node.node().avoided.iter().any(|a| a.kind == owner.kind && a.uid == owner.uid);
        if avoided { 0 } else { MAX_SCORE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{only, scene};
    use crate::model::node::AvoidedController;
    use crate::model::testing::{node, pod};

    #[test]
    fn a_node_avoids_the_controllers_that_it_names() {
        let avoided = AvoidedController { kind: "ReplicaSet".into(), uid: "uid-ReplicaSet-web".into() };
        let nodes = [node("avoiding").with(|n| n.avoided.push(avoided)), node("open")];
        let scene = scene(nodes, []).profile(only(NodePreferAvoidPodsPriority));
        for (kind, name, score) in [("ReplicaSet", "web", 0), ("ReplicaSet", "other", 100), ("StatefulSet", "web", 100)]
        {
            let verdict = scene.decide(pod("p").owner("apps/v1", kind, name));
            assert_eq!(verdict.score(NAME, "avoiding"), score, "{kind} {name}");
            assert_eq!(verdict.score(NAME, "open"), 100);
        }
        assert_eq!(scene.decide(pod("p")).score(NAME, "avoiding"), 100);
    }
}
