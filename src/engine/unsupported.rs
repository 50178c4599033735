//! What Berth can't judge yet. A pod that needs it is refused by name, never placed in silence.

use std::fmt;

use crate::model::Pod;

/// A feature that a decision would need.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// The pod has `spec.resourceClaims` (dynamic resource allocation).
    DynamicResources,
}

impl Feature {
    /// The upstream plugin that would judge it.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::DynamicResources => "DynamicResources",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DynamicResources => "DynamicResources (the pod has resourceClaims)",
        })
    }
}

/// What this decision would need and nothing judges.
pub(super) fn features(pod: &Pod) -> Vec<Feature> {
    let mut features = Vec::new();
    if !pod.spec.resource_claims.is_empty() {
        features.push(Feature::DynamicResources);
    }
    features
}
