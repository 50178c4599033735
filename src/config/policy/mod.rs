//! Policy files (spec section 8.7): what kube-scheduler was configured with up to 1.22, made a profile of today's plugins.
//!
//! `predicates.rs` and `priorities.rs` hold the names and what became of them, `fields.rs` how the old decoder read: keys
//! without regard to case. [`super::from_value`] is the only caller. Promises: every mistake of a file at once, each with its path;
//! a name that has a plugin today uses today's rule; filters run in the order of section 8.1 or of the file's `order`.

mod arguments;
mod extenders;
mod fields;
mod predicates;
mod priorities;

use std::cell::RefCell;

use serde_json::{Map, Value};

use self::fields::Fields;
use super::SchedulerConfig;
use crate::engine::Profile;
use crate::engine::plugins::SchedulingGates;
use crate::engine::profile::{DEFAULT_SCHEDULER, Points, PostFilter};
use crate::manifest::FieldError;
use crate::manifest::error::unsupported;
use crate::manifest::reader::Reader;

/// The `kind` of these files.
pub(super) const KIND: &str = "Policy";
const HARD_WEIGHT: &str = "hardPodAffinitySymmetricWeight";

const FIELDS: &[&str] =
    &["kind", "apiVersion", "predicates", "priorities", "extenders", HARD_WEIGHT, "alwaysCheckAllPredicates"];

/// Whether a document says that it is one.
pub(super) fn is_policy(document: &Value) -> bool {
    let kind = |map: &Map<String, Value>| map.iter().any(|(k, v)| k.eq_ignore_ascii_case("kind") && v == KIND);
    document.as_object().is_some_and(kind)
}

/// Reads a whole Policy: one profile, for pods of `default-scheduler`. None only with an error reported.
pub(super) fn read(r: &Reader<'_>) -> Option<SchedulerConfig> {
    let issues = RefCell::new(Vec::new());
    let config = config(r.value(), &issues);
    for FieldError { path, message } in issues.into_inner() {
        if path.is_empty() { r.error(message) } else { r.error_in(&path, message) }
    }
    config
}

fn config(policy: &Value, issues: &RefCell<Vec<FieldError>>) -> Option<SchedulerConfig> {
    let r = Fields::root(policy, issues, FIELDS)?;
    if let Some(version) = r.text("apiVersion").filter(|v| !v.is_empty() && *v != "v1") {
        r.error("apiVersion", unsupported(version, ["v1"]));
    }
    let filters = predicates::filters(&r);
    let hard_weight = hard_pod_affinity_weight(&r);
    let scores = priorities::scores(&r, hard_weight);
    extenders::refuse(&r);
    let check_all = r.flag("alwaysCheckAllPredicates").unwrap_or(false);
    let mut points = Points::everywhere(filters.into_iter().map(|plugin| (plugin, 0)).collect());
    points.pre_enqueue = vec![std::sync::Arc::new(SchedulingGates)];
    points.scores = scores;
    points.post_filters = vec![PostFilter::DefaultPreemption];
    let mut notes = Vec::new();
    let scores_affinity = points.scores.iter().any(|(plugin, _)| plugin.name() == "InterPodAffinity");
    if r.get(HARD_WEIGHT).is_some() && !scores_affinity {
        notes.push(format!("{HARD_WEIGHT} has no effect: InterPodAffinityPriority is not among the priorities"));
    }
    let profile = Profile::with_points(DEFAULT_SCHEDULER.into(), 0, points).with_check_all(check_all);
    Some(SchedulerConfig { profiles: vec![profile], notes })
}

/// 0 is unset, which means 1.
fn hard_pod_affinity_weight(r: &Fields<'_>) -> i64 {
    let weight = r.integer(HARD_WEIGHT).unwrap_or(0);
    match weight {
        0 => 1,
        1..=100 => weight,
        _ => {
            r.error(HARD_WEIGHT, format!("invalid {HARD_WEIGHT}: {weight}, must be in the range 1-100"));
            1
        }
    }
}

#[cfg(test)]
mod tests;
