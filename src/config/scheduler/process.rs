//! Settings of the process that kube-scheduler is: checked as upstream checks them, and without effect here.

use super::duration::duration;
use super::{Notes, no_effect, percentage};
use crate::manifest::error::{REQUIRED, invalid, invalid_number};
use crate::manifest::reader::Reader;

/// Looks at all of them.
pub(super) fn check(r: &Reader<'_>, notes: &mut Notes) {
    if let Some(number) = r.int32("parallelism") {
        if number <= 0 {
            r.error_in("parallelism", invalid_number(number, "should be an integer value greater than zero"));
        }
        no_effect(r, "parallelism", "Berth decides on one thread a request", notes);
    }
    percentage(r, notes);
    backoff(r, notes);
    for field in ["delayCacheUntilActive", "enableProfiling", "enableContentionProfiling"] {
        if r.flag(field).is_some() {
            no_effect(r, field, "it is about kube-scheduler's own process", notes);
        }
    }
    if let Some(election) = r.object("leaderElection") {
        leader_election(&election);
        no_effect(r, "leaderElection", "Berth has no leader; whoever asks decides whom to ask", notes);
    }
    if let Some(client) = r.object("clientConnection") {
        client.only(&["acceptContentTypes", "burst", "contentType", "kubeconfig", "qps"]);
        for field in ["acceptContentTypes", "contentType", "kubeconfig"] {
            client.text(field);
        }
        client.int32("burst");
        if let Some(qps) = client.any("qps").filter(|qps| !qps.value().is_number()) {
            qps.error("expected a number");
        }
        no_effect(r, "clientConnection", "Berth doesn't talk to an API server", notes);
    }
}

fn backoff(r: &Reader<'_>, notes: &mut Notes) {
    const INITIAL: &str = "podInitialBackoffSeconds";
    const MAX: &str = "podMaxBackoffSeconds";
    let initial = r.integer(INITIAL);
    if let Some(seconds) = initial.filter(|seconds| *seconds <= 0) {
        r.error_in(INITIAL, invalid_number(seconds, "must be greater than 0"));
    }
    let max = r.integer(MAX);
    let (from, to) = (initial.unwrap_or(1), max.unwrap_or(10));
    if to < from {
        r.error_in(MAX, invalid_number(to, "must be greater than or equal to PodInitialBackoffSeconds"));
    }
    for (field, given) in [(INITIAL, initial), (MAX, max)] {
        if given.is_some() {
            no_effect(r, field, "pending pods wait with the caller", notes);
        }
    }
}

fn leader_election(r: &Reader<'_>) {
    r.only(&[
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "resourceLock",
        "resourceName",
        "resourceNamespace",
        "retryPeriod",
    ]);
    let elects = r.flag("leaderElect").unwrap_or(true);
    for field in ["leaseDuration", "renewDeadline", "retryPeriod"] {
        if duration(r, field).is_some_and(|micros| micros <= 0) && elects {
            r.error_in(field, "must be greater than zero");
        }
    }
    if let Some(lock) = r.text("resourceLock").filter(|lock| !lock.is_empty() && *lock != "leases" && elects) {
        r.error_in("resourceLock", invalid(lock, "resourceLock value must be \"leases\""));
    }
    for field in ["resourceName", "resourceNamespace"] {
        if r.text(field) == Some("") && elects {
            r.error_in(field, format!("{REQUIRED}: {field} is required"));
        }
    }
}
