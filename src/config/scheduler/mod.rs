//! `KubeSchedulerConfiguration` (spec section 9) to profiles.
//!
//! `plugins.rs` merges a profile's plugins with the defaults and says what runs where, `args.rs` and its neighbours read the
//! plugins' arguments, `process.rs` looks at what concerns the process that upstream is, `extenders.rs` at what would ask
//! somebody else.

mod args;
mod duration;
mod extenders;
mod plugins;
mod process;
mod resources_args;

use crate::config::SchedulerConfig;
use crate::engine::Profile;
use crate::engine::profile::DEFAULT_SCHEDULER;
use crate::manifest::error::{REQUIRED, duplicate, invalid, invalid_number, unsupported};
use crate::manifest::reader::Reader;
use crate::model::Str;

pub(super) const KIND: &str = "KubeSchedulerConfiguration";
/// The only version that kube-scheduler 1.36 reads.
pub(super) const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// What is right and has no effect here.
pub(super) type Notes = Vec<String>;

/// Reads a whole configuration. None only with an error reported.
pub(super) fn read(r: &Reader<'_>) -> Option<SchedulerConfig> {
    r.only(&[
        "apiVersion",
        "clientConnection",
        "delayCacheUntilActive",
        "enableContentionProfiling",
        "enableProfiling",
        "extenders",
        "kind",
        "leaderElection",
        "parallelism",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
    ]);
    let mut notes = Notes::new();
    api_version(r);
    process::check(r, &mut notes);
    extenders::check(r);
    let profiles = profiles(r, &mut notes);
    Some(SchedulerConfig { profiles, notes })
}

fn api_version(r: &Reader<'_>) {
    match r.text("apiVersion") {
        Some(API_VERSION) => {}
        Some("") => r.required("apiVersion"),
        Some(other) => r.error_in("apiVersion", unsupported(other, [API_VERSION])),
        None if r.has("apiVersion") => {}
        None => r.error_in("apiVersion", format!("{REQUIRED}: {API_VERSION}")),
    }
}

/// A percentage of nodes, which is checked and then not used.
fn percentage(r: &Reader<'_>, notes: &mut Notes) {
    const FIELD: &str = "percentageOfNodesToScore";
    let Some(number) = r.int32(FIELD) else { return };
    if !(0..=100).contains(&number) {
        r.error_in(FIELD, invalid_number(number, "not in valid range [0-100]"));
    }
    no_effect(r, FIELD, "Berth looks at every node", notes);
}

/// Notes that a field is right and unused.
fn no_effect(r: &Reader<'_>, field: &str, why: &str, notes: &mut Notes) {
    let path = r.path();
    let dot = if path.is_empty() { "" } else { "." };
    notes.push(format!("{path}{dot}{field} has no effect: {why}"));
}

fn profiles(r: &Reader<'_>, notes: &mut Notes) -> Vec<Profile> {
    let count = r.any("profiles").and_then(|p| p.value().as_array().map(Vec::len)).unwrap_or_default();
    let mut names: Vec<Str> = Vec::new();
    let mut first_queue: Option<Vec<String>> = None;
    let mut made = Vec::new();
    r.list("profiles", |p| {
        p.only(&["percentageOfNodesToScore", "pluginConfig", "plugins", "schedulerName"]);
        let name = match p.text("schedulerName") {
            // Upstream names the only profile, and only if it has no name at all.
            None if !p.has("schedulerName") && count == 1 => Str::from(DEFAULT_SCHEDULER),
            None if p.has("schedulerName") => Str::default(),
            None | Some("") => {
                p.required("schedulerName");
                Str::default()
            }
            Some(name) => Str::from(name),
        };
        if !name.is_empty() {
            if names.contains(&name) {
                p.error_in("schedulerName", duplicate(&name));
            }
            names.push(name.clone());
        }
        percentage(p, notes);
        let merged = plugins::read(p, &name, notes);
        match &first_queue {
            None => first_queue = Some(merged.queue_sort.clone()),
            Some(first) if *first != merged.queue_sort => {
                let path = "plugins.queueSort";
                p.error_in(path, invalid(&merged.queue_sort.join(" "), "must be the same for all profiles"));
            }
            Some(_) => {}
        }
        let made_plugins = args::read(p, notes);
        made.push(Profile::with_points(name, 0, merged.points(&made_plugins)));
        Some(())
    });
    if made.is_empty() {
        // No list, or an empty one: upstream's default profile.
        made.push(Profile::default());
    }
    made
}
