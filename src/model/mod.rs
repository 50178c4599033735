//! The Kubernetes-shaped nouns that scheduling decisions are made of: one noun a file.
//!
//! Everything here is plain data with the semantics that belong to the data itself: how a quantity is read, when a
//! selector matches, how much a pod asks for. It knows nothing of transports, caches or plugins, and it is what all other
//! modules talk in. Values are built by `manifest` (which validates and defaults) or, in tests, by [`testing`]'s builders.
//!
//! Promises: no panic for any value; comparisons and iteration orders depend only on the data (sorted collections, no
//! hash-map order), so that equal objects give equal decisions.

pub mod affinity;
pub mod container;
pub mod csi_migration;
pub mod labels;
pub mod meta;
pub mod metrics;
pub mod namespace;
pub mod node;
pub mod node_selector;
pub mod object;
pub mod pdb;
pub mod pod;
pub mod pod_status;
pub mod priority_class;
pub mod qos;
pub mod quantity;
pub mod requests;
pub mod resources;
pub mod runtime_class;
pub mod selector;
pub mod storage;
pub mod taint;
pub mod testing;
pub mod testing_storage;
pub mod time;
pub mod topology_spread;
pub mod volume;
pub mod workload;

/// A cheap-to-clone, immutable string. Objects share their names and labels with the indexes built over them.
pub type Str = std::sync::Arc<str>;

pub use affinity::{Affinity, NodeAffinity, PodAffinity, PodAffinityTerm, PreferredNodeTerm, WeightedPodAffinityTerm};
pub use container::{Container, ContainerPort, ResourceRequirements};
pub use labels::Labels;
pub use meta::{ObjectMeta, OwnerReference};
pub use namespace::Namespace;
pub use node::{ContainerImage, Node, NodeCondition};
pub use node_selector::{NodeSelector, NodeSelectorTerm};
pub use object::{Kind, Object, ObjectRef};
pub use pdb::PodDisruptionBudget;
pub use pod::Pod;
pub use priority_class::PriorityClass;
pub use quantity::Quantity;
pub use resources::ResourceList;
pub use runtime_class::RuntimeClass;
pub use selector::LabelSelector;
pub use taint::{Effect, Taint, Toleration};
pub use time::Time;
pub use topology_spread::TopologySpreadConstraint;
pub use workload::{ReplicaSet, ReplicationController, Service, StatefulSet};
