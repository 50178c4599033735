use super::super::Cluster;
use super::*;
use crate::cluster::view::ResourceId;
use crate::model::pod_status::Phase;
use crate::model::testing::{PodBuilder, node, pod, service};

fn put(cluster: &Cluster, object: impl Into<Object>) {
    put_as(cluster, object, Origin::anonymous());
}

fn put_as(cluster: &Cluster, object: impl Into<Object>, origin: Origin) {
    let mut writer = cluster.writer();
    writer.begin();
    writer.upsert(Prepared::new(object.into()), origin);
}

fn delete(cluster: &Cluster, kind: Kind, namespace: &str, name: &str, uid: &str) -> bool {
    cluster.writer().delete(&ObjectRef { kind, namespace: namespace.into(), name: name.into(), uid: uid.into() })
}

fn used(cluster: &Cluster, node: &str) -> i64 {
    cluster.fork().node_named(node).map_or(-1, |row| row.requested(ResourceId::CPU))
}

fn state(cluster: &Cluster, uid: &str) -> Option<PodState> {
    let pod = cluster.objects().pod(uid)?;
    Some(cluster.writer().pod_state(&pod))
}

fn reserve(cluster: &Cluster, p: PodBuilder, node: &str) -> Result<Reservation, WriteError> {
    let ask = Reserve {
        pod: Arc::new(p.build()),
        node: node.into(),
        bindings: Vec::new(),
        id: None,
        now: Time(0),
        expires: Time(10),
        basis: Basis::Assumed,
    };
    cluster.writer().reserve(ask)
}

const A: &str = "uid-default-a";

#[test]
fn a_finished_pod_takes_no_room() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    put(&cluster, pod("a").cpu("1").on("n1").build());
    assert_eq!((used(&cluster, "n1"), state(&cluster, A)), (1000, Some(PodState::Bound)));
    put(&cluster, pod("a").cpu("1").on("n1").phase(Phase::Succeeded).build());
    assert_eq!((used(&cluster, "n1"), state(&cluster, A)), (0, Some(PodState::Finished)));
}

#[test]
fn a_late_delete_of_the_old_pod_spares_the_one_that_took_its_name() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    put(&cluster, pod("a").uid("old").cpu("1").on("n1").build());
    put(&cluster, pod("a").uid("new").cpu("2").on("n1").build());
    assert_eq!(used(&cluster, "n1"), 2000);
    assert!(!delete(&cluster, Kind::Pod, "default", "a", "old"));
    assert_eq!(used(&cluster, "n1"), 2000);
    assert!(delete(&cluster, Kind::Pod, "default", "a", ""));
    assert_eq!((used(&cluster, "n1"), cluster.objects().count(Kind::Pod)), (0, 0));
}

#[test]
fn a_pod_whose_node_is_unknown_waits_for_it() {
    let cluster = Cluster::default();
    put(&cluster, pod("a").cpu("1").on("n1").build());
    assert_eq!(state(&cluster, A), Some(PodState::Orphaned));
    put(&cluster, node("n1").build());
    assert_eq!((used(&cluster, "n1"), state(&cluster, A)), (1000, Some(PodState::Bound)));
    assert!(delete(&cluster, Kind::Node, "", "n1", ""));
    assert_eq!(state(&cluster, A), Some(PodState::Orphaned));
    put(&cluster, pod("a").cpu("1").on("n2").build());
    put(&cluster, node("n1").build());
    assert_eq!(used(&cluster, "n1"), 0);
}

#[test]
fn a_reservation_takes_room_and_the_bound_pod_confirms_it() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    let reservation = reserve(&cluster, pod("a").cpu("1"), "n1").unwrap();
    assert_eq!(used(&cluster, "n1"), 1000);
    put(&cluster, pod("a").cpu("1").build());
    assert_eq!((used(&cluster, "n1"), state(&cluster, A)), (1000, Some(PodState::Reserved)));
    put(&cluster, pod("a").cpu("1").on("n1").build());
    assert_eq!((used(&cluster, "n1"), state(&cluster, A)), (1000, Some(PodState::Bound)));
    assert!(!cluster.writer().release(&reservation.id));
}

#[test]
fn a_pod_bound_elsewhere_moves_its_room() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    put(&cluster, node("n2").build());
    reserve(&cluster, pod("a").cpu("1"), "n1").unwrap();
    put(&cluster, pod("a").cpu("1").on("n2").build());
    assert_eq!((used(&cluster, "n1"), used(&cluster, "n2")), (0, 1000));
    assert!(cluster.writer().reservations().is_empty());
}

#[test]
fn released_and_expired_reservations_give_their_room_back() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    let first = reserve(&cluster, pod("a").cpu("1"), "n1").unwrap();
    assert!(cluster.writer().release(&first.id));
    assert_eq!(used(&cluster, "n1"), 0);
    reserve(&cluster, pod("a").cpu("1"), "n1").unwrap();
    assert_eq!(cluster.writer().expire(Time(9)), 0);
    assert_eq!(cluster.writer().expire(Time(10)), 1);
    assert_eq!(used(&cluster, "n1"), 0);
}

#[test]
fn reserving_again_moves_the_reservation() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    put(&cluster, node("n2").build());
    let first = reserve(&cluster, pod("a").cpu("1"), "n1").unwrap();
    reserve(&cluster, pod("a").cpu("1"), "n2").unwrap();
    assert_eq!((used(&cluster, "n1"), used(&cluster, "n2")), (0, 1000));
    assert!(!cluster.writer().release(&first.id));
}

#[test]
fn no_room_is_reserved_for_bound_or_finished_pods_or_on_unknown_nodes() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    put(&cluster, pod("a").on("n1").build());
    assert!(matches!(reserve(&cluster, pod("a"), "n1"), Err(WriteError::BoundElsewhere { .. })));
    put(&cluster, pod("a").on("n1").phase(Phase::Failed).build());
    assert!(matches!(reserve(&cluster, pod("a"), "n1"), Err(WriteError::Finished(_))));
    assert!(matches!(reserve(&cluster, pod("b"), "nope"), Err(WriteError::UnknownNode(_))));
}

#[test]
fn a_snapshot_deletes_what_its_source_did_not_send_again() {
    let cluster = Cluster::default();
    let origin = |source: &str, snapshot| Origin { source: source.into(), epoch: 1, snapshot };
    put_as(&cluster, node("mine-old").build(), origin("a", 0));
    put_as(&cluster, node("mine-kept").build(), origin("a", 0));
    put_as(&cluster, node("other").build(), origin("b", 0));
    put_as(&cluster, node("from-file").build(), Origin::file());
    put_as(&cluster, service("s", &[]), origin("a", 0));
    let snapshot = cluster.writer().begin_snapshot();
    put_as(&cluster, node("mine-kept").build(), origin("a", snapshot));
    assert_eq!(cluster.finish_snapshot(&"a".into(), snapshot, &[Kind::Node]), 2);
    let names: Vec<String> = cluster.objects().nodes().iter().map(|n| n.meta.name.to_string()).collect();
    assert_eq!(names, ["mine-kept", "other"]);
    assert_eq!(cluster.objects().count(Kind::Service), 1);
}

#[test]
fn kept_counts_are_bounded() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    for i in 0..MAX_KEPT_COUNTS + 10 {
        let selector = crate::model::testing::selector(&[("app", &i.to_string())]);
        let mut writer = cluster.writer();
        writer.begin();
        writer.watch([CountKey::in_namespace("default".into(), selector, false)]);
    }
    assert!(cluster.fork().kept_keys() <= MAX_KEPT_COUNTS);
    assert!(cluster.fork().kept_keys() >= MAX_KEPT_COUNTS / 2);
}

fn versioned(cluster: &Cluster, cpu: &str, version: &str, epoch: u64, snapshot: u64) -> Written {
    let p = pod("a").cpu(cpu).on("n1").with(|p| p.meta.resource_version = version.into()).build();
    let mut writer = cluster.writer();
    writer.begin();
    writer.upsert(Prepared::new(p.into()), Origin { source: "s".into(), epoch, snapshot })
}

#[test]
fn an_older_version_of_the_same_feed_is_stale_and_another_epoch_starts_afresh() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    assert_eq!(versioned(&cluster, "1", "10", 1, 0), Written::Applied);
    assert_eq!(versioned(&cluster, "2", "9", 1, 0), Written::Stale);
    assert_eq!(used(&cluster, "n1"), 1000);
    assert_eq!(versioned(&cluster, "1", "10", 1, 0), Written::Unchanged);
    assert_eq!(versioned(&cluster, "2", "11", 1, 0), Written::Applied);
    // An etcd restore: the numbers go back.
    assert_eq!(versioned(&cluster, "3", "5", 2, 0), Written::Applied);
    assert_eq!(used(&cluster, "n1"), 3000);
}

#[test]
fn stale_and_unchanged_objects_of_a_snapshot_were_sent() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    versioned(&cluster, "1", "10", 1, 0);
    let snapshot = cluster.writer().begin_snapshot();
    assert_eq!(versioned(&cluster, "1", "9", 1, snapshot), Written::Stale);
    assert_eq!(cluster.finish_snapshot(&"s".into(), snapshot, &[Kind::Pod]), 0);
    let snapshot = cluster.writer().begin_snapshot();
    assert_eq!(versioned(&cluster, "1", "10", 1, snapshot), Written::Unchanged);
    assert_eq!(cluster.finish_snapshot(&"s".into(), snapshot, &[Kind::Pod]), 0);
    let snapshot = cluster.writer().begin_snapshot();
    assert_eq!(cluster.finish_snapshot(&"s".into(), snapshot, &[Kind::Pod]), 1);
}

#[test]
fn nothing_expires_while_the_pod_feed_is_stale() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    reserve(&cluster, pod("a").cpu("1"), "n1").unwrap();
    let source = Str::from("s");
    cluster.writer().readiness_mut().stream_opened(&source, 1, true, Time(0));
    cluster.writer().readiness_mut().stream_closed(&source, true);
    assert_eq!(cluster.writer().expire(Time(10)), 0);
    cluster.writer().readiness_mut().stream_opened(&source, 1, true, Time(10));
    assert_eq!(cluster.writer().expire(Time(10)), 1);
}

#[test]
fn every_reservation_that_began_is_live_or_has_ended_one_way() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    for name in ["confirmed", "released", "expired", "ended", "deleted", "replaced", "live"] {
        put(&cluster, pod(name).cpu("1").build());
    }
    let held = |name: &str| reserve(&cluster, pod(name).cpu("1"), "n1").unwrap();
    for name in ["confirmed", "ended", "deleted", "replaced", "replaced"] {
        held(name);
    }
    put(&cluster, pod("confirmed").cpu("1").on("n1").build());
    let released = held("released");
    assert!(cluster.writer().release(&released.id));
    put(&cluster, pod("ended").cpu("1").phase(Phase::Failed).build());
    assert!(delete(&cluster, Kind::Pod, "default", "deleted", ""));
    let live = held("live");
    cluster.writer().renew(&Str::from("uid-default-live"), Time(1_000));
    let again = Reserve {
        pod: live.pod.pod.clone(),
        node: "n1".into(),
        bindings: Vec::new(),
        id: Some(live.id),
        now: Time(0),
        expires: Time(1_000),
        basis: Basis::Decided { profile: "p".into(), overrides: Str::default(), candidates: Vec::new() },
    };
    cluster.writer().reserve(again).unwrap();
    held("expired");
    // Of those left, the replaced one's successor ends too.
    assert_eq!(cluster.writer().expire(Time(10)), 2);
    let writer = cluster.writer();
    let ReservationTally { made, assumed, renewed, confirmed, released, expired, withdrawn } =
        writer.reservation_tally();
    assert_eq!((made, assumed, renewed), (0, 8, 2));
    assert_eq!((confirmed, released, expired, withdrawn), (1, 1, 2, 3));
    assert_eq!(writer.reservations().len(), 1);
}

/// The node that pod `a` waits for, in a view built anew as in the one that was kept.
fn waits_for(cluster: &Cluster) -> Option<String> {
    let snapshot = cluster.writer().snapshot();
    assert_eq!(snapshot.view.differences(&snapshot.rebuilt()), [""; 0]);
    snapshot.view.nominations().of(A).map(ToString::to_string)
}

#[test]
fn a_fed_nomination_lives_until_the_pod_has_room_or_its_status_changes() {
    let cluster = Cluster::default();
    put(&cluster, node("n1").build());
    put(&cluster, pod("a").nominated("n1").build());
    assert_eq!(waits_for(&cluster).as_deref(), Some("n1"));
    put(&cluster, pod("a").nominated("n2").build());
    assert_eq!(waits_for(&cluster).as_deref(), Some("n2"), "though no such node is known yet");
    let held = reserve(&cluster, pod("a").nominated("n2"), "n1").unwrap();
    assert_eq!(waits_for(&cluster), None, "it has room");
    cluster.writer().release(&held.id);
    assert_eq!(waits_for(&cluster).as_deref(), Some("n2"), "and waits again without it");
    put(&cluster, pod("a").nominated("n2").on("n1").build());
    assert_eq!((waits_for(&cluster), cluster.fork().nominations().len()), (None, 0));
}

#[test]
fn a_recorded_nomination_survives_updates_that_say_nothing_of_it() {
    let cluster = Cluster::default();
    put(&cluster, pod("a").build());
    let recorded = Arc::new(pod("a").build());
    assert!(cluster.writer().nominate(&recorded, "n1".into(), Time(100)));
    put(&cluster, pod("a").label("new", "label").build());
    assert_eq!(waits_for(&cluster).as_deref(), Some("n1"));
    put(&cluster, pod("a").nominated("n2").build());
    assert_eq!(waits_for(&cluster).as_deref(), Some("n2"), "the status changed, so it counts");
    assert!(cluster.writer().clear_nomination(A));
    put(&cluster, pod("a").nominated("n2").label("new", "label").build());
    assert_eq!(waits_for(&cluster), None, "cleared, until the status changes");
    put(&cluster, pod("a").build());
    put(&cluster, pod("a").nominated("n2").build());
    assert_eq!(waits_for(&cluster).as_deref(), Some("n2"));
    delete(&cluster, Kind::Pod, "default", "a", "");
    assert_eq!(waits_for(&cluster), None);
}

#[test]
fn a_recorded_nomination_ends_with_its_time_also_of_a_pod_that_was_never_fed() {
    let cluster = Cluster::default();
    assert!(cluster.writer().nominate(&Arc::new(pod("a").build()), "n1".into(), Time(100)));
    for (now, ended, node) in [(99, 0, Some("n1")), (100, 1, None)] {
        assert_eq!(cluster.writer().expire(Time(now)), ended);
        assert_eq!(waits_for(&cluster).as_deref(), node);
    }
}
