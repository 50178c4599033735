//! Nodes.

use super::Options;
use super::meta::meta;
use super::near_miss;
use super::reader::Reader;
use super::resources::{Rule, resource_list};
use super::taints::taint;
use crate::model::{ContainerImage, Kind, Node, NodeCondition};

pub(super) fn node(object: &Reader<'_>, options: Options) -> Node {
    object.known(&near_miss::OBJECT);
    let mut node = Node { meta: meta(object, Kind::Node, options), ..Default::default() };
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
