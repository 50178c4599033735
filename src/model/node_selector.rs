//! Node selectors (`v1.NodeSelector`): terms over node labels and fields (spec section 4.4).

use super::{Labels, Str};

/// At least one term must match; an empty list matches no node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSelector {
    pub terms: Vec<NodeSelectorTerm>,
}

/// All expressions and all fields must hold; a term without any matches no node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSelectorTerm {
    pub expressions: Vec<NodeRequirement>,
    pub fields: Vec<NodeRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRequirement {
    pub key: Str,
    pub op: NodeOperator,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeOperator {
    In(Vec<Str>),
    NotIn(Vec<Str>),
    Exists,
    DoesNotExist,
    Gt(i64),
    Lt(i64),
    /// Not a legal combination of operator and values. The API server refuses such objects and so does `manifest`;
    /// for one that comes by another way, its whole term never matches, as upstream.
    Invalid,
}

impl NodeOperator {
    fn matches(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|v| values.iter().any(|x| &**x == v)),
            Self::NotIn(values) => !value.is_some_and(|v| values.iter().any(|x| &**x == v)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Gt(bound) => value.and_then(parse_label_integer).is_some_and(|v| v > *bound),
            Self::Lt(bound) => value.and_then(parse_label_integer).is_some_and(|v| v < *bound),
            Self::Invalid => false,
        }
    }
}

/// An integer as Go's `ParseInt(s, 10, 64)` reads it: an optional sign and digits, leading zeros allowed.
pub fn parse_label_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The only field that node selectors can name.
pub const NODE_NAME_FIELD: &str = "metadata.name";

impl NodeSelectorTerm {
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        if self.expressions.is_empty() && self.fields.is_empty() {
            return false;
        }
        self.is_valid()
            && self.expressions.iter().all(|r| r.op.matches(labels.get(&r.key).map(|v| &**v)))
            // An unknown field reads as an empty string.
            && self.fields.iter().all(|r| r.op.matches(Some(if &*r.key == NODE_NAME_FIELD { name } else { "" })))
    }

    /// Whether every requirement is one that upstream's parser takes.
    pub fn is_valid(&self) -> bool {
        self.expressions.iter().all(|r| r.op != NodeOperator::Invalid)
            && self.fields.iter().all(|r| match &r.op {
                NodeOperator::In(values) | NodeOperator::NotIn(values) => values.len() == 1,
                _ => false,
            })
    }
}

impl NodeSelector {
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.terms.iter().any(|t| t.matches(name, labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(key: &str, op: NodeOperator) -> NodeSelectorTerm {
        NodeSelectorTerm { expressions: vec![NodeRequirement { key: key.into(), op }], fields: vec![] }
    }

    fn field(op: NodeOperator) -> NodeSelectorTerm {
        NodeSelectorTerm { expressions: vec![], fields: vec![NodeRequirement { key: NODE_NAME_FIELD.into(), op }] }
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    #[test]
    fn operators_on_absent_and_present_labels() {
        let values = || vec![Str::from("a"), Str::from("b")];
        for (op, absent, a, c) in [
            (NodeOperator::In(values()), false, true, false),
            (NodeOperator::NotIn(values()), true, false, true),
            (NodeOperator::Exists, false, true, true),
            (NodeOperator::DoesNotExist, true, false, false),
        ] {
            let term = expression("k", op.clone());
            assert_eq!(term.matches("n", &labels(&[])), absent, "{op:?} absent");
            assert_eq!(term.matches("n", &labels(&[("k", "a")])), a, "{op:?} a");
            assert_eq!(term.matches("n", &labels(&[("k", "c")])), c, "{op:?} c");
        }
    }

    #[test]
    fn gt_and_lt_compare_integers_only() {
        let gt = expression("k", NodeOperator::Gt(5));
        for (value, matches) in [
            ("6", true),
            ("5", false),
            ("+6", true),
            ("007", true),
            ("-7", false),
            ("6.5", false),
            ("abc", false),
            ("", false),
        ] {
            assert_eq!(gt.matches("n", &labels(&[("k", value)])), matches, "{value}");
        }
        assert!(!gt.matches("n", &labels(&[])));
        assert!(expression("k", NodeOperator::Lt(5)).matches("n", &labels(&[("k", "-7")])));
    }

    #[test]
    fn an_empty_term_and_an_empty_list_match_no_node() {
        assert!(!NodeSelectorTerm::default().matches("n", &labels(&[])));
        assert!(!NodeSelector::default().matches("n", &labels(&[])));
    }

    #[test]
    fn an_invalid_term_never_matches_but_others_are_tried() {
        let mut invalid = expression("k", NodeOperator::Invalid);
        invalid.expressions.push(NodeRequirement { key: "x".into(), op: NodeOperator::DoesNotExist });
        let selector = NodeSelector { terms: vec![invalid, expression("k", NodeOperator::Exists)] };
        assert!(selector.matches("n", &labels(&[("k", "")])) && !selector.matches("n", &labels(&[])));
    }

    #[test]
    fn fields_take_exactly_one_name() {
        assert!(field(NodeOperator::In(vec!["n".into()])).matches("n", &labels(&[])));
        assert!(field(NodeOperator::NotIn(vec!["m".into()])).matches("n", &labels(&[])));
        assert!(!field(NodeOperator::In(vec!["n".into(), "m".into()])).matches("n", &labels(&[])));
        assert!(!field(NodeOperator::Exists).matches("n", &labels(&[])));
    }
}
