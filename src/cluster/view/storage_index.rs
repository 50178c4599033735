//! Storage objects by what decisions look for: the free volumes of a class by size, the volumes that claims have, the
//! capacity objects of a class. Part of [`super::ObjectTable`], which keeps it with every write.

use std::sync::Arc;

use imbl::{HashMap, OrdMap};
use smallvec::SmallVec;

use crate::cluster::pod_volumes::ClaimKey;
use crate::model::storage::{CsiStorageCapacity, PersistentVolume};
use crate::model::{Object, Quantity, Str};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StorageIndex {
    /// Volumes that any claim may have, by class and then by size and name.
    free: HashMap<Str, OrdMap<(Quantity, Str), Arc<PersistentVolume>>>,
    /// Volumes whose `claimRef` names a claim, sorted by name.
    claimed: HashMap<ClaimKey, SmallVec<[Arc<PersistentVolume>; 1]>>,
    capacities: HashMap<Str, OrdMap<(Str, Str), Arc<CsiStorageCapacity>>>,
}

/// Available, not reserved for any claim and not about to go.
fn is_free(volume: &PersistentVolume) -> bool {
    volume.claim_ref.is_none() && &*volume.phase == "Available" && !volume.meta.is_terminating()
}

impl StorageIndex {
    pub(super) fn is_empty(&self) -> bool {
        self.free.is_empty() && self.claimed.is_empty() && self.capacities.is_empty()
    }

    /// Free volumes of a class of at least this size, the smallest first, then by name.
    pub(super) fn free(&self, class: &Str, at_least: Quantity) -> impl Iterator<Item = &Arc<PersistentVolume>> {
        let volumes = self.free.get(class);
        volumes.into_iter().flat_map(move |v| v.range((at_least, Str::default())..)).map(|(_, volume)| volume)
    }

    pub(super) fn claimed(&self, claim: &ClaimKey) -> &[Arc<PersistentVolume>] {
        self.claimed.get(claim).map_or(&[], |volumes| volumes)
    }

    pub(super) fn capacities(&self, class: &Str) -> impl Iterator<Item = &Arc<CsiStorageCapacity>> {
        self.capacities.get(class).into_iter().flat_map(|c| c.values())
    }

    pub(super) fn add(&mut self, object: &Object) {
        match object {
            Object::PersistentVolume(volume) => {
                if is_free(volume) {
                    let volumes = self.free.entry(volume.storage_class.clone()).or_default();
                    volumes.insert((volume.capacity, volume.meta.name.clone()), volume.clone());
                }
                if let Some(claim) = &volume.claim_ref {
                    let key = (claim.namespace.clone(), claim.name.clone());
                    let volumes = self.claimed.entry(key).or_default();
                    let place = volumes.partition_point(|v| v.meta.name < volume.meta.name);
                    volumes.insert(place, volume.clone());
                }
            }
            Object::CsiStorageCapacity(capacity) => {
                let capacities = self.capacities.entry(capacity.storage_class.clone()).or_default();
                capacities.insert((capacity.meta.namespace.clone(), capacity.meta.name.clone()), capacity.clone());
            }
            _ => {}
        }
    }

    pub(super) fn remove(&mut self, object: &Object) {
        match object {
            Object::PersistentVolume(volume) => {
                if is_free(volume)
                    && let Some(volumes) = self.free.get_mut(&volume.storage_class)
                {
                    volumes.remove(&(volume.capacity, volume.meta.name.clone()));
                    if volumes.is_empty() {
                        self.free.remove(&volume.storage_class);
                    }
                }
                if let Some(claim) = &volume.claim_ref {
                    let key = (claim.namespace.clone(), claim.name.clone());
                    if let Some(volumes) = self.claimed.get_mut(&key) {
                        volumes.retain(|v| v.meta.name != volume.meta.name);
                        if volumes.is_empty() {
                            self.claimed.remove(&key);
                        }
                    }
                }
            }
            Object::CsiStorageCapacity(capacity) => {
                if let Some(capacities) = self.capacities.get_mut(&capacity.storage_class) {
                    capacities.remove(&(capacity.meta.namespace.clone(), capacity.meta.name.clone()));
                    if capacities.is_empty() {
                        self.capacities.remove(&capacity.storage_class);
                    }
                }
            }
            _ => {}
        }
    }
}
