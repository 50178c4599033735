use std::sync::atomic::AtomicBool;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::*;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::Object;
use crate::model::testing::{node, pod};
use crate::service::schedule::Request;
use crate::telemetry::log;

struct Port {
    service: Arc<Service>,
    addr: SocketAddr,
    draining: watch::Sender<bool>,
    _log: Box<dyn std::any::Any + Send>,
}

impl Port {
    async fn open() -> Self {
        let service = Arc::new(Service::default());
        let (draining, receiver) = watch::channel(false);
        let (subscriber, log) = log::build("error", log::Format::Text).unwrap();
        let any_port = "127.0.0.1:0".parse().unwrap();
        let (addr, server) = bind(service.clone(), log, receiver, any_port, std::future::pending()).await.unwrap();
        tokio::spawn(server);
        Self { service, addr, draining, _log: Box::new(subscriber) }
    }

    fn put(&self, object: impl Into<Object>) {
        let mut writer = self.service.cluster.writer();
        writer.begin();
        writer.upsert(Prepared::new(object.into()), Origin::anonymous());
    }

    /// Status and head, and the body.
    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let length = body.len();
        let request = format!("{method} {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, "").await;
        (status, body)
    }
}

#[tokio::test]
async fn it_is_healthy_from_the_start_and_ready_with_a_node() {
    let port = Port::open().await;
    assert_eq!(port.get("/healthz").await, (200, "ok\n".to_owned()));
    let (status, text) = port.get("/readyz").await;
    assert!(status == 503 && text.contains("no node is known yet"), "{status} {text}");
    port.service.cluster.writer().readiness_mut().stream_opened(&"informer".into(), 1, true, crate::model::Time(0));
    let (status, text) = port.get("/readyz").await;
    assert!(status == 503 && text.contains("snapshot of Node, Pod"), "{status} {text}");
    let (_, text) = port.get("/readyz?verbose").await;
    assert!(text.contains("[-]snapshot-Pod failed") && text.ends_with("readyz check failed\n"), "{text}");
    port.service.cluster.writer().readiness_mut().files_loaded();
    port.put(node("n1").build());
    assert_eq!(port.get("/readyz").await, (200, "ok\n".to_owned()));
    assert!(port.get("/readyz?verbose=1").await.1.ends_with("readyz check passed\n"));
}

#[tokio::test]
async fn while_it_drains_it_is_alive_and_not_ready() {
    let port = Port::open().await;
    port.put(node("n1").build());
    assert_eq!(port.get("/readyz").await.0, 200);
    port.draining.send(true).unwrap();
    assert_eq!(port.get("/readyz").await, (503, "not ready: shutting down\n".to_owned()));
    assert_eq!(port.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn metrics_show_decisions_and_what_there_is() {
    let port = Port::open().await;
    port.put(node("n1").cpu("1").build());
    let cancel = AtomicBool::new(false);
    let schedule = |name: &str| {
        port.service.schedule(Request::new(pod(name).cpu("1").build()), &cancel).unwrap();
    };
    ["a", "b"].into_iter().for_each(schedule);
    let (status, head, page) = port.ask("GET", "/metrics", "").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    for line in [
        "berth_schedule_attempts_total{result=\"scheduled\",profile=\"default-scheduler\"} 1",
        "berth_schedule_attempts_total{result=\"unschedulable\",profile=\"default-scheduler\"} 1",
        "berth_unschedulable_attempts_total{plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"} 1",
        "berth_scheduling_algorithm_duration_seconds_count 2",
        "berth_cache_size{type=\"nodes\"} 1",
        "berth_cache_size{type=\"assumed_pods\"} 1",
        "berth_reservation_events_total{event=\"made\"} 1",
        "berth_ready 1",
    ] {
        assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_dump_is_sorted_and_the_same_for_the_same_view() {
    let port = Port::open().await;
    for i in (0..40).rev() {
        port.put(node(&format!("n{i:02}")).build());
        port.put(pod(&format!("p{i:02}")).cpu("100m").on("n07").build());
    }
    port.put(pod("waits").build());
    port.put(pod("lost").on("nowhere").build());
    let dump = port.get("/debug/cache").await.1;
    assert_eq!(port.get("/debug/cache").await.1, dump);
    let nodes: Vec<&str> = dump.lines().filter(|l| l.starts_with("  n")).collect();
    assert!(nodes.len() == 40 && nodes.is_sorted(), "{dump}");
    let pods: Vec<&str> = dump.lines().filter(|l| l.starts_with("    pod ")).collect();
    assert!(pods.len() == 40 && pods.is_sorted(), "{dump}");
    for line in [
        "    pod default/p07 uid=uid-default-p07 bound",
        "pods elsewhere (2)",
        "  default/lost uid=uid-default-lost orphaned node=nowhere",
        "  default/waits uid=uid-default-waits pending",
    ] {
        assert!(dump.lines().any(|l| l == line), "{line} is not in\n{dump}");
    }
    // The same objects, fed in another order.
    let other = Port::open().await;
    for i in 0..40 {
        other.put(pod(&format!("p{i:02}")).cpu("100m").on("n07").build());
    }
    other.put(pod("lost").on("nowhere").build());
    other.put(pod("waits").build());
    for i in 0..40 {
        other.put(node(&format!("n{i:02}")).build());
    }
    let body = |dump: &str| dump.lines().filter(|l| !l.starts_with("incarnation")).collect::<Vec<_>>().join("\n");
    assert_eq!(body(&other.get("/debug/cache").await.1), body(&dump));
}

#[tokio::test]
async fn the_log_filter_changes_live_and_a_bad_one_changes_nothing() {
    let port = Port::open().await;
    assert_eq!(port.get("/debug/log").await, (200, "error\n".to_owned()));
    let (status, _, body) = port.ask("PUT", "/debug/log", "warn\n").await;
    assert_eq!((status, &*body), (200, "warn\n"));
    for bad in ["inof", "", "a=b=c"] {
        let (status, _, body) = port.ask("PUT", "/debug/log", bad).await;
        assert!(status == 400 && body.contains("is no log filter"), "{bad}: {status} {body}");
    }
    assert_eq!(port.get("/debug/log").await.1, "warn\n");
    let (status, ..) = port.ask("PUT", "/debug/log", &"x".repeat(MAX_BODY + 1)).await;
    assert_eq!(status, 413);
}

#[tokio::test]
async fn what_is_not_there_is_said_with_what_is() {
    let port = Port::open().await;
    let (status, text) = port.get("/metricz").await;
    assert!(status == 404 && text.contains("no /metricz") && text.contains("/debug/cache"), "{status} {text}");
    assert_eq!(port.get("/").await, (200, PATHS.to_owned()));
    let (status, head, _) = port.ask("POST", "/debug/log", "info").await;
    assert_eq!(status, 405);
    assert!(head.contains("allow: get,head,put"), "{head}");
    assert_eq!(port.ask("DELETE", "/healthz", "").await.0, 405);
}
