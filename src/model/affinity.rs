//! `spec.affinity` of a pod.

use super::{LabelSelector, NodeSelector, NodeSelectorTerm, Str};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Affinity {
    pub node: Option<NodeAffinity>,
    pub pod: Option<PodAffinity>,
    pub pod_anti: Option<PodAffinity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeAffinity {
    /// None is no constraint; an empty selector matches no node.
    pub required: Option<NodeSelector>,
    /// None and an empty list differ: with a null list upstream skips the score plugin altogether.
    pub preferred: Option<Vec<PreferredNodeTerm>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredNodeTerm {
    /// 1 to 100.
    pub weight: i32,
    pub term: NodeSelectorTerm,
}

/// Either `podAffinity` or `podAntiAffinity`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PodAffinity {
    pub required: Vec<PodAffinityTerm>,
    pub preferred: Vec<WeightedPodAffinityTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WeightedPodAffinityTerm {
    /// 1 to 100.
    pub weight: i32,
    pub term: PodAffinityTerm,
}

/// `matchLabelKeys` and `mismatchLabelKeys` are merged into the selector by `manifest`, as the API server does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PodAffinityTerm {
    pub selector: LabelSelector,
    /// Namespaces by name. With neither names nor a selector the pod's own namespace is meant (see [`Self::applies_to_own_namespace`]).
    pub namespaces: Vec<Str>,
    /// None: no namespace by selector; `{}`: all of them.
    pub namespace_selector: Option<LabelSelector>,
    pub topology_key: Str,
}

impl PodAffinityTerm {
    /// Both lists absent: only the namespace of the pod that carries the term.
    pub fn applies_to_own_namespace(&self) -> bool {
        self.namespaces.is_empty() && self.namespace_selector.is_none()
    }
}
