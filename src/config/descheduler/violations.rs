//! The args of the plugins that look for broken rules (spec 3.5, 9, 12 to 15).

use super::fields;
use crate::evict::policy::{
    NodeAffinityType, PodSelection, RemoveDuplicatesArgs, RemovePodsViolatingNoExecuteTaintsArgs,
    RemovePodsViolatingNodeAffinityArgs, RemovePodsViolatingNodeTaintsArgs,
    RemovePodsViolatingTopologySpreadConstraintArgs, TaintFilter, TaintPattern,
};
use crate::manifest::{Reader, unsupported};
use crate::model::Str;
use crate::model::topology_spread::WhenUnsatisfiable;

pub(super) fn duplicates(r: &Reader<'_>) -> RemoveDuplicatesArgs {
    RemoveDuplicatesArgs {
        namespaces: fields::namespaces(r, "namespaces"),
        exclude_owner_kinds: r.texts("excludeOwnerKinds"),
    }
}

pub(super) fn node_affinity(r: &Reader<'_>) -> RemovePodsViolatingNodeAffinityArgs {
    const TYPES: [(&str, NodeAffinityType); 2] = [
        ("preferredDuringSchedulingIgnoredDuringExecution", NodeAffinityType::Preferred),
        ("requiredDuringSchedulingIgnoredDuringExecution", NodeAffinityType::Required),
    ];
    let mut types = Vec::new();
    let listed = r.checked_texts("nodeAffinityType", |text, item| {
        match TYPES.iter().find(|(name, _)| *name == text) {
            Some((_, kind)) => types.push(*kind),
            // Upstream lets it pass, logs at run time and does nothing.
            None => item.error(unsupported(text, TYPES.map(|(name, _)| name))),
        }
    });
    if listed.is_none_or(|l| l.is_empty()) && r.value().get("nodeAffinityType").is_none_or(|v| !has_elements(v)) {
        r.error_in("nodeAffinityType", "nodeAffinityType needs to be set");
    }
    RemovePodsViolatingNodeAffinityArgs { pods: fields::selection(r), types }
}

/// Whether something is there that has been reported already.
fn has_elements(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Array(items) => !items.is_empty(),
        other => !other.is_null(),
    }
}

pub(super) fn node_taints(r: &Reader<'_>) -> RemovePodsViolatingNodeTaintsArgs {
    RemovePodsViolatingNodeTaintsArgs {
        pods: fields::selection(r),
        include_prefer_no_schedule: r.flag("includePreferNoSchedule").unwrap_or_default(),
        taints: taints(r),
    }
}

pub(super) fn no_execute_taints(r: &Reader<'_>) -> RemovePodsViolatingNoExecuteTaintsArgs {
    RemovePodsViolatingNoExecuteTaintsArgs { pods: fields::selection(r), taints: taints(r) }
}

fn taints(r: &Reader<'_>) -> TaintFilter {
    let (included, excluded) = (patterns(r, "includedTaints"), patterns(r, "excludedTaints").unwrap_or_default());
    if included.as_ref().is_some_and(|i| !i.is_empty()) && !excluded.is_empty() {
        r.error_in("includedTaints", "either includedTaints or excludedTaints can be set, but not both");
    }
    if included.as_ref().is_some_and(Vec::is_empty) {
        r.warn_in("includedTaints", "an empty list considers no taint at all; leave it out to consider all");
    }
    TaintFilter { included, excluded }
}

/// None: the list is absent, which is not the same as empty.
fn patterns(r: &Reader<'_>, field: &str) -> Option<Vec<TaintPattern>> {
    let texts = r.checked_texts(field, |text, item| {
        if let Some(key) = text.strip_suffix('=') {
            item.warn(format!("matches no taint: a taint with an empty value matches by its key only; write {key}"));
        }
    })?;
    let pattern = |text: &Str| match text.split_once('=') {
        Some((key, value)) => TaintPattern { key: key.into(), value: Some(value.into()) },
        None => TaintPattern { key: text.clone(), value: None },
    };
    Some(texts.iter().map(pattern).collect())
}

pub(super) fn topology_spread(r: &Reader<'_>) -> RemovePodsViolatingTopologySpreadConstraintArgs {
    const KINDS: [(&str, WhenUnsatisfiable); 2] =
        [("DoNotSchedule", WhenUnsatisfiable::DoNotSchedule), ("ScheduleAnyway", WhenUnsatisfiable::ScheduleAnyway)];
    let mut constraints = Vec::new();
    r.checked_texts("constraints", |text, item| match KINDS.iter().find(|(name, _)| *name == text) {
        Some((_, kind)) => constraints.push(*kind),
        None => item.error(unsupported(text, KINDS.map(|(name, _)| name))),
    });
    spread(fields::selection(r), constraints, r.flag("topologyBalanceNodeFit"))
}

/// An empty list of constraints is the default one.
pub(super) fn spread(
    pods: PodSelection,
    constraints: Vec<WhenUnsatisfiable>,
    node_fit: Option<bool>,
) -> RemovePodsViolatingTopologySpreadConstraintArgs {
    let default = RemovePodsViolatingTopologySpreadConstraintArgs::default();
    RemovePodsViolatingTopologySpreadConstraintArgs {
        pods,
        constraints: if constraints.is_empty() { default.constraints } else { constraints },
        topology_balance_node_fit: node_fit.unwrap_or(default.topology_balance_node_fit),
    }
}
