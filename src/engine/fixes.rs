//! Deliberate differences from kube-scheduler 1.36: switches of a profile, all of them off by default.
//!
//! By default Berth repeats what 1.36.2 does even where that looks like an accident. Each switch gives the intended rule
//! instead and has the name of the public case that shows the difference, where there is one.

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fix {
    /// An incoming pod's own affinity terms read the labels of a namespace, and nothing else, to see whether their
    /// `namespaceSelector` selects it. 1.36.2 also evaluates the selector against an empty label set, so that one which
    /// only forbids labels (NotIn, DoesNotExist) lets every namespace in (kubernetes/kubernetes#141526).
    NamespaceSelectorThatExcludesOwnNamespace,
    /// The NodeResourcesFit score of an incoming pod uses its pod-level requests, as the filter does and as those of bound
    /// pods are. 1.36.2 adds up the containers' instead.
    PodLevelRequestInScore,
    /// Preemption frees a ReadWriteOncePod claim only when all its users go. 1.36.2 counts a claim in use once, however many
    /// pods use it, and takes a pod for a user by the claim's name alone, whatever its namespace.
    ReadWriteOncePodUsers,
    /// A volume labelled with a zone keeps off nodes without any zone or region label, if some node of the cluster has one.
    /// 1.36.2 lets every such node pass, a rule meant for clusters of a single zone (kubernetes/kubernetes#117983).
    ZonedVolumeAndNodeWithoutZone,
}

impl Fix {
    pub const ALL: &'static [Fix] = &[
        Fix::NamespaceSelectorThatExcludesOwnNamespace,
        Fix::PodLevelRequestInScore,
        Fix::ReadWriteOncePodUsers,
        Fix::ZonedVolumeAndNodeWithoutZone,
    ];

    /// The switch's name, as in profiles and in `berth answer --fix`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NamespaceSelectorThatExcludesOwnNamespace => "namespace-selector-that-excludes-own-namespace",
            Self::PodLevelRequestInScore => "pod-level-request-in-score",
            Self::ReadWriteOncePodUsers => "read-write-once-pod-users",
            Self::ZonedVolumeAndNodeWithoutZone => "zoned-volume-and-node-without-zone",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fix| fix.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for fix in Fix::ALL {
            assert_eq!(Fix::parse(fix.as_str()), Some(*fix));
        }
        assert_eq!(Fix::parse("unknown"), None);
    }
}
