//! Each kind of change that lets a pod in names it; what can't matter names nobody; the bounds hold.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::pod_status::Phase;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector};
use crate::model::testing_storage::{claim, claim_volume, delayed_class, volume};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{Effect, Kind, Namespace, Object, ObjectMeta, ObjectRef, Time, TopologySpreadConstraint};
use crate::service::ManualClock;
use crate::service::schedule::{Request, Verdict};

struct Scene {
    service: Service,
    clock: Arc<ManualClock>,
    watch: RetryWatch,
}

fn scene(objects: impl IntoIterator<Item = Object>) -> Scene {
    scene_with(Retries::default(), objects)
}

fn scene_with(retries: Retries, objects: impl IntoIterator<Item = Object>) -> Scene {
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_000)));
    let mut service = Service::new(Profiles::default(), clock.clone());
    service.retries = Arc::new(retries);
    let watch = service.watch_retries(Vec::new(), "").unwrap();
    let scene = Scene { service, clock, watch };
    objects.into_iter().for_each(|object| scene.put(object));
    scene
}

fn told(watch: &mut RetryWatch) -> Vec<String> {
    let news = watch.read(usize::MAX);
    let overflow = news.overflow.then(|| "overflow".to_owned());
    let pods = news.pods.iter().map(|freed| {
        let events: Vec<String> = freed.events.iter().map(|e| format!("{:?}/{:?}", e.resource, e.action)).collect();
        format!("{}: {}", freed.pod.meta.name, events.join(" "))
    });
    overflow.into_iter().chain(pods).collect()
}

impl Scene {
    fn put(&self, object: impl Into<Object>) {
        let mut writer = self.service.cluster.writer();
        writer.begin();
        writer.upsert(Prepared::new(object.into()), Origin::anonymous());
    }

    fn delete(&self, kind: Kind, namespace: &str, name: &str) {
        let reference = ObjectRef { kind, namespace: namespace.into(), name: name.into(), uid: "".into() };
        let mut writer = self.service.cluster.writer();
        writer.begin();
        assert!(writer.delete(&reference));
    }

    fn ask(&self, pod: PodBuilder) -> Answer {
        self.service.schedule(Request::new(pod.build()), &AtomicBool::new(false)).unwrap()
    }

    fn refuse(&self, pod: PodBuilder) {
        let answer = self.ask(pod);
        assert_eq!(answer.verdict, Verdict::Unschedulable, "{}", answer.message);
    }

    fn look(&mut self) -> Vec<String> {
        self.service.look_for_retries();
        told(&mut self.watch)
    }

    /// Refuses a pod, changes something, and looks: both if the pod had been looked at before the change and if not.
    fn named_after(mut self, pod: PodBuilder, change: impl Fn(&Self)) -> String {
        self.refuse(pod);
        assert_eq!(self.look(), Vec::<String>::new(), "nothing has changed yet");
        change(&self);
        let names = self.look();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(self.look(), Vec::<String>::new(), "named once");
        names[0].clone()
    }
}

fn small(name: &str) -> NodeBuilder {
    node(name).cpu("2")
}

#[test]
fn a_new_node_names_the_pod() {
    let scene = scene([small("n1").build().into()]);
    assert_eq!(scene.named_after(pod("p").cpu("3"), |s| s.put(node("n2").cpu("4").build())), "p: Node/Add");
}

#[test]
fn grown_allocatable_names_the_pod() {
    let scene = scene([small("n1").build().into()]);
    let grown = |s: &Scene| s.put(node("n1").cpu("4").build());
    assert_eq!(scene.named_after(pod("p").cpu("3"), grown), "p: Node/UpdateNodeAllocatable");
}

#[test]
fn a_removed_taint_and_a_lifted_cordon_name_the_pod() {
    for node in [small("n1").taint("dedicated", "x", Effect::NoSchedule), small("n1").cordoned()] {
        let scene = scene([node.build().into()]);
        assert_eq!(scene.named_after(pod("p"), |s| s.put(small("n1").build())), "p: Node/UpdateNodeTaint");
    }
}

#[test]
fn an_added_label_names_the_pod() {
    let scene = scene([small("n1").build().into()]);
    let labelled = |s: &Scene| s.put(small("n1").label("disk", "ssd").build());
    assert_eq!(scene.named_after(pod("p").node_selector("disk", "ssd"), labelled), "p: Node/UpdateNodeLabel");
}

#[test]
fn room_that_comes_free_names_the_pod() {
    let full = || scene([small("n1").build().into(), pod("a").cpu("2").on("n1").build().into()]);
    let p = || pod("p").cpu("1");
    assert_eq!(full().named_after(p(), |s| s.delete(Kind::Pod, "default", "a")), "p: AssignedPod/Delete");
    let ended = |s: &Scene| s.put(pod("a").cpu("2").on("n1").phase(Phase::Succeeded).build());
    assert_eq!(full().named_after(p(), ended), "p: AssignedPod/Delete");
    let shrunk = |s: &Scene| s.put(pod("a").cpu("1").on("n1").build());
    assert_eq!(full().named_after(p(), shrunk), "p: AssignedPod/UpdatePodScaleDown");
}

#[test]
fn a_port_that_comes_free_names_the_pod() {
    let taken = pod("a").host_port("", "TCP", 80).on("n1").build();
    let scene = scene([small("n1").build().into(), taken.into()]);
    let p = pod("p").host_port("", "TCP", 80);
    assert_eq!(scene.named_after(p, |s| s.delete(Kind::Pod, "default", "a")), "p: AssignedPod/Delete");
}

#[test]
fn a_released_and_an_expired_reservation_name_the_pod() {
    let full = || {
        let scene = scene([small("n1").build().into()]);
        let Verdict::Placed { reservation: Some(held), .. } = scene.ask(pod("a").cpu("2")).verdict else { panic!() };
        (scene, held)
    };
    let (scene, held) = full();
    let release = |s: &Scene| assert!(s.service.release(&held.id).0);
    assert_eq!(scene.named_after(pod("p").cpu("1"), release), "p: AssignedPod/Delete");
    let (scene, _) = full();
    let expire = |s: &Scene| {
        s.clock.advance_secs(3_600);
        assert_eq!(s.service.expire_reservations(), 1);
    };
    assert_eq!(scene.named_after(pod("p").cpu("1"), expire), "p: AssignedPod/Delete");
}

#[test]
fn a_withdrawn_nomination_names_the_pod_that_left_it_room() {
    let scene = scene([small("n1").build().into(), pod("first").cpu("2").priority(9).nominated("n1").build().into()]);
    let withdrawn = |s: &Scene| s.put(pod("first").cpu("2").priority(9).build());
    assert_eq!(scene.named_after(pod("p").cpu("1"), withdrawn), "p: AssignedPod/Delete");
}

#[test]
fn a_relabelled_pod_names_those_that_it_kept_away_or_now_attracts() {
    let host = "kubernetes.io/hostname";
    let with = |app: &str| pod("a").label("app", app).on("n1").build();
    let start = |app: &str| scene([small("n1").build().into(), with(app).into()]);
    let apart = pod("p").pod_anti_affinity(host, selector(&[("app", "web")]));
    assert_eq!(start("web").named_after(apart, |s| s.put(with("db"))), "p: AssignedPod/UpdatePodLabel");
    let together = pod("p").pod_affinity(host, selector(&[("app", "web")]));
    assert_eq!(start("db").named_after(together, |s| s.put(with("web"))), "p: AssignedPod/UpdatePodLabel");
}

#[test]
fn a_relabelled_namespace_names_the_pod() {
    let team = |team: &str| Namespace {
        meta: ObjectMeta { name: "red".into(), labels: [("team", team)].into_iter().collect(), ..Default::default() },
    };
    let other = pod("a").namespace("red").label("app", "web").on("n1").build();
    let scene = scene([small("n1").build().into(), team("a").into(), other.into()]);
    let p = pod("p").pod_anti_affinity("kubernetes.io/hostname", selector(&[("app", "web")])).affinity(|a| {
        for term in a.pod_anti.iter_mut().flat_map(|side| &mut side.required) {
            term.namespace_selector = Some(selector(&[("team", "a")]));
        }
    });
    assert_eq!(scene.named_after(p, |s| s.put(team("b"))), "p: Namespace/Update");
}

#[test]
fn a_pod_that_begins_to_end_names_the_pod_that_it_kept_from_its_domain() {
    let a = |name: &str| pod(name).label("app", "web").on("n1");
    let full = node("n2").cpu("0").build();
    let scene = scene([small("n1").build().into(), full.into(), a("a").build().into()]);
    let when = WhenUnsatisfiable::DoNotSchedule;
    let even = TopologySpreadConstraint::new(1, "kubernetes.io/hostname".into(), when, selector(&[("app", "web")]));
    let p = pod("p").label("app", "web").cpu("1").spread(even);
    assert_eq!(scene.named_after(p, |s| s.put(a("a").terminating().build())), "p: AssignedPod/Update");
}

#[test]
fn volumes_and_claims_name_the_pod() {
    let local = || scene([small("n1").build().into(), delayed_class("static", "kubernetes.io/no-provisioner").into()]);
    let p = || pod("p").volume("v", claim_volume("c"));
    let scene = local();
    scene.put(volume("pv").class("static").build());
    let claimed = |s: &Scene| s.put(claim("c").class("static").build());
    assert_eq!(scene.named_after(p(), claimed), "p: PersistentVolumeClaim/Add");
    let scene = local();
    scene.put(claim("c").class("static").build());
    let brought = |s: &Scene| s.put(volume("pv").class("static").build());
    assert_eq!(scene.named_after(p(), brought), "p: PersistentVolume/Add");
}

#[test]
fn a_pod_that_changed_so_that_it_fits_is_named() {
    let scene = scene([small("n1").taint("dedicated", "x", Effect::NoSchedule).build().into()]);
    scene.put(pod("p").build());
    let tolerates = |s: &Scene| s.put(pod("p").tolerates("dedicated", None, None).build());
    assert_eq!(scene.named_after(pod("p"), tolerates), "p: UnschedulablePod/UpdatePodToleration");
}

#[test]
fn a_change_before_the_first_look_names_the_pod_too() {
    let mut scene = scene([small("n1").build().into()]);
    scene.refuse(pod("p").cpu("3"));
    scene.put(node("n1").cpu("4").build());
    assert_eq!(scene.look().len(), 1);
}

#[test]
fn room_that_was_taken_and_given_back_between_two_looks_names_who_came_in_between() {
    let mut scene = scene([small("n1").build().into()]);
    scene.refuse(pod("huge").cpu("99"));
    scene.look();
    scene.put(pod("a").cpu("2").on("n1").build());
    scene.refuse(pod("p").cpu("1"));
    scene.delete(Kind::Pod, "default", "a");
    // The views of both looks are equal: what did it can't be told, so all that it waited for is.
    let names = scene.look();
    assert!(names.len() == 1 && names[0].starts_with("p: ") && names[0].contains("AssignedPod/Delete"), "{names:?}");
}

#[test]
fn what_cannot_matter_is_not_even_looked_at() {
    let mut scene = scene([small("n1").build().into()]);
    scene.refuse(pod("p").cpu("3"));
    scene.look();
    scene.put(small("n1").taint("dedicated", "x", Effect::NoSchedule).build());
    scene.put(small("n1").label("disk", "ssd").build());
    scene.put(pod("a").cpu("1").on("n1").build());
    scene.put(claim("c").build());
    assert_eq!(scene.service.look_for_retries(), 0, "no plugin that refused it waits for any of this");
    assert_eq!(told(&mut scene.watch), Vec::<String>::new());
}

#[test]
fn what_matters_and_does_not_suffice_names_nobody_and_what_follows_does() {
    let mut scene = scene([small("n1").build().into()]);
    scene.refuse(pod("p").cpu("3"));
    scene.look();
    // Now another plugin refuses the node.
    scene.put(node("n1").cpu("4").taint("dedicated", "x", Effect::NoSchedule).build());
    assert_eq!(scene.service.look_for_retries(), 1);
    assert_eq!(told(&mut scene.watch), Vec::<String>::new());
    scene.put(node("n1").cpu("4").build());
    assert_eq!(scene.look(), ["p: Node/UpdateNodeTaint"]);
}

#[test]
fn only_the_nodes_that_were_asked_for_count() {
    let mut scene = scene([small("n1").build().into(), small("n2").build().into()]);
    let mut request = Request::new(pod("p").cpu("3").build());
    request.candidates = vec!["n1".into()];
    scene.service.schedule(request, &AtomicBool::new(false)).unwrap();
    scene.look();
    scene.put(node("n2").cpu("4").build());
    assert_eq!(scene.look(), Vec::<String>::new());
    scene.put(node("n1").cpu("4").build());
    assert_eq!(scene.look(), ["p: Node/UpdateNodeAllocatable"]);
}

#[test]
fn a_pod_refused_again_is_named_again() {
    let mut scene = scene([small("n1").build().into()]);
    scene.refuse(pod("p").cpu("3"));
    for cpu in ["4", "6"] {
        scene.put(node("n1").cpu(cpu).build());
        assert_eq!(scene.look().len(), 1);
        scene.put(small("n1").build());
        scene.refuse(pod("p").cpu("3"));
        assert_eq!(scene.look(), Vec::<String>::new());
    }
    assert_eq!(scene.service.retries.len(), 1);
}

#[test]
fn pods_that_need_no_other_try_leave_the_table() {
    let mut scene = scene([small("n1").build().into()]);
    for name in ["bound", "ended", "deleted", "placed", "gated", "dry"] {
        if name != "dry" {
            scene.put(pod(name).cpu("3").build());
            scene.refuse(pod(name).cpu("3"));
        }
    }
    scene.refuse(pod("never-fed").cpu("3"));
    let dry = Request { dry_run: true, ..Request::new(pod("dry").cpu("3").build()) };
    scene.service.schedule(dry, &AtomicBool::new(false)).unwrap();
    scene.look();
    assert_eq!(scene.service.retries.len(), 6, "a dry run is no refusal");
    scene.put(pod("bound").cpu("3").on("elsewhere").build());
    scene.put(pod("ended").cpu("3").phase(Phase::Failed).build());
    scene.delete(Kind::Pod, "default", "deleted");
    assert!(matches!(scene.ask(pod("placed").cpu("1")).verdict, Verdict::Placed { .. }));
    assert_eq!(scene.ask(pod("gated").cpu("3").gate("wait")).verdict, Verdict::Gated);
    scene.look();
    assert_eq!(scene.service.retries.len(), 1, "the one that nobody fed stays");
    scene.put(node("n1").cpu("9").build());
    assert_eq!(scene.look(), ["never-fed: Node/UpdateNodeAllocatable"]);
}

#[test]
fn new_profiles_name_all_pods_and_forget_those_whose_profile_is_gone() {
    let mut scene = scene([small("n1").build().into()]);
    scene.refuse(pod("p").cpu("3"));
    scene.service.set_profiles(Profiles::default());
    assert_eq!(scene.look(), ["p: Wildcard/All"]);
    scene.refuse(pod("p").cpu("3"));
    scene.service.set_profiles(Profiles::new([]));
    assert_eq!(scene.look(), Vec::<String>::new());
    assert!(scene.service.retries.is_empty());
}

#[test]
fn what_fell_out_is_an_overflow_once_something_happens_that_it_waited_for() {
    let mut scene = scene_with(Retries::with_limits(2, MAX_BYTES), [small("n1").build().into()]);
    for name in ["a", "b", "c"] {
        scene.refuse(pod(name).cpu("3"));
        assert_eq!(scene.look(), Vec::<String>::new(), "nothing has changed");
        assert!(scene.service.retries.len() <= 2);
    }
    scene.put(small("n1").label("disk", "ssd").build());
    assert_eq!(scene.look(), Vec::<String>::new(), "nothing has changed that could matter");
    scene.put(node("n1").cpu("4").build());
    let events = "Node/UpdateNodeAllocatable";
    assert_eq!(scene.look(), ["overflow".to_owned(), format!("b: {events}"), format!("c: {events}")]);
    scene.put(node("n1").cpu("5").build());
    assert_eq!(scene.look(), Vec::<String>::new(), "told once");
    let mut late = scene.service.watch_retries(Vec::new(), "").unwrap();
    assert_eq!(told(&mut late).len(), 3, "who comes late hears of the overflow and of both pods");
}

#[test]
fn a_freed_pod_that_falls_out_is_an_overflow_at_once() {
    let mut scene = scene_with(Retries::with_limits(1, MAX_BYTES), [small("n1").build().into()]);
    scene.refuse(pod("a").cpu("3"));
    scene.put(node("n1").cpu("4").build());
    scene.service.look_for_retries();
    scene.refuse(pod("b").cpu("9"));
    assert_eq!(told(&mut scene.watch), ["overflow"]);
}

#[test]
fn large_pods_are_bounded_by_their_size() {
    let scene = scene_with(Retries::with_limits(100, 40_000), [small("n1").build().into()]);
    for i in 0..20 {
        scene.refuse(pod(&format!("p{i}")).cpu("3").annotation("text", &"x".repeat(10_000)));
    }
    assert!((1..=3).contains(&scene.service.retries.len()), "{}", scene.service.retries.len());
}

#[test]
fn each_watcher_is_told_and_one_that_comes_late_too() {
    let mut scene = scene([small("n1").build().into()]);
    scene.service.set_profiles(Profiles::new([
        Profile::default(),
        Profile::new("other".into(), 0, crate::engine::registry::default_plugins()),
    ]));
    let mut other = scene.service.watch_retries(vec!["other".into()], "").unwrap();
    scene.refuse(pod("p").cpu("3"));
    scene.refuse(pod("q").cpu("3").scheduler("other"));
    scene.put(node("n1").cpu("4").build());
    assert_eq!(scene.look().len(), 2);
    assert_eq!(told(&mut other).len(), 1);
    let mut late = scene.service.watch_retries(Vec::new(), "").unwrap();
    assert_eq!(told(&mut late).len(), 2);
    assert!(matches!(scene.ask(pod("p").cpu("3")).verdict, Verdict::Placed { .. }));
    let mut later = scene.service.watch_retries(Vec::new(), "").unwrap();
    let left = told(&mut later);
    assert!(left.len() == 1 && left[0].starts_with("q: "), "p was asked for again: {left:?}");
}

#[test]
fn watchers_are_bounded_and_make_room_when_they_go() {
    let scene = scene([]);
    let mut watches: Vec<RetryWatch> =
        (1..MAX_WATCHERS).map(|_| scene.service.watch_retries(Vec::new(), "").unwrap()).collect();
    let refused = scene.service.watch_retries(Vec::new(), "").unwrap_err();
    assert_eq!(refused, ServiceError::TooManyWatchers { most: MAX_WATCHERS });
    watches.pop();
    assert!(scene.service.watch_retries(Vec::new(), "").is_ok());
    assert!(matches!(scene.service.watch_retries(vec!["none".into()], ""), Err(ServiceError::NotFound { .. })));
}

#[test]
fn a_watcher_of_another_incarnation_is_told_to_retry_all() {
    let scene = scene([]);
    let current = scene.service.cluster.writer().incarnation().clone();
    assert_eq!(told(&mut scene.service.watch_retries(Vec::new(), &current).unwrap()), Vec::<String>::new());
    assert_eq!(told(&mut scene.service.watch_retries(Vec::new(), "gone").unwrap()), ["overflow"]);
}

#[test]
fn looks_of_one_pod_each_get_to_all_in_the_end() {
    let mut scene = scene([small("n1").build().into()]);
    for i in 0..5 {
        scene.refuse(pod(&format!("p{i}")).cpu("3"));
    }
    scene.look();
    scene.put(node("n1").cpu("4").build());
    for i in 0..5 {
        assert_eq!(scene.service.look(1), 1);
        assert_eq!(told(&mut scene.watch), [format!("p{i}: Node/UpdateNodeAllocatable")]);
    }
}
