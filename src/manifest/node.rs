//! Nodes.

use super::Options;
use super::meta::meta;
use super::near_miss;
use super::reader::{Reader, str_of};
use super::resources::{Rule, resource_list};
use super::taints::taint;
use crate::model::node::{AvoidedController, PREFER_AVOID_PODS};
use crate::model::{ContainerImage, Kind, Node, NodeCondition};

pub(super) fn node(object: &Reader<'_>, options: Options) -> Node {
    object.known(&near_miss::OBJECT);
    let mut node = Node { meta: meta(object, Kind::Node, options), ..Default::default() };
    node.avoided = node.meta.annotations.get(PREFER_AVOID_PODS).map(|text| avoided(text)).unwrap_or_default();
    if let Some(r) = object.object("spec") {
        r.known(&near_miss::NODE_SPEC);
        node.unschedulable = r.flag("unschedulable").unwrap_or(false);
        node.taints = r.list("taints", taint).unwrap_or_default();
    }
    if let Some(r) = object.object("status") {
        r.known(&near_miss::NODE_STATUS);
        let allocatable = resource_list(&r, "allocatable", Rule::Offered);
        node.capacity = resource_list(&r, "capacity", Rule::Offered).unwrap_or_default();
        if !r.has("allocatable") && !node.capacity.is_empty() {
            r.warn_in("allocatable", "absent; the node offers nothing (capacity isn't what pods can have)");
        }
        node.allocatable = allocatable.unwrap_or_default();
        let conditions = r.list("conditions", |c| Some(NodeCondition { kind: c.str("type"), status: c.str("status") }));
        node.conditions = conditions.unwrap_or_default();
        node.images = r.list("images", |i| Some(image(i))).unwrap_or_default();
        node.declared_features = r.texts("declaredFeatures");
    }
    node
}

fn image(r: &Reader<'_>) -> ContainerImage {
    ContainerImage { names: r.texts("names"), size_bytes: r.integer("sizeBytes").unwrap_or(0) }
}

/// The annotation is JSON in a string. Upstream takes one that it can't read for none, and so does this.
fn avoided(annotation: &str) -> Vec<AvoidedController> {
    let Ok(avoid) = serde_json::from_str::<serde_json::Value>(annotation) else { return Vec::new() };
    let entries = avoid.get("preferAvoidPods").and_then(|list| list.as_array()).into_iter().flatten();
    let controllers = entries.filter_map(|entry| {
        let controller = entry.get("podSignature")?.get("podController")?;
        let text = |field: &str| Some(str_of(controller.get(field)?.as_str()?));
        Some(AvoidedController { kind: text("kind")?, uid: text("uid")? })
    });
    controllers.collect()
}
