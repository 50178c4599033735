//! Fluent builders for tests: `pod("a").cpu("100m").toleration(..).build()`, `node("n1").taint(..).build()`.
//!
//! They build what `manifest` would, without going through text. Public because integration tests and benchmarks are crates
//! of their own; nothing in the service calls them. A quantity that doesn't parse panics, which in a test is the right thing.

#![allow(clippy::panic)]

use super::pod_status::{ContainerStatus, Phase, PodCondition};
use super::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use super::selector::Requirement;
use super::taint::TolerationOperator;
use super::volume::{Volume, VolumeSource};
use super::{
    Affinity, Container, ContainerImage, ContainerPort, Effect, LabelSelector, Labels, Node, NodeAffinity,
    NodeSelector, NodeSelectorTerm, ObjectMeta, OwnerReference, Pod, PodAffinity, PodAffinityTerm, PreferredNodeTerm,
    Quantity, Service, Str, Taint, Time, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

pub fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("quantity {text:?} in a test: {e}"))
}

/// A selector of equalities.
pub fn selector(pairs: &[(&str, &str)]) -> LabelSelector {
    LabelSelector::new(pairs.iter().map(|(k, v)| Requirement::equals((*k).into(), (*v).into())))
}

fn meta(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: name.into(),
        namespace: namespace.into(),
        uid: format!("uid-{namespace}-{name}").into(),
        ..Default::default()
    }
}

#[derive(Debug, Clone)]
pub struct ContainerBuilder(Container);

pub fn container(name: &str) -> ContainerBuilder {
    ContainerBuilder(Container { name: name.into(), image: "registry.example/app:v1".into(), ..Default::default() })
}

impl ContainerBuilder {
    #[must_use]
    pub fn request(mut self, name: &str, amount: &str) -> Self {
        self.0.resources.requests.insert(name.into(), quantity(amount));
        self
    }
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.request(CPU, amount)
    }
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.request(MEMORY, amount)
    }
    #[must_use]
    pub fn image(mut self, image: &str) -> Self {
        self.0.image = image.into();
        self
    }
    #[must_use]
    pub fn sidecar(mut self) -> Self {
        self.0.restart_always = true;
        self
    }
    #[must_use]
    pub fn host_port(mut self, ip: &str, protocol: &str, port: u16) -> Self {
        self.0.ports.push(ContainerPort {
            container_port: port,
            host_port: port,
            protocol: protocol.into(),
            host_ip: ip.into(),
        });
        self
    }
    pub fn build(self) -> Container {
        self.0
    }
}

/// A pending pod in namespace `default` with one container that asks for nothing.
pub fn pod(name: &str) -> PodBuilder {
    let mut pod = Pod { meta: meta("default", name), ..Default::default() };
    pod.spec.scheduler_name = "default-scheduler".into();
    pod.spec.containers.push(container("c").build());
    PodBuilder(pod)
}

#[derive(Debug, Clone)]
pub struct PodBuilder(Pod);

impl PodBuilder {
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.meta = ObjectMeta { labels: self.0.meta.labels.clone(), ..meta(namespace, &self.0.meta.name.clone()) };
        self
    }
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.0.meta.uid = uid.into();
        self
    }
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.meta.labels.insert(key.into(), value.into());
        self
    }
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0.meta.annotations.insert(key.into(), value.into());
        self
    }
    #[must_use]
    pub fn owner(mut self, api_version: &str, kind: &str, name: &str) -> Self {
        let uid = format!("uid-{kind}-{name}");
        self.0.meta.owners.push(OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller: true,
        });
        self
    }
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.0.meta.deleted = Some(Time::from_secs(1));
        self
    }
    #[must_use]
    pub fn created(mut self, secs: i64) -> Self {
        self.0.meta.created = Some(Time::from_secs(secs));
        self
    }
    #[must_use]
    pub fn started(mut self, secs: i64) -> Self {
        self.0.status.started = Some(Time::from_secs(secs));
        self
    }
    #[must_use]
    pub fn on(mut self, node: &str) -> Self {
        self.0.spec.node_name = node.into();
        self.0.status.phase = Phase::Running;
        self
    }
    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.0.status.phase = phase;
        self
    }
    #[must_use]
    pub fn nominated(mut self, node: &str) -> Self {
        self.0.status.nominated_node = node.into();
        self
    }
    #[must_use]
    pub fn scheduler(mut self, name: &str) -> Self {
        self.0.spec.scheduler_name = name.into();
        self
    }
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.0.spec.priority = Some(priority);
        self
    }
    #[must_use]
    pub fn no_containers(mut self) -> Self {
        self.0.spec.containers.clear();
        self
    }
    #[must_use]
    pub fn container(mut self, container: ContainerBuilder) -> Self {
        self.0.spec.containers.push(container.build());
        self
    }
    #[must_use]
    pub fn init(mut self, container: ContainerBuilder) -> Self {
        self.0.spec.init_containers.push(container.build());
        self
    }
    /// A request of the first container.
    #[must_use]
    pub fn request(mut self, name: &str, amount: &str) -> Self {
        self.0.spec.containers[0].resources.requests.insert(name.into(), quantity(amount));
        self
    }
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.request(CPU, amount)
    }
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.request(MEMORY, amount)
    }
    #[must_use]
    pub fn image(mut self, image: &str) -> Self {
        self.0.spec.containers[0].image = image.into();
        self
    }
    #[must_use]
    pub fn overhead(mut self, name: &str, amount: &str) -> Self {
        self.0.spec.overhead.insert(name.into(), quantity(amount));
        self
    }
    #[must_use]
    pub fn pod_level(mut self, name: &str, amount: &str) -> Self {
        self.0.spec.resources.get_or_insert_default().requests.insert(name.into(), quantity(amount));
        self
    }
    /// Status of the first container: what is in force and what was allocated.
    #[must_use]
    pub fn container_in_force(mut self, name: &str, actual: &str, allocated: &str) -> Self {
        self.0.status.containers.push(ContainerStatus {
            name: self.0.spec.containers[0].name.clone(),
            requests: Some([(Str::from(name), quantity(actual))].into()),
            allocated: [(Str::from(name), quantity(allocated))].into(),
            ..Default::default()
        });
        self
    }
    #[must_use]
    pub fn condition(mut self, kind: &str, status: &str, reason: &str) -> Self {
        self.0.status.conditions.push(PodCondition {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            last_transition: None,
        });
        self
    }
    #[must_use]
    pub fn node_selector(mut self, key: &str, value: &str) -> Self {
        self.0.spec.node_selector.get_or_insert_default().insert(key.into(), value.into());
        self
    }
    #[must_use]
    pub fn affinity(mut self, change: impl FnOnce(&mut Affinity)) -> Self {
        change(&mut self.0.spec.affinity);
        self
    }
    #[must_use]
    pub fn required_node_terms(self, terms: Vec<NodeSelectorTerm>) -> Self {
        self.affinity(|a| a.node.get_or_insert_default().required = Some(NodeSelector { terms }))
    }
    #[must_use]
    pub fn preferred_node_term(self, weight: i32, term: NodeSelectorTerm) -> Self {
        self.affinity(|a| {
            let node: &mut NodeAffinity = a.node.get_or_insert_default();
            node.preferred.get_or_insert_default().push(PreferredNodeTerm { weight, term });
        })
    }
    #[must_use]
    pub fn pod_affinity(self, topology_key: &str, selector: LabelSelector) -> Self {
        self.affinity(|a| a.pod.get_or_insert_default().required.push(pod_term(topology_key, selector)))
    }
    #[must_use]
    pub fn pod_anti_affinity(self, topology_key: &str, selector: LabelSelector) -> Self {
        self.affinity(|a| a.pod_anti.get_or_insert_default().required.push(pod_term(topology_key, selector)))
    }
    #[must_use]
    pub fn preferred_pod_affinity(self, weight: i32, topology_key: &str, selector: LabelSelector) -> Self {
        self.affinity(|a| push_preferred(a.pod.get_or_insert_default(), weight, topology_key, selector))
    }
    #[must_use]
    pub fn preferred_pod_anti_affinity(self, weight: i32, topology_key: &str, selector: LabelSelector) -> Self {
        self.affinity(|a| push_preferred(a.pod_anti.get_or_insert_default(), weight, topology_key, selector))
    }
    /// An `Exists` (empty value) or `Equal` toleration; an empty key with no value tolerates everything.
    #[must_use]
    pub fn tolerates(mut self, key: &str, value: Option<&str>, effect: Option<Effect>) -> Self {
        self.0.spec.tolerations.push(Toleration {
            key: key.into(),
            op: if value.is_some() { TolerationOperator::Equal } else { TolerationOperator::Exists },
            value: value.unwrap_or("").into(),
            effect,
            seconds: None,
        });
        self
    }
    #[must_use]
    pub fn spread(mut self, constraint: TopologySpreadConstraint) -> Self {
        self.0.spec.topology_spread.push(constraint);
        self
    }
    #[must_use]
    pub fn host_port(mut self, ip: &str, protocol: &str, port: u16) -> Self {
        let c = ContainerBuilder(self.0.spec.containers.remove(0)).host_port(ip, protocol, port).build();
        self.0.spec.containers.insert(0, c);
        self
    }
    #[must_use]
    pub fn volume(mut self, name: &str, source: VolumeSource) -> Self {
        self.0.spec.volumes.push(Volume { name: name.into(), source });
        self
    }
    #[must_use]
    pub fn gate(mut self, name: &str) -> Self {
        self.0.spec.scheduling_gates.push(name.into());
        self
    }
    /// Any other field.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Pod)) -> Self {
        change(&mut self.0);
        self
    }
    pub fn build(self) -> Pod {
        self.0
    }
}

fn pod_term(topology_key: &str, selector: LabelSelector) -> PodAffinityTerm {
    PodAffinityTerm { selector, topology_key: topology_key.into(), ..Default::default() }
}

fn push_preferred(affinity: &mut PodAffinity, weight: i32, topology_key: &str, selector: LabelSelector) {
    affinity.preferred.push(WeightedPodAffinityTerm { weight, term: pod_term(topology_key, selector) });
}

/// A node with 4 cores, 16 GiB, 110 pods and the hostname label.
pub fn node(name: &str) -> NodeBuilder {
    let mut node =
        Node { meta: ObjectMeta { uid: format!("uid-{name}").into(), ..meta("", name) }, ..Default::default() };
    node.meta.labels.insert(super::node::HOSTNAME_LABEL.into(), name.into());
    NodeBuilder(node).allocatable(CPU, "4").allocatable(MEMORY, "16Gi").allocatable(PODS, "110")
}

#[derive(Debug, Clone)]
pub struct NodeBuilder(Node);

impl NodeBuilder {
    #[must_use]
    pub fn allocatable(mut self, name: &str, amount: &str) -> Self {
        self.0.allocatable.insert(name.into(), quantity(amount));
        self
    }
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.allocatable(CPU, amount)
    }
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.allocatable(MEMORY, amount)
    }
    #[must_use]
    pub fn ephemeral(self, amount: &str) -> Self {
        self.allocatable(EPHEMERAL_STORAGE, amount)
    }
    #[must_use]
    pub fn pods(self, amount: &str) -> Self {
        self.allocatable(PODS, amount)
    }
    #[must_use]
    pub fn without(mut self, resource: &str) -> Self {
        self.0.allocatable.remove(resource);
        self
    }
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.meta.labels.insert(key.into(), value.into());
        self
    }
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.label(super::node::ZONE_LABEL, zone)
    }
    #[must_use]
    pub fn no_labels(mut self) -> Self {
        self.0.meta.labels = Labels::default();
        self
    }
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: Effect) -> Self {
        self.0.taints.push(Taint { key: key.into(), value: value.into(), effect, added: None });
        self
    }
    #[must_use]
    pub fn cordoned(mut self) -> Self {
        self.0.unschedulable = true;
        self
    }
    #[must_use]
    pub fn image(mut self, name: &str, size_bytes: i64) -> Self {
        self.0.images.push(ContainerImage { names: vec![name.into()], size_bytes });
        self
    }
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Node)) -> Self {
        change(&mut self.0);
        self
    }
    pub fn build(self) -> Node {
        self.0
    }
}

/// A Service in namespace `default`.
pub fn service(name: &str, pairs: &[(&str, &str)]) -> Service {
    Service { meta: meta("default", name), selector: Some(pairs.iter().copied().collect()) }
}
