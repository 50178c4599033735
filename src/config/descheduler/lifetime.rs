//! The args of the plugins that look at restarts, age and failure (spec 3.5, 16 to 18).

use super::fields;
use crate::evict::policy::{
    OwnerKinds, PodConditionFilter, PodLifeTimeArgs, PodSelection, RemoveFailedPodsArgs,
    RemovePodsHavingTooManyRestartsArgs, RestartState,
};
use crate::manifest::{Reader, unsupported};
use crate::model::Str;

/// What `states` of PodLifeTime may hold (spec 17), sorted.
const STATES: [&str; 24] = [
    "Completed",
    "ContainerCannotRun",
    "ContainerCreating",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "DeadlineExceeded",
    "ErrImagePull",
    "Error",
    "Evicted",
    "Failed",
    "ImagePullBackOff",
    "InvalidImageName",
    "NodeAffinity",
    "NodeLost",
    "OOMKilled",
    "Pending",
    "PodInitializing",
    "Running",
    "Shutdown",
    "StartError",
    "Succeeded",
    "UnexpectedAdmissionError",
    "Unknown",
];

pub(super) fn restarts(r: &Reader<'_>) -> RemovePodsHavingTooManyRestartsArgs {
    let mut states = Vec::new();
    r.checked_texts("states", |text, item| match text {
        "Running" => states.push(RestartState::Running),
        "CrashLoopBackOff" => states.push(RestartState::CrashLoopBackOff),
        other => item.error(unsupported(other, ["CrashLoopBackOff", "Running"])),
    });
    RemovePodsHavingTooManyRestartsArgs { pods: fields::selection(r), states, ..restart_threshold(r) }
}

/// The fields that v1alpha1 keeps in `podsHavingTooManyRestarts`.
pub(super) fn restart_threshold(r: &Reader<'_>) -> RemovePodsHavingTooManyRestartsArgs {
    let given = r.int32("podRestartThreshold");
    let threshold = given.unwrap_or_default();
    if threshold < 1 && (given.is_some() || !r.has("podRestartThreshold")) {
        r.error_in("podRestartThreshold", "invalid PodsHavingTooManyRestarts threshold: it must be 1 or more");
    }
    RemovePodsHavingTooManyRestartsArgs {
        restart_threshold: threshold,
        including_init_containers: r.flag("includingInitContainers").unwrap_or_default(),
        ..RemovePodsHavingTooManyRestartsArgs::default()
    }
}

/// A list of states, each checked.
pub(super) fn states(r: &Reader<'_>, field: &str) -> Vec<Str> {
    let states = r.checked_texts(field, |text, item| {
        if !STATES.contains(&text) {
            item.error(unsupported(text, STATES));
        }
    });
    states.unwrap_or_default()
}

pub(super) fn life_time(r: &Reader<'_>) -> PodLifeTimeArgs {
    let tests = ["conditions", "exitCodes", "maxPodLifeTimeSeconds", "states"];
    let is_empty =
        |field: &str| r.value().get(field).is_none_or(|v| v.is_null() || v.as_array().is_some_and(Vec::is_empty));
    if tests.iter().all(|field| is_empty(field)) {
        r.error("at least one of maxPodLifeTimeSeconds, states, conditions, or exitCodes must be set");
    }
    PodLifeTimeArgs {
        pods: fields::selection(r),
        max_seconds: r.unsigned("maxPodLifeTimeSeconds"),
        states: states(r, "states"),
        conditions: r.list("conditions", |c| Some(condition(c))).unwrap_or_default(),
        exit_codes: fields::exit_codes(r),
        owner_kinds: owner_kinds(r),
        including_init_containers: r.flag("includingInitContainers").unwrap_or_default(),
        including_ephemeral_containers: r.flag("includingEphemeralContainers").unwrap_or_default(),
    }
}

fn condition(r: &Reader<'_>) -> PodConditionFilter {
    r.only_or(&["minTimeSinceLastTransitionSeconds", "reason", "status", "type"], |_| None);
    let text = |field: &str| Some(r.str(field)).filter(|t| !t.is_empty());
    let filter = PodConditionFilter {
        kind: text("type"),
        status: text("status"),
        reason: text("reason"),
        min_seconds_since_last_transition: r.unsigned("minTimeSinceLastTransitionSeconds"),
    };
    if filter == PodConditionFilter::default() {
        r.error("at least one of type, status, reason, or minTimeSinceLastTransitionSeconds must be set");
    }
    filter
}

fn owner_kinds(r: &Reader<'_>) -> OwnerKinds {
    let Some(kinds) = r.object("ownerKinds") else { return OwnerKinds::Any };
    let (include, exclude) = fields::include_exclude(&kinds);
    match (include.is_empty(), exclude.is_empty()) {
        (true, true) => OwnerKinds::Any,
        (false, true) => OwnerKinds::Include(include),
        (true, false) => OwnerKinds::Exclude(exclude),
        (false, false) => {
            kinds.error("only one of Include/Exclude owner kinds can be set");
            OwnerKinds::Any
        }
    }
}

/// `pods` comes from elsewhere in v1alpha1, which keeps the rest in `failedPods`.
pub(super) fn failed_pods(r: &Reader<'_>, pods: PodSelection) -> RemoveFailedPodsArgs {
    let default = RemoveFailedPodsArgs::default();
    RemoveFailedPodsArgs {
        pods,
        exclude_owner_kinds: r.texts("excludeOwnerKinds"),
        min_pod_lifetime_seconds: r.unsigned("minPodLifetimeSeconds").unwrap_or(default.min_pod_lifetime_seconds),
        reasons: r.texts("reasons"),
        exit_codes: fields::exit_codes(r),
        including_init_containers: r.flag("includingInitContainers").unwrap_or_default(),
    }
}
