//! Random clusters and histories for property tests.
//!
//! An event is one number; everything about it is drawn from a generator seeded with it, so that proptest shrinks a history
//! by leaving events out. Names and values come from small sets, so that selectors match, domains are shared and nodes and
//! pods are replaced often.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Profile;
use super::random_storage::{random_storage_object, random_volume};
use crate::cluster::Cluster;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::pod_status::Phase;
use crate::model::selector::{Operator, Requirement};
use crate::model::taint::TolerationOperator;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, service};
use crate::model::topology_spread::{InclusionPolicy, WhenUnsatisfiable};
use crate::model::{
    Effect, Kind, LabelSelector, Namespace, Object, ObjectMeta, ObjectRef, Pod, PodAffinity, PodAffinityTerm, Str,
    Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// SplitMix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const NODES: usize = 10;
const PODS: usize = 50;
const NAMESPACES: [&str; 4] = ["default", "red", "blue", "unfed"];
const APPS: [&str; 3] = ["web", "db", "cache"];

fn random_node(dice: &mut Dice) -> NodeBuilder {
    let mut n = node(&format!("n{}", dice.below(NODES)));
    if dice.one_in(12) {
        return n.no_labels();
    }
    if !dice.one_in(5) {
        n = n.zone(dice.pick(&["a", "b", "c"]));
    }
    if dice.one_in(2) {
        n = n.label("rack", dice.pick(&["1", "2"]));
    }
    n = n.cpu(dice.pick(&["2", "4", "8"])).pods(dice.pick(&["4", "10", "110"]));
    if dice.one_in(8) {
        n = n.cordoned();
    }
    if dice.one_in(4) {
        n = n.taint("dedicated", dice.pick(&["x", "y"]), dice.pick(&Effect::ALL));
    }
    if dice.one_in(3) {
        n = n.image("registry.example/app:v1", 500 * 1024 * 1024);
    }
    n
}

fn random_selector(dice: &mut Dice) -> LabelSelector {
    let some = |dice: &mut Dice| match dice.below(6) {
        0 => Requirement { key: "app".into(), op: Operator::Exists },
        1 => Requirement { key: "app".into(), op: Operator::NotIn(vec![dice.pick(&APPS).into()]) },
        2 => Requirement { key: "app".into(), op: Operator::In(vec!["web".into(), "db".into()]) },
        3 => Requirement::equals("tier".into(), dice.pick(&["1", "2"]).into()),
        _ => Requirement::equals("app".into(), dice.pick(&APPS).into()),
    };
    match dice.below(12) {
        0 => LabelSelector::Nothing,
        1 => LabelSelector::everything(),
        2 | 3 => LabelSelector::new([some(dice), some(dice)]),
        _ => LabelSelector::new([some(dice)]),
    }
}

fn random_namespace_selector(dice: &mut Dice) -> LabelSelector {
    let team = |op| LabelSelector::new([Requirement { key: "team".into(), op }]);
    match dice.below(5) {
        0 => LabelSelector::everything(),
        1 => team(Operator::NotIn(vec!["a".into()])),
        2 => team(Operator::DoesNotExist),
        3 => team(Operator::Exists),
        _ => team(Operator::In(vec![dice.pick(&["a", "b"]).into()])),
    }
}

fn random_term(dice: &mut Dice) -> PodAffinityTerm {
    let mut term = PodAffinityTerm {
        selector: random_selector(dice),
        topology_key: dice.pick(&[ZONE, ZONE, HOST, "rack"]).into(),
        ..Default::default()
    };
    if dice.one_in(3) {
        term.namespaces = (0..=dice.below(2)).map(|_| Str::from(dice.pick(&NAMESPACES))).collect();
    }
    if dice.one_in(3) {
        term.namespace_selector = Some(random_namespace_selector(dice));
    }
    term
}

/// A side of pod affinity; `required` is how often a required term is drawn.
fn random_side(dice: &mut Dice, required: usize) -> PodAffinity {
    let mut side = PodAffinity::default();
    for _ in 0..2 {
        if dice.one_in(required) {
            side.required.push(random_term(dice));
        }
        if dice.one_in(3) {
            let weight = i32::try_from(1 + dice.below(100)).unwrap();
            side.preferred.push(WeightedPodAffinityTerm { weight, term: random_term(dice) });
        }
    }
    side
}

fn random_spread(dice: &mut Dice) -> TopologySpreadConstraint {
    let when = dice.pick(&[WhenUnsatisfiable::DoNotSchedule, WhenUnsatisfiable::ScheduleAnyway]);
    let skew = 1 + i32::from(dice.one_in(2));
    let mut c = TopologySpreadConstraint::new(skew, dice.pick(&[ZONE, HOST]).into(), when, random_selector(dice));
    c.node_taints_policy = dice.pick(&[InclusionPolicy::Honor, InclusionPolicy::Ignore]);
    c.node_affinity_policy = dice.pick(&[InclusionPolicy::Honor, InclusionPolicy::Ignore]);
    c
}

/// A pod that could be bound or pending. Bound ones have terms less often, else nothing would fit anywhere.
pub(crate) fn random_pod(dice: &mut Dice, name: &str, bound: bool) -> PodBuilder {
    let mut p = pod(name).namespace(dice.pick(&NAMESPACES));
    if !dice.one_in(5) {
        p = p.label("app", dice.pick(&APPS));
    }
    if dice.one_in(2) {
        p = p.label("tier", dice.pick(&["1", "2"]));
    }
    if dice.one_in(2) {
        p = p.cpu(dice.pick(&["100m", "500m", "3"]));
    }
    let rare = if bound { 5 } else { 2 };
    if dice.one_in(rare) {
        p = p.affinity(|a| a.pod = Some(random_side(dice, 3)));
    }
    if dice.one_in(rare) {
        p = p.affinity(|a| a.pod_anti = Some(random_side(dice, if bound { 8 } else { 3 })));
    }
    if dice.one_in(6) {
        p = p.host_port("", "TCP", 80);
    }
    if dice.one_in(4) {
        for i in 0..=dice.below(2) {
            p = p.volume(&format!("v{i}"), random_volume(dice));
        }
    }
    if !bound {
        for _ in 0..dice.below(3) {
            p = p.spread(random_spread(dice));
        }
        if dice.one_in(4) {
            p = p.node_selector("rack", dice.pick(&["1", "2"]));
        }
        if dice.one_in(3) {
            p = p.with(|pod| pod.spec.tolerations.push(exists_toleration()));
        }
    }
    p
}

fn exists_toleration() -> Toleration {
    Toleration { key: "".into(), op: TolerationOperator::Exists, value: "".into(), effect: None, seconds: None }
}

fn random_bound(dice: &mut Dice, name: &str) -> Pod {
    // A new uid now and then: the pod was deleted and made anew under its name.
    let p = random_pod(dice, name, true);
    let namespace = p.clone().build().meta.namespace;
    let mut p = p.uid(&format!("uid-{namespace}-{name}-{}", dice.below(2))).on(&format!("n{}", dice.below(NODES + 1)));
    if dice.one_in(6) {
        p = p.terminating();
    }
    if dice.one_in(10) {
        p = p.phase(Phase::Succeeded);
    }
    p.build()
}

/// A cluster under a random history, next to the objects that the history left.
pub(crate) struct History {
    pub(crate) cluster: Cluster,
    objects: BTreeMap<(Kind, String, String), Object>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { cluster: Cluster::default(), objects: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, event: u64, profile: &Profile) {
        let mut dice = Dice::new(event);
        match dice.below(30) {
            0..=2 => self.put(random_node(&mut dice).build()),
            3 => {
                let name = format!("n{}", dice.below(NODES));
                self.delete(Kind::Node, "", &name);
            }
            4..=6 => {
                let name = dice.pick(&NAMESPACES[..3]);
                let team = dice.pick(&[None, Some("a"), Some("b")]);
                let labels = team.into_iter().map(|team| ("team", team)).collect();
                self.put(Namespace { meta: ObjectMeta { name: name.into(), labels, ..Default::default() } });
            }
            7 => {
                let name = dice.pick(&NAMESPACES);
                self.delete(Kind::Namespace, "", name);
            }
            8 => {
                let app = dice.pick(&APPS);
                self.put(service(app, &[("app", app)]));
            }
            9..=10 => {
                let (pod, view) = (random_pod(&mut dice, "watched", false).build(), self.cluster.fork());
                self.cluster.writer().watch(profile.count_keys(&view, &pod));
            }
            11..=13 => self.change_some_pod(&mut dice),
            14..=15 => {
                let pods = self.pods();
                if let Some((namespace, name)) = (!pods.is_empty()).then(|| pods[dice.below(pods.len())].clone()) {
                    self.delete(Kind::Pod, &namespace, &name);
                }
            }
            16..=23 => {
                let namespace = dice.pick(&NAMESPACES);
                self.put(random_storage_object(&mut dice, namespace));
            }
            24 => {
                let namespace = dice.pick(&NAMESPACES);
                let object = random_storage_object(&mut dice, namespace);
                let meta = object.meta();
                self.delete(object.kind(), &meta.namespace, &meta.name);
            }
            _ => {
                let name = format!("p{}", dice.below(PODS));
                self.put(random_bound(&mut dice, &name));
            }
        }
    }

    fn pods(&self) -> Vec<(String, String)> {
        let pods = self.objects.keys().filter(|(kind, ..)| *kind == Kind::Pod);
        pods.map(|(_, namespace, name)| (namespace.clone(), name.clone())).collect()
    }

    /// Relabels a pod, lets it begin to terminate or end, or moves nothing but its labels' values.
    fn change_some_pod(&mut self, dice: &mut Dice) {
        let pods = self.pods();
        if pods.is_empty() {
            return;
        }
        let (namespace, name) = pods[dice.below(pods.len())].clone();
        let Some(Object::Pod(old)) = self.objects.get(&(Kind::Pod, namespace, name)) else { return };
        let mut changed = Pod::clone(old);
        match dice.below(4) {
            0 => changed.meta.deleted = Some(crate::model::Time::from_secs(9)),
            1 => changed.status.phase = Phase::Failed,
            _ => changed.meta.labels.insert("app".into(), dice.pick(&APPS).into()),
        }
        self.put(changed);
    }

    fn put(&mut self, object: impl Into<Object>) {
        let object = object.into();
        let meta = object.meta();
        self.objects.insert((object.kind(), meta.namespace.to_string(), meta.name.to_string()), object.clone());
        write(&self.cluster, object);
    }

    fn delete(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.objects.remove(&(kind, namespace.to_owned(), name.to_owned()));
        let reference = ObjectRef { kind, namespace: namespace.into(), name: name.into(), uid: Str::default() };
        let mut writer = self.cluster.writer();
        writer.begin();
        writer.delete(&reference);
    }

    /// A cluster that was fed the remaining objects once, in an order of its own, and keeps no counts.
    pub(crate) fn rebuilt(&self) -> Cluster {
        let cluster = Cluster::default();
        self.objects.values().rev().for_each(|object| write(&cluster, object.clone()));
        cluster
    }
}

fn write(cluster: &Cluster, object: Object) {
    let mut writer = cluster.writer();
    writer.begin();
    writer.upsert(Prepared::new(object), Origin::anonymous());
}

/// A pod to decide on.
pub(crate) fn incoming(dice: &mut Dice) -> Arc<Pod> {
    Arc::new(random_pod(dice, "incoming", false).build())
}
