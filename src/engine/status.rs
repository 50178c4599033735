//! Why a node, or the whole pod, was refused: typed, with numbers, and with upstream's texts.

use std::fmt;

use smallvec::SmallVec;

use super::legacy_reason::LegacyReason;
use super::volume_reason::VolumeReason;
use crate::model::{Effect, Str};

/// Upstream's status codes for a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Evicting pods from the node could help.
    Unschedulable,
    /// Nothing that preemption can do would help.
    UnschedulableAndUnresolvable,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
        }
    }
}

/// One reason; `Display` gives upstream's text (spec section 11).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    NodeUnschedulable,
    NodeName,
    /// The first taint that nothing tolerates. Upstream's text doesn't name it.
    UntoleratedTaint {
        key: Str,
        value: Str,
        effect: Effect,
    },
    NodeAffinity,
    EnforcedNodeAffinity,
    PodAffinityConflict,
    /// The first wanted port that is taken.
    PortConflict {
        ip: Str,
        protocol: Str,
        port: u16,
    },
    TooManyPods {
        /// Pods on the node and how many it takes.
        pods: i64,
        allowed: i64,
    },
    /// Units are thousandths for cpu, bytes for memory and storage, whole units else.
    InsufficientResource {
        resource: Str,
        requested: i64,
        /// What is left; negative on an over-committed node.
        free: i64,
        allocatable: i64,
    },
    TopologySpread {
        topology_key: Str,
        /// What the skew would become.
        skew: i64,
        max_skew: i32,
    },
    TopologySpreadMissingLabel {
        topology_key: Str,
    },
    Volume(VolumeReason),
    /// A predicate of a Policy file that is no plugin any more.
    Legacy(LegacyReason),
    /// Features that the pod needs and the node doesn't declare, sorted.
    MissingFeatures(Vec<&'static str>),
    /// The first required affinity term that finds no pod in the node's domain.
    PodAffinity {
        topology_key: Str,
        /// The node's value of the key; None when it lacks the label.
        domain: Option<Str>,
    },
    /// The first own anti-affinity term that finds pods in the node's domain, and how many.
    PodAntiAffinity {
        topology_key: Str,
        domain: Str,
        pods: i64,
    },
    /// Pods in the node's domain whose anti-affinity forbids this pod there; one with several such terms counts for each.
    ExistingPodsAntiAffinity {
        topology_key: Str,
        domain: Str,
        pods: i64,
    },
    SchedulingGates(Vec<Str>),
    /// PreFilter left no node, or not this one: the plugins that narrowed the list, sorted.
    NotAmongNodesOf(Vec<&'static str>),
    /// No pod on the node has a lower priority.
    NoPreemptionVictims,
    PreemptionNotHelpful,
    /// As [`Self::NotAmongNodesOf`], where the plugins' nodes have nothing in common.
    NoNodeOf(Vec<&'static str>),
}

impl Reason {
    /// Whether both have the same text; the numbers may differ.
    pub fn same_text(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InsufficientResource { resource: a, .. }, Self::InsufficientResource { resource: b, .. }) => a == b,
            (
                Self::SchedulingGates(_) | Self::NotAmongNodesOf(_) | Self::NoNodeOf(_),
                Self::SchedulingGates(_) | Self::NotAmongNodesOf(_) | Self::NoNodeOf(_),
            ) => self == other,
            (Self::Volume(a), Self::Volume(b)) => a.same_text(b),
            (Self::Legacy(a), Self::Legacy(b)) => a.same_text(b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeUnschedulable => f.write_str("node(s) were unschedulable"),
            Self::NodeName => f.write_str("node(s) didn't match the requested node name"),
            Self::UntoleratedTaint { .. } => f.write_str("node(s) had untolerated taint(s)"),
            Self::NodeAffinity => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::EnforcedNodeAffinity => f.write_str("node(s) didn't match scheduler-enforced node affinity"),
            Self::PodAffinityConflict => f.write_str("pod affinity terms conflict"),
            Self::PortConflict { .. } => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Self::TooManyPods { .. } => f.write_str("Too many pods"),
            Self::InsufficientResource { resource, .. } => write!(f, "Insufficient {resource}"),
            Self::TopologySpread { .. } => f.write_str("node(s) didn't match pod topology spread constraints"),
            Self::TopologySpreadMissingLabel { .. } => {
                f.write_str("node(s) didn't match pod topology spread constraints (missing required label)")
            }
            Self::Volume(reason) => reason.fmt(f),
            Self::Legacy(reason) => reason.fmt(f),
            Self::MissingFeatures(_) => f.write_str("node(s) didn't match Pod's required features"),
            Self::PodAffinity { .. } => f.write_str("node(s) didn't match pod affinity rules"),
            Self::PodAntiAffinity { .. } => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Self::ExistingPodsAntiAffinity { .. } => {
                f.write_str("node(s) didn't satisfy existing pods anti-affinity rules")
            }
            Self::SchedulingGates(gates) => write!(f, "waiting for scheduling gates: [{}]", gates.join(" ")),
            Self::NoPreemptionVictims => f.write_str("No preemption victims found for incoming pod"),
            Self::PreemptionNotHelpful => f.write_str("Preemption is not helpful for scheduling"),
            Self::NotAmongNodesOf(plugins) => {
                write!(f, "node(s) didn't satisfy plugin(s) [{}]", plugins.join(" "))
            }
            Self::NoNodeOf(plugins) => match plugins.as_slice() {
                [one] => write!(f, "node(s) didn't satisfy plugin {one}"),
                many => write!(f, "node(s) didn't satisfy plugin(s) [{}] simultaneously", many.join(" ")),
            },
        }
    }
}

/// A plugin's refusal. All its reasons are kept, also several of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub plugin: &'static str,
    pub code: Code,
    pub reasons: SmallVec<[Reason; 1]>,
}

impl Rejection {
    /// Preemption could help.
    pub fn resolvable(plugin: &'static str, reason: Reason) -> Self {
        Self { plugin, code: Code::Unschedulable, reasons: smallvec::smallvec![reason] }
    }

    /// Preemption can't help.
    pub fn unresolvable(plugin: &'static str, reason: Reason) -> Self {
        Self { plugin, code: Code::UnschedulableAndUnresolvable, reasons: smallvec::smallvec![reason] }
    }

    /// This refusal with the reasons of a later one, where a node reports them all. Nothing resolves it unless both can be.
    #[must_use]
    pub fn and(mut self, later: Self) -> Self {
        self.code = self.code.max(later.code);
        for reason in later.reasons {
            // Two rules may say the same, and a node counts once for each text.
            if !self.reasons.iter().any(|r| r.same_text(&reason)) {
                self.reasons.push(reason);
            }
        }
        self
    }

    /// The reasons joined as upstream's `Status.Message()`.
    pub fn message(&self) -> String {
        self.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}
