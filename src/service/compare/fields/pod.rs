//! Pods.

use super::selectors;
use super::writer::FieldWriter;
use crate::model::pod::{PodSpec, PreemptionPolicy};
use crate::model::pod_status::{ContainerState, ContainerStatus, PodCondition, PodStatus};
use crate::model::taint::TolerationOperator;
use crate::model::topology_spread::{InclusionPolicy, WhenUnsatisfiable};
use crate::model::volume::{Volume, VolumeSource};
use crate::model::{
    Affinity, Container, ContainerPort, Effect, NodeAffinity, Pod, PodAffinity, PodAffinityTerm, PreferredNodeTerm,
    ResourceRequirements, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn pod(w: &mut FieldWriter, pod: &Pod) {
    let Pod { meta: _, spec, status } = pod;
    w.inside("spec", |w| self::spec(w, spec));
    w.inside("status", |w| self::status(w, status));
}

fn spec(w: &mut FieldWriter, spec: &PodSpec) {
    let PodSpec {
        node_name,
        scheduler_name,
        priority,
        priority_class,
        preemption_policy,
        containers,
        init_containers,
        resources,
        overhead,
        runtime_class,
        node_selector,
        affinity,
        tolerations,
        topology_spread,
        volumes,
        scheduling_gates,
        resource_claims,
        host_network,
        own_user_namespace,
        termination_grace_period_seconds,
        pod_group,
    } = spec;
    w.text("nodeName", node_name);
    w.text("schedulerName", scheduler_name);
    w.option("priority", *priority);
    w.text("priorityClassName", priority_class);
    w.flag_as("preemptionPolicy", *preemption_policy == PreemptionPolicy::Never, "Never");
    w.each("containers", containers, container);
    w.each("initContainers", init_containers, container);
    w.some("resources", resources.as_ref(), requirements);
    w.amounts("overhead", overhead);
    w.text("runtimeClassName", runtime_class);
    w.some("nodeSelector", node_selector.as_ref(), FieldWriter::pairs_here);
    w.inside("affinity", |w| self::affinity(w, affinity));
    w.each("tolerations", tolerations, toleration);
    w.each("topologySpreadConstraints", topology_spread, spread);
    w.each("volumes", volumes, volume);
    w.texts("schedulingGates", scheduling_gates);
    w.texts("resourceClaims", resource_claims);
    w.flag("hostNetwork", *host_network);
    w.flag_as("hostUsers", *own_user_namespace, "false");
    w.option("terminationGracePeriodSeconds", *termination_grace_period_seconds);
    w.text("schedulingGroup.podGroupName", pod_group);
}

fn container(w: &mut FieldWriter, container: &Container) {
    let Container { name, image, resources, ports, restart_always, restarts_all_containers } = container;
    w.text("name", name);
    w.text("image", image);
    w.inside("resources", |w| requirements(w, resources));
    w.each("ports", ports, |w, ContainerPort { container_port, host_port, protocol, host_ip }| {
        w.value("containerPort", container_port);
        w.value("hostPort", host_port);
        w.text("protocol", protocol);
        w.text("hostIP", host_ip);
    });
    w.flag_as("restartPolicy", *restart_always, "Always");
    w.flag_as("restartPolicyRules", *restarts_all_containers, "RestartAllContainers");
}

fn requirements(w: &mut FieldWriter, ResourceRequirements { requests, limits }: &ResourceRequirements) {
    w.amounts("requests", requests);
    w.amounts("limits", limits);
}

fn affinity(w: &mut FieldWriter, Affinity { node, pod, pod_anti }: &Affinity) {
    w.some("nodeAffinity", node.as_ref(), |w, NodeAffinity { required, preferred }| {
        w.some(REQUIRED, required.as_ref(), selectors::node_selector);
        if preferred.as_ref().is_some_and(Vec::is_empty) {
            w.value(PREFERRED, "[]");
        }
        w.each(PREFERRED, preferred.iter().flatten(), |w, PreferredNodeTerm { weight, term }| {
            w.value("weight", weight);
            w.inside("preference", |w| selectors::term(w, term));
        });
    });
    w.some("podAffinity", pod.as_ref(), pod_affinity);
    w.some("podAntiAffinity", pod_anti.as_ref(), pod_affinity);
}

fn pod_affinity(w: &mut FieldWriter, PodAffinity { required, preferred }: &PodAffinity) {
    w.each(REQUIRED, required, pod_term);
    w.each(PREFERRED, preferred, |w, WeightedPodAffinityTerm { weight, term }| {
        w.value("weight", weight);
        w.inside("podAffinityTerm", |w| pod_term(w, term));
    });
}

fn pod_term(w: &mut FieldWriter, term: &PodAffinityTerm) {
    let PodAffinityTerm { selector, namespaces, namespace_selector, topology_key } = term;
    selectors::label_selector(w, "labelSelector", selector);
    w.texts("namespaces", namespaces);
    if let Some(selector) = namespace_selector {
        selectors::label_selector(w, "namespaceSelector", selector);
    }
    w.text("topologyKey", topology_key);
}

fn toleration(w: &mut FieldWriter, Toleration { key, op, value, effect, seconds }: &Toleration) {
    w.text("key", key);
    let op = match op {
        TolerationOperator::Equal => "Equal",
        TolerationOperator::Exists => "Exists",
        TolerationOperator::Gt => "Gt",
        TolerationOperator::Lt => "Lt",
    };
    w.text("operator", op);
    w.text("value", value);
    w.option("effect", effect.map(Effect::as_str));
    w.option("tolerationSeconds", *seconds);
}

fn spread(w: &mut FieldWriter, constraint: &TopologySpreadConstraint) {
    let TopologySpreadConstraint {
        max_skew,
        topology_key,
        when_unsatisfiable,
        selector,
        min_domains,
        node_affinity_policy,
        node_taints_policy,
        match_label_keys,
    } = constraint;
    w.value("maxSkew", max_skew);
    w.text("topologyKey", topology_key);
    let when = match when_unsatisfiable {
        WhenUnsatisfiable::DoNotSchedule => "DoNotSchedule",
        WhenUnsatisfiable::ScheduleAnyway => "ScheduleAnyway",
    };
    w.text("whenUnsatisfiable", when);
    selectors::label_selector(w, "labelSelector", selector);
    w.value("minDomains", min_domains);
    let policy = |policy: InclusionPolicy| match policy {
        InclusionPolicy::Honor => "Honor",
        InclusionPolicy::Ignore => "Ignore",
    };
    w.text("nodeAffinityPolicy", policy(*node_affinity_policy));
    w.text("nodeTaintsPolicy", policy(*node_taints_policy));
    w.texts("matchLabelKeys", match_label_keys);
}

fn volume(w: &mut FieldWriter, Volume { name, source }: &Volume) {
    w.text("name", name);
    let mut disk = |kind: &str, field: &str, id: &str, read_only: bool| {
        w.inside(kind, |w| {
            w.value(field, id);
            w.flag("readOnly", read_only);
        });
    };
    match source {
        VolumeSource::PersistentVolumeClaim { claim, read_only } => {
            disk("persistentVolumeClaim", "claimName", claim, *read_only);
        }
        VolumeSource::GcePersistentDisk { pd_name, read_only } => {
            disk("gcePersistentDisk", "pdName", pd_name, *read_only);
        }
        VolumeSource::AwsElasticBlockStore { volume_id, read_only } => {
            disk("awsElasticBlockStore", "volumeID", volume_id, *read_only);
        }
        VolumeSource::AzureDisk { disk_name } => disk("azureDisk", "diskName", disk_name, false),
        VolumeSource::Cinder { volume_id } => disk("cinder", "volumeID", volume_id, false),
        VolumeSource::Portworx { volume_id } => disk("portworxVolume", "volumeID", volume_id, false),
        VolumeSource::Iscsi { iqn, read_only } => disk("iscsi", "iqn", iqn, *read_only),
        VolumeSource::Rbd { monitors, pool, image, read_only } => {
            disk("rbd", "image", image, *read_only);
            w.inside("rbd", |w| {
                w.text("pool", pool);
                w.texts("monitors", monitors);
            });
        }
        VolumeSource::Csi { driver } => disk("csi", "driver", driver, false),
        VolumeSource::Image { reference } => disk("image", "reference", reference, false),
        VolumeSource::Ephemeral => w.value("ephemeral", "{}"),
        VolumeSource::EmptyDir => w.value("emptyDir", "{}"),
        VolumeSource::HostPath => w.value("hostPath", "{}"),
        VolumeSource::Other => {}
    }
}

fn status(w: &mut FieldWriter, status: &PodStatus) {
    let PodStatus {
        phase,
        reason,
        nominated_node,
        started,
        conditions,
        containers,
        init_containers,
        ephemeral_containers,
        resources,
        allocated_resources,
        qos_class,
    } = status;
    w.text("phase", phase.as_str());
    w.text("reason", reason);
    w.text("nominatedNodeName", nominated_node);
    w.time("startTime", *started);
    w.each("conditions", conditions, |w, PodCondition { kind, status, reason, last_transition }| {
        w.text("type", kind);
        w.text("status", status);
        w.text("reason", reason);
        w.time("lastTransitionTime", *last_transition);
    });
    w.each("containerStatuses", containers, container_status);
    w.each("initContainerStatuses", init_containers, container_status);
    w.each("ephemeralContainerStatuses", ephemeral_containers, container_status);
    w.inside("resources", |w| w.some("requests", resources.as_ref(), FieldWriter::amounts_here));
    w.amounts("allocatedResources", allocated_resources);
    w.text("qosClass", qos_class);
}

fn container_status(w: &mut FieldWriter, status: &ContainerStatus) {
    let ContainerStatus { name, restart_count, ready, image_id, state, last_state, requests, allocated } = status;
    w.text("name", name);
    w.value("restartCount", restart_count);
    w.flag("ready", *ready);
    w.text("imageID", image_id);
    w.inside("state", |w| container_state(w, state));
    w.inside("lastState", |w| container_state(w, last_state));
    w.inside("resources", |w| w.some("requests", requests.as_ref(), FieldWriter::amounts_here));
    w.amounts("allocatedResources", allocated);
}

fn container_state(w: &mut FieldWriter, state: &ContainerState) {
    match state {
        ContainerState::Unset => {}
        ContainerState::Waiting { reason } => w.some("waiting", Some(reason), |w, reason| w.text("reason", reason)),
        ContainerState::Running { started } => {
            w.some("running", Some(started), |w, started| w.time("startedAt", *started));
        }
        ContainerState::Terminated { reason, exit_code, finished } => w.some("terminated", Some(()), |w, ()| {
            w.text("reason", reason);
            w.value("exitCode", exit_code);
            w.time("finishedAt", *finished);
        }),
    }
}
