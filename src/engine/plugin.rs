//! What a plugin is.
//!
//! A plugin object lives as long as its profile and holds its arguments. For each pod it prepares a filter and a scorer of
//! its own, which hold what upstream keeps in the cycle state; `Skip` is upstream's Skip. Prepared objects read the nodes
//! that they judge through the rows they are handed, never through the view they were prepared on, so that they can judge a
//! fork too, in which pods come and go and nodes are the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::cost::{Share, Sizes};
use super::events::EventSet;
use super::profile::Profile;
use super::status::Rejection;
use super::topology::Topology;
use crate::cluster::counting::Counting;
use crate::cluster::counts::{CountKey, Counts};
use crate::cluster::{Cancel, NodeRow, PodInfo, View, VolumeBinding};
use crate::model::requests::{self, Amounts};
use crate::model::{Pod, Str};

/// A pod to place, with what several plugins need of it worked out once.
#[derive(Debug, Clone)]
pub struct IncomingPod<'a> {
    pub pod: &'a Pod,
    /// What the NodeResourcesFit filter compares.
    pub filter_requests: Amounts,
    /// What the NodeResourcesFit scorers add.
    pub fit_score_requests: Amounts,
    /// What the pod would add to its node's books.
    pub in_force: Amounts,
}

impl<'a> IncomingPod<'a> {
    pub fn new(pod: &'a Pod) -> Self {
        Self {
            pod,
            filter_requests: requests::for_filter(pod),
            fit_score_requests: requests::for_fit_score(pod),
            in_force: requests::in_force(pod),
        }
    }
}

/// One decision's inputs, and what its plugins share.
pub struct Cycle<'a> {
    pub view: &'a View,
    pub pod: &'a IncomingPod<'a>,
    pub profile: &'a Profile,
    /// Looked at in every loop over what the pod or the cluster brings along. A plugin that stops early may answer anything.
    pub cancel: Cancel<'a>,
    topologies: RefCell<BTreeMap<Str, Arc<Topology>>>,
    counting: RefCell<Counting<'a>>,
}

impl<'a> Cycle<'a> {
    pub fn new(view: &'a View, pod: &'a IncomingPod<'a>, profile: &'a Profile, cancel: Cancel<'a>) -> Self {
        let counting = RefCell::new(Counting::new(view, cancel));
        Self { view, pod, profile, cancel, topologies: RefCell::default(), counting }
    }

    /// The domains of a topology key, the same ones for all plugins.
    pub(crate) fn topology(&self, key: &Str) -> Arc<Topology> {
        let mut known = self.topologies.borrow_mut();
        if let Some(topology) = known.get(key) {
            return topology.clone();
        }
        known.entry(key.clone()).or_insert(Arc::new(Topology::new(self.view, key.clone()))).clone()
    }

    /// The counts of a key: those that are kept, else made on the spot.
    pub fn counts(&self, key: &CountKey) -> Counts<'a> {
        self.counting.borrow_mut().counts(key)
    }
}

/// A plugin by its upstream name. It takes part in the phases whose methods it gives.
pub trait Plugin: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Whether the pod may be scheduled at all yet.
    fn pre_enqueue(&self, _pod: &Pod) -> Option<Rejection> {
        None
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        None
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        None
    }

    /// The kinds of change that can end a refusal by this plugin (upstream's EventsToRegister): all there are, for one that
    /// says nothing. Whoever leaves one out lets pods wait for ever.
    fn events(&self) -> EventSet {
        EventSet::ALL
    }

    /// Whether it judges a node by its object, its pods and the pods nominated to it alone: nothing that happens elsewhere
    /// changes its mind.
    fn judges_alone(&self) -> bool {
        false
    }

    /// What it adds to the cost of a decision: for one that says nothing, a check a node.
    fn cost(&self, _sizes: &Sizes<'_>) -> Share {
        Share::a_node(u64::from(self.filter().is_some()), u64::from(self.score().is_some()))
    }

    /// The selector counts it will read for this pod: whoever owns the view may keep them (see `Writer::watch`).
    fn count_keys(&self, _view: &View, _pod: &Pod, _profile: &Profile) -> Vec<CountKey> {
        Vec::new()
    }
}

pub trait FilterPlugin {
    /// Whether the plugin has a PreFilter upstream. If not, it is prepared when its turn comes among the filters.
    fn has_pre_filter(&self) -> bool {
        true
    }

    /// Upstream's PreFilter.
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a>;
}

/// What a plugin says of a pod before it sees single nodes.
pub enum PreFilter<'a> {
    /// Nothing to check for this pod.
    Skip,
    /// The pod fits nowhere.
    Reject(Rejection),
    Filter(Box<dyn NodeFilter + 'a>),
    /// There can be no decision on this pod: an object that it needs is no legal one.
    Error(String),
    /// Only nodes with these names come into question.
    Narrow(Vec<Str>, Box<dyn NodeFilter + 'a>),
}

/// Judges nodes for one pod.
pub trait NodeFilter: Send + Sync {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection>;

    /// How the pod's unbound claims get their volumes if this node is chosen. Asked of the chosen node only.
    fn bindings(&self, _node: &NodeRow<'_>) -> Vec<VolumeBinding> {
        Vec::new()
    }

    /// Whether [`Self::check`] passes, for callers that don't ask why not.
    fn passes(&self, node: &NodeRow<'_>) -> bool {
        self.check(node).is_ok()
    }

    /// Pods will come and go, and whoever lets them can't wait: what telling of the first one takes is to be done now.
    fn expect_changes(&mut self) {}

    /// A pod was put on a node of the fork that is being judged (upstream's AddPod).
    fn pod_added(&mut self, _node: &NodeRow<'_>, _pod: &PodInfo) {}

    /// A pod was taken off a node of the fork that is being judged (upstream's RemovePod).
    fn pod_removed(&mut self, _node: &NodeRow<'_>, _pod: &PodInfo) {}
}

pub trait ScorePlugin {
    /// Upstream's PreScore; `feasible` are the nodes that will be scored.
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, feasible: &[NodeRow<'a>]) -> PreScore<'a>;
}

pub enum PreScore<'a> {
    /// Contributes 0 to every node.
    Skip,
    Score(Box<dyn NodeScore + 'a>),
}

/// Scores nodes for one pod.
pub trait NodeScore: Send + Sync {
    /// The raw score.
    fn score(&self, node: &NodeRow<'_>) -> i64;

    /// Brings raw scores to 0..=100; `scores[i]` belongs to `feasible[i]`. By default they are left alone.
    fn normalize(&self, _feasible: &[NodeRow<'_>], _scores: &mut [i64]) {}
}

/// The best score a plugin gives.
pub const MAX_SCORE: i64 = 100;

/// Upstream's default normalisation: the highest score becomes 100 (or 0 when reversed), the others follow in proportion.
pub fn default_normalize(scores: &mut [i64], reversed: bool) {
    let max = scores.iter().copied().max().unwrap_or(0).max(0);
    if max == 0 {
        if reversed {
            scores.fill(MAX_SCORE);
        }
        return;
    }
    for score in scores {
        let scaled = MAX_SCORE * *score / max;
        *score = if reversed { MAX_SCORE - scaled } else { scaled };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reversed_normalisation_of_equal_zeros_gives_the_best_score() {
        let mut scores = [0, 0];
        default_normalize(&mut scores, true);
        assert_eq!(scores, [100, 100]);
        default_normalize(&mut [], true);
    }

    #[test]
    fn normalisation_scales_to_the_highest() {
        let mut scores = [1, 2, 3];
        default_normalize(&mut scores, true);
        assert_eq!(scores, [67, 34, 0]);
        let mut scores = [0, 5, 10];
        default_normalize(&mut scores, false);
        assert_eq!(scores, [0, 50, 100]);
    }
}
