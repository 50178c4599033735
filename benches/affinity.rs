//! What affinity terms cost at 5,000 nodes, 150,000 pods and 2,000 apps whose pods all keep apart from each other.
//!
//! `cargo bench --bench affinity`.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use berth::cluster::{PodInfo, View};
use berth::engine::plugins::InterPodAffinity;
use berth::engine::{IncomingPod, Options, Profile, decide};
use berth::model::testing::{PodBuilder, node, pod, selector};
use berth::model::{LabelSelector, Namespace, Object, ObjectMeta};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const APPS: usize = 2_000;
const NAMESPACES: usize = 100;

/// A pod of an app, which keeps off nodes with its like and likes zones with them.
fn of_app(i: usize) -> PodBuilder {
    let app = format!("app-{}", i % APPS);
    let like = || selector(&[("app", &app)]);
    pod(&format!("p{i}"))
        .namespace(&format!("ns-{}", i % NAMESPACES))
        .label("app", &app)
        .cpu("100m")
        .pod_anti_affinity("kubernetes.io/hostname", like())
        .preferred_pod_affinity(10, "topology.kubernetes.io/zone", like())
}

fn info(i: usize) -> Arc<PodInfo> {
    Arc::new(PodInfo::bound(Arc::new(of_app(i).on(&format!("n{}", i % NODES)).build())))
}

fn namespace(i: usize, team: &str) -> Object {
    let labels = [("team", team)].into_iter().collect();
    Namespace { meta: ObjectMeta { name: format!("ns-{i}").into(), labels, ..Default::default() } }.into()
}

fn view() -> View {
    let mut view = View::default();
    for i in 0..NODES {
        view.upsert_node(Arc::new(node(&format!("n{i}")).cpu("64").zone(&format!("z{}", i % 3)).build()));
    }
    (0..NAMESPACES).for_each(|i| view.set_object(namespace(i, "a")));
    (0..PODS).for_each(|i| {
        view.add_pod(info(i));
    });
    view
}

fn affinity(c: &mut Criterion) {
    let mut view = view();
    let only = Profile::new("only".into(), 0, vec![(Arc::new(InterPodAffinity::default()), 2)]);
    let of_app = of_app(PODS).build();
    let plain = pod("plain").label("app", "app-1").namespace("ns-1").build();
    let all = of_app_in_all_namespaces();
    let decision = |view: &View, profile: &Profile, p| {
        let options = Options::default();
        decide(view, &IncomingPod::new(p), profile, &options, &AtomicBool::new(false)).unwrap()
    };
    c.bench_function("decide, no count kept", |b| b.iter(|| decision(&view, &only, black_box(&of_app))));
    let keys = only.count_keys(&view, &of_app);
    c.bench_function("begin to keep a pod's counts, one namespace", |b| {
        b.iter_batched(
            || (view.clone(), keys.clone()),
            |(mut fork, keys)| {
                keys.into_iter().for_each(|key| fork.keep_counts(key));
                fork
            },
            BatchSize::SmallInput,
        );
    });
    for i in 0..APPS {
        let p = self::of_app(i).build();
        only.count_keys(&view, &p).into_iter().for_each(|key| view.keep_counts(key));
    }
    only.count_keys(&view, &all).into_iter().for_each(|key| view.keep_counts(key));
    c.bench_function("decide, counts kept", |b| b.iter(|| decision(&view, &only, black_box(&of_app))));
    c.bench_function("decide, counts kept, all plugins", |b| {
        b.iter(|| decision(&view, &Profile::default(), black_box(&of_app)));
    });
    c.bench_function("decide on a plain pod that terms of 75 pods concern", |b| {
        b.iter(|| decision(&view, &only, black_box(&plain)));
    });
    c.bench_function("fork", |b| b.iter(|| black_box(view.clone())));
    let extra = info(PODS);
    let bare = Arc::new(PodInfo::bound(Arc::new(pod("bare").cpu("100m").on("n0").build())));
    for (name, extra) in [("first write after a fork", &extra), ("the same without labels and terms", &bare)] {
        c.bench_function(name, |b| {
            b.iter_batched(
                || view.clone(),
                |mut fork| {
                    fork.add_pod(extra.clone());
                    fork
                },
                BatchSize::SmallInput,
            );
        });
    }
    c.bench_function("add and remove a pod, no fork", |b| {
        b.iter(|| {
            view.add_pod(extra.clone());
            view.remove_pod(&extra.pod.meta.uid)
        });
    });
    c.bench_function("relabel a namespace of 1,500 pods, one count reads it", |b| {
        b.iter(|| {
            view.set_object(namespace(7, "b"));
            view.set_object(namespace(7, "a"));
        });
    });
    c.bench_function("work out a pod's terms and the rest of its row", |b| b.iter(|| info(black_box(PODS))));
}

/// A pod whose term reads the labels of namespaces.
fn of_app_in_all_namespaces() -> berth::model::Pod {
    pod("all")
        .pod_anti_affinity("kubernetes.io/hostname", LabelSelector::everything())
        .affinity(|a| {
            let term = &mut a.pod_anti.get_or_insert_default().required[0];
            term.namespace_selector = Some(selector(&[("team", "b")]));
        })
        .build()
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = affinity
}
criterion_main!(benches);
