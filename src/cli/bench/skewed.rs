//! The cluster of `berth bench evict`: one that every strategy has something to do in.
//!
//! What holds for a node or an owner follows from its number alone, so that the same size always gives the same cluster.
//! `LOOKS` says in words what is made here; keep the two together.

use serde_json::{Value, json};

use super::Failure;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::manifest;
use crate::model::Time;
use crate::service::Service;
use crate::service::answer::DEFAULT_NOW;

pub(super) const LOOKS: &str = "\
The cluster is made up, the same each time:
- 300 ReplicaSets of equally many pods. 70 % of the pods are spread evenly over all nodes, 30 % lie on the first quarter of
  the nodes, as after a scale-up of a part of the cluster. A pod requests 100, 250 or 400 millicores and 256, 512 or 768 MiB.
- nodes have room for 2.2 times the mean load, and are in three zones, the first of which holds the crowded quarter; 1 node
  in 25 is twice as large and so less used.
- 1 node in 50 has a NoSchedule taint, 1 in 100 a NoExecute taint, 1 in 50 is cordoned; 1 in 40 lost the label that pods
  there require, and half of the nodes have the label ssd that others prefer.
- 1 ReplicaSet in 10 spreads over zones with maxSkew 1, 1 in 10 over hosts with maxSkew 1, 1 in 20 excludes pods of its own
  from the host and 1 in 30 also those of its neighbour; 1 in 12 requires a label, 1 in 6 prefers one, 1 in 10 tolerates the
  NoExecute taint for 300 s, 1 in 7 has a PodDisruptionBudget of 10 % of its pods.
- 1 pod in 500 restarted 150 times, 1 in 300 failed, 1 in 100 is 30 days old.";

/// ReplicaSets.
const OWNERS: usize = 300;
const NAMESPACES: usize = 10;
const DAY: i64 = 86_400;

/// The time that everything is judged at.
pub(super) const NOW: Time = DEFAULT_NOW;

/// Writes the whole cluster.
pub(super) fn fill(service: &Service, nodes: usize, pods: usize) -> Result<(), Failure> {
    let shape = Shape { nodes, pods, owners: OWNERS.min(pods) };
    let mut writer = service.cluster.writer();
    writer.begin();
    let namespaces = (0..NAMESPACES).map(namespace_object);
    let objects = namespaces
        .chain((0..nodes).map(|i| shape.node(i)))
        .chain((0..shape.owners).map(|i| shape.replica_set(i)))
        .chain((0..shape.owners).step_by(7).map(|i| shape.budget(i)))
        .chain((0..pods).map(|i| shape.pod(i)));
    for object in objects {
        let read = manifest::object(&object, manifest::Options::default())?;
        writer.upsert(Prepared::new(read.value), Origin::file());
    }
    writer.readiness_mut().files_loaded();
    Ok(())
}

struct Shape {
    nodes: usize,
    pods: usize,
    owners: usize,
}

/// Says whether number `i` is the `n`th of each `of`: properties with other `n` fall on others.
fn one_in(i: usize, of: usize, n: usize) -> bool {
    i % of == n
}

fn namespace(owner: usize) -> String {
    format!("team-{}", owner % NAMESPACES)
}

fn app(owner: usize) -> String {
    format!("app-{owner}")
}

fn namespace_object(i: usize) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace(i), "uid": namespace(i) } })
}

/// The time so many seconds before [`NOW`], as manifests have times.
fn ago(seconds: i64) -> String {
    let micros = NOW.0.saturating_sub(seconds * 1_000_000);
    jiff::Timestamp::from_microsecond(micros).map(|time| time.to_string()).unwrap_or_default()
}

impl Shape {
    /// Pods of the owner. What can't be shared out evenly goes to the last.
    fn replicas(&self, owner: usize) -> usize {
        let each = self.pods / self.owners;
        if owner + 1 == self.owners { self.pods - each * (self.owners - 1) } else { each }
    }

    fn node(&self, i: usize) -> Value {
        let name = format!("node-{i:05}");
        let pods_per_node = self.pods.div_ceil(self.nodes);
        let size = if one_in(i, 25, 24) { 2 } else { 1 };
        let room = json!({
            "cpu": format!("{}m", size * 550 * pods_per_node),
            "memory": format!("{}Mi", size * 1_126 * pods_per_node),
            "pods": (4 * pods_per_node).max(110).to_string(),
        });
        let mut labels = json!({
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", 3 * i / self.nodes),
            "pool": if one_in(i, 40, 7) { "retired" } else { "general" },
        });
        if i.is_multiple_of(2) {
            labels["disk"] = json!("ssd");
        }
        let mut taints = Vec::new();
        if one_in(i, 50, 3) {
            taints.push(json!({ "key": "dedicated", "value": "batch", "effect": "NoSchedule" }));
        }
        if one_in(i, 100, 11) {
            taints.push(json!({ "key": "maintenance", "effect": "NoExecute", "timeAdded": ago(60) }));
        }
        if one_in(i, 50, 19) {
            taints.push(json!({ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }));
        }
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "uid": name, "labels": labels },
            "spec": { "taints": taints, "unschedulable": one_in(i, 50, 19) },
            "status": {
                "allocatable": room, "capacity": room, "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })
    }

    fn replica_set(&self, owner: usize) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "name": app(owner), "namespace": namespace(owner), "uid": app(owner) },
            "spec": { "replicas": self.replicas(owner), "selector": { "matchLabels": { "app": app(owner) } } },
        })
    }

    fn budget(&self, owner: usize) -> Value {
        let replicas = self.replicas(owner);
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": app(owner), "namespace": namespace(owner), "uid": format!("budget-{owner}") },
            "spec": { "maxUnavailable": "10%", "selector": { "matchLabels": { "app": app(owner) } } },
            "status": {
                "disruptionsAllowed": replicas / 10, "currentHealthy": replicas,
                "desiredHealthy": replicas - replicas / 10, "expectedPods": replicas,
            },
        })
    }

    /// Pods of an owner have consecutive numbers.
    fn owner_and_index(&self, i: usize) -> (usize, usize) {
        let each = self.pods / self.owners;
        let owner = (i / each).min(self.owners - 1);
        (owner, i - owner * each)
    }

    /// The first 70 % of each owner's pods go round all nodes, the others round the first quarter; one owner goes on where
    /// the one before ended.
    fn place(&self, owner: usize, index: usize) -> usize {
        let each = self.pods / self.owners;
        let spread = |replicas: usize| replicas * 7 / 10;
        let (even, crowded) = (spread(each), each - spread(each));
        let even_here = spread(self.replicas(owner));
        if index < even_here {
            (owner * even + index) % self.nodes
        } else {
            (owner * crowded + index - even_here) % self.nodes.div_ceil(4)
        }
    }

    fn pod(&self, i: usize) -> Value {
        let (owner, index) = self.owner_and_index(i);
        let name = format!("{}-{index:04}", app(owner));
        let (cpu, memory) = [("100m", "256Mi"), ("250m", "512Mi"), ("400m", "768Mi")][owner % 3];
        let age = if one_in(i, 100, 57) { 30 * DAY } else { DAY };
        let failed = one_in(i, 300, 123);
        let restarts = if one_in(i, 500, 77) { 150 } else { 0 };
        let mut spec = json!({
            "nodeName": format!("node-{:05}", self.place(owner, index)),
            "containers": [{
                "name": "main", "image": format!("registry.example/{}:1", app(owner)),
                "resources": { "requests": { "cpu": cpu, "memory": memory } },
            }],
            "affinity": affinity(owner),
        });
        if let Some(topology_key) = spread_over(owner) {
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": topology_key, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": { "matchLabels": { "app": app(owner) } },
            }]);
        }
        if one_in(owner, 10, 6) {
            spec["tolerations"] = json!([
                { "key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
            ]);
        }
        let mut status = json!({
            "phase": "Running", "startTime": ago(age),
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": restarts, "state": { "running": { "startedAt": ago(age) } },
            }],
        });
        if failed {
            status = json!({ "phase": "Failed", "reason": "Evicted", "startTime": ago(age) });
        }
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespace(owner), "uid": name, "creationTimestamp": ago(age),
                "labels": { "app": app(owner) },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app(owner), "uid": app(owner),
                    "controller": true,
                }],
            },
            "spec": spec, "status": status,
        })
    }
}

fn spread_over(owner: usize) -> Option<&'static str> {
    match owner % 10 {
        0 => Some("topology.kubernetes.io/zone"),
        5 => Some("kubernetes.io/hostname"),
        _ => None,
    }
}

fn affinity(owner: usize) -> Value {
    let mut affinity = json!({});
    let requirement = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    if one_in(owner, 12, 2) {
        affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({ "nodeSelectorTerms": [{ "matchExpressions": [requirement("pool", "general")] }] });
    }
    if one_in(owner, 6, 4) {
        affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
            json!([{ "weight": 50, "preference": { "matchExpressions": [requirement("disk", "ssd")] } }]);
    }
    let (own, neighbours) = (one_in(owner, 20, 13), one_in(owner, 30, 8));
    if own || neighbours {
        let mut excluded = vec![app(owner)];
        if neighbours {
            // The owner whose pods are in the same namespace.
            excluded.push(app(owner + NAMESPACES));
        }
        affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchExpressions": [{ "key": "app", "operator": "In", "values": excluded }] },
        }]);
    }
    affinity
}
