//! Scheduling pods whose claims wait for their first consumer: what is decided for a claim stays decided.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::profiles::Profiles;
use super::schedule::{Answer, Held, Request, Verdict};
use super::{ManualClock, Service};
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::testing::{PodBuilder, node, pod};
use crate::model::testing_storage::{VolumeBuilder, claim, claim_volume, delayed_class, volume};
use crate::model::{Kind, Object, ObjectRef, Time};

fn service(volumes: &[VolumeBuilder]) -> Service {
    let service = Service::new(Profiles::default(), Arc::new(ManualClock::at(Time::from_secs(1_000))));
    put(&service, node("n1").build());
    put(&service, delayed_class("static", "kubernetes.io/no-provisioner"));
    for name in ["a", "b"] {
        put(&service, claim(name).class("static").build());
    }
    for volume in volumes {
        put(&service, volume.clone().class("static").build());
    }
    service
}

fn put(service: &Service, object: impl Into<Object>) {
    let mut writer = service.cluster.writer();
    writer.begin();
    writer.upsert(Prepared::new(object.into()), Origin::anonymous());
}

fn user(name: &str, claim: &str) -> PodBuilder {
    pod(name).volume("v", claim_volume(claim))
}

fn schedule(service: &Service, pod: PodBuilder) -> Answer {
    service.schedule(Request::new(pod.build()), &AtomicBool::new(false)).unwrap()
}

/// The reservation that an answer tells of, and the volumes that are held for the pod.
fn held(service: &Service, answer: &Answer) -> (Held, Vec<String>) {
    let Verdict::Placed { reservation: Some(held), .. } = &answer.verdict else { panic!("{:?}", answer.verdict) };
    let writer = service.cluster.writer();
    let reservation = writer.reservations().with_id(&held.id).unwrap();
    assert_eq!(reservation.pod.bindings(), answer.bindings, "what is told is what is held");
    let bindings = answer.bindings.iter();
    (held.clone(), bindings.filter_map(|b| b.volume.as_ref()).map(ToString::to_string).collect())
}

#[test]
fn two_pods_never_get_the_same_volume() {
    let service = service(&[volume("pv1")]);
    assert_eq!(held(&service, &schedule(&service, user("p", "a"))).1, ["pv1"]);
    assert_eq!(schedule(&service, user("q", "b")).verdict, Verdict::Unschedulable);
}

#[test]
fn asking_again_keeps_the_volume_though_a_better_one_came() {
    let service = service(&[volume("pv1").size("10Gi")]);
    let (first, _) = held(&service, &schedule(&service, user("p", "a")));
    put(&service, volume("pv0").class("static").size("5Gi").build());
    let (again, volumes) = held(&service, &schedule(&service, user("p", "a")));
    assert_eq!((again.id, volumes), (first.id, vec!["pv1".to_owned()]));
}

#[test]
fn asking_again_after_the_volume_is_gone_holds_another_under_the_same_name() {
    let service = service(&[volume("pv1"), volume("pv2")]);
    let (first, _) = held(&service, &schedule(&service, user("p", "a")));
    let gone = ObjectRef { kind: Kind::PersistentVolume, namespace: "".into(), name: "pv1".into(), uid: "".into() };
    assert!(service.cluster.writer().delete(&gone));
    let (again, volumes) = held(&service, &schedule(&service, user("p", "a")));
    assert_eq!((again.id, again.created, volumes), (first.id, first.created, vec!["pv2".to_owned()]));
    assert_eq!(schedule(&service, user("q", "b")).verdict, Verdict::Unschedulable, "pv2 is held now");
}

#[test]
fn an_assume_of_the_reserved_node_keeps_what_is_held() {
    let service = service(&[volume("pv1")]);
    let (first, _) = held(&service, &schedule(&service, user("p", "a")));
    let mut writer = service.cluster.writer();
    let ask = crate::cluster::writer::Reserve {
        pod: Arc::new(user("p", "a").build()),
        node: first.node,
        bindings: Vec::new(),
        id: None,
        now: Time::from_secs(1_000),
        expires: Time::from_secs(1_060),
        basis: crate::cluster::reservation::Basis::Assumed,
    };
    assert_eq!(writer.reserve(ask).unwrap().pod.bindings().len(), 1);
}
