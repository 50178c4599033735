//! NodeVolumeLimits (spec 4.12): a CSI driver attaches only so many volumes to a node.
//!
//! Volumes in use and attached are counted per node by the view; here the pod's own are added. A volume that is attached
//! though no pod of the node uses it counts twice when this pod asks for it, once as attached and once as new, as upstream.

use std::collections::BTreeSet;

use crate::cluster::NodeRow;
use crate::cluster::pod_volumes::ephemeral_claim;
use crate::cluster::view::volume_of_claim;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::engine::volume_reason::VolumeReason;
use crate::model::Str;
use crate::model::csi_migration::{InTreePlugin, VolumeId};
use crate::model::volume::VolumeSource;

const NAME: &str = "NodeVolumeLimits";

#[derive(Debug)]
pub struct NodeVolumeLimits;

/// Upstream: CSINode/Add and Update, Pod/Delete, PersistentVolumeClaim/Add and VolumeAttachment/Delete. The rest also
/// changes how many volumes a node counts, or whether the pod brings a new one.
const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add])
    .with(EventResource::AssignedPod, &[ActionType::Add, ActionType::Delete])
    .with(EventResource::PersistentVolume, ActionType::ANY_CHANGE)
    .with(EventResource::PersistentVolumeClaim, ActionType::ANY_CHANGE)
    .with(EventResource::StorageClass, ActionType::ANY_CHANGE)
    .with(EventResource::CsiNode, ActionType::ANY_CHANGE)
    .with(EventResource::VolumeAttachment, ActionType::ANY_CHANGE);

impl Plugin for NodeVolumeLimits {
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
        // Objects are looked up once, and each may be new to a node.
        let volumes = units(sizes.pod.spec.volumes.len());
        Share { prepare: volumes.saturating_mul(8), ..Share::a_node(1 + volumes, 0) }
    }
}

impl FilterPlugin for NodeVolumeLimits {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let pod = cycle.pod.pod;
        let namespace = &pod.meta.namespace;
        let objects = cycle.view.objects();
        let mut counts = false;
        let mut wanted: BTreeSet<VolumeId> = BTreeSet::new();
        for volume in cycle.cancel.guard(&pod.spec.volumes) {
            let name = match &volume.source {
                VolumeSource::PersistentVolumeClaim { claim, .. } => claim.clone(),
                VolumeSource::Ephemeral => ephemeral_claim(pod, &volume.name),
                source => {
                    counts |= InTreePlugin::of_inline(source).is_some();
                    wanted.extend(VolumeId::of_inline(source));
                    continue;
                }
            };
            counts = true;
            if objects.claim(namespace, &name).is_none() {
                // Upstream finds this out on each node, not in PreFilter.
                let reason = VolumeReason::LimitsClaimNotFound { namespace: namespace.clone(), claim: name };
                return PreFilter::Filter(Box::new(MissingClaim(Rejection::unresolvable(
                    NAME,
                    Reason::Volume(reason),
                ))));
            }
            wanted.extend(volume_of_claim(objects, namespace, &name));
        }
        if !counts {
            return PreFilter::Skip;
        }
        let mut drivers: Vec<Driver> = Vec::new();
        for id in wanted {
            match drivers.last_mut() {
                Some(last) if last.name == id.driver => last.wanted.push(id),
                _ => drivers.push(Driver { name: id.driver.clone(), wanted: vec![id] }),
            }
        }
        PreFilter::Filter(Box::new(Filter { drivers }))
    }
}

struct MissingClaim(Rejection);

impl NodeFilter for MissingClaim {
    fn check(&self, _node: &NodeRow<'_>) -> Result<(), Rejection> {
        Err(self.0.clone())
    }
}

struct Filter {
    /// Sorted by name.
    drivers: Vec<Driver>,
}

struct Driver {
    name: Str,
    /// The pod's volumes.
    wanted: Vec<VolumeId>,
}

impl NodeFilter for Filter {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let Some(volumes) = node.volumes() else { return Ok(()) };
        for Driver { name, wanted } in &self.drivers {
            let Some(driver) = volumes.driver(name) else { continue };
            let Some(limit) = driver.limit().map(i64::from) else { continue };
            let attached = driver.count();
            let exceeds = |new: usize| i64::try_from(attached + new).unwrap_or(i64::MAX) > limit;
            // Most nodes have room for all of them; only for the others it matters which are new.
            if !exceeds(wanted.len()) {
                continue;
            }
            let new = wanted.iter().filter(|id| !driver.is_used_by_pods(&id.handle)).count();
            if new > 0 && exceeds(new) {
                let reason = VolumeReason::TooManyVolumes { driver: name.clone(), limit, attached, new };
                return Err(Rejection::resolvable(NAME, Reason::Volume(reason)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::View;
    use crate::cluster::view::NodeVolumes;
    use crate::engine::Code;
    use crate::engine::testing_views::{feasible, prepared, refusal, view_of};
    use crate::model::testing::{PodBuilder, node, pod};
    use crate::model::testing_storage::{
        attachment, claim, claim_volume, csi_node, delayed_class, immediate_class, volume,
    };
    use crate::model::{Kind, Object};

    const DRIVER: &str = "csi.example";

    /// A bound claim `c<i>` and its volume `pv<i>` with handle `h<i>`.
    fn pair(i: usize) -> Vec<Object> {
        let (claim_name, pv) = (format!("c{i}"), format!("pv{i}"));
        vec![
            claim(&claim_name).bound_to(&pv).build().into(),
            volume(&pv).csi(DRIVER, &format!("h{i}")).claimed_by(&claim_name).build().into(),
        ]
    }

    fn user(name: &str, claims: &[usize]) -> PodBuilder {
        let volumes = claims.iter().map(|i| format!("c{i}"));
        volumes.fold(pod(name), |p, claim| p.volume(&claim, claim_volume(&claim)))
    }

    fn objects(pairs: usize, limit: i32) -> Vec<Object> {
        let mut objects: Vec<Object> = (0..pairs).flat_map(pair).collect();
        objects.push(csi_node("n1", &[(DRIVER, limit)]).into());
        objects
    }

    fn fits(view: &View, pod: PodBuilder) -> bool {
        feasible(view, pod).contains(&"n1".to_owned())
    }

    #[test]
    fn a_driver_takes_as_many_volumes_as_its_csi_node_says() {
        let view = view_of(vec![node("n1")], vec![user("a", &[0]).on("n1")], objects(4, 2));
        assert!(fits(&view, user("p", &[1])));
        assert!(!fits(&view, user("p", &[1, 2])));
        let (plugin, code, reasons) = refusal(&view, user("p", &[1, 2]), "n1").unwrap();
        assert_eq!((plugin, code), (NAME, Code::Unschedulable));
        assert_eq!(reasons, ["node(s) exceed max volume count"]);
    }

    #[test]
    fn a_volume_counts_once_however_many_pods_share_it() {
        let view =
            view_of(vec![node("n1")], vec![user("a", &[0]).on("n1"), user("b", &[0, 1]).on("n1")], objects(4, 2));
        assert!(fits(&view, user("p", &[0, 1])), "nothing new");
        assert!(!fits(&view, user("p", &[2])));
        // The same volume through two claims is one volume.
        let mut twice = objects(2, 1);
        twice.push(claim("c7").bound_to("pv0").build().into());
        let view = view_of(vec![node("n1")], vec![user("a", &[0]).on("n1")], twice);
        assert!(fits(&view, user("p", &[7])) && !fits(&view, user("p", &[1])));
    }

    #[test]
    fn without_a_csi_node_or_a_count_there_is_no_limit() {
        let mut objects: Vec<Object> = (0..3).flat_map(pair).collect();
        let view = view_of(vec![node("n1")], vec![user("a", &[0]).on("n1")], objects.clone());
        assert!(fits(&view, user("p", &[1, 2])));
        let mut uncounted = csi_node("n1", &[(DRIVER, 0)]);
        uncounted.drivers[0].count = None;
        objects.push(uncounted.into());
        objects.push(csi_node("n2", &[("other.example", 0)]).into());
        let view = view_of(vec![node("n1"), node("n2")], vec![user("a", &[0]).on("n1")], objects);
        assert_eq!(feasible(&view, user("p", &[1, 2])), ["n1", "n2"]);
    }

    #[test]
    fn an_attached_volume_counts_without_any_pod() {
        let mut all = objects(3, 2);
        all.push(attachment("va", DRIVER, "n1", "pv0").into());
        all.push(attachment("elsewhere", DRIVER, "n2", "pv2").into());
        let view = view_of(vec![node("n1")], vec![], all);
        assert!(fits(&view, user("p", &[1])) && !fits(&view, user("p", &[1, 2])));
    }

    #[test]
    fn an_attached_but_unused_volume_counts_twice_when_the_pod_asks_for_it() {
        let mut all = objects(2, 1);
        all.push(attachment("va", DRIVER, "n1", "pv0").into());
        let view = view_of(vec![node("n1")], vec![], all.clone());
        assert!(!fits(&view, user("p", &[0])), "1 attached + 1 new");
        let used = view_of(vec![node("n1")], vec![user("a", &[0]).on("n1")], all);
        assert!(fits(&used, user("p", &[0])), "used and attached is one volume, and not new");
    }

    #[test]
    fn an_unbound_claim_counts_as_a_volume_of_its_own_by_its_class() {
        let mut all = objects(2, 2);
        all.push(delayed_class("wait", DRIVER).into());
        all.extend(["c8", "c9"].map(|name| claim(name).class("wait").build().into()));
        all.push(claim("c7").build().into());
        let view = view_of(vec![node("n1")], vec![user("a", &[8]).on("n1")], all.clone());
        assert!(fits(&view, user("p", &[8])) && fits(&view, user("p", &[9])) && !fits(&view, user("p", &[9, 0])));
        // A claim that names a volume which isn't there is counted by its class too.
        all.push(claim("c8").class("wait").bound_to("nowhere").build().into());
        let view = view_of(vec![node("n1")], vec![user("a", &[8, 7]).on("n1")], all);
        assert!(fits(&view, user("p", &[0])) && !fits(&view, user("p", &[0, 1])));
    }

    #[test]
    fn migrated_types_count_against_the_driver_that_took_them_over() {
        let inline = |id: &str| VolumeSource::AwsElasticBlockStore { volume_id: id.into(), read_only: false };
        let limited = csi_node("n1", &[("ebs.csi.aws.com", 1)]);
        let view =
            view_of(vec![node("n1")], vec![pod("a").volume("v", inline("vol-1")).on("n1")], vec![limited.into()]);
        assert!(!fits(&view, pod("p").volume("v", inline("vol-2"))));
        let mut class = immediate_class("old");
        class.provisioner = "kubernetes.io/aws-ebs".into();
        let in_tree = crate::model::storage::PvSource::AwsElasticBlockStore { volume_id: "aws://z/vol-1".into() };
        let objects = vec![
            csi_node("n1", &[("ebs.csi.aws.com", 1)]).into(),
            class.into(),
            claim("c0").class("old").bound_to("pv0").build().into(),
            volume("pv0").class("old").source(in_tree).build().into(),
            claim("c1").class("old").bound_to("pv1").build().into(),
        ];
        let view = view_of(vec![node("n1")], vec![pod("a").volume("v", inline("vol-1")).on("n1")], objects);
        let new = |claim: usize| {
            prepared(&view, user("p", &[claim]), NAME, |filter| match filter {
                PreFilter::Filter(filter) => filter.check(&view.node_named("n1").unwrap()).is_err(),
                _ => panic!("skipped"),
            })
        };
        assert!(!new(0), "the same disk under its other name");
        assert!(new(1), "by its class's in-tree provisioner");
    }

    #[test]
    fn ephemeral_claims_count_and_missing_claims_of_other_pods_do_not() {
        let mut all = objects(1, 1);
        all.push(delayed_class("wait", DRIVER).into());
        all.push(claim("a-scratch").class("wait").build().into());
        let ephemeral = pod("a").volume("scratch", VolumeSource::Ephemeral).on("n1");
        let view = view_of(vec![node("n1")], vec![ephemeral], all.clone());
        assert!(!fits(&view, user("p", &[0])));
        let view = view_of(vec![node("n1")], vec![user("a", &[55]).on("n1")], all);
        assert!(fits(&view, user("p", &[0])));
    }

    #[test]
    fn a_missing_claim_of_the_pod_fails_each_node() {
        let view = view_of(vec![node("n1")], vec![], vec![]);
        let rejection = prepared(&view, user("p", &[0]), NAME, |filter| match filter {
            PreFilter::Filter(filter) => filter.check(&view.node_named("n1").unwrap()).unwrap_err(),
            _ => panic!("skipped"),
        });
        assert_eq!(rejection.code, Code::UnschedulableAndUnresolvable);
        assert_eq!(rejection.message(), "looking up PVC default/c0: persistentvolumeclaim \"c0\" not found");
    }

    #[test]
    fn pods_without_attachable_volumes_skip() {
        let view = view_of(vec![node("n1")], vec![], vec![]);
        for source in [VolumeSource::EmptyDir, VolumeSource::Csi { driver: DRIVER.into() }] {
            assert!(prepared(&view, pod("p").volume("v", source), NAME, |f| matches!(f, PreFilter::Skip)));
        }
    }

    #[test]
    fn counts_do_not_depend_on_the_order_of_events() {
        let users = || vec![user("a", &[0, 1]).on("n1"), user("b", &[1, 9]).on("n1")];
        let mut all = objects(3, 4);
        all.push(claim("c9").class("wait").build().into());
        all.push(delayed_class("wait", DRIVER).into());
        all.push(attachment("va", DRIVER, "n1", "pv2").into());
        all.push(attachment("vb", DRIVER, "n1", "pv0").into());
        let count = |volumes: &NodeVolumes| volumes.driver(DRIVER).unwrap().count();
        let straight = view_of(vec![node("n1")], users(), all.clone());
        let mut late = view_of(vec![node("n1")], users(), vec![]);
        for object in all.iter().rev() {
            late.set_object(object.clone());
        }
        // Away and back again, everything.
        for object in &all {
            let meta = object.meta();
            late.remove_object(object.kind(), &meta.namespace, &meta.name);
        }
        assert!(late.node_named("n1").unwrap().volumes().is_none());
        for object in all {
            late.set_object(object);
        }
        late.remove_node("n1");
        late.upsert_node(std::sync::Arc::new(node("n1").build()));
        let alone = late.node_named("n1").unwrap().volumes().cloned().unwrap();
        assert_eq!(count(&alone), 2, "attachments stay known while the node is away");
        for user in users() {
            late.add_pod(std::sync::Arc::new(crate::cluster::PodInfo::bound(std::sync::Arc::new(user.build()))));
        }
        let volumes = |view: &View| view.node_named("n1").unwrap().volumes().cloned();
        assert_eq!(volumes(&straight), volumes(&late));
        assert_eq!(count(&volumes(&late).unwrap()), 4);
        for uid in ["uid-default-a", "uid-default-b"] {
            late.remove_pod(uid);
        }
        assert_eq!(volumes(&late).unwrap(), alone);
        late.remove_object(Kind::VolumeAttachment, &"".into(), &"va".into());
        assert_eq!(count(&volumes(&late).unwrap()), 1);
    }
}
