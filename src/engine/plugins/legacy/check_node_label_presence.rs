//! CheckNodeLabelPresence (spec 8.1): every one of the labels must be on the node, or none of them may. Values don't matter.

use crate::cluster::NodeRow;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::legacy_reason::LegacyReason;
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::Str;

const NAME: &str = "CheckNodeLabelPresence";

/// `labelsPresence` of a predicate's argument.
#[derive(Debug)]
pub struct CheckNodeLabelPresence {
    pub labels: Vec<Str>,
    /// Whether they must be there, or must not.
    pub presence: bool,
}

impl Plugin for CheckNodeLabelPresence {
    fn name(&self) -> &'static str {
        NAME
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, _sizes: &Sizes<'_>) -> Share {
        Share::a_node(1 + units(self.labels.len()), 0)
    }
}

impl FilterPlugin for CheckNodeLabelPresence {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, _cycle: &Cycle<'a>) -> PreFilter<'a> {
        PreFilter::Filter(Box::new(Filter(self)))
    }
}

struct Filter<'a>(&'a CheckNodeLabelPresence);

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        match self.0.labels.iter().find(|key| node.labels().contains_key(key) != self.0.presence) {
            None => Ok(()),
            Some(key) => {
                let reason = LegacyReason::LabelPresence { key: key.clone() };
                Err(Rejection::unresolvable(NAME, Reason::Legacy(reason)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Verdict, only, scene};
    use crate::model::testing::{node, pod};

    fn verdict(presence: bool) -> Verdict {
        let nodes = [node("both").label("a", "").label("b", "x"), node("one").label("a", "1"), node("none")];
        let rule = CheckNodeLabelPresence { labels: vec!["a".into(), "b".into()], presence };
        scene(nodes, []).profile(only(rule)).decide(pod("p"))
    }

    #[test]
    fn all_labels_must_be_there_or_none_may() {
        assert_eq!(verdict(true).feasible(), ["both"]);
        assert_eq!(verdict(false).feasible(), ["none"]);
        let text = "CheckNodeLabelPresence UU: node(s) didn't have the requested labels";
        assert_eq!(verdict(true).refusal("one"), text);
    }
}
