//! NodeAffinity (spec 4.4 and 5.7): nodeSelector, required and preferred node affinity, and the profile's own
//! `addedAffinity`.

use std::collections::BTreeSet;

use crate::cluster::{Cancel, NodeRow};
use crate::engine::cost::{Share, Sizes, units, values_compared};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{
    Cycle, FilterPlugin, NodeFilter, NodeScore, Plugin, PreFilter, PreScore, ScorePlugin, default_normalize,
};
use crate::engine::plugins::label_index::{LabelIndex, pairs_of_term};
use crate::engine::status::{Reason, Rejection};
use crate::model::node_selector::{NODE_NAME_FIELD, NodeOperator};
use crate::model::{Labels, Node, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod, PreferredNodeTerm, Str};

const NAME: &str = "NodeAffinity";

#[derive(Debug, Default)]
pub struct NodeAffinityPlugin {
    /// `addedAffinity` of the plugin's arguments: holds for every pod of the profile.
    pub added: Option<NodeAffinity>,
}

const EVENTS: EventSet = EventSet::NONE.with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeLabel]);

impl Plugin for NodeAffinityPlugin {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn judges_alone(&self) -> bool {
        true
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let own = sizes.pod.spec.affinity.node.as_ref();
        let sides = || own.into_iter().chain(&self.added);
        let required = sides().filter_map(|side| side.required.as_ref()).flat_map(|selector| &selector.terms);
        let preferred = sides().filter_map(|side| side.preferred.as_ref()).flatten().map(|t| &t.term);
        let pairs = sizes.pod.spec.node_selector.as_ref().map_or(0, Labels::len);
        let sum = |terms: &mut dyn Iterator<Item = &NodeSelectorTerm>| terms.map(term).fold(0, u64::saturating_add);
        let (required, preferred) = (sum(&mut required.into_iter()), sum(&mut preferred.into_iter()));
        // Names of nodes are gathered from the required terms before.
        Share { prepare: required.saturating_mul(4), ..Share::a_node(1 + required + units(pairs), 1 + preferred) }
    }
}

/// The pod's own required affinity: nodeSelector and required terms, without the profile's.
pub(crate) fn required(pod: &Pod) -> Option<&NodeSelector> {
    pod.spec.affinity.node.as_ref()?.required.as_ref()
}

/// A pod's nodeSelector and required node affinity, to be held against many nodes.
pub(crate) struct Required<'p> {
    pod: &'p Pod,
    /// Over the required terms, where there are many.
    index: Option<LabelIndex<'p>>,
}

/// So many terms are tried one by one: an index costs as much.
const FEW_TERMS: usize = 8;

fn index_of<'t>(
    terms: impl ExactSizeIterator<Item = &'t NodeSelectorTerm>,
    cancel: Cancel<'_>,
) -> Option<LabelIndex<'t>> {
    (terms.len() > FEW_TERMS).then(|| LabelIndex::new(cancel.guard(terms).map(pairs_of_term)))
}

impl<'p> Required<'p> {
    pub(crate) fn new(pod: &'p Pod, cancel: Cancel<'_>) -> Self {
        let index = required(pod).and_then(|selector| index_of(selector.terms.iter(), cancel));
        Self { pod, index }
    }

    /// As [`matches_required`].
    pub(crate) fn matches(&self, node: &Node) -> bool {
        let (Some(index), Some(selector)) = (&self.index, required(self.pod)) else {
            return matches_required(node, self.pod);
        };
        let labels = &node.meta.labels;
        self.pod.spec.node_selector.as_ref().is_none_or(|selector| selector.is_subset_of(labels))
            && index.each(labels).any(|i| selector.terms[i].matches(&node.meta.name, labels))
    }
}

/// Whether a node satisfies the pod's nodeSelector and required node affinity.
pub(crate) fn matches_required(node: &Node, pod: &Pod) -> bool {
    let labels = &node.meta.labels;
    pod.spec.node_selector.as_ref().is_none_or(|selector| selector.is_subset_of(labels))
        && required(pod).is_none_or(|selector| selector.matches(&node.meta.name, labels))
}

impl FilterPlugin for NodeAffinityPlugin {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let pod = cycle.pod.pod;
        let added = self.added.as_ref().and_then(|a| a.required.as_ref());
        if added.is_none() && required(pod).is_none() && pod.spec.node_selector.is_none() {
            return PreFilter::Skip;
        }
        let filter = Box::new(Filter { required: Required::new(pod, cycle.cancel), added });
        match required(pod).and_then(|selector| named_nodes(selector, cycle.cancel)) {
            None => PreFilter::Filter(filter),
            Some(names) if names.is_empty() => {
                PreFilter::Reject(Rejection::unresolvable(NAME, Reason::PodAffinityConflict))
            }
            Some(names) => PreFilter::Narrow(names.into_iter().collect(), filter),
        }
    }
}

/// To match a node with the pod's nodeSelector and required node affinity.
pub(crate) fn cost_of_required(pod: &Pod) -> u64 {
    let terms = required(pod).into_iter().flat_map(|selector| &selector.terms);
    let pairs = pod.spec.node_selector.as_ref().map_or(0, Labels::len);
    terms.map(term).fold(1 + units(pairs), u64::saturating_add)
}

/// To match a term with a node.
fn term(term: &NodeSelectorTerm) -> u64 {
    let requirements = term.expressions.iter().chain(&term.fields).map(|r| match &r.op {
        NodeOperator::In(values) | NodeOperator::NotIn(values) => 1 + values_compared(values.len()),
        _ => 1,
    });
    requirements.fold(0, u64::saturating_add)
}

/// The nodes that the terms name through `matchFields metadata.name In`; None unless every term names some.
fn named_nodes(selector: &NodeSelector, cancel: Cancel<'_>) -> Option<BTreeSet<Str>> {
    if selector.terms.is_empty() {
        return None;
    }
    let mut union = BTreeSet::new();
    for term in cancel.guard(&selector.terms) {
        let mut names: Option<BTreeSet<Str>> = None;
        for field in term.fields.iter().filter(|f| &*f.key == NODE_NAME_FIELD) {
            if let NodeOperator::In(values) = &field.op {
                let values: BTreeSet<Str> = values.iter().cloned().collect();
                names = Some(match names {
                    None => values,
                    Some(before) => before.intersection(&values).cloned().collect(),
                });
            }
        }
        union.extend(names?);
    }
    Some(union)
}

struct Filter<'a> {
    required: Required<'a>,
    added: Option<&'a NodeSelector>,
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        if self.added.is_some_and(|added| !added.matches(node.name(), node.labels())) {
            return Err(Rejection::unresolvable(NAME, Reason::EnforcedNodeAffinity));
        }
        if !self.required.matches(node.node()) {
            return Err(Rejection::unresolvable(NAME, Reason::NodeAffinity));
        }
        Ok(())
    }
}

impl ScorePlugin for NodeAffinityPlugin {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let own = cycle.pod.pod.spec.affinity.node.as_ref().and_then(|a| a.preferred.as_ref());
        let added = self.added.as_ref().and_then(|a| a.preferred.as_ref());
        if own.is_none() && added.is_none() {
            return PreScore::Skip;
        }
        let terms: Vec<&PreferredNodeTerm> = added.into_iter().chain(own).flatten().collect();
        let index = index_of(terms.iter().map(|t| &t.term), cycle.cancel);
        PreScore::Score(Box::new(Score { terms, index }))
    }
}

struct Score<'a> {
    terms: Vec<&'a PreferredNodeTerm>,
    index: Option<LabelIndex<'a>>,
}

impl NodeScore for Score<'_> {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let worth = |t: &&PreferredNodeTerm| match t.term.matches(node.name(), node.labels()) {
            true => i64::from(t.weight),
            false => 0,
        };
        match &self.index {
            None => self.terms.iter().map(worth).sum(),
            Some(index) => index.each(node.labels()).map(|i| worth(&self.terms[i])).sum(),
        }
    }

    fn normalize(&self, _feasible: &[NodeRow<'_>], scores: &mut [i64]) {
        default_normalize(scores, false);
    }
}

#[cfg(test)]
#[path = "node_affinity_tests.rs"]
mod tests;
