//! The plugins, one file each under its upstream name. Each states the rule it implements; their tests state the traps.

mod image_locality;
mod inter_pod_affinity;
pub(crate) mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_balanced_allocation;
mod node_resources_fit;
mod node_unschedulable;
mod pod_topology_spread;
mod scheduling_gates;
pub(crate) mod taint_toleration;

pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinityPlugin;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources_balanced_allocation::NodeResourcesBalancedAllocation;
pub use node_resources_fit::{NodeResourcesFit, ScoringStrategy, ShapePoint};
pub use node_unschedulable::NodeUnschedulable;
pub use pod_topology_spread::{DefaultConstraints, PodTopologySpread};
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;
