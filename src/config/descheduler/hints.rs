//! Where a field that stands in the wrong place belongs: the slips that cost users settings (spec 3.3).

use super::plugins::{EVICTOR, EVICTOR_FIELDS, fields_of};
use crate::evict::policy::PluginName;

/// v1alpha1's booleans, and what v1alpha2 would say.
const OLD_BOOLEANS: &[(&str, &str)] = &[
    ("evictDaemonSetPods", "podProtections.defaultDisabled: [DaemonSetPods]"),
    ("evictFailedBarePods", "podProtections.defaultDisabled: [FailedBarePods]"),
    ("evictLocalStoragePods", "podProtections.defaultDisabled: [PodsWithLocalStorage]"),
    ("evictSystemCriticalPods", "podProtections.defaultDisabled: [SystemCriticalPods]"),
    ("ignorePodsWithoutPDB", "podProtections.extraEnabled: [PodsWithoutPDB]"),
    ("ignorePvcPods", "podProtections.extraEnabled: [PodsWithPVC]"),
];

fn in_evictor(key: &str) -> Option<String> {
    let better = OLD_BOOLEANS.iter().find(|(old, _)| *old == key).map(|(_, new)| format!(", as {new}"));
    EVICTOR_FIELDS.contains(&key).then(|| {
        format!(
            "it belongs in the args of {EVICTOR}: profiles[].pluginConfig[name={EVICTOR}].args.{key}{}",
            better.unwrap_or_default()
        )
    })
}

/// A field at the top of a v1alpha2 policy.
pub(super) fn top_level(key: &str) -> Option<String> {
    match key {
        "strategies" => Some("strategies are descheduler/v1alpha1; v1alpha2 has profiles".to_owned()),
        "pluginConfig" | "plugins" => Some(format!("it belongs in a profile: profiles[].{key}")),
        "deschedule" | "balance" => Some(format!("it belongs in a profile: profiles[].plugins.{key}")),
        _ => in_evictor(key),
    }
}

/// A field beside `name`, `pluginConfig` and `plugins`.
pub(super) fn in_profile(key: &str) -> Option<String> {
    match key {
        "deschedule" | "balance" | "filter" | "preevictionfilter" => Some(format!("it belongs in plugins.{key}")),
        "args" => Some("it belongs beside the name of a plugin: pluginConfig[].args".to_owned()),
        "maxNoOfPodsToEvictPerNode"
        | "maxNoOfPodsToEvictPerNamespace"
        | "maxNoOfPodsToEvictTotal"
        | "gracePeriodSeconds" => Some("it belongs at the top of the policy, for all profiles together".to_owned()),
        _ => in_evictor(key),
    }
}

/// A field beside `name` and `args` of the named plugin.
pub(super) fn beside_args(plugin: &str, key: &str) -> Option<String> {
    match key {
        "pluginConfig" => {
            Some("it belongs one level higher: each plugin is an entry of profiles[].pluginConfig".to_owned())
        }
        "plugins" => Some("it belongs one level higher: profiles[].plugins".to_owned()),
        "params" => Some("params are descheduler/v1alpha1; v1alpha2 has args".to_owned()),
        "enabled" => {
            Some("a plugin is enabled by its name in plugins.deschedule.enabled or plugins.balance.enabled".to_owned())
        }
        _ if own_fields(plugin).contains(&key) => Some(format!("it belongs in args: args.{key}")),
        _ => in_evictor(key),
    }
}

/// A field in the args of a plugin that is not one of its own.
pub(super) fn in_args(plugin: &str, key: &str) -> Option<String> {
    match key {
        "nodeResourceUtilizationThresholds" => {
            Some("that is descheduler/v1alpha1; in v1alpha2 its fields stand in args directly".to_owned())
        }
        "thresholdPriority" => in_evictor("priorityThreshold").map(|hint| format!("{hint}.value")),
        "thresholdPriorityClassName" => in_evictor("priorityThreshold").map(|hint| format!("{hint}.name")),
        "args" => Some("its fields stand in args directly".to_owned()),
        "namespaces" if own_fields(plugin).contains(&"evictableNamespaces") => {
            Some("did you mean evictableNamespaces?".to_owned())
        }
        _ if plugin != EVICTOR => in_evictor(key),
        _ => None,
    }
}

fn own_fields(plugin: &str) -> &'static [&'static str] {
    if plugin == EVICTOR { EVICTOR_FIELDS } else { PluginName::parse(plugin).map(fields_of).unwrap_or_default() }
}
