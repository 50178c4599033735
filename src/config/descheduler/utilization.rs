//! The args of LowNodeUtilization and HighNodeUtilization (spec 3.5, 10, 11).

use super::fields;
use super::plugins::Context;
use crate::evict::policy::{EvictionMode, HighNodeUtilizationArgs, LowNodeUtilizationArgs, Thresholds, UsageSource};
use crate::manifest::{Cut, Reader, expected, unsupported};
use crate::model::Str;

pub(super) fn low(r: &Reader<'_>, context: Context) -> LowNodeUtilizationArgs {
    let max_per_node = r.object("evictionLimits").and_then(|limits| {
        limits.only_or(&["node"], |_| None);
        limits.unsigned("node")
    });
    LowNodeUtilizationArgs {
        excluded_namespaces: fields::excluded_namespaces(r, "evictableNamespaces"),
        max_per_node,
        usage: usage(r, context),
        ..low_thresholds(r)
    }
}

/// The fields that v1alpha1 keeps in `nodeResourceUtilizationThresholds`.
pub(super) fn low_thresholds(r: &Reader<'_>) -> LowNodeUtilizationArgs {
    let use_deviation_thresholds = r.flag("useDeviationThresholds").unwrap_or_default();
    let (low, target) = (thresholds(r, "thresholds"), thresholds(r, "targetThresholds"));
    // A map with mistakes has been reported; comparing it would only repeat them.
    if let (Some(low), Some(target)) = (&low, &target) {
        if !low.keys().eq(target.keys()) {
            let only = |a: &Thresholds, b: &Thresholds| {
                let names: Vec<&str> = a.keys().filter(|k| !b.contains_key(*k)).map(|k| &**k).collect();
                names.join(", ")
            };
            r.error_in(
                "targetThresholds",
                format!(
                    "thresholds and targetThresholds configured different resources: [{}] only in thresholds, [{}] only \
                     in targetThresholds",
                    only(low, target),
                    only(target, low)
                ),
            );
        }
        for (resource, percent) in low {
            if !use_deviation_thresholds && target.get(resource).is_some_and(|t| percent > t) {
                r.error_in(
                    "thresholds",
                    format!("thresholds' {resource} percentage is greater than targetThresholds'"),
                );
            }
        }
    }
    LowNodeUtilizationArgs {
        thresholds: low.unwrap_or_default(),
        target_thresholds: target.unwrap_or_default(),
        use_deviation_thresholds,
        number_of_nodes: number_of_nodes(r),
        ..LowNodeUtilizationArgs::default()
    }
}

pub(super) fn high(r: &Reader<'_>) -> HighNodeUtilizationArgs {
    let mut eviction_modes = Vec::new();
    r.checked_texts("evictionModes", |text, item| match text {
        "OnlyThresholdingResources" => eviction_modes.push(EvictionMode::OnlyThresholdingResources),
        other => item.error(unsupported(other, ["OnlyThresholdingResources"])),
    });
    HighNodeUtilizationArgs {
        eviction_modes,
        excluded_namespaces: fields::excluded_namespaces(r, "evictableNamespaces"),
        ..high_thresholds(r)
    }
}

/// The fields that v1alpha1 keeps in `nodeResourceUtilizationThresholds`.
pub(super) fn high_thresholds(r: &Reader<'_>) -> HighNodeUtilizationArgs {
    HighNodeUtilizationArgs {
        thresholds: thresholds(r, "thresholds").unwrap_or_default(),
        number_of_nodes: number_of_nodes(r),
        ..HighNodeUtilizationArgs::default()
    }
}

/// Upstream takes a negative number, and it does what 0 does.
fn number_of_nodes(r: &Reader<'_>) -> u64 {
    r.integer("numberOfNodes").map_or(0, |n| u64::try_from(n).unwrap_or(0))
}

/// None: there are none, or one is wrong; both are reported.
fn thresholds(r: &Reader<'_>, field: &str) -> Option<Thresholds> {
    let mut found = Thresholds::new();
    let (mut any, mut wrong) = (false, false);
    let is_map = r.entries(field, |resource, percent| {
        any = true;
        match percent.value().as_f64() {
            Some(value) if (0.0..=100.0).contains(&value) => {
                found.insert(Str::from(resource), value);
            }
            Some(_) => {
                wrong = true;
                percent.error(format!("{resource} threshold not in [0, 100] range"));
            }
            None => {
                wrong = true;
                percent.error(expected("a percentage", percent.value()));
            }
        }
    });
    // A map of the wrong type has been reported as such.
    if !any && (is_map || !r.has(field)) {
        r.error_in(field, "no resource threshold is configured");
    }
    (any && !wrong).then_some(found)
}

fn usage(r: &Reader<'_>, context: Context) -> UsageSource {
    let Some(metrics) = r.object("metricsUtilization") else { return UsageSource::Requests };
    metrics.only_or(&["metricsServer", "prometheus", "source"], |_| None);
    let server = metrics.flag("metricsServer").unwrap_or_default();
    let source = metrics.text("source").unwrap_or_default();
    let prometheus = metrics.object("prometheus");
    if let Some(prometheus) = &prometheus {
        prometheus.only_or(&["query"], |_| None);
    }
    match source {
        "KubernetesMetrics" => {
            if server {
                metrics.error_in("metricsServer", "it is not allowed to combine metricsServer with a source");
            }
            if prometheus.is_some() {
                metrics
                    .error_in("prometheus", "prometheus configuration is not allowed when source is KubernetesMetrics");
            }
        }
        "Prometheus" if prometheus.and_then(|p| p.text("query")).unwrap_or_default().is_empty() => {
            metrics.error_in("prometheus.query", "prometheus query is required when source is Prometheus");
        }
        _ => {}
    }
    if !context.enabled {
        return UsageSource::KubernetesMetrics;
    }
    // What upstream finds only when the plugin runs. The older flag wins over the source there.
    match source {
        _ if server => {}
        "KubernetesMetrics" => {}
        "Prometheus" => metrics.error_in(
            "source",
            "Prometheus is not supported: Berth asks nobody; stream NodeMetrics and PodMetrics and use KubernetesMetrics",
        ),
        "" => metrics.error_in("source", "metrics source is empty"),
        other => metrics.error_in("source", format!("unrecognized metrics source \"{}\"", Cut(other))),
    }
    if (server || source == "KubernetesMetrics") && !context.kubernetes_metrics {
        metrics.error(
            "metrics client not initialized; declare the source at the top of the policy: metricsProviders: \
             [{source: KubernetesMetrics}]",
        );
    }
    UsageSource::KubernetesMetrics
}
