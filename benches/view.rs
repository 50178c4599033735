//! What a fork costs, and the first write after it, at 5,000 nodes, 150,000 pods and 2,000 kept selectors.
//!
//! `cargo bench --bench view`. Figures in benches/README.md.

use std::hint::black_box;
use std::sync::Arc;

use berth::cluster::counts::CountKey;
use berth::cluster::{PodInfo, View};
use berth::model::testing::{node, pod, selector};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const SELECTORS: usize = 2_000;

fn info(i: usize) -> Arc<PodInfo> {
    let app = format!("app-{}", i % SELECTORS);
    let p = pod(&format!("p{i}")).cpu("100m").memory("128Mi").label("app", &app).label("pod-template-hash", &app);
    Arc::new(PodInfo::bound(Arc::new(p.on(&format!("n{}", i % NODES)).build())))
}

fn view() -> View {
    let mut view = View::default();
    for i in 0..NODES {
        let n = node(&format!("n{i}")).cpu("64").memory("256Gi").zone(&format!("z{}", i % 3));
        view.upsert_node(Arc::new(n.build()));
    }
    for i in 0..SELECTORS {
        let selector = selector(&[("app", &format!("app-{i}"))]);
        view.keep_counts(CountKey::in_namespace("default".into(), selector, false));
    }
    for i in 0..PODS {
        view.advance();
        view.add_pod(info(i));
    }
    view
}

fn fork(c: &mut Criterion) {
    let mut view = view();
    let extra = info(PODS);
    c.bench_function("fork", |b| b.iter(|| black_box(view.clone())));
    c.bench_function("first write after a fork", |b| {
        b.iter_batched(
            || view.clone(),
            |mut fork| {
                fork.add_pod(extra.clone());
                fork
            },
            BatchSize::SmallInput,
        );
    });
    c.bench_function("add and remove a pod, no fork", |b| {
        b.iter(|| {
            view.add_pod(extra.clone());
            view.remove_pod(&extra.pod.meta.uid)
        });
    });
    let forks_each_second = |view: &mut View| {
        let fork = view.clone();
        view.add_pod(extra.clone());
        view.remove_pod(&extra.pod.meta.uid);
        fork
    };
    c.bench_function("add and remove a pod, a fork held", |b| b.iter(|| forks_each_second(&mut view)));
}

criterion_group!(benches, fork);
criterion_main!(benches);
