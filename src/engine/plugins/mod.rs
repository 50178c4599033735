//! The plugins, one file each under its upstream name. Each states the rule it implements; their tests state the traps.

mod image_locality;
mod inter_pod_affinity;
mod label_index;
pub mod legacy;
pub(crate) mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_balanced_allocation;
mod node_resources_fit;
mod node_unschedulable;
mod node_volume_limits;
mod pod_topology_spread;
mod scheduling_gates;
pub(crate) mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;

pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinityPlugin;
pub use node_declared_features::NodeDeclaredFeatures;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources_balanced_allocation::NodeResourcesBalancedAllocation;
pub use node_resources_fit::{NodeResourcesFit, ScoringStrategy, ShapePoint};
pub use node_unschedulable::NodeUnschedulable;
pub use node_volume_limits::NodeVolumeLimits;
pub use pod_topology_spread::{DefaultConstraints, PodTopologySpread};
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;
pub use volume_binding::VolumeBindingPlugin;
pub use volume_restrictions::VolumeRestrictions;
pub use volume_zone::VolumeZone;
