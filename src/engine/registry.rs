//! Plugins by their upstream names.

use std::sync::Arc;

use super::plugin::Plugin;
use super::plugins::{
    ImageLocality, InterPodAffinity, NodeAffinityPlugin, NodeDeclaredFeatures, NodeName, NodePorts,
    NodeResourcesBalancedAllocation, NodeResourcesFit, NodeUnschedulable, NodeVolumeLimits, PodTopologySpread,
    SchedulingGates, TaintToleration, VolumeBindingPlugin, VolumeRestrictions, VolumeZone,
};

/// The plugins of the default profile in its order (spec section 3.1), with their score weights; 0 for those that score
/// nothing. Upstream's queue, bind and preemption plugins have no part in a decision and aren't listed.
pub fn default_plugins() -> Vec<(Arc<dyn Plugin>, i64)> {
    vec![
        (Arc::new(SchedulingGates), 0),
        (Arc::new(NodeUnschedulable), 0),
        (Arc::new(NodeName), 0),
        (Arc::new(TaintToleration), 3),
        (Arc::new(NodeAffinityPlugin::default()), 2),
        (Arc::new(NodePorts), 0),
        (Arc::new(NodeResourcesFit::default()), 1),
        (Arc::new(VolumeRestrictions), 0),
        (Arc::new(NodeVolumeLimits), 0),
        (Arc::new(VolumeBindingPlugin), 1),
        (Arc::new(VolumeZone), 0),
        (Arc::new(PodTopologySpread::default()), 2),
        (Arc::new(InterPodAffinity::default()), 2),
        (Arc::new(NodeResourcesBalancedAllocation::default()), 1),
        (Arc::new(ImageLocality), 1),
        (Arc::new(NodeDeclaredFeatures), 0),
    ]
}
