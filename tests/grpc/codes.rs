//! The rows of the table of codes that need a server in trouble: overload and a bug. The others are where their subject is:
//! `schedule.rs` (fields, readiness, revisions, incarnations, names), `feed.rs` (items), `fencing.rs`, `protocol.rs` (sizes,
//! deadlines of streams, the end), `detail.rs` (size of answers); deadlines of unary calls are tested where they are kept,
//! in `src/api/layer.rs`, since this client has a timer of its own that ends the call first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use berth::api::pb;
use berth::model::Time;
use berth::service::{Clock, ManualClock};
use tonic::Code;
use tonic_types::StatusExt;

use crate::support::*;

/// Holds the writer, so that nothing is decided or written, until it is dropped.
struct Standstill {
    end: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Standstill {
    fn of(berth: &Berth) -> Self {
        let service = berth.service.clone();
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let _writer = service.cluster.writer();
            begin.send(()).unwrap();
            let _ = ended.recv();
        });
        begun.recv().unwrap();
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        self.end.take();
        self.thread.take().unwrap().join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_beyond_the_queue_are_shed_and_feeds_never_are() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let standstill = Standstill::of(&berth);
    let mut feed = NodeStream::open(&berth).await;
    let (answers, mut answered) = tokio::sync::mpsc::unbounded_channel();
    let mut calls = 0;
    // While nothing comes back, a newcomer's wait is as long as that lasts already, and soon too long.
    let shed = loop {
        let (mut scheduler, answers) = (berth.scheduler(), answers.clone());
        let request = pb::ScheduleRequest { dry_run: true, ..ask(&pod(&format!("p{calls}"), "1m")) };
        tokio::spawn(async move { answers.send(scheduler.schedule(request).await) });
        calls += 1;
        if let Ok(answer) = tokio::time::timeout(std::time::Duration::from_millis(10), answered.recv()).await {
            break answer.unwrap().unwrap_err();
        }
        assert!(calls < 10_000);
    };
    assert_eq!(shed.code(), Code::ResourceExhausted, "{shed}");
    assert_eq!(shed.get_details_error_info().unwrap().reason, "OVERLOADED");
    assert!(shed.get_details_retry_info().unwrap().retry_delay.is_some());
    feed.send(pb::UpdateNodesRequest { events: vec![node_manifest(&node("n2", "4"))], ..Default::default() }).await;
    drop(standstill);
    assert_eq!(feed.ack().await.unwrap().applied, 1);
    let mut placed = 0;
    for _ in 1..calls {
        match within(answered.recv()).await.unwrap() {
            Ok(answer) => placed += usize::from(!answer.into_inner().node.is_empty()),
            Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
        }
    }
    assert!(placed >= 1, "those in the queue were answered");
}

/// Stands for a bug anywhere in a decision.
#[derive(Debug)]
struct Faulty {
    clock: Arc<ManualClock>,
    breaks: AtomicBool,
}

impl Clock for Faulty {
    fn now(&self) -> Time {
        assert!(!self.breaks.load(Ordering::Relaxed), "a bug");
        self.clock.now()
    }
}

#[tokio::test]
async fn a_bug_is_internal_with_a_request_id_and_the_process_lives_on() {
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000_000)));
    let faulty = Arc::new(Faulty { clock: clock.clone(), breaks: AtomicBool::new(false) });
    let berth = Berth::with_clocks(faulty.clone(), clock).await;
    berth.feed_nodes(vec![node_manifest(&node("n1", "4"))]).await;
    faulty.breaks.store(true, Ordering::Relaxed);
    let status = berth.schedule(ask(&pod("p", "3"))).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal, "{status}");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.reason, "INTERNAL");
    assert!(status.message().contains(&info.metadata["request_id"]), "{status}");
    assert!(!status.message().contains("a bug"), "what went wrong is for the log: {status}");
    faulty.breaks.store(false, Ordering::Relaxed);
    assert_eq!(berth.schedule(ask(&pod("q", "3"))).await.unwrap().node, "n1", "it took no room either");
}
