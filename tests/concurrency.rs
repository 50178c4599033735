//! Many callers at once: whatever 64 of them ask, release, confirm, delete and let expire, no node is ever over what it
//! offers, and the view is the sum of what is bound and reserved.
//!
//! 100,000 calls by default; `BERTH_CONCURRENCY_CALLS=1000000 cargo test --release --test concurrency` for the long run.
//! Each caller's choices come from its own seeded generator; how the callers interleave is the machine's.
//!
//! Callers keep the protocol: a pod is bound where it was reserved and while its reservation lives. One that is bound
//! elsewhere is believed and may overload a node; that is another test's matter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use berth::cluster::View;
use berth::cluster::view::ResourceId;
use berth::manifest;
use berth::model::{Pod, Str, Time};
use berth::service::feed::{Batch, Control, Event, FeedSession, Reference, StreamKind};
use berth::service::profiles::Profiles;
use berth::service::schedule::{Request, Verdict};
use berth::service::{ManualClock, Service};
use serde_json::{Value, json};

const CALLERS: usize = 64;
const NODES: usize = 50;
const CALLS: usize = 100_000;
/// Room is short, so that callers are refused and compete for the rest: they want up to 1,400 pods, memory is there for some
/// 1,500 of average size, and this allows 1,600.
const PODS_A_NODE: u64 = 32;
const WANTED_A_CALLER: usize = 22;
const DEVICE: &str = "example.com/device";
/// Calls between two ticks of the clock, which goes on by a second each: the long run takes 500 s of the 3,600 s that
/// those reservations live which are confirmed later.
const CALLS_A_TICK: usize = 2_000;
const LONG_TTL_SECS: i64 = 3_600;
/// A caller looks at a fork that often.
const CALLS_A_CHECK: usize = 200;

/// SplitMix64: small, seeded, and good enough to mix choices.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn take<T>(&mut self, list: &mut Vec<T>) -> Option<T> {
        if list.is_empty() { None } else { Some(list.swap_remove(self.below(list.len()))) }
    }
}

fn node(i: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": format!("n{i}"), "uid": format!("node-{i}") },
        "status": { "allocatable": {
            "cpu": "8", "memory": "16Gi", "pods": PODS_A_NODE.to_string(), DEVICE: (i % 5).to_string(),
        } },
    })
}

fn pod(uid: &str, random: &mut Random) -> Value {
    let mut requests = json!({
        "cpu": format!("{}m", 50 * (1 + random.below(8))),
        "memory": format!("{}Mi", 64 * (1 + random.below(16))),
    });
    if random.chance(10) {
        requests[DEVICE] = json!((1 + random.below(2)).to_string());
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": uid, "namespace": "default", "uid": uid },
        "spec": { "containers": [{ "name": "c", "image": "app", "resources": { "requests": requests } }] },
    })
}

fn parsed(manifest: &Value) -> Pod {
    manifest::pod_from(manifest, manifest::Options::default()).unwrap().value
}

/// An open stream of a source of its own.
struct Feed {
    session: FeedSession,
    sequence: u64,
}

impl Feed {
    fn open(service: &Arc<Service>, kind: StreamKind, source: &str) -> Self {
        let mut feed = Self { session: FeedSession::new(service.clone(), kind), sequence: 0 };
        feed.send(Some(Control::Hello { source: source.into(), epoch: 1, incarnation: String::new() }), Vec::new());
        feed
    }

    fn send(&mut self, control: Option<Control>, events: Vec<Event>) {
        self.sequence += 1;
        let sent = events.len() as u64;
        let ack = self.session.apply(Batch { sequence: self.sequence, events, control }).unwrap();
        assert_eq!((ack.applied, ack.rejections.len()), (sent, 0), "{ack:?}");
    }

    fn snapshot(&mut self, events: Vec<Event>) {
        self.send(Some(Control::SnapshotBegin { kinds: Vec::new() }), Vec::new());
        self.send(None, events);
        self.send(Some(Control::SnapshotEnd), Vec::new());
    }

    fn upsert(&mut self, manifest: Value) {
        self.send(None, vec![Event::Upsert(manifest.into())]);
    }

    fn delete(&mut self, uid: &str) {
        let named = Reference { namespace: "default".into(), name: uid.into(), uid: uid.into(), ..Default::default() };
        self.send(None, vec![Event::Delete(named)]);
    }
}

/// What all callers share.
struct Shared {
    service: Arc<Service>,
    clock: Arc<ManualClock>,
    calls: AtomicUsize,
    ends_at: usize,
}

/// Room that a caller holds.
struct Held {
    manifest: Value,
    id: Str,
    node: Str,
}

/// One client: what it believes, for comparison with what Berth holds in the end.
struct Caller<'a> {
    shared: &'a Shared,
    feed: Feed,
    random: Random,
    name: String,
    pods: usize,
    /// Reserved for long.
    held: Vec<Held>,
    /// Uid and node.
    bound: Vec<(String, Str)>,
    released: Vec<Str>,
    counts: BTreeMap<&'static str, usize>,
}

impl<'a> Caller<'a> {
    fn new(shared: &'a Shared, number: usize) -> Self {
        let name = format!("caller-{number}");
        Self {
            shared,
            feed: Feed::open(&shared.service, StreamKind::Pods, &name),
            random: Random(number as u64),
            name,
            pods: 0,
            held: Vec::new(),
            bound: Vec::new(),
            released: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn run(&mut self) {
        loop {
            let call = self.shared.calls.fetch_add(1, Ordering::Relaxed);
            if call >= self.shared.ends_at {
                return;
            }
            if call.is_multiple_of(CALLS_A_TICK) {
                self.shared.clock.advance_secs(1);
                let expired = self.shared.service.expire_reservations();
                *self.counts.entry("expired").or_default() += expired;
            }
            if call.is_multiple_of(CALLS_A_CHECK) {
                no_node_is_over(&self.shared.service.cluster.fork());
            }
            if self.random.chance(20) {
                self.ask_again();
            } else {
                self.ask_for_a_new_pod();
            }
            self.give_back_or_confirm();
        }
    }

    /// A few nodes or, one time in twenty, all.
    fn candidates(&mut self) -> Vec<String> {
        let count = if self.random.chance(5) { 0 } else { 1 + self.random.below(4) };
        (0..count).map(|_| format!("n{}", self.random.below(NODES))).collect()
    }

    fn ask(&mut self, manifest: &Value, dry_run: bool, ttl_secs: i64) -> Option<(Str, Option<Str>)> {
        let request = Request {
            dry_run,
            candidates: self.candidates(),
            ttl_micros: Some(ttl_secs * 1_000_000),
            ..Request::new(parsed(manifest))
        };
        let answer = self.shared.service.schedule(request, &AtomicBool::new(false)).unwrap();
        match answer.verdict {
            Verdict::Placed { node, reservation, .. } => Some((node, reservation.map(|held| held.id))),
            Verdict::Unschedulable => None,
            other => panic!("{other:?}"),
        }
    }

    fn ask_for_a_new_pod(&mut self) {
        self.pods += 1;
        let manifest = pod(&format!("{}-{}", self.name, self.pods), &mut self.random);
        if self.random.chance(15) {
            self.count("dry runs");
            if let Some((_, reservation)) = self.ask(&manifest, true, LONG_TTL_SECS) {
                assert_eq!(reservation, None, "a dry run holds nothing");
            }
            return;
        }
        // Some are known to the feed before, as a controller would have it, and wait for ever if they don't fit.
        let fed = self.random.chance(20);
        if fed {
            self.feed.upsert(manifest.clone());
        }
        let forgotten = self.random.chance(15);
        let ttl = if forgotten { 1 + i64::try_from(self.random.below(5)).unwrap() } else { LONG_TTL_SECS };
        match self.ask(&manifest, false, ttl) {
            Some((node, id)) if !forgotten => self.held.push(Held { manifest, id: id.unwrap(), node }),
            Some(_) => self.count("left to expire"),
            None => {
                self.count("refused");
                if fed {
                    self.feed.delete(manifest["metadata"]["uid"].as_str().unwrap());
                }
            }
        }
    }

    /// Other candidates may move the reservation or end it.
    fn ask_again(&mut self) {
        let Some(held) = self.random.take(&mut self.held) else { return self.ask_for_a_new_pod() };
        self.count("asked again");
        if let Some((node, id)) = self.ask(&held.manifest, false, LONG_TTL_SECS) {
            self.held.push(Held { id: id.unwrap(), node, ..held });
        }
    }

    fn give_back_or_confirm(&mut self) {
        if self.random.chance(30)
            && let Some(held) = self.random.take(&mut self.held)
        {
            assert!(self.shared.service.release(&held.id).0, "a living reservation is released");
            self.released.push(held.id);
            self.count("released");
        }
        if self.random.chance(40)
            && let Some(Held { mut manifest, node, .. }) = self.random.take(&mut self.held)
        {
            let uid = manifest["metadata"]["uid"].as_str().unwrap().to_owned();
            manifest["spec"]["nodeName"] = json!(&*node);
            self.feed.upsert(manifest);
            self.bound.push((uid, node));
            self.count("confirmed");
        }
        while self.bound.len() + self.held.len() > WANTED_A_CALLER || self.random.chance(10) {
            let Some((uid, _)) = self.random.take(&mut self.bound) else { return };
            self.feed.delete(&uid);
            self.count("deleted");
        }
    }
}

fn resources(view: &View) -> Vec<ResourceId> {
    view.resources().names().iter().filter_map(|name| view.resources().get(name)).collect()
}

fn no_node_is_over(view: &View) {
    let resources = resources(view);
    for row in view.nodes() {
        for id in &resources {
            let (requested, allocatable) = (row.requested(*id), row.allocatable(*id));
            assert!(requested <= allocatable, "{} {id:?}: {requested} of {allocatable}", row.name());
        }
        assert!(i64::try_from(row.pods().len()).unwrap() <= row.allowed_pods(), "{}", row.name());
    }
}

/// What bound pods and reservations ask of each node, from the objects as they were fed and the list of reservations:
/// CPU, memory, devices and pods.
fn asked_for(service: &Service) -> BTreeMap<Str, [i64; 4]> {
    let mut sums: BTreeMap<Str, [i64; 4]> = BTreeMap::new();
    let mut add = |node: &Str, pod: &Pod| {
        let amount = |name: &str| {
            let requests = &pod.spec.containers[0].resources.requests;
            requests.get(name).map_or(0, |q| if name == "cpu" { q.milli_value() } else { q.value() })
        };
        let sum = sums.entry(node.clone()).or_default();
        for (total, more) in sum.iter_mut().zip([amount("cpu"), amount("memory"), amount(DEVICE), 1]) {
            *total += more;
        }
    };
    for pod in service.cluster.objects().pods().iter().filter(|pod| pod.is_bound()) {
        add(&pod.spec.node_name, pod);
    }
    for reservation in service.cluster.writer().reservations().iter() {
        add(reservation.node(), &reservation.pod.pod);
    }
    sums
}

fn held_by_view(view: &View) -> BTreeMap<Str, [i64; 4]> {
    let device = view.resources().get(DEVICE);
    let rows = view.nodes().map(|row| {
        let devices = device.map_or(0, |id| row.requested(id));
        let pods = i64::try_from(row.pods().len()).unwrap();
        let sums = [row.requested(ResourceId::CPU), row.requested(ResourceId::MEMORY), devices, pods];
        (row.name().clone(), sums)
    });
    rows.filter(|(_, sums)| *sums != [0; 4]).collect()
}

#[test]
fn no_interleaving_of_callers_overbooks_a_node_or_loses_room() {
    let calls = std::env::var("BERTH_CONCURRENCY_CALLS").map_or(CALLS, |text| text.parse().unwrap());
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000_000)));
    let service = Arc::new(Service::new(Profiles::default(), clock.clone()));
    let mut nodes = Feed::open(&service, StreamKind::Nodes, "nodes");
    nodes.snapshot((0..NODES).map(|i| Event::Upsert(node(i).into())).collect());
    Feed::open(&service, StreamKind::Pods, "pods").snapshot(Vec::new());
    let shared = Shared { service: service.clone(), clock: clock.clone(), calls: AtomicUsize::new(0), ends_at: calls };

    let callers: Vec<Caller<'_>> = std::thread::scope(|scope| {
        let start = |number| {
            let mut caller = Caller::new(&shared, number);
            scope.spawn(move || {
                caller.run();
                caller
            })
        };
        let threads: Vec<_> = (0..CALLERS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (what, count) in callers.iter().flat_map(|caller| &caller.counts) {
        *counts.entry(what).or_default() += count;
    }
    let view = service.cluster.fork();
    no_node_is_over(&view);
    assert_eq!(held_by_view(&view), asked_for(&service), "the view is the sum of bound and reserved pods; {counts:?}");
    for what in ["asked again", "confirmed", "deleted", "dry runs", "expired", "left to expire", "refused", "released"]
    {
        assert!(counts.get(what).is_some_and(|count| *count > calls / 200), "too few {what:?}: {counts:?}");
    }
    for caller in &callers {
        for (uid, node) in &caller.bound {
            assert_eq!(view.pod(uid).map(|info| &info.node), Some(node), "{uid} is where it was confirmed");
        }
        let writer = service.cluster.writer();
        for held in &caller.held {
            let reservation = writer.reservations().with_id(&held.id).unwrap();
            assert_eq!(*reservation.node(), held.node);
        }
        assert!(caller.released.iter().all(|id| writer.reservations().with_id(id).is_none()));
    }

    // What nobody confirms ends, and what is bound stays.
    clock.advance_secs(LONG_TTL_SECS);
    let mut feeds: Vec<(Feed, Vec<(String, Str)>)> = callers.into_iter().map(|c| (c.feed, c.bound)).collect();
    feeds[0].0.send(Some(Control::Bookmark), Vec::new());
    service.expire_reservations();
    let bound = feeds.iter().map(|(_, bound)| bound.len()).sum::<usize>();
    let view = service.cluster.fork();
    assert!(service.cluster.writer().reservations().is_empty());
    assert_eq!((view.pod_count(), held_by_view(&view)), (bound, asked_for(&service)));
    for (feed, bound) in &mut feeds {
        bound.iter().for_each(|(uid, _)| feed.delete(uid));
    }
    assert_eq!(held_by_view(&service.cluster.fork()), BTreeMap::new(), "an empty cluster takes no room");
}
