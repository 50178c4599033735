//! What Berth can't judge yet. A pod that needs it is refused by name, never placed in silence.

use std::fmt;

use super::profile::Profile;
use crate::model::Pod;
use crate::model::volume::VolumeSource;

/// A feature that a decision would need.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// The pod has `spec.resourceClaims` (dynamic resource allocation).
    DynamicResources,
    /// The pod has a volume that a volume plugin judges.
    Volumes,
}

impl Feature {
    /// The upstream plugin that would judge it.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::DynamicResources => "DynamicResources",
            Self::Volumes => "VolumeBinding",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DynamicResources => "DynamicResources (the pod has resourceClaims)",
            Self::Volumes => "VolumeBinding (the pod has volumes that restrict its nodes)",
        })
    }
}

/// What this decision would need and nothing in the profile judges.
pub(super) fn features(pod: &Pod, profile: &Profile) -> Vec<Feature> {
    let mut features = Vec::new();
    if !pod.spec.resource_claims.is_empty() {
        features.push(Feature::DynamicResources);
    }
    if !profile.has("VolumeBinding") && pod.spec.volumes.iter().any(|v| restricts_nodes(&v.source)) {
        features.push(Feature::Volumes);
    }
    features
}

fn restricts_nodes(source: &VolumeSource) -> bool {
    match source {
        VolumeSource::Image { .. } | VolumeSource::EmptyDir | VolumeSource::HostPath | VolumeSource::Other => false,
        // An inline CSI volume isn't counted against any limit.
        VolumeSource::Csi { .. } => false,
        VolumeSource::PersistentVolumeClaim { .. }
        | VolumeSource::Ephemeral
        | VolumeSource::GcePersistentDisk { .. }
        | VolumeSource::AwsElasticBlockStore { .. }
        | VolumeSource::AzureDisk { .. }
        | VolumeSource::Cinder { .. }
        | VolumeSource::Portworx { .. }
        | VolumeSource::Iscsi { .. }
        | VolumeSource::Rbd { .. } => true,
    }
}
