//! The claims of a pod, sorted by how they get their volumes.

use crate::cluster::Cancel;
use crate::cluster::pod_volumes::ephemeral_claim;
use crate::cluster::view::ObjectTable;
use crate::engine::volume_reason::{Resource, VolumeReason};
use crate::model::Pod;
use crate::model::storage::{BindingMode, PersistentVolumeClaim};
use crate::model::volume::VolumeSource;

/// In the order of the pod's volumes; a claim that the pod names twice is here twice.
#[derive(Default)]
pub(super) struct Claims<'a> {
    pub(super) bound: Vec<&'a PersistentVolumeClaim>,
    /// Wait for their first consumer.
    pub(super) delayed: Vec<&'a PersistentVolumeClaim>,
}

/// Why a pod's claims rule it out before nodes are looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Reject(VolumeReason),
    /// An object is no legal one, and there is no decision.
    Error(String),
}

impl<'a> Claims<'a> {
    /// None for a pod without claims.
    pub(super) fn of(objects: &'a ObjectTable, pod: &Pod, cancel: Cancel<'_>) -> Result<Option<Self>, Refusal> {
        let claims = find(objects, pod, cancel).map_err(Refusal::Reject)?;
        if claims.is_empty() {
            return Ok(None);
        }
        let mut sorted = Self::default();
        let mut immediate = Vec::new();
        for claim in claims {
            if claim.is_bound() {
                sorted.bound.push(claim);
            } else if is_delayed(objects, claim)? && claim.volume_name.is_empty() {
                sorted.delayed.push(claim);
            } else {
                immediate.push(claim.meta.name.clone());
            }
        }
        if !immediate.is_empty() {
            return Err(Refusal::Reject(VolumeReason::UnboundImmediateClaims { claims: immediate }));
        }
        Ok(Some(sorted))
    }
}

/// All claims of a pod, or the first one's fault.
fn find<'a>(
    objects: &'a ObjectTable,
    pod: &Pod,
    cancel: Cancel<'_>,
) -> Result<Vec<&'a PersistentVolumeClaim>, VolumeReason> {
    let namespace = &pod.meta.namespace;
    let mut claims = Vec::new();
    for volume in cancel.guard(&pod.spec.volumes) {
        let (name, is_ephemeral) = match &volume.source {
            VolumeSource::PersistentVolumeClaim { claim, .. } => (claim.clone(), false),
            VolumeSource::Ephemeral => (ephemeral_claim(pod, &volume.name), true),
            _ => continue,
        };
        let Some(claim) = objects.claim(namespace, &name) else {
            return Err(if is_ephemeral {
                VolumeReason::EphemeralClaimNotFound { claim: name }
            } else {
                VolumeReason::NotFound { resource: Resource::PersistentVolumeClaim, name }
            });
        };
        if &*claim.phase == "Lost" {
            return Err(VolumeReason::ClaimLost { claim: name, volume: claim.volume_name.clone() });
        }
        if claim.meta.is_terminating() {
            return Err(VolumeReason::ClaimTerminating { claim: name });
        }
        if is_ephemeral && claim.meta.controller().is_none_or(|owner| owner.uid != pod.meta.uid) {
            let (namespace, pod) = (namespace.clone(), pod.meta.name.clone());
            return Err(VolumeReason::EphemeralClaimNotOwned { namespace, claim: name, pod });
        }
        claims.push(&**claim);
    }
    Ok(claims)
}

/// Without a class, or with one that isn't known, a claim is bound at once.
fn is_delayed(objects: &ObjectTable, claim: &PersistentVolumeClaim) -> Result<bool, Refusal> {
    let Some(class) = objects.storage_class(&claim.class()) else { return Ok(false) };
    match class.binding_mode {
        Some(mode) => Ok(mode == BindingMode::WaitForFirstConsumer),
        None => {
            let reason = VolumeReason::BindingModeNotSet { class: class.meta.name.clone() };
            Err(Refusal::Error(reason.to_string()))
        }
    }
}
