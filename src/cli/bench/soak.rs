//! `berth bench soak`: short-lived pods, each with labels that no other has, through a full cluster: memory stays flat.
//!
//! The promise is about what grows with the number of pods that ever were: indexes, interned names, sources, counts. So
//! memory is compared with what it was after the first tenth (or more, in a run that is short), when the cluster is full and bounded tables have filled.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::churn::{self, Churn, Counts};
use super::{Failure, Outcome};
use crate::cli::output;
use crate::service::Service;

/// How many times memory is looked at.
const MARKS: u64 = 10;
/// Percent by which it may differ from the first mark.
const TOLERANCE: f64 = 10.0;

/// Push short-lived pods through a full cluster: resident memory must end within 10 % of what it was once all was warm
///
/// Each pod has labels, a pod-template-hash, a name and a uid of its own; owners, namespaces, volumes, claims, nodes, resource
/// names and feeding clients come and go with them. All of it passes through the feed and through Schedule, in process.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Pods that come and go
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pods: u64,
    /// Pods after which memory is what it is compared with: the next tenth of all pods [default: a tenth]
    #[arg(long, value_name = "N")]
    warm_up: Option<u64>,
    /// Pods that the cluster holds at a time
    #[arg(long, value_name = "N", default_value_t = 150_000)]
    cluster_pods: u64,
    /// Nodes of the cluster; by default 100 pods a node
    #[arg(long, value_name = "N", default_value_t = 1_500)]
    nodes: u64,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// Resident memory when so many pods had come.
struct Mark {
    pods: u64,
    seconds: f64,
    resident: u64,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.pods < MARKS * args.cluster_pods.max(1) {
        let least = MARKS * args.cluster_pods.max(1);
        return Err(format!("--pods must be at least {least}: ten times what the cluster holds").into());
    }
    let service = Arc::new(Service::default());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(4)) as u64;
    let mut workers = churn::start(&service, args.nodes, args.cluster_pods, threads)?;
    let begun = Instant::now();
    let mut marks: Vec<Mark> = Vec::new();
    for mark in 1..=MARKS {
        let pods = args.pods * mark / MARKS;
        turn(&mut workers, pods / threads)?;
        let mark = Mark { pods, seconds: begun.elapsed().as_secs_f64(), resident: resident_bytes()? };
        if !args.json {
            output::line(row(&mark, marks.last()));
        }
        marks.push(mark);
    }
    let mut counts = Counts::default();
    workers.iter().for_each(|worker| counts.add(worker.counts()));
    counts.check(args.pods)?;
    judge(args, &marks, &counts)
}

/// All workers at once, each up to this many pods.
fn turn(workers: &mut [Churn], pods: u64) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(move || worker.run_to(pods))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Failure::from("a worker panicked"))?)
    })
}

fn judge(args: &Args, marks: &[Mark], counts: &Counts) -> Result<Outcome, Failure> {
    let warm = marks.iter().find(|mark| mark.pods >= args.warm_up.unwrap_or(0));
    let (Some(first), Some(last)) = (warm, marks.last()) else { return Err("--warm-up is more than --pods".into()) };
    let change = percent_more(last.resident, first.resident);
    let holds = change.abs() <= TOLERANCE;
    let verdict = if holds { "holds" } else { "does not hold" };
    let text = if args.json {
        let marks = marks.iter().map(|m| json!({ "pods": m.pods, "seconds": m.seconds, "resident_bytes": m.resident }));
        let report = json!({
            "pods": args.pods,
            "cluster_pods": args.cluster_pods,
            "nodes": args.nodes,
            "compared_with": first.pods,
            "marks": marks.collect::<Vec<_>>(),
            "change_percent": change,
            "placed": counts.placed,
            "refused": counts.refused,
            "holds": holds,
        });
        report.to_string()
    } else {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(text, "{} placed, {} fitted none of their candidates", counts.placed, counts.refused);
        let since = first.pods;
        let _ = write!(text, "{change:+.1} % since {since} pods, at most {TOLERANCE} % are allowed: {verdict}");
        text
    };
    Ok(Outcome { text, holds })
}

fn row(mark: &Mark, before: Option<&Mark>) -> String {
    let (pods, seconds) = before.map_or((0, 0.0), |b| (b.pods, b.seconds));
    let rate = ratio(mark.pods - pods, 1) / (mark.seconds - seconds).max(f64::EPSILON);
    let mib = ratio(mark.resident, 1 << 20);
    format!("{:>12} pods  {mib:>9.1} MiB resident  {rate:>8.0} pods/s", mark.pods)
}

fn percent_more(now: u64, then: u64) -> f64 {
    (ratio(now, then) - 1.0) * 100.0
}

#[allow(clippy::cast_precision_loss, reason = "shown with a digit or two")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

/// `VmRSS` of this process.
fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status");
    let status =
        status.map_err(|error| format!("resident memory is only known on Linux: /proc/self/status: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| "no VmRSS in /proc/self/status".into())
}
