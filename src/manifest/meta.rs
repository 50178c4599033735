//! `metadata`: names, labels, owners and the uid rule.

use uuid::Uuid;

use super::Options;
use super::error::{Cut, REQUIRED, invalid};
use super::names::{dns_label_problem, label_value_problem, qualified_name_problem, subdomain_problem};
use super::near_miss;
use super::reader::{Reader, str_of};
use super::shared::shared;
use crate::model::{Kind, Labels, ObjectMeta, OwnerReference, Str};

/// The UUID namespace under which uids are derived. It must never change: clients may have seen the uids.
pub const UID_NAMESPACE: Uuid = Uuid::from_u128(0x6cf7_c1a5_0ddc_4e7b_9a0e_62b8_d1f0_3b57);

/// What `kubectl apply` leaves on every object: a copy of all of it, which nothing here reads. 150,000 of them are memory.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The uid that stands for the object when nobody gave one: a UUIDv5 of `Kind/namespace/name` (the namespace is empty for
/// cluster-scoped kinds), so that the same manifest is the same object each time it is fed.
pub fn derived_uid(kind: &str, namespace: &str, name: &str) -> Str {
    let uid = Uuid::new_v5(&UID_NAMESPACE, format!("{kind}/{namespace}/{name}").as_bytes());
    let mut text = Uuid::encode_buffer();
    Str::from(&*uid.hyphenated().encode_lower(&mut text))
}

pub(super) fn meta(object: &Reader<'_>, kind: Kind, options: Options) -> ObjectMeta {
    let Some(r) = object.object("metadata") else {
        if !object.has("metadata") {
            object.error_in("metadata.name", REQUIRED);
        }
        return ObjectMeta::default();
    };
    if kind == Kind::Pod {
        r.known(&near_miss::METADATA);
    }
    let generated = if kind == Kind::Pod { Generated::Allowed } else { Generated::Refused };
    let problem = if kind == Kind::Namespace { dns_label_problem } else { subdomain_problem };
    let name = name(&r, generated, problem);
    let namespace = if kind.is_namespaced() { namespace(&r) } else { Str::default() };
    let (labels, annotations) = labels_and_annotations(&r);
    ObjectMeta {
        uid: uid(&r, kind, &namespace, &name, options),
        name,
        namespace,
        resource_version: r.own_str("resourceVersion"),
        labels,
        annotations,
        owners: r.list("ownerReferences", |o| Some(owner(o))).unwrap_or_default(),
        created: r.time("creationTimestamp"),
        deleted: r.time("deletionTimestamp"),
    }
}

/// Whether `generateName` can stand in for the name: only for what a person asks a decision for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Generated {
    Allowed,
    Refused,
}

pub(super) fn name(r: &Reader<'_>, generated: Generated, problem: fn(&str) -> Option<String>) -> Str {
    let mut name = r.text("name").unwrap_or_default();
    if name.is_empty() && generated == Generated::Allowed {
        name = r.text("generateName").unwrap_or_default().trim_end_matches('-');
        if !name.is_empty() {
            r.warn_in("name", format!("absent; \"{}\" is taken from generateName", Cut(name)));
        }
    }
    if name.is_empty() {
        // A name of the wrong type has been reported already.
        if r.any("name").is_none_or(|n| n.value().is_string()) {
            r.required("name");
        }
    } else if let Some(problem) = problem(name) {
        r.error_in("name", invalid(name, problem));
    }
    str_of(name)
}

/// The namespace of a namespaced object; `default` when it says nothing.
pub(super) fn namespace(r: &Reader<'_>) -> Str {
    let namespace = r.text("namespace").filter(|n| !n.is_empty()).unwrap_or("default");
    if let Some(problem) = dns_label_problem(namespace) {
        r.error_in("namespace", invalid(namespace, problem));
    }
    shared(namespace)
}

fn uid(r: &Reader<'_>, kind: Kind, namespace: &str, name: &str, options: Options) -> Str {
    let uid = r.own_str("uid");
    if !uid.is_empty() {
        return uid;
    }
    // Objects of metrics.k8s.io are computed, not stored: they never have one.
    let never_has_one = matches!(kind, Kind::NodeMetrics | Kind::PodMetrics);
    if !options.allow_missing_uid && !never_has_one {
        r.error_in("uid", "Required value: a stream that said Hello must send uids");
    } else if kind == Kind::Pod {
        r.warn_in("uid", "absent; derived from namespace and name");
    }
    derived_uid(kind.as_str(), namespace, name)
}

pub(super) fn labels_and_annotations(r: &Reader<'_>) -> (Labels, Labels) {
    let labels = labels(r, "labels").unwrap_or_default();
    let mut annotations = Vec::new();
    r.entries("annotations", |key, value| {
        // Annotation keys may be upper case in the prefix too; old tools write such.
        if let Some(problem) = qualified_name_problem(key)
            && qualified_name_problem(&key.to_ascii_lowercase()).is_some()
        {
            value.error(invalid(key, problem));
        }
        if let Some(text) = value.as_text()
            && key != LAST_APPLIED
        {
            annotations.push((shared(key), shared(text)));
        }
    });
    (labels, annotations.into_iter().collect())
}

/// A map of label keys to label values: labels, node selectors, `matchLabels`. None: it is absent.
pub(super) fn labels(r: &Reader<'_>, field: &str) -> Option<Labels> {
    let mut pairs = Vec::new();
    let there = r.entries(field, |key, value| {
        if let Some(problem) = qualified_name_problem(key) {
            value.error(invalid(key, problem));
        }
        if let Some(text) = value.as_text() {
            if let Some(problem) = label_value_problem(text) {
                value.error(invalid(text, problem));
            }
            pairs.push((shared(key), shared(text)));
        }
    });
    there.then(|| pairs.into_iter().collect())
}

fn owner(r: &Reader<'_>) -> OwnerReference {
    OwnerReference {
        api_version: r.str("apiVersion"),
        kind: r.required_str("kind"),
        name: r.required_str("name"),
        uid: r.str("uid"),
        controller: r.flag("controller").unwrap_or(false),
    }
}
