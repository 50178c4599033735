//! Pods: `spec`, and the parts put together.

use super::Options;
use super::affinity::{affinity, topology_spread};
use super::containers::{Sort, containers};
use super::defaulting::pod_level_requests;
use super::error::{REQUIRED, invalid};
use super::meta::{labels, meta};
use super::names::qualified_name_problem;
use super::near_miss;
use super::reader::Reader;
use super::resources::{Defaulting, Rule, check_names, requirements, resource_list};
use super::shared::shared;
use super::status::pod_status;
use super::taints::toleration;
use super::volumes::volumes;
use crate::model::pod::{PodSpec, PreemptionPolicy};
use crate::model::{Kind, ObjectMeta, Pod, Str};

const DEFAULT_SCHEDULER: &str = "default-scheduler";

pub(super) const PREEMPTION_POLICIES: [(&str, PreemptionPolicy); 2] =
    [("Never", PreemptionPolicy::Never), ("PreemptLowerPriority", PreemptionPolicy::PreemptLowerPriority)];

pub(super) fn pod(object: &Reader<'_>, options: Options) -> Pod {
    object.known(&near_miss::OBJECT);
    let meta = meta(object, Kind::Pod, options);
    let mut pod = with_spec(object, meta);
    pod.status = pod_status(object);
    let status = &pod.status;
    let in_force = status.containers.iter().chain(&status.init_containers);
    let in_force = in_force.flat_map(|c| c.requests.iter().chain([&c.allocated]));
    let in_force = in_force.chain(status.resources.iter()).chain([&status.allocated_resources]);
    check_names(object, "status", in_force);
    pod
}

/// A pod of the given metadata and the `spec` of an object or template.
pub(super) fn with_spec(parent: &Reader<'_>, meta: ObjectMeta) -> Pod {
    let mut pod = Pod { meta, ..Default::default() };
    let Some(r) = parent.object("spec") else {
        if !parent.has("spec") {
            parent.error_in("spec.containers", REQUIRED);
        }
        return pod;
    };
    r.known(&near_miss::POD_SPEC);
    let host_network = r.flag("hostNetwork").unwrap_or(false);
    let regular = containers(&r, "containers", Sort::Regular, host_network, &[]);
    if r.any("containers").is_none_or(|list| list.value().as_array().is_some_and(Vec::is_empty)) {
        r.required("containers");
    }
    let init = containers(&r, "initContainers", Sort::Init, host_network, &regular);
    pod.spec = PodSpec {
        node_name: r.str("nodeName"),
        scheduler_name: shared(r.text("schedulerName").filter(|n| !n.is_empty()).unwrap_or(DEFAULT_SCHEDULER)),
        priority: r.int32("priority"),
        priority_class: r.str("priorityClassName"),
        preemption_policy: r.choice("preemptionPolicy", &PREEMPTION_POLICIES).unwrap_or_default(),
        containers: regular,
        init_containers: init,
        resources: requirements(&r, Defaulting::Later),
        overhead: resource_list(&r, "overhead", Rule::Asked).unwrap_or_default(),
        runtime_class: r.str("runtimeClassName"),
        node_selector: labels(&r, "nodeSelector"),
        affinity: affinity(&r, &pod.meta.labels),
        tolerations: r.list("tolerations", toleration).unwrap_or_default(),
        topology_spread: topology_spread(&r, &pod.meta.labels),
        volumes: volumes(&r),
        scheduling_gates: r.list("schedulingGates", |g| Some(gate(g))).unwrap_or_default(),
        resource_claims: r.list("resourceClaims", |c| Some(c.required_str("name"))).unwrap_or_default(),
        host_network,
        own_user_namespace: r.flag("hostUsers") == Some(false),
        termination_grace_period_seconds: r.integer("terminationGracePeriodSeconds"),
        pod_group: r.object("schedulingGroup").map(|g| g.str("podGroupName")).unwrap_or_default(),
    };
    let spec = &pod.spec;
    let containers = spec.containers.iter().chain(&spec.init_containers).map(|c| &c.resources);
    let asked = containers.chain(&spec.resources).flat_map(|r| [&r.requests, &r.limits]).chain([&spec.overhead]);
    check_names(parent, "spec", asked);
    pod_level_requests(&mut pod);
    pod
}

fn gate(r: &Reader<'_>) -> Str {
    let name = r.required_str("name");
    if !name.is_empty()
        && let Some(problem) = qualified_name_problem(&name)
    {
        r.error_in("name", invalid(&name, problem));
    }
    name
}
