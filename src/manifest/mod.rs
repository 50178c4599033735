//! From Kubernetes manifests to the model.
//!
//! Takes what `kubectl` and API servers give (a JSON value of an object, a `List`, a workload with a template; files of
//! JSON or YAML) and gives the objects of [`crate::model`], validated as the API server validates and with the fields
//! filled in that it fills in (spec section 1.3). `service`, `api` and `cli` call it, `config` reads its files with the same
//! [`reader`]; it knows nothing of clusters or decisions, save for what [`apply_classes`] is told through a trait.
//!
//! Promises:
//! - no input makes it panic; recursion only follows lists in lists, so it is bounded by the nesting that parsing allows;
//! - all mistakes of an object are reported at once, each with its field path in Kubernetes' notation;
//! - unknown fields are ignored, as upstream does, but those that look like misspelt ones that matter give a warning;
//! - `null` is absent, everywhere;
//! - the same value gives the same object: no clock, no random uid ([`derived_uid`]).
//!
//! What objects can hold that the API server would refuse today, but once took or can't check, is let through where the
//! scheduler has a defined answer for it (requests over limits, a `Gt` bound that is no number): refusing a running pod
//! would lose its room.

pub(crate) mod affinity;
mod containers;
mod defaulting;
pub(crate) mod error;
mod files;
mod kinds;
mod meta;
mod metrics;
pub(crate) mod names;
pub(crate) mod near_miss;
mod node;
mod pod;
mod policy;
pub(crate) mod reader;
mod resources;
mod selectors;
mod shared;
mod status;
mod storage;
pub(crate) mod syntax;
mod taints;
mod template;
mod volumes;
mod workload;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::model::{Kind, Object, Pod, Time};
use error::REQUIRED;
use kinds::{Class, Type, classify};

pub use defaulting::{Classes, apply_classes};
pub use error::{FieldError, MAX_REPORTED, ManifestError, Warning};
pub use files::{
    FileContents, FileError, Place, Placed, read_file, read_files, read_object_manifests, read_pod_manifests,
    read_pods, read_pods_str, read_str,
};
pub use meta::{UID_NAMESPACE, derived_uid};
// What reads other documents (policies, configuration) in the same way: with paths, all mistakes at once.
pub(crate) use error::{Cut, duplicate, invalid, invalid_number, unsupported};
pub(crate) use names::{label_value_problem, qualified_name_problem};
pub(crate) use near_miss::closest;
pub(crate) use reader::{Issues, Reader, expected};
pub(crate) use selectors::optional_selector;
pub(crate) use syntax::documents;
pub use syntax::{SyntaxError, parse_json};

/// An RFC 3339 time such as `2026-03-01T00:00:00Z`, with microseconds at most.
pub fn parse_time(text: &str) -> Option<Time> {
    text.parse::<jiff::Timestamp>().ok().map(|t| Time(t.as_microsecond()))
}

/// What the caller allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Derive an absent uid from kind, namespace and name, with a warning for pods; else it is an error. Off for streams
    /// that said Hello: what comes from an API server has uids, and two objects of one name must not be taken for one.
    pub allow_missing_uid: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { allow_missing_uid: true }
    }
}

/// An object that was read, and what is odd about its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed<T> {
    pub value: T,
    pub warnings: Vec<Warning>,
}

/// What became of one object of a list or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<T = Object> {
    Read(Parsed<T>),
    /// Nothing wrong with it, but of a kind that isn't read here.
    Skipped {
        kind: String,
    },
    Invalid(ManifestError),
}

/// Reads one object of any kind that Berth knows.
///
/// # Errors
/// All mistakes of the object; also a kind that Berth doesn't read, and a list (see [`objects`]).
pub fn object(value: &Value, options: Options) -> Result<Parsed<Object>, ManifestError> {
    match read_object(value, Type::of(value, Type::default()), options) {
        Item::Read(parsed) => Ok(parsed),
        Item::Invalid(error) => Err(error),
        Item::Skipped { kind } => {
            let mut known: Vec<&str> = Kind::ALL.iter().map(|k| k.as_str()).collect();
            known.sort_unstable();
            Err(broken(value, &kind, "kind", unsupported(&kind, known)))
        }
    }
}

/// Reads an object or all items of a list (`List`, `PodList`, any other `...List` with `items`, a JSON array), in order.
/// Lists in lists are flattened; items of a typed list may leave out `kind` and `apiVersion`.
pub fn objects(value: &Value, options: Options) -> Vec<Item> {
    flatten(value).into_iter().map(|(value, kind)| read_object(value, kind, options)).collect()
}

/// The pod that a manifest asks about: a Pod, or one made from the template of a Deployment, ReplicaSet, StatefulSet,
/// DaemonSet, Job, CronJob, ReplicationController or PodTemplate of any API version.
///
/// # Errors
/// All mistakes of the pod or template; also any other kind.
pub fn pod_from(value: &Value, options: Options) -> Result<Parsed<Pod>, ManifestError> {
    match read_pod(value, Type::of(value, Type::default()), options) {
        Item::Read(parsed) => Ok(parsed),
        Item::Invalid(error) => Err(error),
        Item::Skipped { kind } => Err(broken(value, &kind, "kind", unsupported(&kind, template::accepted_kinds()))),
    }
}

/// The pods of a manifest or list, as [`pod_from`] makes them; other kinds are skipped.
pub fn pods(value: &Value, options: Options) -> Vec<Item<Pod>> {
    flatten(value).into_iter().map(|(value, kind)| read_pod(value, kind, options)).collect()
}

/// A pod and the manifest that it was read from, complete with kind and version.
#[derive(Debug, Clone, PartialEq)]
pub struct PodManifest {
    pub pod: Pod,
    pub manifest: Value,
}

/// As [`pods`], each with its manifest, for handing it on.
fn pod_manifests(value: &Value, options: Options) -> Vec<Item<PodManifest>> {
    let read = |(value, kind): (&Value, Type<'_>)| match read_pod(value, kind, options) {
        Item::Read(Parsed { value: pod, warnings }) => {
            Item::Read(Parsed { value: PodManifest { pod, manifest: complete(value, kind) }, warnings })
        }
        Item::Skipped { kind } => Item::Skipped { kind },
        Item::Invalid(error) => Item::Invalid(error),
    };
    flatten(value).into_iter().map(read).collect()
}

/// An object and the manifest that it was read from, complete with kind and version.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectManifest {
    pub object: Object,
    pub manifest: Value,
}

/// As [`objects`], each with its manifest, for handing it on.
fn object_manifests(value: &Value, options: Options) -> Vec<Item<ObjectManifest>> {
    let read = |(value, kind): (&Value, Type<'_>)| match read_object(value, kind, options) {
        Item::Read(Parsed { value: object, warnings }) => {
            Item::Read(Parsed { value: ObjectManifest { object, manifest: complete(value, kind) }, warnings })
        }
        Item::Skipped { kind } => Item::Skipped { kind },
        Item::Invalid(error) => Item::Invalid(error),
    };
    flatten(value).into_iter().map(read).collect()
}

/// A manifest with its kind and version, which items of a typed list may leave out.
fn complete(value: &Value, kind: Type<'_>) -> Value {
    let mut manifest = value.clone();
    if let Value::Object(fields) = &mut manifest {
        fields.entry("kind").or_insert_with(|| kind.kind.into());
        fields.entry("apiVersion").or_insert_with(|| kind.api_version.into());
    }
    manifest
}

fn is_list(value: &Value) -> bool {
    Type::of(value, Type::default()).items(value).is_some()
}

/// The objects that a value stands for, with what they are.
fn flatten(value: &Value) -> Vec<(&Value, Type<'_>)> {
    fn collect<'a>(value: &'a Value, implied: Type<'a>, found: &mut Vec<(&'a Value, Type<'a>)>) {
        let kind = Type::of(value, implied);
        match kind.items(value) {
            Some((items, implied)) => {
                for item in items {
                    collect(item, implied, found);
                }
            }
            None => found.push((value, kind)),
        }
    }
    let mut found = Vec::new();
    collect(value, Type::default(), &mut found);
    found
}

fn read_object(value: &Value, kind: Type<'_>, options: Options) -> Item {
    match classify(kind) {
        Class::Skip(kind) => skip_or_refuse(value, kind),
        Class::Broken(message) => Item::Invalid(broken(value, kind.kind, "kind", message)),
        Class::Read(known) => {
            let issues = Issues::default();
            let object = kinds::read(known, kind.api_version, value, &issues, options);
            finish(value, kind.kind, issues, object)
        }
    }
}

fn read_pod(value: &Value, kind: Type<'_>, options: Options) -> Item<Pod> {
    let issues = Issues::default();
    let pod = if let Some(path) = template::template_path(kind.kind) {
        Reader::root(value, &issues).map(|r| template::pod_of(&r, kind, path, &issues))
    } else {
        match classify(kind) {
            Class::Read(Kind::Pod) => kinds::read_pod(kind.api_version, value, &issues, options),
            Class::Read(other) => return Item::Skipped { kind: other.as_str().to_owned() },
            Class::Skip(kind) => return skip_or_refuse(value, kind),
            Class::Broken(message) => return Item::Invalid(broken(value, kind.kind, "kind", message)),
        }
    };
    finish(value, kind.kind, issues, pod)
}

/// A kind that isn't read is skipped; a list whose items are no list is a mistake.
fn skip_or_refuse<T>(value: &Value, kind: String) -> Item<T> {
    if kind.ends_with("List") && value.get("items").is_some() {
        return Item::Invalid(broken(value, &kind, "items", "expected a list".to_owned()));
    }
    Item::Skipped { kind }
}

fn finish<T>(value: &Value, kind: &str, issues: Issues, read: Option<T>) -> Item<T> {
    match (issues.finish(), read) {
        (Ok(warnings), Some(value)) => Item::Read(Parsed { value, warnings }),
        (Err(errors), _) => Item::Invalid(identified(value, kind, errors)),
        // Nothing comes out without an error having been reported; said in one so that it can't be taken for a pass.
        (Ok(_), None) => Item::Invalid(broken(value, kind, "", "can't be read".to_owned())),
    }
}

fn broken(value: &Value, kind: &str, path: &str, message: String) -> ManifestError {
    let path = if value.is_object() { path.to_owned() } else { String::new() };
    let message = if value.is_object() || message != REQUIRED { message } else { "expected an object".to_owned() };
    identified(value, kind, vec![FieldError { path, message }])
}

/// Names the object that the errors are about, as far as it can be read.
fn identified(value: &Value, kind: &str, errors: Vec<FieldError>) -> ManifestError {
    let meta = |field: &str| {
        let text = value.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str);
        text.filter(|t| !t.is_empty()).map(|t| error::Cut(t).to_string())
    };
    let namespaced = Kind::parse(kind).map(Kind::is_namespaced);
    let namespaced = namespaced.or_else(|| template::template_path(kind).map(|_| true));
    let namespace = match (namespaced, meta("namespace")) {
        (Some(false), _) => None,
        (Some(true), given) => given.or_else(|| Some("default".to_owned())),
        (None, given) => given,
    };
    ManifestError {
        kind: error::Cut(kind).to_string(),
        name: meta("name").or_else(|| meta("generateName")).unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
        errors,
    }
}
