//! Pods made from the templates of workloads, wherever a pod is asked for.
//!
//! The pod is what the workload's controller would create next: the template's spec, labels and annotations, in the
//! namespace of the workload. Where only the controller could tell, the choice is fixed: the name is the workload's with
//! `-0` (StatefulSet) or `-pod`, and the controller owner is the workload itself, although a real pod of a Deployment
//! belongs to a ReplicaSet and one of a CronJob to a Job, whose names nobody knows yet.

use super::error::REQUIRED;
use super::kinds::Type;
use super::meta::{Generated, derived_uid, labels_and_annotations, name, namespace};
use super::names::subdomain_problem;
use super::pod::with_spec;
use super::reader::{Issues, Reader};
use crate::model::volume::{Volume, VolumeSource};
use crate::model::{ObjectMeta, OwnerReference, Pod, Str};

/// Where each kind of workload keeps its template.
const TEMPLATES: [(&str, &[&str]); 8] = [
    ("CronJob", &["spec", "jobTemplate", "spec", "template"]),
    ("DaemonSet", &["spec", "template"]),
    ("Deployment", &["spec", "template"]),
    ("Job", &["spec", "template"]),
    ("PodTemplate", &["template"]),
    ("ReplicaSet", &["spec", "template"]),
    ("ReplicationController", &["spec", "template"]),
    ("StatefulSet", &["spec", "template"]),
];

/// The way to the template; None: not a workload.
pub(super) fn template_path(kind: &str) -> Option<&'static [&'static str]> {
    TEMPLATES.iter().find(|(name, _)| *name == kind).map(|(_, path)| *path)
}

/// The kinds that a pod can be had from, sorted.
pub(super) fn accepted_kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).chain(["Pod"]).collect();
    kinds.sort_unstable();
    kinds
}

/// Reads the pod of a workload. What comes out is only good if there are no issues.
pub(super) fn pod_of(object: &Reader<'_>, workload: Type<'_>, path: &[&str], issues: &Issues) -> Pod {
    let (namespace, owner) = owner(object, workload);
    let suffix = if workload.kind == "StatefulSet" { "0" } else { "pod" };
    let pod_name = Str::from(format!("{}-{suffix}", owner.name));
    issues.warn(String::new(), format!("pod {pod_name} is made from the template of {} {}", owner.kind, owner.name));
    let meta = ObjectMeta {
        uid: derived_uid("Pod", &namespace, &pod_name),
        name: pod_name.clone(),
        namespace,
        owners: vec![owner],
        ..Default::default()
    };
    let mut pod = descend(object, path, |template| {
        let (labels, annotations) = template.object("metadata").map(|m| labels_and_annotations(&m)).unwrap_or_default();
        with_spec(template, ObjectMeta { labels, annotations, ..meta })
    })
    .unwrap_or_default();
    if workload.kind == "StatefulSet" {
        add_claims(object, &mut pod);
    }
    pod
}

fn owner(object: &Reader<'_>, workload: Type<'_>) -> (Str, OwnerReference) {
    let mut owner = OwnerReference {
        api_version: workload.api_version.into(),
        kind: workload.kind.into(),
        name: Str::default(),
        uid: Str::default(),
        controller: true,
    };
    let Some(r) = object.object("metadata") else {
        if !object.has("metadata") {
            object.error_in("metadata.name", REQUIRED);
        }
        return (Str::default(), owner);
    };
    owner.name = name(&r, Generated::Allowed, subdomain_problem);
    let namespace = namespace(&r);
    owner.uid = r.str("uid");
    if owner.uid.is_empty() {
        owner.uid = derived_uid(workload.kind, &namespace, &owner.name);
    }
    (namespace, owner)
}

/// Hands the object at the end of the path to `read`; reports the path if it isn't there.
fn descend<R>(r: &Reader<'_>, path: &[&str], read: impl FnOnce(&Reader<'_>) -> R) -> Option<R> {
    let [field, rest @ ..] = path else { return Some(read(r)) };
    match r.object(field) {
        Some(below) => descend(&below, rest, read),
        None => {
            if !r.has(field) {
                r.error_in(&path.join("."), REQUIRED);
            }
            None
        }
    }
}

/// The controller gives each pod of a StatefulSet a claim per `volumeClaimTemplates` entry, in place of a volume that has
/// the same name.
fn add_claims(object: &Reader<'_>, pod: &mut Pod) {
    let templates = object
        .object("spec")
        .and_then(|spec| spec.list("volumeClaimTemplates", |t| t.object("metadata").map(|m| m.required_str("name"))));
    for name in templates.unwrap_or_default() {
        let claim = Str::from(format!("{name}-{}", pod.meta.name));
        pod.spec.volumes.retain(|v| v.name != name);
        let source = VolumeSource::PersistentVolumeClaim { claim, read_only: false };
        pod.spec.volumes.push(Volume { name, source });
    }
}
