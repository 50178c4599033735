//! What reservations hold for their pods' claims, driven through the cache as a service does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cluster::reservation::{Basis, Reservation};
use crate::cluster::store::Origin;
use crate::cluster::writer::{Prepared, Reserve};
use crate::cluster::{Cluster, VolumeBinding};
use crate::engine::{Decision, IncomingPod, Options, Profile, decide, message};
use crate::model::node::HOSTNAME_LABEL;
use crate::model::storage::AccessMode;
use crate::model::testing::{PodBuilder, node, pod};
use crate::model::testing_storage::{claim, claim_volume, delayed_class, volume};
use crate::model::{Kind, Object, ObjectRef, Time};

fn cluster(objects: Vec<Object>) -> Cluster {
    let cluster = Cluster::default();
    let classes = [delayed_class("static", "kubernetes.io/no-provisioner"), delayed_class("dynamic", "csi.example")];
    let nodes = ["n1", "n2"].map(|name| Object::from(node(name).build()));
    for object in nodes.into_iter().chain(classes.map(Object::from)).chain(objects) {
        put(&cluster, object);
    }
    cluster
}

fn put(cluster: &Cluster, object: impl Into<Object>) {
    let mut writer = cluster.writer();
    writer.begin();
    writer.upsert(Prepared::new(object.into()), Origin::anonymous());
}

fn user(name: &str, claim: &str) -> PodBuilder {
    pod(name).volume("v", claim_volume(claim))
}

fn dry_run(cluster: &Cluster, pod: PodBuilder) -> Decision {
    let pod = pod.build();
    let view = cluster.fork();
    let cancel = AtomicBool::new(false);
    decide(&view, &IncomingPod::new(&pod), &Profile::default(), &Options::default(), &cancel).unwrap()
}

fn schedule(cluster: &Cluster, pod: PodBuilder) -> (Reservation, Vec<VolumeBinding>) {
    let decision = dry_run(cluster, pod.clone());
    let node = decision.node().unwrap_or_else(|| panic!("{:?}", message::fit_message(&decision))).clone();
    let bindings = decision.bindings;
    let ask = Reserve {
        pod: Arc::new(pod.build()),
        node,
        bindings: bindings.clone(),
        id: None,
        now: Time(0),
        expires: Time(10),
        basis: Basis::Assumed,
    };
    (cluster.writer().reserve(ask).unwrap(), bindings)
}

fn volumes(bindings: &[VolumeBinding]) -> Vec<Option<String>> {
    bindings.iter().map(|b| b.volume.as_ref().map(ToString::to_string)).collect()
}

fn fits(cluster: &Cluster, pod: PodBuilder) -> bool {
    dry_run(cluster, pod).node().is_some()
}

/// Two claims that wait for one of these volumes.
fn shelf(names: &[&str]) -> Cluster {
    let volumes = names.iter().map(|name| Object::from(volume(name).class("static").build()));
    let claims = ["a", "b"].map(|name| Object::from(claim(name).class("static").build()));
    cluster(volumes.chain(claims).collect())
}

#[test]
fn two_reservations_never_share_a_volume() {
    let cluster = shelf(&["pv1", "pv2"]);
    let (_, first) = schedule(&cluster, user("p", "a"));
    let (_, second) = schedule(&cluster, user("q", "b"));
    assert_eq!((volumes(&first), volumes(&second)), (vec![Some("pv1".into())], vec![Some("pv2".into())]));
    put(&cluster, claim("third").class("static").build());
    assert!(!fits(&cluster, user("r", "third")));
}

#[test]
fn a_volume_is_free_again_when_its_reservation_ends() {
    for end in [
        |cluster: &Cluster, r: &Reservation| assert!(cluster.writer().release(&r.id)),
        |cluster: &Cluster, _: &Reservation| assert_eq!(cluster.writer().expire(Time(10)), 1),
        |cluster: &Cluster, _: &Reservation| {
            put(cluster, user("p", "a").build());
            let pod = ObjectRef { kind: Kind::Pod, namespace: "default".into(), name: "p".into(), uid: "".into() };
            assert!(cluster.writer().delete(&pod));
        },
    ] {
        let cluster = shelf(&["pv1"]);
        let (reservation, _) = schedule(&cluster, user("p", "a"));
        assert!(!fits(&cluster, user("q", "b")));
        end(&cluster, &reservation);
        assert!(fits(&cluster, user("q", "b")));
    }
}

#[test]
fn the_hold_outlives_updates_and_lasts_until_the_claims_are_seen_bound() {
    let cluster = shelf(&["pv1", "pv2"]);
    let (reservation, _) = schedule(&cluster, user("p", "a"));
    put(&cluster, user("p", "a").label("touched", "yes").build());
    assert_eq!(volumes(&dry_run(&cluster, user("q", "b")).bindings), [Some("pv2".into())]);
    // The feed of pods may be ahead of the feed of claims.
    put(&cluster, user("p", "a").on(reservation.node()).build());
    assert!(cluster.writer().reservations().is_empty());
    assert_eq!(volumes(&dry_run(&cluster, user("q", "b")).bindings), [Some("pv2".into())]);
    // The client bound another volume than was decided: that one is taken, the decided one is free.
    put(&cluster, volume("pv2").class("static").claimed_by("a").build());
    put(&cluster, claim("a").class("static").bound_to("pv2").build());
    assert_eq!(volumes(&dry_run(&cluster, user("q", "b")).bindings), [Some("pv1".into())]);
}

#[test]
fn a_pod_bound_elsewhere_holds_nothing() {
    let cluster = shelf(&["pv1"]);
    let (reservation, _) = schedule(&cluster, user("p", "a"));
    let other = if &**reservation.node() == "n1" { "n2" } else { "n1" };
    put(&cluster, user("p", "a").on(other).build());
    assert!(fits(&cluster, user("q", "b")));
}

#[test]
fn another_pod_of_the_same_claim_shares_the_held_volume() {
    let shared = |name: &str| claim(name).class("static").access(AccessMode::ReadWriteMany).build();
    let local = |name: &str, host: &str| {
        let builder = volume(name).class("static").on_nodes(HOSTNAME_LABEL, &[host]);
        builder.with(|v| v.access_modes = vec![AccessMode::ReadWriteMany]).build()
    };
    let cluster = cluster(vec![local("pv1", "n1").into(), local("pv2", "n2").into(), shared("a").into()]);
    let (reservation, first) = schedule(&cluster, user("p", "a"));
    let (other, second) = schedule(&cluster, user("q", "a"));
    assert_eq!((other.node(), second), (reservation.node(), first));
    // It stays held until both are gone.
    put(&cluster, shared("b"));
    assert!(cluster.writer().release(&reservation.id));
    let third = dry_run(&cluster, user("r", "b"));
    assert_ne!(third.node(), Some(other.node()));
}

#[test]
fn a_claim_that_is_being_provisioned_keeps_other_pods_to_its_node() {
    let cluster = cluster(vec![claim("a").class("dynamic").access(AccessMode::ReadWriteMany).build().into()]);
    let (reservation, bindings) = schedule(&cluster, user("p", "a"));
    assert_eq!(volumes(&bindings), [None]);
    let other = dry_run(&cluster, user("q", "a"));
    assert_eq!((other.node(), other.feasible.len()), (Some(reservation.node()), 1));
    assert!(cluster.writer().release(&reservation.id));
    assert_eq!(dry_run(&cluster, user("q", "a")).feasible.len(), 2);
}

#[test]
fn a_reserved_pod_uses_its_read_write_once_pod_claim() {
    let exclusive = claim("a").access(AccessMode::ReadWriteOncePod).bound_to("pv").build();
    let cluster = cluster(vec![exclusive.into(), volume("pv").claimed_by("a").build().into()]);
    let (reservation, _) = schedule(&cluster, user("p", "a"));
    let refused = dry_run(&cluster, user("q", "a"));
    assert!(message::fit_message(&refused).is_some_and(|m| m.contains("already in-use by another pod")));
    assert!(cluster.writer().release(&reservation.id));
    assert!(fits(&cluster, user("q", "a")));
}

#[test]
fn a_reserved_pods_volumes_count_against_the_drivers_limit() {
    use crate::model::testing_storage::csi_node;
    let claims = ["a", "b", "c"].map(|name| Object::from(claim(name).class("dynamic").build()));
    let limits = ["n1", "n2"].map(|name| Object::from(csi_node(name, &[("csi.example", 1)])));
    let cluster = cluster(claims.into_iter().chain(limits).collect());
    let (first, _) = schedule(&cluster, user("p", "a"));
    let (second, _) = schedule(&cluster, user("q", "b"));
    assert_ne!(first.node(), second.node());
    assert!(!fits(&cluster, user("r", "c")));
}
