//! `berth bench evict`: what one request for evictions costs on a cluster that needs many.
//!
//! In process, so that what is measured is planning: no transport and no reading of manifests. The time is that of
//! `evict::planned` from a snapshot to the outcome, which is what a call holds a thread for.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::skewed::{self, NOW};
use super::{Failure, Outcome};
use crate::cli::evict::Mode;
use crate::config::descheduler;
use crate::evict::policy::{ExtensionPoint, PluginName, Policy};
use crate::evict::{self, Outcome as Plan};
use crate::manifest::closest;
use crate::service::Service;

/// Measure one request for evictions with all strategies, on a cluster that gives each something to do
///
/// The descheduler took 7 s for LowNodeUtilization alone, 12 s for RemoveDuplicates and 17 s for
/// RemovePodsViolatingTopologySpreadConstraint on a cluster of this size, 300 owners and a crowded quarter, on a machine of
/// 2 cores.
#[derive(Debug, clap::Args)]
#[command(after_help = skewed::LOOKS, after_long_help = skewed::LOOKS)]
pub(super) struct Args {
    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// Pods of the cluster
    #[arg(long, value_name = "P", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pods: u32,
    /// Strategies of the policy, by name [default: all]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = strategy)]
    strategies: Vec<PluginName>,
    /// How evictions are chosen
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Seconds that the request may take; the default is meant for all strategies at the default size
    #[arg(long, value_name = "SECONDS", default_value_t = 7.0)]
    at_most: f64,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// A strategy by its name, or what may have been meant.
fn strategy(text: &str) -> Result<PluginName, String> {
    let text = text.trim();
    PluginName::parse(text).ok_or_else(|| {
        let known = || PluginName::ALL.iter().map(|name| name.as_str());
        // Short names of prose, such as TopologySpread or NodeTaints.
        let within = || known().find(|name| text.len() >= 6 && name.contains(text));
        match closest(text, known()).or_else(within) {
            Some(meant) => format!("there is no such strategy; did you mean {meant}?"),
            None => format!("there is no such strategy; there is {}", known().collect::<Vec<_>>().join(", ")),
        }
    })
}

/// Arguments that leave each strategy something to do and let two of them not work against each other.
fn arguments(name: PluginName) -> Value {
    match name {
        PluginName::HighNodeUtilization => json!({ "thresholds": { "cpu": 18, "memory": 18 } }),
        PluginName::LowNodeUtilization => {
            json!({ "thresholds": { "cpu": 40, "memory": 40 }, "targetThresholds": { "cpu": 60, "memory": 60 } })
        }
        PluginName::PodLifeTime => json!({ "maxPodLifeTimeSeconds": 7 * 86_400 }),
        PluginName::RemovePodsHavingTooManyRestarts => json!({ "podRestartThreshold": 100 }),
        PluginName::RemovePodsViolatingNodeAffinity => json!({ "nodeAffinityType": [
            "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution",
        ] }),
        PluginName::RemoveDuplicates
        | PluginName::RemoveFailedPods
        | PluginName::RemovePodsViolatingInterPodAntiAffinity
        | PluginName::RemovePodsViolatingNoExecuteTaints
        | PluginName::RemovePodsViolatingNodeTaints
        | PluginName::RemovePodsViolatingTopologySpreadConstraint => json!({}),
    }
}

/// The order in which they are asked: what must go first, then what should be spread, then load.
const ORDER: [PluginName; 11] = [
    PluginName::RemoveFailedPods,
    PluginName::RemovePodsViolatingNoExecuteTaints,
    PluginName::RemovePodsViolatingNodeTaints,
    PluginName::RemovePodsViolatingNodeAffinity,
    PluginName::RemovePodsViolatingInterPodAntiAffinity,
    PluginName::RemovePodsHavingTooManyRestarts,
    PluginName::PodLifeTime,
    PluginName::RemoveDuplicates,
    PluginName::RemovePodsViolatingTopologySpreadConstraint,
    PluginName::HighNodeUtilization,
    PluginName::LowNodeUtilization,
];

fn policy(service: &Service, strategies: &[PluginName]) -> Result<Policy, Failure> {
    let wanted = || ORDER.iter().filter(|name| strategies.is_empty() || strategies.contains(name));
    let enabled = |point: ExtensionPoint| {
        let names = wanted().filter(|name| name.extension_point() == point);
        json!({ "enabled": names.map(|name| name.as_str()).collect::<Vec<_>>() })
    };
    let config = wanted().map(|name| json!({ "name": name.as_str(), "args": arguments(*name) }));
    let value = json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy",
        "profiles": [{
            "name": "bench",
            "pluginConfig": config.collect::<Vec<_>>(),
            "plugins": {
                "deschedule": enabled(ExtensionPoint::Deschedule),
                "balance": enabled(ExtensionPoint::Balance),
            },
        }],
    });
    Ok(descheduler::from_value(&value, &service.cluster)?.policy)
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let service = Service::default();
    skewed::fill(&service, usize::try_from(args.nodes)?, usize::try_from(args.pods)?)?;
    let policy = policy(&service, &args.strategies)?;
    let (snapshot, profiles) = (service.cluster.snapshot(), service.profiles());
    let begun = Instant::now();
    let plan = match args.mode {
        Mode::Compatible => evict::compatible(&snapshot, &policy, NOW, &AtomicBool::new(false))?,
        Mode::Planned => {
            evict::planned(&snapshot, &policy, &|name| profiles.get(name).ok(), NOW, &AtomicBool::new(false))?
        }
    };
    let took = begun.elapsed();
    if let Some(failure) = plan.failures.first() {
        return Err(format!("{}: {}", failure.strategy.as_str(), failure.error).into());
    }
    let holds = took.as_secs_f64() <= args.at_most;
    let report = Report { args, took, rows: rows(&policy, &plan), plan: &plan };
    Ok(Outcome { text: if args.json { report.json(holds).to_string() } else { report.page(holds) }, holds })
}

/// What came of a strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    strategy: PluginName,
    suggestions: usize,
    left_alone: BTreeMap<&'static str, usize>,
    gain: Option<evict::outcome::Gain>,
}

/// In the order in which they ran.
fn rows(policy: &Policy, plan: &Plan) -> Vec<Row> {
    let profiles = || policy.profiles.iter();
    let ran = profiles().flat_map(|p| &p.deschedule).chain(profiles().flat_map(|p| &p.balance));
    let mut rows: Vec<Row> = ran
        .map(|plugin| {
            let strategy = plugin.name();
            let mut left_alone = BTreeMap::new();
            for pod in plan.left_alone.iter().filter(|pod| pod.strategy == strategy) {
                *left_alone.entry(pod.why.kind()).or_default() += 1;
            }
            Row {
                strategy,
                suggestions: plan.suggestions.iter().filter(|s| s.strategy == strategy).count(),
                left_alone,
                gain: plan.measures.iter().find(|m| m.strategy == strategy).map(|m| m.gain),
            }
        })
        .collect();
    rows.dedup_by_key(|row| row.strategy);
    rows
}

struct Report<'a> {
    args: &'a Args,
    took: Duration,
    plan: &'a Plan,
    rows: Vec<Row>,
}

impl Report<'_> {
    fn left_alone(&self) -> BTreeMap<&'static str, usize> {
        let mut total = BTreeMap::new();
        for (kind, count) in self.rows.iter().flat_map(|row| &row.left_alone) {
            *total.entry(*kind).or_default() += count;
        }
        total
    }

    fn json(&self, holds: bool) -> Value {
        let counts = |counts: &BTreeMap<&'static str, usize>| -> Value {
            counts.iter().map(|(kind, count)| ((*kind).to_owned(), json!(count))).collect::<Map<_, _>>().into()
        };
        let strategies = self.rows.iter().map(|row| {
            let mut value = json!({
                "strategy": row.strategy.as_str(), "suggestions": row.suggestions, "left_alone": counts(&row.left_alone),
            });
            if let Some(gain) = row.gain {
                value["metric"] = json!(gain.metric);
                value["before"] = json!(gain.before);
                value["after"] = json!(gain.after);
            }
            value
        });
        let mut report = json!({
            "nodes": self.args.nodes,
            "pods": self.args.pods,
            "mode": self.args.mode.as_str(),
            "ms": (self.took.as_secs_f64() * 1e6).round() / 1e3,
            "suggestions": self.plan.suggestions.len(),
            "decisions": self.plan.decisions,
            "left_alone": counts(&self.left_alone()),
            "strategies": strategies.collect::<Vec<_>>(),
            "at_most_seconds": self.args.at_most,
            "holds": holds,
        });
        if let Some(look) = self.plan.look_ahead {
            report["look_ahead"] = json!({ "rounds": look.rounds, "complete": look.complete });
        }
        report
    }

    fn page(&self, holds: bool) -> String {
        let mut page = String::new();
        // Writing to a String can't fail.
        let _ = self.write(&mut page, holds);
        page
    }

    fn write(&self, page: &mut String, holds: bool) -> std::fmt::Result {
        let Args { nodes, pods, mode, at_most, .. } = self.args;
        writeln!(page, "{pods} pods on {nodes} nodes, {} strategies, mode {}\n", self.rows.len(), mode.as_str())?;
        for row in &self.rows {
            let left: usize = row.left_alone.values().sum();
            write!(page, "{:<44} {:>6} suggestions, {left:>6} left alone", row.strategy.as_str(), row.suggestions)?;
            if let Some(gain) = row.gain {
                write!(page, "; {}: {} -> {}", gain.metric, gain.before, gain.after)?;
            }
            writeln!(page)?;
        }
        writeln!(page)?;
        for (kind, count) in self.left_alone() {
            writeln!(page, "{count:>9} left alone: {kind}")?;
        }
        let verdict = if holds { "holds" } else { "does not hold" };
        write!(
            page,
            "{:.3} s, {} suggestions, {} landing decisions; at most {at_most} s are allowed: {verdict}",
            self.took.as_secs_f64(),
            self.plan.suggestions.len(),
            self.plan.decisions,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(nodes: usize, pods: usize, strategies: &[PluginName]) -> (Vec<Row>, Plan) {
        let service = Service::default();
        skewed::fill(&service, nodes, pods).unwrap();
        let policy = policy(&service, strategies).unwrap();
        let never = AtomicBool::new(false);
        let plan = evict::compatible(&service.cluster.snapshot(), &policy, NOW, &never).unwrap();
        (rows(&policy, &plan), plan)
    }

    #[test]
    fn each_strategy_finds_something_to_do_in_the_cluster() {
        let (rows, plan) = plan(200, 6_000, &[]);
        assert_eq!(rows.len(), PluginName::ALL.len());
        for row in &rows {
            let considered = row.suggestions + row.left_alone.values().sum::<usize>();
            assert!(considered > 0, "nothing for {}", row.strategy.as_str());
        }
        assert_eq!(plan.failures, []);
    }

    #[test]
    fn the_cluster_is_the_same_each_time_and_of_the_size_asked_for() {
        let (first, second) = (plan(40, 700, &[]), plan(40, 700, &[]));
        assert_eq!(first, second);
        let service = Service::default();
        skewed::fill(&service, 40, 700).unwrap();
        let snapshot = service.cluster.snapshot();
        assert_eq!((snapshot.view.node_count(), snapshot.pods().count()), (40, 700));
    }

    #[test]
    fn only_the_strategies_asked_for_run_in_a_sensible_order() {
        let asked = [PluginName::LowNodeUtilization, PluginName::RemoveDuplicates];
        let (rows, _) = plan(40, 700, &asked);
        let names: Vec<PluginName> = rows.iter().map(|row| row.strategy).collect();
        assert_eq!(names, [PluginName::RemoveDuplicates, PluginName::LowNodeUtilization]);
    }

    #[test]
    fn a_strategy_that_is_unknown_gets_a_suggestion() {
        assert_eq!(strategy("PodLifeTime"), Ok(PluginName::PodLifeTime));
        for (text, meant) in [
            ("RemoveDuplicate", "did you mean RemoveDuplicates?"),
            ("TopologySpread", "did you mean RemovePodsViolatingTopologySpreadConstraint?"),
            ("x", "there is HighNodeUtilization, LowNodeUtilization"),
        ] {
            let error = strategy(text).unwrap_err();
            assert!(error.contains(meant), "{error}");
        }
    }
}
