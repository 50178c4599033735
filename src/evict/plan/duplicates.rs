//! RemoveDuplicates, planned: no node keeps more than its share of the pods of one kind.
//!
//! All pods count, also those that may not go. The share is that of spec section 9: all pods over the nodes that they may
//! use, rounded up.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::draft::{Draft, Flow};
use super::measure::{Tracker, is_active};
use super::stage::Move;
use crate::engine::EngineError;
use crate::evict::policy::RemoveDuplicatesArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::strategies::Candidate;
use crate::evict::strategies::has_owner_kind;
use crate::evict::strategies::remove_duplicates::{Key, keys, target_nodes};
use crate::model::{Pod, Str};

/// Pods of the same owners and images.
#[derive(Debug, Clone)]
struct Group {
    owner: Str,
    /// How many nodes they may use.
    targets: usize,
    /// On the policy's nodes.
    on_node: BTreeMap<NodeId, BTreeSet<PodId>>,
    pods: usize,
}

impl Group {
    fn share(&self) -> usize {
        if self.targets < 2 { usize::MAX } else { self.pods.div_ceil(self.targets) }
    }

    fn surplus(&self) -> i64 {
        let share = self.share();
        let over = self.on_node.values().map(|pods| pods.len().saturating_sub(share)).sum::<usize>();
        i64::try_from(over).unwrap_or(i64::MAX)
    }

    fn remove(&mut self, id: PodId, node: NodeId) {
        if self.on_node.get_mut(&node).is_some_and(|pods| pods.remove(&id)) {
            self.pods -= 1;
        }
    }

    fn insert(&mut self, id: PodId, node: NodeId) {
        if self.on_node.entry(node).or_default().insert(id) {
            self.pods += 1;
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Duplicates {
    groups: Vec<Group>,
    /// By pod, running or not.
    group_of: Rc<Vec<Option<usize>>>,
    is_policy_node: Rc<Vec<bool>>,
    value: i64,
}

impl Duplicates {
    pub(super) fn new(args: &RemoveDuplicatesArgs, scene: &Scene, nodes: &[NodeId]) -> Self {
        let mut is_policy_node = vec![false; scene.nodes().count()];
        nodes.iter().for_each(|node| is_policy_node[node.index()] = true);
        let mut members = BTreeMap::<Vec<Key>, Vec<PodId>>::new();
        for id in scene.cancel.guard(scene.pods()) {
            let pod = &*scene.pod(id).pod;
            let counts = args.namespaces.admits(&pod.meta.namespace)
                && !pod.meta.owners.is_empty()
                && !has_owner_kind(pod, &args.exclude_owner_kinds);
            if counts {
                members.entry(keys(pod)).or_default().push(id);
            }
        }
        let mut group_of = vec![None; scene.pods().count()];
        let mut groups = Vec::with_capacity(members.len());
        for (keys, ids) in scene.cancel.guard(members) {
            for id in &ids {
                group_of[id.index()] = Some(groups.len());
            }
            let owners: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let mut group = Group { owner: owners.join(", ").into(), targets: 0, on_node: BTreeMap::new(), pods: 0 };
            for id in &ids {
                let node = scene.pod(*id).node;
                if is_active(&scene.pod(*id).pod) && is_policy_node[node.index()] {
                    group.insert(*id, node);
                }
            }
            // A kind with one pod has no duplicates, and most kinds of big clusters are small.
            group.targets = if ids.len() < 2 { 0 } else { target_nodes(scene, nodes, ids.into_iter()) };
            groups.push(group);
        }
        let value = groups.iter().map(Group::surplus).sum();
        Self { groups, group_of: Rc::new(group_of), is_policy_node: Rc::new(is_policy_node), value }
    }

    pub(super) fn value(&self) -> i64 {
        self.value
    }

    fn after(&self, moved: &Move) -> Option<(usize, Group)> {
        let index = self.group_of[moved.id.index()]?;
        let mut group = self.groups[index].clone();
        group.remove(moved.id, moved.from);
        if self.counts(&moved.new, moved.to) {
            group.insert(moved.id, moved.to);
        }
        Some((index, group))
    }

    fn counts(&self, pod: &Pod, node: NodeId) -> bool {
        is_active(pod) && self.is_policy_node[node.index()]
    }

    pub(super) fn change(&self, moved: &Move) -> i64 {
        self.after(moved).map_or(0, |(index, group)| group.surplus() - self.groups[index].surplus())
    }

    pub(super) fn apply(&mut self, moved: &Move) {
        if let Some((index, group)) = self.after(moved) {
            self.value += group.surplus() - self.groups[index].surplus();
            self.groups[index] = group;
        }
    }

    /// The pods of a group on a node that is over its share.
    fn over(&self, index: usize, node: NodeId) -> Option<Vec<PodId>> {
        let group = &self.groups[index];
        let pods = group.on_node.get(&node)?;
        (pods.len() > group.share()).then(|| pods.iter().copied().collect())
    }

    /// Whether some other node has less than its share. If none has, nobody can gain.
    fn has_room_elsewhere(&self, index: usize, node: NodeId) -> bool {
        let group = &self.groups[index];
        let full = |other: &NodeId| group.on_node.get(other).is_some_and(|pods| pods.len() >= group.share());
        let policy = self.is_policy_node.iter().filter(|is| **is).count();
        let full_nodes = group.on_node.keys().filter(|other| **other != node && full(other)).count();
        full_nodes + 1 < policy || policy < self.is_policy_node.len()
    }
}

/// Groups in the order of their owners, nodes by name. The pods that ran longest go first; of the youngest the first stays,
/// as in the descheduler.
pub(super) fn propose(draft: &mut Draft<'_, '_>, rule: usize) -> Result<(), EngineError> {
    let groups = tracker(draft, rule).groups.len();
    for index in 0..groups {
        let nodes: Vec<NodeId> = tracker(draft, rule).groups[index].on_node.keys().copied().collect();
        for node in nodes {
            let Some(mut pods) = tracker(draft, rule).over(index, node) else { continue };
            pods.sort_by_key(|id| draft.age_order(*id));
            let created = |id: &PodId| draft.age_order(*id).0;
            let youngest = pods.last().and_then(created);
            let first_of_them = pods.partition_point(|id| created(id) < youngest);
            pods[first_of_them..].rotate_left(1);
            for id in pods {
                draft.check()?;
                let Some(on_node) = tracker(draft, rule).over(index, node).map(|pods| pods.len()) else { break };
                if !tracker(draft, rule).has_room_elsewhere(index, node) {
                    break;
                }
                let group = &tracker(draft, rule).groups[index];
                let reason = Reason::Duplicate { owner: group.owner.clone(), on_node, share: group.share() };
                if !draft.admits(rule, id) {
                    continue;
                }
                match draft.consider(rule, Candidate::new(id, reason))? {
                    Flow::Next => {}
                    Flow::NextNode => break,
                    Flow::Stop => return Ok(()),
                }
            }
        }
    }
    Ok(())
}

fn tracker<'d>(draft: &'d Draft<'_, '_>, rule: usize) -> &'d Duplicates {
    match &draft.stage.trackers[rule] {
        Tracker::Duplicates(duplicates) => duplicates,
        _ => unreachable!("the strategy's own tracker"),
    }
}
