//! Kills: a client at a random point of its snapshot, and the served binary under load. Both as processes, with SIGKILL.
//!
//! `BERTH_KILLS` says how often; 100 if not set. A point is drawn by progress, not by time, so that slow machines see the
//! same kinds of points.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[path = "support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use berth::api::{client, pb};
use berth::model::Kind;
use pb::inspect_service_client::InspectServiceClient;
use pb::scheduler_service_client::SchedulerServiceClient;
use serde_json::{Value, json};
use support::*;
use tonic::Code;
use tonic::transport::Channel;

fn kills() -> usize {
    std::env::var("BERTH_KILLS").ok().map_or(100, |text| text.parse().expect("BERTH_KILLS is a number"))
}

/// SplitMix64, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }
}

// --- a client that dies ---

const PODS: usize = 200;
const BATCH: usize = 5;
const PLAN: &str = "BERTH_KILL_TEST_PLAN";

/// The pods of the cluster at its `age`: each time a part of them is new, gone or elsewhere.
fn pods_at(age: usize) -> BTreeMap<String, Value> {
    let mut dice = Dice(age as u64);
    let mut pods = BTreeMap::new();
    for i in 0..PODS {
        if dice.below(4) > 0 {
            let name = format!("p{i}");
            let mut manifest = with(pod(&name, "10m"), "nodeName", json!(format!("n{}", dice.below(4))));
            manifest["metadata"]["uid"] = json!(format!("uid-{name}-{}", dice.below(3)));
            manifest["metadata"]["resourceVersion"] = json!((age + 1).to_string());
            pods.insert(name, manifest);
        }
    }
    pods
}

async fn send_snapshot(channel: Channel, age: usize, epoch: u64) {
    let mut stream = PodStream::on(channel).await;
    stream.control(1, hello_of("informer", epoch)).await;
    stream.control(2, snapshot_begin(&[])).await;
    let pods: Vec<Value> = pods_at(age).into_values().collect();
    let mut sequence = 2;
    for batch in pods.chunks(BATCH) {
        sequence += 1;
        let events = batch.iter().map(pod_manifest).collect();
        stream.send(pb::UpdatePodsRequest { sequence, events, control: None }).await;
        stream.acks_to(sequence).await;
    }
    stream.control(sequence + 1, snapshot_end()).await;
    stream.acks_to(sequence + 1).await;
}

#[tokio::test]
#[ignore = "it is the client process that `a_client_killed_in_its_snapshot_resumes_to_the_same_view` starts and kills"]
async fn client_process() {
    let plan = std::env::var(PLAN).expect("started by its test");
    let (addr, rest) = plan.split_once(' ').unwrap();
    let (age, epoch) = rest.split_once(' ').unwrap();
    send_snapshot(client::connect(addr).await.unwrap(), age.parse().unwrap(), epoch.parse().unwrap()).await;
    // Killed before it is through, or now.
    std::future::pending::<()>().await;
}

fn start_client(berth: &Berth, age: usize, epoch: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "client_process", "--ignored"]).env(PLAN, format!("{} {age} {epoch}", berth.addr));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What the view has, by name: uid and node.
fn pods_in_view(berth: &Berth) -> BTreeMap<String, (String, String)> {
    let view = berth.service.cluster.fork();
    let pods = view.nodes().flat_map(|row| row.pods().iter().map(move |p| (p, row.name().to_string())));
    pods.map(|(p, node)| (p.pod.meta.name.to_string(), (p.pod.meta.uid.to_string(), node))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_killed_in_its_snapshot_resumes_to_the_same_view() {
    let nodes: Vec<Value> = (0..4).map(|i| node(&format!("n{i}"), "8")).collect();
    let berth = Berth::with_nodes(&nodes).await;
    let mut dice = Dice(7);
    let mut cut_short = 0;
    for age in 0..kills() {
        let epoch = 2 * age + 1;
        let mut client = start_client(&berth, age, epoch);
        let wanted = 1 + dice.below(PODS * 3 / 4);
        let fed = || {
            let pods = berth.service.cluster.objects().pods();
            pods.iter().filter(|p| *p.meta.resource_version == *(age + 1).to_string()).count()
        };
        let total = pods_at(age).len();
        eventually(async || fed() >= wanted.min(total)).await;
        client.kill().unwrap();
        client.wait().unwrap();
        cut_short += usize::from(fed() < total);
        send_snapshot(berth.channel.clone(), age, epoch as u64 + 1).await;
        let expected: BTreeMap<String, (String, String)> = pods_at(age)
            .into_iter()
            .map(|(name, pod)| (name, (text(&pod["metadata"]["uid"]), text(&pod["spec"]["nodeName"]))))
            .collect();
        assert_eq!(pods_in_view(&berth), expected, "after kill {age}");
        assert_eq!(berth.service.cluster.objects().count(Kind::Pod), expected.len(), "after kill {age}");
    }
    assert!(cut_short * 2 > kills(), "too few of the kills fell into a snapshot: {cut_short}");
}

// --- a server that dies ---

struct Served(Child);

impl Served {
    /// Starts the binary and waits until it listens.
    fn start(addr: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
        command.args(["serve", "--log", "off", "--admin-addr", "none", "--addr", addr]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().expect("a greeting").unwrap().contains(addr));
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

const NODES: usize = 12;
const WORKERS: usize = 8;
/// Of a node, in millicores; a pod takes between 100 and 900 of them.
const CPU: usize = 4_000;

/// What the API server and the clients know.
#[derive(Default)]
struct Truth {
    /// Pods by uid; bound ones name their node.
    pods: BTreeMap<String, Value>,
    /// Reservations that were answered and not yet bound: pod's uid to id and node.
    held: BTreeMap<String, (String, String)>,
    made: usize,
}

fn uid_of(pod: &Value) -> String {
    text(&pod["metadata"]["uid"])
}

/// One controller: makes pods, asks for them, binds them, and now and then deletes one, until the server is gone.
async fn work(addr: String, truth: Arc<Mutex<Truth>>, bound: Arc<AtomicUsize>, killed: Arc<AtomicBool>, seed: u64) {
    let mut dice = Dice(seed);
    let Ok(channel) = client::connect(&addr).await else { return };
    let mut feed = PodStream::on(channel.clone()).await;
    let mut scheduler = SchedulerServiceClient::new(channel);
    loop {
        let pod = {
            let mut truth = truth.lock().unwrap();
            truth.made += 1;
            let pod = pod(&format!("p{}", truth.made), &format!("{}m", 100 * (1 + dice.below(9))));
            truth.pods.insert(uid_of(&pod), pod.clone());
            pod
        };
        let uid = uid_of(&pod);
        // It may be lost on the way: then nobody but the server knows of a reservation, and nobody will bind the pod.
        let Ok(answer) = scheduler.schedule(ask(&pod)).await else { return };
        let answer = answer.into_inner();
        let events = if let Some(reservation) = answer.reservation {
            let held = (reservation.id, answer.node.clone());
            truth.lock().unwrap().held.insert(uid.clone(), held);
            // Posting the binding takes its time. If the server dies meanwhile, some are posted and some still under way.
            tokio::time::sleep(Duration::from_micros(dice.below(3_000) as u64)).await;
            if killed.load(Ordering::Relaxed) && dice.below(2) == 0 {
                return;
            }
            let pod = with(pod, "nodeName", json!(answer.node));
            let mut truth = truth.lock().unwrap();
            truth.held.remove(&uid);
            truth.pods.insert(uid, pod.clone());
            bound.fetch_add(1, Ordering::Relaxed);
            vec![pod_manifest(&pod)]
        } else {
            // Full: the pod is given up, and some other makes room.
            let mut truth = truth.lock().unwrap();
            truth.pods.remove(&uid);
            let bound: Vec<String> = truth
                .pods
                .iter()
                .filter(|(_, pod)| pod["spec"]["nodeName"].is_string())
                .map(|(u, _)| u.clone())
                .collect();
            let gone = (0..8.min(bound.len())).map(|_| bound[dice.below(bound.len())].clone()).collect::<BTreeSet<_>>();
            let gone = gone.into_iter().filter_map(|uid| truth.pods.remove(&uid));
            gone.map(|pod| pb::PodEvent {
                event: Some(pb::pod_event::Event::Delete(pb::ObjectRef {
                    name: text(&pod["metadata"]["name"]),
                    uid: uid_of(&pod),
                    ..Default::default()
                })),
            })
            .collect()
        };
        if feed.try_send(pb::UpdatePodsRequest { events, ..Default::default() }).await.is_err() {
            return;
        }
    }
}

async fn schedule_code(channel: &Channel) -> Code {
    let request = pb::ScheduleRequest { dry_run: true, ..ask(&pod("probe", "1m")) };
    match SchedulerServiceClient::new(channel.clone()).schedule(request).await {
        Ok(_) => Code::Ok,
        Err(status) => status.code(),
    }
}

/// What a client does when it meets another incarnation: nodes, then pods with the bindings that are under way.
async fn replay(channel: &Channel, truth: &Mutex<Truth>, epoch: u64) {
    let mut nodes = NodeStream::on(channel.clone()).await;
    nodes.control(1, hello_of("controller", epoch)).await;
    nodes.control(2, snapshot_begin(&[])).await;
    let manifests = (0..NODES).map(|i| node(&format!("n{i}"), &format!("{CPU}m")));
    let events = manifests.map(|n| node_manifest(&n)).collect();
    nodes.send(pb::UpdateNodesRequest { sequence: 3, events, control: None }).await;
    nodes.control(4, snapshot_end()).await;
    nodes.acks_to(4).await;
    assert_eq!(schedule_code(channel).await, Code::Unavailable, "pods are still to come");

    let mut pods = PodStream::on(channel.clone()).await;
    pods.control(1, hello_of("controller", epoch)).await;
    pods.control(2, snapshot_begin(&[])).await;
    let mut events: Vec<pb::PodEvent> = Vec::new();
    {
        let truth = truth.lock().unwrap();
        events.extend(truth.pods.values().map(pod_manifest));
        for (uid, (id, node)) in &truth.held {
            events.push(pb::PodEvent {
                event: Some(pb::pod_event::Event::Assume(pb::Assume {
                    pod: pod_source(&truth.pods[uid]),
                    node: node.clone(),
                    reservation_id: id.clone(),
                    ..Default::default()
                })),
            });
        }
    }
    let mut sequence = 2;
    for batch in events.chunks(50) {
        sequence += 1;
        pods.send(pb::UpdatePodsRequest { sequence, events: batch.to_vec(), control: None }).await;
    }
    assert_eq!(schedule_code(channel).await, Code::Unavailable, "the snapshot is not complete");
    pods.control(sequence + 1, snapshot_end()).await;
    let ack = pods.acks_to(sequence + 1).await;
    assert!(ack.rejections.is_empty(), "{:?}", ack.rejections);
    assert_eq!(schedule_code(channel).await, Code::Ok);
}

async fn check(channel: &Channel, truth: &Mutex<Truth>) {
    let mut inspect = InspectServiceClient::new(channel.clone());
    let nodes = pb::ListNodesRequest { page_size: 500, ..Default::default() };
    for row in inspect.list_nodes(nodes).await.unwrap().into_inner().nodes {
        for (resource, amount) in &row.requested {
            assert!(amount <= &row.allocatable[resource], "{} is over its {resource}", row.name);
        }
        assert!(row.pods <= row.allowed_pods);
    }
    let mut on_node = BTreeMap::new();
    let mut token = String::new();
    loop {
        let states = vec![pb::PodState::Bound.into(), pb::PodState::Reserved.into()];
        let request = pb::ListPodsRequest { page_size: 500, page_token: token, states, ..Default::default() };
        let page = inspect.list_pods(request).await.unwrap().into_inner();
        on_node.extend(page.pods.into_iter().map(|row| (row.pod.unwrap().uid, (row.state, row.node))));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let reservations = pb::ListReservationsRequest { page_size: 500, ..Default::default() };
    let reservations = inspect.list_reservations(reservations).await.unwrap().into_inner().reservations;
    let ids: BTreeMap<String, String> = reservations.into_iter().map(|r| (r.pod.unwrap().uid, r.id)).collect();
    let truth = truth.lock().unwrap();
    let mut expected = BTreeMap::new();
    for (uid, pod) in &truth.pods {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            expected.insert(uid.clone(), (pb::PodState::Bound.into(), node.to_owned()));
        }
    }
    for (uid, (id, node)) in &truth.held {
        expected.insert(uid.clone(), (pb::PodState::Reserved.into(), node.clone()));
        assert_eq!(ids.get(uid), Some(id));
    }
    assert_eq!(on_node, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_load_knows_all_bindings_after_the_replay() {
    // A port that was free a moment ago, and the same after each restart, as a service's address is.
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let truth: Arc<Mutex<Truth>> = Arc::default();
    let bound = Arc::new(AtomicUsize::new(0));
    let mut dice = Dice(11);
    let mut in_flight = 0;
    for life in 0..=kills() {
        let server = Served::start(&addr);
        let channel = client::connect(&addr).await.unwrap();
        assert_eq!(schedule_code(&channel).await, Code::Unavailable, "nothing was replayed yet");
        replay(&channel, &truth, life as u64 + 1).await;
        check(&channel, &truth).await;
        // Bindings that were under way are now made.
        let events = {
            let mut truth = truth.lock().unwrap();
            let held = std::mem::take(&mut truth.held);
            in_flight += held.len();
            let mut events = Vec::new();
            for (uid, (_, node)) in held {
                let pod = with(truth.pods[&uid].clone(), "nodeName", json!(node));
                events.push(pod_manifest(&pod));
                truth.pods.insert(uid, pod);
            }
            events
        };
        let mut feed = PodStream::on(channel.clone()).await;
        feed.send(pb::UpdatePodsRequest { events, ..Default::default() }).await;
        feed.ack().await.unwrap();
        let goal = bound.load(Ordering::Relaxed) + 1 + dice.below(60);
        let killed = Arc::new(AtomicBool::new(false));
        let start = |i| work(addr.clone(), truth.clone(), bound.clone(), killed.clone(), (life * WORKERS + i) as u64);
        let workers: Vec<_> = (0..WORKERS).map(|i| tokio::spawn(start(i))).collect();
        eventually(async || bound.load(Ordering::Relaxed) >= goal).await;
        server.kill();
        killed.store(true, Ordering::Relaxed);
        for worker in workers {
            within(worker).await.unwrap();
        }
    }
    assert!(in_flight > 0, "no binding was under way at any kill");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_told_to_end_under_load_answers_what_it_took_and_ends_well() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut server = Served::start(&addr);
    let channel = client::connect(&addr).await.unwrap();
    replay(&channel, &Mutex::default(), 1).await;
    // A stream whose client says nothing, and one whose client reads nothing.
    let _silent = NodeStream::on(channel.clone()).await;
    let mut unread = PodStream::on(channel.clone()).await;
    unread.send(pb::UpdatePodsRequest { events: vec![pod_manifest(&pod("a", "1m"))], ..Default::default() }).await;
    let answered = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..WORKERS)
        .map(|caller| {
            let (addr, answered) = (addr.clone(), answered.clone());
            tokio::spawn(async move {
                let mut scheduler = SchedulerServiceClient::new(client::connect(&addr).await.unwrap());
                for i in 0.. {
                    let request =
                        pb::ScheduleRequest { dry_run: i % 2 == 0, ..ask(&pod(&format!("p{caller}-{i}"), "1m")) };
                    match scheduler.schedule(request).await {
                        Ok(_) => answered.fetch_add(1, Ordering::Relaxed),
                        Err(status) => return status,
                    };
                }
                unreachable!("only an error ends it")
            })
        })
        .collect();
    eventually(async || answered.load(Ordering::Relaxed) > 200).await;
    let id = server.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    for caller in callers {
        let status = within(caller).await.unwrap();
        // A call that never left has an error of this client's own making, which has a cause.
        let unsent = std::error::Error::source(&status).is_some();
        assert!(unsent || status.code() == Code::Unavailable, "{status:?}");
    }
    let ended = within(tokio::task::spawn_blocking(move || server.0.wait().unwrap())).await.unwrap();
    assert_eq!(ended.code(), Some(0));
}
