//! Usage of nodes and pods. Amounts keep their nano units: nothing stores them in whole thousandths.

use super::Options;
use super::meta::meta;
use super::reader::Reader;
use super::resources::is_too_long;
use super::shared::shared;
use crate::model::metrics::{NodeMetrics, PodMetrics};
use crate::model::{Kind, ResourceList};

pub(super) fn node_metrics(object: &Reader<'_>, options: Options) -> NodeMetrics {
    NodeMetrics {
        meta: meta(object, Kind::NodeMetrics, options),
        timestamp: object.time("timestamp"),
        usage: usage(object),
    }
}

pub(super) fn pod_metrics(object: &Reader<'_>, options: Options) -> PodMetrics {
    PodMetrics {
        meta: meta(object, Kind::PodMetrics, options),
        timestamp: object.time("timestamp"),
        containers: object.list("containers", |c| Some((c.required_str("name"), usage(c)))).unwrap_or_default(),
    }
}

fn usage(r: &Reader<'_>) -> ResourceList {
    let mut list = ResourceList::new();
    if is_too_long(r, "usage") {
        return list;
    }
    r.entries("usage", |name, value| {
        if let Some(quantity) = value.as_quantity() {
            list.insert(shared(name), quantity);
        }
    });
    list
}
