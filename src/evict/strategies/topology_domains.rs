//! One spread constraint over the domains of its topology key: who counts where, and how many have to leave which domain
//! (spec section 15.2).

use std::collections::BTreeMap;

use super::Context;
use crate::evict::node_fit::{self, Selects};
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::taints;
use crate::model::topology_spread::InclusionPolicy;
use crate::model::{LabelSelector, Labels, NodeSelector, Pod, Str, Toleration, TopologySpreadConstraint};

/// A constraint with what it takes from the pod that states it. Two are one only if all of this is equal, so that pods of
/// one app with different node selectors make for separate passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::evict) struct Constraint {
    pub(in crate::evict) max_skew: i32,
    pub(in crate::evict) topology_key: Str,
    selector: LabelSelector,
    /// Node selector and required affinity, where the constraint honours them.
    affinity: Option<(Option<Labels>, Option<NodeSelector>)>,
    /// Where the constraint honours taints.
    tolerations: Option<Vec<Toleration>>,
}

impl Constraint {
    pub(in crate::evict) fn of(spread: &TopologySpreadConstraint, pod: &Pod) -> Self {
        let required = || pod.spec.affinity.node.as_ref().and_then(|a| a.required.clone());
        let honoured = |policy: InclusionPolicy| policy == InclusionPolicy::Honor;
        Self {
            max_skew: spread.max_skew,
            topology_key: spread.topology_key.clone(),
            selector: spread.selector.clone(),
            affinity: honoured(spread.node_affinity_policy).then(|| (pod.spec.node_selector.clone(), required())),
            tolerations: honoured(spread.node_taints_policy).then(|| pod.spec.tolerations.clone()),
        }
    }

    pub(in crate::evict) fn speaks_of(&self, pod: &Pod) -> bool {
        self.selector.matches(&pod.meta.labels)
    }

    /// Whether another constraint has the same nodes in the same domains, whatever it counts there.
    pub(in crate::evict) fn has_domains_of(&self, other: &Self) -> bool {
        self.topology_key == other.topology_key
            && self.affinity == other.affinity
            && self.tolerations == other.tolerations
    }

    /// By the inclusion policies.
    pub(in crate::evict) fn includes(&self, scene: &Scene, node: NodeId) -> bool {
        let node = &scene.node(node).node;
        let selected = match &self.affinity {
            None => true,
            Some((node_selector, required)) => {
                node_fit::selects_by(node_selector.as_ref(), required.as_ref(), node) == Selects::Yes
            }
        };
        selected
            && self.tolerations.as_ref().is_none_or(|list| taints::first_forbidding(list, node, scene.cancel).is_none())
    }
}

/// A pod that should leave its domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaver {
    pub(super) pod: PodId,
    pub(super) domain: Str,
    /// Between its domain and the one that it would go to.
    pub(super) skew: usize,
}

/// What balancing a constraint comes to.
#[derive(Debug, Default)]
pub(super) struct Moves {
    pub(super) leavers: Vec<Leaver>,
    /// Picked, and fit no node below the average; nobody is picked instead.
    pub(super) stuck: Vec<(PodId, node_fit::Unfits)>,
}

impl Moves {
    pub(super) fn is_empty(&self) -> bool {
        self.leavers.is_empty() && self.stuck.is_empty()
    }
}

struct Domain {
    value: Str,
    pods: Vec<PodId>,
}

/// Evens out the domains of a constraint; `pods` are those of the namespace that the strategy counts.
pub(super) fn balance(context: &Context<'_>, constraint: &Constraint, pods: &[PodId], must_fit: bool) -> Moves {
    let label = |node: NodeId| context.scene.node(node).node.meta.labels.get(&constraint.topology_key).cloned();
    let eligible: Vec<NodeId> = context
        .cancel()
        .guard(context.nodes)
        .copied()
        .filter(|node| constraint.includes(context.scene, *node))
        .collect();
    let mut domains: BTreeMap<Str, Vec<PodId>> =
        eligible.iter().filter_map(|node| Some((label(*node)?, Vec::new()))).collect();
    let mut total = 0_usize;
    for id in context.cancel().guard(pods) {
        let pod = context.pod(*id);
        if pod.meta.is_terminating() || !constraint.speaks_of(pod) {
            continue;
        }
        // A node that isn't eligible brings its domain back if a pod is on it.
        if let Some(value) = label(context.scene.pod(*id).node) {
            domains.entry(value).or_default().push(*id);
            total += 1;
        }
    }
    let sizes = || domains.values().map(Vec::len);
    let skew = sizes().max().unwrap_or(0) - sizes().min().unwrap_or(0);
    if !is_above(skew, constraint.max_skew) {
        return Moves::default();
    }
    let mut domains: Vec<Domain> = domains.into_iter().map(|(value, pods)| Domain { value, pods }).collect();
    for domain in &mut domains {
        domain.pods.sort_by_key(|id| {
            let pod = context.pod(*id);
            (!is_bound_to_nodes(pod), pod.spec.priority, *id)
        });
    }
    domains.sort_by(|a, b| (a.pods.len(), &a.value).cmp(&(b.pods.len(), &b.value)));
    let average = Average { total, domains: domains.len() };
    let below: Vec<NodeId> = context
        .cancel()
        .guard(eligible)
        .filter(|node| {
            let value = label(*node);
            domains.iter().any(|d| Some(&d.value) == value.as_ref() && average.exceeds(d.pods.len()))
        })
        .collect();
    even_out(context, constraint.max_skew, domains, &average, &below, must_fit)
}

/// Takes from the largest domain for the smallest until they are close enough, then goes to the next ones.
fn even_out(
    context: &Context<'_>,
    max_skew: i32,
    mut domains: Vec<Domain>,
    average: &Average,
    below: &[NodeId],
    must_fit: bool,
) -> Moves {
    let mut moves = Moves::default();
    // Neither the scene nor the destinations change while one constraint is balanced.
    let mut fit = BTreeMap::<PodId, Result<(), node_fit::Unfits>>::new();
    let (mut small, mut large) = (0, domains.len().saturating_sub(1));
    while small < large && !context.cancel().is_set() {
        if !average.is_below(domains[large].pods.len()) {
            large -= 1;
        }
        let (from, to) = (domains[large].pods.len(), domains[small].pods.len());
        let skew = from.saturating_sub(to);
        if !is_above(skew, max_skew) {
            small += 1;
            continue;
        }
        let half = (skew - usize::try_from(max_skew).unwrap_or(0)).div_ceil(2);
        let count = average.surplus(from).min(average.deficit(to)).min(half);
        if count == 0 {
            small += 1;
            continue;
        }
        for pod in context.cancel().guard(&domains[large].pods) {
            fit.entry(*pod).or_insert_with(|| node_fit::fits_any_other(context.scene, *pod, below));
        }
        // Those that fit go before those that don't, whatever their class and priority.
        domains[large].pods.sort_by_key(|pod| fit.get(pod).is_some_and(Result::is_ok));
        let taken = domains[large].pods.split_off(from - count);
        for pod in &taken {
            match fit.get(pod) {
                Some(Err(unfits)) if must_fit => moves.stuck.push((*pod, unfits.clone())),
                _ => moves.leavers.push(Leaver { pod: *pod, domain: domains[large].value.clone(), skew }),
            }
        }
        domains[small].pods.extend(taken);
    }
    moves
}

fn is_above(skew: usize, max_skew: i32) -> bool {
    i64::try_from(skew).is_ok_and(|skew| skew > i64::from(max_skew))
}

/// The pod says which nodes it wants.
pub(in crate::evict) fn is_bound_to_nodes(pod: &Pod) -> bool {
    pod.spec.node_selector.as_ref().is_some_and(|s| !s.is_empty()) || pod.spec.affinity.node.is_some()
}

/// Pods over domains, in whole numbers.
struct Average {
    total: usize,
    domains: usize,
}

impl Average {
    /// The average is more than this.
    fn exceeds(&self, size: usize) -> bool {
        size * self.domains < self.total
    }

    /// The average is less than this.
    fn is_below(&self, size: usize) -> bool {
        size * self.domains > self.total
    }

    /// How far a domain is above it, rounded up.
    fn surplus(&self, size: usize) -> usize {
        (size * self.domains).saturating_sub(self.total).div_ceil(self.domains)
    }

    /// How far a domain is below it, rounded up.
    fn deficit(&self, size: usize) -> usize {
        self.total.saturating_sub(size * self.domains).div_ceil(self.domains)
    }
}
