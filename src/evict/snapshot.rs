//! What the strategies read: the nodes, the pods on them in whatever phase, and the objects that rules look up, at one time.
//!
//! A [`Scene`] is made once a request from all that the cache knows. Only a plan changes a copy of it, by putting a pod's
//! replacement in its place; the id then stands for the pod and all its replacements. It holds what the scheduler's view
//! doesn't need: pods that ended and wait to be deleted, how many pods an owner has anywhere, requests by spec. Pods
//! that only hold a reservation aren't on a node yet, as for the descheduler, which lists pods by `spec.nodeName`.
//!
//! Promises: nodes are ordered by name and pods by namespace, name and uid, so that whatever walks them has a total order
//! where the descheduler's is that of a Go map. [`NodeId`] and [`PodId`] compare in that order.
//!
//! Cost: some microseconds a pod, most of them for its requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::policy::LabelQuery;
use crate::cluster::view::ObjectTable;
use crate::cluster::{Cancel, Snapshot};
use crate::model::metrics::{NodeMetrics, PodMetrics};
use crate::model::pod_status::Phase;
use crate::model::{Kind, Node, Object, Pod, PodDisruptionBudget, ResourceList, Str, Time, requests, resources};

/// A node of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

impl NodeId {
    /// Dense, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A pod of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId(usize);

impl PodId {
    /// Dense, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

#[derive(Debug, Clone)]
pub struct SceneNode {
    pub node: Arc<Node>,
    /// All pods whose spec names the node, in whatever phase; in order.
    pub pods: Vec<PodId>,
    /// The active ones of them: neither Succeeded nor Failed. Terminating pods are active.
    pub active: Vec<PodId>,
    /// What the active ones ask for together by their specs.
    pub requested: ResourceList,
}

#[derive(Debug, Clone)]
pub struct ScenePod {
    pub pod: Arc<Pod>,
    pub node: NodeId,
    /// By spec.
    pub requests: Arc<ResourceList>,
    pub qos: Qos,
}

/// Quality of service, the first to be evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qos {
    BestEffort,
    Burstable,
    Guaranteed,
}

/// The cluster as strategies see it.
#[derive(Debug, Clone)]
pub struct Scene<'c> {
    pub now: Time,
    /// Whoever walks its nodes, its pods or what they carry looks at this and stops.
    pub cancel: Cancel<'c>,
    pub objects: ObjectTable,
    nodes: Vec<SceneNode>,
    pods: Vec<ScenePod>,
    /// How many pods there are by the uid of an owner: any phase, on a node or not.
    owned: BTreeMap<Str, u64>,
    /// By namespace, each list by name.
    budgets: BTreeMap<Str, Vec<Arc<PodDisruptionBudget>>>,
    node_usage: BTreeMap<Str, Arc<NodeMetrics>>,
}

impl<'c> Scene<'c> {
    pub fn of(snapshot: &Snapshot, now: Time, cancel: Cancel<'c>) -> Self {
        let nodes = snapshot.view.nodes().map(|row| row.fixed().node.clone());
        Self::new(nodes, snapshot.pods().cloned(), snapshot.view.objects().clone(), now, cancel)
    }

    /// Nodes and pods may come in any order; pods count as on the node that their spec names.
    pub fn new(
        nodes: impl Iterator<Item = Arc<Node>>,
        pods: impl Iterator<Item = Arc<Pod>>,
        objects: ObjectTable,
        now: Time,
        cancel: Cancel<'c>,
    ) -> Self {
        let mut nodes: Vec<SceneNode> = nodes
            .map(|node| SceneNode { node, pods: Vec::new(), active: Vec::new(), requested: ResourceList::new() })
            .collect();
        nodes.sort_by(|a, b| a.node.meta.name.cmp(&b.node.meta.name));
        let mut scene = Self {
            now,
            cancel,
            nodes,
            pods: Vec::new(),
            owned: BTreeMap::new(),
            budgets: BTreeMap::new(),
            node_usage: BTreeMap::new(),
            objects,
        };
        for pod in cancel.guard(pods) {
            for owner in &pod.meta.owners {
                *scene.owned.entry(owner.uid.clone()).or_default() += 1;
            }
            if let Some(node) = scene.node_named(&pod.spec.node_name) {
                let (requests, qos) = (Arc::new(requests::by_spec(&pod)), Qos::of(&pod));
                scene.pods.push(ScenePod { pod, node, requests, qos });
            }
        }
        scene.pods.sort_by(|a, b| order(&a.pod).cmp(&order(&b.pod)));
        for (i, pod) in cancel.guard(scene.pods.iter()).enumerate() {
            let node = &mut scene.nodes[pod.node.0];
            node.pods.push(PodId(i));
            if !pod.pod.is_terminal() {
                node.active.push(PodId(i));
                add(&mut node.requested, &pod.requests);
            }
        }
        scene.read_objects();
        scene
    }

    fn read_objects(&mut self) {
        for object in self.objects.of_kind(Kind::PodDisruptionBudget) {
            if let Object::PodDisruptionBudget(budget) = object {
                self.budgets.entry(budget.meta.namespace.clone()).or_default().push(budget.clone());
            }
        }
        for object in self.objects.of_kind(Kind::NodeMetrics) {
            if let Object::NodeMetrics(metrics) = object {
                self.node_usage.insert(metrics.meta.name.clone(), metrics.clone());
            }
        }
    }

    pub fn node(&self, id: NodeId) -> &SceneNode {
        &self.nodes[id.0]
    }

    pub fn pod(&self, id: PodId) -> &ScenePod {
        &self.pods[id.0]
    }

    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.binary_search_by(|n| (*n.node.meta.name).cmp(name)).ok().map(NodeId)
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len()).map(NodeId)
    }

    pub fn pods(&self) -> impl Iterator<Item = PodId> {
        (0..self.pods.len()).map(PodId)
    }

    /// Puts another pod, of the same spec, in the place of one, on a node that may be another. It keeps its place in the
    /// order.
    pub fn replace(&mut self, id: PodId, pod: Arc<Pod>, to: NodeId) {
        let before = self.pods[id.0].clone();
        let node = &mut self.nodes[before.node.0];
        node.pods.retain(|other| *other != id);
        if !before.pod.is_terminal() {
            node.active.retain(|other| *other != id);
            for (name, quantity) in before.requests.iter() {
                if let Some(left) = node.requested.get_mut(name) {
                    *left = *left - quantity.as_summand();
                }
            }
        }
        let node = &mut self.nodes[to.0];
        insert(&mut node.pods, id);
        if !pod.is_terminal() {
            insert(&mut node.active, id);
            add(&mut node.requested, &before.requests);
        }
        self.pods[id.0] = ScenePod { pod, node: to, ..before };
    }

    /// As the disruption controller would after unhealthy pods were replaced by healthy ones.
    pub fn credit_budget(&mut self, namespace: &str, name: &str, healthy: i32) {
        let Some(budgets) = self.budgets.get_mut(namespace) else { return };
        if let Some(budget) = budgets.iter_mut().find(|budget| &*budget.meta.name == name) {
            let budget = Arc::make_mut(budget);
            budget.current_healthy = budget.current_healthy.saturating_add(healthy);
            let allowed = budget.current_healthy.saturating_sub(budget.desired_healthy);
            budget.disruptions_allowed = budget.disruptions_allowed.max(allowed);
        }
    }

    /// The ready nodes whose labels a selector selects; None selects all.
    pub fn ready_nodes(&self, selector: Option<&LabelQuery>) -> Vec<NodeId> {
        self.nodes()
            .filter(|id| {
                let node = &self.node(*id).node;
                is_ready(node) && selector.is_none_or(|s| s.matches(&node.meta.labels))
            })
            .collect()
    }

    /// How many pods have this owner.
    pub fn owned_by(&self, uid: &str) -> u64 {
        self.owned.get(uid).copied().unwrap_or(0)
    }

    /// The budgets that select a pod, by name.
    pub fn budgets_of(&self, pod: &Pod) -> impl Iterator<Item = &Arc<PodDisruptionBudget>> {
        let own = self.budgets.get(&pod.meta.namespace).map_or(&[][..], Vec::as_slice);
        self.cancel.guard(own).filter(|budget| budget.selector.matches(&pod.meta.labels))
    }

    pub fn node_metrics(&self, node: &str) -> Option<&Arc<NodeMetrics>> {
        self.node_usage.get(node)
    }

    pub fn pod_metrics(&self, pod: &Pod) -> Option<&Arc<PodMetrics>> {
        match self.objects.get(Kind::PodMetrics, &pod.meta.namespace, &pod.meta.name)? {
            Object::PodMetrics(metrics) => Some(metrics),
            _ => None,
        }
    }
}

/// Spec section 1: where the descheduler's order is unspecified.
fn order(pod: &Pod) -> (&Str, &Str, &Str) {
    (&pod.meta.namespace, &pod.meta.name, &pod.meta.uid)
}

/// A list in order keeps its order.
fn insert(ids: &mut Vec<PodId>, id: PodId) {
    let at = ids.partition_point(|other| *other < id);
    ids.insert(at, id);
}

/// What a budget counts as healthy: ready by its condition, or running for one that reports none.
pub fn is_healthy(pod: &Pod) -> bool {
    match pod.status.conditions.iter().find(|c| &*c.kind == "Ready") {
        Some(condition) => &*condition.status == "True",
        None => pod.status.phase == Phase::Running,
    }
}

/// No `Ready` condition says otherwise; a node without one is ready, and a cordoned one, too.
pub fn is_ready(node: &Node) -> bool {
    node.conditions.iter().all(|c| &*c.kind != "Ready" || &*c.status == "True")
}

impl SceneNode {
    /// What utilisation is measured against: allocatable, or capacity for a node that names none.
    pub fn capacity(&self) -> &ResourceList {
        if self.node.allocatable.is_empty() { &self.node.capacity } else { &self.node.allocatable }
    }
}

impl Qos {
    /// As the status says, else from cpu and memory of the containers and init containers; zero amounts count as unset.
    pub fn of(pod: &Pod) -> Self {
        match &*pod.status.qos_class {
            "BestEffort" => return Self::BestEffort,
            "Burstable" => return Self::Burstable,
            "Guaranteed" => return Self::Guaranteed,
            _ => {}
        }
        let (mut requests, mut limits) = (ResourceList::new(), ResourceList::new());
        let mut all_limited = true;
        for container in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
            add_computable(&mut requests, &container.resources.requests);
            all_limited &= add_computable(&mut limits, &container.resources.limits) == 2;
        }
        if requests.is_empty() && limits.is_empty() {
            Self::BestEffort
        } else if all_limited && requests == limits {
            Self::Guaranteed
        } else {
            Self::Burstable
        }
    }
}

/// Adds a pod to what a node's pods ask for together.
fn add(total: &mut ResourceList, requests: &ResourceList) {
    for (name, quantity) in requests {
        *total.entry(name.clone()).or_default() += quantity.as_summand();
    }
}

/// Adds what decides on quality of service; how many of its two resources the list has.
fn add_computable(total: &mut ResourceList, list: &ResourceList) -> usize {
    let computable = [resources::CPU, resources::MEMORY];
    let found = computable.iter().filter_map(|name| list.get_key_value(*name)).filter(|(_, q)| q.is_positive());
    let mut count = 0;
    for (name, quantity) in found {
        *total.entry(name.clone()).or_default() += *quantity;
        count += 1;
    }
    count
}
