//! Objects in their three forms, each brought to the JSON of a manifest, which one reader then reads for all of them.
//!
//! A `google.protobuf.Struct` knows one kind of number, the double. Whole ones become integers again. From 2^53 on a double
//! may stand for several integers, so such a number is a mistake: silently taking the neighbour would be worse.

use prost::Message;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct};
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::api::pb;
use crate::api::pb::object::Object;
use crate::api::pb::pod_source::Source as PodForm;
use crate::service::FieldError;
use crate::service::source::Source;

/// The first double that may be another integer than the client wrote.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;
/// Fields that hold keys rather than field names: their entries are written `field[key]`, as in all other paths.
const KEYED: [&str; 13] = [
    "allocatable",
    "allocatedResources",
    "annotations",
    "capacity",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "overhead",
    "podFixed",
    "requests",
    "usage",
];

pub(in crate::api) fn pod_source(source: Option<pb::PodSource>) -> Source {
    match source.and_then(|source| source.source) {
        None => Source::Absent,
        Some(PodForm::Pod(pod)) => typed("v1", "Pod", &pod),
        Some(PodForm::Manifest(manifest)) => structure(manifest),
        Some(PodForm::ManifestJson(json)) => Source::Json(json),
    }
}

/// A typed message as the manifest that it stands for.
pub(super) fn typed<M: Message + Serialize>(api_version: &str, kind: &str, message: &M) -> Source {
    let bytes = message.encoded_len();
    match serde_json::to_value(message) {
        Ok(Value::Object(mut map)) => {
            map.insert("apiVersion".to_owned(), api_version.into());
            map.insert("kind".to_owned(), kind.into());
            Source::Value { value: Value::Object(map), errors: Vec::new(), bytes }
        }
        // Messages are JSON objects; if one weren't, that is said rather than passed over.
        other => {
            let message =
                format!("can't be turned into JSON: {}", other.err().map(|e| e.to_string()).unwrap_or_default());
            Source::Value { value: Value::Null, errors: vec![FieldError { path: String::new(), message }], bytes }
        }
    }
}

/// A typed object of the kind that its field says.
pub(super) fn any_typed(object: pb::Object) -> Source {
    match object.object {
        None => Source::Absent,
        Some(Object::Namespace(o)) => typed("v1", "Namespace", &o),
        Some(Object::Service(o)) => typed("v1", "Service", &o),
        Some(Object::ReplicaSet(o)) => typed("apps/v1", "ReplicaSet", &o),
        Some(Object::StatefulSet(o)) => typed("apps/v1", "StatefulSet", &o),
        Some(Object::ReplicationController(o)) => typed("v1", "ReplicationController", &o),
        Some(Object::PodDisruptionBudget(o)) => typed("policy/v1", "PodDisruptionBudget", &o),
        Some(Object::PriorityClass(o)) => typed("scheduling.k8s.io/v1", "PriorityClass", &o),
        Some(Object::RuntimeClass(o)) => typed("node.k8s.io/v1", "RuntimeClass", &o),
        Some(Object::PersistentVolume(o)) => typed("v1", "PersistentVolume", &o),
        Some(Object::PersistentVolumeClaim(o)) => typed("v1", "PersistentVolumeClaim", &o),
        Some(Object::StorageClass(o)) => typed("storage.k8s.io/v1", "StorageClass", &o),
        Some(Object::CsiNode(o)) => typed("storage.k8s.io/v1", "CSINode", &o),
        Some(Object::CsiDriver(o)) => typed("storage.k8s.io/v1", "CSIDriver", &o),
        Some(Object::CsiStorageCapacity(o)) => typed("storage.k8s.io/v1", "CSIStorageCapacity", &o),
        Some(Object::VolumeAttachment(o)) => typed("storage.k8s.io/v1", "VolumeAttachment", &o),
        Some(Object::NodeMetrics(o)) => typed("metrics.k8s.io/v1beta1", "NodeMetrics", &o),
        Some(Object::PodMetrics(o)) => typed("metrics.k8s.io/v1beta1", "PodMetrics", &o),
    }
}

/// A manifest that came as a `Struct`.
pub(super) fn structure(manifest: Struct) -> Source {
    let bytes = manifest.encoded_len();
    let (value, errors) = json(manifest);
    Source::Value { value, errors, bytes }
}

/// The JSON that a `Struct` stands for, and the numbers in it that may not be what the client wrote.
pub(super) fn json(structure: Struct) -> (Value, Vec<FieldError>) {
    let mut errors = Vec::new();
    (object(structure, &Path::Root, &mut errors), errors)
}

/// The way to a value; only written out for a mistake.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent @ Self::Field(_, map), key) if KEYED.contains(map) => write!(f, "{parent}[{key}]"),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, i) => write!(f, "{parent}[{i}]"),
        }
    }
}

fn object(structure: Struct, path: &Path<'_>, errors: &mut Vec<FieldError>) -> Value {
    let mut map = Map::new();
    for (name, field) in structure.fields {
        let value = value(field, &Path::Field(path, &name), errors);
        // null is absent.
        if !value.is_null() {
            map.insert(name, value);
        }
    }
    Value::Object(map)
}

fn value(value: prost_types::Value, path: &Path<'_>, errors: &mut Vec<FieldError>) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::StructValue(structure)) => object(structure, path, errors),
        Some(Kind::ListValue(ListValue { values })) => {
            let items = values.into_iter().enumerate();
            Value::Array(items.map(|(i, item)| self::value(item, &Path::Index(path, i), errors)).collect())
        }
        Some(Kind::NumberValue(number)) => match exact(number) {
            Ok(exact) => Value::Number(exact),
            Err(message) => {
                errors.push(FieldError { path: path.to_string(), message });
                // Still a number, so that the reader finds the other mistakes and not this one again.
                Value::Number(0.into())
            }
        },
    }
}

/// The number that the client meant.
fn exact(number: f64) -> Result<Number, String> {
    if number.fract() != 0.0 {
        // NaN too, which is no JSON.
        return Number::from_f64(number).ok_or_else(|| format!("Invalid value: {number}: must be a number"));
    }
    if number.abs() >= FIRST_INEXACT {
        return Err(format!(
            "Invalid value: {number:.0}: whole numbers of 2^53 and more are not exact in this form; quote it, or send \
             the object as manifest_json"
        ));
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53 as just checked")]
    Ok(Number::from(number as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(number: f64) -> prost_types::Value {
        prost_types::Value { kind: Some(Kind::NumberValue(number)) }
    }

    fn fields<const N: usize>(fields: [(&str, prost_types::Value); N]) -> Struct {
        Struct { fields: fields.map(|(name, value)| (name.to_owned(), value)).into() }
    }

    fn nested(structure: Struct) -> prost_types::Value {
        prost_types::Value { kind: Some(Kind::StructValue(structure)) }
    }

    fn converted(structure_: Struct) -> (Value, Vec<String>) {
        let Source::Value { value, errors, .. } = structure(structure_) else { panic!("a value") };
        (value, errors.into_iter().map(|e| e.to_string()).collect())
    }

    #[test]
    fn whole_numbers_are_integers_and_null_is_absent() {
        let null = prost_types::Value { kind: Some(Kind::NullValue(0)) };
        let list = ListValue { values: vec![number(1.0), null.clone(), number(-0.5)] };
        let list = prost_types::Value { kind: Some(Kind::ListValue(list)) };
        let (value, errors) = converted(fields([("a", number(3.0)), ("b", null), ("c", list), ("d", number(-0.0))]));
        assert_eq!(value, json!({"a": 3, "c": [1, null, -0.5], "d": 0}));
        assert!(errors.is_empty());
    }

    #[test]
    fn whole_numbers_that_a_double_can_not_hold_are_refused_with_their_paths() {
        let largest = 9_007_199_254_740_991.0;
        let (value, errors) = converted(fields([("ok", number(largest)), ("low", number(-largest))]));
        assert_eq!(
            (value, errors.len()),
            (json!({"ok": 9_007_199_254_740_991_i64, "low": -9_007_199_254_740_991_i64}), 0)
        );
        let item = nested(fields([("limits", nested(fields([("a.b/c", number(1e16))])))]));
        let list = prost_types::Value { kind: Some(Kind::ListValue(ListValue { values: vec![item] })) };
        let (_, errors) = converted(fields([("spec", nested(fields([("items", list), ("x", number(-1e300))])))]));
        assert_eq!(errors.len(), 2);
        assert!(errors[0].starts_with("spec.items[0].limits[a.b/c]: Invalid value: 10000000000000000: "), "{errors:?}");
        assert!(errors[0].ends_with("quote it, or send the object as manifest_json"), "{errors:?}");
    }

    #[test]
    fn what_json_can_not_say_is_refused() {
        let (_, errors) = converted(fields([("a", number(f64::NAN)), ("b", number(f64::INFINITY))]));
        assert_eq!(errors.len(), 2, "{errors:?}");
    }

    #[test]
    fn a_typed_message_reads_as_its_manifest() {
        let pod = pb::Pod {
            metadata: Some(pb::ObjectMeta { name: "a".into(), ..Default::default() }),
            spec: Some(pb::PodSpec { priority: Some(0), ..Default::default() }),
            status: None,
        };
        let Source::Value { value, .. } = typed("v1", "Pod", &pod) else { panic!("a value") };
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"priority": 0}})
        );
    }
}
