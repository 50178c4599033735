//! Random objects and requests whose numbers are as large, as small and as odd as the API server lets them be.
//!
//! Everything goes in as a manifest, through the readers that clients meet. Names come from small sets, so that objects are
//! replaced, deleted and made anew under their names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::engine::Override;
use crate::engine::plugins::{ScoringStrategy, ShapePoint};
use crate::engine::random_cluster::Dice;
use crate::evict::Mode;
use crate::manifest;
use crate::model::{Pod, Time};
use crate::service::evict::{self, PolicySource};
use crate::service::explain::DetailLevel;
use crate::service::feed::{Ack, Assume, Batch, Event, FeedSession, Reference, StreamKind};
use crate::service::profiles::Profiles;
use crate::service::schedule::{Answer, Request};
use crate::service::{ManualClock, Service, ServiceError};

/// Every amount that a resource list may have, the largest of each form among them.
const AMOUNTS: [&str; 14] = [
    "0",
    "1",
    "7",
    "100m",
    "1m",
    "3",
    "1Gi",
    "5Ei",
    "5Ei",
    "8Ei",
    "9223372036854775807",
    "9223372036854775807m",
    "1e30",
    "9223372036854775806",
];
/// For extended resources, which come whole.
const WHOLE: [&str; 5] = ["0", "1", "7", "5Ei", "9223372036854775807"];
/// What only statuses and usage may say besides.
const NEGATIVE: [&str; 4] = ["-1", "-5Ei", "-9223372036854775808", "-1e30"];
const INT32: [i32; 5] = [i32::MIN, -1, 0, 1, i32::MAX];
const NODES: usize = 5;
const PODS: usize = 12;
const ZONE: &str = "topology.kubernetes.io/zone";

pub(super) struct World {
    pub(super) service: Arc<Service>,
    clock: Arc<ManualClock>,
    /// What was fed and not deleted, by kind and name.
    pub(super) truth: BTreeMap<(&'static str, String), Value>,
    made: usize,
}

fn amount(dice: &mut Dice) -> &'static str {
    dice.pick(&AMOUNTS)
}

fn amounts(dice: &mut Dice, one_in: usize) -> Value {
    let mut list = serde_json::Map::new();
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if dice.one_in(one_in) {
            list.insert(name.into(), json!(amount(dice)));
        }
    }
    if dice.one_in(2 * one_in) {
        list.insert("x.example/gpu".into(), json!(dice.pick(&WHOLE)));
    }
    Value::Object(list)
}

/// As a status or a metrics server may have them.
fn reported(dice: &mut Dice) -> Value {
    let any = |dice: &mut Dice| if dice.one_in(3) { dice.pick(&NEGATIVE) } else { amount(dice) };
    json!({ "cpu": any(dice), "memory": any(dice) })
}

fn random_node(dice: &mut Dice, name: &str) -> Value {
    let mut allocatable = amounts(dice, 1);
    allocatable["pods"] = json!(dice.pick(&["110", "3", "0", "9223372036854775807", "1e30"]));
    if dice.one_in(2) {
        // A node like any other, on which the odd pods meet.
        allocatable["cpu"] = json!("64");
        allocatable["memory"] = json!("256Gi");
    }
    let size = [i64::MIN, -1, 0, 500 << 20, i64::MAX];
    let images = json!([
        { "names": ["app:1"], "sizeBytes": dice.pick(&size) },
        { "names": ["app:2"], "sizeBytes": dice.pick(&size) },
    ]);
    let taints = if dice.one_in(4) {
        json!([{ "key": "k", "value": "v", "effect": dice.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]) }])
    } else {
        json!([])
    };
    json!({
        "metadata": { "labels": { "kubernetes.io/hostname": name, ZONE: dice.pick(&["a", "b"]) } },
        "spec": { "taints": taints, "unschedulable": dice.one_in(8) },
        "status": { "allocatable": allocatable, "capacity": amounts(dice, 1), "images": images },
    })
}

fn random_pod_spec(dice: &mut Dice) -> Value {
    let container = |dice: &mut Dice, name: &str| {
        let image = dice.pick(&["app:1", "app:2", "other"]);
        json!({ "name": name, "image": image, "resources": { "requests": amounts(dice, 2), "limits": amounts(dice, 6) } })
    };
    let selector = json!({ "matchLabels": { "app": dice.pick(&["web", "db"]) } });
    let mut spec = json!({
        "containers": (0..=dice.below(2)).map(|i| container(dice, &format!("c{i}"))).collect::<Vec<_>>(),
        "priority": dice.pick(&INT32),
        "terminationGracePeriodSeconds": dice.pick(&[0, 30, i64::MAX]),
    });
    if dice.one_in(4) {
        let mut init = container(dice, "i");
        if dice.one_in(2) {
            init["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!([init]);
    }
    if dice.one_in(6) {
        spec["overhead"] = amounts(dice, 2);
    }
    if dice.one_in(6) {
        spec["resources"] = json!({ "requests": { "cpu": amount(dice), "memory": amount(dice) } });
    }
    if dice.one_in(4) {
        let term = json!({ "labelSelector": selector, "topologyKey": ZONE });
        let weighted = json!([{ "weight": dice.pick(&[1, 100]), "podAffinityTerm": term }]);
        let side = dice.pick(&["podAffinity", "podAntiAffinity"]);
        spec["affinity"][side]["preferredDuringSchedulingIgnoredDuringExecution"] = weighted;
    }
    if dice.one_in(4) {
        let when = dice.pick(&["ScheduleAnyway", "DoNotSchedule"]);
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": dice.pick(&[1, i32::MAX]), "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": selector,
        }]);
    }
    if dice.one_in(3) {
        spec["tolerations"] = json!([{ "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": dice.pick(&[i64::MIN, -1, 0, i64::MAX]) }]);
    }
    if dice.one_in(4) {
        spec["volumes"] = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "claim" } }]);
    }
    spec
}

fn random_pod(dice: &mut Dice) -> Value {
    let mut spec = random_pod_spec(dice);
    if !dice.one_in(4) {
        spec["nodeName"] = json!(format!("n{}", dice.below(NODES + 1)));
    }
    let status = |dice: &mut Dice| {
        json!([{ "name": "c0", "restartCount": dice.pick(&INT32), "resources": { "requests": reported(dice) },
            "allocatedResources": reported(dice) }])
    };
    let phase = dice.pick(&["Running", "Running", "Running", "Pending", "Failed", "Succeeded"]);
    let time = ["0001-01-01T00:00:00Z", "1970-01-12T13:46:40Z", "9999-12-30T22:00:00Z"];
    json!({
        "metadata": {
            "labels": { "app": dice.pick(&["web", "db"]) }, "creationTimestamp": dice.pick(&time),
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true }],
        },
        "spec": spec,
        "status": {
            "phase": phase, "startTime": dice.pick(&time),
            "containerStatuses": if dice.one_in(3) { status(dice) } else { json!([]) },
        },
    })
}

fn random_object(dice: &mut Dice, kind: &str) -> Value {
    match kind {
        "NodeMetrics" => json!({ "usage": reported(dice) }),
        "PodMetrics" => {
            json!({ "containers": [{ "name": "c0", "usage": reported(dice) }, { "name": "c1", "usage": reported(dice) }] })
        }
        "PodDisruptionBudget" => json!({
            "spec": { "selector": { "matchLabels": { "app": "web" } } },
            "status": { "disruptionsAllowed": dice.pick(&INT32), "currentHealthy": dice.pick(&INT32),
                "desiredHealthy": dice.pick(&INT32), "expectedPods": dice.pick(&INT32) },
        }),
        "CSINode" => json!({ "spec": { "drivers": [{ "name": "csi.example", "nodeID": "n",
            "allocatable": { "count": dice.pick(&[0, 1, i32::MAX]) } }] } }),
        "StorageClass" => json!({ "provisioner": "csi.example", "volumeBindingMode": "WaitForFirstConsumer" }),
        "CSIStorageCapacity" => json!({ "storageClassName": "class", "nodeTopology": {}, "capacity": amount(dice),
            "maximumVolumeSize": amount(dice) }),
        "PersistentVolume" => {
            json!({ "spec": { "capacity": { "storage": amount(dice) }, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "class", "csi": { "driver": "csi.example", "volumeHandle": "h" } },
            "status": { "phase": "Available" } })
        }
        _ => json!({ "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": "class",
            "resources": { "requests": { "storage": amount(dice) } } }, "status": { "phase": "Pending" } }),
    }
}

/// The kinds besides nodes and pods, with their versions.
const OTHERS: [(&str, &str); 8] = [
    ("NodeMetrics", "metrics.k8s.io/v1beta1"),
    ("PodMetrics", "metrics.k8s.io/v1beta1"),
    ("PodDisruptionBudget", "policy/v1"),
    ("CSINode", "storage.k8s.io/v1"),
    ("StorageClass", "storage.k8s.io/v1"),
    ("CSIStorageCapacity", "storage.k8s.io/v1"),
    ("PersistentVolume", "v1"),
    ("PersistentVolumeClaim", "v1"),
];

fn stream_of(kind: &str) -> StreamKind {
    match kind {
        "Node" => StreamKind::Nodes,
        "Pod" => StreamKind::Pods,
        _ => StreamKind::Objects,
    }
}

fn namespace_of(kind: &str) -> &'static str {
    match kind {
        "Pod" | "PodMetrics" | "PodDisruptionBudget" | "PersistentVolumeClaim" | "CSIStorageCapacity" => "default",
        _ => "",
    }
}

fn random_override(dice: &mut Dice) -> Override {
    let mut changes = Override::default();
    if dice.one_in(2) {
        return changes;
    }
    for plugin in ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "TaintToleration"] {
        if dice.one_in(2) {
            changes.weights.insert(plugin.to_owned(), dice.pick(&[1, i64::from(i32::MAX)]));
        }
    }
    let shape = [(0, dice.pick(&[0, 100])), (50, 0), (100, dice.pick(&[0, 100]))];
    let shape = shape.map(|(utilization, score)| ShapePoint { utilization, score }).to_vec();
    let strategy = match dice.below(4) {
        0 => ScoringStrategy::LeastAllocated,
        1 => ScoringStrategy::MostAllocated,
        2 => ScoringStrategy::RequestedToCapacityRatio(shape),
        _ => return changes,
    };
    let resources = ["cpu", "memory", "ephemeral-storage", "x.example/gpu", "nowhere"];
    let weight = |dice: &mut Dice| dice.pick(&[1, 100]);
    changes.strategy = Some((strategy, resources.map(|name| (name.into(), weight(dice))).to_vec()));
    changes
}

fn random_policy(dice: &mut Dice) -> String {
    let level = |dice: &mut Dice| dice.pick(&[0, 1, 20, 50, 100]);
    let (low, cpu, memory) = (level(dice), level(dice), level(dice));
    let target = |low: i32, dice: &mut Dice| dice.pick(&[low, 100]);
    let deviation = dice.one_in(3);
    let measured = dice.pick(&["metricsUtilization: {source: KubernetesMetrics}", "numberOfNodes: 0"]);
    let most = dice.pick(&["1", "4294967295"]);
    let (fit, restarts, life) = (dice.one_in(2), dice.pick(&[1, i32::MAX]), dice.pick(&["0", "1", "4294967295"]));
    let balance = dice.pick(&["LowNodeUtilization", "HighNodeUtilization"]);
    let args = match balance {
        "LowNodeUtilization" => format!(
            "{{useDeviationThresholds: {deviation}, thresholds: {{cpu: {cpu}, memory: {memory}}}, \
             targetThresholds: {{cpu: {}, memory: {}}}, {measured}}}",
            target(cpu, dice),
            target(memory, dice)
        ),
        _ => format!("{{thresholds: {{cpu: {cpu}, memory: {memory}, pods: {low}}}}}"),
    };
    format!(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmaxNoOfPodsToEvictPerNode: {most}\n\
         metricsProviders: [{{source: KubernetesMetrics}}]\nprofiles:\n- name: p\n  pluginConfig:\n\
         \x20 - {{name: DefaultEvictor, args: {{nodeFit: {fit}}}}}\n\
         \x20 - {{name: {balance}, args: {args}}}\n\
         \x20 - {{name: RemovePodsHavingTooManyRestarts, args: {{podRestartThreshold: {restarts}}}}}\n\
         \x20 - {{name: PodLifeTime, args: {{maxPodLifeTimeSeconds: {life}}}}}\n\
         \x20 - name: RemovePodsViolatingNodeTaints\n  - name: RemovePodsViolatingNoExecuteTaints\n\
         \x20 - name: RemoveFailedPods\n  - name: RemoveDuplicates\n\
         \x20 - name: RemovePodsViolatingTopologySpreadConstraint\n\
         \x20 plugins:\n    balance: {{enabled: [{balance}, RemoveDuplicates, RemovePodsViolatingTopologySpreadConstraint]}}\n\
         \x20   deschedule: {{enabled: [RemovePodsHavingTooManyRestarts, PodLifeTime, RemovePodsViolatingNodeTaints, \
         RemovePodsViolatingNoExecuteTaints, RemoveFailedPods]}}\n"
    )
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_secs(1_000_000)));
        let service = Arc::new(Service::new(Profiles::default(), clock.clone()));
        Self { service, clock, truth: BTreeMap::new(), made: 0 }
    }

    /// Applies one event on a stream of its own.
    pub(super) fn feed(&self, stream: StreamKind, event: Event) -> Ack {
        let mut session = FeedSession::new(self.service.clone(), stream);
        session.apply(Batch { sequence: 0, events: vec![event], control: None }).unwrap()
    }

    /// Writes an object as it now is; all that isn't extreme about it is legal.
    pub(super) fn put(&mut self, kind: &'static str, name: &str, mut manifest: Value) {
        let known = self.truth.get(&(kind, name.to_owned())).map(|known| known["metadata"]["uid"].clone());
        self.made += 1;
        let uid = known.unwrap_or_else(|| json!(format!("{name}-{}", self.made)));
        let version = OTHERS.iter().find(|(other, _)| *other == kind).map_or("v1", |(_, version)| version);
        manifest["apiVersion"] = json!(version);
        manifest["kind"] = json!(kind);
        manifest["metadata"]["name"] = json!(name);
        manifest["metadata"]["uid"] = uid;
        if !namespace_of(kind).is_empty() {
            manifest["metadata"]["namespace"] = json!(namespace_of(kind));
        }
        let ack = self.feed(stream_of(kind), Event::Upsert(manifest.clone().into()));
        assert!(ack.rejections.is_empty(), "{manifest}: {:?}", ack.rejections);
        self.truth.insert((kind, name.to_owned()), manifest);
    }

    pub(super) fn delete(&mut self, kind: &'static str, name: &str) {
        let gone = Reference {
            kind: kind.into(),
            namespace: namespace_of(kind).into(),
            name: name.into(),
            uid: String::new(),
        };
        assert!(self.feed(stream_of(kind), Event::Delete(gone)).rejections.is_empty());
        self.truth.remove(&(kind, name.to_owned()));
    }

    pub(super) fn pod(manifest: &Value) -> Pod {
        manifest::pod_from(manifest, manifest::Options::default()).unwrap().value
    }

    pub(super) fn schedule(&self, request: Request) -> Result<Answer, ServiceError> {
        self.service.schedule(request, &AtomicBool::new(false))
    }

    /// A pod of one container of these requests that nobody has fed.
    pub(super) fn plain(name: &str, requests: &Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default", "uid": name },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": requests } }] } })
    }

    /// One step of a history.
    pub(super) fn apply(&mut self, op: u64) {
        let mut dice = Dice::new(op);
        match dice.below(24) {
            0..=3 => {
                let name = format!("n{}", dice.below(NODES));
                self.put("Node", &name, random_node(&mut dice, &name));
            }
            4..=11 => {
                let name = format!("p{}", dice.below(PODS));
                self.put("Pod", &name, random_pod(&mut dice));
            }
            12..=13 => {
                let (kind, _) = dice.pick(&OTHERS);
                let name = match kind {
                    "NodeMetrics" | "CSINode" => format!("n{}", dice.below(NODES)),
                    "PodMetrics" => format!("p{}", dice.below(PODS)),
                    "StorageClass" => "class".to_owned(),
                    "PersistentVolumeClaim" => "claim".to_owned(),
                    _ => format!("x{}", dice.below(2)),
                };
                self.put(kind, &name, random_object(&mut dice, kind));
            }
            14..=16 => {
                let known: Vec<_> = self.truth.keys().cloned().collect();
                if !known.is_empty() {
                    let (kind, name) = known[dice.below(known.len())].clone();
                    self.delete(kind, &name);
                }
            }
            17..=19 => self.decide(&mut dice),
            20 => self.assume(&mut dice),
            21 => {
                let ids: Vec<_> = self.service.cluster.writer().reservations().iter().map(|r| r.id.clone()).collect();
                if !ids.is_empty() {
                    self.service.release(&ids[dice.below(ids.len())]);
                }
            }
            22 => {
                self.clock.advance_secs(30);
                self.service.expire_reservations();
            }
            _ => self.plan(&mut dice),
        }
    }

    fn waiting_pod(&self, dice: &mut Dice) -> Value {
        let mut manifest = random_pod(dice);
        let name = format!("new{}", dice.below(4));
        manifest["apiVersion"] = json!("v1");
        manifest["kind"] = json!("Pod");
        manifest["metadata"]["name"] = json!(name);
        manifest["metadata"]["namespace"] = json!("default");
        manifest["metadata"]["uid"] = json!(name);
        manifest["status"] = json!({});
        if let Some(spec) = manifest["spec"].as_object_mut() {
            spec.remove("nodeName");
        }
        manifest
    }

    /// Asks for a place. There is an answer, or a mistake of the request's: never one of Berth's own.
    fn decide(&self, dice: &mut Dice) {
        let request = Request {
            dry_run: dice.one_in(3),
            nominate: dice.one_in(4),
            detail: DetailLevel::Full,
            overrides: random_override(dice),
            ..Request::new(Self::pod(&self.waiting_pod(dice)))
        };
        let answer = self.schedule(request.clone());
        assert!(!matches!(answer, Err(ServiceError::Internal(_) | ServiceError::Cancelled)), "{request:?}: {answer:?}");
    }

    fn assume(&self, dice: &mut Dice) {
        let pod = self.waiting_pod(dice).into();
        let node = format!("n{}", dice.below(NODES));
        let assume = Assume { pod, node, ttl_micros: None, reservation_id: String::new(), bindings: Vec::new() };
        // Refused where the node isn't known.
        self.feed(StreamKind::Pods, Event::Assume(assume));
    }

    fn plan(&self, dice: &mut Dice) {
        let policy = random_policy(dice);
        for mode in [Mode::Compatible, Mode::Planned] {
            let hold_landings = mode == Mode::Planned && dice.one_in(4);
            let request =
                evict::Request { mode, hold_landings, ..evict::Request::new(PolicySource::Text(policy.clone())) };
            let answer = self.service.suggest_evictions(request, &AtomicBool::new(false));
            match answer {
                Ok(_) | Err(ServiceError::NotReady(_)) => {}
                Err(other) => panic!("{mode:?} {policy}: {other}"),
            }
        }
    }
}
