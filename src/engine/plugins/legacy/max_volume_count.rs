//! MaxEBSVolumeCount, MaxGCEPDVolumeCount, MaxAzureDiskVolumeCount and MaxCinderVolumeCount (spec 8.4): a node takes only so
//! many volumes of an in-tree type.
//!
//! Only nodes that still run the type's in-tree plugin are judged. On one that left it to its CSI driver NodeVolumeLimits
//! counts, which today stands for these predicates and is part of any profile that has one of them. A node's volumes are
//! counted by walking its pods, for pods with such volumes of their own only.

use std::collections::BTreeSet;

use crate::cluster::pod_volumes::ephemeral_claim;
use crate::cluster::view::ObjectTable;
use crate::cluster::{Cancel, NodeRow};
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::engine::volume_reason::VolumeReason;
use crate::model::csi_migration::{InTreePlugin, MIGRATED_PLUGINS};
use crate::model::storage::PvSource;
use crate::model::volume::VolumeSource;
use crate::model::{Labels, Pod, Str};

const INSTANCE_TYPE: &str = "beta.kubernetes.io/instance-type";

#[derive(Debug)]
pub struct MaxVolumeCount {
    kind: InTreePlugin,
    name: &'static str,
}

impl MaxVolumeCount {
    pub const EBS: Self = Self { kind: InTreePlugin::AwsElasticBlockStore, name: "MaxEBSVolumeCount" };
    pub const GCE_PD: Self = Self { kind: InTreePlugin::GcePersistentDisk, name: "MaxGCEPDVolumeCount" };
    pub const AZURE_DISK: Self = Self { kind: InTreePlugin::AzureDisk, name: "MaxAzureDiskVolumeCount" };
    pub const CINDER: Self = Self { kind: InTreePlugin::Cinder, name: "MaxCinderVolumeCount" };

    fn limit(&self, node: &NodeRow<'_>) -> i64 {
        let (key, default) = match self.kind {
            InTreePlugin::AwsElasticBlockStore => ("attachable-volumes-aws-ebs", ebs_limit(node.labels())),
            InTreePlugin::GcePersistentDisk => ("attachable-volumes-gce-pd", 16),
            InTreePlugin::AzureDisk => ("attachable-volumes-azure-disk", 16),
            InTreePlugin::Cinder => ("attachable-volumes-cinder", 256),
            InTreePlugin::Portworx => return i64::MAX,
        };
        node.node().allocatable.get(key).map_or(default, |quantity| quantity.value())
    }
}

/// 39 volumes, or 25 on the machines that attach disks as NVMe devices: `^[cmr]5.*|t3|z1d`, of which upstream anchors the
/// first alternative only.
fn ebs_limit(labels: &Labels) -> i64 {
    let instance = labels.get(INSTANCE_TYPE).map_or("", |v| v);
    let is_nitro = ["c5", "m5", "r5"].iter().any(|prefix| instance.starts_with(prefix))
        || ["t3", "z1d"].iter().any(|part| instance.contains(part));
    if is_nitro { 25 } else { 39 }
}

/// The id of a volume that a pod names itself, as it is written.
fn inline_id(source: &VolumeSource, kind: InTreePlugin) -> Option<&Str> {
    if InTreePlugin::of_inline(source) != Some(kind) {
        return None;
    }
    match source {
        VolumeSource::AwsElasticBlockStore { volume_id: id, .. }
        | VolumeSource::GcePersistentDisk { pd_name: id, .. }
        | VolumeSource::AzureDisk { disk_name: id }
        | VolumeSource::Cinder { volume_id: id } => Some(id),
        _ => None,
    }
}

fn volume_id(source: &PvSource, kind: InTreePlugin) -> Option<&Str> {
    if InTreePlugin::of_volume(source) != Some(kind) {
        return None;
    }
    match source {
        PvSource::AwsElasticBlockStore { volume_id: id }
        | PvSource::GcePersistentDisk { pd_name: id }
        | PvSource::AzureDisk { disk_name: id }
        | PvSource::Cinder { volume_id: id } => Some(id),
        _ => None,
    }
}

/// A volume, or a claim that will get one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Volume(Str),
    Claim(Str, Str),
}

/// The volumes of the type that a pod uses. A claim that isn't there counts as none.
fn ids(pod: &Pod, objects: &ObjectTable, kind: InTreePlugin, into: &mut BTreeSet<Id>) {
    let namespace = &pod.meta.namespace;
    for volume in &pod.spec.volumes {
        let name = match &volume.source {
            VolumeSource::PersistentVolumeClaim { claim, .. } => claim.clone(),
            VolumeSource::Ephemeral => ephemeral_claim(pod, &volume.name),
            source => {
                into.extend(inline_id(source, kind).cloned().map(Id::Volume));
                continue;
            }
        };
        let Some(claim) = objects.claim(namespace, &name) else { continue };
        if let Some(bound) = objects.persistent_volume(&claim.volume_name) {
            into.extend(volume_id(&bound.source, kind).cloned().map(Id::Volume));
        } else if objects.storage_class(&claim.class()).is_some_and(|class| &*class.provisioner == kind.name()) {
            into.insert(Id::Claim(namespace.clone(), name));
        }
    }
}

impl Plugin for MaxVolumeCount {
    fn name(&self) -> &'static str {
        self.name
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        // Objects are looked up once, and those of a node's pods on each node.
        let volumes = units(sizes.pod.spec.volumes.len());
        Share { prepare: volumes.saturating_mul(8), ..Share::a_node(1 + volumes.saturating_mul(16), 0) }
    }
}

impl FilterPlugin for MaxVolumeCount {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let mut wanted = BTreeSet::new();
        ids(cycle.pod.pod, cycle.view.objects(), self.kind, &mut wanted);
        if wanted.is_empty() {
            return PreFilter::Skip;
        }
        PreFilter::Filter(Box::new(Filter { rule: self, wanted, cancel: cycle.cancel }))
    }
}

struct Filter<'a> {
    rule: &'a MaxVolumeCount,
    wanted: BTreeSet<Id>,
    cancel: Cancel<'a>,
}

impl Filter<'_> {
    /// Whether the node's CSI driver counts these volumes.
    fn is_migrated(&self, node: &NodeRow<'_>) -> bool {
        let kind = self.rule.kind;
        let Some(csi_node) = node.view().objects().csi_node(node.name()) else { return false };
        let annotation = csi_node.meta.annotations.get(MIGRATED_PLUGINS);
        annotation.is_some_and(|plugins| plugins.split(',').any(|name| name == kind.name()))
            || csi_node.drivers.iter().any(|driver| &*driver.name == kind.driver())
    }
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        if self.is_migrated(node) {
            return Ok(());
        }
        let mut used = BTreeSet::new();
        for pod in self.cancel.guard(node.pods()) {
            ids(&pod.pod, node.view().objects(), self.rule.kind, &mut used);
        }
        let new = self.wanted.difference(&used).count();
        let limit = self.rule.limit(node);
        if new > 0 && i64::try_from(used.len() + new).unwrap_or(i64::MAX) > limit {
            let driver = self.rule.kind.name().into();
            let reason = VolumeReason::TooManyVolumes { driver, limit, attached: used.len(), new };
            return Err(Rejection::resolvable(self.rule.name, Reason::Volume(reason)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Scene, only, scene};
    use crate::model::testing::{NodeBuilder, PodBuilder, node, pod};
    use crate::model::testing_storage::{claim, claim_volume, csi_node, immediate_class, volume};

    fn ebs(name: &str, ids: std::ops::Range<usize>) -> PodBuilder {
        ids.fold(pod(name), |p, i| {
            let source = VolumeSource::AwsElasticBlockStore { volume_id: format!("vol-{i}").into(), read_only: false };
            p.volume(&format!("v{i}"), source)
        })
    }

    fn used(node: NodeBuilder, volumes: usize) -> Scene {
        scene([node], [ebs("user", 0..volumes).on("n")]).profile(only(MaxVolumeCount::EBS))
    }

    fn fits(scene: &Scene, pod: PodBuilder) -> bool {
        !scene.decide(pod).feasible().is_empty()
    }

    #[test]
    fn the_limit_is_by_instance_type_unless_the_node_says_otherwise() {
        for (instance, limit) in
            [("", 39), ("m4.large", 39), ("c5.large", 25), ("xc5", 39), ("x.t3foo", 25), ("a-z1d.metal", 25)]
        {
            let n = || node("n").label(INSTANCE_TYPE, instance);
            assert!(fits(&used(n(), limit - 1), ebs("p", 90..91)), "{instance}");
            let full = used(n(), limit).decide(ebs("p", 90..91));
            assert_eq!(full.refusal("n"), "MaxEBSVolumeCount U: node(s) exceed max volume count", "{instance}");
        }
        let own = || node("n").label(INSTANCE_TYPE, "c5").allocatable("attachable-volumes-aws-ebs", "2");
        assert!(fits(&used(own(), 1), ebs("p", 90..91)) && !fits(&used(own(), 2), ebs("p", 90..91)));
    }

    #[test]
    fn shared_volumes_are_not_new() {
        let full = used(node("n").allocatable("attachable-volumes-aws-ebs", "2"), 2);
        assert!(fits(&full, ebs("p", 0..2)) && !fits(&full, ebs("p", 1..3)) && fits(&full, pod("p")));
    }

    #[test]
    fn claims_count_by_their_volume_or_their_class() {
        let mut class = immediate_class("gp2");
        class.provisioner = "kubernetes.io/aws-ebs".into();
        let source = PvSource::AwsElasticBlockStore { volume_id: "vol-0".into() };
        let full = used(node("n").allocatable("attachable-volumes-aws-ebs", "1"), 1)
            .object(class)
            .object(volume("pv").source(source).build())
            .object(claim("bound").bound_to("pv").build())
            .object(claim("waiting").class("gp2").build())
            .object(claim("other").class("else").build());
        let user = |claim: &str| pod("p").volume("v", claim_volume(claim));
        assert!(fits(&full, user("bound")) && fits(&full, user("other")) && fits(&full, user("missing")));
        assert!(!fits(&full, user("waiting")));
    }

    #[test]
    fn a_node_that_left_the_type_to_its_csi_driver_passes() {
        let limited = || used(node("n").allocatable("attachable-volumes-aws-ebs", "1"), 1);
        assert!(!fits(&limited().object(csi_node("n", &[("other.example", 1)])), ebs("p", 5..6)));
        assert!(fits(&limited().object(csi_node("n", &[("ebs.csi.aws.com", 99)])), ebs("p", 5..6)));
        let mut annotated = csi_node("n", &[]);
        annotated.meta.annotations.insert(MIGRATED_PLUGINS.into(), "kubernetes.io/gce-pd,kubernetes.io/aws-ebs".into());
        assert!(fits(&limited().object(annotated), ebs("p", 5..6)));
    }
}
