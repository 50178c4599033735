//! What is asked of a decision and what comes back, whatever the transport.

use std::sync::Arc;

use super::preempt::PreemptionAnswer;
use crate::cluster::VolumeBinding;
use crate::cluster::reservation::{Basis, Reservation};
use crate::engine::{Override, Waiting};
use crate::manifest::Warning;
use crate::model::{Pod, Str, Time};
use crate::service::ViewInfo;
use crate::service::explain::{DetailLevel, Explanation};

#[derive(Debug, Clone)]
pub struct Request {
    pub pod: Pod,
    /// Remarks from reading the pod; the answer repeats them.
    pub warnings: Vec<Warning>,
    /// None: the pod's `schedulerName`.
    pub profile: Option<String>,
    /// Changes to the profile for this request alone.
    pub overrides: Override,
    /// Take no room.
    pub dry_run: bool,
    /// The only nodes to consider; empty: all.
    pub candidates: Vec<String>,
    /// In microseconds; None: [`DEFAULT_TTL_SECS`].
    pub ttl_micros: Option<i64>,
    pub min_revision: Option<u64>,
    /// Empty: any.
    pub incarnation: String,
    pub detail: DetailLevel,
    /// Record the node that preemption proposes, so that the next decisions leave its room.
    pub nominate: bool,
    /// How long, in microseconds; None: [`DEFAULT_NOMINATION_SECS`].
    pub nomination_ttl_micros: Option<i64>,
}

impl Request {
    pub fn new(pod: Pod) -> Self {
        Self {
            pod,
            warnings: Vec::new(),
            profile: None,
            overrides: Override::default(),
            dry_run: false,
            candidates: Vec::new(),
            ttl_micros: None,
            min_revision: None,
            incarnation: String::new(),
            detail: DetailLevel::default(),
            nominate: false,
            nomination_ttl_micros: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub verdict: Verdict,
    /// For a placed pod: how its unbound claims get their volumes. A reservation holds them.
    pub bindings: Vec<VolumeBinding>,
    pub pod: Arc<Pod>,
    /// Where the pod's earlier reservation was, if this decision gave it up.
    pub previous_node: Option<Str>,
    /// The hold of an eviction plan that the pod took, or in a dry run would take. It has ended even if the pod went elsewhere.
    pub hold_taken: Option<Str>,
    /// `0/5 nodes are available: ...`; empty for a placed pod.
    pub fit_message: String,
    /// The whole text of upstream's event.
    pub message: String,
    /// What preemption can do for a pod that fits nowhere.
    pub preemption: Option<PreemptionAnswer>,
    /// For a pod that was refused, or has gates: what may change that.
    pub waiting: Option<Waiting>,
    /// As much of the way as was asked for.
    pub explanation: Explanation,
    pub nodes_evaluated: usize,
    pub feasible_nodes: usize,
    pub profile: Str,
    pub view: ViewInfo,
    pub warnings: Vec<Warning>,
    /// How much was asked for.
    pub detail: DetailLevel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Placed {
        node: Str,
        score: i64,
        /// None in a dry run.
        reservation: Option<Held>,
    },
    Unschedulable,
    AlreadyBound {
        node: Str,
    },
    Gated,
    /// The features that Berth can't judge.
    Unsupported(Vec<String>),
}

/// A verdict without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerdictKind {
    Placed,
    Unschedulable,
    AlreadyBound,
    Gated,
    Unsupported,
}

/// What a client needs to know of its reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub id: Str,
    pub node: Str,
    pub created: Time,
    pub expires: Time,
    pub basis: Basis,
}

impl From<&Reservation> for Held {
    fn from(r: &Reservation) -> Self {
        let basis = r.basis.clone();
        Self { id: r.id.clone(), node: r.node().clone(), created: r.created, expires: r.expires, basis }
    }
}

impl Verdict {
    pub fn kind(&self) -> VerdictKind {
        match self {
            Self::Placed { .. } => VerdictKind::Placed,
            Self::Unschedulable => VerdictKind::Unschedulable,
            Self::AlreadyBound { .. } => VerdictKind::AlreadyBound,
            Self::Gated => VerdictKind::Gated,
            Self::Unsupported(_) => VerdictKind::Unsupported,
        }
    }

    pub fn as_str(&self) -> &'static str {
        match self.kind() {
            VerdictKind::Placed => "placed",
            VerdictKind::Unschedulable => "unschedulable",
            VerdictKind::AlreadyBound => "already_bound",
            VerdictKind::Gated => "gated",
            VerdictKind::Unsupported => "unsupported",
        }
    }

    pub fn node(&self) -> Option<&Str> {
        match self {
            Self::Placed { node, .. } | Self::AlreadyBound { node } => Some(node),
            Self::Unschedulable | Self::Gated | Self::Unsupported(_) => None,
        }
    }
}
