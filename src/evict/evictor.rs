//! DefaultEvictor: which pods may go at all (spec section 5).
//!
//! [`Evictor::filter`] gives every rule that protects a pod, not only the first: the list is the explanation.
//! [`Evictor::pre_eviction`] is the late check, which costs a walk over nodes where `nodeFit` is on.

use std::fmt;

use super::Mode;
use super::node_fit;
use super::outcome::LeftAlone;
use super::policy::{DefaultEvictorArgs, NoEvictionPolicy, PodProtection};
use super::snapshot::{NodeId, PodId, Scene};
use crate::model::pod_status::Phase;
use crate::model::volume::VolumeSource;
use crate::model::{Pod, Str};

/// Present with any value: the pod may go whatever protects it. PLANNED takes `false` at its word.
pub const EVICT: &str = "descheduler.alpha.kubernetes.io/evict";
/// Present with any value: the pod goes last among equals, or never by `noEvictionPolicy: Mandatory`.
pub const PREFER_NO_EVICTION: &str = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
const MIRROR: &str = "kubernetes.io/config.mirror";
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// The `config.source` of pods that didn't come from a file of the kubelet.
const FROM_API: &str = "api";
/// From this priority on a pod is critical to the system.
pub const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// A rule by which a pod is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// PLANNED: the evict annotation says `false`.
    EvictionForbidden,
    PrefersNoEviction,
    MirrorPod,
    StaticPod,
    Terminating,
    SystemCriticalPods,
    PriorityThreshold {
        priority: i32,
        threshold: i32,
    },
    /// No owner, in a phase other than Failed.
    BarePods,
    FailedBarePods,
    PodsWithLocalStorage,
    DaemonSetPods,
    PodsWithPVC,
    PodsWithoutPDB,
    PodsWithResourceClaims,
    LabelSelector,
    MinReplicas {
        replicas: u64,
        min: u64,
    },
    /// In seconds; None: the pod hasn't started.
    MinPodAge {
        age: Option<i64>,
        min: i64,
    },
}

impl Protection {
    /// The name that answers count by: the protection's in the policy where it has one.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EvictionForbidden => "EvictionForbidden",
            Self::PrefersNoEviction => "NoEvictionPolicy",
            Self::MirrorPod => "MirrorPod",
            Self::StaticPod => "StaticPod",
            Self::Terminating => "Terminating",
            Self::SystemCriticalPods => "SystemCriticalPods",
            Self::PriorityThreshold { .. } => "PriorityThreshold",
            Self::BarePods => "BarePods",
            Self::FailedBarePods => "FailedBarePods",
            Self::PodsWithLocalStorage => "PodsWithLocalStorage",
            Self::DaemonSetPods => "DaemonSetPods",
            Self::PodsWithPVC => "PodsWithPVC",
            Self::PodsWithoutPDB => "PodsWithoutPDB",
            Self::PodsWithResourceClaims => "PodsWithResourceClaims",
            Self::LabelSelector => "LabelSelector",
            Self::MinReplicas { .. } => "MinReplicas",
            Self::MinPodAge { .. } => "MinPodAge",
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EvictionForbidden => "the pod's evict annotation is false",
            Self::PrefersNoEviction => "pod prefers not to be evicted, which noEvictionPolicy makes mandatory",
            Self::MirrorPod => "pod is a mirror pod",
            Self::StaticPod => "pod is a static pod",
            Self::Terminating => "pod is terminating",
            Self::SystemCriticalPods => "pod has system critical priority",
            Self::PriorityThreshold { priority, threshold } => {
                return write!(f, "pod has priority {priority}, the threshold is {threshold}");
            }
            Self::BarePods => "pod has no owner",
            Self::FailedBarePods => "pod failed and has no owner",
            Self::PodsWithLocalStorage => "pod has local storage",
            Self::DaemonSetPods => "pod belongs to a DaemonSet",
            Self::PodsWithPVC => "pod has a persistent volume claim",
            Self::PodsWithoutPDB => "no PodDisruptionBudget selects the pod",
            Self::PodsWithResourceClaims => "pod has resource claims",
            Self::LabelSelector => "pod's labels don't match the evictor's labelSelector",
            Self::MinReplicas { replicas, min } => {
                return write!(f, "pod's owner has {replicas} pods, minReplicas is {min}");
            }
            Self::MinPodAge { age: None, .. } => "pod hasn't started, and minPodAge is set",
            Self::MinPodAge { age: Some(age), min } => {
                return write!(f, "pod runs for {age}s, minPodAge is {min}s");
            }
        })
    }
}

pub fn prefers_no_eviction(pod: &Pod) -> bool {
    pod.meta.annotations.contains_key(PREFER_NO_EVICTION)
}

fn is_bare_and_failed(pod: &Pod) -> bool {
    pod.meta.owners.is_empty() && pod.status.phase == Phase::Failed
}

fn untouchable(pod: &Pod) -> Vec<Protection> {
    let mut found = Vec::new();
    if pod.meta.annotations.contains_key(MIRROR) {
        found.push(Protection::MirrorPod);
    }
    if pod.meta.annotations.get(CONFIG_SOURCE).is_some_and(|source| &**source != FROM_API) {
        found.push(Protection::StaticPod);
    }
    if pod.meta.is_terminating() {
        found.push(Protection::Terminating);
    }
    found
}

/// Whether a pod is bound to its node by who made it: the kubelet or a DaemonSet.
pub fn belongs_to_node(pod: &Pod) -> bool {
    pod.meta.owners.iter().any(|owner| &*owner.kind == "DaemonSet")
        || pod.meta.annotations.contains_key(MIRROR)
        || pod.meta.annotations.get(CONFIG_SOURCE).is_some_and(|source| &**source != FROM_API)
}

/// As Go's `strconv.ParseBool`.
fn is_false(value: &str) -> bool {
    ["0", "f", "F", "false", "FALSE", "False"].contains(&value)
}

/// The evictor of one profile over one scene.
#[derive(Debug, Clone)]
pub struct Evictor<'a> {
    scene: &'a Scene<'a>,
    args: &'a DefaultEvictorArgs,
    mode: Mode,
    /// Where pods might fit: ready nodes by the evictor's own `nodeSelector`; the policy's doesn't count here.
    destinations: Vec<NodeId>,
}

impl<'a> Evictor<'a> {
    pub fn new(scene: &'a Scene<'a>, args: &'a DefaultEvictorArgs, mode: Mode) -> Self {
        let destinations = scene.ready_nodes(args.node_selector.as_ref());
        Self { scene, args, mode, destinations }
    }

    /// The rules that protect a pod; empty when it may go.
    pub fn filter(&self, id: PodId) -> Vec<Protection> {
        let pod = &*self.scene.pod(id).pod;
        match (self.mode, pod.meta.annotations.get(EVICT)) {
            (Mode::Compatible, Some(_)) => return Vec::new(),
            (Mode::Planned, Some(value)) if is_false(value) => return vec![Protection::EvictionForbidden],
            // Who goes already, or is the kubelet's own, has no replacement that the scheduler places.
            (Mode::Planned, Some(_)) => return untouchable(pod),
            (_, None) => {}
        }
        if self.args.no_eviction_policy == NoEvictionPolicy::Mandatory && prefers_no_eviction(pod) {
            return vec![Protection::PrefersNoEviction];
        }
        let mut found = untouchable(pod);
        for protection in &self.args.protections {
            found.extend(self.protected_by(*protection, pod));
        }
        // Bare pods that didn't fail are protected whatever the policy says.
        if pod.meta.owners.is_empty() && !is_bare_and_failed(pod) {
            found.push(Protection::BarePods);
        }
        let selector = self.args.label_selector.as_ref().filter(|selector| !selector.is_everything());
        if selector.is_some_and(|selector| !selector.matches(&pod.meta.labels)) {
            found.push(Protection::LabelSelector);
        }
        // PLANNED counts replicas as the plan grows.
        if self.mode == Mode::Compatible {
            found.extend(self.too_few_replicas(pod));
        }
        found.extend(self.too_young(pod));
        found
    }

    fn protected_by(&self, protection: PodProtection, pod: &Pod) -> Option<Protection> {
        let has_volume = |wanted: fn(&VolumeSource) -> bool| pod.spec.volumes.iter().any(|v| wanted(&v.source));
        let is_local = |v: &VolumeSource| matches!(v, VolumeSource::HostPath | VolumeSource::EmptyDir);
        let (holds, found) = match protection {
            PodProtection::SystemCriticalPods => return self.too_important(pod),
            // Off, it lets those go that failed.
            PodProtection::FailedBarePods => (is_bare_and_failed(pod), Protection::FailedBarePods),
            PodProtection::PodsWithLocalStorage => (has_volume(is_local), Protection::PodsWithLocalStorage),
            PodProtection::DaemonSetPods => {
                (pod.meta.owners.iter().any(|owner| &*owner.kind == "DaemonSet"), Protection::DaemonSetPods)
            }
            PodProtection::PodsWithPVC => (self.has_protected_claim(pod), Protection::PodsWithPVC),
            // The descheduler of mid-2026 registers its informer of budgets when none can be registered any more, and sees
            // no budget here: with the protection on, all pods are protected (tests/conformance agrees).
            PodProtection::PodsWithoutPDB => {
                let sees_budgets = self.mode != Mode::Compatible;
                let covered = sees_budgets && self.scene.budgets_of(pod).next().is_some();
                (!covered, Protection::PodsWithoutPDB)
            }
            PodProtection::PodsWithResourceClaims => {
                (!pod.spec.resource_claims.is_empty(), Protection::PodsWithResourceClaims)
            }
        };
        holds.then_some(found)
    }

    /// The threshold belongs to the protection of critical pods and goes with it.
    fn too_important(&self, pod: &Pod) -> Option<Protection> {
        let priority = pod.spec.priority?;
        if priority >= SYSTEM_CRITICAL_PRIORITY {
            return Some(Protection::SystemCriticalPods);
        }
        let threshold = self.args.priority_threshold;
        (priority >= threshold).then_some(Protection::PriorityThreshold { priority, threshold })
    }

    /// With named classes: a claim of one of them, or one that isn't known or has no class.
    fn has_protected_claim(&self, pod: &Pod) -> bool {
        let classes = &self.args.protected_storage_classes;
        let mut claims = pod.spec.volumes.iter().filter_map(|v| match &v.source {
            VolumeSource::PersistentVolumeClaim { claim, .. } => Some(claim),
            _ => None,
        });
        claims.any(|name| {
            let claim = self.scene.objects.claim(&pod.meta.namespace, name);
            let is_other = |class: Str| !class.is_empty() && !classes.contains(&class);
            classes.is_empty() || !claim.is_some_and(|claim| is_other(claim.class()))
        })
    }

    /// Only pods with exactly one owner are counted; all pods of that owner count, in whatever phase and place.
    fn too_few_replicas(&self, pod: &Pod) -> Option<Protection> {
        let min = self.args.min_replicas;
        let [owner] = &pod.meta.owners[..] else { return None };
        let replicas = self.scene.owned_by(&owner.uid);
        (min > 1 && replicas < min).then_some(Protection::MinReplicas { replicas, min })
    }

    /// Counts from the start, not from the creation.
    fn too_young(&self, pod: &Pod) -> Option<Protection> {
        let min = self.args.min_pod_age_micros?;
        let age = pod.status.started.map(|started| self.scene.now.0.saturating_sub(started.0));
        let seconds = |micros: i64| micros / 1_000_000;
        age.is_none_or(|age| age < min).then(|| Protection::MinPodAge { age: age.map(seconds), min: seconds(min) })
    }

    /// Whether a landing is a way out by `nodeFit`: ready, selected by the evictor's own node selector, not cordoned. Any
    /// node is, without it.
    pub fn takes_landing(&self, node: NodeId) -> bool {
        let cordoned = self.scene.node(node).node.unschedulable;
        !self.args.node_fit || (!cordoned && self.destinations.binary_search(&node).is_ok())
    }

    /// The number that `minReplicas` asks for, if it asks, for pods with this one's owners.
    pub fn min_replicas(&self, pod: &Pod) -> Option<(Str, u64)> {
        let [owner] = &pod.meta.owners[..] else { return None };
        (self.args.min_replicas > 1).then(|| (owner.uid.clone(), self.args.min_replicas))
    }

    /// Both checks.
    ///
    /// # Errors
    /// What holds the pod back.
    pub fn admits(&self, id: PodId) -> Result<(), LeftAlone> {
        self.passes_filter(id)?;
        self.pre_eviction(id)
    }

    /// # Errors
    /// All that protects the pod.
    pub fn passes_filter(&self, id: PodId) -> Result<(), LeftAlone> {
        let protections = self.filter(id);
        if protections.is_empty() { Ok(()) } else { Err(LeftAlone::Protected(protections)) }
    }

    /// # Errors
    /// The pod fits nowhere else, or its namespace isn't selected.
    pub fn pre_eviction(&self, id: PodId) -> Result<(), LeftAlone> {
        // PLANNED asks the engine instead.
        if self.args.node_fit && self.mode == Mode::Compatible {
            node_fit::fits_any_other(self.scene, id, &self.destinations).map_err(LeftAlone::NoNodeFits)?;
        }
        let selector = self.args.namespace_label_selector.as_ref().filter(|selector| !selector.is_everything());
        let Some(selector) = selector else { return Ok(()) };
        match self.scene.objects.namespace_labels(&self.scene.pod(id).pod.meta.namespace) {
            None => Err(LeftAlone::NamespaceNotSelected { known: false }),
            Some(labels) if selector.matches(labels) => Ok(()),
            Some(_) => Err(LeftAlone::NamespaceNotSelected { known: true }),
        }
    }
}
