//! Kinds of change, and freed pods.

use super::object_ref;
use crate::api::pb;
use crate::engine::EventSet;
use crate::engine::events::{ActionType, EventResource};
use crate::model::Kind;
use crate::service::retries::FreedPod;

pub(super) fn events(set: EventSet) -> Vec<pb::ClusterEvent> {
    let event = |e: crate::engine::ClusterEvent| pb::ClusterEvent {
        resource: resource(e.resource).into(),
        action: action(e.action).into(),
    };
    set.iter().map(event).collect()
}

fn resource(resource: EventResource) -> pb::EventResource {
    match resource {
        EventResource::Node => pb::EventResource::Node,
        EventResource::AssignedPod => pb::EventResource::AssignedPod,
        EventResource::UnschedulablePod => pb::EventResource::UnschedulablePod,
        EventResource::PersistentVolume => pb::EventResource::PersistentVolume,
        EventResource::PersistentVolumeClaim => pb::EventResource::PersistentVolumeClaim,
        EventResource::StorageClass => pb::EventResource::StorageClass,
        EventResource::CsiNode => pb::EventResource::CsiNode,
        EventResource::CsiDriver => pb::EventResource::CsiDriver,
        EventResource::CsiStorageCapacity => pb::EventResource::CsiStorageCapacity,
        EventResource::VolumeAttachment => pb::EventResource::VolumeAttachment,
        EventResource::Namespace => pb::EventResource::Namespace,
        EventResource::Service => pb::EventResource::Service,
        EventResource::ReplicationController => pb::EventResource::ReplicationController,
        EventResource::ReplicaSet => pb::EventResource::ReplicaSet,
        EventResource::StatefulSet => pb::EventResource::StatefulSet,
        EventResource::Wildcard => pb::EventResource::Wildcard,
    }
}

fn action(action: ActionType) -> pb::ActionType {
    match action {
        ActionType::Add => pb::ActionType::Add,
        ActionType::Delete => pb::ActionType::Delete,
        ActionType::UpdateNodeAllocatable => pb::ActionType::UpdateNodeAllocatable,
        ActionType::UpdateNodeLabel => pb::ActionType::UpdateNodeLabel,
        ActionType::UpdateNodeTaint => pb::ActionType::UpdateNodeTaint,
        ActionType::UpdateNodeCondition => pb::ActionType::UpdateNodeCondition,
        ActionType::UpdateNodeAnnotation => pb::ActionType::UpdateNodeAnnotation,
        ActionType::UpdateNodeDeclaredFeature => pb::ActionType::UpdateNodeDeclaredFeature,
        ActionType::UpdatePodLabel => pb::ActionType::UpdatePodLabel,
        ActionType::UpdatePodScaleDown => pb::ActionType::UpdatePodScaleDown,
        ActionType::UpdatePodToleration => pb::ActionType::UpdatePodToleration,
        ActionType::UpdatePodSchedulingGatesEliminated => pb::ActionType::UpdatePodSchedulingGatesEliminated,
        ActionType::Update => pb::ActionType::Update,
        ActionType::All => pb::ActionType::All,
    }
}

pub(in crate::api) fn retry(freed: FreedPod) -> pb::Retry {
    pb::Retry {
        pod: Some(object_ref(Kind::Pod, &freed.pod.meta)),
        profile: freed.profile.to_string(),
        revision: freed.revision,
        events: events(freed.events),
    }
}
