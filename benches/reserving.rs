//! How much of the reserving throughput is left while another thread forks the view 1,000 times a second, at 5,000 nodes and
//! 150,000 pods.
//!
//! `cargo bench --bench reserving`. Figures in benches/README.md. The promise is 70 %. A reserving call is the whole of
//! `Service::schedule` (read, watch, decide, reserve) and a release; the situations take turns, so that what else the
//! machine does falls on all of them alike.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints a table")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use berth::cluster::store::Origin;
use berth::cluster::writer::Prepared;
use berth::model::testing::{node, pod};
use berth::model::{Object, Pod};
use berth::service::Service;
use berth::service::schedule::{Request, Verdict};

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const FORKS_A_SECOND: u64 = 1_000;
/// Turns of each situation, and how long one is.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(2);
/// Share of the throughput that must be left, in percent.
const PROMISED: f64 = 70.0;

/// What the other thread does.
#[derive(Clone, Copy, PartialEq)]
enum Other {
    Nothing,
    /// Forks and drops the fork.
    Forks,
    /// Forks and holds each fork until the next: there is always one.
    Holds,
}

/// How a call chooses.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// Among one candidate node: the least that a decision does, so that the fork weighs most. Shown, not judged.
    OneNode,
    AllNodes,
}

fn service() -> Service {
    let service = Service::default();
    let mut writer = service.cluster.writer();
    for i in 0..NODES {
        let n = node(&format!("n{i}")).cpu("64").memory("256Gi").zone(&format!("z{}", i % 3));
        writer.upsert(Prepared::new(Object::from(n.build())), Origin::anonymous());
    }
    for i in 0..PODS {
        writer.begin();
        let p = of_app(&format!("p{i}"), i).on(&format!("n{}", i % NODES));
        writer.upsert(Prepared::new(Object::from(p.build())), Origin::anonymous());
    }
    writer.readiness_mut().files_loaded();
    drop(writer);
    service
}

fn of_app(name: &str, i: usize) -> berth::model::testing::PodBuilder {
    let app = format!("app-{}", i % 2_000);
    pod(name).cpu("100m").memory("128Mi").label("app", &app).label("pod-template-hash", &app)
}

/// Calls a second while the other thread is at it, and forks a second.
fn turn(service: &Service, pods: &[Pod], ask: Ask, other: Other) -> (f64, f64) {
    let (stop, forks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        if other != Other::Nothing {
            scope.spawn(|| fork_until(service, other, &stop, &forks));
        }
        let (begun, mut calls) = (Instant::now(), 0_usize);
        while begun.elapsed() < TURN {
            let candidates = match ask {
                Ask::OneNode => vec![format!("n{}", calls * 7_919 % NODES)],
                Ask::AllNodes => Vec::new(),
            };
            let request = Request { candidates, ..Request::new(pods[calls % pods.len()].clone()) };
            let answer = service.schedule(request, &AtomicBool::new(false)).unwrap();
            let Verdict::Placed { reservation: Some(held), .. } = answer.verdict else { return (0.0, 0.0) };
            service.release(&held.id);
            calls += 1;
        }
        let seconds = begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        (calls as f64 / seconds, forks.load(Ordering::Relaxed) as f64 / seconds)
    })
}

fn fork_until(service: &Service, other: Other, stop: &AtomicBool, forks: &AtomicU64) {
    let begun = Instant::now();
    let mut held = None;
    while !stop.load(Ordering::Relaxed) {
        let fork = black_box(service.cluster.fork());
        let made = forks.fetch_add(1, Ordering::Relaxed) + 1;
        if other == Other::Holds {
            held = Some(fork);
        }
        let next = Duration::from_micros(made * 1_000_000 / FORKS_A_SECOND);
        std::thread::sleep(next.saturating_sub(begun.elapsed()));
    }
    drop(held);
}

fn main() {
    let service = service();
    let pods: Vec<Pod> = (0..1_000).map(|i| of_app(&format!("new{i}"), i).build()).collect();
    let mut kept = true;
    for (name, ask) in [("one candidate node", Ask::OneNode), ("all nodes", Ask::AllNodes)] {
        let situations = [Other::Nothing, Other::Forks, Other::Holds];
        let mut rates = [const { Vec::new() }; 3];
        let mut forks = [0.0; 3];
        for _ in 0..TURNS {
            for (i, other) in situations.iter().enumerate() {
                let (calls, forked) = turn(&service, &pods, ask, *other);
                rates[i].push(calls);
                forks[i] = forked;
            }
        }
        let median = |list: &mut Vec<f64>| {
            list.sort_by(f64::total_cmp);
            list[list.len() / 2]
        };
        let alone = median(&mut rates[0]);
        println!("{name}: {alone:.0} reservations/s alone");
        for (i, what) in [(1, "forked and dropped"), (2, "forked, each held until the next")] {
            let rate = median(&mut rates[i]);
            let left = rate * 100.0 / alone;
            kept &= ask == Ask::OneNode || left > PROMISED;
            println!("  {rate:.0} reservations/s = {left:.0} % while {what}, {:.0} times a second", forks[i]);
        }
    }
    println!("{PROMISED} % promised for decisions over all nodes: {}", if kept { "holds" } else { "does not hold" });
    std::process::exit(i32::from(!kept));
}
