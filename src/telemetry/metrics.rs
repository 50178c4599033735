//! Counters and timings, and the page that shows them.
//!
//! Names, labels and doubling buckets follow kube-scheduler's (`scheduler_schedule_attempts_total` is
//! `berth_schedule_attempts_total`), so that its dashboards need only another prefix; README has the table. Durations start
//! at 10 us, where kube-scheduler's start at 1 ms.
//!
//! Promises: recording takes no exclusive lock but for the first use of a label set. Label values are bounded: results,
//! kinds, events, and names of profiles and plugins, none of which a client can invent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::calls::{CallMetrics, Calls};
pub use super::lanes::LaneMetrics;
use super::lanes::Lanes;
use super::sizes::{self, Sizes};
use super::timing::Timing;
use crate::model::Str;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    result: &'static str,
    profile: Str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refusal {
    plugin: &'static str,
    profile: Str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeedEvents {
    stream: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeedStream {
    stream: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Event {
    event: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reloads {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plan {
    mode: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

/// What a decision came to, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    Scheduled,
    Unschedulable,
    /// The decision could not be made: a bug, an unsupported feature, or nobody waited any more.
    Error,
}

impl AttemptResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

/// What a plan of evictions came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanResult {
    Planned,
    /// Nobody waited any more.
    Cancelled,
    /// A bug.
    Error,
}

impl PlanResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// What became of an event of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedResult {
    Applied,
    /// Something newer was known.
    Stale,
    Rejected,
    /// Taken out at the end of a snapshot, since it wasn't sent again.
    Removed,
}

impl FeedResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Stale => "stale",
            Self::Rejected => "rejected",
            Self::Removed => "removed",
        }
    }
}

/// What happened to a snapshot. Those that began and neither ended nor were cut are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotEvent {
    Begun,
    Ended,
    /// Its stream ended before it did; it deletes nothing.
    Cut,
}

impl SnapshotEvent {
    fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Ended => "ended",
            Self::Cut => "cut",
        }
    }
}

/// Everything that is counted as it happens.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    attempts: Family<Attempt, Counter>,
    attempt_seconds: Family<Attempt, Timing>,
    dry_runs: Family<Attempt, Counter>,
    algorithm_seconds: Timing,
    refusals: Family<Refusal, Counter>,
    feed_events: Family<FeedEvents, Counter>,
    feed_streams: Family<FeedStream, Gauge>,
    feed_batch_seconds: Timing,
    snapshots: Family<Event, Counter>,
    config_reloads: Family<Reloads, Counter>,
    policy_reloads: Family<Reloads, Counter>,
    plans: Family<Plan, Counter>,
    plan_seconds: Family<Plan, Timing>,
    lanes: Lanes,
    calls: Calls,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let attempts = Family::default();
        let attempt_seconds = Family::default();
        let dry_runs = Family::default();
        let algorithm_seconds = Timing::default();
        let refusals = Family::default();
        let feed_events = Family::default();
        let feed_streams = Family::default();
        let feed_batch_seconds = Timing::default();
        let snapshots = Family::default();
        let config_reloads = Family::default();
        let policy_reloads = Family::default();
        let plans = Family::default();
        let plan_seconds = Family::default();
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);

        let berth = registry.sub_registry_with_prefix("berth");
        berth.register("schedule_attempts", "Decisions that may take room, by result and profile", attempts.clone());
        let help = "Time of a decision that may take room, waiting for the writer included";
        berth.register_with_unit("scheduling_attempt_duration", help, Unit::Seconds, attempt_seconds.clone());
        berth.register("dry_runs", "Decisions that take no room, by result and profile", dry_runs.clone());
        let help = "Time of filtering, scoring and choosing";
        berth.register_with_unit("scheduling_algorithm_duration", help, Unit::Seconds, algorithm_seconds.clone());
        let help = "Refusals by plugin; one refusal counts for each plugin that refused a node";
        berth.register("unschedulable_attempts", help, refusals.clone());
        berth.register("feed_events", "Events of the feeds, by stream and what became of them", feed_events.clone());
        berth.register("feed_streams", "Feed streams that are open now", feed_streams.clone());
        let help = "Time of reading and applying one batch of a feed";
        berth.register_with_unit("feed_batch_duration", help, Unit::Seconds, feed_batch_seconds.clone());
        berth.register("feed_snapshots", "Snapshots by what happened to them", snapshots.clone());
        berth.register("config_reloads", "Reloads of the configuration file by result", config_reloads.clone());
        berth.register("policy_reloads", "Reloads of the descheduler policy by result", policy_reloads.clone());
        berth.register("eviction_plans", "Plans of evictions by mode and result", plans.clone());
        let help = "Time of a plan of evictions";
        berth.register_with_unit("eviction_plan_duration", help, Unit::Seconds, plan_seconds.clone());
        berth.register("build_info", "Always 1; the label says which version runs", build);
        let lanes = Lanes::register(berth);
        let calls = Calls::register(&mut registry);

        Self {
            registry,
            attempts,
            attempt_seconds,
            dry_runs,
            algorithm_seconds,
            refusals,
            feed_events,
            feed_streams,
            feed_batch_seconds,
            snapshots,
            config_reloads,
            policy_reloads,
            plans,
            plan_seconds,
            lanes,
            calls,
        }
    }
}

impl Metrics {
    /// A decision that may take room ended; `took` includes waiting for the writer.
    pub fn attempt(&self, result: AttemptResult, profile: &Str, took: Duration) {
        let labels = Attempt { result: result.as_str(), profile: profile.clone() };
        self.attempts.get_or_create(&labels).inc();
        self.attempt_seconds.get_or_create(&labels).observe(took);
    }

    /// A decision that takes no room ended.
    pub fn dry_run(&self, result: AttemptResult, profile: &Str) {
        let labels = Attempt { result: result.as_str(), profile: profile.clone() };
        self.dry_runs.get_or_create(&labels).inc();
    }

    /// The engine ended.
    pub fn algorithm(&self, took: Duration) {
        self.algorithm_seconds.observe(took);
    }

    /// A plugin had a part in a refusal. Call it once a refusal and plugin.
    pub fn refused(&self, plugin: &'static str, profile: &Str) {
        self.refusals.get_or_create(&Refusal { plugin, profile: profile.clone() }).inc();
    }

    pub fn feed_events(&self, stream: &'static str, result: FeedResult, count: u64) {
        if count > 0 {
            self.feed_events.get_or_create(&FeedEvents { stream, result: result.as_str() }).inc_by(count);
        }
    }

    pub fn feed_batch(&self, took: Duration) {
        self.feed_batch_seconds.observe(took);
    }

    pub fn snapshot(&self, event: SnapshotEvent) {
        self.snapshots.get_or_create(&Event { event: event.as_str() }).inc();
    }

    /// The configuration file was read again.
    pub fn config_reloaded(&self, success: bool) {
        let result = if success { "success" } else { "failure" };
        self.config_reloads.get_or_create(&Reloads { result }).inc();
    }

    /// The descheduler policy was read again.
    pub fn policy_reloaded(&self, success: bool) {
        let result = if success { "success" } else { "failure" };
        self.policy_reloads.get_or_create(&Reloads { result }).inc();
    }

    /// A plan of evictions ended.
    pub fn plan(&self, mode: &'static str, result: PlanResult, took: Duration) {
        let labels = Plan { mode, result: result.as_str() };
        self.plans.get_or_create(&labels).inc();
        self.plan_seconds.get_or_create(&labels).observe(took);
    }

    /// A feed stream is open for as long as what this gives lives.
    pub fn feed_stream(&self, stream: &'static str) -> OpenStream {
        let gauge = self.feed_streams.get_or_create(&FeedStream { stream }).clone();
        gauge.inc();
        OpenStream(gauge)
    }

    /// The metrics of a lane of decisions.
    pub fn lane(&self, lane: &'static str) -> LaneMetrics {
        self.lanes.lane(lane)
    }

    /// The metrics of a gRPC method. Ask once, and keep it.
    pub fn calls(&self, grpc_type: &'static str, service: &str, method: &str) -> Arc<CallMetrics> {
        Arc::new(self.calls.method(grpc_type, service, method))
    }

    /// Everything, with the sizes of now, in the OpenMetrics text format.
    ///
    /// # Errors
    /// Never in practice: writing to a `String` doesn't fail.
    pub fn render(&self, sizes: &Sizes) -> Result<String, fmt::Error> {
        let mut page = String::new();
        let mut now = Registry::default();
        sizes::register(&mut now, sizes);
        text::encode_registry(&mut page, &now)?;
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

/// Counts an open stream until it is dropped.
#[derive(Debug)]
pub struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
