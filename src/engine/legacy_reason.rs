//! Why a legacy predicate refused a node; `Display` gives the texts of kube-scheduler before 1.23 (spec section 8.1).
//!
//! Only predicates that no plugin of today took over have reasons here; the others speak in their plugin's words.

use std::fmt;

use crate::model::Str;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LegacyReason {
    NotReady,
    NetworkUnavailable,
    OutOfDisk,
    MemoryPressure,
    PidPressure,
    DiskPressure,
    /// The first label key that is missing, or that must not be there.
    LabelPresence {
        key: Str,
    },
    /// The first label whose value differs from that of the service's pods.
    ServiceAffinity {
        key: Str,
        wanted: Str,
    },
}

impl LegacyReason {
    /// Whether both have the same text; the labels may differ.
    pub fn same_text(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for LegacyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "node(s) were not ready",
            Self::NetworkUnavailable => "node(s) had unavailable network",
            Self::OutOfDisk => "node(s) were out of disk space",
            Self::MemoryPressure => "node(s) had memory pressure",
            Self::PidPressure => "node(s) had pid pressure",
            Self::DiskPressure => "node(s) had disk pressure",
            Self::LabelPresence { .. } => "node(s) didn't have the requested labels",
            Self::ServiceAffinity { .. } => "node(s) didn't match service affinity",
        })
    }
}
