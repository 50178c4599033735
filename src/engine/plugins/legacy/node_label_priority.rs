//! NodeLabelPriority (spec 8.2; the argument `labelPreference` under a name of one's own): nodes with a label, or without
//! it, are better.

use crate::cluster::NodeRow;
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, Plugin, PreScore, ScorePlugin};
use crate::model::Str;

/// `labelPreference` of a priority's argument.
#[derive(Debug)]
pub struct NodeLabelPriority {
    pub label: Str,
    /// Whether nodes with the label are the better ones, or those without.
    pub presence: bool,
}

impl Plugin for NodeLabelPriority {
    fn name(&self) -> &'static str {
        "NodeLabelPriority"
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }
}

impl ScorePlugin for NodeLabelPriority {
    fn prepare<'a>(&'a self, _cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        PreScore::Score(Box::new(Score(self)))
    }
}

struct Score<'a>(&'a NodeLabelPriority);

impl NodeScore for Score<'_> {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        if node.labels().contains_key(&self.0.label) == self.0.presence { MAX_SCORE } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{only, scene};
    use crate::model::testing::{node, pod};

    #[test]
    fn presence_or_absence_of_the_label_is_worth_100() {
        for (presence, with, without) in [(true, 100, 0), (false, 0, 100)] {
            let rule = NodeLabelPriority { label: "ssd".into(), presence };
            let scene = scene([node("with").label("ssd", ""), node("without")], []).profile(only(rule));
            let verdict = scene.decide(pod("p"));
            let score = |node| verdict.score("NodeLabelPriority", node);
            assert_eq!((score("with"), score("without")), (with, without));
        }
    }
}
