//! The cluster of `berth bench soak`: clients that make pods come and go as controllers would.
//!
//! A worker is one client with its own share of nodes and pods: it opens streams, sends batches, asks for nodes, confirms,
//! and deletes. What it knows of a living pod is a number, from which names, labels and everything else follow.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::Failure;
use crate::model::Str;
use crate::service::Service;
use crate::service::feed::{Batch, Control, Event, FeedSession, Reference, StreamKind};
use crate::service::schedule::{Request, Verdict};
use crate::service::source::Source;

/// Pods that come with one batch.
const BATCH: u64 = 256;
/// Pods of one owner: they share the pod-template-hash that nobody else has.
const REPLICAS: u64 = 8;
/// One owner in so many is a ReplicaSet, which brings the default spreading with it and so a selector to count; the others
/// are Jobs, whose pods are the short-lived ones.
const REPLICA_SET_EVERY: u64 = 4;
/// Pods of one namespace.
const NAMESPACE_PODS: u64 = 256;
/// One pod in so many has a claim with a volume of its own, terms on its own labels, a resource that nobody else asks for and
/// no node offers: somebody else binds that one.
const CLAIM_EVERY: u64 = 32;
const TERMS_EVERY: u64 = 16;
const RESOURCE_EVERY: u64 = 512;
/// Nodes of which one has a resource that no other offers.
const NODES_A_RESOURCE: u64 = 64;
/// One in so many is never confirmed: its reservation is given back, or left to expire after a second.
const RELEASE_EVERY: u64 = 50;
const EXPIRE_EVERY: u64 = 53;
/// One in so many ends (Succeeded) before it is deleted.
const FINISH_EVERY: u64 = 7;
/// Nodes that come into question for a pod; all of them for one in [`EVERYWHERE_EVERY`].
const CANDIDATES: u64 = 4;
const EVERYWHERE_EVERY: u64 = 1_000;
/// Batches after which a node is replaced by another of a new name, and the streams are opened anew; each other time under
/// another source name, else with a higher epoch.
const NODE_EVERY: u64 = 16;
const STREAMS_EVERY: u64 = 20;

/// What became of the pods.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) placed: u64,
    pub(super) refused: u64,
}

impl Counts {
    pub(super) fn add(&mut self, more: Self) {
        self.placed += more.placed;
        self.refused += more.refused;
    }

    /// Pods that nobody placed prove nothing.
    pub(super) fn check(self, pods: u64) -> Result<(), Failure> {
        if self.refused > pods / 20 {
            return Err(format!("{} of {pods} pods were refused; give the cluster more --nodes", self.refused).into());
        }
        Ok(())
    }
}

/// A worker.
pub(super) struct Churn {
    service: Arc<Service>,
    name: String,
    feeds: Feeds,
    /// Pods that it keeps in the cluster.
    capacity: usize,
    /// Numbers of the pods that live.
    living: Vec<u64>,
    /// Numbers of its nodes, and the next one.
    nodes: Vec<u64>,
    next_node: u64,
    next_pod: u64,
    batches: u64,
    random: u64,
    counts: Counts,
}

/// What became of a request for a node.
enum Placed {
    /// To be bound there.
    On(u64),
    /// Reserved, and left to expire.
    Unconfirmed,
    Nowhere,
}

/// The open streams of a client.
struct Feeds {
    source: String,
    epoch: u64,
    nodes: Feed,
    pods: Feed,
    objects: Feed,
}

struct Feed {
    session: FeedSession,
    sequence: u64,
}

impl Feed {
    fn open(service: &Arc<Service>, kind: StreamKind, source: &str, epoch: u64) -> Result<Self, Failure> {
        let mut feed = Self { session: FeedSession::new(service.clone(), kind), sequence: 0 };
        feed.send(Some(Control::Hello { source: source.into(), epoch, incarnation: String::new() }), Vec::new())?;
        Ok(feed)
    }

    /// Sends in batches of the protocol's size.
    fn send(&mut self, control: Option<Control>, events: Vec<Event>) -> Result<(), Failure> {
        let mut events = events.into_iter().peekable();
        let mut control = control;
        while control.is_some() || events.peek().is_some() {
            self.sequence += 1;
            let part = events.by_ref().take(crate::service::feed::MAX_EVENTS).collect();
            let ack = self.session.apply(Batch { sequence: self.sequence, events: part, control: control.take() })?;
            if let Some(rejection) = ack.rejections.first() {
                return Err(rejection.message.clone().into());
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, events: Vec<Event>) -> Result<(), Failure> {
        self.send(Some(Control::SnapshotBegin { kinds: Vec::new() }), events)?;
        self.send(Some(Control::SnapshotEnd), Vec::new())
    }
}

impl Feeds {
    fn open(service: &Arc<Service>, source: String, epoch: u64) -> Result<Self, Failure> {
        let open = |kind| Feed::open(service, kind, &source, epoch);
        let (nodes, pods, objects) = (open(StreamKind::Nodes)?, open(StreamKind::Pods)?, open(StreamKind::Objects)?);
        Ok(Self { source, epoch, nodes, pods, objects })
    }
}

/// The workers of a cluster of this size; its nodes are there, its pods not yet.
pub(super) fn start(service: &Arc<Service>, nodes: u64, pods: u64, workers: u64) -> Result<Vec<Churn>, Failure> {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "fast", "uid": "class-fast" },
        "provisioner": "csi.example.com", "volumeBindingMode": "Immediate",
    });
    Feed::open(service, StreamKind::Objects, "classes", 1)?.send(None, vec![upsert(class)])?;
    (0..workers).map(|number| Churn::start(service, number, nodes / workers, pods / workers)).collect()
}

impl Churn {
    fn start(service: &Arc<Service>, number: u64, nodes: u64, pods: u64) -> Result<Self, Failure> {
        let name = format!("w{number}");
        let mut feeds = Feeds::open(service, name.clone(), 1)?;
        let numbers: Vec<u64> = (0..nodes).collect();
        feeds.nodes.snapshot(numbers.iter().map(|i| upsert(node(&name, *i))).collect())?;
        feeds.pods.snapshot(Vec::new())?;
        Ok(Self {
            service: service.clone(),
            name,
            feeds,
            capacity: usize::try_from(pods)?,
            living: Vec::new(),
            next_node: nodes,
            nodes: numbers,
            next_pod: 0,
            batches: 0,
            random: number,
            counts: Counts::default(),
        })
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Until so many pods have come.
    pub(super) fn run_to(&mut self, pods: u64) -> Result<(), Failure> {
        while self.next_pod < pods {
            self.batch()?;
        }
        Ok(())
    }

    fn batch(&mut self) -> Result<(), Failure> {
        self.batches += 1;
        if self.batches.is_multiple_of(NODE_EVERY) {
            self.replace_a_node()?;
        }
        if self.batches.is_multiple_of(STREAMS_EVERY) {
            self.open_streams_anew()?;
        }
        let new: Vec<u64> = (self.next_pod..self.next_pod + BATCH).collect();
        self.next_pod += BATCH;
        let objects = new.iter().flat_map(|i| self.objects_before(*i)).map(upsert).collect();
        self.feeds.objects.send(None, objects)?;
        self.feeds.pods.send(None, new.iter().map(|i| upsert(self.pod(*i, None))).collect())?;
        let (mut bound, mut gone) = (Vec::new(), Vec::new());
        for i in new {
            match self.place(i)? {
                Placed::On(node) => bound.push(upsert(self.pod(i, Some(node)))),
                Placed::Unconfirmed => {}
                Placed::Nowhere => {
                    gone.push(i);
                    continue;
                }
            }
            self.living.push(i);
        }
        self.feeds.pods.send(None, bound)?;
        while self.living.len() > self.capacity {
            let at = self.below(self.living.len() as u64);
            gone.push(self.living.swap_remove(usize::try_from(at)?));
        }
        let finished = gone.iter().filter(|i| i.is_multiple_of(FINISH_EVERY)).map(|i| upsert(self.finished(*i)));
        self.feeds.pods.send(None, finished.collect())?;
        self.feeds.pods.send(None, gone.iter().map(|i| self.delete_pod(*i)).collect())?;
        self.feeds.objects.send(None, gone.iter().flat_map(|i| self.objects_after(*i)).collect())?;
        self.service.expire_reservations();
        Ok(())
    }

    fn any_node(&mut self) -> u64 {
        let at = self.below(self.nodes.len() as u64);
        usize::try_from(at).ok().and_then(|at| self.nodes.get(at)).copied().unwrap_or(0)
    }

    fn place(&mut self, i: u64) -> Result<Placed, Failure> {
        if i.is_multiple_of(RESOURCE_EVERY) {
            return Ok(Placed::On(self.any_node()));
        }
        let candidates = if i.is_multiple_of(EVERYWHERE_EVERY) { 0 } else { CANDIDATES };
        let candidates: Vec<u64> = (0..candidates).map(|_| self.any_node()).collect();
        let ends = i.is_multiple_of(EXPIRE_EVERY);
        let request = Request {
            candidates: candidates.into_iter().map(|node| self.node_name(node)).collect(),
            ttl_micros: ends.then_some(1_000_000),
            ..Request::new(Source::from(self.pod(i, None)).pod("pod")?.value)
        };
        let answer = self.service.schedule(request, &AtomicBool::new(false))?;
        let Verdict::Placed { node, reservation, .. } = answer.verdict else {
            self.counts.refused += 1;
            return Ok(Placed::Nowhere);
        };
        self.counts.placed += 1;
        if i.is_multiple_of(RELEASE_EVERY) {
            if let Some(held) = reservation {
                self.service.release(&held.id);
            }
            return Ok(Placed::Nowhere);
        }
        // One that was asked about everywhere may get another worker's node.
        Ok(match self.number_of(&node) {
            Some(node) if !ends => Placed::On(node),
            _ => Placed::Unconfirmed,
        })
    }

    fn number_of(&self, node: &Str) -> Option<u64> {
        node.strip_prefix(&self.name)?.strip_prefix("-node-")?.parse().ok()
    }

    /// A node goes, with another in its place. Its pods are left to themselves until they are deleted.
    fn replace_a_node(&mut self) -> Result<(), Failure> {
        let at = usize::try_from(self.below(self.nodes.len() as u64))?;
        let old = std::mem::replace(&mut self.nodes[at], self.next_node);
        let new = upsert(node(&self.name, self.next_node));
        self.next_node += 1;
        let reference = Reference { kind: "Node".into(), name: self.node_name(old), ..Reference::default() };
        self.feeds.nodes.send(None, vec![Event::Delete(reference), new])
    }

    fn open_streams_anew(&mut self) -> Result<(), Failure> {
        let (source, epoch) = if self.batches.is_multiple_of(2 * STREAMS_EVERY) {
            (format!("{}-{}", self.name, self.batches), 1)
        } else {
            (self.feeds.source.clone(), self.feeds.epoch + 1)
        };
        self.feeds = Feeds::open(&self.service, source, epoch)?;
        Ok(())
    }

    /// SplitMix64, as `engine::select` has it for ties.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn node_name(&self, i: u64) -> String {
        format!("{}-node-{i}", self.name)
    }

    fn namespace(&self, i: u64) -> String {
        format!("{}-ns-{}", self.name, i / NAMESPACE_PODS)
    }

    fn owner(&self, i: u64) -> String {
        format!("{}-owner-{:08x}", self.name, i / REPLICAS)
    }

    fn pod(&self, i: u64, on: Option<u64>) -> Value {
        let (api_version, kind) = if is_of_replica_set(i) { ("apps/v1", "ReplicaSet") } else { ("batch/v1", "Job") };
        let (name, hash) = (format!("{}-pod-{i}", self.name), format!("{:08x}{}", i / REPLICAS, self.name));
        let mut spec = json!({ "containers": [{
            "name": "main", "image": format!("registry.example/app:{}", i % 100),
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
        }] });
        if i.is_multiple_of(TERMS_EVERY) {
            let of_hash = json!({ "matchLabels": { "pod-template-hash": hash } });
            spec["affinity"] = json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 10, "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname", "labelSelector": of_hash } },
            ] } });
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": { "unique": name } },
            }]);
        }
        if i.is_multiple_of(CLAIM_EVERY) {
            let claim = json!({ "claimName": format!("{name}-data") });
            spec["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": claim }]);
        }
        if i.is_multiple_of(RESOURCE_EVERY) {
            spec["containers"][0]["resources"]["requests"][format!("example.com/{name}")] = json!("1");
            spec["containers"][0]["resources"]["limits"] = json!({ format!("example.com/{name}"): "1" });
        }
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": self.namespace(i), "uid": format!("uid-{name}"),
                "resourceVersion": if on.is_some() { "2" } else { "1" },
                "labels": { "app": format!("app-{}", i % 500), "pod-template-hash": hash, "unique": name },
                "ownerReferences": [{
                    "apiVersion": api_version, "kind": kind, "name": self.owner(i), "uid": self.owner(i),
                    "controller": true,
                }],
            },
            "spec": spec,
        });
        if let Some(node) = on {
            pod["spec"]["nodeName"] = json!(self.node_name(node));
            pod["status"] = json!({ "phase": "Running" });
        }
        pod
    }

    /// As the API server shows it once it has ended. Whether it ever had a node makes no difference any more.
    fn finished(&self, i: u64) -> Value {
        let mut pod = self.pod(i, None);
        pod["metadata"]["resourceVersion"] = json!("3");
        pod["status"] = json!({ "phase": "Succeeded" });
        pod
    }

    fn delete_pod(&self, i: u64) -> Event {
        let name = format!("{}-pod-{i}", self.name);
        let (uid, namespace) = (format!("uid-{name}"), self.namespace(i));
        Event::Delete(Reference { kind: "Pod".into(), namespace, name, uid })
    }

    /// What comes with a pod: the first of an owner and of a namespace bring those along.
    fn objects_before(&self, i: u64) -> Vec<Value> {
        let mut objects = Vec::new();
        let namespace = self.namespace(i);
        if i.is_multiple_of(NAMESPACE_PODS) {
            objects.push(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": namespace, "uid": format!("uid-{namespace}"), "labels": { "unique": namespace } },
            }));
        }
        if i.is_multiple_of(REPLICAS) && is_of_replica_set(i) {
            let hash = format!("{:08x}{}", i / REPLICAS, self.name);
            objects.push(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": { "name": self.owner(i), "namespace": namespace, "uid": self.owner(i) },
                "spec": { "replicas": REPLICAS, "selector": { "matchLabels": { "pod-template-hash": hash } } },
            }));
        }
        if i.is_multiple_of(CLAIM_EVERY) {
            let (claim, volume) = (format!("{}-pod-{i}-data", self.name), format!("{}-pv-{i}", self.name));
            objects.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": volume, "uid": volume },
                "spec": {
                    "capacity": { "storage": "10Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                    "csi": { "driver": "csi.example.com", "volumeHandle": volume },
                    "claimRef": { "namespace": namespace, "name": claim, "uid": claim },
                },
                "status": { "phase": "Bound" },
            }));
            objects.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim, "namespace": namespace, "uid": claim,
                    "annotations": { "pv.kubernetes.io/bind-completed": "yes" },
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "volumeName": volume,
                    "resources": { "requests": { "storage": "10Gi" } },
                },
                "status": { "phase": "Bound" },
            }));
        }
        objects
    }

    /// What goes with a pod. Owners and namespaces go with their first pod, though others of theirs may live on: objects
    /// come and go in any order.
    fn objects_after(&self, i: u64) -> Vec<Event> {
        let mut gone = Vec::new();
        let mut delete = |kind: &str, namespace: String, name: String| {
            gone.push(Event::Delete(Reference { kind: kind.into(), namespace, name, uid: String::new() }));
        };
        if i.is_multiple_of(NAMESPACE_PODS) {
            delete("Namespace", String::new(), self.namespace(i));
        }
        if i.is_multiple_of(REPLICAS) && is_of_replica_set(i) {
            delete("ReplicaSet", self.namespace(i), self.owner(i));
        }
        if i.is_multiple_of(CLAIM_EVERY) {
            delete("PersistentVolumeClaim", self.namespace(i), format!("{}-pod-{i}-data", self.name));
            delete("PersistentVolume", String::new(), format!("{}-pv-{i}", self.name));
        }
        gone
    }
}

fn is_of_replica_set(i: u64) -> bool {
    (i / REPLICAS).is_multiple_of(REPLICA_SET_EVERY)
}

fn upsert(object: Value) -> Event {
    Event::Upsert(Source::from(object))
}

/// A node of a worker; each has an image that no other has.
fn node(worker: &str, i: u64) -> Value {
    let name = format!("{worker}-node-{i}");
    let mut allocatable = json!({ "cpu": "64", "memory": "256Gi", "pods": "110" });
    if i.is_multiple_of(NODES_A_RESOURCE) {
        allocatable[format!("example.com/{name}")] = json!("1");
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"),
            "labels": { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{}", i % 3) },
        },
        "status": {
            "allocatable": allocatable,
            "images": [{ "names": [format!("registry.example/app:{}", i % 100), format!("registry.example/{name}:1")],
                "sizeBytes": 100_000_000 }],
        },
    })
}
