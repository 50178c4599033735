//! The traps of spec section 22 and the rules behind them, over small scenes.
//!
//! A [`Trap`] states what goes in COMPATIBLE mode and what should go in PLANNED mode, where the accident is put right. Not here,
//! for want of the thing: 64 and 65 (Prometheus), 93 (evictions in background), 94 (dry run), 95 (pods have uids), and those
//! about reading policies (2 to 10, 14 to 21).

mod cycle;
mod evictor_traps;
mod node_fit_traps;
mod planned;
mod reasons;
mod rule_traps;
mod spread_traps;
mod utilization_traps;

use std::sync::Arc;

use super::policy::{DefaultEvictorArgs, PluginConfig, PodLifeTimeArgs, Policy, PolicyProfile};
use super::{Outcome, Scene, cycle as cycles, plan};
use crate::cluster::{Cancel, PodInfo, View};
use crate::engine::Profile;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod};
use crate::model::{Object, Time};

/// When the scenes are looked at, in seconds.
const NOW: i64 = 1_000_000;

/// What a policy is asked about.
#[derive(Clone)]
struct Given {
    nodes: Vec<NodeBuilder>,
    pods: Vec<PodBuilder>,
    objects: Vec<Object>,
    policy: Policy,
}

/// A policy of one profile with one plugin, over two plain nodes `n1` and `n2`.
fn given(plugin: PluginConfig, pods: impl IntoIterator<Item = PodBuilder>) -> Given {
    let profile = with_plugin(plugin, DefaultEvictorArgs::default());
    let policy = Policy { profiles: vec![profile], ..Policy::default() };
    Given { nodes: vec![node("n1"), node("n2")], pods: pods.into_iter().collect(), objects: Vec::new(), policy }
}

fn with_plugin(plugin: PluginConfig, evictor: DefaultEvictorArgs) -> PolicyProfile {
    use super::policy::ExtensionPoint;
    let mut profile = PolicyProfile { name: "p".into(), evictor, ..PolicyProfile::default() };
    match plugin.name().extension_point() {
        ExtensionPoint::Deschedule => profile.deschedule.push(plugin),
        ExtensionPoint::Balance => profile.balance.push(plugin),
    }
    profile
}

impl Given {
    fn nodes(mut self, nodes: impl IntoIterator<Item = NodeBuilder>) -> Self {
        self.nodes = nodes.into_iter().collect();
        self
    }

    fn object(mut self, object: impl Into<Object>) -> Self {
        self.objects.push(object.into());
        self
    }

    fn evictor(mut self, change: impl FnOnce(&mut DefaultEvictorArgs)) -> Self {
        change(&mut self.policy.profiles[0].evictor);
        self
    }

    fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// As strategies and as the engine see it.
    fn stage(&self) -> (Scene<'static>, View) {
        let mut view = View::default();
        for object in &self.objects {
            view.set_object(object.clone());
        }
        let nodes: Vec<_> = self.nodes.iter().map(|node| Arc::new(node.clone().build())).collect();
        let pods: Vec<_> = self.pods.iter().map(|pod| Arc::new(pod.clone().build())).collect();
        for node in &nodes {
            view.upsert_node(node.clone());
        }
        for pod in pods.iter().filter(|pod| pod.is_bound() && !pod.is_terminal()) {
            view.add_pod(Arc::new(PodInfo::bound(pod.clone())));
        }
        let objects = view.objects().clone();
        (Scene::new(nodes.into_iter(), pods.into_iter(), objects, Time::from_secs(NOW), Cancel::never()), view)
    }

    fn scene(&self) -> Scene<'static> {
        self.stage().0
    }

    fn plan(&self) -> Outcome {
        let (scene, view) = self.stage();
        let profile = Arc::new(Profile::default());
        let profiles = |name: &str| (name == &**profile.name()).then(|| profile.clone());
        plan::plan(scene, view, &self.policy, &profiles).unwrap()
    }

    fn outcome(&self) -> Outcome {
        cycles::compatible(&self.scene(), &self.policy).unwrap()
    }

    /// Names of the pods that go, in order.
    fn evicted(&self) -> Vec<String> {
        names(&self.outcome())
    }
}

fn names(outcome: &Outcome) -> Vec<String> {
    outcome.suggestions.iter().map(|s| s.pod.meta.name.to_string()).collect()
}

/// An input of section 22 and what should come of it.
struct Trap {
    number: u32,
    what: &'static str,
    given: Given,
    compatible: &'static [&'static str],
    /// Where it isn't the same: a fix.
    planned: Option<&'static [&'static str]>,
}

fn trap(number: u32, what: &'static str, given: Given, compatible: &'static [&'static str]) -> Trap {
    Trap { number, what, given, compatible, planned: None }
}

impl Trap {
    fn fixed(mut self, planned: &'static [&'static str]) -> Self {
        self.planned = Some(planned);
        self
    }
}

fn check(traps: Vec<Trap>) {
    for Trap { number, what, given, compatible, planned } in traps {
        assert_eq!(given.evicted(), compatible, "trap {number}: {what}");
        let Some(planned) = planned else { continue };
        assert_ne!(planned, compatible, "trap {number}: a fix changes something");
        let outcome = given.plan();
        assert_eq!(names(&outcome), planned, "trap {number}, planned: {what}: {:?}", outcome.left_alone);
    }
}

/// A running pod of a ReplicaSet on `n1`, old enough for [`old`].
fn replica(name: &str) -> PodBuilder {
    pod(name).owner("apps/v1", "ReplicaSet", "rs").on("n1").created(0).started(0)
}

/// Wants every pod older than a minute to go.
fn old() -> PluginConfig {
    PluginConfig::PodLifeTime(PodLifeTimeArgs { max_seconds: Some(60), ..PodLifeTimeArgs::default() })
}
