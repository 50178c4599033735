//! RemoveDuplicates: no node holds more than its share of the pods of one owner (spec section 9).
//!
//! Pods are of one kind when owner and app images are equal. On each node the first pod of a kind is the original, which
//! never goes; the share is the number of pods over the nodes that the duplicates could use, rounded up. Pods that the
//! evictor holds back don't exist here: they neither count nor are they originals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Candidate, Context, Sink, Strategy, StrategyError, Verdict, has_owner_kind};
use crate::evict::node_fit::{self, Selects};
use crate::evict::policy::RemoveDuplicatesArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::taints;
use crate::model::node_selector::NodeRequirement;
use crate::model::{Labels, NodeSelectorTerm, Pod, Str, Toleration};

/// An owner and the sorted app images of its pods. The owner's uid and API group don't matter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::evict) struct Key {
    namespace: Str,
    kind: Str,
    name: Str,
    images: Vec<Str>,
}

/// The pods of one key.
#[derive(Debug, Default)]
struct Group {
    /// On all nodes, originals included.
    occurrences: usize,
    duplicates: BTreeMap<NodeId, Vec<PodId>>,
}

impl Strategy for RemoveDuplicatesArgs {
    fn run(&self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), StrategyError> {
        for (key, group) in context.cancel().guard(self.count(context, sink)) {
            if group.duplicates.is_empty() {
                continue;
            }
            let duplicates = group.duplicates.values().flatten().copied();
            let targets = target_nodes(context.scene, context.nodes, duplicates);
            if targets < 2 {
                continue;
            }
            let share = group.occurrences.div_ceil(targets);
            let owner: Str = key.to_string().into();
            for duplicates in group.duplicates.values() {
                // The original is not among them.
                for id in duplicates.iter().skip(share.saturating_sub(1)) {
                    let on_node = duplicates.len() + 1;
                    let reason = Reason::Duplicate { owner: owner.clone(), on_node, share };
                    match sink.consider(Candidate::new(*id, reason)) {
                        Verdict::Evicted | Verdict::NamespaceLimit | Verdict::Refused => {}
                        Verdict::NodeLimit => break,
                        Verdict::TotalLimit => return Ok(()),
                    }
                }
            }
        }
        Ok(())
    }
}

impl RemoveDuplicatesArgs {
    fn count(&self, context: &Context<'_>, sink: &mut dyn Sink) -> BTreeMap<Key, Group> {
        let mut groups = BTreeMap::<Key, Group>::new();
        for node in context.cancel().guard(context.nodes) {
            // Pods with several owners are duplicates only of pods with the same ones.
            let mut originals = BTreeSet::<Vec<Key>>::new();
            let mut held_back = Vec::new();
            for id in context.cancel().guard(&context.scene.node(*node).active) {
                let pod = context.pod(*id);
                let skipped = !self.namespaces.admits(&pod.meta.namespace)
                    || pod.meta.owners.is_empty()
                    || has_owner_kind(pod, &self.exclude_owner_kinds);
                if skipped {
                    continue;
                }
                let keys = keys(pod);
                if let Err(why) = context.evictor.admits(*id) {
                    held_back.push((*id, keys, why));
                    continue;
                }
                let is_duplicate = !originals.insert(keys.clone());
                for key in keys {
                    let group = groups.entry(key).or_default();
                    group.occurrences += 1;
                    if is_duplicate {
                        group.duplicates.entry(*node).or_default().push(*id);
                    }
                }
            }
            // Worth a word only beside a pod of the same kind.
            for (id, keys, why) in held_back {
                if originals.contains(&keys) {
                    sink.leave_alone(id, why);
                }
            }
        }
        groups
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// One for each owner, sorted.
pub(in crate::evict) fn keys(pod: &Pod) -> Vec<Key> {
    let mut images: Vec<Str> = pod.spec.containers.iter().map(|c| c.image.clone()).collect();
    images.sort();
    let owners = pod.meta.owners.iter().map(|owner| Key {
        namespace: pod.meta.namespace.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        images: images.clone(),
    });
    let mut keys: Vec<Key> = owners.collect();
    keys.sort();
    keys
}

/// What decides which nodes a pod may use; equal for pods that may use the same ones.
#[derive(PartialEq, Eq)]
struct Shape<'p> {
    tolerations: Vec<&'p Toleration>,
    node_selector: Option<&'p Labels>,
    required: Vec<(Vec<&'p NodeRequirement>, Vec<&'p NodeRequirement>)>,
}

impl<'p> Shape<'p> {
    fn of(pod: &'p Pod) -> Self {
        let required = pod.spec.affinity.node.as_ref().and_then(|a| a.required.as_ref());
        let term = |t: &'p NodeSelectorTerm| (t.expressions.iter().collect(), t.fields.iter().collect());
        Self {
            tolerations: pod.spec.tolerations.iter().collect(),
            node_selector: pod.spec.node_selector.as_ref(),
            required: required.into_iter().flat_map(|r| &r.terms).map(term).collect(),
        }
    }
}

/// How many nodes some pods may use together. A shape with a single node adds none.
pub(in crate::evict) fn target_nodes(scene: &Scene, nodes: &[NodeId], pods: impl Iterator<Item = PodId>) -> usize {
    let mut seen: Vec<Shape<'_>> = Vec::new();
    let mut targets = BTreeSet::<NodeId>::new();
    for id in scene.cancel.guard(pods) {
        let pod = &*scene.pod(id).pod;
        let shape = Shape::of(pod);
        if seen.contains(&shape) {
            continue;
        }
        seen.push(shape);
        let usable: Vec<NodeId> =
            scene.cancel.guard(nodes).copied().filter(|node| is_usable(scene, pod, *node)).collect();
        if usable.len() > 1 {
            targets.extend(usable);
        }
    }
    targets.len()
}

/// By taints and labels only; affinity that can't be read counts as matching.
fn is_usable(scene: &Scene, pod: &Pod, node: NodeId) -> bool {
    let node = &scene.node(node).node;
    taints::first_forbidding(&pod.spec.tolerations, node, scene.cancel).is_none()
        && node_fit::selects(pod, node) != Selects::No
}
