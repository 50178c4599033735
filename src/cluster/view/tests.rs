use std::sync::Arc;

use super::*;
use crate::cluster::pod_set::{Namespaces, PodSet};
use crate::model::LabelSelector;
use crate::model::testing::{node, pod, selector};

fn info(p: crate::model::testing::PodBuilder) -> Arc<PodInfo> {
    Arc::new(PodInfo::bound(Arc::new(p.build())))
}

fn view_of(nodes: &[&str]) -> View {
    let mut view = View::default();
    for name in nodes {
        view.upsert_node(Arc::new(node(name).build()));
    }
    view
}

fn requested_cpu(view: &View, name: &str) -> i64 {
    view.node_named(name).map(|row| row.requested(ResourceId::CPU)).unwrap_or(-1)
}

#[test]
fn a_pod_takes_room_until_it_is_removed() {
    let mut view = view_of(&["n1"]);
    assert!(view.add_pod(info(pod("a").cpu("1").request("x.example/gpu", "2").host_port("", "TCP", 80).on("n1"))));
    let row = view.node_named("n1").unwrap();
    let gpu = view.resources().get("x.example/gpu").unwrap();
    assert_eq!((row.requested(ResourceId::CPU), row.requested(gpu), row.ports().len()), (1000, 2, 1));
    assert_eq!(row.non_zero_memory(), crate::model::requests::DEFAULT_MEMORY);
    view.remove_pod("uid-default-a");
    let row = view.node_named("n1").unwrap();
    assert_eq!((row.requested(ResourceId::CPU), row.requested(gpu), row.ports().len()), (0, 0, 0));
    assert_eq!((row.pods().len(), view.pod_count()), (0, 0));
}

#[test]
fn adding_a_pod_again_replaces_it() {
    let mut view = view_of(&["n1", "n2"]);
    view.add_pod(info(pod("a").cpu("1").on("n1")));
    view.add_pod(info(pod("a").cpu("3").on("n2")));
    assert_eq!((requested_cpu(&view, "n1"), requested_cpu(&view, "n2"), view.pod_count()), (0, 3000, 1));
}

#[test]
fn a_replaced_node_keeps_its_pods_and_changes_its_offer() {
    let mut view = view_of(&["n1"]);
    view.add_pod(info(pod("a").cpu("1").on("n1")));
    view.upsert_node(Arc::new(node("n1").cpu("8").without("memory").build()));
    let row = view.node_named("n1").unwrap();
    assert_eq!((row.allocatable(ResourceId::CPU), row.allocatable(ResourceId::MEMORY), row.pods().len()), (8000, 0, 1));
    assert_eq!(view.node_count(), 1);
}

#[test]
fn ordinals_are_reused_and_start_clean() {
    let mut view = view_of(&["n1", "n2"]);
    view.add_pod(info(pod("a").cpu("1").host_port("", "TCP", 80).on("n1")));
    assert_eq!(view.remove_node("n1").len(), 1);
    assert_eq!((view.node_count(), view.pod_count()), (1, 0));
    view.upsert_node(Arc::new(node("n3").build()));
    let row = view.node_named("n3").unwrap();
    assert_eq!((row.requested(ResourceId::CPU), row.pods().len(), row.ports().len()), (0, 0, 0));
    assert_eq!(row.ordinal().index(), 0);
}

#[test]
fn shared_ports_are_freed_with_their_last_pod() {
    let mut view = view_of(&["n1"]);
    view.add_pod(info(pod("a").host_port("", "TCP", 80).on("n1")));
    view.add_pod(info(pod("b").host_port("", "TCP", 80).on("n1")));
    view.remove_pod("uid-default-a");
    assert_eq!(view.node_named("n1").unwrap().ports().len(), 1);
}

#[test]
fn a_fork_does_not_see_later_changes_nor_leak_its_own() {
    let mut view = view_of(&["n1"]);
    let mut fork = view.clone();
    view.add_pod(info(pod("a").cpu("1").on("n1")));
    fork.add_pod(info(pod("b").cpu("2").on("n1")));
    assert_eq!((requested_cpu(&view, "n1"), requested_cpu(&fork, "n1")), (1000, 2000));
    fork.remove_node("n1");
    assert_eq!(view.node_count(), 1);
}

#[test]
fn kept_counts_follow_pods_as_walking_would() {
    let mut view = view_of(&["n1", "n2"]);
    let key = |terminating| CountKey::in_namespace("default".into(), selector(&[("app", "web")]), terminating);
    view.add_pod(info(pod("a").label("app", "web").on("n1")));
    view.keep_counts(key(false));
    view.keep_counts(key(true));
    view.add_pod(info(pod("b").label("app", "web").on("n1")));
    view.add_pod(info(pod("c").label("app", "web").terminating().on("n1")));
    view.add_pod(info(pod("d").label("app", "db").on("n1")));
    view.add_pod(info(pod("e").label("app", "web").namespace("other").on("n1")));
    let count = |view: &View, k: &CountKey| {
        let row = view.node_named("n1").unwrap();
        (view.kept_counts(k).unwrap().get(row.ordinal()), k.count(row.pods(), view.objects()))
    };
    assert_eq!(count(&view, &key(false)), (2, 2));
    assert_eq!(count(&view, &key(true)), (3, 3));
    view.remove_pod("uid-default-a");
    assert_eq!(count(&view, &key(false)), (1, 1));
    view.drop_counts(&key(false));
    assert!(view.kept_counts(&key(false)).is_none() && view.kept_keys() == 1);
}

fn namespace(name: &str, team: &str) -> Object {
    let labels = [("team", team)].into_iter().collect();
    crate::model::Namespace { meta: crate::model::ObjectMeta { name: name.into(), labels, ..Default::default() } }
        .into()
}

#[test]
fn kept_counts_follow_the_labels_of_namespaces() {
    let mut view = view_of(&["n1"]);
    let team_a = Namespaces::Some { names: vec!["blue".into()], selector: selector(&[("team", "a")]) };
    let key = CountKey::new(PodSet { namespaces: team_a, selector: selector(&[("app", "web")]) }, true);
    view.keep_counts(key.clone());
    for ns in ["red", "blue"] {
        view.add_pod(info(pod("a").namespace(ns).label("app", "web").on("n1")));
        view.add_pod(info(pod("b").namespace(ns).label("app", "db").on("n1")));
    }
    let counted = |view: &View| {
        let row = view.node_named("n1").unwrap();
        let kept = view.kept_counts(&key).unwrap();
        assert_eq!(kept.get(row.ordinal()), key.count(row.pods(), view.objects()));
        kept.total()
    };
    assert_eq!(counted(&view), 1, "blue by name");
    view.set_object(namespace("red", "a"));
    assert_eq!(counted(&view), 2, "red by label");
    let fork = view.clone();
    view.set_object(namespace("blue", "b"));
    assert_eq!(counted(&view), 2, "blue is named anyway");
    view.set_object(namespace("red", "b"));
    assert_eq!(counted(&view), 1);
    view.set_object(namespace("red", "a"));
    view.remove_object(Kind::Namespace, &"".into(), &"red".into());
    assert_eq!((counted(&view), counted(&fork)), (1, 2));
}

#[test]
fn a_key_of_several_sets_counts_pods_that_are_in_all() {
    let mut view = view_of(&["n1", "n2"]);
    let set = |pairs: &[(&str, &str)]| PodSet { namespaces: Namespaces::All, selector: selector(pairs) };
    let key = CountKey::all_of(vec![set(&[]), set(&[("app", "web")]), set(&[("tier", "1")])], true).unwrap();
    assert_eq!(CountKey::all_of(vec![], true), None);
    view.keep_counts(key.clone());
    view.add_pod(info(pod("a").label("app", "web").on("n1")));
    view.add_pod(info(pod("b").label("tier", "1").on("n1")));
    view.add_pod(info(pod("c").label("tier", "1").label("app", "web").on("n2")));
    let nodes = |view: &View| {
        let mut counting = Counting::new(view, Cancel::never());
        let counts = counting.counts(&key);
        let named = counts.iter().map(|(ordinal, n)| (view.node(ordinal).unwrap().name().to_string(), n));
        named.collect::<Vec<_>>()
    };
    assert_eq!(nodes(&view), [("n2".to_owned(), 1)]);
    view.drop_counts(&key);
    assert_eq!(nodes(&view), [("n2".to_owned(), 1)], "the same when they aren't kept");
}

#[test]
fn keeping_a_key_later_counts_what_is_there_already() {
    let mut view = view_of(&["n1", "n2"]);
    for (name, ns, on) in [("a", "red", "n1"), ("b", "red", "n2"), ("c", "blue", "n2")] {
        view.add_pod(info(pod(name).namespace(ns).label("app", "web").on(on)));
    }
    let names = Namespaces::Some { names: vec!["blue".into(), "red".into()], selector: LabelSelector::Nothing };
    let both = CountKey::new(PodSet { namespaces: names, selector: selector(&[("app", "web")]) }, false);
    let red = CountKey::in_namespace("red".into(), selector(&[("app", "web")]), false);
    let all = CountKey::new(PodSet { namespaces: Namespaces::All, selector: LabelSelector::everything() }, false);
    for (key, expected) in [(both, 3), (red, 2), (all, 3)] {
        view.keep_counts(key.clone());
        assert_eq!(view.kept_counts(&key).unwrap().total(), expected, "{key:?}");
    }
}

#[test]
fn counts_made_on_a_fork_are_taken_over_with_what_changed_since() {
    let web = |name: &str, on: &str| info(pod(name).label("app", "web").on(on));
    let mut view = view_of(&["n1", "n2", "n3"]);
    let key = CountKey::in_namespace("default".into(), selector(&[("app", "web")]), false);
    view.advance();
    view.add_pod(web("a", "n1"));
    let fork = view.clone();
    let mut made = fork.count_all(vec![key.clone()], Cancel::never().flag()).unwrap();
    view.advance();
    view.add_pod(web("b", "n2"));
    view.remove_node("n1");
    view.upsert_node(Arc::new(node("n4").build()));
    view.add_pod(web("c", "n4"));
    let changed = view.recountable_since(&fork, 100).unwrap();
    view.adopt_counts(key.clone(), made.remove(0).1, &changed);
    let kept = |view: &View| view.kept_counts(&key).unwrap().iter().collect::<Vec<_>>();
    assert_eq!((kept(&view), view.kept_counts(&key).unwrap().total()), (view.walk_counts(&key), 2));
    view.add_pod(web("d", "n3"));
    assert_eq!(kept(&view), view.walk_counts(&key), "and they are kept from then on");
    assert_eq!(view.recountable_since(&fork, 1), None, "too much changed");
    view.set_object(namespace("red", "a"));
    assert_eq!(view.recountable_since(&fork, 100), None, "a namespace changed");
}

#[test]
fn making_counts_ends_when_the_flag_is_set() {
    let view = view_of(&["n1"]);
    let key = CountKey::in_namespace("default".into(), LabelSelector::everything(), true);
    assert!(view.count_all(vec![key], &AtomicBool::new(true)).is_none());
}

#[test]
fn image_size_is_the_first_named_nodes_whatever_the_order_of_events() {
    let a = || Arc::new(node("a").image("x:1", 10).build());
    let b = || Arc::new(node("b").image("x:1", 20).build());
    let mut one = View::default();
    one.upsert_node(a());
    one.upsert_node(b());
    let mut two = View::default();
    two.upsert_node(b());
    two.upsert_node(a());
    assert_eq!((one.images().get("x:1"), two.images().get("x:1")), (Some((10, 2)), Some((10, 2))));
    two.remove_node("a");
    assert_eq!(two.images().get("x:1"), Some((20, 1)));
    two.upsert_node(Arc::new(node("b").build()));
    assert_eq!(two.images().get("x:1"), None);
}

#[test]
fn more_nodes_than_a_chunk_holds() {
    let names: Vec<String> = (0..600).map(|i| format!("n{i}")).collect();
    let view = view_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(view.nodes().count(), 600);
    assert!(names.iter().all(|n| view.node_named(n).is_some_and(|row| **row.name() == **n)));
}

#[test]
fn views_of_the_same_objects_do_not_differ_whatever_their_histories() {
    let app =
        |name: &str| pod(name).label("app", "web").cpu("1").request("x.example/gpu", "1").host_port("", "TCP", 80);
    let key = CountKey::in_namespace("default".into(), selector(&[("app", "web")]), false);
    let mut one = view_of(&["gone", "n1", "n2"]);
    one.keep_counts(key.clone());
    one.add_pod(info(pod("x").request("y.example/fpga", "1").on("gone")));
    one.remove_node("gone");
    one.add_pod(info(app("a").on("n2")));
    one.add_pod(info(app("a").on("n1")));
    let mut two = view_of(&["n2", "n1"]);
    two.add_pod(info(app("a").on("n1")));
    assert_eq!(one.differences(&two), [""; 0]);
    two.add_pod(info(app("b").on("n2")));
    assert!(!one.differences(&two).is_empty());
}

#[test]
fn every_index_that_differs_is_told() {
    type Change = fn(&mut View);
    let changes: [(&str, Change); 8] = [
        ("node n3: is only in the second view", |v| {
            v.upsert_node(Arc::new(node("n3").build()));
        }),
        ("node n1: allocatable cpu: 4000 against 8000", |v| {
            v.upsert_node(Arc::new(node("n1").cpu("8").build()));
        }),
        ("node n1: requested cpu: 1000 against 2000", |v| {
            v.add_pod(info(pod("a").cpu("2").on("n1")));
        }),
        ("node n1: pods: ", |v| {
            v.remove_pod("uid-default-a");
        }),
        ("pods of namespace other: None against", |v| {
            v.add_pod(info(pod("b").namespace("other").on("n1")));
        }),
        ("image x:1: None against", |v| {
            v.upsert_node(Arc::new(node("n1").image("x:1", 5).build()));
        }),
        ("Namespace red: None against", |v| v.set_object(namespace("red", "a"))),
        ("term ", |v| {
            v.add_pod(info(pod("a").cpu("1").on("n1").pod_affinity("zone", selector(&[("a", "b")]))));
        }),
    ];
    for (expected, change) in changes {
        let mut one = view_of(&["n1", "n2"]);
        one.add_pod(info(pod("a").cpu("1").on("n1")));
        let mut two = one.clone();
        change(&mut two);
        let found = one.differences(&two);
        assert!(found.iter().any(|line| line.starts_with(expected)), "{expected}: {found:#?}");
    }
}

#[test]
fn resource_names_that_nothing_uses_are_forgotten_and_their_columns_too() {
    let mut view = view_of(&["n1", "n2"]);
    view.add_pod(info(pod("keeps").request("x.example/kept", "3").on("n2")));
    for i in 0..10_000 {
        let name = format!("x.example/unique-{i}");
        view.upsert_node(Arc::new(node("n2").allocatable(&name, "7").build()));
        view.add_pod(info(pod("a").request(&name, "1").on("n1")));
        let id = view.resources().get(&name).unwrap();
        let amounts = |node: &str| view.node_named(node).map(|row| (row.allocatable(id), row.requested(id)));
        assert_eq!((amounts("n1"), amounts("n2")), (Some((0, 1)), Some((7, 0))));
    }
    let table = view.resources();
    assert!(table.names().len() <= 128, "{} names", table.names().len());
    let row = view.node_named("n2").unwrap();
    assert_eq!(row.requested(table.get("x.example/kept").unwrap()), 3);
    let columns = view.chunks.iter().map(|chunk| chunk.requested.len().max(chunk.allocatable.len())).max();
    assert!(columns <= Some(128), "{columns:?} columns");
}

#[test]
fn a_resource_asked_for_by_the_amount_of_zero_may_be_forgotten_meanwhile() {
    let mut view = view_of(&["n1"]);
    view.add_pod(info(pod("zero").request("x.example/zero", "0").on("n1")));
    for i in 0..200 {
        view.add_pod(info(pod("a").request(&format!("x.example/unique-{i}"), "1").on("n1")));
    }
    view.remove_pod("uid-default-zero");
    view.remove_pod("uid-default-a");
    let left: Vec<i64> = view
        .nodes()
        .flat_map(|row| {
            view.resources()
                .names()
                .iter()
                .filter_map(|name| view.resources().get(name))
                .map(move |id| row.requested(id))
        })
        .collect();
    assert!(left.iter().all(|amount| *amount == 0), "{left:?}");
}
