//! The cluster as it will be in the middle of a plan: what strategies read, what the engine reads, and what each enabled
//! strategy measures, all kept in step.

use std::sync::Arc;

use crate::cluster::{PodInfo, View, VolumeBinding};
use crate::evict::snapshot::{NodeId, PodId, Scene};
use crate::model::pod_status::{Phase, PodCondition, PodStatus};
use crate::model::{Pod, Str, Time};

use super::measure::Tracker;

/// What a replacement reports as soon as it runs.
const CONDITIONS: [&str; 5] = ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

#[derive(Clone)]
pub(super) struct Stage<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) view: View,
    /// One for each rule that is enabled, in the order in which they run.
    pub(super) trackers: Vec<Tracker<'a>>,
}

/// A pod that goes and the replacement that comes.
#[derive(Debug, Clone)]
pub(super) struct Move {
    pub(super) id: PodId,
    pub(super) old: Arc<Pod>,
    pub(super) from: NodeId,
    pub(super) new: Arc<Pod>,
    pub(super) to: NodeId,
}

impl Move {
    fn reversed(&self) -> Self {
        Self { id: self.id, old: self.new.clone(), from: self.to, new: self.old.clone(), to: self.from }
    }
}

/// A move that was played, and what it takes to undo it.
pub(super) struct Played {
    pub(super) moved: Move,
    /// None: the pod took no room, since it had ended.
    info: Option<Arc<PodInfo>>,
}

/// What an owner makes in place of a pod that was evicted: the same spec, running and ready at once, on no node yet. Its
/// name stays here, where only the order of equals goes by names.
pub(super) fn replacement(pod: &Pod, now: Time) -> Pod {
    let mut new = pod.clone();
    new.spec.node_name = Str::default();
    // A uid of its own; of a replacement's replacement, too.
    new.meta.uid = format!("{}/next", pod.meta.uid).into();
    new.meta.created = Some(now);
    new.meta.resource_version = Str::default();
    let condition = |kind: &str| PodCondition {
        kind: kind.into(),
        status: "True".into(),
        reason: Str::default(),
        last_transition: Some(now),
    };
    new.status = PodStatus {
        phase: Phase::Running,
        started: Some(now),
        conditions: CONDITIONS.map(condition).to_vec(),
        qos_class: pod.status.qos_class.clone(),
        ..PodStatus::default()
    };
    new
}

impl Stage<'_> {
    /// Takes a pod off the view, so that the engine can be asked about its replacement.
    pub(super) fn lift(&mut self, id: PodId) -> Option<Arc<PodInfo>> {
        self.view.remove_pod(&self.scene.pod(id).pod.meta.uid)
    }

    pub(super) fn put_back(&mut self, info: Option<Arc<PodInfo>>) {
        if let Some(info) = info {
            self.view.add_pod(info);
        }
    }

    /// Plays a move of a pod that was lifted.
    pub(super) fn play(&mut self, lifted: Option<Arc<PodInfo>>, moved: Move, bindings: Vec<VolumeBinding>) -> Played {
        self.view.add_pod(Arc::new(PodInfo::bound(moved.new.clone()).with_bindings(bindings)));
        self.follow(&moved);
        Played { moved, info: lifted }
    }

    pub(super) fn undo(&mut self, played: Played) {
        self.view.remove_pod(&played.moved.new.meta.uid);
        self.put_back(played.info);
        self.follow(&played.moved.reversed());
    }

    fn follow(&mut self, moved: &Move) {
        for tracker in &mut self.trackers {
            tracker.apply(&self.scene, moved);
        }
        self.scene.replace(moved.id, moved.new.clone(), moved.to);
    }
}
