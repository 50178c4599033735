//! `descheduler/v1alpha1`: the `strategies` map of the older versions (spec 4), as its last readers translated it.
//!
//! Each enabled strategy becomes a profile of its own, since priority threshold and node fit were the strategy's. The
//! order of the map never meant anything (Go shuffles it); here it is that of v0.10, later strategies after it as they came.

use super::enabled::suggestion;
use super::{Sources, evictor, fields, lifetime, utilization, violations};
use crate::evict::policy::{
    DefaultEvictorArgs, ExtensionPoint, HighNodeUtilizationArgs, LowNodeUtilizationArgs, PluginConfig, PluginName,
    PodLifeTimeArgs, PodProtection, Policy, PolicyProfile, RemoveDuplicatesArgs, RemovePodsHavingTooManyRestartsArgs,
    RemovePodsViolatingInterPodAntiAffinityArgs,
};
use crate::manifest::{Cut, Reader};
use crate::model::topology_spread::WhenUnsatisfiable;

const FIELDS: [&str; 10] = [
    "apiVersion",
    "evictFailedBarePods",
    "evictLocalStoragePods",
    "evictSystemCriticalPods",
    "ignorePvcPods",
    "kind",
    "maxNoOfPodsToEvictPerNamespace",
    "maxNoOfPodsToEvictPerNode",
    "nodeSelector",
    "strategies",
];

/// In the order in which they run.
const STRATEGIES: [PluginName; 10] = [
    PluginName::RemoveDuplicates,
    PluginName::LowNodeUtilization,
    PluginName::RemovePodsViolatingInterPodAntiAffinity,
    PluginName::RemovePodsViolatingNodeAffinity,
    PluginName::RemovePodsViolatingNodeTaints,
    PluginName::RemovePodsHavingTooManyRestarts,
    PluginName::PodLifeTime,
    PluginName::RemovePodsViolatingTopologySpreadConstraint,
    PluginName::HighNodeUtilization,
    PluginName::RemoveFailedPods,
];

/// Params that every strategy takes.
const COMMON: [&str; 5] = ["labelSelector", "namespaces", "nodeFit", "thresholdPriority", "thresholdPriorityClassName"];
const PARAMS: [&str; 15] = [
    "excludedTaints",
    "failedPods",
    "includePreferNoSchedule",
    "includeSoftConstraints",
    "includedTaints",
    "labelSelector",
    "namespaces",
    "nodeAffinityType",
    "nodeFit",
    "nodeResourceUtilizationThresholds",
    "podLifeTime",
    "podsHavingTooManyRestarts",
    "removeDuplicates",
    "thresholdPriority",
    "thresholdPriorityClassName",
];

fn own_params(strategy: PluginName) -> &'static [&'static str] {
    match strategy {
        PluginName::RemoveDuplicates => &["removeDuplicates"],
        PluginName::LowNodeUtilization | PluginName::HighNodeUtilization => &["nodeResourceUtilizationThresholds"],
        PluginName::RemovePodsViolatingNodeAffinity => &["nodeAffinityType"],
        PluginName::RemovePodsViolatingNodeTaints => &["excludedTaints", "includePreferNoSchedule", "includedTaints"],
        PluginName::RemovePodsHavingTooManyRestarts => &["podsHavingTooManyRestarts"],
        PluginName::PodLifeTime => &["podLifeTime"],
        PluginName::RemovePodsViolatingTopologySpreadConstraint => &["includeSoftConstraints"],
        PluginName::RemoveFailedPods => &["failedPods"],
        PluginName::RemovePodsViolatingInterPodAntiAffinity | PluginName::RemovePodsViolatingNoExecuteTaints => &[],
    }
}

pub(super) fn read(r: &Reader<'_>, sources: &Sources<'_>) -> Policy {
    r.only_or(&FIELDS, |key| match key {
        "profiles" => Some("profiles are descheduler/v1alpha2; v1alpha1 has strategies".to_owned()),
        "maxNoOfPodsToEvictTotal"
        | "gracePeriodSeconds"
        | "metricsCollector"
        | "metricsProviders"
        | "evictionFailureEventNotification" => Some("it needs apiVersion descheduler/v1alpha2".to_owned()),
        _ if PluginName::parse(key).is_some() => Some(format!("it belongs in strategies: strategies.{key}")),
        _ => None,
    });
    let limit = |field: &str| {
        let limit = r.unsigned(field);
        if limit == Some(0) {
            r.warn_in(field, "0 evicts nothing; before v0.23 it meant no limit, for which the field is left out now");
        }
        limit
    };
    let booleans = [
        ("evictLocalStoragePods", PodProtection::PodsWithLocalStorage),
        ("evictSystemCriticalPods", PodProtection::SystemCriticalPods),
        ("evictFailedBarePods", PodProtection::FailedBarePods),
    ];
    let off: Vec<PodProtection> =
        booleans.iter().filter(|(field, _)| r.flag(field) == Some(true)).map(|(_, p)| *p).collect();
    let claims = (r.flag("ignorePvcPods") == Some(true)).then_some(PodProtection::PodsWithPVC);
    let protections = PodProtection::DEFAULT.into_iter().filter(|p| !off.contains(p)).chain(claims).collect();
    let base = DefaultEvictorArgs { protections, ..DefaultEvictorArgs::default() };
    Policy {
        node_selector: fields::query(r, "nodeSelector"),
        max_per_node: limit("maxNoOfPodsToEvictPerNode"),
        max_per_namespace: limit("maxNoOfPodsToEvictPerNamespace"),
        profiles: strategies(r, &base, sources),
        ..Policy::default()
    }
}

fn strategies(r: &Reader<'_>, base: &DefaultEvictorArgs, sources: &Sources<'_>) -> Vec<PolicyProfile> {
    let Some(map) = r.object("strategies") else { return Vec::new() };
    for name in map.map().into_iter().flat_map(serde_json::Map::keys) {
        let Some(known) = PluginName::parse(name) else {
            map.error_in(&Cut(name).to_string(), format!("unknown strategy{}", suggestion(name)));
            continue;
        };
        if !STRATEGIES.contains(&known) {
            map.error_in(name, "this strategy is Berth's own; it needs apiVersion descheduler/v1alpha2");
        }
    }
    let read = |name: &PluginName| {
        let strategy = map.object(name.as_str())?;
        strategy.only_or(&["enabled", "params", "weight"], |key| {
            let is_param = COMMON.contains(&key) || PARAMS.contains(&key);
            is_param.then(|| format!("it belongs in params: params.{key}"))
        });
        strategy.integer("weight");
        // What is switched off is not looked at, as upstream.
        strategy.flag("enabled").unwrap_or_default().then(|| profile(*name, &strategy, base, sources))
    };
    STRATEGIES.iter().filter_map(read).collect()
}

fn profile(name: PluginName, strategy: &Reader<'_>, base: &DefaultEvictorArgs, sources: &Sources<'_>) -> PolicyProfile {
    let params = strategy.object_or_empty("params");
    params.only_or(&PARAMS, misplaced);
    for field in params.map().into_iter().flat_map(serde_json::Map::keys) {
        let field = field.as_str();
        if PARAMS.contains(&field) && !COMMON.contains(&field) && !own_params(name).contains(&field) {
            params.warn_in(field, format!("has no effect: {} does not use it", name.as_str()));
        }
    }
    let fields = ["thresholdPriority", "thresholdPriorityClassName"];
    if !base.protections.contains(&PodProtection::SystemCriticalPods)
        && let Some(field) = fields.iter().find(|field| params.has(field))
    {
        params.warn_in(field, "has no effect with evictSystemCriticalPods");
    }
    let node_fit = params.flag("nodeFit").unwrap_or_default();
    if node_fit && name == PluginName::PodLifeTime {
        params.warn_in("nodeFit", "has no effect: PodLifeTime never used it in v1alpha1");
    }
    let evictor = DefaultEvictorArgs {
        node_fit: node_fit && name != PluginName::PodLifeTime,
        priority_threshold: evictor::priority_threshold(&params, fields, sources),
        ..base.clone()
    };
    let plugin = plugin(name, &params);
    let (deschedule, balance) = match name.extension_point() {
        ExtensionPoint::Deschedule => (vec![plugin], Vec::new()),
        ExtensionPoint::Balance => (Vec::new(), vec![plugin]),
    };
    PolicyProfile { name: format!("strategy-{}-profile", name.as_str()).into(), evictor, deschedule, balance }
}

/// Fields of the groups in `params`, some of which stood there directly in the first releases.
fn misplaced(key: &str) -> Option<String> {
    let group = match key {
        "thresholds" | "targetThresholds" | "numberOfNodes" | "useDeviationThresholds" => {
            "nodeResourceUtilizationThresholds"
        }
        "maxPodLifeTimeSeconds" | "states" | "podStatusPhases" => "podLifeTime",
        "podRestartThreshold" => "podsHavingTooManyRestarts",
        "excludeOwnerKinds" => "removeDuplicates or failedPods",
        "minPodLifetimeSeconds" | "reasons" => "failedPods",
        "includingInitContainers" => "podsHavingTooManyRestarts or failedPods",
        "priorityThreshold" => return Some("v1alpha1 has thresholdPriority and thresholdPriorityClassName".to_owned()),
        _ => return None,
    };
    Some(format!("it belongs in {group}"))
}

fn plugin(name: PluginName, params: &Reader<'_>) -> PluginConfig {
    let group = |field: &'static str, known: &[&str]| {
        let group = params.object_or_empty(field);
        group.only_or(known, |key| PARAMS.contains(&key).then(|| format!("it belongs one level higher: params.{key}")));
        group
    };
    match name {
        PluginName::RemoveDuplicates => PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs {
            namespaces: fields::namespaces(params, "namespaces"),
            exclude_owner_kinds: group("removeDuplicates", &["excludeOwnerKinds"]).texts("excludeOwnerKinds"),
        }),
        PluginName::LowNodeUtilization => {
            let args = utilization::low_thresholds(&group("nodeResourceUtilizationThresholds", &THRESHOLDS));
            let excluded_namespaces = fields::excluded_namespaces(params, "namespaces");
            PluginConfig::LowNodeUtilization(LowNodeUtilizationArgs { excluded_namespaces, ..args })
        }
        PluginName::HighNodeUtilization => {
            let args = utilization::high_thresholds(&group("nodeResourceUtilizationThresholds", &THRESHOLDS));
            let excluded_namespaces = fields::excluded_namespaces(params, "namespaces");
            PluginConfig::HighNodeUtilization(HighNodeUtilizationArgs { excluded_namespaces, ..args })
        }
        PluginName::RemovePodsViolatingInterPodAntiAffinity => {
            PluginConfig::RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinityArgs {
                pods: fields::selection(params),
            })
        }
        PluginName::RemovePodsViolatingNodeAffinity => {
            PluginConfig::RemovePodsViolatingNodeAffinity(violations::node_affinity(params))
        }
        PluginName::RemovePodsViolatingNodeTaints => {
            PluginConfig::RemovePodsViolatingNodeTaints(violations::node_taints(params))
        }
        PluginName::RemovePodsViolatingNoExecuteTaints => {
            PluginConfig::RemovePodsViolatingNoExecuteTaints(violations::no_execute_taints(params))
        }
        PluginName::RemovePodsViolatingTopologySpreadConstraint => {
            let mut constraints = vec![WhenUnsatisfiable::DoNotSchedule];
            if params.flag("includeSoftConstraints") == Some(true) {
                constraints.push(WhenUnsatisfiable::ScheduleAnyway);
            }
            PluginConfig::RemovePodsViolatingTopologySpreadConstraint(violations::spread(
                fields::selection(params),
                constraints,
                None,
            ))
        }
        PluginName::RemovePodsHavingTooManyRestarts => {
            let known = ["includingInitContainers", "podRestartThreshold"];
            let args = lifetime::restart_threshold(&group("podsHavingTooManyRestarts", &known));
            PluginConfig::RemovePodsHavingTooManyRestarts(RemovePodsHavingTooManyRestartsArgs {
                pods: fields::selection(params),
                ..args
            })
        }
        PluginName::PodLifeTime => {
            let group = group("podLifeTime", &["maxPodLifeTimeSeconds", "podStatusPhases", "states"]);
            let max_seconds = group.unsigned("maxPodLifeTimeSeconds");
            if !group.has("maxPodLifeTimeSeconds") {
                group.required("maxPodLifeTimeSeconds");
            }
            let mut states = lifetime::states(&group, "podStatusPhases");
            states.extend(lifetime::states(&group, "states"));
            PluginConfig::PodLifeTime(PodLifeTimeArgs {
                pods: fields::selection(params),
                max_seconds,
                states,
                ..PodLifeTimeArgs::default()
            })
        }
        PluginName::RemoveFailedPods => {
            let known =
                ["excludeOwnerKinds", "exitCodes", "includingInitContainers", "minPodLifetimeSeconds", "reasons"];
            let pods = fields::selection(params);
            PluginConfig::RemoveFailedPods(lifetime::failed_pods(&group("failedPods", &known), pods))
        }
    }
}

const THRESHOLDS: [&str; 4] = ["numberOfNodes", "targetThresholds", "thresholds", "useDeviationThresholds"];
