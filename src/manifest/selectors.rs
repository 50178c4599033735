//! Label selectors and node selectors.
//!
//! The rules on operators and values are the API server's. Two things that it lets through and the scheduler then can't
//! parse (a `Gt` bound that is no integer, a value of node affinity that is no label value) must not lose the pod: they
//! become `NodeOperator::Invalid`, which makes the term match nothing, as upstream, and a warning.

use super::error::invalid;
use super::meta::labels;
use super::names::{label_value_problem, qualified_name_problem};
use super::near_miss;
use super::reader::Reader;
use crate::model::node_selector::{NODE_NAME_FIELD, NodeOperator, NodeRequirement, parse_label_integer};
use crate::model::selector::{Operator, Requirement};
use crate::model::{LabelSelector, NodeSelector, NodeSelectorTerm, Str};

const NOT_AN_OPERATOR: &str = "not a valid selector operator";

/// A label selector before it is put in order.
pub(super) struct SelectorParts {
    /// From `matchLabels`.
    pub(super) labels: Vec<Requirement>,
    /// From `matchExpressions`.
    pub(super) expressions: Vec<Requirement>,
}

impl SelectorParts {
    pub(super) fn build(self) -> LabelSelector {
        LabelSelector::new(self.labels.into_iter().chain(self.expressions))
    }
}

/// None: the selector is null.
pub(super) fn selector_parts(parent: &Reader<'_>, field: &str) -> Option<SelectorParts> {
    let r = parent.object(field)?;
    r.known(&near_miss::SELECTOR);
    let pairs = labels(&r, "matchLabels").unwrap_or_default();
    Some(SelectorParts {
        labels: pairs.iter().map(|(k, v)| Requirement::equals(k.clone(), v.clone())).collect(),
        expressions: r.list("matchExpressions", requirement).unwrap_or_default(),
    })
}

/// A null selector matches nothing.
pub(super) fn selector(parent: &Reader<'_>, field: &str) -> LabelSelector {
    optional_selector(parent, field).unwrap_or_default()
}

/// None: the selector is null.
pub(crate) fn optional_selector(parent: &Reader<'_>, field: &str) -> Option<LabelSelector> {
    selector_parts(parent, field).map(SelectorParts::build)
}

fn key(r: &Reader<'_>) -> Str {
    let key = r.required_str("key");
    if !key.is_empty()
        && let Some(problem) = qualified_name_problem(&key)
    {
        r.error_in("key", invalid(&key, problem));
    }
    key
}

fn requirement(r: &Reader<'_>) -> Option<Requirement> {
    r.known(&near_miss::REQUIREMENT);
    let key = key(r);
    let operator = r.text("operator");
    let values = r.checked_texts("values", |text, value| {
        if let Some(problem) = label_value_problem(text) {
            value.error(invalid(text, problem));
        }
    });
    let values = values.unwrap_or_default();
    let op = match operator {
        Some("In") => Operator::In(some_values(r, values)),
        Some("NotIn") => Operator::NotIn(some_values(r, values)),
        Some("Exists") => no_values(r, &values, Operator::Exists),
        Some("DoesNotExist") => no_values(r, &values, Operator::DoesNotExist),
        other => {
            unknown_operator(r, other);
            return None;
        }
    };
    Some(Requirement { key, op })
}

fn some_values(r: &Reader<'_>, values: Vec<Str>) -> Vec<Str> {
    if values.is_empty() {
        r.error_in("values", "Required value: must be specified when `operator` is 'In' or 'NotIn'");
    }
    values
}

fn no_values<T>(r: &Reader<'_>, values: &[Str], op: T) -> T {
    if !values.is_empty() {
        r.error_in("values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
    op
}

fn unknown_operator(r: &Reader<'_>, operator: Option<&str>) {
    // An operator of the wrong type has been reported already.
    if operator.is_some() || !r.has("operator") {
        r.error_in("operator", invalid(operator.unwrap_or_default(), NOT_AN_OPERATOR));
    }
}

/// None: it is null. An empty one matches no node.
pub(super) fn node_selector(parent: &Reader<'_>, field: &str) -> Option<NodeSelector> {
    let r = parent.object(field)?;
    r.known(&near_miss::NODE_SELECTOR);
    let terms = r.list("nodeSelectorTerms", |t| Some(node_term(t))).unwrap_or_default();
    if terms.is_empty() {
        r.error_in("nodeSelectorTerms", "Required value: must have at least one node selector term");
    }
    Some(NodeSelector { terms })
}

pub(super) fn node_term(r: &Reader<'_>) -> NodeSelectorTerm {
    r.known(&near_miss::NODE_TERM);
    NodeSelectorTerm {
        expressions: r.list("matchExpressions", node_expression).unwrap_or_default(),
        fields: r.list("matchFields", node_field).unwrap_or_default(),
    }
}

fn node_expression(r: &Reader<'_>) -> Option<NodeRequirement> {
    r.known(&near_miss::REQUIREMENT);
    let key = key(r);
    let operator = r.text("operator");
    let mut never = false;
    let values = r.checked_texts("values", |text, value| {
        if let Some(problem) = label_value_problem(text) {
            never = true;
            value.warn(format!("the term matches no node: {}", invalid(text, problem)));
        }
    });
    let values = values.unwrap_or_default();
    let op = match operator {
        Some("In") => NodeOperator::In(some_values(r, values)),
        Some("NotIn") => NodeOperator::NotIn(some_values(r, values)),
        Some("Exists") => no_values(r, &values, NodeOperator::Exists),
        Some("DoesNotExist") => no_values(r, &values, NodeOperator::DoesNotExist),
        Some("Gt") => bound(r, &values).map_or(NodeOperator::Invalid, NodeOperator::Gt),
        Some("Lt") => bound(r, &values).map_or(NodeOperator::Invalid, NodeOperator::Lt),
        other => {
            unknown_operator(r, other);
            return None;
        }
    };
    Some(NodeRequirement { key, op: if never { NodeOperator::Invalid } else { op } })
}

fn bound(r: &Reader<'_>, values: &[Str]) -> Option<i64> {
    let [value] = values else {
        r.error_in("values", "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'");
        return None;
    };
    let bound = parse_label_integer(value);
    if bound.is_none() {
        r.warn_in("values", format!("the term matches no node: {}", invalid(value, "must be an integer")));
    }
    bound
}

fn node_field(r: &Reader<'_>) -> Option<NodeRequirement> {
    r.known(&near_miss::REQUIREMENT);
    let key = r.required_str("key");
    if !key.is_empty() && &*key != NODE_NAME_FIELD {
        r.error_in("key", invalid(&key, "not a valid field selector key"));
    }
    let operator = r.text("operator");
    let values = r.texts("values");
    let op = match operator {
        Some("In") => NodeOperator::In(values),
        Some("NotIn") => NodeOperator::NotIn(values),
        other => {
            unknown_operator(r, other);
            return None;
        }
    };
    if let NodeOperator::In(values) | NodeOperator::NotIn(values) = &op
        && values.len() != 1
    {
        r.error_in(
            "values",
            "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        );
    }
    Some(NodeRequirement { key, op })
}
