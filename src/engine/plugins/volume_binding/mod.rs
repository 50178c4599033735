//! VolumeBinding (spec 4.11): bound volumes must reach the node, and claims that wait for their first consumer must find a
//! volume there or a class that makes one.
//!
//! `claims.rs` sorts the pod's claims, `bound.rs` judges bound ones, `matching.rs` finds existing volumes, `provisioning.rs`
//! judges classes. All that doesn't depend on the node is worked out once per pod; a node then costs a few label look-ups,
//! however many volumes the class has.
//!
//! What was chosen for the node that gets the pod is told by `bindings`, and a reservation holds it: a volume that is held
//! for another claim counts as that claim's, and a claim for which something is held keeps to it.
//!
//! The score is behind a feature gate that is off: the plugin is a scorer that skips, as upstream.

mod bound;
mod claims;
mod matching;
mod provisioning;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use self::bound::Bound;
use self::claims::{Claims, Refusal};
use self::matching::Candidates;
use self::provisioning::Provisioning;
use crate::cluster::pod_volumes::ClaimKey;
use crate::cluster::{Cancel, NodeRow, View, VolumeBinding};
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter, PreScore, ScorePlugin};
use crate::engine::status::{Code, Reason, Rejection};
use crate::engine::volume_reason::VolumeReason;
use crate::model::storage::{PersistentVolume, PersistentVolumeClaim};
use crate::model::volume::VolumeSource;
use crate::model::{Quantity, Str};

const NAME: &str = "VolumeBinding";

#[derive(Debug)]
pub struct VolumeBindingPlugin;

/// Upstream leaves most deletions out, and pods: here a pod that holds a reservation holds the volumes promised to it.
const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeLabel])
    .with(EventResource::AssignedPod, &[ActionType::Add, ActionType::Delete])
    .with(EventResource::PersistentVolume, ActionType::ANY_CHANGE)
    .with(EventResource::PersistentVolumeClaim, ActionType::ANY_CHANGE)
    .with(EventResource::StorageClass, ActionType::ANY_CHANGE)
    .with(EventResource::CsiNode, ActionType::ANY_CHANGE)
    .with(EventResource::CsiDriver, ActionType::ANY_CHANGE)
    .with(EventResource::CsiStorageCapacity, ActionType::ANY_CHANGE);

impl Plugin for VolumeBindingPlugin {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let claims = sizes.pod.spec.volumes.iter();
        let claims =
            units(claims.filter(|v| !matches!(v.source, VolumeSource::EmptyDir | VolumeSource::HostPath)).count());
        // Each may have to look at all volumes that are free, which are some of the objects.
        let volumes = units(sizes.view.objects().len());
        Share { prepare: claims.saturating_mul(8 + volumes), ..Share::a_node(1 + claims.saturating_mul(4), 0) }
    }
}

impl ScorePlugin for VolumeBindingPlugin {
    fn prepare<'a>(&'a self, _cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        PreScore::Skip
    }
}

impl FilterPlugin for VolumeBindingPlugin {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        match Claims::of(cycle.view.objects(), cycle.pod.pod, cycle.cancel) {
            Err(Refusal::Error(error)) => PreFilter::Error(error),
            Err(Refusal::Reject(reason)) => PreFilter::Reject(Rejection::unresolvable(NAME, Reason::Volume(reason))),
            Ok(None) => PreFilter::Skip,
            Ok(Some(claims)) => PreFilter::Filter(Box::new(Filter::new(cycle, &claims))),
        }
    }
}

/// A claim that waits for its first consumer.
struct Delayed<'a> {
    key: ClaimKey,
    request: Quantity,
    /// The only node for which its volume may be made: it was decided before, and no existing volume is looked for.
    selected: Option<Str>,
    candidates: Candidates<'a>,
    provisioning: Provisioning<'a>,
}

impl<'a> Delayed<'a> {
    fn new(view: &'a View, claim: &'a PersistentVolumeClaim, cancel: Cancel<'a>) -> Self {
        let key = (claim.meta.namespace.clone(), claim.meta.name.clone());
        let held = view.volumes().binding_of(&key).filter(|binding| binding.volume.is_none());
        let selected = claim.selected_node().or(held.map(|binding| &binding.node)).cloned();
        let candidates = match selected {
            Some(_) => Candidates::default(),
            None => Candidates::of(view, claim, &key, cancel),
        };
        Self { request: claim.request, selected, candidates, provisioning: Provisioning::of(view, claim, cancel), key }
    }
}

struct Filter<'a> {
    bound: Vec<Bound<'a>>,
    /// In the order in which they get a volume: first those whose node is selected, then by size, the smallest first.
    delayed: Vec<Delayed<'a>>,
    cancel: Cancel<'a>,
}

/// By claim (its place in `delayed`) the volume that it gets; None: one is made.
type Plan<'a> = SmallVec<[(usize, Option<&'a PersistentVolume>); 2]>;

impl<'a> Filter<'a> {
    fn new(cycle: &Cycle<'a>, claims: &Claims<'a>) -> Self {
        let (view, cancel) = (cycle.view, cycle.cancel);
        let delayed = cancel.guard(&claims.delayed).map(|claim| Delayed::new(view, claim, cancel));
        let mut delayed: Vec<Delayed<'a>> = delayed.collect();
        delayed.sort_by(|a, b| {
            let key = |d: &Delayed<'a>| d.selected.is_none().then_some(d.request);
            key(a).cmp(&key(b))
        });
        let bound = cancel.guard(&claims.bound).map(|claim| Bound::new(view.objects(), claim)).collect();
        Self { bound, delayed, cancel }
    }

    fn plan(&self, node: &NodeRow<'_>) -> Result<Plan<'a>, VolumeReason> {
        let nowhere = |claim: &Delayed<'a>| VolumeReason::NoVolumeToBind { claim: claim.key.1.clone() };
        if let Some(claim) = self.delayed.iter().find(|d| d.selected.as_ref().is_some_and(|s| s != node.name())) {
            return Err(nowhere(claim));
        }
        let mut plan: Plan<'a> = SmallVec::new();
        let mut given: FxHashSet<&Str> = FxHashSet::default();
        for (i, claim) in self.cancel.guard(&self.delayed).enumerate() {
            let volume = claim.candidates.pick(node, |volume| given.contains(volume));
            // The last one's is asked for by nobody: a pod with one claim, as most are, allocates nothing here.
            given.extend(volume.filter(|_| i + 1 < self.delayed.len()).map(|volume| &volume.meta.name));
            plan.push((i, volume));
        }
        // Classes are judged once all volumes are given out, and the first that fails is the reason.
        for (i, _) in self.cancel.guard(&plan).filter(|(_, volume)| volume.is_none()) {
            self.delayed[*i].provisioning.check(node)?;
        }
        Ok(plan)
    }
}

impl NodeFilter for Filter<'_> {
    fn passes(&self, node: &NodeRow<'_>) -> bool {
        self.cancel.guard(&self.bound).all(|volume| volume.check(node).is_ok()) && self.plan(node).is_ok()
    }

    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let bound = self.cancel.guard(&self.bound).find_map(|volume| volume.check(node).err());
        let delayed = if self.delayed.is_empty() { None } else { self.plan(node).err() };
        let mut reasons: SmallVec<[VolumeReason; 2]> = bound.into_iter().chain(delayed).collect();
        if reasons.is_empty() {
            return Ok(());
        }
        // Upstream's order, in which a missing volume comes last.
        reasons.sort_by_key(|reason| matches!(reason, VolumeReason::BoundVolumeNotFound { .. }));
        let reasons = reasons.into_iter().map(Reason::Volume).collect();
        Err(Rejection { plugin: NAME, code: Code::UnschedulableAndUnresolvable, reasons })
    }

    fn bindings(&self, node: &NodeRow<'_>) -> Vec<VolumeBinding> {
        let mut bindings: Vec<VolumeBinding> = Vec::new();
        let mut seen = FxHashSet::default();
        for (i, volume) in self.plan(node).unwrap_or_default() {
            let claim = self.delayed[i].key.clone();
            // A pod may name a claim twice, which is matched twice, as upstream; it can only be bound once.
            if seen.insert(&self.delayed[i].key) {
                let volume = volume.map(|v| v.meta.name.clone());
                bindings.push(VolumeBinding { claim, node: node.name().clone(), volume });
            }
        }
        bindings.sort();
        bindings
    }
}

#[cfg(test)]
mod holds;
#[cfg(test)]
mod tests;
