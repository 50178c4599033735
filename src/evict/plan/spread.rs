//! RemovePodsViolatingTopologySpreadConstraint, planned: no domain of a constraint has more pods than its skew allows.
//!
//! All constraints that the selected pods state are one amount, over all pods that they speak of: also those that may not
//! go, and those that state none. Domains are those of the scheduler: nodes that the constraint's inclusion policies leave
//! out neither make a domain nor do their pods count. From the largest domain the least important pods go first; pods that
//! are bound to nodes by selector or affinity after the others.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::draft::{Draft, Flow};
use super::measure::{Tracker, is_active};
use super::stage::Move;
use crate::engine::EngineError;
use crate::evict::outcome::NoGain;
use crate::evict::policy::RemovePodsViolatingTopologySpreadConstraintArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::strategies::topology_domains::{Constraint, is_bound_to_nodes};
use crate::evict::strategies::{Candidate, is_selected};
use crate::model::{Pod, Str};

/// A constraint over one namespace.
#[derive(Debug, Clone)]
struct Balance {
    max_skew: usize,
    topology_key: Str,
    /// By node; None: the node is in no domain.
    domain_of: Rc<Vec<Option<usize>>>,
    values: Rc<Vec<Str>>,
    /// Those with pods: constraints times nodes may be many.
    domains: BTreeMap<usize, BTreeSet<PodId>>,
}

impl Balance {
    fn new(constraint: &Constraint, (domain_of, values): Topology) -> Self {
        Self {
            max_skew: usize::try_from(constraint.max_skew).unwrap_or(0),
            topology_key: constraint.topology_key.clone(),
            domains: BTreeMap::new(),
            domain_of,
            values,
        }
    }

    /// The size of the smallest domain.
    fn least(&self, sizes: impl Iterator<Item = usize>) -> usize {
        let (mut count, mut least) = (0, usize::MAX);
        for size in sizes {
            count += 1;
            least = least.min(size);
        }
        if count < self.values.len() { 0 } else { least }
    }

    /// How many pods are over what the smallest domain and the skew allow; the sizes are those of domains with pods.
    fn excess(&self, sizes: impl Iterator<Item = usize> + Clone) -> i64 {
        let allowed = self.least(sizes.clone()).saturating_add(self.max_skew);
        i64::try_from(sizes.map(|size| size.saturating_sub(allowed)).sum::<usize>()).unwrap_or(i64::MAX)
    }

    fn value(&self) -> i64 {
        self.excess(self.domains.values().map(BTreeSet::len))
    }

    fn insert(&mut self, domain: usize, id: PodId) {
        self.domains.entry(domain).or_default().insert(id);
    }

    fn remove(&mut self, domain: usize, id: PodId) {
        if let Some(pods) = self.domains.get_mut(&domain) {
            pods.remove(&id);
            if pods.is_empty() {
                self.domains.remove(&domain);
            }
        }
    }

    /// The excess after a move.
    fn after(&self, moved: &Move) -> i64 {
        let holds = |domain: &usize| self.domains.get(domain).is_some_and(|pods| pods.contains(&moved.id));
        let from = self.domain_of[moved.from.index()].filter(holds);
        let to = self.domain_of[moved.to.index()].filter(|_| counts(&moved.new));
        let first = to.filter(|domain| !self.domains.contains_key(domain)).map(|_| 1);
        let sizes = self
            .domains
            .iter()
            .map(|(domain, pods)| pods.len() - usize::from(from == Some(*domain)) + usize::from(to == Some(*domain)));
        self.excess(sizes.chain(first).filter(|size| *size > 0))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Spread {
    balances: Vec<Balance>,
    /// By pod, running or not: the constraints that speak of it.
    spoken_of: Rc<Vec<Rc<[usize]>>>,
    value: i64,
}

/// As for the scheduler, who goes already doesn't count.
fn counts(pod: &Pod) -> bool {
    is_active(pod) && !pod.meta.is_terminating()
}

impl Spread {
    pub(super) fn new(args: &RemovePodsViolatingTopologySpreadConstraintArgs, scene: &Scene, nodes: &[NodeId]) -> Self {
        let selected = |id: &PodId| is_selected(&scene.pod(*id).pod, &args.pods);
        let pods: Vec<PodId> = scene.cancel.guard(scene.pods()).filter(selected).collect();
        let mut constraints: Vec<(Str, Constraint)> = Vec::new();
        for id in scene.cancel.guard(&pods) {
            let pod = &scene.pod(*id).pod;
            let stated = scene.cancel.guard(&pod.spec.topology_spread);
            for spread in stated.filter(|s| args.constraints.contains(&s.when_unsatisfiable)) {
                let found = (pod.meta.namespace.clone(), Constraint::of(spread, pod));
                if is_active(pod) && !scene.cancel.guard(&constraints).any(|known| *known == found) {
                    constraints.push(found);
                }
            }
        }
        // Many constraints share few topologies.
        let mut topologies: Vec<(&Constraint, Topology)> = Vec::new();
        let mut balances: Vec<Balance> = Vec::with_capacity(constraints.len());
        for (_, constraint) in scene.cancel.guard(&constraints) {
            let known = topologies.iter().find(|(other, _)| constraint.has_domains_of(other)).map(|(_, it)| it.clone());
            let topology = known.unwrap_or_else(|| {
                let made = topology(constraint, scene, nodes);
                topologies.push((constraint, made.clone()));
                made
            });
            balances.push(Balance::new(constraint, topology));
        }
        if scene.cancel.is_set() {
            return Self { balances: Vec::new(), spoken_of: Rc::default(), value: 0 };
        }
        let none: Rc<[usize]> = Rc::from([]);
        let mut spoken_of = vec![none; scene.pods().count()];
        let mut by_labels = BTreeMap::<(&Str, Vec<(&Str, &Str)>), Rc<[usize]>>::new();
        for id in scene.cancel.guard(&pods) {
            let pod = &*scene.pod(*id).pod;
            let key = (&pod.meta.namespace, pod.meta.labels.iter().collect::<Vec<_>>());
            let of_pod = by_labels.entry(key).or_insert_with(|| {
                let all = scene.cancel.guard(constraints.iter().enumerate());
                let speaks = all.filter(|(_, (namespace, c))| *namespace == pod.meta.namespace && c.speaks_of(pod));
                speaks.map(|(i, _)| i).collect::<Vec<usize>>().into()
            });
            spoken_of[id.index()] = of_pod.clone();
            for index in of_pod.iter().filter(|_| counts(pod)) {
                if let Some(domain) = balances[*index].domain_of[scene.pod(*id).node.index()] {
                    balances[*index].insert(domain, *id);
                }
            }
        }
        let value = balances.iter().map(Balance::value).sum();
        Self { balances, spoken_of: Rc::new(spoken_of), value }
    }

    pub(super) fn value(&self) -> i64 {
        self.value
    }

    fn of(&self, moved: &Move) -> impl Iterator<Item = &Balance> {
        self.spoken_of[moved.id.index()].iter().map(|index| &self.balances[*index])
    }

    pub(super) fn change(&self, moved: &Move) -> i64 {
        self.of(moved).map(|balance| balance.after(moved) - balance.value()).sum()
    }

    /// No constraint pays for another.
    pub(super) fn objection(&self, moved: &Move) -> Option<NoGain> {
        self.of(moved).any(|balance| balance.after(moved) > balance.value()).then_some(NoGain::NotBetter)
    }

    pub(super) fn apply(&mut self, moved: &Move) {
        self.value += self.change(moved);
        for index in self.spoken_of[moved.id.index()].iter() {
            let balance = &mut self.balances[*index];
            if let Some(domain) = balance.domain_of[moved.from.index()] {
                balance.remove(domain, moved.id);
            }
            if let Some(domain) = balance.domain_of[moved.to.index()].filter(|_| counts(&moved.new)) {
                balance.insert(domain, moved.id);
            }
        }
    }

    /// The pods of domains with an excess, the largest domain first, and why they should go.
    fn leavers(&self, index: usize) -> Vec<(usize, Reason, Vec<PodId>)> {
        let balance = &self.balances[index];
        let least = balance.least(balance.domains.values().map(BTreeSet::len));
        let over = |domain: &usize| balance.domains[domain].len() > least.saturating_add(balance.max_skew);
        let mut domains: Vec<usize> = balance.domains.keys().copied().filter(over).collect();
        domains.sort_by(|a, b| {
            let size = |d: usize| balance.domains[&d].len();
            size(*b).cmp(&size(*a)).then_with(|| balance.values[*a].cmp(&balance.values[*b]))
        });
        let leaver = |domain: usize| {
            let reason = Reason::Spread {
                topology_key: balance.topology_key.clone(),
                domain: balance.values[domain].clone(),
                skew: balance.domains[&domain].len() - least,
                max_skew: i32::try_from(balance.max_skew).unwrap_or(i32::MAX),
            };
            (domain, reason, balance.domains[&domain].iter().copied().collect())
        };
        domains.into_iter().map(leaver).collect()
    }
}

/// By node its domain, and by domain its value.
type Topology = (Rc<Vec<Option<usize>>>, Rc<Vec<Str>>);

fn topology(constraint: &Constraint, scene: &Scene, nodes: &[NodeId]) -> Topology {
    let mut values = BTreeMap::<Str, usize>::new();
    let mut domain_of = vec![None; scene.nodes().count()];
    for node in scene.cancel.guard(nodes).filter(|node| constraint.includes(scene, **node)) {
        if let Some(value) = scene.node(*node).node.meta.labels.get(&constraint.topology_key) {
            let next = values.len();
            domain_of[node.index()] = Some(*values.entry(value.clone()).or_insert(next));
        }
    }
    let mut names = vec![Str::default(); values.len()];
    values.into_iter().for_each(|(value, index)| names[index] = value);
    (Rc::new(domain_of), Rc::new(names))
}

/// One constraint after the other; each pod is asked once a constraint.
pub(super) fn propose(draft: &mut Draft<'_, '_>, rule: usize) -> Result<(), EngineError> {
    for index in 0..tracker(draft, rule).balances.len() {
        let mut asked = BTreeSet::<PodId>::new();
        while let Some((id, reason)) = next(draft, rule, index, &asked) {
            asked.insert(id);
            draft.check()?;
            if !draft.admits(rule, id) {
                continue;
            }
            // Nodes are mixed: one at its limit doesn't end it for the others.
            if draft.consider(rule, Candidate::new(id, reason))? == Flow::Stop {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn next(draft: &Draft<'_, '_>, rule: usize, index: usize, asked: &BTreeSet<PodId>) -> Option<(PodId, Reason)> {
    let leavers = tracker(draft, rule).leavers(index);
    leavers.into_iter().find_map(|(_, reason, pods)| {
        let pods = pods.into_iter().filter(|id| !asked.contains(id));
        let order = |id: &PodId| {
            let pod = &draft.stage.scene.pod(*id).pod;
            (is_bound_to_nodes(pod), draft.importance(*id))
        };
        Some((pods.min_by_key(order)?, reason))
    })
}

fn tracker<'d>(draft: &'d Draft<'_, '_>, rule: usize) -> &'d Spread {
    match &draft.stage.trackers[rule] {
        Tracker::Spread(spread) => spread,
        _ => unreachable!("the strategy's own tracker"),
    }
}
