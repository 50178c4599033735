//! What constraints ask of nodes, looked up once a node however many constraints ask: which domain of a key it is in,
//! whether it has all keys, whether an inclusion policy lets it count.

use std::sync::Arc;

use super::{Constraint, includes};
use crate::cluster::{Cancel, Ordinal, View};
use crate::engine::plugins::node_affinity::Required;
use crate::engine::topology::{NONE, Topology};
use crate::model::{Pod, Str};

/// Nobody has asked yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// Answers by ordinal; a node that isn't there is in no domain and isn't included.
pub(super) struct Facts<'a> {
    view: &'a View,
    pod: &'a Pod,
    required: Required<'a>,
    cancel: Cancel<'a>,
    /// Distinct keys, in the order in which constraints name them.
    keys: Vec<Key>,
    /// By constraint.
    key_of: Vec<usize>,
    has_all: Vec<Option<bool>>,
    /// By policy (see [`policy`]).
    included: [Vec<Option<bool>>; 4],
}

struct Key {
    topology: Arc<Topology>,
    /// Only whether the node has the label is of interest, not how many others share the value: all are in domain 0.
    presence_only: bool,
    domains: Vec<u32>,
}

/// The number of a constraint's pair of inclusion policies.
pub(super) fn policy(constraint: &Constraint) -> usize {
    usize::from(constraint.honor_affinity) * 2 + usize::from(constraint.honor_taints)
}

impl<'a> Facts<'a> {
    /// `topology` finds or makes the domains of a key. What is said of `presence_only` keys is only whether a node has them.
    pub(super) fn new(
        (view, pod, cancel): (&'a View, &'a Pod, Cancel<'a>),
        constraints: &[Constraint],
        topology: impl Fn(&Str) -> Arc<Topology>,
        presence_only: impl Fn(&Str) -> bool,
    ) -> Self {
        let end = view.ordinals_end();
        let mut keys: Vec<Key> = Vec::new();
        let mut numbers = rustc_hash::FxHashMap::default();
        let mut key_of = Vec::with_capacity(constraints.len());
        for constraint in cancel.guard(constraints) {
            let number = *numbers.entry(&constraint.key).or_insert(keys.len());
            if number == keys.len() {
                keys.push(Key {
                    topology: topology(&constraint.key),
                    presence_only: presence_only(&constraint.key),
                    domains: vec![UNKNOWN; end],
                });
            }
            key_of.push(number);
        }
        Self {
            view,
            pod,
            required: Required::new(pod, cancel),
            cancel,
            keys,
            key_of,
            has_all: vec![None; end],
            included: std::array::from_fn(|_| Vec::new()),
        }
    }

    pub(super) fn inputs(&self) -> (&'a View, &'a Pod, Cancel<'a>) {
        (self.view, self.pod, self.cancel)
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The number of a constraint's key.
    pub(super) fn key_of(&self, constraint: usize) -> usize {
        self.key_of[constraint]
    }

    pub(super) fn topology(&self, key: usize) -> &Arc<Topology> {
        &self.keys[key].topology
    }

    /// The domain of a node, or [`NONE`].
    pub(super) fn domain(&mut self, key: usize, ordinal: Ordinal) -> u32 {
        let Key { topology, presence_only, domains } = &mut self.keys[key];
        let Some(cell) = domains.get_mut(ordinal.index()) else { return NONE };
        if *cell == UNKNOWN {
            let row = self.view.node(ordinal);
            let domain = row.and_then(|row| match presence_only {
                true => topology.value(&row).map(|_| 0),
                false => topology.domain(&row).and_then(|domain| u32::try_from(domain).ok()),
            });
            *cell = domain.unwrap_or(NONE);
        }
        *cell
    }

    /// Whether a node carries every constraint's key.
    pub(super) fn has_all_keys(&mut self, ordinal: Ordinal) -> bool {
        match self.has_all.get(ordinal.index()) {
            None => false,
            Some(Some(known)) => *known,
            Some(None) => {
                let has_all = (0..self.keys.len()).all(|key| self.domain(key, ordinal) != NONE);
                self.has_all[ordinal.index()] = Some(has_all);
                has_all
            }
        }
    }

    /// Whether a node takes part in counting by the inclusion policies.
    pub(super) fn includes(&mut self, constraint: &Constraint, ordinal: Ordinal) -> bool {
        let known = &mut self.included[policy(constraint)];
        if known.is_empty() {
            known.resize(self.has_all.len(), None);
        }
        let Some(cell) = known.get_mut(ordinal.index()) else { return false };
        *cell.get_or_insert_with(|| {
            let row = self.view.node(ordinal);
            row.is_some_and(|row| includes(constraint, row.node(), &self.required, self.pod, self.cancel))
        })
    }
}
