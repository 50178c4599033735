//! The indexes over volumes against their definition: a view built at once from what is left at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cluster::VolumeBinding;
use crate::model::testing::{PodBuilder, node, pod};
use crate::model::testing_storage::{
    attachment, claim, claim_volume, csi_node, delayed_class, storage_capacity, volume,
};
use crate::model::volume::VolumeSource;
use crate::model::{LabelSelector, Quantity};

/// Few names, so that events meet.
#[derive(Debug, Clone)]
enum Event {
    Node(u8),
    RemoveNode(u8),
    Pod { name: u8, node: u8, claims: Vec<u8>, inline: Option<u8> },
    RemovePod(u8),
    Object(Object),
    RemoveObject(Object),
}

fn object() -> impl Strategy<Value = Object> {
    let n = 0..4u8;
    prop_oneof![
        (n.clone(), n.clone(), 0..3u8).prop_map(|(name, pv, how)| {
            let claim = claim(&format!("c{name}"));
            let pv = format!("pv{pv}");
            match how {
                0 => claim.build().into(),
                1 => claim.class(&pv.replace("pv", "sc")).build().into(),
                _ => claim.class("sc1").bound_to(&pv).build().into(),
            }
        }),
        (n.clone(), n.clone(), any::<bool>(), any::<bool>()).prop_map(|(name, handle, is_csi, claimed)| {
            let pv = volume(&format!("pv{name}")).class("sc1").size(&format!("{}Gi", handle + 1));
            let pv = if is_csi { pv.csi("d.example", &format!("h{handle}")) } else { pv };
            let pv = if claimed { pv.claimed_by(&format!("c{name}")) } else { pv };
            pv.build().into()
        }),
        (n.clone(), any::<bool>()).prop_map(|(name, migrated)| {
            let provisioner = if migrated { "kubernetes.io/cinder" } else { "d.example" };
            delayed_class(&format!("sc{name}"), provisioner).into()
        }),
        (n.clone(), n.clone(), n.clone()).prop_map(|(name, node, pv)| {
            attachment(&format!("va{name}"), "d.example", &format!("n{node}"), &format!("pv{pv}")).into()
        }),
        (n.clone(), 0..3i32).prop_map(|(name, count)| csi_node(&format!("n{name}"), &[("d.example", count)]).into()),
        (n.clone(), n).prop_map(|(name, class)| {
            storage_capacity(&format!("s{name}"), &format!("sc{class}"), LabelSelector::everything(), "1Gi").into()
        }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let n = 0..4u8;
    prop_oneof![
        n.clone().prop_map(Event::Node),
        n.clone().prop_map(Event::RemoveNode),
        (n.clone(), n.clone(), prop::collection::vec(n.clone(), 0..3), prop::option::of(n.clone()))
            .prop_map(|(name, node, claims, inline)| Event::Pod { name, node, claims, inline }),
        n.prop_map(Event::RemovePod),
        object().prop_map(Event::Object),
        object().prop_map(Event::Object),
        object().prop_map(Event::RemoveObject),
    ]
}

fn build(name: u8, node: u8, claims: &[u8], inline: Option<u8>) -> PodBuilder {
    let mut builder = pod(&format!("p{name}")).on(&format!("n{node}"));
    for claim in claims {
        builder = builder.volume("v", claim_volume(&format!("c{claim}")));
    }
    match inline {
        None => builder,
        // The names meet those of generic ephemeral volumes' claims, which nobody has.
        Some(0) => builder.volume("c0", VolumeSource::Ephemeral),
        Some(i) => builder
            .volume("i", VolumeSource::AwsElasticBlockStore { volume_id: format!("vol-{i}").into(), read_only: true }),
    }
}

/// A pod with a volume of its own also holds what was decided for its first claim.
fn info(builder: &PodBuilder) -> Arc<PodInfo> {
    let info = PodInfo::bound(Arc::new(builder.clone().build()));
    let (node, claim) = (info.node.clone(), info.claims.first().cloned());
    let holds = info.volumes.is_some();
    let bindings = claim.filter(|_| holds).map(|name| VolumeBinding {
        claim: ("default".into(), name.clone()),
        node,
        volume: (&*name != "c0").then(|| "pv1".into()),
    });
    Arc::new(info.with_bindings(bindings.into_iter().collect()))
}

#[derive(Default)]
struct Expected {
    nodes: BTreeMap<u8, ()>,
    pods: BTreeMap<u8, (u8, PodBuilder)>,
    objects: BTreeMap<(Kind, String), Object>,
}

impl Expected {
    fn view(&self) -> View {
        let mut view = View::default();
        for name in self.nodes.keys() {
            view.upsert_node(Arc::new(node(&format!("n{name}")).build()));
        }
        for object in self.objects.values() {
            view.set_object(object.clone());
        }
        for (_, pod) in self.pods.values() {
            view.add_pod(info(pod));
        }
        view
    }

    fn apply(&mut self, event: &Event, view: &mut View) {
        match event {
            Event::Node(n) => {
                self.nodes.insert(*n, ());
                view.upsert_node(Arc::new(node(&format!("n{n}")).build()));
            }
            Event::RemoveNode(n) => {
                self.nodes.remove(n);
                self.pods.retain(|_, (on, _)| on != n);
                view.remove_node(&format!("n{n}"));
            }
            Event::Pod { name, node, claims, inline } => {
                let pod = build(*name, *node, claims, *inline);
                if view.add_pod(info(&pod)) {
                    self.pods.insert(*name, (*node, pod));
                }
            }
            Event::RemovePod(name) => {
                self.pods.remove(name);
                view.remove_pod(&format!("uid-default-p{name}"));
            }
            Event::Object(object) => {
                self.objects.insert((object.kind(), object.meta().key()), object.clone());
                view.set_object(object.clone());
            }
            Event::RemoveObject(object) => {
                self.objects.remove(&(object.kind(), object.meta().key()));
                view.remove_object(object.kind(), &object.meta().namespace, &object.meta().name);
            }
        }
    }
}

/// All that the indexes tell.
fn told(view: &View) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut nodes: Vec<_> = view.nodes().map(|row| (row.name().clone(), row.volumes().cloned())).collect();
    nodes.sort_by(|a, b| a.0.cmp(&b.0));
    let claims: Vec<(Str, Str)> = (0..4).map(|i| ("default".into(), format!("c{i}").into())).collect();
    let references: Vec<u32> = claims.iter().map(|claim| view.volumes().claim_references(claim)).collect();
    let held: Vec<_> = claims.iter().map(|claim| view.volumes().binding_of(claim).cloned()).collect();
    let holders: Vec<_> = view.volumes().holders(&"pv1".into()).cloned().collect();
    let claimed: Vec<_> = claims.iter().map(|claim| view.objects().volumes_claimed_by(claim).to_vec()).collect();
    let free: Vec<_> = view.objects().free_volumes(&"sc1".into(), Quantity::from_units(2 << 30)).cloned().collect();
    let capacities: Vec<_> = (0..4).map(|i| view.objects().capacities(&format!("sc{i}").into()).count()).collect();
    (nodes, references, held, holders, claimed, free, capacities)
}

proptest! {
    #[test]
    fn any_history_that_ends_in_the_same_objects_tells_the_same(
        events in prop::collection::vec(event(), 0..60),
        fork_at in 0..60usize,
    ) {
        let (mut view, mut expected) = (View::default(), Expected::default());
        let mut fork = None;
        for (i, event) in events.iter().enumerate() {
            if i == fork_at {
                fork = Some((view.clone(), expected.view()));
            }
            expected.apply(event, &mut view);
        }
        prop_assert!(told(&view) == told(&expected.view()), "{:?}\n{:?}", told(&view), told(&expected.view()));
        if let Some((fork, then)) = fork {
            prop_assert!(told(&fork) == told(&then), "a fork saw later changes");
        }
        // Nothing is left behind.
        for object in expected.objects.values() {
            view.remove_object(object.kind(), &object.meta().namespace, &object.meta().name);
        }
        for name in 0..4u8 {
            view.remove_pod(&format!("uid-default-p{name}"));
        }
        prop_assert!(view.volumes().is_empty() && view.objects().is_empty());
    }
}

#[test]
fn free_volumes_come_smallest_first_and_without_those_that_are_claimed_or_not_available() {
    let mut view = View::default();
    for pv in [
        volume("b").class("sc").size("5Gi"),
        volume("a").class("sc").size("5Gi"),
        volume("tiny").class("sc").size("1Gi"),
        volume("big").class("sc").size("9Gi"),
        volume("claimed").class("sc").claimed_by("c"),
        volume("released").class("sc").with(|v| v.phase = "Released".into()),
        volume("going").class("sc").terminating(),
        volume("other"),
    ] {
        view.set_object(pv.build().into());
    }
    let names = |view: &View| -> Vec<String> {
        let class = "sc".into();
        let free = view.objects().free_volumes(&class, Quantity::from_units(2 << 30));
        free.map(|v| v.meta.name.to_string()).collect()
    };
    assert_eq!(names(&view), ["a", "b", "big"]);
    view.set_object(volume("a").class("sc").size("5Gi").claimed_by("c").build().into());
    assert_eq!(names(&view), ["b", "big"]);
    let claimed = view.objects().volumes_claimed_by(&("default".into(), "c".into()));
    assert_eq!(claimed.iter().map(|v| &*v.meta.name).collect::<Vec<_>>(), ["a", "claimed"]);
}

#[test]
fn ephemeral_claims_are_used_but_not_referenced() {
    let mut view = View::default();
    view.upsert_node(Arc::new(node("n1").build()));
    view.set_object(delayed_class("sc1", "d.example").into());
    view.set_object(claim("p0-c0").class("sc1").build().into());
    view.add_pod(Arc::new(PodInfo::bound(Arc::new(build(0, 1, &[1, 1], Some(0)).build()))));
    let references = |name: &str| view.volumes().claim_references(&("default".into(), name.into()));
    assert_eq!((references("p0-c0"), references("c1")), (0, 2));
    assert_eq!(view.node_named("n1").unwrap().volumes().unwrap().driver("d.example").unwrap().count(), 1);
}
