//! Where do the cache and the truth differ: objects that somebody lists elsewhere, against what Berth holds.
//!
//! - [`Truth`] takes the listed objects in, in batches, by the same reader as the feed.
//! - [`compare`] is a pure function of a truth and a [`Snapshot`]: objects against objects (missing, extra, replaced,
//!   different in which fields), room against what the truth says of each pod, reservations against pods that need none any
//!   more, and the view against one built anew, which can differ only by a bug in Berth.
//! - `fields` names the fields.
//!
//! Objects are compared as the model has them, after defaulting, so that spelling is no difference; a resourceVersion is
//! none by itself, and tells of a difference which side is behind. The snapshot is of one revision, and taking it costs a
//! fork; the rest works on it, off the lock. Some seconds at 150,000 pods: off the async threads.

mod fields;
mod room;
mod truth;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

pub use truth::{MAX_OBJECTS, Truth};

use crate::cluster::Snapshot;
use crate::cluster::resource_version::is_older;
use crate::model::{Kind, Object, ObjectRef, Str};

/// Fields that one difference spells out.
const MAX_FIELDS: usize = 100;
/// Bytes of a value that are shown: an annotation may have 256 KiB.
const MAX_VALUE_BYTES: usize = 1_024;

/// What kind of difference it is, in the order in which those of one object are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DifferenceType {
    MissingInCache,
    ExtraInCache,
    /// Another object has the name: the uids differ.
    Replaced,
    Different,
    /// Bound to a node that the cache doesn't know, so that it takes no room.
    Orphaned,
    /// The pod takes room elsewhere than where it is bound, takes none though it is bound, or takes some though it isn't.
    RoomMisplaced,
    /// Room is held for a pod that is bound, ended or gone.
    StaleReservation,
    /// The view isn't what it would be if it were built anew from the cache's own objects: a bug in Berth.
    ViewMismatch,
}

/// A field that differs. None: it isn't set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDifference {
    pub path: String,
    pub truth: Option<String>,
    pub cache: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub kind: DifferenceType,
    /// With the truth's uid, where the truth has the object. None: no object in particular.
    pub object: Option<ObjectRef>,
    pub fields: Vec<FieldDifference>,
    pub fields_omitted: usize,
    /// Of the cache's object, where it is another than the object's.
    pub cache_uid: Str,
    /// resourceVersions; empty where there is no object or it has none.
    pub truth_version: Str,
    pub cache_version: Str,
    /// For people; empty where kind and fields say it all.
    pub message: String,
}

impl Difference {
    fn new(kind: DifferenceType, object: ObjectRef) -> Self {
        Self {
            kind,
            object: Some(object),
            fields: Vec::new(),
            fields_omitted: 0,
            cache_uid: Str::default(),
            truth_version: Str::default(),
            cache_version: Str::default(),
            message: String::new(),
        }
    }

    fn versions(mut self, truth: Option<&Object>, cache: Option<&Object>) -> Self {
        let version = |object: Option<&Object>| object.map(|o| o.meta().resource_version.clone()).unwrap_or_default();
        (self.truth_version, self.cache_version) = (version(truth), version(cache));
        self
    }

    fn message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// Which version the cache has: an older (`Less`) or a newer one. None when that can't be told.
    pub fn cache_is(&self) -> Option<Ordering> {
        let (truth, cache) = (&self.truth_version, &self.cache_version);
        match () {
            () if is_older(cache, truth) => Some(Ordering::Less),
            () if is_older(truth, cache) => Some(Ordering::Greater),
            () if !truth.is_empty() && truth == cache => Some(Ordering::Equal),
            () => None,
        }
    }
}

/// How many objects of a kind were compared, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindCounts {
    pub truth: usize,
    pub cache: usize,
    pub same: usize,
    /// Of those, the ones whose resourceVersions differ.
    pub other_version: usize,
    pub missing: usize,
    /// 0 where the truth doesn't cover the kind.
    pub extra: usize,
    pub replaced: usize,
    pub different: usize,
    /// Whether what the truth doesn't have is extra.
    pub covered: bool,
}

#[derive(Debug, Clone)]
pub struct Comparison {
    /// By kind, namespace and name; what is about no object comes last.
    pub differences: Vec<Difference>,
    pub kinds: BTreeMap<Kind, KindCounts>,
    pub revision: u64,
    pub incarnation: Str,
}

/// An object's name within its kind.
type Key = (Str, Str);

fn key(object: &Object) -> Key {
    let meta = object.meta();
    (meta.namespace.clone(), meta.name.clone())
}

/// Compares a truth with what the cache held at one revision.
pub fn compare(truth: &Truth, snapshot: &Snapshot) -> Comparison {
    let mut differences = Vec::new();
    let mut kinds = BTreeMap::new();
    let covered = truth.covered();
    let looked_at: BTreeSet<Kind> = covered.iter().copied().chain(truth.kinds_seen()).collect();
    for kind in looked_at {
        let cached: FxHashMap<Key, Object> =
            snapshot.objects(kind).into_iter().map(|object| (key(&object), object)).collect();
        let counts = compare_kind(kind, truth, &cached, covered.contains(&kind), &mut differences);
        kinds.insert(kind, counts);
        if kind == Kind::Pod {
            room::compare(truth, &cached, covered.contains(&kind), snapshot, &mut differences);
        }
    }
    differences.sort_by(|a, b| {
        // `None` sorts last.
        let place = |d: &Difference| (d.object.is_none(), d.object.clone(), d.kind);
        place(a).cmp(&place(b))
    });
    let mismatches = snapshot.view.differences(&snapshot.rebuilt());
    differences.extend(mismatches.into_iter().map(|message| Difference {
        object: None,
        ..Difference::new(DifferenceType::ViewMismatch, nothing()).message(cut(message))
    }));
    let (revision, incarnation) = (snapshot.view.revision(), snapshot.incarnation.clone());
    Comparison { differences, kinds, revision, incarnation }
}

fn nothing() -> ObjectRef {
    ObjectRef { kind: Kind::Node, namespace: Str::default(), name: Str::default(), uid: Str::default() }
}

fn compare_kind(
    kind: Kind,
    truth: &Truth,
    cached: &FxHashMap<Key, Object>,
    covered: bool,
    differences: &mut Vec<Difference>,
) -> KindCounts {
    let mut counts = KindCounts { cache: cached.len(), covered, ..KindCounts::default() };
    for (key, object) in truth.of_kind(kind) {
        counts.truth += 1;
        let named = ObjectRef::of(object);
        let Some(known) = cached.get(key) else {
            counts.missing += 1;
            differences.push(Difference::new(DifferenceType::MissingInCache, named).versions(Some(object), None));
            continue;
        };
        if known.meta().uid != object.meta().uid {
            counts.replaced += 1;
            let difference = Difference::new(DifferenceType::Replaced, named).versions(Some(object), Some(known));
            differences.push(Difference { cache_uid: known.meta().uid.clone(), ..difference });
            continue;
        }
        let fields = if known == object { Vec::new() } else { differing_fields(object, known) };
        if fields.is_empty() {
            counts.same += 1;
            counts.other_version += usize::from(known.meta().resource_version != object.meta().resource_version);
        } else {
            counts.different += 1;
            let mut difference = Difference::new(DifferenceType::Different, named).versions(Some(object), Some(known));
            difference.fields_omitted = fields.len().saturating_sub(MAX_FIELDS);
            difference.fields = fields;
            difference.fields.truncate(MAX_FIELDS);
            differences.push(difference);
        }
    }
    if covered {
        for (_, known) in cached.iter().filter(|(key, _)| !truth.has(kind, key)) {
            counts.extra += 1;
            let difference = Difference::new(DifferenceType::ExtraInCache, ObjectRef::of(known));
            differences.push(difference.versions(None, Some(known)));
        }
    }
    counts
}

/// By path.
fn differing_fields(truth: &Object, cache: &Object) -> Vec<FieldDifference> {
    let (mut truth, mut cache) = (fields::fields(truth), fields::fields(cache));
    let paths: BTreeSet<String> = truth.keys().chain(cache.keys()).cloned().collect();
    let differences = paths.into_iter().filter_map(|path| {
        let (truth, cache) = (truth.remove(&path), cache.remove(&path));
        (truth != cache).then(|| FieldDifference { path, truth: truth.map(cut), cache: cache.map(cut) })
    });
    differences.collect()
}

/// At most so many bytes of a text, and a sign where some were left out.
fn cut(mut text: String) -> String {
    if text.len() > MAX_VALUE_BYTES {
        let end = (0..=MAX_VALUE_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
