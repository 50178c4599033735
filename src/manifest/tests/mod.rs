//! What manifests become, rule by rule. One file a topic; this one holds what they share.

mod defaults;
mod errors;
mod fields;
mod kinds;
mod templates;
mod text;

use serde_json::{Value, json};

use super::{Options, object};
use crate::model::{Node, Object, Pod};

fn lines(error: &super::ManifestError) -> Vec<String> {
    error.errors.iter().map(ToString::to_string).collect()
}

/// The mistakes of an object, a line each; empty when it is good.
fn mistakes(value: &Value) -> Vec<String> {
    object(value, Options::default()).err().map(|e| lines(&e)).unwrap_or_default()
}

/// The warnings of a good object that aren't about its uid.
fn warnings(value: &Value) -> Vec<String> {
    let parsed = object(value, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    parsed.warnings.iter().map(ToString::to_string).filter(|w| !w.starts_with("metadata.uid")).collect()
}

fn pod(value: &Value) -> Pod {
    match object(value, Options::default()).unwrap_or_else(|e| panic!("{e}")).value {
        Object::Pod(pod) => (*pod).clone(),
        other => panic!("{other:?}"),
    }
}

fn node(value: &Value) -> Node {
    match object(value, Options::default()).unwrap_or_else(|e| panic!("{e}")).value {
        Object::Node(node) => (*node).clone(),
        other => panic!("{other:?}"),
    }
}

/// A pod with one container and these further fields of its spec.
fn pod_with(spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "uid": "u1", "labels": {"app": "web", "version": "v2"}},
        "spec": {"containers": [{"name": "main"}]},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// A pod whose only container has these further fields.
fn pod_with_container(container: &Value) -> Value {
    let mut pod = pod_with(&json!({}));
    for (field, value) in container.as_object().into_iter().flatten() {
        pod["spec"]["containers"][0][field] = value.clone();
    }
    pod
}

fn node_with(fields: &Value) -> Value {
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    for (field, value) in fields.as_object().into_iter().flatten() {
        node[field] = value.clone();
    }
    node
}
