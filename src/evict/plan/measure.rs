//! What a strategy wants less of: an amount over the whole cluster that is 0 when nothing is left to do.
//!
//! A tracker is made once a request and follows every move, whoever makes it. The moves of a plan lower the amounts in the
//! order of the strategies: each move lowers its own strategy's and raises none of those that run before. So no sequence of
//! moves, within a request or over several, can come back to where it was, and strategies can't fight each other.

use super::anti_affinity::AntiAffinity;
use super::duplicates::Duplicates;
use super::high::Packing;
use super::low::Load;
use super::rules::Violations;
use super::spread::Spread;
use super::stage::Move;
use crate::evict::outcome::NoGain;
use crate::evict::snapshot::Scene;

#[derive(Clone)]
pub(super) enum Tracker<'a> {
    Violations(Violations<'a>),
    AntiAffinity(AntiAffinity),
    Duplicates(Duplicates),
    Load(Load<'a>),
    Packing(Packing<'a>),
    Spread(Spread),
    /// A strategy that can't run.
    Failed,
}

impl Tracker<'_> {
    /// What is counted, in words.
    pub(super) fn metric(&self) -> &'static str {
        match self {
            Self::Violations(violations) => violations.metric(),
            Self::AntiAffinity(_) => "required anti-affinity that pods break",
            Self::Duplicates(_) => "pods over their node's share",
            Self::Load(_) => "load over target, in millionths of a node",
            Self::Packing(_) => "pods on underutilized nodes",
            Self::Spread(_) => "pods over the allowed skew",
            Self::Failed => "",
        }
    }

    pub(super) fn value(&self) -> i64 {
        match self {
            Self::Violations(violations) => violations.value(),
            Self::AntiAffinity(pairs) => pairs.value(),
            Self::Duplicates(duplicates) => duplicates.value(),
            Self::Load(load) => load.value(),
            Self::Packing(packing) => packing.value(),
            Self::Spread(spread) => spread.value(),
            Self::Failed => 0,
        }
    }

    /// By how much the amount would change; the scene is that before the move.
    pub(super) fn change(&self, scene: &Scene, moved: &Move) -> i64 {
        match self {
            Self::Violations(violations) => violations.change(scene, moved),
            Self::AntiAffinity(pairs) => pairs.change(moved),
            Self::Duplicates(duplicates) => duplicates.change(moved),
            Self::Load(load) => load.change(scene, moved),
            Self::Packing(packing) => packing.change(scene, moved),
            Self::Spread(spread) => spread.change(moved),
            Self::Failed => 0,
        }
    }

    /// The scene is that before the move.
    pub(super) fn apply(&mut self, scene: &Scene, moved: &Move) {
        match self {
            Self::Violations(violations) => violations.apply(scene, moved),
            Self::AntiAffinity(pairs) => pairs.apply(moved),
            Self::Duplicates(duplicates) => duplicates.apply(moved),
            Self::Load(load) => load.apply(scene, moved),
            Self::Packing(packing) => packing.apply(scene, moved),
            Self::Spread(spread) => spread.apply(moved),
            Self::Failed => {}
        }
    }

    /// What the strategy has against a landing of its own move, besides a lack of gain.
    pub(super) fn objection(&self, scene: &Scene, moved: &Move) -> Option<NoGain> {
        match self {
            Self::Load(load) => load.objection(scene, moved),
            Self::Packing(packing) => packing.objection(scene, moved),
            Self::Spread(spread) => spread.objection(moved),
            Self::Violations(violations) => violations.objection(scene, moved),
            Self::AntiAffinity(_) | Self::Duplicates(_) | Self::Failed => None,
        }
    }
}

/// Whether a pod counts as load and as a peer.
pub(super) fn is_active(pod: &crate::model::Pod) -> bool {
    !pod.is_terminal()
}
