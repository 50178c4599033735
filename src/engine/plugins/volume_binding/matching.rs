//! Existing volumes for a claim that waits for its first consumer.

use super::bound::reaches;
use crate::cluster::pod_volumes::ClaimKey;
use crate::cluster::{Cancel, NodeRow, View};
use crate::engine::plugins::label_index::{LabelIndex, pairs_of_terms};
use crate::model::Str;
use crate::model::storage::{PersistentVolume, PersistentVolumeClaim};

/// The volumes that a claim could have on some node.
#[derive(Default)]
pub(super) struct Candidates<'a> {
    /// Reserved for the claim, by `claimRef` or by a decision before. If there is one, no other is looked at.
    reserved: Vec<&'a PersistentVolume>,
    /// The smallest first; of equal ones the first by name (upstream: any).
    free: Vec<&'a PersistentVolume>,
    by_label: LabelIndex<'a>,
    cancel: Option<Cancel<'a>>,
}

impl<'a> Candidates<'a> {
    pub(super) fn of(view: &'a View, claim: &PersistentVolumeClaim, key: &ClaimKey, cancel: Cancel<'a>) -> Self {
        let objects = view.objects();
        let held = view.volumes().binding_of(key).and_then(|binding| binding.volume.as_ref());
        let held = held.and_then(|volume| objects.persistent_volume(volume)).filter(|v| v.claim_ref.is_none());
        let claimed = objects.volumes_claimed_by(key).iter().filter(|volume| volume.is_claimed_by(claim));
        let reserved = claimed.chain(held).map(|volume| &**volume).filter(|volume| fits(claim, volume)).collect();
        let free: Vec<&PersistentVolume> = cancel
            .guard(objects.free_volumes(&claim.class(), claim.request))
            .map(|volume| &**volume)
            .filter(|volume| fits(claim, volume) && suits(claim, volume) && !is_held(view, &volume.meta.name))
            .collect();
        let by_label = LabelIndex::new(cancel.guard(&free).map(|volume| pairs_of_terms(volume.node_affinity.as_ref())));
        Self { reserved, free, by_label, cancel: Some(cancel) }
    }

    /// The volume that the claim gets on a node.
    pub(super) fn pick(&self, node: &NodeRow<'_>, taken: impl Fn(&Str) -> bool) -> Option<&'a PersistentVolume> {
        let reaches = |volume: &PersistentVolume| reaches(volume.node_affinity.as_ref(), node);
        if let Some(volume) = self.reserved.iter().find(|volume| !taken(&volume.meta.name)) {
            return reaches(volume).then_some(*volume);
        }
        let ends = || self.cancel.is_some_and(Cancel::is_set);
        let accept = |i: usize| ends() || (reaches(self.free[i]) && !taken(&self.free[i].meta.name));
        self.by_label.first(node.labels(), accept).map(|i| self.free[i])
    }
}

/// What even a volume that is reserved for the claim must meet.
fn fits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    volume.storage_class == claim.class()
        && volume.capacity >= claim.request
        && volume.volume_mode == claim.volume_mode
        && volume.attributes_class == claim.attributes_class
        && !volume.meta.is_terminating()
}

/// What any other volume must meet besides.
fn suits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    claim.access_modes.iter().all(|mode| volume.access_modes.contains(mode))
        && claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.meta.labels))
}

/// Whether a decision gave the volume to a claim (the one at hand finds its own among the reserved). A claim that is gone, or that was bound to another volume after all,
/// holds nothing.
fn is_held(view: &View, volume: &Str) -> bool {
    view.volumes().holders(volume).any(|holder| {
        let holds = |c: &PersistentVolumeClaim| c.volume_name.is_empty() || c.volume_name == *volume;
        view.objects().claim(&holder.0, &holder.1).is_some_and(|c| holds(c))
    })
}
