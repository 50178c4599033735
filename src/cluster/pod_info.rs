//! A pod that takes room on a node, with everything that the view's columns and indexes need of it worked out once.

use std::sync::Arc;

use smallvec::SmallVec;

use super::label_sets::label_hash;
use super::pod_volumes::{PodVolumes, VolumeBinding};
use super::terms::Term;
use crate::model::requests::{self, Amounts};
use crate::model::{Pod, Str};

/// Shared between the view, its forks and the writer; never changed once made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodInfo {
    pub pod: Arc<Pod>,
    /// The node whose room is taken: `spec.nodeName`, or a reservation's node.
    pub node: Str,
    /// What it takes.
    pub requests: Amounts,
    /// What it adds to the node's non-zero requests: milli CPU and bytes.
    pub non_zero: (i64, i64),
    pub ports: SmallVec<[HostPort; 1]>,
    /// `spec.volumes[].persistentVolumeClaim` names; generic ephemeral volumes aren't counted here (spec 1.2).
    pub claims: SmallVec<[Str; 1]>,
    /// Its other volumes that matter to anybody else; None for most pods.
    pub volumes: Option<Box<PodVolumes>>,
    /// Its affinity terms, those that can match something.
    pub terms: Vec<Arc<Term>>,
    /// Of what selectors see of it (see `label_sets`).
    pub(crate) label_hash: u64,
}

/// A port of the node that a pod occupies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// `0.0.0.0` for "any".
    pub ip: Str,
    pub protocol: Str,
    pub port: u16,
}

impl HostPort {
    pub const ANY_IP: &'static str = "0.0.0.0";

    /// Whether both can't be on one node. `::` is no wildcard, as upstream.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || &*self.ip == Self::ANY_IP || &*other.ip == Self::ANY_IP)
    }
}

/// The host ports that a pod wants: those of containers that run together (regular ones and sidecars).
pub fn host_ports(pod: &Pod) -> SmallVec<[HostPort; 1]> {
    pod.long_running_containers()
        .flat_map(|c| &c.ports)
        .filter(|p| p.host_port > 0)
        .map(|p| HostPort {
            ip: if p.host_ip.is_empty() { HostPort::ANY_IP.into() } else { p.host_ip.clone() },
            protocol: if p.protocol.is_empty() { "TCP".into() } else { p.protocol.clone() },
            port: p.host_port,
        })
        .collect()
}

impl PodInfo {
    /// The pod as it stands on the node that its spec names.
    pub fn bound(pod: Arc<Pod>) -> Self {
        let node = pod.spec.node_name.clone();
        Self::on(pod, node)
    }

    /// The pod on a node that its spec doesn't name (yet): a reservation, a nomination, a what-if.
    pub fn on(pod: Arc<Pod>, node: Str) -> Self {
        use crate::model::volume::VolumeSource;
        let claims = pod.spec.volumes.iter().filter_map(|v| match &v.source {
            VolumeSource::PersistentVolumeClaim { claim, .. } => Some(claim.clone()),
            _ => None,
        });
        Self {
            node,
            requests: requests::in_force(&pod),
            non_zero: requests::non_zero_in_force(&pod),
            ports: host_ports(&pod),
            claims: claims.collect(),
            volumes: PodVolumes::of(&pod),
            terms: Term::of_pod(&pod),
            label_hash: label_hash(&pod),
            pod,
        }
    }

    /// The same with what was decided about its claims.
    #[must_use]
    pub fn with_bindings(mut self, bindings: Vec<VolumeBinding>) -> Self {
        if !bindings.is_empty() || self.volumes.is_some() {
            self.volumes.get_or_insert_default().bindings = bindings;
        }
        self
    }

    /// What was decided about its claims.
    pub fn bindings(&self) -> &[VolumeBinding] {
        self.volumes.as_ref().map_or(&[], |volumes| &volumes.bindings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{container, pod};

    fn port(ip: &str, protocol: &str, port: u16) -> HostPort {
        HostPort { ip: ip.into(), protocol: protocol.into(), port }
    }

    #[test]
    fn any_address_conflicts_with_every_address_of_the_same_protocol() {
        assert!(port("127.0.0.1", "TCP", 80).conflicts_with(&port("0.0.0.0", "TCP", 80)));
        assert!(port("0.0.0.0", "TCP", 80).conflicts_with(&port("10.0.0.1", "TCP", 80)));
        assert!(!port("127.0.0.1", "TCP", 80).conflicts_with(&port("10.0.0.1", "TCP", 80)));
        assert!(!port("0.0.0.0", "TCP", 53).conflicts_with(&port("0.0.0.0", "UDP", 53)));
    }

    #[test]
    fn the_ipv6_wildcard_is_an_ordinary_address() {
        assert!(!port("::", "TCP", 80).conflicts_with(&port("10.0.0.1", "TCP", 80)));
        assert!(port("::", "TCP", 80).conflicts_with(&port("0.0.0.0", "TCP", 80)));
    }

    #[test]
    fn sidecars_take_host_ports_and_ordinary_init_containers_do_not() {
        let p = pod("a")
            .init(container("i").host_port("", "TCP", 1))
            .init(container("s").sidecar().host_port("", "", 2))
            .host_port("10.0.0.1", "UDP", 3)
            .build();
        assert_eq!(host_ports(&p).to_vec(), [port("10.0.0.1", "UDP", 3), port("0.0.0.0", "TCP", 2)]);
    }
}
