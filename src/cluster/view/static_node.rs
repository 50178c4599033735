//! What of a node only changes when its object does, worked out once per object.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::model::resources::{PODS, ResourceClass};
use crate::model::{Node, Str};

#[derive(Debug)]
pub struct StaticNode {
    pub node: Arc<Node>,
    /// A fixed hash of the name: the seed of the tie order.
    pub name_hash: u64,
    /// How many pods the node takes (`allocatable.pods`, 0 when absent).
    pub allowed_pods: i64,
    /// Some taint keeps pods off (NoSchedule or NoExecute).
    pub has_forbidding_taint: bool,
    /// Some taint is PreferNoSchedule.
    pub has_soft_taint: bool,
    images: FxHashSet<Str>,
}

impl StaticNode {
    pub fn new(node: Arc<Node>) -> Self {
        Self {
            name_hash: name_hash(&node.meta.name),
            allowed_pods: node.allocatable.get(PODS).map_or(0, |q| q.value()),
            has_forbidding_taint: node.taints.iter().any(|t| t.effect.forbids_scheduling()),
            has_soft_taint: node.taints.iter().any(|t| !t.effect.forbids_scheduling()),
            images: node.images.iter().flat_map(|i| &i.names).cloned().collect(),
            node,
        }
    }

    pub fn has_image(&self, name: &str) -> bool {
        self.images.contains(name)
    }

    /// Tracked resources and their integers.
    pub(super) fn allocatable(&self) -> impl Iterator<Item = (&Str, i64)> {
        self.node.allocatable.iter().filter_map(|(name, quantity)| match ResourceClass::of(name) {
            ResourceClass::Pods | ResourceClass::Ignored => None,
            class => Some((name, class.amount(*quantity))),
        })
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; offset basis and prime from the reference page). Written out because its values are
/// part of the protocol: the standard library's and other crates' hashes may change between versions.
pub fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_hash_has_the_published_test_values() {
        assert_eq!(name_hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(name_hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(name_hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
