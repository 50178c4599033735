//! Property: whatever way the streams took, the same objects give the same view.
//!
//! Three sources (two with Hello, one without) own the objects of a small cluster. An op is one number, from which all
//! about it is drawn, so that proptest shrinks a history by leaving ops out: changes of the truth, delivery, duplicates,
//! stale versions, cuts, cut snapshots and resumed ones, streams that take over from ones that go on talking, versions that
//! go back under a new epoch, reservations that are made, released and expire. At the end each source delivers what is on
//! its way, or sends all it has in a snapshot that is cut once and then completed. Afterwards objects, view, orphans and
//! reservations must equal those of a cluster that was fed the remaining objects once.

mod world;

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use self::world::{NODES, World, reserve_again};
use super::{Batch, Event, FeedSession, StreamKind};
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::cluster::{Cluster, PodInfo, View};
use crate::engine::random_cluster::Dice;
use crate::model::{Kind, Namespace, Object, ObjectMeta};
use crate::service::Service;

/// A cluster of its own that was fed the objects and reservations that another one has now.
fn copy_of(service: &Service) -> Cluster {
    let (writer, copy) = (service.cluster.writer(), Cluster::default());
    let objects = service.cluster.objects();
    let others = Kind::ALL.iter().flat_map(|kind| objects.others(*kind));
    let nodes = objects.nodes().into_iter().map(Object::Node);
    let pods = objects.pods().into_iter().map(Object::Pod);
    let mut copied = copy.writer();
    for object in pods.chain(nodes).chain(others) {
        copied.upsert(Prepared::new(object), Origin::anonymous());
    }
    reserve_again(&writer, &mut copied);
    drop(copied);
    copy
}

/// Changes a fork at random.
fn scribble(view: &mut View, dice: &mut Dice) {
    let nodes: Vec<_> = view.nodes().map(|row| row.name().clone()).collect();
    let pods: Vec<_> = view.nodes().flat_map(|row| row.pods().to_vec()).collect();
    for pod in pods {
        match dice.below(3) {
            0 => drop(view.remove_pod(&pod.pod.meta.uid)),
            1 => {
                let to = nodes[dice.below(nodes.len())].clone();
                view.add_pod(Arc::new(PodInfo::on(pod.pod.clone(), to)));
            }
            _ => {}
        }
    }
    for name in nodes {
        if dice.one_in(3) {
            view.remove_node(&name);
        }
    }
    view.set_object(Namespace { meta: ObjectMeta { name: "red".into(), ..Default::default() } }.into());
    view.remove_object(Kind::PersistentVolume, &"".into(), &"pv0".into());
}

/// All that two services know of objects, as text that says where they differ.
fn object_differences(a: &Service, b: &Service) -> Vec<String> {
    let (a, b) = (a.cluster.objects(), b.cluster.objects());
    let mut found = Vec::new();
    for kind in Kind::ALL.iter().copied() {
        let same = match kind {
            Kind::Node => a.nodes() == b.nodes(),
            Kind::Pod => a.pods() == b.pods(),
            kind => a.others(kind) == b.others(kind),
        };
        if !same {
            found.push(format!("{kind:?}s differ: {} and {}", a.count(kind), b.count(kind)));
        }
    }
    found
}

/// 500 unless `PROPTEST_CASES` says otherwise; the long run has 10,000.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_objects_give_the_same_view_whatever_way_they_came(
        ops in proptest::collection::vec(any::<u64>(), 1..160),
        end in any::<u64>(),
    ) {
        let mut world = World::new();
        ops.into_iter().for_each(|op| world.apply(op));
        world.settle(&mut Dice::new(end));
        let fresh = world.fed_once();
        prop_assert_eq!(object_differences(&world.service, &fresh), Vec::<String>::new());
        prop_assert_eq!(world.service.cluster.fork().differences(&fresh.cluster.fork()), Vec::<String>::new());
        // Nodes that pods have waited for: the orphans were the same too.
        for service in [&world.service, &fresh] {
            let node = |i| json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": format!("n{i}"), "uid": "late" },
                "status": { "allocatable": { "cpu": "64", "memory": "64Gi", "pods": "110" } },
            });
            let missing = (0..=NODES).filter(|i| service.cluster.objects().node(&format!("n{i}")).is_none());
            let events = missing.map(|i| Event::Upsert(node(i).into())).collect();
            let mut session = FeedSession::new(service.clone(), StreamKind::Nodes);
            session.apply(Batch { sequence: 0, events, control: None }).unwrap();
        }
        let held = |service: &Service| {
            let writer = service.cluster.writer();
            writer.reservations().iter().filter(|r| writer.view().pod(&r.pod.pod.meta.uid).is_none()).count()
        };
        prop_assert_eq!(held(&world.service), 0, "room that is held is in the view once its node is there");
        // What was held on a node that was gone is known only to the first.
        let mut view = world.service.cluster.fork();
        for r in world.service.cluster.writer().reservations().iter() {
            if fresh.cluster.writer().reservations().of_pod(&r.pod.pod.meta.uid).is_none() {
                view.remove_pod(&r.pod.pod.meta.uid);
            }
        }
        prop_assert_eq!(view.differences(&fresh.cluster.fork()), Vec::<String>::new());
    }

    #[test]
    fn forks_never_see_later_writes_and_what_is_written_to_them_never_leaks(
        ops in proptest::collection::vec(any::<u64>(), 1..160),
    ) {
        let mut world = World::new();
        let mut forks: Vec<(View, Cluster)> = Vec::new();
        for (i, op) in ops.into_iter().enumerate() {
            world.apply(op);
            let mut dice = Dice::new(op ^ 1);
            if i % 16 == 0 {
                forks.push((world.service.cluster.fork(), copy_of(&world.service)));
            }
            if dice.one_in(24) {
                // A fork of a fork, and one of the writer's own view.
                let mut of_fork = forks[dice.below(forks.len())].0.clone();
                scribble(&mut of_fork, &mut dice);
                scribble(&mut world.service.cluster.fork(), &mut dice);
            }
        }
        for (fork, then) in &forks {
            prop_assert_eq!(fork.differences(&then.fork()), Vec::<String>::new());
        }
        let now = world.service.cluster.fork();
        prop_assert_eq!(now.differences(&copy_of(&world.service).fork()), Vec::<String>::new());
    }
}
