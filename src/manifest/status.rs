//! `status` of a pod.
//!
//! Written by kubelets and controllers, not by people: amounts are taken as they are, and what isn't there is unset.

use super::reader::Reader;
use super::resources::{Rule, resource_list};
use crate::model::ResourceList;
use crate::model::pod_status::{ContainerState, ContainerStatus, Phase, PodCondition, PodStatus};

const PHASES: [(&str, Phase); 5] = [
    ("Failed", Phase::Failed),
    ("Pending", Phase::Pending),
    ("Running", Phase::Running),
    ("Succeeded", Phase::Succeeded),
    ("Unknown", Phase::Unknown),
];

pub(super) fn pod_status(object: &Reader<'_>) -> PodStatus {
    let Some(r) = object.object("status") else { return PodStatus::default() };
    PodStatus {
        phase: r.choice("phase", &PHASES).unwrap_or_default(),
        reason: r.str("reason"),
        nominated_node: r.str("nominatedNodeName"),
        started: r.time("startTime"),
        conditions: r.list("conditions", |c| Some(condition(c))).unwrap_or_default(),
        containers: r.list("containerStatuses", |c| Some(container(c))).unwrap_or_default(),
        init_containers: r.list("initContainerStatuses", |c| Some(container(c))).unwrap_or_default(),
        ephemeral_containers: r.list("ephemeralContainerStatuses", |c| Some(container(c))).unwrap_or_default(),
        resources: requests_in_force(&r),
        allocated_resources: resource_list(&r, "allocatedResources", Rule::Reported).unwrap_or_default(),
        qos_class: r.str("qosClass"),
    }
}

/// `resources.requests`; None when `resources` itself is null, which isn't the same as no requests.
fn requests_in_force(r: &Reader<'_>) -> Option<ResourceList> {
    let resources = r.object("resources")?;
    Some(resource_list(&resources, "requests", Rule::Reported).unwrap_or_default())
}

fn condition(r: &Reader<'_>) -> PodCondition {
    PodCondition {
        kind: r.str("type"),
        status: r.str("status"),
        reason: r.str("reason"),
        last_transition: r.time("lastTransitionTime"),
    }
}

fn container(r: &Reader<'_>) -> ContainerStatus {
    ContainerStatus {
        name: r.str("name"),
        restart_count: r.int32("restartCount").unwrap_or(0),
        ready: r.flag("ready").unwrap_or(false),
        image_id: r.str("imageID"),
        state: state(r, "state"),
        last_state: state(r, "lastState"),
        requests: requests_in_force(r),
        allocated: resource_list(r, "allocatedResources", Rule::Reported).unwrap_or_default(),
    }
}

fn state(parent: &Reader<'_>, field: &str) -> ContainerState {
    let Some(r) = parent.object(field) else { return ContainerState::Unset };
    if let Some(terminated) = r.object("terminated") {
        return ContainerState::Terminated {
            reason: terminated.str("reason"),
            exit_code: terminated.int32("exitCode").unwrap_or(0),
            finished: terminated.time("finishedAt"),
        };
    }
    if let Some(running) = r.object("running") {
        return ContainerState::Running { started: running.time("startedAt") };
    }
    r.object("waiting").map_or(ContainerState::Unset, |w| ContainerState::Waiting { reason: w.str("reason") })
}
