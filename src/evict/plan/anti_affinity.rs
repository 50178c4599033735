//! RemovePodsViolatingInterPodAntiAffinity, planned: pods that exclude each other don't share a topology.
//!
//! Of both sides of a broken rule the less important pod goes, be it the one that states it or the one that breaks it. The
//! rule is the scheduler's (namespace selectors count, and pods of one name are two pods); only pods that the strategy's
//! arguments select are looked at. A node without the topology label is a topology of its own, as in the descheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::draft::{Draft, Flow};
use super::measure::{Tracker, is_active};
use super::stage::Move;
use crate::cluster::pod_set::{Namespaces, PodSet};
use crate::engine::EngineError;
use crate::evict::node_fit::anti_affinity;
use crate::evict::policy::RemovePodsViolatingInterPodAntiAffinityArgs;
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::evict::strategies::{Candidate, is_selected};
use crate::model::Str;

/// A required term, whoever states it: pods of a kind share one.
#[derive(Debug, Clone)]
struct Term {
    topology_key: Str,
    /// By node.
    domain_of: Rc<Vec<usize>>,
    /// By domain: who states it.
    owners: Domains,
    /// By domain: of whom it speaks.
    targets: Domains,
}

/// Those without pods are left out: terms times nodes may be many.
#[derive(Debug, Clone, Default)]
struct Domains(BTreeMap<usize, BTreeSet<PodId>>);

impl Domains {
    fn pods(&self, domain: usize) -> impl Iterator<Item = &PodId> {
        self.0.get(&domain).into_iter().flatten()
    }

    fn contains(&self, domain: usize, id: PodId) -> bool {
        self.0.get(&domain).is_some_and(|pods| pods.contains(&id))
    }

    fn others(&self, domain: usize, id: PodId) -> usize {
        self.0.get(&domain).map_or(0, |pods| pods.len() - usize::from(pods.contains(&id)))
    }

    fn insert(&mut self, domain: usize, id: PodId) {
        self.0.entry(domain).or_default().insert(id);
    }

    fn remove(&mut self, domain: usize, id: PodId) {
        if let Some(pods) = self.0.get_mut(&domain) {
            pods.remove(&id);
        }
    }
}

/// What a term is to a pod.
#[derive(Debug, Clone, Copy)]
struct Part {
    term: usize,
    owner: bool,
    target: bool,
}

#[derive(Debug, Clone)]
pub(super) struct AntiAffinity {
    terms: Vec<Term>,
    /// By pod, running or not.
    parts: Rc<Vec<Rc<[Part]>>>,
    value: i64,
}

impl AntiAffinity {
    pub(super) fn new(args: &RemovePodsViolatingInterPodAntiAffinityArgs, scene: &Scene, nodes: &[NodeId]) -> Self {
        let mut on_policy_nodes = vec![false; scene.nodes().count()];
        nodes.iter().for_each(|node| on_policy_nodes[node.index()] = true);
        let selected = |id: &PodId| is_selected(&scene.pod(*id).pod, &args.pods);
        let pods: Vec<PodId> = scene.cancel.guard(scene.pods()).filter(selected).collect();
        let mut known = BTreeMap::<(PodSet, Str), usize>::new();
        let mut stated = BTreeMap::<PodId, Vec<usize>>::new();
        for id in scene.cancel.guard(&pods) {
            let pod = &scene.pod(*id).pod;
            for term in scene.cancel.guard(anti_affinity(pod)) {
                let namespaces = Namespaces::of_term(term, &pod.meta.namespace);
                let set = PodSet { namespaces, selector: term.selector.clone() };
                let next = known.len();
                let index = *known.entry((set, term.topology_key.clone())).or_insert(next);
                stated.entry(*id).or_default().push(index);
            }
        }
        let mut domains = BTreeMap::<Str, Rc<Vec<usize>>>::new();
        let mut terms: Vec<(PodSet, Term)> = Vec::with_capacity(known.len());
        let mut by_index: Vec<((PodSet, Str), usize)> = known.into_iter().collect();
        by_index.sort_by_key(|(_, index)| *index);
        for ((set, topology_key), _) in by_index {
            let domain_of =
                domains.entry(topology_key.clone()).or_insert_with(|| domains_by(scene, &topology_key)).clone();
            terms
                .push((set, Term { topology_key, domain_of, owners: Domains::default(), targets: Domains::default() }));
        }
        let mut this = Self { terms: Vec::new(), parts: Rc::default(), value: 0 };
        let parts = parts_of_pods(scene, &pods, &stated, &terms);
        this.terms = terms.into_iter().map(|(_, term)| term).collect();
        this.parts = Rc::new(parts);
        for id in scene.cancel.guard(pods) {
            let subject = scene.pod(id);
            if is_active(&subject.pod) && on_policy_nodes[subject.node.index()] {
                this.insert(id, subject.node);
            }
        }
        this
    }

    pub(super) fn value(&self) -> i64 {
        self.value
    }

    /// How many terms a pod breaks or sees broken on a node, itself not counted.
    fn conflicts(&self, id: PodId, node: NodeId) -> i64 {
        let of = |part: &Part| {
            let term = &self.terms[part.term];
            let domain = term.domain_of[node.index()];
            let as_owner = if part.owner { term.targets.others(domain, id) } else { 0 };
            let as_target = if part.target { term.owners.others(domain, id) } else { 0 };
            as_owner + as_target
        };
        i64::try_from(self.parts[id.index()].iter().map(of).sum::<usize>()).unwrap_or(i64::MAX)
    }

    fn insert(&mut self, id: PodId, node: NodeId) {
        self.value += self.conflicts(id, node);
        self.set(id, node, Domains::insert);
    }

    fn remove(&mut self, id: PodId, node: NodeId) {
        self.set(id, node, Domains::remove);
        self.value -= self.conflicts(id, node);
    }

    fn set(&mut self, id: PodId, node: NodeId, change: fn(&mut Domains, usize, PodId)) {
        for part in self.parts[id.index()].iter() {
            let term = &mut self.terms[part.term];
            let domain = term.domain_of[node.index()];
            if part.owner {
                change(&mut term.owners, domain, id);
            }
            if part.target {
                change(&mut term.targets, domain, id);
            }
        }
    }

    fn is_counted(&self, id: PodId, node: NodeId) -> bool {
        self.parts[id.index()].iter().any(|part| {
            let term = &self.terms[part.term];
            let domain = term.domain_of[node.index()];
            term.owners.contains(domain, id) || term.targets.contains(domain, id)
        })
    }

    pub(super) fn change(&self, moved: &Move) -> i64 {
        if self.parts[moved.id.index()].is_empty() {
            return 0;
        }
        let before = if self.is_counted(moved.id, moved.from) { self.conflicts(moved.id, moved.from) } else { 0 };
        let after = if is_active(&moved.new) { self.conflicts(moved.id, moved.to) } else { 0 };
        after - before
    }

    pub(super) fn apply(&mut self, moved: &Move) {
        if self.is_counted(moved.id, moved.from) {
            self.remove(moved.id, moved.from);
        }
        if is_active(&moved.new) {
            self.insert(moved.id, moved.to);
        }
    }

    /// The pods that share a topology with one that they exclude or that excludes them.
    fn in_conflict(&self, scene: &Scene) -> Vec<PodId> {
        let conflicts = |id: &PodId| {
            let node = scene.pod(*id).node;
            self.is_counted(*id, node) && self.conflicts(*id, node) > 0
        };
        scene.cancel.guard(scene.pods()).filter(conflicts).collect()
    }

    /// The first other pod that a pod is in conflict with, and over which topology.
    fn reason(&self, scene: &Scene, id: PodId) -> Option<Reason> {
        let node = scene.pod(id).node;
        self.parts[id.index()].iter().find_map(|part| {
            let term = &self.terms[part.term];
            let domain = term.domain_of[node.index()];
            let targets = term.targets.pods(domain).filter(|_| part.owner);
            let owners = term.owners.pods(domain).filter(|_| part.target);
            let peer = targets.chain(owners).find(|other| **other != id)?;
            let peer = scene.pod(*peer).pod.meta.key().into();
            Some(Reason::AntiAffinity { peer, topology_key: term.topology_key.clone() })
        })
    }
}

/// Nodes with the label by its value, each other node by itself.
fn domains_by(scene: &Scene, key: &Str) -> Rc<Vec<usize>> {
    let mut values = BTreeMap::<Str, usize>::new();
    let mut next = 0;
    let mut fresh = || {
        next += 1;
        next - 1
    };
    let of = |node: NodeId| match scene.node(node).node.meta.labels.get(key) {
        Some(value) => *values.entry(value.clone()).or_insert_with(&mut fresh),
        None => fresh(),
    };
    Rc::new(scene.nodes().map(of).collect())
}

/// Pods of one namespace and labels are spoken of by the same terms.
fn parts_of_pods(
    scene: &Scene,
    pods: &[PodId],
    stated: &BTreeMap<PodId, Vec<usize>>,
    terms: &[(PodSet, Term)],
) -> Vec<Rc<[Part]>> {
    let none: Rc<[Part]> = Rc::from([]);
    let mut parts = vec![none; scene.pods().count()];
    if terms.is_empty() {
        return parts;
    }
    let mut spoken_of = BTreeMap::<(&Str, Vec<(&Str, &Str)>), Vec<usize>>::new();
    for id in scene.cancel.guard(pods) {
        let pod = &scene.pod(*id).pod;
        let key = (&pod.meta.namespace, pod.meta.labels.iter().collect::<Vec<_>>());
        let matching = spoken_of.entry(key).or_insert_with(|| {
            let all = scene.cancel.guard(terms.iter().enumerate());
            all.filter(|(_, (set, _))| set.matches(pod, &scene.objects)).map(|(i, _)| i).collect()
        });
        let own = stated.get(id).map_or(&[][..], Vec::as_slice);
        let mut involved: BTreeSet<usize> = matching.iter().copied().collect();
        involved.extend(own);
        let own: BTreeSet<usize> = own.iter().copied().collect();
        // Indexes come in ascending order.
        let is_target = |term: usize| matching.binary_search(&term).is_ok();
        let part = |term: usize| Part { term, owner: own.contains(&term), target: is_target(term) };
        parts[id.index()] = involved.into_iter().map(part).collect::<Vec<Part>>().into();
    }
    parts
}

/// The least important pods first, over all nodes; each as long as it is still in conflict.
pub(super) fn propose(draft: &mut Draft<'_, '_>, rule: usize) -> Result<(), EngineError> {
    let mut pods = tracker(draft, rule).in_conflict(&draft.stage.scene);
    pods.sort_by_key(|id| draft.importance(*id));
    for id in pods {
        draft.check()?;
        let Some(reason) = tracker(draft, rule).reason(&draft.stage.scene, id) else { continue };
        if !draft.admits(rule, id) {
            continue;
        }
        // A full node is no reason to skip the rest: pods of all nodes are mixed.
        if draft.consider(rule, Candidate::new(id, reason))? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

fn tracker<'d>(draft: &'d Draft<'_, '_>, rule: usize) -> &'d AntiAffinity {
    match &draft.stage.trackers[rule] {
        Tracker::AntiAffinity(pairs) => pairs,
        _ => unreachable!("the strategy's own tracker"),
    }
}
