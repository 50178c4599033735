//! Numbers at the ends of what the API server lets through: whatever was fed and went again, sums say what is left, and no
//! decision and no plan fails because of a number.
//!
//! In debug builds, in which these tests run, arithmetic that overflows panics.

mod world;

use proptest::prelude::*;
use serde_json::{Value, json};

use self::world::World;
use crate::cluster::view::ResourceId;
use crate::model::Kind;
use crate::service::compare::{DifferenceType, Truth, compare};
use crate::service::feed::{Assume, Event, StreamKind};
use crate::service::schedule::{Request, Verdict};

/// The largest amount of cpu that a quantity can be read as.
const MOST_CPU: &str = "9223372036854775807m";

fn node(cpu: &str) -> Value {
    json!({ "status": { "allocatable": { "cpu": cpu, "memory": "64Gi", "pods": "110" } } })
}

fn bound(name: &str, requests: &Value, phase: &str) -> Value {
    let mut pod = World::plain(name, requests);
    pod["spec"]["nodeName"] = json!("n1");
    pod["status"] = json!({ "phase": phase });
    pod
}

/// A node of 4 CPU that runs a pod of 3.
fn world() -> World {
    let mut world = World::new();
    world.put("Node", "n1", node("4"));
    world.put("Pod", "three", bound("three", &json!({ "cpu": "3", "memory": "1Gi" }), "Running"));
    world
}

/// What its pods take of `n1`: cpu and memory, shown and behind the scenes.
fn taken(world: &World) -> (i64, i64, usize) {
    let view = world.service.cluster.fork();
    let row = view.node_named("n1").unwrap();
    assert_eq!(view.differences(&world.service.cluster.writer().snapshot().rebuilt()), [""; 0]);
    (row.requested(ResourceId::CPU), row.requested(ResourceId::MEMORY), row.pods().len())
}

fn is_placed(world: &World, name: &str, cpu: &str) -> bool {
    let pod = World::pod(&World::plain(name, &json!({ "cpu": cpu })));
    let request = Request { dry_run: true, ..Request::new(pod) };
    matches!(world.schedule(request).unwrap().verdict, Verdict::Placed { .. })
}

/// A pod of 3 CPU is on the node, and nothing else.
fn check(world: &World, how: &str) {
    assert_eq!(taken(world), (3_000, 1 << 30, 1), "{how}");
    assert!(!is_placed(world, "four", "4") && is_placed(world, "one", "1"), "{how}");
}

fn huge() -> [Value; 3] {
    [json!({ "cpu": MOST_CPU }), json!({ "memory": "5Ei" }), json!({ "cpu": "5Ei", "memory": "9223372036854775807" })]
}

#[test]
fn amounts_that_went_are_forgotten_and_no_others() {
    for requests in huge() {
        for pods in [1, 2, 5] {
            let mut world = world();
            let names: Vec<String> = (0..pods).map(|i| format!("huge-{i}")).collect();
            let feed = |world: &mut World, phase: &str| {
                names.iter().for_each(|name| world.put("Pod", name, bound(name, &requests, phase)));
            };
            feed(&mut world, "Running");
            assert!(!is_placed(&world, "one", "1") || requests.get("cpu").is_none());
            feed(&mut world, "Failed");
            check(&world, "after they failed");
            feed(&mut world, "Running");
            names.iter().for_each(|name| world.delete("Pod", name));
            check(&world, "after they were deleted");
        }
    }
}

#[test]
fn amounts_of_reservations_that_were_released_are_forgotten() {
    for requests in huge() {
        let world = world();
        for name in ["huge-0", "huge-1"] {
            let pod = World::plain(name, &requests).into();
            let node = "n1".to_owned();
            let assume = Assume { pod, node, ttl_micros: None, reservation_id: name.into(), bindings: Vec::new() };
            assert_eq!(world.feed(StreamKind::Pods, Event::Assume(assume)).applied, 1);
        }
        ["huge-0", "huge-1"].iter().for_each(|id| assert!(world.service.release(id).0));
        check(&world, "after the release");
    }
}

#[test]
fn a_node_that_comes_again_has_what_its_pods_take() {
    for requests in huge() {
        let mut world = world();
        for name in ["huge-0", "huge-1"] {
            world.put("Pod", name, bound(name, &requests, "Running"));
        }
        world.delete("Node", "n1");
        world.put("Node", "n1", node("4"));
        assert!(!is_placed(&world, "one", "1") || requests.get("cpu").is_none());
        ["huge-0", "huge-1"].iter().for_each(|name| world.delete("Pod", name));
        check(&world, "after the node came again");
        // Another node in the same place of the columns starts from nothing.
        world.put("Pod", "huge-0", bound("huge-0", &requests, "Running"));
        world.delete("Node", "n1");
        world.put("Node", "n2", node("4"));
        assert!(is_placed(&world, "four", "4"));
    }
}

#[test]
fn decisions_go_on_after_amounts_beyond_all_bounds() {
    let mut world = World::new();
    world.put("Node", "n1", node("4"));
    world.put("Node", "n2", node("4"));
    for name in ["huge-0", "huge-1"] {
        world.put("Pod", name, bound(name, &json!({ "cpu": MOST_CPU, "memory": "5Ei" }), "Running"));
    }
    assert!(is_placed(&world, "one", "1"));
    ["huge-0", "huge-1"].iter().for_each(|name| world.delete("Pod", name));
    assert!(is_placed(&world, "four", "4"));
    assert_eq!(taken(&world), (0, 0, 0));
}

/// 200 unless `PROPTEST_CASES` says otherwise.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Each step feeds, deletes, decides, reserves or plans; decisions and plans look at their own answers.
    #[test]
    fn sums_say_what_is_left_and_no_answer_fails_for_a_number(
        ops in prop::collection::vec(any::<u64>(), 1..120),
    ) {
        let mut world = World::new();
        ops.into_iter().for_each(|op| world.apply(op));
        let snapshot = world.service.cluster.writer().snapshot();
        prop_assert_eq!(snapshot.view.differences(&snapshot.rebuilt()), Vec::<String>::new());
        let ids: Vec<_> = snapshot.reservations.iter().map(|r| r.id.clone()).collect();
        ids.iter().for_each(|id| { world.service.release(id); });

        let kinds: Vec<String> = Kind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect();
        let mut truth = Truth::covering(&kinds).unwrap();
        truth.add(&world.service, world.truth.values().map(|object| object.clone().into()).collect()).unwrap();
        let found = compare(&truth, &world.service.cluster.writer().snapshot()).differences;
        // Pods that are bound to a node that isn't there are no fault of sums.
        let found: Vec<_> = found.iter().filter(|d| d.kind != DifferenceType::Orphaned).collect();
        prop_assert!(found.is_empty(), "{:?}", found);

        let pods: Vec<String> = world.truth.keys().filter(|(kind, _)| *kind == "Pod").map(|(_, name)| name.clone()).collect();
        pods.iter().for_each(|name| world.delete("Pod", name));
        let view = world.service.cluster.fork();
        let left = view.nodes().map(|row| row.taken().count()).sum::<usize>();
        prop_assert_eq!(left, 0, "nothing is taken where no pod is");
    }
}
