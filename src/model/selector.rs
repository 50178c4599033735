//! Label selectors (`metav1.LabelSelector`), as used for pods and namespaces.

use super::{Labels, Str};

/// A selector after defaulting. A null selector of the API is [`LabelSelector::Nothing`]; an empty one matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum LabelSelector {
    /// Matches no object.
    #[default]
    Nothing,
    /// All must hold; an empty list matches every object. Kept sorted, so that equal selectors are equal values.
    Requirements(Vec<Requirement>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    pub key: Str,
    pub op: Operator,
}

/// Values are kept sorted and without repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    In(Vec<Str>),
    /// Also matches objects without the key.
    NotIn(Vec<Str>),
    Exists,
    DoesNotExist,
}

impl Requirement {
    pub fn equals(key: Str, value: Str) -> Self {
        Self { key, op: Operator::In(vec![value]) }
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.op {
            Operator::In(values) => value.is_some_and(|v| contains(values, v)),
            Operator::NotIn(values) => !value.is_some_and(|v| contains(values, v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// Values are sorted; of a few, looking at each is the fastest.
fn contains(values: &[Str], value: &Str) -> bool {
    if values.len() <= 8 { values.contains(value) } else { values.binary_search(value).is_ok() }
}

impl LabelSelector {
    pub fn everything() -> Self {
        Self::Requirements(Vec::new())
    }

    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut list: Vec<Requirement> = requirements.into_iter().collect();
        for requirement in &mut list {
            if let Operator::In(values) | Operator::NotIn(values) = &mut requirement.op {
                values.sort();
                values.dedup();
            }
        }
        list.sort();
        list.dedup();
        Self::Requirements(list)
    }

    /// The selector that asks for each of these pairs (a Service's or ReplicationController's `selector` map).
    pub fn from_map(pairs: &Labels) -> Self {
        Self::new(pairs.iter().map(|(k, v)| Requirement::equals(k.clone(), v.clone())))
    }

    /// This selector and the further requirements. Nothing stays nothing.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = Requirement>) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Requirements(list) => Self::new(list.iter().cloned().chain(more)),
        }
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::Requirements(list) => list.iter().all(|r| r.matches(labels)),
        }
    }

    /// `{}`: no requirement at all. Topology spread counts no pods for it (spec 4.10).
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::Requirements(list) if list.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    fn requirement(key: &str, op: Operator) -> Requirement {
        Requirement { key: key.into(), op }
    }

    #[test]
    fn null_selects_nothing_and_empty_selects_everything() {
        assert!(!LabelSelector::Nothing.matches(&labels(&[])));
        assert!(LabelSelector::everything().matches(&labels(&[("a", "b")])));
        assert_eq!(LabelSelector::Nothing.and([Requirement::equals("a".into(), "b".into())]), LabelSelector::Nothing);
    }

    #[test]
    fn negative_operators_match_objects_without_the_key() {
        let not_in = LabelSelector::new([requirement("a", Operator::NotIn(vec!["x".into()]))]);
        assert!(
            not_in.matches(&labels(&[]))
                && not_in.matches(&labels(&[("a", "y")]))
                && !not_in.matches(&labels(&[("a", "x")]))
        );
        let absent = LabelSelector::new([requirement("a", Operator::DoesNotExist)]);
        assert!(absent.matches(&labels(&[])) && !absent.matches(&labels(&[("a", "y")])));
    }

    #[test]
    fn all_requirements_must_hold() {
        let both =
            LabelSelector::new([Requirement::equals("a".into(), "1".into()), requirement("b", Operator::Exists)]);
        assert!(both.matches(&labels(&[("a", "1"), ("b", "")])));
        assert!(!both.matches(&labels(&[("a", "1")])) && !both.matches(&labels(&[("b", "")])));
    }

    #[test]
    fn equal_selectors_are_equal_values_whatever_their_order() {
        let a = LabelSelector::new([
            requirement("a", Operator::In(vec!["2".into(), "1".into(), "2".into()])),
            requirement("b", Operator::Exists),
        ]);
        let b = LabelSelector::new([
            requirement("b", Operator::Exists),
            requirement("a", Operator::In(vec!["1".into(), "2".into()])),
        ]);
        assert_eq!(a, b);
    }
}
