//! An object as a list of fields, under the names that Kubernetes gives them, so that a difference can say where it is.
//!
//! What is listed is the model: after defaulting, with quantities as numbers, and without what Berth doesn't read. Fields at
//! their default are left out. `metadata.uid` and `metadata.resourceVersion` aren't listed: they say which object it is and
//! which version of it, and are compared apart. Structs are taken apart by name, without `..`, so that a new field of the
//! model doesn't compile until it is listed.
//!
//! Only objects that differ get here: some microseconds each.

mod pod;
mod selectors;
mod storage;
mod writer;

use std::collections::BTreeMap;

use writer::{FieldWriter, list};

use crate::model::metrics::{NodeMetrics, PodMetrics};
use crate::model::pdb::IntOrPercent;
use crate::model::pod::PreemptionPolicy;
use crate::model::{
    ContainerImage, Namespace, Node, NodeCondition, Object, ObjectMeta, OwnerReference, PodDisruptionBudget,
    PriorityClass, ReplicaSet, ReplicationController, RuntimeClass, Service, StatefulSet, Str, Taint,
};

/// Values by path, such as `spec.nodeName` or `metadata.labels["app"]`.
pub(super) type Fields = BTreeMap<String, String>;

pub(super) fn fields(object: &Object) -> Fields {
    list(|w| {
        w.inside("metadata", |w| meta(w, object.meta()));
        match object {
            Object::Node(node) => self::node(w, node),
            Object::Pod(pod) => pod::pod(w, pod),
            Object::Namespace(o) => {
                let Namespace { meta: _ } = &**o;
            }
            Object::Service(o) => {
                let Service { meta: _, selector } = &**o;
                w.inside("spec", |w| w.some("selector", selector.as_ref(), FieldWriter::pairs_here));
            }
            Object::ReplicationController(o) => {
                let ReplicationController { meta: _, selector, replicas } = &**o;
                w.inside("spec", |w| {
                    w.some("selector", selector.as_ref(), FieldWriter::pairs_here);
                    w.value("replicas", replicas);
                });
            }
            Object::ReplicaSet(o) => {
                let ReplicaSet { meta: _, selector, replicas } = &**o;
                w.inside("spec", |w| {
                    selectors::label_selector(w, "selector", selector);
                    w.value("replicas", replicas);
                });
            }
            Object::StatefulSet(o) => {
                let StatefulSet { meta: _, selector, replicas } = &**o;
                w.inside("spec", |w| {
                    selectors::label_selector(w, "selector", selector);
                    w.value("replicas", replicas);
                });
            }
            Object::PodDisruptionBudget(o) => budget(w, o),
            Object::PriorityClass(o) => {
                let PriorityClass { meta: _, value, global_default, preemption_policy } = &**o;
                w.value("value", value);
                w.flag("globalDefault", *global_default);
                w.flag_as("preemptionPolicy", *preemption_policy == PreemptionPolicy::Never, "Never");
            }
            Object::RuntimeClass(o) => {
                let RuntimeClass { meta: _, overhead } = &**o;
                w.inside("overhead", |w| w.amounts("podFixed", overhead));
            }
            Object::PersistentVolume(o) => storage::volume(w, o),
            Object::PersistentVolumeClaim(o) => storage::claim(w, o),
            Object::StorageClass(o) => storage::class(w, o),
            Object::CsiNode(o) => storage::csi_node(w, o),
            Object::CsiDriver(o) => storage::csi_driver(w, o),
            Object::CsiStorageCapacity(o) => storage::capacity(w, o),
            Object::VolumeAttachment(o) => storage::attachment(w, o),
            Object::NodeMetrics(o) => {
                let NodeMetrics { meta: _, timestamp, usage } = &**o;
                w.time("timestamp", *timestamp);
                w.amounts("usage", usage);
            }
            Object::PodMetrics(o) => {
                let PodMetrics { meta: _, timestamp, containers } = &**o;
                w.time("timestamp", *timestamp);
                w.each("containers", containers, |w, (name, usage)| {
                    w.text("name", name);
                    w.amounts("usage", usage);
                });
            }
        }
    })
}

fn meta(w: &mut FieldWriter, meta: &ObjectMeta) {
    let ObjectMeta { name, namespace, uid: _, resource_version: _, labels, annotations, owners, created, deleted } =
        meta;
    w.text("name", name);
    w.text("namespace", namespace);
    w.pairs("labels", labels);
    w.pairs("annotations", annotations);
    w.each("ownerReferences", owners, |w, owner| {
        let OwnerReference { api_version, kind, name, uid, controller } = owner;
        w.text("apiVersion", api_version);
        w.text("kind", kind);
        w.text("name", name);
        w.text("uid", uid);
        w.flag("controller", *controller);
    });
    w.time("creationTimestamp", *created);
    w.time("deletionTimestamp", *deleted);
}

fn node(w: &mut FieldWriter, node: &Node) {
    // What is avoided is an annotation, and compared as one.
    let Node {
        meta: _,
        unschedulable,
        taints,
        allocatable,
        capacity,
        conditions,
        images,
        declared_features,
        avoided: _,
    } = node;
    w.inside("spec", |w| {
        w.flag("unschedulable", *unschedulable);
        w.each("taints", taints, |w, Taint { key, value, effect, added }| {
            w.text("key", key);
            w.text("value", value);
            w.text("effect", effect.as_str());
            w.time("timeAdded", *added);
        });
    });
    w.inside("status", |w| {
        w.amounts("allocatable", allocatable);
        w.amounts("capacity", capacity);
        w.each("conditions", conditions, |w, NodeCondition { kind, status }| {
            w.text("type", kind);
            w.text("status", status);
        });
        w.each("images", images, |w, ContainerImage { names, size_bytes }| {
            w.texts("names", names);
            w.value("sizeBytes", size_bytes);
        });
        w.texts("declaredFeatures", declared_features);
    });
}

fn budget(w: &mut FieldWriter, budget: &PodDisruptionBudget) {
    let PodDisruptionBudget {
        meta: _,
        selector,
        min_available,
        max_unavailable,
        always_allow_unhealthy,
        disruptions_allowed,
        current_healthy,
        desired_healthy,
        expected_pods,
        disrupted_pods,
    } = budget;
    let amount = |amount: &Option<IntOrPercent>| {
        amount.map(|amount| match amount {
            IntOrPercent::Int(number) => number.to_string(),
            IntOrPercent::Percent(number) => format!("{number}%"),
        })
    };
    w.inside("spec", |w| {
        selectors::label_selector(w, "selector", selector);
        w.option("minAvailable", amount(min_available));
        w.option("maxUnavailable", amount(max_unavailable));
        w.flag_as("unhealthyPodEvictionPolicy", *always_allow_unhealthy, "AlwaysAllow");
    });
    w.inside("status", |w| {
        w.value("disruptionsAllowed", disruptions_allowed);
        w.value("currentHealthy", current_healthy);
        w.value("desiredHealthy", desired_healthy);
        w.value("expectedPods", expected_pods);
        w.texts("disruptedPods", disrupted_pods);
    });
}

fn names<T>(items: &[T], name: impl Fn(&T) -> &'static str) -> Vec<Str> {
    items.iter().map(|item| Str::from(name(item))).collect()
}
