//! Selectors, each requirement as `kubectl` would write it: `app=web,tier in (a,b),!canary`.

use super::writer::FieldWriter;
use crate::model::node_selector::{NodeOperator, NodeRequirement};
use crate::model::selector::{Operator, Requirement};
use crate::model::{LabelSelector, NodeSelector, NodeSelectorTerm, Str};

/// A null selector is left out; an empty one is `{}`.
pub(super) fn label_selector(w: &mut FieldWriter, name: &str, selector: &LabelSelector) {
    match selector {
        LabelSelector::Nothing => {}
        LabelSelector::Requirements(list) if list.is_empty() => w.value(name, "{}"),
        LabelSelector::Requirements(list) => {
            w.value(name, list.iter().map(requirement).collect::<Vec<_>>().join(","));
        }
    }
}

fn requirement(Requirement { key, op }: &Requirement) -> String {
    match op {
        Operator::In(values) => within(key, values),
        Operator::NotIn(values) => format!("{key} notin ({})", values.join(",")),
        Operator::Exists => key.to_string(),
        Operator::DoesNotExist => format!("!{key}"),
    }
}

fn within(key: &str, values: &[Str]) -> String {
    match values {
        [value] => format!("{key}={value}"),
        _ => format!("{key} in ({})", values.join(",")),
    }
}

pub(super) fn node_selector(w: &mut FieldWriter, NodeSelector { terms }: &NodeSelector) {
    w.each("nodeSelectorTerms", terms, term);
}

pub(super) fn term(w: &mut FieldWriter, NodeSelectorTerm { expressions, fields }: &NodeSelectorTerm) {
    let text = |list: &[NodeRequirement]| list.iter().map(node_requirement).collect::<Vec<_>>().join(",");
    w.text("matchExpressions", &text(expressions));
    w.text("matchFields", &text(fields));
}

fn node_requirement(NodeRequirement { key, op }: &NodeRequirement) -> String {
    match op {
        NodeOperator::In(values) => within(key, values),
        NodeOperator::NotIn(values) => format!("{key} notin ({})", values.join(",")),
        NodeOperator::Exists => key.to_string(),
        NodeOperator::DoesNotExist => format!("!{key}"),
        NodeOperator::Gt(bound) => format!("{key}>{bound}"),
        NodeOperator::Lt(bound) => format!("{key}<{bound}"),
        NodeOperator::Invalid => format!("{key} (invalid)"),
    }
}
