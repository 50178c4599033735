//! Small random clusters in which something is amiss: skewed, overloaded, tainted after the fact, relabelled.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::engine::random_cluster::Dice;
use crate::evict::snapshot::is_healthy;
use crate::model::metrics::{NodeMetrics, PodMetrics};
use crate::model::node_selector::{NodeOperator, NodeRequirement};
use crate::model::pdb::IntOrPercent;
use crate::model::pod_status::{ContainerState, ContainerStatus, Phase, PodCondition, PodStatus};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, quantity, selector};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{
    Effect, Node, NodeSelectorTerm, Object, ObjectMeta, Pod, PodDisruptionBudget, Str, Time, TopologySpreadConstraint,
};

pub(super) const NOW: i64 = 1_000_000;
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// A pod or, later, its replacement.
#[derive(Debug, Clone)]
pub(super) struct Lineage {
    pub(super) pod: Arc<Pod>,
    pub(super) generation: usize,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) pods: Vec<Lineage>,
    /// Their statuses are worked out.
    budgets: Vec<PodDisruptionBudget>,
    metrics: Vec<Object>,
}

impl World {
    pub(super) fn random(dice: &mut Dice) -> Self {
        let nodes: Vec<Node> = (0..2 + dice.below(6)).map(|i| random_node(dice, i).build()).collect();
        let owners: Vec<PodBuilder> = (0..1 + dice.below(4)).map(|i| random_template(dice, i)).collect();
        let mut pods = Vec::new();
        // Most pods crowd on some of the nodes.
        let crowded = 1 + dice.below(nodes.len());
        for i in 0..2 + dice.below(28) {
            let template = &owners[dice.below(owners.len())];
            let among = if dice.one_in(6) { nodes.len() } else { crowded };
            let on = nodes[dice.below(among)].meta.name.clone();
            pods.push(Lineage { pod: Arc::new(random_pod(dice, template, i, &on)), generation: 0 });
        }
        let budgets = (0..dice.below(3)).map(|i| random_budget(dice, i)).collect();
        let mut world = Self { nodes, pods, budgets, metrics: Vec::new() };
        if dice.one_in(3) {
            world.metrics = world.random_metrics(dice);
        }
        world
    }

    fn random_metrics(&self, dice: &mut Dice) -> Vec<Object> {
        let mut metrics = Vec::new();
        for node in &self.nodes {
            let meta = ObjectMeta { name: node.meta.name.clone(), ..ObjectMeta::default() };
            let usage = [("cpu".into(), quantity(dice.pick(&["200m", "1", "3", "5"])))].into_iter().collect();
            metrics.push(NodeMetrics { meta, usage, ..NodeMetrics::default() }.into());
        }
        for lineage in &self.pods {
            if dice.one_in(5) {
                continue;
            }
            let meta = &lineage.pod.meta;
            let meta =
                ObjectMeta { name: meta.name.clone(), namespace: meta.namespace.clone(), ..ObjectMeta::default() };
            let usage = [("cpu".into(), quantity(dice.pick(&["100m", "500m", "2"])))].into_iter().collect();
            let containers = vec![("c".into(), usage)];
            metrics.push(PodMetrics { meta, containers, ..PodMetrics::default() }.into());
        }
        metrics
    }

    /// With the status that the disruption controller would give them now.
    pub(super) fn budgets(&self) -> Vec<PodDisruptionBudget> {
        let with_status = |budget: &PodDisruptionBudget| {
            let mut budget = budget.clone();
            let covered = |l: &&Lineage| {
                l.pod.meta.namespace == budget.meta.namespace && budget.selector.matches(&l.pod.meta.labels)
            };
            let expected = i32::try_from(self.pods.iter().filter(covered).count()).unwrap();
            let healthy = |l: &&Lineage| covered(l) && is_healthy(&l.pod) && !l.pod.meta.is_terminating();
            budget.current_healthy = i32::try_from(self.pods.iter().filter(healthy).count()).unwrap();
            budget.desired_healthy = match (&budget.min_available, &budget.max_unavailable) {
                (Some(IntOrPercent::Int(min)), _) => *min,
                (_, Some(IntOrPercent::Int(max))) => (expected - max).max(0),
                _ => 0,
            };
            budget.expected_pods = expected;
            budget.disruptions_allowed = (budget.current_healthy - budget.desired_healthy).max(0);
            budget
        };
        self.budgets.iter().map(with_status).collect()
    }

    pub(super) fn budgets_of(&self, pod: &Pod) -> Vec<PodDisruptionBudget> {
        let covers =
            |b: &PodDisruptionBudget| b.meta.namespace == pod.meta.namespace && b.selector.matches(&pod.meta.labels);
        self.budgets().into_iter().filter(covers).collect()
    }

    /// A cluster that was fed all of this, in an order that `turned` turns round.
    pub(super) fn cluster(&self, turned: bool) -> Cluster {
        let cluster = Cluster::default();
        let mut objects: Vec<Object> = self.nodes.iter().cloned().map(Object::from).collect();
        objects.extend(self.budgets().into_iter().map(Object::from));
        objects.extend(self.metrics.iter().cloned());
        objects.extend(self.pods.iter().map(|l| Object::Pod(l.pod.clone())));
        if turned {
            objects.reverse();
        }
        for object in objects {
            let mut writer = cluster.writer();
            writer.begin();
            writer.upsert(Prepared::new(object), Origin::anonymous());
        }
        cluster
    }
}

/// What an owner makes anew, under another name, when a pod is gone.
pub(super) fn recreated(pod: &Pod, generation: usize, seed: u64) -> Pod {
    let mut new = pod.clone();
    // Names come before or after those of others by chance.
    let name = format!("{}{}-g{generation}", if seed.is_multiple_of(2) { "a" } else { "z" }, pod.meta.name);
    new.meta.uid = format!("uid-{name}").into();
    new.meta.name = name.into();
    new.meta.created = Some(Time::from_secs(NOW));
    new.spec.node_name = Str::default();
    new.status = PodStatus::default();
    new
}

/// The pod as it runs on a node, ready.
pub(super) fn running(mut pod: Pod, node: &str) -> Pod {
    pod.spec.node_name = node.into();
    pod.status.phase = Phase::Running;
    pod.status.started = Some(Time::from_secs(NOW));
    pod.status.conditions = vec![ready(true)];
    pod
}

fn ready(is: bool) -> PodCondition {
    PodCondition {
        kind: "Ready".into(),
        status: if is { "True" } else { "False" }.into(),
        reason: Str::default(),
        last_transition: Some(Time::from_secs(NOW)),
    }
}

fn random_node(dice: &mut Dice, i: usize) -> NodeBuilder {
    let mut n = node(&format!("n{i}")).cpu(dice.pick(&["2", "4", "8"])).pods(dice.pick(&["3", "6", "110"]));
    if !dice.one_in(6) {
        n = n.zone(dice.pick(&["a", "b"]));
    }
    n = n.label("disk", dice.pick(&["ssd", "hdd"]));
    if dice.one_in(8) {
        n = n.cordoned();
    }
    if dice.one_in(4) {
        n = n.taint("k", dice.pick(&["x", "y"]), dice.pick(&Effect::ALL));
    }
    n
}

/// What the pods of an owner have in common.
fn random_template(dice: &mut Dice, i: usize) -> PodBuilder {
    let app = ["web", "db", "job", "cache"][i % 4];
    let mut p = pod(app).namespace(dice.pick(&["default", "default", "red"])).label("app", app);
    p = p.owner("apps/v1", dice.pick(&["ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet"]), app);
    if dice.one_in(6) {
        // Two owners: at once a trap and a rarity.
        p = p.owner("apps/v1", "ReplicaSet", "other");
    }
    if !dice.one_in(4) {
        p = p.cpu(dice.pick(&["100m", "500m", "1", "3"]));
    }
    let own = || selector(&[("app", app)]);
    if dice.one_in(3) {
        let when = dice.pick(&[WhenUnsatisfiable::DoNotSchedule, WhenUnsatisfiable::ScheduleAnyway]);
        for key in [ZONE, HOST].into_iter().take(1 + dice.below(2)) {
            p = p.spread(TopologySpreadConstraint::new(1, key.into(), when, own()));
        }
    }
    if dice.one_in(4) {
        let other = selector(&[("app", dice.pick(&["web", "db", "cache"]))]);
        p = p.pod_anti_affinity(dice.pick(&[ZONE, HOST]), if dice.one_in(2) { own() } else { other });
    }
    if dice.one_in(6) {
        p = p.preferred_pod_anti_affinity(50, HOST, own());
    }
    let term = |value: &str| NodeSelectorTerm {
        expressions: vec![NodeRequirement { key: "disk".into(), op: NodeOperator::In(vec![value.into()]) }],
        ..NodeSelectorTerm::default()
    };
    match dice.below(8) {
        0 => p = p.required_node_terms(vec![term("ssd")]),
        1 => p = p.preferred_node_term(50, term("ssd")),
        2 => p = p.preferred_node_term(90, term("hdd")).preferred_node_term(10, term("ssd")),
        3 => p = p.node_selector("disk", "ssd"),
        _ => {}
    }
    if dice.one_in(4) {
        p = p.tolerates("k", Some("x"), None);
    }
    if dice.one_in(8) {
        p = p.with(|pod| {
            let mut toleration = pod.spec.tolerations.pop().unwrap_or_else(|| crate::model::Toleration {
                key: "k".into(),
                op: crate::model::taint::TolerationOperator::Exists,
                value: Str::default(),
                effect: Some(Effect::NoExecute),
                seconds: None,
            });
            toleration.seconds = Some(300);
            pod.spec.tolerations.push(toleration);
        });
    }
    if dice.one_in(8) {
        p = p.host_port("", "TCP", 80);
    }
    if dice.one_in(5) {
        p = p.priority(dice.pick(&[-5, 10, 1_000]));
    }
    p
}

fn random_pod(dice: &mut Dice, template: &PodBuilder, i: usize, on: &str) -> Pod {
    let mut p = template.clone().build();
    let name = format!("{}-{i}", p.meta.name);
    p.meta.uid = format!("uid-{name}").into();
    p.meta.name = name.into();
    p.meta.created = (!dice.one_in(6)).then(|| Time::from_secs(dice.pick(&[0_i64, 500_000, 990_000, 999_990])));
    p.spec.node_name = on.into();
    p.status.phase = Phase::Running;
    p.status.started = p.meta.created;
    match dice.below(10) {
        0 => p.status.phase = dice.pick(&[Phase::Failed, Phase::Succeeded]),
        1 => p.status.phase = Phase::Pending,
        2..=4 => p.status.conditions = vec![ready(false)],
        5 => {}
        _ => p.status.conditions = vec![ready(true)],
    }
    if dice.one_in(4) {
        let state = match dice.below(2) {
            0 => ContainerState::Waiting { reason: "CrashLoopBackOff".into() },
            _ => ContainerState::default(),
        };
        let restart_count = i32::try_from(dice.below(10)).unwrap();
        p.status.containers = vec![ContainerStatus { name: "c".into(), restart_count, state, ..Default::default() }];
    }
    if dice.one_in(25) {
        p.meta.deleted = Some(Time::from_secs(NOW));
    }
    if dice.one_in(25) {
        let value = dice.pick(&["true", "false", ""]);
        p.meta.annotations.insert(crate::evict::evictor::EVICT.into(), value.into());
    }
    // A label that was changed after the fact: rules see another pod than the one that was placed.
    if dice.one_in(10) {
        p.meta.labels.insert("app".into(), dice.pick(&["web", "db"]).into());
    }
    p
}

fn random_budget(dice: &mut Dice, i: usize) -> PodDisruptionBudget {
    let mut budget = PodDisruptionBudget {
        meta: ObjectMeta { name: format!("b{i}").into(), namespace: "default".into(), ..ObjectMeta::default() },
        selector: selector(&[("app", dice.pick(&["web", "db", "job"]))]),
        always_allow_unhealthy: dice.one_in(3),
        ..PodDisruptionBudget::default()
    };
    let amount = Some(IntOrPercent::Int(i32::try_from(dice.below(3)).unwrap()));
    if dice.one_in(2) {
        budget.min_available = amount;
    } else {
        budget.max_unavailable = amount;
    }
    budget
}
