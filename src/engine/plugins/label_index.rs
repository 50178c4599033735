//! Finds, for a node, those of many items that may want nodes with its labels.
//!
//! Local volumes and local capacity come one per node, and a pod may state thousands of node affinity terms: trying each on
//! each of thousands of nodes would cost millions of selector matches a decision. So items are filed under label pairs of which a fitting node must have one.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::model::node_selector::NodeOperator;
use crate::model::selector::Operator;
use crate::model::{LabelSelector, Labels, NodeSelector, NodeSelectorTerm};

/// Label pairs of which a node must have one; None: nothing of the kind can be said.
pub(super) type Pairs<'a> = Option<SmallVec<[(&'a str, &'a str); 1]>>;

type ByValue<'a> = FxHashMap<&'a str, SmallVec<[usize; 1]>>;

/// Items by their place in a list that their holder keeps.
#[derive(Debug, Default)]
pub(super) struct LabelIndex<'a> {
    by_key: FxHashMap<&'a str, ByValue<'a>>,
    anywhere: Vec<usize>,
}

impl<'a> LabelIndex<'a> {
    /// `pairs` by item, in order.
    pub(super) fn new(pairs: impl Iterator<Item = Pairs<'a>>) -> Self {
        let mut index = Self::default();
        for (item, pairs) in pairs.enumerate() {
            let Some(pairs) = pairs else {
                index.anywhere.push(item);
                continue;
            };
            for (key, value) in pairs {
                let items = index.by_key.entry(key).or_default().entry(value).or_default();
                if items.last() != Some(&item) {
                    items.push(item);
                }
            }
        }
        index
    }

    /// The lists of items that may want a node with these labels, in no particular order; each is in the items' order, and
    /// no item is in two, unless it was filed under several keys.
    fn lists(&self, labels: &Labels) -> impl Iterator<Item = &[usize]> {
        // Whichever are fewer.
        let by_labels = labels.len() < self.by_key.len();
        let some_keys = (!by_labels).then_some(&self.by_key).into_iter().flatten();
        let of_keys = some_keys.filter_map(|(key, values)| values.get(&**labels.get(key)?));
        let some_labels = by_labels.then(|| labels.iter()).into_iter().flatten();
        let of_labels = some_labels.filter_map(|(key, value)| self.by_key.get(&**key)?.get(&**value));
        of_keys.chain(of_labels).map(|items| &**items).chain(std::iter::once(&*self.anywhere))
    }

    /// The items that may want a node with these labels.
    pub(super) fn each(&self, labels: &Labels) -> impl Iterator<Item = usize> {
        self.lists(labels).flatten().copied()
    }

    /// The first item, in the order of the list, that may want a node with these labels and that is accepted.
    pub(super) fn first(&self, labels: &Labels, accept: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<usize> = None;
        for items in self.lists(labels) {
            let before = items.iter().copied().take_while(|item| best.is_none_or(|best| *item < best));
            if let Some(item) = before.into_iter().find(|item| accept(*item)) {
                best = Some(item);
            }
        }
        best
    }
}

/// The pairs of a term: its `In` expression with the fewest values.
pub(super) fn pairs_of_term(term: &NodeSelectorTerm) -> Pairs<'_> {
    let listed = term.expressions.iter().filter_map(|e| match &e.op {
        NodeOperator::In(values) => Some((&e.key, values)),
        _ => None,
    });
    let (key, values) = listed.min_by_key(|(_, values)| values.len())?;
    Some(values.iter().map(|value| (&**key, &**value)).collect())
}

/// The pairs of a node selector: of each term the `In` expression with the fewest values.
pub(super) fn pairs_of_terms(selector: Option<&NodeSelector>) -> Pairs<'_> {
    let mut pairs = SmallVec::new();
    for term in &selector?.terms {
        pairs.extend(pairs_of_term(term)?);
    }
    Some(pairs)
}

/// The same of a label selector.
pub(super) fn pairs_of_labels(selector: &LabelSelector) -> Pairs<'_> {
    let LabelSelector::Requirements(list) = selector else { return Some(smallvec![]) };
    let listed = list.iter().filter_map(|r| match &r.op {
        Operator::In(values) => Some((&r.key, values)),
        _ => None,
    });
    let (key, values) = listed.min_by_key(|(_, values)| values.len())?;
    Some(values.iter().map(|value| (&**key, &**value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing_storage::node_terms;

    #[test]
    fn the_first_accepted_item_wins_wherever_it_is_filed() {
        let terms = [node_terms("host", &["n2"]), node_terms("zone", &["a", "b"]), node_terms("host", &["n1"])];
        let [n2, zone, n1] = terms.each_ref().map(|terms| pairs_of_terms(Some(terms)));
        let index = LabelIndex::new([n2, zone, None, n1].into_iter());
        let labels: Labels = [("host", "n1"), ("zone", "b")].into_iter().collect();
        assert_eq!(index.first(&labels, |_| true), Some(1));
        assert_eq!(index.first(&labels, |item| item != 1), Some(2));
        assert_eq!(index.first(&labels, |item| item > 2), Some(3));
        assert_eq!(index.first(&labels, |item| item == 0), None);
    }

    #[test]
    fn a_selector_without_a_list_of_values_may_want_any_node() {
        assert_eq!(pairs_of_terms(None), None);
        assert_eq!(pairs_of_labels(&LabelSelector::everything()), None);
        assert_eq!(pairs_of_labels(&LabelSelector::Nothing), Some(smallvec![]));
        assert_eq!(pairs_of_terms(Some(&NodeSelector::default())), Some(smallvec![]));
    }
}
