//! Predicates and priorities of Policy files (spec section 8) that no plugin of today took over, one file each.
//!
//! `config/policy` builds profiles of them; nothing else does. A name with a plugin today isn't here: it uses that plugin.
//! Each rule's plugin name is the name that Policy files know it by, and scores are on today's scale of 0 to 100.

mod check_node_condition;
mod check_node_label_presence;
mod check_node_pressure;
mod check_service_affinity;
mod general_predicates;
mod max_volume_count;
mod node_label_priority;
mod node_prefer_avoid_pods_priority;
mod pod_tolerates_node_no_execute_taints;
mod service_anti_affinity_priority;
mod service_spreading_priority;

use std::sync::Arc;

use crate::cluster::View;
use crate::model::{Pod, Service};

pub use check_node_condition::CheckNodeCondition;
pub use check_node_label_presence::CheckNodeLabelPresence;
pub use check_node_pressure::{CheckNodePressure, Pressure};
pub use check_service_affinity::CheckServiceAffinity;
pub use general_predicates::GeneralPredicates;
pub use max_volume_count::MaxVolumeCount;
pub use node_label_priority::NodeLabelPriority;
pub use node_prefer_avoid_pods_priority::NodePreferAvoidPodsPriority;
pub use pod_tolerates_node_no_execute_taints::PodToleratesNodeNoExecuteTaints;
pub use service_anti_affinity_priority::ServiceAntiAffinityPriority;
pub use service_spreading_priority::ServiceSpreadingPriority;

/// The services that select a pod, by name.
fn services_of<'a>(view: &'a View, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<Service>> {
    let services = view.objects().services(&pod.meta.namespace);
    services.filter(|s| s.selector.as_ref().is_some_and(|selector| selector.is_subset_of(&pod.meta.labels)))
}
