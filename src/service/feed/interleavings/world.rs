//! A small cluster under a random history of streams: see the module above.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::cluster::Writer;
use crate::cluster::reservation::Basis;
use crate::cluster::writer::Reserve;
use crate::engine::random_cluster::Dice;
use crate::manifest;
use crate::model::Time;
use crate::service::feed::{Batch, Control, Event, FeedSession, Reference, StreamKind};
use crate::service::profiles::Profiles;
use crate::service::schedule::Request;
use crate::service::{ManualClock, Service, ServiceError};

pub(super) const KINDS: [StreamKind; 3] = [StreamKind::Nodes, StreamKind::Pods, StreamKind::Objects];
pub(super) const OBJECT_KINDS: [&str; 5] =
    ["Namespace", "Service", "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget"];
/// The last one never says Hello.
pub(super) const SOURCES: [&str; 3] = ["informer", "other", ""];
pub(super) const NODES: usize = 5;
pub(super) const PODS: usize = 9;

/// Kind, namespace and name. Namespaces are drawn from the name, so that a name stands for one object.
pub(super) type Key = (&'static str, String);

/// A change as a client sends it.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Upsert(Value),
    Delete(Reference),
}

impl Change {
    fn event(&self) -> Event {
        match self.clone() {
            Self::Upsert(manifest) => Event::Upsert(manifest.into()),
            Self::Delete(reference) => Event::Delete(reference),
        }
    }
}

pub(super) struct Stream {
    source: usize,
    kind: StreamKind,
    epoch: u64,
    session: Option<FeedSession>,
    sequence: u64,
    /// Streams of the same source and kind that were taken over and don't know it yet.
    fenced: Vec<(FeedSession, u64)>,
    outbox: VecDeque<Change>,
    sent: Vec<Change>,
    /// What a snapshot under way has still to send.
    snapshot: Option<VecDeque<Change>>,
}

pub(super) struct World {
    pub(super) service: Arc<Service>,
    clock: Arc<ManualClock>,
    truth: BTreeMap<Key, Value>,
    /// One counter for each source, as each may be another API server.
    versions: [u64; 3],
    streams: Vec<Stream>,
    made: usize,
}

pub(super) fn kind_of(stream: StreamKind, dice: &mut Dice) -> &'static str {
    match stream {
        StreamKind::Nodes => "Node",
        StreamKind::Pods => "Pod",
        StreamKind::Objects => dice.pick(&OBJECT_KINDS),
    }
}

pub(super) fn stream_kind(kind: &str) -> StreamKind {
    match kind {
        "Node" => StreamKind::Nodes,
        "Pod" => StreamKind::Pods,
        _ => StreamKind::Objects,
    }
}

/// Which source an object belongs to.
pub(super) fn owner(name: &str) -> usize {
    name.bytes().map(usize::from).sum::<usize>() % SOURCES.len()
}

pub(super) fn namespace(kind: &str, name: &str) -> &'static str {
    match kind {
        "Pod" | "Service" | "PersistentVolumeClaim" | "PodDisruptionBudget" => ["red", "blue"][name.len() % 2],
        _ => "",
    }
}

pub(super) fn random_spec(dice: &mut Dice, kind: &str, name: &str) -> Value {
    let app = dice.pick(&["web", "db"]);
    let selector = json!({ "matchLabels": { "app": dice.pick(&["web", "db"]) } });
    match kind {
        "Node" => json!({
            "metadata": { "labels": { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": dice.pick(&["a", "b"]) } },
            "spec": { "unschedulable": dice.one_in(6) },
            "status": {
                "allocatable": { "cpu": dice.pick(&["2", "4"]), "memory": "8Gi", "pods": "20", "x.example/gpu": "2" },
                "images": [{ "names": ["app:1"], "sizeBytes": dice.pick(&[100_000_000, 200_000_000]) }],
            },
        }),
        "Pod" => {
            let mut spec = json!({ "containers": [{
                "name": "c", "image": "app:1",
                "resources": { "requests": { "cpu": dice.pick(&["100m", "500m"]) } },
            }] });
            if !dice.one_in(3) {
                spec["nodeName"] = json!(format!("n{}", dice.below(NODES + 1)));
            }
            if dice.one_in(3) {
                spec["containers"][0]["resources"]["requests"]["x.example/gpu"] = json!("1");
            }
            if dice.one_in(4) {
                spec["containers"][0]["ports"] = json!([{ "containerPort": 80, "hostPort": 80 }]);
            }
            if dice.one_in(3) {
                let term = json!({ "labelSelector": selector, "topologyKey": "topology.kubernetes.io/zone" });
                let side = dice.pick(&["podAffinity", "podAntiAffinity"]);
                spec["affinity"][side]["preferredDuringSchedulingIgnoredDuringExecution"] =
                    json!([{ "weight": 5, "podAffinityTerm": term }]);
                if dice.one_in(2) {
                    spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                        json!([term]);
                }
            }
            if dice.one_in(3) {
                spec["volumes"] =
                    json!([{ "name": "v", "persistentVolumeClaim": { "claimName": format!("c{}", dice.below(3)) } }]);
            }
            let nominated = if dice.one_in(4) { format!("n{}", dice.below(NODES + 1)) } else { String::new() };
            let phase = if dice.one_in(8) { "Succeeded" } else { "Running" };
            json!({ "metadata": { "labels": { "app": app } }, "spec": spec, "status": { "phase": phase, "nominatedNodeName": nominated } })
        }
        "Namespace" => json!({ "metadata": { "labels": { "team": app } } }),
        "Service" => json!({ "spec": { "selector": { "app": app } } }),
        "PersistentVolume" => json!({ "spec": {
            "capacity": { "storage": "5Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "s",
            "csi": { "driver": "csi.example", "volumeHandle": format!("h{}", dice.below(3)) },
            "claimRef": { "namespace": "red", "name": format!("c{}", dice.below(3)) },
        } }),
        "PersistentVolumeClaim" => json!({ "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "s", "volumeName": format!("pv{}", dice.below(3)),
            "resources": { "requests": { "storage": "1Gi" } },
        }, "status": { "phase": "Bound" } }),
        _ => {
            json!({ "spec": { "selector": selector, "minAvailable": 1 }, "status": { "disruptionsAllowed": dice.below(3) } })
        }
    }
}

pub(super) fn random_name(dice: &mut Dice, kind: &str) -> String {
    match kind {
        "Node" => format!("n{}", dice.below(NODES)),
        // Of two lengths, and so of two namespaces.
        "Pod" => format!("{}{}", dice.pick(&["p", "pp"]), dice.below(PODS)),
        "Namespace" => dice.pick(&["red", "blue"]).to_owned(),
        "PersistentVolume" => format!("pv{}", dice.below(3)),
        "PersistentVolumeClaim" => format!("{}c{}", dice.pick(&["", "c"]), dice.below(3)),
        _ => format!("x{}", dice.below(3)),
    }
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_secs(1_000_000)));
        let service = Arc::new(Service::new(Profiles::default(), clock.clone()));
        let stream = |source, kind| Stream {
            source,
            kind,
            epoch: 1,
            session: None,
            sequence: 0,
            fenced: Vec::new(),
            outbox: VecDeque::new(),
            sent: Vec::new(),
            snapshot: None,
        };
        let streams = (0..SOURCES.len()).flat_map(|source| KINDS.map(|kind| stream(source, kind))).collect();
        Self { service, clock, truth: BTreeMap::new(), versions: [100; 3], streams, made: 0 }
    }

    pub(super) fn apply(&mut self, op: u64) {
        let mut dice = Dice::new(op);
        let at = dice.below(self.streams.len());
        match dice.below(32) {
            0..=9 => self.change(&mut dice),
            10..=15 => self.deliver(at, 1 + dice.below(4)),
            16..=17 => self.repeat(at, &mut dice),
            18 => self.cut(at),
            19 => self.take_over(at, dice.one_in(2)),
            20 => self.streams[at].speak_though_fenced(),
            21 => self.begin_snapshot(at),
            22..=24 => self.go_on(at, 1 + dice.below(3)),
            25 => self.restore(dice.below(2)),
            26..=28 => self.reserve(&mut dice),
            29 => self.release(&mut dice),
            30 => {
                self.clock.advance_secs(i64::try_from(dice.below(40)).unwrap());
                self.service.expire_reservations();
            }
            _ => {
                self.open(at);
                self.streams[at].send(&[], Some(Control::Bookmark)).unwrap();
            }
        }
    }

    /// Something happens in the cluster, and is on its way.
    fn change(&mut self, dice: &mut Dice) {
        let kind = kind_of(dice.pick(&[KINDS[0], KINDS[1], KINDS[1], KINDS[2]]), dice);
        let name = random_name(dice, kind);
        let key = (kind, name.clone());
        let source = owner(&name);
        let known = self.truth.get(&key);
        let change = match known {
            Some(known) if dice.one_in(4) => {
                let text = |field: &str| known["metadata"][field].as_str().unwrap_or_default().to_owned();
                let (uid, namespace) = (text("uid"), text("namespace"));
                self.truth.remove(&key);
                Change::Delete(Reference { kind: kind.to_owned(), namespace, name, uid })
            }
            _ => {
                // Now and then made anew under its name.
                let uid = match known {
                    Some(known) if !dice.one_in(5) => known["metadata"]["uid"].clone(),
                    _ => {
                        self.made += 1;
                        json!(format!("uid-{kind}-{}", self.made))
                    }
                };
                let mut manifest = random_spec(dice, kind, &name);
                let version = match kind {
                    "Node" | "Pod" | "Namespace" | "Service" | "PersistentVolume" | "PersistentVolumeClaim" => "v1",
                    _ => "policy/v1",
                };
                manifest["apiVersion"] = json!(version);
                manifest["kind"] = json!(kind);
                manifest["metadata"]["name"] = json!(name);
                manifest["metadata"]["namespace"] = json!(namespace(kind, &name));
                manifest["metadata"]["uid"] = uid;
                self.versions[source] += 1;
                manifest["metadata"]["resourceVersion"] = json!(self.versions[source].to_string());
                self.truth.insert(key, manifest.clone());
                Change::Upsert(manifest)
            }
        };
        let at = source * KINDS.len() + KINDS.iter().position(|k| *k == stream_kind(kind)).unwrap();
        self.streams[at].outbox.push_back(change);
    }

    /// What a source has for a stream.
    fn listing(&self, at: usize) -> VecDeque<Change> {
        let Stream { source, kind: stream, .. } = &self.streams[at];
        let mine = self.truth.iter().filter(|((kind, name), _)| owner(name) == *source && stream_kind(kind) == *stream);
        mine.map(|(_, manifest)| Change::Upsert(manifest.clone())).collect()
    }

    /// A client that comes back lists everything: what was on its way is in there.
    fn open(&mut self, at: usize) {
        if self.streams[at].session.is_none() {
            let session = FeedSession::new(self.service.clone(), self.streams[at].kind);
            let stream = &mut self.streams[at];
            stream.session = Some(session);
            stream.sequence = 0;
            if stream.is_named() {
                let (source, epoch) = (SOURCES[stream.source].to_owned(), stream.epoch);
                stream.send(&[], Some(Control::Hello { source, epoch, incarnation: String::new() })).unwrap();
                self.begin_snapshot(at);
            }
        }
    }

    fn begin_snapshot(&mut self, at: usize) {
        self.open(at);
        let listing = self.listing(at);
        let stream = &mut self.streams[at];
        if stream.is_named() && stream.snapshot.is_none() {
            let kinds = match stream.kind {
                StreamKind::Objects => OBJECT_KINDS.map(str::to_owned).to_vec(),
                _ => Vec::new(),
            };
            stream.send(&[], Some(Control::SnapshotBegin { kinds })).unwrap();
            stream.snapshot = Some(listing);
            stream.outbox.clear();
        }
    }

    /// The next events; while a snapshot is under way, those of the snapshot.
    fn deliver(&mut self, at: usize, events: usize) {
        self.open(at);
        if self.streams[at].snapshot.is_some() {
            return self.go_on(at, events);
        }
        let stream = &mut self.streams[at];
        let changes: Vec<Change> = (0..events).map_while(|_| stream.outbox.pop_front()).collect();
        stream.send(&changes, None).unwrap();
    }

    fn go_on(&mut self, at: usize, events: usize) {
        let stream = &mut self.streams[at];
        let Some(left) = &mut stream.snapshot else { return };
        let changes: Vec<Change> = (0..events).map_while(|_| left.pop_front()).collect();
        let ends = left.is_empty();
        stream.send(&changes, ends.then_some(Control::SnapshotEnd)).unwrap();
        if ends {
            stream.snapshot = None;
        }
    }

    /// Old events once more: duplicates, versions that are stale by now, and deletes of predecessors. Not those of objects
    /// that are gone or have a successor: only a snapshot tells such an echo from a new object. Streams without Hello have
    /// no versions that compare, so what they send last counts.
    fn repeat(&mut self, at: usize, dice: &mut Dice) {
        if !self.streams[at].is_named() {
            return;
        }
        self.open(at);
        let echoes = |change: &Change| match change {
            Change::Upsert(manifest) => self
                .truth
                .values()
                .any(|now| now["kind"] == manifest["kind"] && now["metadata"]["uid"] == manifest["metadata"]["uid"]),
            Change::Delete(gone) => !self.truth.values().any(|now| now["metadata"]["uid"] == *gone.uid),
        };
        let echoes: Vec<Change> = self.streams[at].sent.iter().filter(|change| echoes(change)).cloned().collect();
        if !echoes.is_empty() {
            let changes: Vec<Change> = (0..3).map(|_| echoes[dice.below(echoes.len())].clone()).collect();
            self.streams[at].send(&changes, None).unwrap();
        }
    }

    fn cut(&mut self, at: usize) {
        let stream = &mut self.streams[at];
        stream.session = None;
        stream.snapshot = None;
    }

    fn take_over(&mut self, at: usize, next_epoch: bool) {
        let stream = &mut self.streams[at];
        if !stream.is_named() {
            return self.cut(at);
        }
        if let Some(old) = stream.session.take() {
            stream.fenced.push((old, stream.sequence));
        }
        stream.snapshot = None;
        stream.epoch += u64::from(next_epoch);
        self.open(at);
    }

    /// The store behind a source is restored from a backup: versions go back, under a new epoch.
    fn restore(&mut self, source: usize) {
        self.versions[source] = 10;
        for ((_, name), manifest) in &mut self.truth {
            if owner(name) == source {
                self.versions[source] += 1;
                manifest["metadata"]["resourceVersion"] = json!(self.versions[source].to_string());
            }
        }
        for at in source * KINDS.len()..(source + 1) * KINDS.len() {
            self.streams[at].sent.clear();
            self.take_over(at, true);
        }
    }

    fn reserve(&mut self, dice: &mut Dice) {
        let pods: Vec<&Value> = self.truth.iter().filter(|((kind, _), _)| *kind == "Pod").map(|(_, pod)| pod).collect();
        if pods.is_empty() {
            return;
        }
        let mut manifest = pods[dice.below(pods.len())].clone();
        if let Some(spec) = manifest["spec"].as_object_mut() {
            spec.remove("nodeName");
        }
        let pod = manifest::pod_from(&manifest, manifest::Options::default()).unwrap().value;
        let request = Request { dry_run: dice.one_in(4), ..Request::new(pod) };
        // Not ready, bound already, or no room: all are answers.
        let _ = self.service.schedule(request, &AtomicBool::new(false));
    }

    fn release(&mut self, dice: &mut Dice) {
        let ids: Vec<_> = self.service.cluster.writer().reservations().iter().map(|r| r.id.clone()).collect();
        if !ids.is_empty() {
            self.service.release(&ids[dice.below(ids.len())]);
        }
    }

    /// Each source goes on to the end: with what is on its way, or with one more cut and a whole snapshot.
    pub(super) fn settle(&mut self, dice: &mut Dice) {
        for at in 0..self.streams.len() {
            self.streams[at].speak_though_fenced();
            self.streams[at].fenced.clear();
            if self.streams[at].is_named() && dice.one_in(2) {
                self.take_over(at, false);
                self.go_on(at, 1);
                self.cut(at);
            }
            self.open(at);
            self.go_on(at, usize::MAX);
            self.deliver(at, usize::MAX);
        }
    }

    /// A cluster that was fed once, from the end to the beginning, by one stream of each kind.
    pub(super) fn fed_once(&self) -> Arc<Service> {
        let service = Arc::new(Service::new(Profiles::default(), self.clock.clone()));
        for kind in KINDS.into_iter().rev() {
            let mut session = FeedSession::new(service.clone(), kind);
            let mine = self.truth.iter().rev().filter(|((k, _), _)| stream_kind(k) == kind);
            let events = mine.map(|(_, manifest)| Event::Upsert(manifest.clone().into())).collect();
            let ack = session.apply(Batch { sequence: 0, events, control: None }).unwrap();
            assert!(ack.rejections.is_empty(), "{ack:?}");
        }
        reserve_again(&self.service.cluster.writer(), &mut service.cluster.writer());
        service
    }
}

impl Stream {
    fn is_named(&self) -> bool {
        !SOURCES[self.source].is_empty()
    }

    fn send(&mut self, changes: &[Change], control: Option<Control>) -> Result<(), ServiceError> {
        self.sequence += 1;
        let events = changes.iter().map(Change::event).collect();
        self.sent.extend_from_slice(changes);
        let batch = Batch { sequence: self.sequence, events, control };
        let ack = self.session.as_mut().unwrap().apply(batch)?;
        assert!(ack.rejections.is_empty(), "{ack:?}");
        Ok(())
    }

    /// Those that were taken over try to go on, and must not get through.
    fn speak_though_fenced(&mut self) {
        let changes: Vec<Event> = self.sent.iter().take(3).map(Change::event).collect();
        if let Some((mut session, sequence)) = self.fenced.pop() {
            // A stream of objects loses a kind only when its successor speaks of it.
            if self.kind == StreamKind::Objects {
                return;
            }
            let batch = Batch { sequence: sequence + 1, events: changes, control: None };
            assert!(matches!(session.apply(batch), Err(ServiceError::Fenced { .. })));
        }
    }
}

/// Makes the reservations of one writer in another, but for those on nodes that are gone: neither view shows them.
pub(super) fn reserve_again(from: &Writer, to: &mut Writer) {
    for r in from.reservations().iter() {
        let ask = Reserve {
            pod: r.pod.pod.clone(),
            node: r.node().clone(),
            bindings: r.pod.bindings().to_vec(),
            id: Some(r.id.clone()),
            now: r.created,
            expires: r.expires,
            basis: Basis::Assumed,
        };
        let known = to.view().ordinal(r.node()).is_some();
        assert_eq!(to.reserve(ask).is_ok(), known, "{r:?}");
        if !known {
            // Reserved, if only for a node that is gone, a pod waits for no other.
            to.clear_nomination(&r.pod.pod.meta.uid);
        }
    }
}
