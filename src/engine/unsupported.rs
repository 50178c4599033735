//! What Berth can't judge yet. A pod that needs it is refused by name, never placed in silence.

use std::fmt;

use super::profile::Profile;
use crate::cluster::View;
use crate::model::Pod;

/// A feature that a decision would need.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// The pod has `spec.resourceClaims` (dynamic resource allocation).
    DynamicResources,
    /// The pod has pod affinity or anti-affinity.
    InterPodAffinity,
    /// Pods that are already bound have pod affinity or anti-affinity, which could apply to this one.
    InterPodAffinityOfBoundPods,
}

impl Feature {
    /// The upstream plugin that would judge it.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::DynamicResources => "DynamicResources",
            Self::InterPodAffinity | Self::InterPodAffinityOfBoundPods => "InterPodAffinity",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DynamicResources => "DynamicResources (the pod has resourceClaims)",
            Self::InterPodAffinity => "InterPodAffinity (the pod has podAffinity or podAntiAffinity)",
            Self::InterPodAffinityOfBoundPods => {
                "InterPodAffinity (bound pods have podAffinity or podAntiAffinity that may apply to this pod)"
            }
        })
    }
}

/// What this decision would need and nothing in the profile judges.
pub(super) fn features(view: &View, pod: &Pod, profile: &Profile) -> Vec<Feature> {
    let mut features = Vec::new();
    if !pod.spec.resource_claims.is_empty() {
        features.push(Feature::DynamicResources);
    }
    if !profile.has("InterPodAffinity") {
        if pod.has_pod_affinity() {
            features.push(Feature::InterPodAffinity);
        }
        if view.nodes().any(|row| row.has_pods_with_affinity()) {
            features.push(Feature::InterPodAffinityOfBoundPods);
        }
    }
    features
}
