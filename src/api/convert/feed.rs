//! Batches and acks.

use super::object::{any_typed, pod_source, structure, typed};
use super::{micros, warning};
use crate::api::pb;
use crate::api::pb::feed_control::Control as PbControl;
use crate::api::pb::{node_event, object_event, pod_event};
use crate::service::feed::{
    Ack, Assume, AssumedBinding, Batch, Control, Event, ItemRejection, ItemWarning, Reference, RejectionCode,
};
use crate::service::source::Source;

pub(in crate::api) fn nodes(request: pb::UpdateNodesRequest) -> Batch {
    let event = |event: pb::NodeEvent| match event.event {
        None => Event::Upsert(Source::Absent),
        Some(node_event::Event::Node(node)) => Event::Upsert(typed("v1", "Node", &node)),
        Some(node_event::Event::Manifest(manifest)) => Event::Upsert(structure(manifest)),
        Some(node_event::Event::ManifestJson(json)) => Event::Upsert(Source::Json(json)),
        Some(node_event::Event::Delete(object)) => Event::Delete(reference(object)),
    };
    batch(request.sequence, request.events, request.control, event)
}

pub(in crate::api) fn pods(request: pb::UpdatePodsRequest) -> Batch {
    let event = |event: pb::PodEvent| match event.event {
        None => Event::Upsert(Source::Absent),
        Some(pod_event::Event::Pod(pod)) => Event::Upsert(typed("v1", "Pod", &pod)),
        Some(pod_event::Event::Manifest(manifest)) => Event::Upsert(structure(manifest)),
        Some(pod_event::Event::ManifestJson(json)) => Event::Upsert(Source::Json(json)),
        Some(pod_event::Event::Delete(object)) => Event::Delete(reference(object)),
        Some(pod_event::Event::Assume(assume)) => Event::Assume(Assume {
            pod: pod_source(assume.pod),
            node: assume.node,
            ttl_micros: assume.ttl.as_ref().map(micros),
            reservation_id: assume.reservation_id,
            bindings: assume.volume_bindings.into_iter().map(assumed_binding).collect(),
        }),
    };
    batch(request.sequence, request.events, request.control, event)
}

pub(in crate::api) fn objects(request: pb::UpdateObjectsRequest) -> Batch {
    let event = |event: pb::ObjectEvent| match event.event {
        None => Event::Upsert(Source::Absent),
        Some(object_event::Event::Object(object)) => Event::Upsert(any_typed(object)),
        Some(object_event::Event::Manifest(manifest)) => Event::Upsert(structure(manifest)),
        Some(object_event::Event::ManifestJson(json)) => Event::Upsert(Source::Json(json)),
        Some(object_event::Event::Delete(object)) => Event::Delete(reference(object)),
    };
    batch(request.sequence, request.events, request.control, event)
}

fn batch<E>(sequence: u64, events: Vec<E>, control: Option<pb::FeedControl>, event: impl Fn(E) -> Event) -> Batch {
    let control = control.and_then(|control| control.control).map(|control| match control {
        PbControl::Hello(pb::Hello { source, epoch, incarnation }) => Control::Hello { source, epoch, incarnation },
        PbControl::SnapshotBegin(pb::SnapshotBegin { kinds }) => Control::SnapshotBegin { kinds },
        PbControl::SnapshotEnd(pb::SnapshotEnd {}) => Control::SnapshotEnd,
        PbControl::Bookmark(pb::Bookmark {}) => Control::Bookmark,
    });
    Batch { sequence, events: events.into_iter().map(event).collect(), control }
}

fn assumed_binding(binding: pb::VolumeBinding) -> AssumedBinding {
    let pb::VolumeBinding { namespace, claim, volume } = binding;
    AssumedBinding { namespace, claim, volume }
}

fn reference(object: pb::ObjectRef) -> Reference {
    let pb::ObjectRef { kind, namespace, name, uid } = object;
    Reference { kind, namespace, name, uid }
}

fn object(reference: Reference) -> pb::ObjectRef {
    let Reference { kind, namespace, name, uid } = reference;
    pb::ObjectRef { kind, namespace, name, uid }
}

pub(in crate::api) fn ack(ack: Ack) -> pb::FeedAck {
    pb::FeedAck {
        sequence: ack.sequence,
        revision: ack.revision,
        incarnation: ack.incarnation.to_string(),
        applied: ack.applied,
        stale: ack.stale,
        removed: ack.removed,
        rejections: ack.rejections.into_iter().map(rejection).collect(),
        warnings: ack.warnings.into_iter().map(remark).collect(),
        omitted: ack.omitted,
    }
}

pub(super) fn remark(item: ItemWarning) -> pb::ItemWarning {
    pb::ItemWarning {
        sequence: item.sequence,
        index: super::count(item.index),
        object: Some(object(item.object)),
        warning: Some(warning(item.warning)),
    }
}

pub(super) fn rejection(item: ItemRejection) -> pb::ItemRejection {
    let code = match item.code {
        RejectionCode::Malformed => pb::RejectionCode::Malformed,
        RejectionCode::Invalid => pb::RejectionCode::Invalid,
        RejectionCode::WrongKind => pb::RejectionCode::WrongKind,
        RejectionCode::TooLarge => pb::RejectionCode::TooLarge,
        RejectionCode::MissingUid => pb::RejectionCode::MissingUid,
        RejectionCode::UnknownNode => pb::RejectionCode::UnknownNode,
        RejectionCode::Conflict => pb::RejectionCode::Conflict,
    };
    let violations = item.errors.into_iter().map(|e| pb::FieldViolation { field: e.path, description: e.message });
    pb::ItemRejection {
        sequence: item.sequence,
        index: super::count(item.index),
        object: Some(object(item.object)),
        code: code.into(),
        message: item.message,
        violations: violations.collect(),
    }
}
