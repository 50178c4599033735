//! VolumeRestrictions (spec 4.7): some disks can't be shared by pods of one node, and a ReadWriteOncePod claim by no pods at
//! all.
//!
//! Its PreFilter is the first of the volume plugins' to look at claims, so it is the one that reports a missing claim.

use std::collections::BTreeSet;

use crate::cluster::pod_volumes::Disk;
use crate::cluster::{Cancel, NodeRow, PodInfo};
use crate::engine::Fix;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::engine::volume_reason::{Resource, VolumeReason};
use crate::model::storage::AccessMode;
use crate::model::volume::VolumeSource;
use crate::model::{Pod, Str};

const NAME: &str = "VolumeRestrictions";

#[derive(Debug)]
pub struct VolumeRestrictions;

const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add])
    .with(EventResource::AssignedPod, &[ActionType::Delete])
    // Upstream: added and updated ones.
    .with(EventResource::PersistentVolumeClaim, ActionType::ANY_CHANGE);

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        // Objects are looked up once, and each is held against what is in use on a node.
        let volumes = units(sizes.pod.spec.volumes.len());
        Share { prepare: volumes.saturating_mul(8), change: 1, ..Share::a_node(1 + volumes.saturating_mul(2), 0) }
    }
}

impl FilterPlugin for VolumeRestrictions {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let pod = cycle.pod.pod;
        let namespace = &pod.meta.namespace;
        let disks: Vec<Disk> = pod.spec.volumes.iter().filter_map(|v| Disk::of(&v.source)).collect();
        let mut exclusive: BTreeSet<Str> = BTreeSet::new();
        for volume in cycle.cancel.guard(&pod.spec.volumes) {
            let VolumeSource::PersistentVolumeClaim { claim: name, .. } = &volume.source else { continue };
            let Some(claim) = cycle.view.objects().claim(namespace, name) else {
                let reason = VolumeReason::NotFound { resource: Resource::PersistentVolumeClaim, name: name.clone() };
                return PreFilter::Reject(Rejection::unresolvable(NAME, Reason::Volume(reason)));
            };
            if claim.access_modes.contains(&AccessMode::ReadWriteOncePod) {
                exclusive.insert(name.clone());
            }
        }
        // As upstream unless switched: a claim in use counts once however many pods use it, and pods that come or go are
        // matched by claim name alone, so that preempting one of two users seems to free the claim.
        let by_namespace = cycle.profile.has_fix(Fix::ReadWriteOncePodUsers);
        let users = exclusive.iter().map(|name| {
            let references = cycle.view.volumes().claim_references(&(namespace.clone(), name.clone()));
            i64::from(if by_namespace { references } else { references.min(1) })
        });
        let users: i64 = users.sum();
        if disks.is_empty() && users == 0 {
            return PreFilter::Skip;
        }
        PreFilter::Filter(Box::new(Filter { pod, disks, exclusive, users, by_namespace, cancel: cycle.cancel }))
    }
}

struct Filter<'a> {
    pod: &'a Pod,
    disks: Vec<Disk>,
    /// Names of the pod's ReadWriteOncePod claims.
    exclusive: BTreeSet<Str>,
    /// How often they are in use, anywhere.
    users: i64,
    by_namespace: bool,
    cancel: Cancel<'a>,
}

impl Filter<'_> {
    fn update(&mut self, other: &PodInfo, delta: i64) {
        if self.by_namespace && other.pod.meta.namespace != self.pod.meta.namespace {
            return;
        }
        for claim in &other.claims {
            if self.exclusive.contains(claim) {
                self.users += delta;
            }
        }
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let used = if self.disks.is_empty() { &[] } else { node.volumes().map_or(&[][..], |v| v.disks()) };
        let mut disks = self.cancel.guard(&self.disks);
        if let Some(disk) = disks.find(|disk| used.iter().any(|taken| disk.conflicts_with(taken))) {
            let reason = VolumeReason::DiskConflict { disk: disk.name().clone() };
            return Err(Rejection::resolvable(NAME, Reason::Volume(reason)));
        }
        if self.users > 0 {
            return Err(Rejection::resolvable(NAME, Reason::Volume(VolumeReason::ClaimInUse)));
        }
        Ok(())
    }

    fn pod_added(&mut self, _node: &NodeRow<'_>, pod: &PodInfo) {
        self.update(pod, 1);
    }

    fn pod_removed(&mut self, _node: &NodeRow<'_>, pod: &PodInfo) {
        self.update(pod, -1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing_views::{feasible, prepared, refusal, view_of};
    use crate::engine::{Code, Profile};
    use crate::model::testing::{PodBuilder, node, pod};
    use crate::model::testing_storage::{claim, claim_volume, volume};

    fn gce(name: &str, read_only: bool) -> VolumeSource {
        VolumeSource::GcePersistentDisk { pd_name: name.into(), read_only }
    }

    fn ebs(id: &str, read_only: bool) -> VolumeSource {
        VolumeSource::AwsElasticBlockStore { volume_id: id.into(), read_only }
    }

    fn iscsi(iqn: &str, read_only: bool) -> VolumeSource {
        VolumeSource::Iscsi { iqn: iqn.into(), read_only }
    }

    fn rbd(monitors: &[&str], pool: &str, image: &str, read_only: bool) -> VolumeSource {
        let monitors = monitors.iter().map(|m| (*m).into()).collect();
        VolumeSource::Rbd { monitors, pool: pool.into(), image: image.into(), read_only }
    }

    #[test]
    fn disks_are_shared_read_only_except_ebs() {
        let conflict = |wanted: VolumeSource, used: VolumeSource| {
            let user = pod("user").volume("other", VolumeSource::EmptyDir).volume("v", used).on("n1");
            let view = view_of(vec![node("n1"), node("n2")], vec![user], vec![]);
            let pod = || pod("p").volume("v", wanted.clone());
            match feasible(&view, pod()).as_slice() {
                [_, _] => false,
                [one] if one == "n2" => {
                    let (plugin, code, reasons) = refusal(&view, pod(), "n1").unwrap();
                    assert_eq!((plugin, code), (NAME, Code::Unschedulable));
                    assert_eq!(reasons, ["node(s) had no available disk"]);
                    true
                }
                other => panic!("{other:?}"),
            }
        };
        for (read_only, also, expected) in [(false, false, true), (true, false, true), (false, true, true)] {
            assert_eq!(conflict(gce("d", read_only), gce("d", also)), expected);
            assert_eq!(conflict(iscsi("t", read_only), iscsi("t", also)), expected);
            assert_eq!(conflict(rbd(&["a"], "p", "i", read_only), rbd(&["a"], "p", "i", also)), expected);
        }
        assert!(!conflict(gce("d", true), gce("d", true)) && !conflict(gce("d", false), gce("e", false)));
        // One target is one disk, whatever its LUN, which isn't even read.
        assert!(!conflict(iscsi("t", true), iscsi("t", true)) && !conflict(iscsi("t", false), iscsi("u", false)));
        assert!(
            conflict(ebs("vol-1", true), ebs("vol-1", true)) && !conflict(ebs("vol-1", false), ebs("vol-2", false))
        );
        let image = |monitors: &[&str], pool, image| rbd(monitors, pool, image, false);
        assert!(!conflict(rbd(&["a"], "p", "i", true), rbd(&["a"], "p", "i", true)));
        assert!(conflict(image(&["a", "b"], "p", "i"), image(&["b", "c"], "p", "i")));
        assert!(!conflict(image(&["a"], "p", "i"), image(&["c"], "p", "i")));
        assert!(!conflict(image(&["a"], "p", "i"), image(&["a"], "q", "i")));
        assert!(!conflict(image(&["a"], "p", "i"), image(&["a"], "p", "j")));
        assert!(!conflict(gce("d", false), ebs("d", false)));
    }

    #[test]
    fn a_disk_is_free_again_when_its_pod_is_gone() {
        let users = || ["a", "b"].map(|name| pod(name).volume("v", ebs("vol-1", true)).on("n1")).to_vec();
        let mut view = view_of(vec![node("n1")], users(), vec![]);
        view.remove_pod("uid-default-a");
        assert!(feasible(&view, pod("p").volume("v", ebs("vol-1", true))).is_empty());
        view.remove_pod("uid-default-b");
        assert_eq!(feasible(&view, pod("p").volume("v", ebs("vol-1", true))), ["n1"]);
    }

    fn exclusive(name: &str) -> crate::model::storage::PersistentVolumeClaim {
        claim(name).access(AccessMode::ReadWriteOncePod).bound_to("pv").build()
    }

    fn user(name: &str, claim: &str) -> PodBuilder {
        pod(name).volume("v", claim_volume(claim))
    }

    #[test]
    fn a_read_write_once_pod_claim_in_use_anywhere_fails_every_node() {
        let objects = || vec![exclusive("c").into(), volume("pv").build().into()];
        let view = view_of(vec![node("n1"), node("n2")], vec![user("a", "c").on("n1")], objects());
        for name in ["n1", "n2"] {
            let (plugin, code, reasons) = refusal(&view, user("p", "c"), name).unwrap();
            assert_eq!((plugin, code), (NAME, Code::Unschedulable), "{name}");
            assert_eq!(
                reasons,
                [
                    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
                ]
            );
        }
        let free = view_of(vec![node("n1"), node("n2")], vec![user("a", "other").on("n1")], objects());
        assert_eq!(feasible(&free, user("p", "c")).len(), 2);
        // A claim of the same name in another namespace is another claim.
        let elsewhere = view_of(vec![node("n1")], vec![user("a", "c").namespace("other").on("n1")], objects());
        assert_eq!(feasible(&elsewhere, user("p", "c")).len(), 1);
    }

    #[test]
    fn a_shared_claim_may_be_used_by_many() {
        let shared = claim("c").access(AccessMode::ReadWriteMany).bound_to("pv").build();
        let objects = vec![shared.into(), volume("pv").build().into()];
        let view = view_of(vec![node("n1")], vec![user("a", "c").on("n1")], objects);
        assert_eq!(feasible(&view, user("p", "c")), ["n1"]);
    }

    #[test]
    fn a_missing_claim_is_reported_by_this_plugin_first() {
        let view = view_of(vec![node("n1")], vec![], vec![]);
        let (plugin, code, reasons) = refusal(&view, user("p", "gone"), "n1").unwrap();
        assert_eq!((plugin, code), (NAME, Code::UnschedulableAndUnresolvable));
        assert_eq!(reasons, ["persistentvolumeclaim \"gone\" not found"]);
    }

    /// Whether the node passes after these pods were taken away and those added.
    fn after(profile: &Profile, gone: &[&str], come: Vec<PodBuilder>) -> bool {
        let objects = vec![exclusive("c").into(), volume("pv").build().into()];
        let view = view_of(vec![node("n1")], vec![user("a", "c").on("n1"), user("b", "c").on("n1")], objects);
        let incoming = user("p", "c").build();
        let incoming = crate::engine::IncomingPod::new(&incoming);
        let PreFilter::Filter(mut filter) =
            VolumeRestrictions.prepare(&Cycle::new(&view, &incoming, profile, Cancel::never()))
        else {
            panic!("skipped")
        };
        let row = view.node_named("n1").unwrap();
        for name in gone {
            filter.pod_removed(&row, row.pods().iter().find(|p| *p.pod.meta.name == **name).unwrap());
        }
        for pod in come {
            filter.pod_added(&row, &PodInfo::bound(std::sync::Arc::new(pod.on("n1").build())));
        }
        filter.check(&row).is_ok()
    }

    #[test]
    fn a_claim_with_two_users_counts_once_and_pods_match_by_name_alone_as_upstream() {
        let upstream = Profile::default();
        assert!(!after(&upstream, &[], vec![]));
        assert!(after(&upstream, &["a"], vec![]));
        assert!(!after(&upstream, &["a"], vec![user("x", "c").namespace("other")]));
        assert!(after(&upstream, &["a", "b"], vec![user("x", "c").namespace("other")]));
    }

    #[test]
    fn with_the_switch_every_user_counts_and_only_the_claims_own() {
        let exact = Profile::default().with_fix(Fix::ReadWriteOncePodUsers);
        assert!(!after(&exact, &["a"], vec![]));
        assert!(after(&exact, &["a", "b"], vec![user("x", "c").namespace("other")]));
        assert!(!after(&exact, &["a", "b"], vec![user("x", "c")]));
    }

    #[test]
    fn plain_pods_skip() {
        let view = view_of(vec![node("n1")], vec![], vec![]);
        let skips = |p: PodBuilder| prepared(&view, p, NAME, |filter| matches!(filter, PreFilter::Skip));
        assert!(skips(pod("p").volume("v", VolumeSource::EmptyDir)));
        assert!(!skips(pod("p").volume("v", gce("d", true))));
    }
}
