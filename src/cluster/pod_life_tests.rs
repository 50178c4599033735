//! Each edge of the diagram in `pod_life.rs`, and what must not move a pod.

use std::sync::Arc;

use super::super::Cluster;
use super::super::counts::CountKey;
use super::super::reservation::Basis;
use super::super::store::Origin;
use super::super::view::ResourceId;
use super::super::writer::Prepared;
use super::PodState::{self, *};
use crate::model::pod_status::Phase;
use crate::model::testing::{PodBuilder, node, pod, selector};
use crate::model::{Kind, ObjectRef, Time};

/// What happens to pod `a`, unless it is about a node.
#[allow(clippy::large_enum_variant, reason = "few, and short to write")]
#[derive(Debug)]
enum Event {
    Update(PodBuilder),
    Delete { uid: &'static str },
    Reserve { on: &'static str },
    Release,
    Expire,
    Node(&'static str),
    DropNode(&'static str),
}

use Event::*;

const UID: &str = "uid-default-a";

fn a() -> PodBuilder {
    pod("a").cpu("1").label("app", "web")
}

fn delete(cluster: &Cluster, kind: Kind, name: &str, uid: &str) {
    let namespace = if kind.is_namespaced() { "default" } else { "" };
    let object = ObjectRef { kind, namespace: namespace.into(), name: name.into(), uid: uid.into() };
    cluster.writer().delete(&object);
}

fn apply(cluster: &Cluster, event: Event) {
    let put = |object| {
        let mut writer = cluster.writer();
        writer.begin();
        writer.upsert(Prepared::new(object), Origin::anonymous());
    };
    match event {
        Update(pod) => put(pod.build().into()),
        Node(name) => put(node(name).build().into()),
        Delete { uid } => delete(cluster, Kind::Pod, "a", uid),
        DropNode(name) => delete(cluster, Kind::Node, name, ""),
        Reserve { on } => {
            let ask = super::super::writer::Reserve {
                pod: Arc::new(a().build()),
                node: on.into(),
                bindings: Vec::new(),
                id: None,
                now: Time(0),
                expires: Time(10),
                basis: Basis::Assumed,
            };
            cluster.writer().reserve(ask).unwrap();
        }
        Release => {
            let id = cluster.writer().reservations().of_pod(UID).unwrap().id.clone();
            assert!(cluster.writer().release(&id));
        }
        Expire => assert_eq!(cluster.writer().expire(Time(10)), 1),
    }
}

/// The view is what a new one would be, and the snapshot has the pods of the store.
fn assert_sound(cluster: &Cluster) {
    let snapshot = cluster.snapshot();
    assert_eq!(snapshot.view.differences(&snapshot.rebuilt()), [""; 0]);
    let mut pods: Vec<_> = snapshot.pods().cloned().collect();
    pods.sort_by(|a, b| (&a.meta.name, &a.meta.uid).cmp(&(&b.meta.name, &b.meta.uid)));
    let stored = cluster.objects().pods();
    assert!(pods.len() == stored.len() && pods.iter().zip(&stored).all(|(a, b)| Arc::ptr_eq(a, b)));
}

/// What nodes n1 and n2 have given, in thousandths of a core (-1: no such node), the pods counted with app=web on each,
/// and the state of the pod (None: gone).
type Outcome = ((i64, i64), (u32, u32), Option<PodState>);

fn outcome(cluster: &Cluster, uid: &str) -> Outcome {
    let snapshot = cluster.snapshot();
    let of = |name: &str| snapshot.view.node_named(name);
    let room = |name: &str| of(name).map_or(-1, |row| row.requested(ResourceId::CPU));
    let counts = snapshot.view.kept_counts(&web()).unwrap();
    let count = |name: &str| of(name).map_or(0, |row| counts.get(row.ordinal()));
    let fed = snapshot.pods().find(|pod| *pod.meta.uid == *uid);
    let state = fed.map(|pod| snapshot.state(pod));
    let unfed = || snapshot.reservations.of_pod(uid).map(|_| Reserved);
    ((room("n1"), room("n2")), (count("n1"), count("n2")), state.or_else(unfed))
}

fn web() -> CountKey {
    CountKey::in_namespace("default".into(), selector(&[("app", "web")]), false)
}

/// A cluster of n1 and n2 after these events.
fn after(events: Vec<Event>) -> Cluster {
    let cluster = Cluster::default();
    apply(&cluster, Node("n1"));
    apply(&cluster, Node("n2"));
    cluster.writer().watch([web()]);
    for event in events {
        apply(&cluster, event);
        assert_sound(&cluster);
    }
    cluster
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident: [$($event:expr),* $(,)?] => $outcome:expr;)*) => {
        $($(#[$doc])* #[test]
        fn $rule() {
            let expected: Outcome = $outcome;
            assert_eq!(outcome(&after(vec![$($event),*]), UID), expected);
        })*
    };
}

rules! {
    a_pod_without_node_is_pending: [Update(a())] => ((0, 0), (0, 0), Some(Pending));
    pending_becomes_reserved: [Update(a()), Reserve { on: "n1" }] => ((1000, 0), (1, 0), Some(Reserved));
    a_pod_that_was_never_fed_is_reserved: [Reserve { on: "n1" }] => ((1000, 0), (1, 0), Some(Reserved));
    reserved_becomes_pending_by_release: [Update(a()), Reserve { on: "n1" }, Release] => ((0, 0), (0, 0), Some(Pending));
    reserved_becomes_pending_by_expiry: [Update(a()), Reserve { on: "n1" }, Expire] => ((0, 0), (0, 0), Some(Pending));
    a_pod_that_was_never_fed_is_gone_after_release: [Reserve { on: "n1" }, Release] => ((0, 0), (0, 0), None);
    reserving_again_moves_the_room:
        [Update(a()), Reserve { on: "n1" }, Reserve { on: "n2" }] => ((0, 1000), (0, 1), Some(Reserved));
    pending_becomes_bound_by_another_scheduler: [Update(a()), Update(a().on("n2"))] => ((0, 1000), (0, 1), Some(Bound));
    reserved_becomes_bound_on_the_same_node:
        [Update(a()), Reserve { on: "n1" }, Update(a().on("n1"))] => ((1000, 0), (1, 0), Some(Bound));
    reserved_becomes_bound_on_another_node_and_the_room_moves:
        [Update(a()), Reserve { on: "n1" }, Update(a().on("n2"))] => ((0, 1000), (0, 1), Some(Bound));
    an_update_without_node_name_leaves_the_reservation:
        [Update(a()), Reserve { on: "n1" }, Update(a().label("x", "y"))] => ((1000, 0), (1, 0), Some(Reserved));
    a_reserved_pod_takes_what_its_update_asks_for:
        [Reserve { on: "n1" }, Update(pod("a").cpu("3"))] => ((3000, 0), (0, 0), Some(Reserved));
    reserved_is_gone_when_deleted: [Update(a()), Reserve { on: "n1" }, Delete { uid: UID }] => ((0, 0), (0, 0), None);
    reserved_is_gone_when_deleted_before_it_was_fed: [Reserve { on: "n1" }, Delete { uid: UID }] => ((0, 0), (0, 0), None);
    reserved_is_finished_by_a_terminal_phase:
        [Update(a()), Reserve { on: "n1" }, Update(a().phase(Phase::Failed))] => ((0, 0), (0, 0), Some(Finished));
    bound_is_finished_and_frees_its_room:
        [Update(a().on("n1")), Update(a().on("n1").phase(Phase::Succeeded))] => ((0, 0), (0, 0), Some(Finished));
    finished_is_gone_when_deleted:
        [Update(a().on("n1").phase(Phase::Succeeded)), Delete { uid: UID }] => ((0, 0), (0, 0), None);
    bound_is_gone_when_deleted_by_name: [Update(a().on("n1")), Delete { uid: "" }] => ((0, 0), (0, 0), None);
    bound_is_resized_in_place_by_its_spec:
        [Update(a().on("n1")), Update(a().cpu("2").on("n1"))] => ((2000, 0), (1, 0), Some(Bound));
    /// Of what it asks for, what it has and what it was granted, the most is taken (spec 2.4).
    bound_is_resized_in_place_by_its_status:
        [Update(a().on("n1")), Update(a().on("n1").container_in_force("cpu", "2", "3"))]
        => ((3000, 0), (1, 0), Some(Bound));
    a_shrunk_pod_keeps_its_room_until_its_status_says_so:
        [Update(a().on("n1")), Update(a().cpu("500m").on("n1").container_in_force("cpu", "1", "1"))]
        => ((1000, 0), (1, 0), Some(Bound));
    an_infeasible_resize_takes_what_is_in_force:
        [Update(a().cpu("4").on("n1").container_in_force("cpu", "2", "2").condition("PodResizePending", "True", "Infeasible"))]
        => ((2000, 0), (1, 0), Some(Bound));
    bound_is_relabelled_and_its_counts_follow:
        [Update(a().on("n1")), Update(pod("a").cpu("1").label("app", "db").on("n1"))]
        => ((1000, 0), (0, 0), Some(Bound));
    a_terminating_pod_keeps_its_room_and_is_not_counted:
        [Update(a().on("n1")), Update(a().on("n1").terminating())] => ((1000, 0), (0, 0), Some(Bound));
    bound_to_an_unknown_node_waits: [Update(a().on("n3"))] => ((0, 0), (0, 0), Some(Orphaned));
    an_orphan_takes_its_room_when_its_node_comes:
        [DropNode("n2"), Update(a().on("n2")), Node("n2")] => ((0, 1000), (0, 1), Some(Bound));
    the_end_of_a_node_orphans_its_pods: [Update(a().on("n1")), DropNode("n1")] => ((-1, 0), (0, 0), Some(Orphaned));
    a_node_that_comes_back_adopts_its_pods:
        [Update(a().on("n1")), DropNode("n1"), Node("n1")] => ((1000, 0), (1, 0), Some(Bound));
    an_orphan_that_was_resized_meanwhile_takes_the_new_room:
        [Update(a().on("n1")), DropNode("n1"), Update(a().cpu("2").on("n1")), Node("n1")]
        => ((2000, 0), (1, 0), Some(Bound));
    an_orphan_that_moved_is_not_adopted:
        [Update(a().on("n1")), DropNode("n1"), Update(a().on("n2")), Node("n1")] => ((0, 1000), (0, 1), Some(Bound));
    an_orphan_that_ended_is_not_adopted:
        [Update(a().on("n1")), DropNode("n1"), Update(a().on("n1").phase(Phase::Failed)), Node("n1")]
        => ((0, 0), (0, 0), Some(Finished));
    an_orphan_that_was_deleted_is_not_adopted:
        [Update(a().on("n1")), DropNode("n1"), Delete { uid: UID }, Node("n1")] => ((0, 0), (0, 0), None);
    a_reservation_outlives_its_node: [Update(a()), Reserve { on: "n1" }, DropNode("n1")] => ((-1, 0), (0, 0), Some(Reserved));
    a_reservation_takes_room_again_when_its_node_comes_back:
        [Update(a()), Reserve { on: "n1" }, DropNode("n1"), Node("n1")] => ((1000, 0), (1, 0), Some(Reserved));
    a_reservation_that_expired_without_its_node_takes_no_room:
        [Update(a()), Reserve { on: "n1" }, DropNode("n1"), Expire, Node("n1")] => ((0, 0), (0, 0), Some(Pending));
    reserved_becomes_orphaned_when_bound_to_an_unknown_node:
        [Update(a()), Reserve { on: "n1" }, Update(a().on("n3"))] => ((0, 0), (0, 0), Some(Orphaned));
    a_delete_of_another_uid_spares_the_pod: [Update(a().on("n1")), Delete { uid: "old" }] => ((1000, 0), (1, 0), Some(Bound));
    a_late_delete_of_the_predecessor_spares_the_pod:
        [Update(a().uid("old").on("n1")), Update(a().on("n2")), Delete { uid: "old" }] => ((0, 1000), (0, 1), Some(Bound));
    a_late_delete_of_the_predecessor_spares_the_reservation:
        [Update(a().uid("old").on("n1")), Update(a()), Reserve { on: "n2" }, Delete { uid: "old" }]
        => ((0, 1000), (0, 1), Some(Reserved));
}

#[test]
fn whoever_takes_the_name_of_a_pod_ends_it() {
    let cluster = after(vec![Update(a().uid("old").on("n1")), Update(a())]);
    assert_eq!(outcome(&cluster, "old"), ((0, 0), (0, 0), None));
    assert_eq!(outcome(&cluster, UID).2, Some(Pending));
}

/// A pod bound before its claim is seen bound keeps the claim's volume, also over an absence of its node.
#[test]
fn an_orphan_comes_back_with_what_was_decided_for_its_claims() {
    use crate::cluster::VolumeBinding;
    use crate::model::testing_storage::claim_volume;

    let user = || pod("a").volume("v", claim_volume("c"));
    let claim = ("default".into(), "c".into());
    let cluster = after(vec![]);
    let binding = VolumeBinding { claim, node: "n1".into(), volume: Some("pv1".into()) };
    let ask = crate::cluster::writer::Reserve {
        pod: Arc::new(user().build()),
        node: "n1".into(),
        bindings: vec![binding.clone()],
        id: None,
        now: Time(0),
        expires: Time(10),
        basis: Basis::Assumed,
    };
    cluster.writer().reserve(ask).unwrap();
    let held = || cluster.fork().volumes().binding_of(&binding.claim).cloned();
    for event in [Update(user().on("n1")), DropNode("n1"), Update(user().label("x", "y").on("n1"))] {
        apply(&cluster, event);
        assert_sound(&cluster);
    }
    assert_eq!(held(), None);
    apply(&cluster, Node("n1"));
    assert_sound(&cluster);
    assert_eq!(held(), Some(binding.clone()));
}
