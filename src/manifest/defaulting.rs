//! What the API server does to the fields of a pod before a scheduler sees it, as far as it takes more than one field
//! (spec section 1.3; the simple defaults stand where their field is read).
//!
//! All of it is idempotent: objects that an API server has defaulted pass unchanged. Taints, tolerations and conditions are
//! never invented. Priority and overhead need other objects, so they are a step of their own, [`apply_classes`], for the
//! moment when those are known.

use super::error::{Cut, Warning};
use super::selectors::SelectorParts;
use crate::model::pod::PreemptionPolicy;
use crate::model::priority_class::built_in_value;
use crate::model::requests;
use crate::model::resources::{CPU, MEMORY};
use crate::model::selector::{Operator, Requirement};
use crate::model::{Labels, Pod, ResourceList, Str};

/// Where PriorityClasses and RuntimeClasses are looked up; the cluster cache in the service, a map in tests.
pub trait Classes {
    /// The value and preemption policy of a PriorityClass. None: there is no such class.
    fn priority(&self, name: &str) -> Option<(i32, PreemptionPolicy)>;
    /// Those of the class with `globalDefault: true`, if any.
    fn default_priority(&self) -> Option<(i32, PreemptionPolicy)>;
    /// `overhead.podFixed` of a RuntimeClass. None: no such class, or it has no overhead.
    fn overhead(&self, runtime_class: &str) -> Option<ResourceList>;
}

/// Fills in what admission takes from classes: the priority where it is null, the overhead where it is empty and the pod
/// names a runtime class. A pod that has them keeps them.
pub fn apply_classes(pod: &mut Pod, classes: &dyn Classes, warnings: &mut Vec<Warning>) {
    let spec = &mut pod.spec;
    if spec.priority.is_none() {
        let name = &*spec.priority_class;
        let class = if name.is_empty() {
            classes.default_priority()
        } else {
            let built_in = || built_in_value(name).map(|value| (value, PreemptionPolicy::PreemptLowerPriority));
            let class = classes.priority(name).or_else(built_in);
            if class.is_none() {
                warnings.push(Warning {
                    path: "spec.priorityClassName".to_owned(),
                    message: format!("no PriorityClass \"{}\" is known; the priority counts as 0", Cut(name)),
                });
            }
            class
        };
        if let Some((value, policy)) = class {
            spec.priority = Some(value);
            // Admission refuses a pod whose own policy contradicts its class; a pod that asks for less is left its wish.
            if policy == PreemptionPolicy::Never {
                spec.preemption_policy = policy;
            }
        }
    }
    if spec.overhead.is_empty() && !spec.runtime_class.is_empty() {
        spec.overhead = classes.overhead(&spec.runtime_class).unwrap_or_default();
    }
}

/// With pod-level limits, absent pod-level requests become what the containers ask for together, or else the limit.
pub(super) fn pod_level_requests(pod: &mut Pod) {
    let Some(resources) = &pod.spec.resources else { return };
    if resources.limits.is_empty() {
        return;
    }
    let of_containers = requests::of_containers(pod);
    let Some(resources) = &mut pod.spec.resources else { return };
    for name in [CPU, MEMORY] {
        if let Some(sum) = of_containers.get(name) {
            resources.requests.entry(Str::from(name)).or_insert(*sum);
        }
    }
    for (name, limit) in &resources.limits {
        if requests::is_pod_level(name) {
            resources.requests.entry(name.clone()).or_insert(*limit);
        }
    }
}

/// `matchLabelKeys` or `mismatchLabelKeys`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyMerge {
    Match,
    Mismatch,
}

impl KeyMerge {
    fn requirement(self, key: &Str, value: &Str) -> Requirement {
        let values = vec![value.clone()];
        let op = if self == Self::Match { Operator::In(values) } else { Operator::NotIn(values) };
        Requirement { key: key.clone(), op }
    }

    /// What the keys ask for, given the pod's own labels. Keys that the pod lacks ask for nothing.
    pub(super) fn requirements(self, keys: &[Str], pod_labels: &Labels) -> Vec<Requirement> {
        keys.iter().filter_map(|key| Some(self.requirement(key, pod_labels.get(key)?))).collect()
    }

    fn is_merged(self, key: &Str, expressions: &[Requirement]) -> bool {
        expressions.iter().any(|e| {
            e.key == *key
                && match e.op {
                    Operator::In(_) => self == Self::Match,
                    Operator::NotIn(_) => self == Self::Mismatch,
                    Operator::Exists | Operator::DoesNotExist => false,
                }
        })
    }
}

/// Adds the keys to the selector of a pod (anti-)affinity term. A key that is merged already is left as it was when the pod
/// was created, even if the pod's label has changed since: the scheduler never looks at these keys again.
pub(super) fn merge_keys(parts: &mut SelectorParts, keys: &[Str], pod_labels: &Labels, merge: KeyMerge) {
    let mut merged = merge.requirements(keys, pod_labels);
    merged.retain(|r| !merge.is_merged(&r.key, &parts.expressions));
    parts.expressions.append(&mut merged);
}
