//! A Berth in this process, on a free port, with a clock that tests set; clients for it; and manifests as messages.

#![allow(dead_code, reason = "each test crate uses a part")]
#![allow(unreachable_pub, reason = "a module of each test crate, not a crate")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use berth::api::{client, pb, server};
use berth::model::Time;
use berth::service::profiles::Profiles;
use berth::service::{Clock, ManualClock, Service};
use pb::eviction_service_client::EvictionServiceClient;
use pb::feed_service_client::FeedServiceClient;
use pb::inspect_service_client::InspectServiceClient;
use pb::scheduler_service_client::SchedulerServiceClient;
use prost_types::{ListValue, Struct, value::Kind};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

pub struct Berth {
    pub addr: SocketAddr,
    pub service: Arc<Service>,
    pub clock: Arc<ManualClock>,
    pub channel: Channel,
    stop: Option<oneshot::Sender<()>>,
    server: tokio::task::JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Berth {
    pub async fn start() -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_secs(1_000_000)));
        Self::with_clocks(clock.clone(), clock).await
    }

    /// One whose time is told by another clock than the one that tests set.
    pub async fn with_clocks(told: Arc<dyn Clock>, clock: Arc<ManualClock>) -> Self {
        Self::serving(Service::new(Profiles::default(), told), clock).await
    }

    /// One with limits of its own.
    pub async fn serving(service: Service, clock: Arc<ManualClock>) -> Self {
        let service = Arc::new(service);
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let any_port = "127.0.0.1:0".parse().unwrap();
        let (addr, server) = server::bind(service.clone(), any_port, shutdown).await.unwrap();
        let server = tokio::spawn(server);
        let channel = client::connect(&addr.to_string()).await.unwrap();
        Self { addr, service, clock, channel, stop: Some(stop), server }
    }

    /// One with these nodes, fed by hand.
    pub async fn with_nodes(nodes: &[Value]) -> Self {
        let berth = Self::start().await;
        let events = nodes.iter().map(node_manifest).collect();
        let ack = berth.feed_nodes(events).await;
        assert_eq!(ack.applied, nodes.len() as u64, "{ack:?}");
        berth
    }

    pub fn feed(&self) -> FeedServiceClient<Channel> {
        FeedServiceClient::new(self.channel.clone())
    }

    pub fn scheduler(&self) -> SchedulerServiceClient<Channel> {
        SchedulerServiceClient::new(self.channel.clone())
    }

    pub fn evictions(&self) -> EvictionServiceClient<Channel> {
        EvictionServiceClient::new(self.channel.clone())
    }

    pub fn inspect(&self) -> InspectServiceClient<Channel> {
        InspectServiceClient::new(self.channel.clone())
    }

    /// A single batch on a stream of its own, without Hello.
    pub async fn feed_nodes(&self, events: Vec<pb::NodeEvent>) -> pb::FeedAck {
        let mut stream = NodeStream::open(self).await;
        stream.send(pb::UpdateNodesRequest { events, ..Default::default() }).await;
        stream.ack().await.unwrap()
    }

    pub async fn feed_pods(&self, events: Vec<pb::PodEvent>) -> pb::FeedAck {
        let mut stream = PodStream::open(self).await;
        stream.send(pb::UpdatePodsRequest { events, ..Default::default() }).await;
        stream.ack().await.unwrap()
    }

    pub async fn feed_objects(&self, events: Vec<pb::ObjectEvent>) -> pb::FeedAck {
        let mut stream = ObjectStream::open(self).await;
        stream.send(pb::UpdateObjectsRequest { events, ..Default::default() }).await;
        stream.ack().await.unwrap()
    }

    pub async fn schedule(&self, request: pb::ScheduleRequest) -> Result<pb::ScheduleResponse, Status> {
        within(self.scheduler().schedule(request)).await.map(tonic::Response::into_inner)
    }

    pub async fn cluster(&self) -> pb::GetClusterResponse {
        within(self.inspect().get_cluster(pb::GetClusterRequest {})).await.unwrap().into_inner()
    }

    pub async fn node_names(&self) -> Vec<String> {
        let request = pb::ListNodesRequest { page_size: 500, ..Default::default() };
        let list = within(self.inspect().list_nodes(request)).await;
        list.unwrap().into_inner().nodes.into_iter().map(|node| node.name).collect()
    }

    /// Stops the server; connections that end count as a clean end.
    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        within(self.server).await.unwrap().unwrap();
    }
}

/// Fails rather than hangs. How long something takes decides nothing else.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("took over 30 s")
}

/// Asks again until it holds.
pub async fn eventually<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    within(async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

macro_rules! streams {
    ($($name:ident: $call:ident($request:ident) -> $response:ident;)*) => {
        $(pub struct $name {
            requests: Option<mpsc::Sender<pb::$request>>,
            acks: Streaming<pb::$response>,
        }

        impl $name {
            pub async fn open(berth: &Berth) -> Self {
                Self::on(berth.channel.clone()).await
            }

            pub async fn on(channel: Channel) -> Self {
                let (requests, outbound) = mpsc::channel(64);
                let call = FeedServiceClient::new(channel).$call(ReceiverStream::new(outbound)).await;
                Self { requests: Some(requests), acks: call.unwrap().into_inner() }
            }

            /// An error once the server is gone.
            pub async fn try_send(&mut self, request: pb::$request) -> Result<(), Box<dyn std::error::Error>> {
                self.requests.as_ref().unwrap().send(request).await?;
                self.acks.message().await?;
                Ok(())
            }

            pub async fn send(&mut self, request: pb::$request) {
                within(self.requests.as_ref().unwrap().send(request)).await.unwrap();
            }

            /// A request with a sequence, and a control.
            pub async fn control(&mut self, sequence: u64, control: pb::feed_control::Control) {
                let control = Some(pb::FeedControl { control: Some(control) });
                self.send(pb::$request { sequence, control, ..Default::default() }).await;
            }

            /// The next ack, or how the stream ended.
            pub async fn ack(&mut self) -> Result<pb::FeedAck, Status> {
                match within(self.acks.message()).await {
                    Ok(Some(response)) => Ok(response.ack.unwrap()),
                    Ok(None) => Err(Status::ok("the end")),
                    Err(status) => Err(status),
                }
            }

            /// All acks up to the one of this sequence, merged by hand.
            pub async fn acks_to(&mut self, sequence: u64) -> pb::FeedAck {
                let mut merged = self.ack().await.unwrap();
                while merged.sequence < sequence {
                    let later = self.ack().await.unwrap();
                    merged.sequence = later.sequence;
                    merged.revision = later.revision;
                    merged.applied += later.applied;
                    merged.stale += later.stale;
                    merged.removed += later.removed;
                    merged.omitted += later.omitted;
                    merged.rejections.extend(later.rejections);
                    merged.warnings.extend(later.warnings);
                }
                merged
            }

            /// Sends no more.
            pub fn close(&mut self) {
                self.requests = None;
            }
        })*
    };
}

streams! {
    NodeStream: update_nodes(UpdateNodesRequest) -> UpdateNodesResponse;
    PodStream: update_pods(UpdatePodsRequest) -> UpdatePodsResponse;
    ObjectStream: update_objects(UpdateObjectsRequest) -> UpdateObjectsResponse;
}

pub fn hello(source: &str) -> pb::feed_control::Control {
    hello_of(source, 1)
}

pub fn hello_of(source: &str, epoch: u64) -> pb::feed_control::Control {
    pb::feed_control::Control::Hello(pb::Hello { source: source.into(), epoch, incarnation: String::new() })
}

pub fn snapshot_begin(kinds: &[&str]) -> pb::feed_control::Control {
    let kinds = kinds.iter().map(ToString::to_string).collect();
    pb::feed_control::Control::SnapshotBegin(pb::SnapshotBegin { kinds })
}

pub fn snapshot_end() -> pb::feed_control::Control {
    pb::feed_control::Control::SnapshotEnd(pb::SnapshotEnd {})
}

pub fn structure(value: &Value) -> Struct {
    let Some(Kind::StructValue(structure)) = message(value).kind else { panic!("not an object: {value}") };
    structure
}

fn message(value: &Value) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(*flag),
        // As every JSON mapping of protobuf does.
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap()),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => Kind::ListValue(ListValue { values: items.iter().map(message).collect() }),
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), message(value))).collect();
            Kind::StructValue(Struct { fields })
        }
    };
    prost_types::Value { kind: Some(kind) }
}

pub fn node(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "labels": { "kubernetes.io/hostname": name } },
        "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } },
    })
}

pub fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
        "spec": { "containers": [{ "name": "c", "image": "app", "resources": { "requests": { "cpu": cpu } } }] },
    })
}

/// The manifest with a field of the spec set.
pub fn with(mut manifest: Value, field: &str, value: Value) -> Value {
    manifest["spec"][field] = value;
    manifest
}

pub fn node_manifest(manifest: &Value) -> pb::NodeEvent {
    pb::NodeEvent { event: Some(pb::node_event::Event::Manifest(structure(manifest))) }
}

pub fn pod_manifest(manifest: &Value) -> pb::PodEvent {
    pb::PodEvent { event: Some(pb::pod_event::Event::Manifest(structure(manifest))) }
}

pub fn object_manifest(manifest: &Value) -> pb::ObjectEvent {
    pb::ObjectEvent { event: Some(pb::object_event::Event::Manifest(structure(manifest))) }
}

pub fn pod_source(manifest: &Value) -> Option<pb::PodSource> {
    Some(pb::PodSource { source: Some(pb::pod_source::Source::Manifest(structure(manifest))) })
}

pub fn ask(manifest: &Value) -> pb::ScheduleRequest {
    pb::ScheduleRequest { pod: pod_source(manifest), ..Default::default() }
}
