//! Seeded differences are found exactly: every one, and no other.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cluster::Cluster;
use crate::cluster::reservation::Basis;
use crate::cluster::store::Origin;
use crate::cluster::writer::{Prepared, Reserve};
use crate::model::Time;
use crate::model::pod_status::Phase;
use crate::model::testing::{PodBuilder, node, pod, service};

/// What is done to an object on its way into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seed {
    Same,
    /// Never fed.
    Missing,
    /// Not in the truth.
    Extra,
    Relabelled,
    /// Relabelled, and the cache's version is the older one.
    Behind,
    Replaced,
    OtherVersion,
}

/// Where a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Pending,
    On(u8),
    Ended(u8),
}

#[derive(Debug, Clone)]
struct SeededPod {
    seed: Seed,
    truth: Place,
    cache: Place,
    /// Node of a reservation, if the cache has the pod as pending.
    reserved: Option<u8>,
}

fn seed() -> impl Strategy<Value = Seed> {
    use Seed::{Behind, Extra, Missing, OtherVersion, Relabelled, Replaced, Same};
    prop::sample::select(vec![Same, Same, Same, Missing, Extra, Relabelled, Behind, Replaced, OtherVersion])
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![Just(Place::Pending), (0..5u8).prop_map(Place::On), (0..5u8).prop_map(Place::Ended)]
}

fn seeded_pod() -> impl Strategy<Value = SeededPod> {
    (seed(), place(), prop::option::of(place()), prop::option::of(0..4u8)).prop_map(|(seed, truth, moved, reserved)| {
        let cache = moved.unwrap_or(truth);
        SeededPod { seed, truth, cache, reserved: reserved.filter(|_| cache == Place::Pending) }
    })
}

fn placed(builder: PodBuilder, place: Place) -> PodBuilder {
    match place {
        Place::Pending => builder,
        Place::On(node) => builder.on(&format!("n{node}")),
        Place::Ended(node) => builder.on(&format!("n{node}")).phase(Phase::Succeeded),
    }
}

/// The truth's and the cache's form of an object.
fn seeded(seed: Seed, truth: Object, cache: Object) -> (Option<Object>, Option<Object>) {
    let with = |object: Object, version: &str, label: &str, uid: Option<&str>| {
        let change = |meta: &mut crate::model::ObjectMeta| {
            meta.resource_version = version.into();
            meta.labels.insert("x".into(), label.into());
            if let Some(uid) = uid {
                meta.uid = format!("{uid}-{}", meta.name).into();
            }
        };
        match object {
            Object::Node(mut o) => {
                change(&mut Arc::make_mut(&mut o).meta);
                Object::Node(o)
            }
            Object::Pod(mut o) => {
                change(&mut Arc::make_mut(&mut o).meta);
                Object::Pod(o)
            }
            Object::Service(mut o) => {
                change(&mut Arc::make_mut(&mut o).meta);
                Object::Service(o)
            }
            other => other,
        }
    };
    let truth = (seed != Seed::Extra).then(|| with(truth, "9", "true", None));
    let cache = match seed {
        Seed::Missing => None,
        Seed::Relabelled => Some(with(cache, "9", "other", None)),
        Seed::Behind => Some(with(cache, "8", "other", None)),
        Seed::Replaced => Some(with(cache, "8", "true", Some("replaced"))),
        Seed::OtherVersion => Some(with(cache, "10", "true", None)),
        Seed::Same | Seed::Extra => Some(with(cache, "9", "true", None)),
    };
    (truth, cache)
}

type Told = (DifferenceType, String, Vec<String>);

fn told(kind: DifferenceType, object: &Object, fields: &[&str]) -> Told {
    (kind, ObjectRef::of(object).to_string(), fields.iter().map(ToString::to_string).collect())
}

/// What follows from the seed for the objects alone.
fn expected_of(seed: Seed, truth: Option<&Object>, cache: Option<&Object>, moved: &[&str]) -> Option<Told> {
    use DifferenceType::{Different, ExtraInCache, MissingInCache, Replaced};
    let object = truth.or(cache)?;
    let fields = match seed {
        Seed::Missing => return Some(told(MissingInCache, object, &[])),
        Seed::Extra => return Some(told(ExtraInCache, object, &[])),
        Seed::Replaced => return Some(told(Replaced, object, &[])),
        Seed::Relabelled | Seed::Behind => [&["metadata.labels[\"x\"]"], moved].concat(),
        Seed::Same | Seed::OtherVersion => moved.to_vec(),
    };
    (!fields.is_empty()).then(|| told(Different, object, &fields))
}

fn moved_fields(truth: Place, cache: Place) -> Vec<&'static str> {
    let node = |place| match place {
        Place::Pending => None,
        Place::On(node) | Place::Ended(node) => Some(node),
    };
    let phase = |place| match place {
        Place::Pending => 0,
        Place::On(_) => 1,
        Place::Ended(_) => 2,
    };
    let node = (node(truth) != node(cache)).then_some("spec.nodeName");
    node.into_iter().chain((phase(truth) != phase(cache)).then_some("status.phase")).collect()
}

/// Of a pod that both know under one uid, or that holds a reservation.
fn expected_room(known: &SeededPod, nodes: &BTreeSet<u8>, object: &Object) -> Option<Told> {
    use DifferenceType::{Orphaned, RoomMisplaced, StaleReservation};
    if known.reserved.is_some() {
        let needless = matches!(known.seed, Seed::Extra | Seed::Replaced) || known.truth != Place::Pending;
        return needless.then(|| told(StaleReservation, object, &[]));
    }
    if matches!(known.seed, Seed::Missing | Seed::Extra | Seed::Replaced) {
        return None;
    }
    let wanted = if let Place::On(node) = known.truth { Some(node) } else { None };
    let taken = if let Place::On(node) = known.cache { Some(node).filter(|n| nodes.contains(n)) } else { None };
    match (wanted, taken) {
        (wanted, taken) if wanted == taken => None,
        (Some(wanted), None) if !nodes.contains(&wanted) => Some(told(Orphaned, object, &[])),
        _ => Some(told(RoomMisplaced, object, &[])),
    }
}

proptest! {
    #[test]
    fn seeded_differences_are_found_and_no_others(
        nodes in prop::collection::vec(seed(), 4),
        pods in prop::collection::vec(seeded_pod(), 0..12),
        services in prop::collection::vec(seed(), 0..4),
    ) {
        let (cluster, mut truth) = (Cluster::default(), Truth::covering(&["Node".into(), "Pod".into(), "Service".into()]).unwrap());
        let mut expected: BTreeSet<Told> = BTreeSet::new();
        let mut known_nodes = BTreeSet::new();
        let put = |object: &Object| {
            let mut writer = cluster.writer();
            writer.begin();
            writer.upsert(Prepared::new(object.clone()), Origin::anonymous());
        };
        let mut other_versions = 0;
        let mut seed_object = |seed, truth_form: Object, cache_form: Object, moved: &[&str]| {
            let (told_truth, told_cache) = seeded(seed, truth_form, cache_form);
            told_cache.iter().for_each(put);
            truth.extend(told_truth.clone());
            expected.extend(expected_of(seed, told_truth.as_ref(), told_cache.as_ref(), moved));
            other_versions += usize::from(seed == Seed::OtherVersion && moved.is_empty());
            (told_truth, told_cache)
        };
        for (i, seed) in (0u8..).zip(&nodes) {
            let object = Object::from(node(&format!("n{i}")).build());
            if seed_object(*seed, object.clone(), object, &[]).1.is_some() {
                known_nodes.insert(i);
            }
        }
        for (i, seed) in services.iter().enumerate() {
            let object = Object::from(service(&format!("s{i}"), &[("app", "web")]));
            seed_object(*seed, object.clone(), object, &[]);
        }
        let mut room = Vec::new();
        for (i, known) in pods.iter().enumerate() {
            let base = || pod(&format!("p{i}")).cpu("100m");
            let (truth_form, cache_form) = (placed(base(), known.truth).build(), placed(base(), known.cache).build());
            let moved = moved_fields(known.truth, known.cache);
            let (_, cached) = seed_object(known.seed, truth_form.clone().into(), cache_form.into(), &moved);
            let mut known = known.clone();
            known.reserved = known.reserved.filter(|node| known_nodes.contains(node) && cached.is_some());
            if let (Some(on), Some(Object::Pod(pod))) = (known.reserved, &cached) {
                let ask = Reserve {
                    pod: pod.clone(), node: format!("n{on}").into(), bindings: Vec::new(), id: None,
                    now: Time(0), expires: Time(1), basis: Basis::Assumed,
                };
                cluster.writer().reserve(ask).unwrap();
            }
            room.extend(expected_room(&known, &known_nodes, &Object::from(truth_form)));
        }
        expected.extend(room);

        let comparison = compare(&truth, &cluster.snapshot());
        let found: Vec<Told> = comparison.differences.iter().map(|d| {
            let object = d.object.as_ref().map(ToString::to_string).unwrap_or_default();
            (d.kind, object, d.fields.iter().map(|f| f.path.clone()).collect())
        }).collect();
        let unique: BTreeSet<Told> = found.iter().cloned().collect();
        prop_assert_eq!(found.len(), unique.len(), "told twice: {:?}", found);
        prop_assert_eq!(unique, expected);
        prop_assert_eq!(comparison.kinds.values().map(|counts| counts.other_version).sum::<usize>(), other_versions);
        let order: Vec<_> = comparison.differences.iter().map(|d| (d.object.clone(), d.kind)).collect();
        prop_assert!(order.is_sorted(), "{:?}", order);
        for difference in &comparison.differences {
            let behind = difference.fields.iter().any(|f| f.path == "metadata.labels[\"x\"]");
            if behind {
                prop_assert!(matches!(difference.cache_is(), Some(Ordering::Less | Ordering::Equal)));
            }
        }
    }
}
