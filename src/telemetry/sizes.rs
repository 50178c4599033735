//! Sizes that are read when somebody asks, rather than kept up with every change.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::model::Str;

/// Sources that get a line of their own. A client names its source itself, so without a bound it could make up labels.
pub const MAX_SOURCES: usize = 32;
/// What the sources beyond that count as: the stalest of them.
const OTHER_SOURCES: &str = "(others)";
/// Bytes of a source's name that its label shows.
const MAX_SOURCE_NAME: usize = 64;

/// A count and what is counted.
pub type Count = (&'static str, u64);

/// What there is now.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    /// By type; kube-scheduler's are `nodes`, `pods` and `assumed_pods`.
    pub cache: Vec<Count>,
    /// Pods by state.
    pub pods: Vec<Count>,
    /// Objects by kind.
    pub objects: Vec<Count>,
    /// Live reservations by how they came about.
    pub reservations: Vec<Count>,
    /// Since the start, by what happened to them.
    pub reservation_events: Vec<Count>,
    pub revision: u64,
    pub ready: bool,
    /// The feeding clients and the seconds since each one's last word.
    pub sources: Vec<(Str, f64)>,
    /// Since the Unix epoch.
    pub started_seconds: f64,
    /// Of the configuration file, if one was named: whether it could be used when it was last read, and when, since the Unix
    /// epoch, the profiles in force were read.
    pub config: Option<(bool, f64)>,
    /// Of the descheduler policy, if one was named: whether it could be used when it was last read.
    pub policy: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Type {
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Event {
    event: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    source: String,
}

type Seconds = Gauge<f64, AtomicU64>;

/// Registers the sizes as metrics of a page that is made for this one scrape.
pub(super) fn register(registry: &mut Registry, sizes: &Sizes) {
    let berth = registry.sub_registry_with_prefix("berth");
    let cache = gauges(&sizes.cache, |r#type| Type { r#type });
    berth.register("cache_size", "What the cache holds, by type; assumed pods hold a reservation", cache);
    berth.register("pods", "Known pods by state", gauges(&sizes.pods, |state| State { state }));
    berth.register("objects", "Known objects by kind", gauges(&sizes.objects, |kind| Kind { kind }));
    let live = gauges(&sizes.reservations, |state| State { state });
    berth.register("reservations", "Live reservations by how they came about", live);
    let events = Family::<Event, Counter>::default();
    for (event, count) in &sizes.reservation_events {
        events.get_or_create(&Event { event }).inc_by(*count);
    }
    berth.register("reservation_events", "Reservations by what happened to them", events);
    berth.register("view_revision", "Revision of the view", gauge(sizes.revision));
    berth.register("ready", "1 while decisions can be made", gauge(sizes.ready.into()));
    let count = u64::try_from(sizes.sources.len()).unwrap_or(u64::MAX);
    berth.register("feed_sources", "Feeding clients that said hello since the start", gauge(count));
    let staleness = Family::<Source, Seconds>::default();
    for (source, seconds) in bounded(&sizes.sources) {
        let gauge = staleness.get_or_create(&Source { source }).clone();
        gauge.set(seconds.max(gauge.get()));
    }
    berth.register_with_unit("feed_staleness", "Time since a feeding client's last word", Unit::Seconds, staleness);

    if let Some(successful) = sizes.policy {
        let help = "Whether the descheduler policy could be used when it was last read";
        berth.register("policy_last_reload_successful", help, gauge(successful.into()));
    }
    if let Some((successful, seconds)) = sizes.config {
        let help = "Whether the configuration file could be used when it was last read";
        berth.register("config_last_reload_successful", help, gauge(successful.into()));
        let loaded = Seconds::default();
        loaded.set(seconds);
        let help = "When the profiles in force were read from the configuration file, since the Unix epoch";
        berth.register_with_unit("config_last_reload_success_timestamp", help, Unit::Seconds, loaded);
    }

    let process = registry.sub_registry_with_prefix("process");
    let started = Seconds::default();
    started.set(sizes.started_seconds);
    process.register_with_unit("start_time", "Start of the process since the Unix epoch", Unit::Seconds, started);
    if let Some(bytes) = resident_bytes() {
        process.register_with_unit("resident_memory", "Memory that is resident", Unit::Bytes, gauge(bytes));
    }
}

fn gauges<L>(counts: &[Count], label: impl Fn(&'static str) -> L) -> Family<L, Gauge>
where
    L: Clone + std::hash::Hash + Eq,
{
    let family = Family::<L, Gauge>::default();
    for (name, count) in counts {
        family.get_or_create(&label(name)).set(i64::try_from(*count).unwrap_or(i64::MAX));
    }
    family
}

fn gauge(value: u64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    gauge
}

/// The freshest sources under their names, cut to a bearable length, and the others together.
fn bounded(sources: &[(Str, f64)]) -> impl Iterator<Item = (String, f64)> {
    let mut sources: Vec<&(Str, f64)> = sources.iter().collect();
    sources.sort_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| a.cmp(b)));
    sources.into_iter().enumerate().map(|(i, (name, seconds))| {
        if i >= MAX_SOURCES {
            return (OTHER_SOURCES.to_owned(), *seconds);
        }
        let end = (0..=name.len().min(MAX_SOURCE_NAME)).rev().find(|at| name.is_char_boundary(*at));
        (name[..end.unwrap_or(0)].to_owned(), *seconds)
    })
}

/// None where the system doesn't tell, as in an empty root without /proc.
fn resident_bytes() -> Option<u64> {
    // Unlike /proc/self/statm, which counts pages, it says kB whatever the page size is.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn page(sizes: &Sizes) -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        register(&mut registry, sizes);
        encode(&mut page, &registry).unwrap();
        page
    }

    #[test]
    fn sources_that_clients_make_up_stay_few_and_short() {
        let source = |i: u16| (format!("{}{i:04}", "ä".repeat(i.into())).into(), f64::from(i));
        let sources = (0..500).map(source).collect();
        let page = page(&Sizes { sources, ..Sizes::default() });
        let lines: Vec<&str> = page.lines().filter(|l| l.starts_with("berth_feed_staleness_seconds{")).collect();
        assert!(lines.len() <= MAX_SOURCES + 1 && lines.iter().all(|l| l.len() < 256), "{lines:#?}");
        assert!(lines.contains(&"berth_feed_staleness_seconds{source=\"(others)\"} 499.0"), "{lines:#?}");
        assert!(page.lines().any(|l| l == "berth_feed_sources 500"), "{page}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_read_in_bytes() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20), "{:?}", resident_bytes());
    }
}
