//! Which plugins run where: a profile's `plugins` merged with the defaults as upstream merges them (spec section 9.1).
//!
//! Two steps, as upstream: each list of the file is laid over the default one (all defaults stand in `multiPoint`), then
//! `multiPoint` is spread over the extension points. What is wrong with names is told with the texts that kube-scheduler
//! gives when it starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::args::Made;
use super::{API_VERSION, KIND, Notes};
use crate::engine::plugin::Plugin;
use crate::engine::profile::{Points, PostFilter};
use crate::engine::registry::{self, IN_TREE, Point};
use crate::manifest::error::{Cut, REQUIRED, invalid, invalid_number};
use crate::manifest::near_miss::closest;
use crate::manifest::reader::Reader;
use crate::model::Str;

const MULTI_POINT: &str = "multiPoint";
/// Plugins that left with 1.32, when NodeVolumeLimits counted for all of them.
const REMOVED: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: String,
    weight: i64,
}

/// `{enabled, disabled}` of one extension point.
#[derive(Debug, Default)]
struct Set {
    enabled: Vec<Entry>,
    disabled: Vec<String>,
}

impl Set {
    fn disables_all(&self) -> bool {
        self.disabled.iter().any(|name| name == "*")
    }

    fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }
}

/// What runs where, by name.
#[derive(Debug, Default)]
pub(super) struct Merged {
    at: BTreeMap<Point, Vec<Entry>>,
    /// What the file itself lists at `queueSort`.
    pub(super) queue_sort: Vec<String>,
}

/// Reads and merges the plugins of a profile.
pub(super) fn read(profile: &Reader<'_>, scheduler: &Str, notes: &mut Notes) -> Merged {
    let mut sets: BTreeMap<Point, Set> = BTreeMap::new();
    let mut multi_point = Set::default();
    let plugins = profile.object("plugins");
    if let Some(r) = &plugins {
        let mut fields: Vec<&str> = Point::ALL.iter().map(|point| point.field()).collect();
        fields.push(MULTI_POINT);
        r.only(&fields);
        multi_point = set(r, None, notes);
        for point in Point::ALL {
            sets.insert(point, set(r, Some(point), notes));
        }
        let queue_sort = sets.get(&Point::QueueSort).map_or(0, |set| set.enabled.len());
        if queue_sort > 1 {
            let path = "queueSort.enabled";
            r.error_in(path, invalid_number(queue_sort, "only one queue sort plugin can be enabled"));
        }
    }
    let queue_sort = sets.get(&Point::QueueSort).map(|set| set.enabled.iter().map(|e| e.name.clone()).collect());
    let multi_point = over_defaults(multi_point);
    let expand = |point| {
        let set = sets.remove(&point).unwrap_or_default();
        (point, expand(point, set, &multi_point))
    };
    let merged = Merged { at: Point::ALL.map(expand).into(), queue_sort: queue_sort.unwrap_or_default() };
    let count = |point| merged.at.get(&point).map_or(0, Vec::len);
    let (queues, binders) = (count(Point::QueueSort), count(Point::Bind));
    if queues == 0 {
        let text = "only one queue sort plugin required for profile with scheduler name";
        profile.error_in("plugins", format!("{text} \"{}\", but got {queues}", Cut(scheduler)));
    }
    if binders == 0 {
        let text = "at least one bind plugin is needed for profile with scheduler name";
        profile.error_in("plugins", format!("{text} \"{}\"", Cut(scheduler)));
    }
    merged
}

/// Reads one list; None: `multiPoint`.
fn set(plugins: &Reader<'_>, point: Option<Point>, notes: &mut Notes) -> Set {
    let field = point.map_or(MULTI_POINT, Point::field);
    let Some(r) = plugins.object(field) else { return Set::default() };
    r.only(&["disabled", "enabled"]);
    let mut set = Set::default();
    r.list("enabled", |e| {
        let entry = entry(e)?;
        if check_name(e, &entry.name, point) {
            if set.enabled.iter().any(|earlier| earlier.name == entry.name) {
                let plugin_type = point.map_or("multiPoint", Point::plugin_type);
                let text = format!("plugin \"{}\" already registered as \"{plugin_type}\"", entry.name);
                e.error_in("name", text);
            } else {
                set.enabled.push(entry);
            }
        }
        Some(())
    });
    r.list("disabled", |d| {
        let entry = entry(d)?;
        if entry.name != "*" && registry::find(&entry.name).is_none() && !REMOVED.contains(&entry.name.as_str()) {
            // Upstream lets this pass; a slip here would leave a plugin on.
            d.error_in("name", unknown(&entry.name, point));
        }
        set.disabled.push(entry.name);
        Some(())
    });
    if point.is_some_and(is_not_here) && !(set.enabled.is_empty() && set.disabled.is_empty()) {
        notes.push(format!("{} has no effect: nothing of it is part of a decision", r.path()));
    }
    set
}

/// Extension points at which nothing happens in Berth: what comes after a decision, or around it, and PreScore, which a
/// plugin does when it scores.
fn is_not_here(point: Point) -> bool {
    !matches!(point, Point::PreEnqueue | Point::PreFilter | Point::Filter | Point::PostFilter | Point::Score)
}

fn entry(r: &Reader<'_>) -> Option<Entry> {
    r.only(&["name", "weight"]);
    let weight = i64::from(r.int32("weight").unwrap_or_default());
    if weight < 0 {
        r.error_in("weight", invalid_number(weight, "must not be negative"));
    }
    match r.text("name") {
        Some(name) if !name.is_empty() => Some(Entry { name: name.to_owned(), weight }),
        None if r.has("name") => None,
        _ => {
            r.error_in("name", REQUIRED);
            None
        }
    }
}

/// Whether a plugin can be enabled at a point; else says why not.
fn check_name(r: &Reader<'_>, name: &str, point: Option<Point>) -> bool {
    if REMOVED.contains(&name) {
        let text = format!("was invalid in version \"{API_VERSION}\" ({KIND} is version \"{API_VERSION}\")");
        r.error_in("name", invalid(name, text));
        return false;
    }
    let Some(known) = registry::find(name) else {
        r.error_in("name", unknown(name, point));
        return false;
    };
    if let Some(point) = point.filter(|point| !known.points.contains(point)) {
        r.error_in("name", format!("plugin \"{name}\" does not extend {} plugin", point.plugin_type()));
        return false;
    }
    true
}

fn unknown(name: &str, point: Option<Point>) -> String {
    // Upstream tries PreFilter first of all points.
    let plugin_type = point.unwrap_or(Point::PreFilter).plugin_type();
    format!("{plugin_type} \"{}\" does not exist{}", Cut(name), did_you_mean(name))
}

/// `; did you mean X?`, if a plugin's name is close.
pub(super) fn did_you_mean(name: &str) -> String {
    let near = closest(name, IN_TREE.iter().map(|known| known.name));
    near.map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

/// Lays the file's `multiPoint` over the default one.
fn over_defaults(set: Set) -> Vec<Entry> {
    let mut custom: Vec<Option<Entry>> = set.enabled.iter().cloned().map(Some).collect();
    let mut merged = Vec::new();
    if !set.disables_all() {
        for known in IN_TREE {
            let Some(weight) = known.default.filter(|_| !set.disables(known.name)) else { continue };
            // Listed again, the file's entry takes the default one's place, weight and all.
            let again = custom.iter_mut().find(|e| e.as_ref().is_some_and(|e| e.name == known.name));
            merged.push(match again.and_then(Option::take) {
                Some(entry) => entry,
                None => Entry { name: known.name.to_owned(), weight },
            });
        }
    }
    merged.extend(custom.into_iter().flatten());
    merged
}

/// What runs at a point: entries of its own that `multiPoint` has too, then `multiPoint`'s others, then its own others.
fn expand(point: Point, set: Set, multi_point: &[Entry]) -> Vec<Entry> {
    if set.disables_all() {
        return set.enabled;
    }
    let implements = |e: &&Entry| registry::find(&e.name).is_some_and(|known| known.points.contains(&point));
    let spread: Vec<&Entry> = multi_point.iter().filter(implements).filter(|e| !set.disables(&e.name)).collect();
    let (overriding, own): (Vec<Entry>, Vec<Entry>) =
        set.enabled.into_iter().partition(|e| spread.iter().any(|s| s.name == e.name));
    let rest = spread.into_iter().filter(|s| overriding.iter().all(|e| e.name != s.name)).cloned();
    let rest: Vec<Entry> = rest.collect();
    overriding.into_iter().chain(rest).chain(own).collect()
}

impl Merged {
    /// The plugins themselves where they run.
    pub(super) fn points(&self, made: &Made) -> Points {
        let at = |point| self.at.get(&point).into_iter().flatten();
        let plugins = |point| -> Vec<Arc<dyn Plugin>> { at(point).filter_map(|e| made.plugin(&e.name)).collect() };
        Points {
            pre_enqueue: plugins(Point::PreEnqueue),
            pre_filters: plugins(Point::PreFilter),
            filters: plugins(Point::Filter),
            // Weights are 32 bits wide, so the sum that upstream guards against can't overflow.
            scores: at(Point::Score).filter_map(|e| Some((made.plugin(&e.name)?, e.weight.max(1)))).collect(),
            post_filters: at(Point::PostFilter).filter_map(|e| PostFilter::parse(&e.name)).collect(),
        }
    }
}
