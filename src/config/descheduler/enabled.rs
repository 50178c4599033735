//! `plugins` of a profile: what is enabled, at which extension point (spec 3.4.6).

use serde_json::Value;

use super::plugins::EVICTOR;
use crate::evict::policy::{ExtensionPoint, PluginName};
use crate::manifest::{Cut, Reader, closest, expected};

const POINTS: [&str; 6] = ["balance", "deschedule", "filter", "preevictionfilter", "presort", "sort"];

/// The plugins that are enabled, in order; one that stands there twice runs twice.
#[derive(Default)]
pub(super) struct Enabled {
    pub(super) deschedule: Vec<PluginName>,
    pub(super) balance: Vec<PluginName>,
}

impl Enabled {
    pub(super) fn contains(&self, plugin: PluginName) -> bool {
        self.deschedule.contains(&plugin) || self.balance.contains(&plugin)
    }
}

pub(super) fn read(profile: &Reader<'_>) -> Enabled {
    let name = profile.value().get("name").and_then(Value::as_str).unwrap_or_default();
    let configured: Vec<&str> = profile
        .value()
        .get("pluginConfig")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get("name").and_then(Value::as_str))
        .collect();
    let Some(plugins) = profile.object("plugins") else { return Enabled::default() };
    plugins.only_or(&POINTS, |key| {
        let lower = key.to_ascii_lowercase();
        if PluginName::parse(key).is_some() || key == EVICTOR {
            return Some(
                "plugins are named in a list: plugins.deschedule.enabled or plugins.balance.enabled".to_owned(),
            );
        }
        POINTS.contains(&lower.as_str()).then(|| format!("it is spelt {lower}"))
    });
    let point = |point: ExtensionPoint| {
        let mut found = Vec::new();
        names(&plugins, point.as_str(), |plugin, item| match PluginName::parse(plugin) {
            Some(known) if known.extension_point() == point => {
                if !configured.contains(&plugin) {
                    item.error(format!(
                        "unable to find \"{plugin}\" plugin config; it needs an entry in pluginConfig of this profile, if \
                         only - name: {plugin}"
                    ));
                }
                found.push(known);
            }
            _ => item.error(not_at(name, point.as_str(), plugin)),
        });
        found
    };
    for point in ["filter", "preevictionfilter"] {
        names(&plugins, point, |plugin, item| {
            if plugin != EVICTOR {
                item.error(not_at(name, point, plugin));
            }
        });
    }
    for point in ["presort", "sort"] {
        names(&plugins, point, |_, item| item.warn("has no effect: the descheduler never runs plugins at this point"));
    }
    Enabled { deschedule: point(ExtensionPoint::Deschedule), balance: point(ExtensionPoint::Balance) }
}

fn not_at(profile: &str, point: &str, plugin: &str) -> String {
    let text = format!(
        "profile \"{}\" configures {point} extension point of non-existing plugins: {}",
        Cut(profile),
        Cut(plugin)
    );
    if plugin == EVICTOR {
        return format!("{text}; {EVICTOR} filters, and is always on");
    }
    if let Some(known) = PluginName::parse(plugin) {
        return format!("{text}; it belongs in plugins.{}.enabled", known.extension_point().as_str());
    }
    format!("{text}{}", suggestion(plugin))
}

/// What an unknown plugin may have been meant to be.
pub(super) fn suggestion(plugin: &str) -> String {
    if plugin == "Example" {
        return "; upstream has it as documentation, no descheduler runs it".to_owned();
    }
    let known = || PluginName::ALL.iter().map(|p| p.as_str());
    // Short names of prose, such as InterPodAntiAffinity or NodeTaints.
    let within = || known().find(|name| plugin.len() >= 6 && (name.contains(plugin) || plugin.contains(name)));
    let meant = closest(plugin, known().chain([EVICTOR])).or_else(within);
    meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// Visits the names in `enabled` of a point.
fn names(plugins: &Reader<'_>, point: &str, mut visit: impl FnMut(&str, &Reader<'_>)) {
    if plugins.value().get(point).is_some_and(Value::is_array) {
        plugins.error_in(point, format!("expected an object, found a list; write {point}: {{enabled: [...]}}"));
        return;
    }
    let Some(set) = plugins.object(point) else { return };
    set.only_or(&["disabled", "enabled"], |_| None);
    if set.value().get("disabled").and_then(Value::as_array).is_some_and(|d| !d.is_empty()) {
        set.warn_in("disabled", "has no effect: the descheduler ignores it");
    }
    set.items("enabled", |item| match item.value() {
        Value::String(name) => visit(name, item),
        Value::Object(entry) => {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or("NAME");
            item.error(format!("expected a string, found an object; write - {}", Cut(name)));
        }
        other => item.error(expected("a string", other)),
    });
}
