//! VolumeZone (spec 4.13): the zone and region labels of a bound volume must agree with the node's.

use crate::cluster::view::ObjectTable;
use crate::cluster::{Cancel, NodeRow};
use crate::engine::Fix;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::engine::volume_reason::{Resource, VolumeReason};
use crate::model::csi_migration::ZONE_DELIMITER;
use crate::model::node::{REGION_LABEL, ZONE_LABEL};
use crate::model::storage::{BindingMode, PersistentVolume};
use crate::model::volume::VolumeSource;
use crate::model::{Labels, Pod, Str};

const NAME: &str = "VolumeZone";

/// The labels that are looked at, each with the one that a node may have in its place.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE_LABEL),
    ("failure-domain.beta.kubernetes.io/region", REGION_LABEL),
    (ZONE_LABEL, ZONE_LABEL),
    (REGION_LABEL, REGION_LABEL),
];

#[derive(Debug)]
pub struct VolumeZone;

/// Upstream leaves deletions out.
const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeLabel])
    .with(EventResource::PersistentVolume, ActionType::ANY_CHANGE)
    .with(EventResource::PersistentVolumeClaim, ActionType::ANY_CHANGE)
    .with(EventResource::StorageClass, ActionType::ANY_CHANGE);

impl Plugin for VolumeZone {
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
        // Objects are looked up once, and each may have all four labels.
        let volumes = units(sizes.pod.spec.volumes.len());
        Share { prepare: volumes.saturating_mul(8), ..Share::a_node(1 + volumes.saturating_mul(4), 0) }
    }
}

impl FilterPlugin for VolumeZone {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        match restrictions(cycle.view.objects(), cycle.pod.pod, cycle.cancel) {
            Err(reason) => PreFilter::Reject(Rejection::unresolvable(NAME, Reason::Volume(reason))),
            Ok(restrictions) if restrictions.is_empty() => PreFilter::Skip,
            Ok(restrictions) => {
                let has_zones = cycle.profile.has_fix(Fix::ZonedVolumeAndNodeWithoutZone)
                    && cycle.cancel.guard(cycle.view.nodes()).any(|node| is_zoned(node.labels()));
                PreFilter::Filter(Box::new(Filter { restrictions, has_zones, cancel: cycle.cancel }))
            }
        }
    }
}

/// Whether a node has one of the labels.
fn is_zoned(labels: &Labels) -> bool {
    LABELS.iter().any(|(label, _)| labels.contains_key(label))
}

/// A label of a volume and the values that it accepts.
struct Restriction<'a> {
    volume: &'a Str,
    label: &'static str,
    /// What a node may have instead of the label.
    substitute: &'static str,
    values: Vec<&'a str>,
}

fn restrictions<'a>(
    objects: &'a ObjectTable,
    pod: &Pod,
    cancel: Cancel<'_>,
) -> Result<Vec<Restriction<'a>>, VolumeReason> {
    let mut restrictions = Vec::new();
    for volume in cancel.guard(&pod.spec.volumes) {
        let VolumeSource::PersistentVolumeClaim { claim, .. } = &volume.source else { continue };
        if let Some(volume) = bound_volume(objects, pod, claim)? {
            restrictions.extend(of_volume(volume));
        }
    }
    Ok(restrictions)
}

/// The volume of a claim; None while it waits for its first consumer.
fn bound_volume<'a>(
    objects: &'a ObjectTable,
    pod: &Pod,
    name: &Str,
) -> Result<Option<&'a PersistentVolume>, VolumeReason> {
    let not_found = |resource, name: &Str| VolumeReason::NotFound { resource, name: name.clone() };
    if name.is_empty() {
        return Err(VolumeReason::ClaimWithoutName);
    }
    let claim =
        objects.claim(&pod.meta.namespace, name).ok_or_else(|| not_found(Resource::PersistentVolumeClaim, name))?;
    if !claim.volume_name.is_empty() {
        let volume = objects.persistent_volume(&claim.volume_name);
        return match volume {
            Some(volume) => Ok(Some(volume)),
            None => Err(not_found(Resource::PersistentVolume, &claim.volume_name)),
        };
    }
    let class = claim.class();
    if class.is_empty() {
        return Err(VolumeReason::ClaimWithoutVolumeAndClass { claim: name.clone() });
    }
    let class = objects.storage_class(&class).ok_or_else(|| not_found(Resource::StorageClass, &class))?;
    match class.binding_mode {
        None => Err(VolumeReason::BindingModeNotSet { class: class.meta.name.clone() }),
        Some(BindingMode::WaitForFirstConsumer) => Ok(None),
        Some(BindingMode::Immediate) => Err(VolumeReason::ClaimWithoutVolume { claim: name.clone() }),
    }
}

fn of_volume(volume: &PersistentVolume) -> impl Iterator<Item = Restriction<'_>> {
    LABELS.into_iter().filter_map(|(label, substitute)| {
        let values: Vec<&str> = volume.meta.labels.get(label)?.split(ZONE_DELIMITER).map(str::trim).collect();
        // A label with an empty element says nothing.
        let legal = values.iter().all(|v| !v.is_empty());
        legal.then_some(Restriction { volume: &volume.meta.name, label, substitute, values })
    })
}

struct Filter<'a> {
    restrictions: Vec<Restriction<'a>>,
    /// Known only with the switch: the cluster is one of zones, also where a node doesn't say so.
    has_zones: bool,
    cancel: Cancel<'a>,
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let labels = node.labels();
        // A node without any of the labels is taken for one of a cluster without zones.
        if !self.has_zones && !is_zoned(labels) {
            return Ok(());
        }
        let unmet = self.cancel.guard(&self.restrictions).find(|r| {
            let value = labels.get(r.label).or_else(|| labels.get(r.substitute));
            !value.is_some_and(|value| r.values.contains(&&**value))
        });
        match unmet {
            None => Ok(()),
            Some(Restriction { volume, label, .. }) => {
                let reason = VolumeReason::Zone { volume: (*volume).clone(), label };
                Err(Rejection::unresolvable(NAME, Reason::Volume(reason)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::Scene;
    use crate::engine::testing_views::{feasible, prepared, refusal, view_of};
    use crate::engine::{Code, Profile};
    use crate::model::Object;
    use crate::model::testing::{NodeBuilder, PodBuilder, node, pod};
    use crate::model::testing_storage::{claim, claim_volume, delayed_class, immediate_class, volume};

    const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

    fn user() -> PodBuilder {
        pod("p").volume("v", claim_volume("c"))
    }

    /// Which of the nodes take a pod whose volume has this label.
    fn with_label(key: &str, value: &str, nodes: Vec<NodeBuilder>) -> Vec<String> {
        let pv = volume("pv").label(key, value).build();
        feasible(&view_of(nodes, vec![], vec![claim("c").bound_to("pv").build().into(), pv.into()]), user())
    }

    fn zones() -> Vec<NodeBuilder> {
        ["a", "b", "c"].map(|zone| node(zone).zone(zone)).to_vec()
    }

    #[test]
    fn a_zone_label_is_a_list_of_zones() {
        assert_eq!(with_label(ZONE_LABEL, "a__b", zones()), ["a", "b"]);
        assert_eq!(with_label(ZONE_LABEL, "a__ c ", zones()), ["a", "c"]);
        assert_eq!(with_label(REGION_LABEL, "r", vec![node("x").label(REGION_LABEL, "r"), node("y").zone("a")]), ["x"]);
    }

    #[test]
    fn a_label_with_an_empty_element_is_ignored() {
        assert_eq!(with_label(ZONE_LABEL, "a__", zones()).len(), 3);
    }

    #[test]
    fn a_node_without_any_of_the_labels_passes() {
        let nodes = vec![node("bare"), node("regional").label(REGION_LABEL, "r"), node("other").zone("b")];
        assert_eq!(with_label(ZONE_LABEL, "a", nodes), ["bare"]);
    }

    #[test]
    fn the_switch_takes_a_bare_node_for_zoned_where_others_are() {
        let feasible = |nodes: Vec<NodeBuilder>| {
            let pv = volume("pv").label(ZONE_LABEL, "a").build();
            let objects = vec![claim("c").bound_to("pv").build().into(), pv.into()];
            let fixed = Profile::default().with_fix(Fix::ZonedVolumeAndNodeWithoutZone);
            let verdict = Scene::of(view_of(nodes, vec![], objects)).profile(fixed).decide(user());
            verdict.feasible().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(feasible(vec![node("bare"), node("a").zone("a"), node("b").zone("b")]), ["a"]);
        assert_eq!(feasible(vec![node("bare"), node("also")]), ["also", "bare"]);
    }

    #[test]
    fn a_beta_label_takes_the_node_label_of_today_but_not_the_other_way_round() {
        let nodes = || vec![node("beta").label(BETA_ZONE, "a"), node("ga").zone("a")];
        assert_eq!(with_label(BETA_ZONE, "a", nodes()), ["beta", "ga"]);
        assert_eq!(with_label(ZONE_LABEL, "a", nodes()), ["ga"]);
    }

    #[test]
    fn a_mismatch_can_not_be_resolved_by_eviction() {
        let objects =
            vec![claim("c").bound_to("pv").build().into(), volume("pv").label(ZONE_LABEL, "a").build().into()];
        let view = view_of(vec![node("n1").zone("b")], vec![], objects);
        let (plugin, code, reasons) = refusal(&view, user(), "n1").unwrap();
        assert_eq!((plugin, code), (NAME, Code::UnschedulableAndUnresolvable));
        assert_eq!(reasons, ["node(s) had no available volume zone"]);
    }

    #[test]
    fn claims_that_can_not_have_a_volume_reject_the_pod() {
        let mut unset = delayed_class("unset", "x");
        unset.binding_mode = None;
        let classes = || -> Vec<Object> {
            vec![unset.clone().into(), delayed_class("wait", "x").into(), immediate_class("now").into()]
        };
        let outcome = |claims: Vec<Object>| {
            let view = view_of(vec![node("n1").zone("a")], vec![], claims.into_iter().chain(classes()).collect());
            prepared(&view, user(), NAME, |filter| match filter {
                PreFilter::Skip => "skip".to_owned(),
                PreFilter::Reject(rejection) => {
                    assert_eq!(rejection.code, Code::UnschedulableAndUnresolvable);
                    rejection.message()
                }
                _ => "filter".to_owned(),
            })
        };
        let class = |name: &str| outcome(vec![claim("c").class(name).build().into()]);
        assert_eq!(outcome(vec![]), "persistentvolumeclaim \"c\" not found");
        assert_eq!(
            outcome(vec![claim("c").build().into()]),
            "PersistentVolumeClaim had no pv name and storageClass name"
        );
        assert_eq!(class("gone"), "storageclass.storage.k8s.io \"gone\" not found");
        assert_eq!(class("unset"), "VolumeBindingMode not set for StorageClass \"unset\"");
        assert_eq!(class("now"), "PersistentVolume had no name");
        assert_eq!(class("wait"), "skip");
        assert_eq!(outcome(vec![claim("c").bound_to("pv").build().into()]), "persistentvolume \"pv\" not found");
        let plain: Vec<Object> = vec![claim("c").bound_to("pv").build().into(), volume("pv").build().into()];
        assert_eq!(outcome(plain), "skip");
    }
}
