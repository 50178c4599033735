//! The args of DefaultEvictor (spec 3.5, 5.1).

use super::hints;
use super::plugins::{EVICTOR, EVICTOR_FIELDS, only_args};
use super::{Sources, durations, fields};
use crate::evict::policy::{DefaultEvictorArgs, NoEvictionPolicy, PodProtection};
use crate::manifest::{Reader, duplicate, invalid, invalid_number, unsupported};
use crate::model::Str;
use crate::model::priority_class::built_in_value;

/// The older way to switch protections: what each of them drops or adds.
const BOOLEANS: [(&str, PodProtection); 6] = [
    ("evictLocalStoragePods", PodProtection::PodsWithLocalStorage),
    ("evictDaemonSetPods", PodProtection::DaemonSetPods),
    ("evictSystemCriticalPods", PodProtection::SystemCriticalPods),
    ("evictFailedBarePods", PodProtection::FailedBarePods),
    ("ignorePvcPods", PodProtection::PodsWithPVC),
    ("ignorePodsWithoutPDB", PodProtection::PodsWithoutPDB),
];

pub(super) fn read(r: &Reader<'_>, sources: &Sources<'_>) -> DefaultEvictorArgs {
    only_args(r, EVICTOR_FIELDS, |key| hints::in_args(EVICTOR, key));
    let min_replicas = r.unsigned("minReplicas").unwrap_or_default();
    if min_replicas == 1 {
        r.warn_in("minReplicas", "has no effect: it is looked at only above 1");
    }
    let (protections, protected_storage_classes) = protections(r);
    let default = DefaultEvictorArgs::DEFAULT_PRIORITY_THRESHOLD;
    let threshold = r.object("priorityThreshold").map_or(default, |threshold| {
        threshold.only_or(&["name", "value"], |_| None);
        priority_threshold(&threshold, ["value", "name"], sources)
    });
    if r.has("priorityThreshold") && !protections.contains(&PodProtection::SystemCriticalPods) {
        r.warn_in("priorityThreshold", "has no effect: it belongs to the protection SystemCriticalPods, which is off");
    }
    let policies = [("Mandatory", NoEvictionPolicy::Mandatory), ("Preferred", NoEvictionPolicy::Preferred)];
    DefaultEvictorArgs {
        node_selector: fields::query(r, "nodeSelector"),
        node_fit: r.flag("nodeFit").unwrap_or_default(),
        min_replicas,
        min_pod_age_micros: min_pod_age(r),
        // An empty selector is ignored (spec 5.2).
        label_selector: fields::selector(r, "labelSelector").filter(|s| !s.is_everything()),
        namespace_label_selector: fields::selector(r, "namespaceLabelSelector").filter(|s| !s.is_everything()),
        priority_threshold: threshold,
        no_eviction_policy: r.choice("noEvictionPolicy", &policies).unwrap_or_default(),
        protections,
        protected_storage_classes,
    }
}

fn min_pod_age(r: &Reader<'_>) -> Option<i64> {
    let text = r.text("minPodAge")?;
    let age = durations::parse_micros(text);
    if age.is_none() {
        r.error_in("minPodAge", invalid(text, "must be a duration such as \"24h\" or \"1h30m\""));
    }
    age
}

/// The threshold from a number or the name of a priority class, at the fields `[value, name]`.
pub(super) fn priority_threshold(r: &Reader<'_>, [value_field, name_field]: [&str; 2], sources: &Sources<'_>) -> i32 {
    const DEFAULT: i32 = DefaultEvictorArgs::DEFAULT_PRIORITY_THRESHOLD;
    let (value, name) = (r.int32(value_field), r.text(name_field).filter(|n| !n.is_empty()));
    let (field, value) = match (value, name) {
        (None, None) => return DEFAULT,
        (Some(value), Some(name)) => {
            r.error(format!(
                "priority threshold misconfigured, only one of priorityThreshold fields can be set: {value_field} is \
                 {value}, {name_field} is \"{name}\""
            ));
            return DEFAULT;
        }
        (Some(value), None) => (value_field, value),
        (None, Some(name)) => {
            let known = sources.classes.priority(name).map(|(value, _)| value).or_else(|| built_in_value(name));
            let Some(value) = known else {
                r.error_in(name_field, invalid(name, "no PriorityClass of this name is known"));
                return DEFAULT;
            };
            (name_field, value)
        }
    };
    if value > DEFAULT {
        r.error_in(field, invalid_number(value, format!("priority threshold can't be greater than {DEFAULT}")));
    }
    value
}

/// What is protected in the end, and the storage classes that protect.
fn protections(r: &Reader<'_>) -> (Vec<PodProtection>, Vec<Str>) {
    let switched: Vec<_> = BOOLEANS.iter().filter(|(field, _)| r.flag(field) == Some(true)).collect();
    let new = r.object_or_empty("podProtections");
    new.only_or(&["config", "defaultDisabled", "extraEnabled"], |_| None);
    let disabled = names(&new, "defaultDisabled", &PodProtection::DEFAULT);
    let enabled = names(&new, "extraEnabled", &PodProtection::EXTRA);
    let uses_lists = [&disabled, &enabled].iter().any(|list| list.is_given);
    if uses_lists {
        for (field, protection) in &switched {
            r.error_in(
                field,
                format!("can't be used together with podProtections; name {} there", protection.as_str()),
            );
        }
    } else {
        for (field, protection) in &switched {
            let list = if PodProtection::DEFAULT.contains(protection) { "defaultDisabled" } else { "extraEnabled" };
            r.warn_in(field, format!("deprecated; write podProtections.{list}: [{}]", protection.as_str()));
        }
    }
    let claims_on = enabled.names.contains(&PodProtection::PodsWithPVC);
    let classes = storage_classes(&new, claims_on);
    let off_or_on = |lists: &[PodProtection], protection: &PodProtection| {
        if uses_lists { lists.contains(protection) } else { switched.iter().any(|(_, p)| p == protection) }
    };
    let kept = PodProtection::DEFAULT.into_iter().filter(|p| !off_or_on(&disabled.names, p));
    let added: Vec<PodProtection> = if uses_lists {
        enabled.names.clone()
    } else {
        PodProtection::EXTRA.into_iter().filter(|p| off_or_on(&[], p)).collect()
    };
    (kept.chain(added).collect(), classes)
}

struct Listed {
    names: Vec<PodProtection>,
    /// Whether the list has any element, be it wrong.
    is_given: bool,
}

fn names(r: &Reader<'_>, field: &str, known: &[PodProtection]) -> Listed {
    let mut names = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let listed = r.checked_texts(field, |text, item| {
        if texts.iter().any(|t| t == text) {
            item.error(duplicate(text));
            return;
        }
        texts.push(text.to_owned());
        match known.iter().find(|p| p.as_str() == text) {
            Some(protection) => names.push(*protection),
            None => {
                let mut supported: Vec<&str> = known.iter().map(|p| p.as_str()).collect();
                supported.sort_unstable();
                item.error(unsupported(text, supported));
            }
        }
    });
    Listed { names, is_given: listed.is_some_and(|l| !l.is_empty()) }
}

/// `config.PodsWithPVC.protectedStorageClasses`, which counts only if that protection is switched on by its name.
fn storage_classes(r: &Reader<'_>, claims_on: bool) -> Vec<Str> {
    let Some(config) = r.object("config") else { return Vec::new() };
    config.only_or(&["PodsWithPVC"], |_| None);
    let Some(claims) = config.object("PodsWithPVC") else { return Vec::new() };
    claims.only_or(&["protectedStorageClasses"], |_| None);
    let classes = claims.list("protectedStorageClasses", |class| {
        class.only_or(&["name"], |_| None);
        let name = if claims_on { class.required_str("name") } else { class.str("name") };
        Some(name).filter(|n| !n.is_empty())
    });
    if !claims_on {
        claims.warn("has no effect: extraEnabled does not name PodsWithPVC");
        return Vec::new();
    }
    classes.unwrap_or_default()
}
