//! Label selectors in their one-line form (`pool=apps,tier in (a,b),!spot`), as policies select nodes with.

use crate::model::node_selector::NodeRequirement;
use crate::model::{Labels, NodeSelectorTerm};

/// All requirements must hold; without any it matches everything. Unlike a `LabelSelector` it also compares numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LabelQuery {
    term: NodeSelectorTerm,
}

impl LabelQuery {
    pub fn new(requirements: Vec<NodeRequirement>) -> Self {
        Self { term: NodeSelectorTerm { expressions: requirements, fields: Vec::new() } }
    }

    pub fn requirements(&self) -> &[NodeRequirement] {
        &self.term.expressions
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.term.expressions.is_empty() || self.term.matches("", labels)
    }
}
