//! Which pods a plugin looks at (spec 8.5).

use crate::model::{LabelSelector, Labels, Str};

/// `namespaces` of a plugin's arguments; upstream allows one of include and exclude.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Namespaces {
    #[default]
    All,
    Include(Vec<Str>),
    Exclude(Vec<Str>),
}

impl Namespaces {
    pub fn admits(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Include(names) => names.iter().any(|n| &**n == namespace),
            Self::Exclude(names) => !names.iter().any(|n| &**n == namespace),
        }
    }
}

/// `namespaces` and `labelSelector`, which most plugins have. Peers are limited by it too where they are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSelection {
    pub namespaces: Namespaces,
    /// None: pods of any labels.
    pub label_selector: Option<LabelSelector>,
}

impl PodSelection {
    pub fn admits(&self, namespace: &str, labels: &Labels) -> bool {
        self.namespaces.admits(namespace) && self.label_selector.as_ref().is_none_or(|s| s.matches(labels))
    }
}
