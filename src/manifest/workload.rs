//! Services and pod owners, as far as default topology spreading reads them.

use super::Options;
use super::meta::{labels, meta};
use super::reader::Reader;
use super::selectors::selector;
use crate::model::{Kind, LabelSelector, ReplicaSet, ReplicationController, Service, StatefulSet};

pub(super) fn service(object: &Reader<'_>, options: Options) -> Service {
    let meta = meta(object, Kind::Service, options);
    Service { meta, selector: object.object("spec").and_then(|r| labels(&r, "selector")) }
}

pub(super) fn replication_controller(object: &Reader<'_>, options: Options) -> ReplicationController {
    let meta = meta(object, Kind::ReplicationController, options);
    let spec = object.object("spec");
    let selector = spec.as_ref().and_then(|r| labels(r, "selector"));
    ReplicationController { meta, selector, replicas: replicas(spec.as_ref()) }
}

pub(super) fn replica_set(object: &Reader<'_>, options: Options) -> ReplicaSet {
    let meta = meta(object, Kind::ReplicaSet, options);
    let (selector, replicas) = selector_and_replicas(object);
    ReplicaSet { meta, selector, replicas }
}

pub(super) fn stateful_set(object: &Reader<'_>, options: Options) -> StatefulSet {
    let meta = meta(object, Kind::StatefulSet, options);
    let (selector, replicas) = selector_and_replicas(object);
    StatefulSet { meta, selector, replicas }
}

fn selector_and_replicas(object: &Reader<'_>) -> (LabelSelector, i32) {
    let spec = object.object("spec");
    (spec.as_ref().map(|r| selector(r, "selector")).unwrap_or_default(), replicas(spec.as_ref()))
}

/// One replica is the API server's default.
fn replicas(spec: Option<&Reader<'_>>) -> i32 {
    spec.and_then(|r| r.int32("replicas")).unwrap_or(1)
}
