//! Whether a pod would fit a node by the descheduler's `nodeFit` (spec section 6): exactly its checks and no other.
//!
//! It is not the scheduler's filter. It doesn't see host ports, volumes, pod affinity, topology spread or what other pods
//! dislike, and it asks for each pod by itself: two pods that both fit the one free slot both pass. PLANNED asks the engine
//! instead.

use std::collections::BTreeMap;
use std::fmt;

use super::snapshot::{NodeId, PodId, Scene, ScenePod};
use super::taints;
use crate::model::resources::{CPU, PODS};
use crate::model::{Labels, Node, NodeSelector, Pod, PodAffinityTerm, ResourceList, Str};

/// Why a pod doesn't fit a node: the first check that fails.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    Cordoned,
    /// `nodeSelector` or required node affinity.
    NodeSelector,
    Taint {
        key: Str,
        value: Str,
    },
    /// Its own required anti-affinity and a pod that is there.
    AntiAffinity,
    Insufficient {
        resource: Str,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordoned => f.write_str("node is unschedulable"),
            Self::NodeSelector => f.write_str("node doesn't match the pod's node selector or required node affinity"),
            Self::Taint { key, value } if value.is_empty() => write!(f, "node has the untolerated taint {key}"),
            Self::Taint { key, value } => write!(f, "node has the untolerated taint {key}={value}"),
            Self::AntiAffinity => f.write_str("node has a pod that the pod's anti-affinity excludes"),
            Self::Insufficient { resource } => write!(f, "insufficient {resource}"),
        }
    }
}

/// Why a pod fits no node: how many nodes by their first refusal. Empty when there was no node to ask.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unfits(pub BTreeMap<Unfit, usize>);

impl fmt::Display for Unfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("there is no other node");
        }
        write!(f, "0/{} nodes fit: ", self.0.values().sum::<usize>())?;
        for (i, (unfit, nodes)) in self.0.iter().enumerate() {
            write!(f, "{}{nodes} {unfit}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// What required node affinity says of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selects {
    Yes,
    No,
    /// No term matches and one can't be read. Rules differ in what they make of it.
    Malformed,
}

/// `nodeSelector` and required node affinity together.
pub fn selects(pod: &Pod, node: &Node) -> Selects {
    let required = pod.spec.affinity.node.as_ref().and_then(|a| a.required.as_ref());
    selects_by(pod.spec.node_selector.as_ref(), required, node)
}

/// The same by its two parts.
pub fn selects_by(node_selector: Option<&Labels>, required: Option<&NodeSelector>, node: &Node) -> Selects {
    let (name, labels) = (&node.meta.name, &node.meta.labels);
    if node_selector.is_some_and(|selector| !selector.is_subset_of(labels)) {
        return Selects::No;
    }
    let Some(required) = required else { return Selects::Yes };
    if required.matches(name, labels) {
        Selects::Yes
    } else if required.terms.iter().all(crate::model::NodeSelectorTerm::is_valid) {
        Selects::No
    } else {
        Selects::Malformed
    }
}

/// # Errors
/// The first check that fails.
pub fn fits(scene: &Scene, pod: PodId, node: NodeId) -> Result<(), Unfit> {
    let candidate = scene.pod(pod);
    let spec = &candidate.pod.spec;
    let place = &scene.node(node).node;
    if place.unschedulable {
        return Err(Unfit::Cordoned);
    }
    if selects(&candidate.pod, place) != Selects::Yes {
        return Err(Unfit::NodeSelector);
    }
    if let Some(taint) = taints::first_forbidding(&spec.tolerations, place, scene.cancel) {
        return Err(Unfit::Taint { key: taint.key.clone(), value: taint.value.clone() });
    }
    if has_disliked_peer(scene, candidate, node) {
        return Err(Unfit::AntiAffinity);
    }
    if candidate.node == node { Ok(()) } else { has_room(scene, candidate, node) }
}

/// # Errors
/// Why it fits none of them.
pub fn fits_any(scene: &Scene, pod: PodId, nodes: &[NodeId]) -> Result<(), Unfits> {
    fits_one_of(scene, pod, nodes.iter().copied())
}

/// As [`fits_any`], without the node that it is on.
///
/// # Errors
/// As [`fits_any`].
pub fn fits_any_other(scene: &Scene, pod: PodId, nodes: &[NodeId]) -> Result<(), Unfits> {
    let own = scene.pod(pod).node;
    fits_one_of(scene, pod, nodes.iter().copied().filter(|node| *node != own))
}

fn fits_one_of(scene: &Scene, pod: PodId, nodes: impl Iterator<Item = NodeId>) -> Result<(), Unfits> {
    let mut refusals = Unfits::default();
    for node in scene.cancel.guard(nodes) {
        match fits(scene, pod, node) {
            Ok(()) => return Ok(()),
            Err(unfit) => *refusals.0.entry(unfit).or_default() += 1,
        }
    }
    Err(refusals)
}

/// Whether a term of `owner` speaks of another pod: its namespaces by name (the own one if it names none), its selector, and
/// another name. Namespace selectors aren't looked at, and pods of one name never meet, whatever their namespaces.
pub fn term_speaks_of(term: &PodAffinityTerm, owner: &Pod, other: &Pod) -> bool {
    let namespace = &other.meta.namespace;
    let named = if term.namespaces.is_empty() {
        *namespace == owner.meta.namespace
    } else {
        term.namespaces.contains(namespace)
    };
    named && other.meta.name != owner.meta.name && term.selector.matches(&other.meta.labels)
}

/// The required anti-affinity terms of a pod.
pub fn anti_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    pod.spec.affinity.pod_anti.as_ref().map_or(&[], |anti| &anti.required)
}

/// Only pods of that very node are looked at, for terms whose label the node has.
fn has_disliked_peer(scene: &Scene, candidate: &ScenePod, node: NodeId) -> bool {
    let place = scene.node(node);
    scene.cancel.guard(anti_affinity(&candidate.pod)).any(|term| {
        place.node.meta.labels.contains_key(&term.topology_key)
            && scene.cancel.guard(&place.active).any(|peer| term_speaks_of(term, &candidate.pod, &scene.pod(*peer).pod))
    })
}

fn has_room(scene: &Scene, candidate: &ScenePod, node: NodeId) -> Result<(), Unfit> {
    let place = scene.node(node);
    let offered = &place.node.allocatable;
    for (name, asked) in candidate.requests.iter() {
        let free =
            if &**name == PODS { free_pods(scene, node) * 1000 } else { free_milli(name, offered, &place.requested) };
        if asked.whole_milli() > free {
            return Err(Unfit::Insufficient { resource: name.clone() });
        }
    }
    if free_pods(scene, node) > 0 { Ok(()) } else { Err(Unfit::Insufficient { resource: PODS.into() }) }
}

fn free_pods(scene: &Scene, node: NodeId) -> i128 {
    let place = scene.node(node);
    let offered = place.node.allocatable.get(PODS).copied().unwrap_or_default();
    i128::from(offered.value()) - place.active.len() as i128
}

/// Thousandths of cores are exact; of other resources whole units are compared, each sum rounded up by itself.
fn free_milli(name: &str, offered: &ResourceList, requested: &ResourceList) -> i128 {
    let Some(offered) = offered.get(name) else { return 0 };
    let requested = requested.get(name).copied().unwrap_or_default();
    if name == CPU {
        i128::from(offered.milli_value()) - i128::from(requested.milli_value())
    } else {
        (i128::from(offered.value()) - i128::from(requested.value())) * 1000
    }
}
