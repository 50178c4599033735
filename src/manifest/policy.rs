//! PodDisruptionBudgets, PriorityClasses and RuntimeClasses.

use super::Options;
use super::error::{invalid, invalid_number};
use super::meta::meta;
use super::pod::PREEMPTION_POLICIES;
use super::reader::{Reader, str_of, whole};
use super::resources::{Rule, resource_list};
use super::selectors::selector;
use crate::model::pdb::IntOrPercent;
use crate::model::{Kind, LabelSelector, PodDisruptionBudget, PriorityClass, RuntimeClass};

pub(super) fn pod_disruption_budget(object: &Reader<'_>, api_version: &str, options: Options) -> PodDisruptionBudget {
    let mut pdb = PodDisruptionBudget { meta: meta(object, Kind::PodDisruptionBudget, options), ..Default::default() };
    if let Some(r) = object.object("spec") {
        pdb.selector = selector(&r, "selector");
        // In v1beta1 an empty selector matches no pod, in v1 every pod.
        if pdb.selector.is_everything() && api_version == "policy/v1beta1" {
            pdb.selector = LabelSelector::Nothing;
        }
        pdb.min_available = int_or_percent(&r, "minAvailable");
        pdb.max_unavailable = int_or_percent(&r, "maxUnavailable");
        if r.has("minAvailable") && r.has("maxUnavailable") {
            r.error_in("maxUnavailable", "Forbidden: minAvailable and maxUnavailable cannot be both set");
        }
        let policy = r.choice("unhealthyPodEvictionPolicy", &[("AlwaysAllow", true), ("IfHealthyBudget", false)]);
        pdb.always_allow_unhealthy = policy == Some(true);
    }
    if let Some(r) = object.object("status") {
        pdb.disruptions_allowed = r.int32("disruptionsAllowed").unwrap_or(0);
        pdb.current_healthy = r.int32("currentHealthy").unwrap_or(0);
        pdb.desired_healthy = r.int32("desiredHealthy").unwrap_or(0);
        pdb.expected_pods = r.int32("expectedPods").unwrap_or(0);
        // A JSON map is sorted by key already.
        r.entries("disruptedPods", |name, _| pdb.disrupted_pods.push(str_of(name)));
    }
    pdb
}

fn int_or_percent(parent: &Reader<'_>, field: &str) -> Option<IntOrPercent> {
    let r = parent.any(field)?;
    if let Some(text) = r.value().as_str() {
        let digits = text.strip_suffix('%').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        let percent = digits.and_then(|d| d.parse::<i32>().ok());
        match percent {
            None => r.error(invalid(
                text,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                 regex used for validation is '[0-9]+%')",
            )),
            Some(p) if p > 100 => r.error(invalid(text, "must not be greater than 100%")),
            Some(p) => return Some(IntOrPercent::Percent(p)),
        }
        return None;
    }
    let Some(number) = whole(r.value()).and_then(|n| i32::try_from(n).ok()) else {
        r.error("must be an integer or a percentage such as \"50%\"");
        return None;
    };
    if number < 0 {
        r.error(invalid_number(number, "must be greater than or equal to 0"));
    }
    Some(IntOrPercent::Int(number))
}

pub(super) fn priority_class(object: &Reader<'_>, options: Options) -> PriorityClass {
    PriorityClass {
        meta: meta(object, Kind::PriorityClass, options),
        value: object.int32("value").unwrap_or(0),
        global_default: object.flag("globalDefault").unwrap_or(false),
        preemption_policy: object.choice("preemptionPolicy", &PREEMPTION_POLICIES).unwrap_or_default(),
    }
}

pub(super) fn runtime_class(object: &Reader<'_>, options: Options) -> RuntimeClass {
    let meta = meta(object, Kind::RuntimeClass, options);
    let overhead = object.object("overhead").and_then(|r| resource_list(&r, "podFixed", Rule::Asked));
    RuntimeClass { meta, overhead: overhead.unwrap_or_default() }
}
