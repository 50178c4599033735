//! Why a strategy wants a pod to go.

use std::fmt;

use crate::model::{Effect, Str};

/// The rule that a pod falls under, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// RemoveDuplicates: more pods of this owner than the node's share.
    Duplicate { owner: Str, on_node: usize, share: usize },
    /// LowNodeUtilization: the node is over target for the resource.
    Overutilized { resource: Str, percent: Percent, target: Percent },
    /// HighNodeUtilization: the node is under every threshold.
    Underutilized,
    /// RemovePodsViolatingInterPodAntiAffinity: the pod's own term and the pod that it speaks of.
    AntiAffinity { peer: Str, topology_key: Str },
    /// RemovePodsViolatingNodeAffinity, required terms.
    RequiredNodeAffinity,
    /// RemovePodsViolatingNodeAffinity, preferred terms: weights here and on the node preferred most.
    PreferredNodeAffinity { here: i64, best: i64, node: Str },
    /// RemovePodsViolatingNodeTaints, RemovePodsViolatingNoExecuteTaints: a taint that isn't tolerated.
    Taint { key: Str, value: Str, effect: Effect },
    /// RemovePodsViolatingNoExecuteTaints: a taint that is tolerated for some seconds only.
    TolerationEnds { key: Str, value: Str, seconds: i64 },
    /// RemovePodsViolatingTopologySpreadConstraint.
    Spread { topology_key: Str, domain: Str, skew: usize, max_skew: i32 },
    /// RemovePodsHavingTooManyRestarts.
    Restarts { restarts: i64, threshold: i64 },
    /// PodLifeTime; the age in seconds, if the pod has a creation time.
    LifeTime { age: Option<i64> },
    /// RemoveFailedPods; what the pod's status says.
    Failed { reason: Str },
}

/// A percentage that compares, in hundredths of a per cent, rounded for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(i64);

impl Percent {
    #[allow(clippy::cast_possible_truncation, reason = "a percentage for people; casts of floats saturate")]
    pub fn of(percent: f64) -> Self {
        Self((percent * 100.0).round() as i64)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 100, self.0 % 100);
        if rest == 0 { write!(f, "{whole}%") } else { write!(f, "{whole}.{rest:02}%") }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { owner, on_node, share } => {
                write!(f, "{on_node} pods of {owner} are on the node, its share is {share}")
            }
            Self::Overutilized { resource, percent, target } => {
                write!(f, "node is overutilized: {resource} at {percent}, target {target}")
            }
            Self::Underutilized => f.write_str("node is underutilized"),
            Self::AntiAffinity { peer, topology_key } => {
                write!(f, "required anti-affinity over {topology_key} excludes {peer}")
            }
            Self::RequiredNodeAffinity => f.write_str("node doesn't satisfy the required node affinity"),
            Self::PreferredNodeAffinity { here, best, node } => {
                write!(f, "node {node} has preference {best}, this node {here}")
            }
            Self::Taint { key, value, effect } => {
                f.write_str("taint ")?;
                taint(f, key, value)?;
                write!(f, ":{} is not tolerated", effect.as_str())
            }
            Self::TolerationEnds { key, value, seconds } => {
                f.write_str("taint ")?;
                taint(f, key, value)?;
                write!(f, ":NoExecute is tolerated for {seconds}s")
            }
            Self::Spread { topology_key, domain, skew, max_skew } => {
                write!(f, "domain {topology_key}={domain} has skew {skew}, allowed is {max_skew}")
            }
            Self::Restarts { restarts, threshold } => {
                write!(f, "containers restarted {restarts} times, threshold {threshold}")
            }
            Self::LifeTime { age: Some(age) } => write!(f, "pod is {age}s old"),
            Self::LifeTime { age: None } => f.write_str("pod matches the life time rule"),
            Self::Failed { reason } if reason.is_empty() => f.write_str("pod failed"),
            Self::Failed { reason } => write!(f, "pod failed: {reason}"),
        }
    }
}

fn taint(f: &mut fmt::Formatter<'_>, key: &str, value: &str) -> fmt::Result {
    if value.is_empty() { f.write_str(key) } else { write!(f, "{key}={value}") }
}
