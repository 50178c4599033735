//! `descheduler/v1alpha2`: profiles with plugins and their args (spec 3).

use super::plugins::{self, Context, EVICTOR};
use super::{Sources, enabled, evictor, fields, hints};
use crate::evict::policy::{DefaultEvictorArgs, PluginConfig, PluginName, Policy, PolicyProfile};
use crate::manifest::{Cut, Reader};
use crate::model::Str;

const FIELDS: [&str; 11] = [
    "apiVersion",
    "evictionFailureEventNotification",
    "gracePeriodSeconds",
    "kind",
    "maxNoOfPodsToEvictPerNamespace",
    "maxNoOfPodsToEvictPerNode",
    "maxNoOfPodsToEvictTotal",
    "metricsCollector",
    "metricsProviders",
    "nodeSelector",
    "profiles",
];

pub(super) fn read(r: &Reader<'_>, sources: &Sources<'_>) -> Policy {
    r.only_or(&FIELDS, hints::top_level);
    let kubernetes_metrics = metrics(r);
    Policy {
        node_selector: fields::query(r, "nodeSelector"),
        max_per_node: r.unsigned("maxNoOfPodsToEvictPerNode"),
        max_per_namespace: r.unsigned("maxNoOfPodsToEvictPerNamespace"),
        max_total: r.unsigned("maxNoOfPodsToEvictTotal"),
        grace_period_seconds: r.integer("gracePeriodSeconds"),
        eviction_failure_event_notification: r.flag("evictionFailureEventNotification").unwrap_or_default(),
        kubernetes_metrics,
        profiles: r.list("profiles", |p| Some(profile(p, kubernetes_metrics, sources))).unwrap_or_default(),
    }
}

/// Whether the metrics of nodes and pods are declared as a source.
fn metrics(r: &Reader<'_>) -> bool {
    let collector = r.object("metricsCollector").is_some_and(|collector| {
        collector.only_or(&["enabled"], |_| None);
        collector.flag("enabled").unwrap_or_default()
    });
    let mut seen: Vec<Str> = Vec::new();
    let mut kubernetes = false;
    r.list("metricsProviders", |provider| {
        provider.only_or(&["prometheus", "source"], |_| None);
        let source = provider.str("source");
        if seen.contains(&source) {
            provider.error_in(
                "source",
                format!(
                    "metric provider \"{}\" is already configured, each source can be configured only once",
                    Cut(&source)
                ),
            );
        }
        match &*source {
            "KubernetesMetrics" => {
                kubernetes = true;
                if collector {
                    provider.error_in(
                        "source",
                        "it is not allowed to combine metrics provider when metrics collector is enabled",
                    );
                }
            }
            "Prometheus" => prometheus(provider),
            other => provider.warn_in("source", format!("has no effect: \"{}\" is no source of metrics", Cut(other))),
        }
        seen.push(source);
        Some(())
    });
    collector || kubernetes
}

/// Validated as upstream does, so that a policy can be checked here; Berth itself never asks Prometheus.
fn prometheus(provider: &Reader<'_>) {
    let Some(prometheus) = provider.object("prometheus") else {
        if !provider.has("prometheus") {
            provider.error_in("prometheus", "prometheus configuration is required when prometheus source is enabled");
        }
        return;
    };
    prometheus.only_or(&["authToken", "url"], |_| None);
    let url = prometheus.non_empty("url", "prometheus URL is required when prometheus is enabled");
    if !url.is_empty()
        && let Some(problem) = url_problem(&url)
    {
        prometheus.error_in("url", format!("error parsing prometheus URL: {problem}"));
    }
    if let Some(token) = prometheus.object("authToken") {
        token.only_or(&["secretReference"], |_| None);
        match token.object("secretReference") {
            Some(secret) => {
                secret.only_or(&["name", "namespace"], |_| None);
                if secret.str("name").is_empty() || secret.str("namespace").is_empty() {
                    secret.error("prometheus authToken secret reference does not set both namespace and name");
                }
            }
            None if token.has("secretReference") => {}
            None => token.error_in(
                "secretReference",
                "prometheus authToken secret is expected to be set when authToken field is",
            ),
        }
    }
    provider.warn("has no effect: Berth asks nobody for metrics; stream NodeMetrics and PodMetrics to it");
}

/// What Go's parser stumbles over in practice: control characters, a broken escape, a colon before any scheme.
fn url_problem(url: &str) -> Option<&'static str> {
    let escapes = url.split('%').skip(1);
    if url.contains(|c: char| c.is_ascii_control()) {
        Some("invalid control character in URL")
    } else if url.starts_with(':') {
        Some("missing protocol scheme")
    } else if escapes.into_iter().any(|rest| !rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count().eq(&2)) {
        Some("invalid URL escape")
    } else {
        None
    }
}

fn profile(r: &Reader<'_>, kubernetes_metrics: bool, sources: &Sources<'_>) -> PolicyProfile {
    r.only_or(&["name", "pluginConfig", "plugins"], hints::in_profile);
    let name = r.own_str("name");
    let enabled = enabled::read(r);
    let mut evictor: Option<DefaultEvictorArgs> = None;
    let mut configs: Vec<PluginConfig> = Vec::new();
    r.list("pluginConfig", |entry| {
        let plugin = entry.required_str("name");
        entry.only_or(&["args", "name"], |key| hints::beside_args(&plugin, key));
        let args = entry.object_or_empty("args");
        let twice = || entry.warn_in("name", format!("has no effect: {plugin} is configured above already"));
        if &*plugin == EVICTOR {
            let read = evictor::read(&args, sources);
            if evictor.is_some() {
                twice();
            }
            evictor.get_or_insert(read);
            return Some(());
        }
        let Some(known) = PluginName::parse(&plugin) else {
            if !plugin.is_empty() {
                entry.error_in(
                    "name",
                    format!(
                        "in profile {}: plugin {} in pluginConfig not registered{}",
                        Cut(&name),
                        Cut(&plugin),
                        enabled::suggestion(&plugin)
                    ),
                );
            }
            return None;
        };
        let is_enabled = enabled.contains(known);
        if !is_enabled {
            let point = known.extension_point().as_str();
            entry.warn_in("name", format!("has no effect: plugins.{point}.enabled does not name {plugin}"));
        }
        let config = plugins::read(known, &args, Context { enabled: is_enabled, kubernetes_metrics });
        if configs.iter().any(|c| c.name() == known) {
            twice();
        } else {
            configs.push(config);
        }
        Some(())
    });
    let resolve = |names: &[PluginName]| {
        names.iter().filter_map(|name| configs.iter().find(|c| c.name() == *name).cloned()).collect()
    };
    PolicyProfile {
        deschedule: resolve(&enabled.deschedule),
        balance: resolve(&enabled.balance),
        name,
        evictor: evictor.unwrap_or_default(),
    }
}
