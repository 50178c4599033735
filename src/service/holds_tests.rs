//! The life of a hold, edge by edge.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::evict::outcome::Landing;
use crate::evict::policy::PluginName;
use crate::evict::reason::Reason;
use crate::model::pod_status::Phase;
use crate::model::testing::{PodBuilder, node, pod};
use crate::model::{Kind, Object, ObjectRef};
use crate::service::ManualClock;
use crate::service::inspect::{PageRequest, PodFilter};
use crate::service::profiles::Profiles;
use crate::service::schedule::{Answer, Request, Verdict};

const TTL: i64 = 60_000_000;

struct World {
    service: Service,
    clock: Arc<ManualClock>,
}

/// A pod of one replica set.
fn replica(name: &str) -> PodBuilder {
    pod(name).uid(name).cpu("2").label("app", "web").with(|pod| {
        pod.meta.owners.push(crate::model::meta::OwnerReference {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: "web".into(),
            uid: "uid-web".into(),
            controller: true,
        });
    })
}

fn other(name: &str) -> PodBuilder {
    pod(name).uid(name).cpu("2")
}

impl World {
    /// n1 full with web-1 and web-2, n2 with room for one pod of theirs.
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_secs(1_000)));
        let service = Service::new(Profiles::default(), clock.clone());
        let world = Self { service, clock };
        for (name, cpu) in [("n1", "4"), ("n2", "2")] {
            world.put(node(name).cpu(cpu).build());
        }
        world.put(replica("web-1").on("n1").build());
        world.put(replica("web-2").on("n1").build());
        world
    }

    fn put(&self, object: impl Into<Object>) {
        let mut writer = self.service.cluster.writer();
        writer.begin();
        writer.upsert(Prepared::new(object.into()), Origin::anonymous());
    }

    fn evict(&self, name: &str) {
        let (namespace, name) = ("default".into(), name.into());
        let gone = ObjectRef { kind: Kind::Pod, namespace, name, uid: Str::default() };
        assert!(self.service.cluster.writer().delete(&gone), "{gone:?}");
    }

    /// Holds the landing of a pod as it is known.
    fn hold(&self, name: &str, on: &str) -> Option<Held> {
        let pod = self.service.cluster.objects().pod(name)?;
        let suggestion = Suggestion {
            node: pod.spec.node_name.clone(),
            pod,
            strategy: PluginName::LowNodeUtilization,
            profile: "p".into(),
            reason: Reason::Underutilized,
            grace_period_seconds: None,
            not_before: None,
            budgets: Vec::new(),
            landing: Some(Landing { node: on.into(), score: 0, is_source: false }),
            gain: None,
        };
        self.service.hold_landings(&[suggestion], TTL).pop().flatten()
    }

    fn ask(&self, pod: PodBuilder, dry_run: bool) -> Answer {
        let request = Request { dry_run, ..Request::new(pod.build()) };
        self.service.schedule(request, &AtomicBool::new(false)).unwrap()
    }

    fn schedule(&self, pod: PodBuilder) -> Answer {
        self.ask(pod, false)
    }

    fn reservations(&self) -> Vec<String> {
        let list = self.service.cluster.writer().reservations().list();
        list.into_iter().map(|r| r.pod.pod.meta.uid.to_string()).collect()
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.service.cluster.snapshot();
        forget_holds(&mut snapshot);
        snapshot
    }
}

fn placed(answer: &Answer) -> Option<&str> {
    match &answer.verdict {
        Verdict::Placed { node, .. } => Some(node),
        _ => None,
    }
}

#[test]
fn another_pod_does_not_get_the_room_and_the_replacement_does() {
    let world = World::new();
    let hold = world.hold("web-1", "n2").unwrap();
    assert_eq!((&*hold.node, hold.expires), ("n2", Time::from_secs(1_060)));
    assert_eq!(placed(&world.schedule(other("stranger"))), None, "the only room is held");
    assert_eq!(world.reservations(), ["hold:web-1"]);
    world.evict("web-1");
    // Without the hold n1 has room, too, and the replacement could go back.
    let replacement = world.schedule(replica("web-3"));
    assert_eq!((placed(&replacement), replacement.hold_taken.as_deref()), (Some("n2"), Some(&*hold.id)));
    assert_eq!(world.reservations(), ["web-3"], "the hold has ended");
    assert_eq!(placed(&world.schedule(other("stranger"))), Some("n1"));
}

#[test]
fn another_controller_or_template_takes_no_hold() {
    let world = World::new();
    world.hold("web-1", "n2").unwrap();
    let owned_by_another = replica("x").with(|pod| pod.meta.owners[0].uid = "another".into());
    let no_controller = replica("x").with(|pod| pod.meta.owners[0].controller = false);
    let elsewhere = replica("x").namespace("elsewhere");
    let labelled = replica("x").label("pod-template-hash", "2");
    let larger = replica("x").memory("1Gi");
    for pod in [owned_by_another, no_controller, elsewhere, labelled, larger] {
        let answer = world.schedule(pod);
        assert_eq!((placed(&answer), answer.hold_taken.as_ref()), (None, None));
    }
    assert_eq!(world.reservations(), ["hold:web-1"]);
}

#[test]
fn names_that_the_api_server_makes_up_do_not_matter() {
    let world = World::new();
    let with_token = |name: &str, volume: &str| replica(name).volume(volume, VolumeSource::Other);
    world.put(with_token("web-1", "kube-api-access-x7k2p").on("n1").build());
    world.hold("web-1", "n2").unwrap();
    assert!(world.schedule(with_token("web-3", "kube-api-access-q9z4t")).hold_taken.is_some());
}

#[test]
fn two_replicas_take_two_holds_the_oldest_first() {
    let world = World::new();
    world.put(node("n3").cpu("2").build());
    let first = world.hold("web-1", "n3").unwrap();
    let second = world.hold("web-2", "n2").unwrap();
    assert_eq!(placed(&world.schedule(other("stranger"))), None);
    let taken: Vec<_> = ["web-3", "web-4"].map(|name| world.schedule(replica(name))).into_iter().collect();
    assert_eq!((placed(&taken[0]), taken[0].hold_taken.as_ref()), (Some("n3"), Some(&first.id)));
    assert_eq!((placed(&taken[1]), taken[1].hold_taken.as_ref()), (Some("n2"), Some(&second.id)));
    let third = world.schedule(replica("web-5"));
    assert_eq!((placed(&third), third.hold_taken.as_ref()), (None, None), "there is no third");
}

#[test]
fn a_pod_keeps_what_it_has_and_takes_no_second_hold() {
    let world = World::new();
    world.put(node("n3").cpu("2").build());
    world.hold("web-1", "n2").unwrap();
    world.hold("web-2", "n3").unwrap();
    let first = world.schedule(replica("web-3"));
    let again = world.schedule(replica("web-3"));
    assert_eq!((placed(&again), again.hold_taken.as_ref()), (placed(&first), None));
    assert_eq!(world.reservations().len(), 2, "one hold is left");
}

#[test]
fn when_the_held_node_does_not_pass_the_pod_is_decided_anew() {
    let world = World::new();
    let hold = world.hold("web-1", "n2").unwrap();
    world.put(node("n2").cpu("2").cordoned().build());
    world.evict("web-1");
    let answer = world.schedule(replica("web-3"));
    assert_eq!((placed(&answer), answer.hold_taken.as_ref()), (Some("n1"), Some(&hold.id)));
    assert_eq!(world.reservations(), ["web-3"]);
}

#[test]
fn candidates_go_before_the_hold() {
    let world = World::new();
    world.hold("web-1", "n2").unwrap();
    world.evict("web-1");
    let request = Request { candidates: vec!["n1".to_owned()], ..Request::new(replica("web-3").build()) };
    let answer = world.service.schedule(request, &AtomicBool::new(false)).unwrap();
    assert_eq!(placed(&answer), Some("n1"));
}

#[test]
fn a_dry_run_sees_the_holds_of_others_and_leaves_its_own() {
    let world = World::new();
    let hold = world.hold("web-1", "n2").unwrap();
    assert_eq!(placed(&world.ask(other("stranger"), true)), None);
    let answer = world.ask(replica("web-3"), true);
    assert_eq!((placed(&answer), answer.hold_taken.as_ref()), (Some("n2"), Some(&hold.id)));
    assert_eq!(world.reservations(), ["hold:web-1"], "nothing was taken");
}

#[test]
fn expiry_gives_the_room_back() {
    let world = World::new();
    world.hold("web-1", "n2").unwrap();
    world.clock.advance_secs(59);
    assert_eq!(world.service.expire_reservations(), 0);
    world.clock.advance_secs(1);
    assert_eq!(world.service.expire_reservations(), 1);
    assert!(world.service.holds.0.lock().by_owner.is_empty(), "the index was swept");
    assert_eq!(placed(&world.schedule(other("stranger"))), Some("n2"));
    assert_eq!(world.schedule(replica("web-3")).hold_taken, None);
}

#[test]
fn a_hold_is_released_by_its_id() {
    let world = World::new();
    let hold = world.hold("web-1", "n2").unwrap();
    assert!(world.service.release(&hold.id).0);
    assert_eq!(world.schedule(replica("web-3")).hold_taken, None);
}

#[test]
fn a_hold_that_moved_is_as_old_as_its_move() {
    let world = World::new();
    world.put(node("n3").cpu("4").build());
    world.hold("web-1", "n2").unwrap();
    let second = world.hold("web-2", "n3").unwrap();
    let moved = world.hold("web-1", "n3").unwrap();
    let taken = ["web-3", "web-4"].map(|name| world.schedule(replica(name)).hold_taken);
    assert_eq!(taken, [Some(second.id), Some(moved.id)]);
}

#[test]
fn holding_again_is_holding_longer_and_another_landing_moves_the_hold() {
    let world = World::new();
    let first = world.hold("web-1", "n2").unwrap();
    let revision = world.service.cluster.fork().revision();
    world.clock.advance_secs(10);
    let again = world.hold("web-1", "n2").unwrap();
    assert_eq!((&again.id, again.expires), (&first.id, Time::from_secs(1_070)));
    assert_eq!(world.service.cluster.fork().revision(), revision, "nothing changed in the view");
    let moved = world.hold("web-1", "n1").unwrap();
    assert_ne!(moved.id, first.id);
    assert_eq!(world.reservations(), ["hold:web-1"], "one a pod");
    assert_eq!(placed(&world.schedule(other("stranger"))), Some("n2"));
}

#[test]
fn a_plan_sees_the_cluster_without_the_holds_of_pods_that_are_there() {
    let world = World::new();
    let before = world.service.cluster.fork();
    world.hold("web-1", "n2").unwrap();
    let snapshot = world.snapshot();
    assert_eq!(snapshot.view.differences(&before), [] as [String; 0]);
    assert!(snapshot.reservations.is_empty());

    world.put(replica("web-1").on("n1").terminating().build());
    assert_eq!(world.snapshot().reservations.len(), 1, "its replacement is on the way");
    world.evict("web-1");
    assert_eq!(world.snapshot().reservations.len(), 1);
}

#[test]
fn nothing_is_held_for_what_nobody_replaces_or_has_replaced_already() {
    let world = World::new();
    world.put(replica("failed").on("n1").phase(Phase::Failed).build());
    world.put(other("bare").on("n1").build());
    assert_eq!((world.hold("failed", "n2"), world.hold("bare", "n2")), (None, None));
    assert_eq!(world.hold("web-1", "no-such-node"), None);
    assert!(world.reservations().is_empty());
}

#[test]
fn a_hold_is_a_reservation_and_no_pod() {
    let world = World::new();
    let service = &world.service;
    let page = PageRequest::default();
    let pods = || service.list_pods(&PodFilter::default(), &page).unwrap().items.len();
    let before = (pods(), service.summary().pods, world.service.cluster.snapshot().pods().count());
    world.hold("web-1", "n2").unwrap();
    assert_eq!((pods(), service.summary().pods, world.service.cluster.snapshot().pods().count()), before);
    let [hold] = &service.list_reservations(&page).unwrap().items[..] else { panic!("one reservation") };
    assert_eq!((hold.pod.pod.meta.key().as_str(), &*hold.pod.pod.meta.uid), ("default/web-1", "hold:web-1"));
    assert!(service.sizes().reservations.contains(&("held", 1)));
    let scene = crate::evict::Scene::of(&service.cluster.snapshot(), service.now(), crate::cluster::Cancel::never());
    assert_eq!(scene.owned_by("uid-web"), 2, "for the descheduler's rules it isn't there");
}

#[test]
fn the_index_forgets_what_was_taken_or_released_also_when_nothing_expires() {
    let world = World::new();
    for i in 0..200 {
        let name = format!("p{i}");
        let owned = replica(&name).cpu("1m").with(|pod| pod.meta.owners[0].uid = format!("owner-{i}").into());
        world.put(owned.on("n1").build());
        let hold = world.hold(&name, "n2").unwrap();
        world.service.release(&hold.id);
    }
    for _ in 0..4 {
        assert_eq!(world.service.expire_reservations(), 0);
    }
    assert!(world.service.holds.0.lock().by_owner.is_empty());
}
