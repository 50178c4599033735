//! Decisions on the heaviest legal pods over 5,000 nodes and 50,000 pods, what the engine says beforehand that they cost, and
//! how long they go on once nobody wants them any more.
//!
//! `cargo bench --bench heavy` prints a table. It takes about a minute; figures in benches/README.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use berth::cluster::{PodInfo, View};
use berth::engine::{EngineError, IncomingPod, Options, Profile, cost, decide};
use berth::model::node_selector::{NodeOperator, NodeRequirement};
use berth::model::selector::{Operator, Requirement};
use berth::model::taint::TolerationOperator;
use berth::model::testing::{PodBuilder, node, pod, selector};
use berth::model::topology_spread::WhenUnsatisfiable;
use berth::model::{
    Effect, LabelSelector, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm,
    PreferredNodeTerm, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

const NODES: usize = 5_000;
const PODS: usize = 50_000;
/// 20 pods each, in ten namespaces.
const APPS: usize = 2_500;
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn view() -> View {
    let mut view = View::default();
    for i in 0..NODES {
        let name = format!("n{i}");
        let n = node(&name).cpu("64").memory("256Gi").zone(&format!("z{}", i % 3)).label(HOST, &name);
        let n = if i % 10 == 0 { n.taint("soft", "x", Effect::PreferNoSchedule) } else { n };
        let n = if i % 20 == 1 { n.taint("dedicated", "x", Effect::NoSchedule) } else { n };
        view.upsert_node(Arc::new(n.build()));
    }
    for i in 0..PODS {
        let app = format!("app-{}", i % APPS);
        let p = pod(&format!("p{i}")).namespace(&format!("ns-{}", i % APPS % 10)).cpu("100m").memory("128Mi");
        let p = p.label("app", &app).label("pod-template-hash", &app).label("tier", &format!("{}", i % 3));
        view.advance();
        view.add_pod(Arc::new(PodInfo::bound(Arc::new(p.on(&format!("n{}", i * 7 % NODES)).build()))));
    }
    view
}

fn new(change: impl FnOnce(PodBuilder) -> PodBuilder) -> Pod {
    let p = pod("new").namespace("ns-0").label("app", "app-0").cpu("100m").memory("128Mi");
    change(p).build()
}

fn not_in(i: usize) -> LabelSelector {
    let values = vec![format!("app-{i}").into()];
    LabelSelector::new([Requirement { key: "app".into(), op: Operator::NotIn(values) }])
}

fn spread(count: usize, key: &str, when: WhenUnsatisfiable, of: impl Fn(usize) -> LabelSelector) -> Pod {
    new(|p| (0..count).fold(p, |p, i| p.spread(TopologySpreadConstraint::new(1_000_000, key.into(), when, of(i)))))
}

fn term(i: usize, key: &str, everywhere: bool) -> PodAffinityTerm {
    let namespace_selector = everywhere.then(LabelSelector::everything);
    PodAffinityTerm { selector: not_in(i), topology_key: key.into(), namespace_selector, ..Default::default() }
}

fn preferred_anti(count: usize, key: &str, everywhere: bool) -> Pod {
    let weighted = |i| WeightedPodAffinityTerm { weight: 1, term: term(i, key, everywhere) };
    let preferred = (0..count).map(weighted).collect();
    new(|p| p.affinity(|a| a.pod_anti = Some(PodAffinity { preferred, ..Default::default() })))
}

fn required_anti(count: usize, key: &str) -> Pod {
    let only = |i| PodAffinityTerm {
        selector: selector(&[("app", &format!("app-{i}")), ("no", "such")]),
        ..term(i, key, true)
    };
    let required = (0..count).map(only).collect();
    new(|p| p.affinity(|a| a.pod_anti = Some(PodAffinity { required, ..Default::default() })))
}

fn node_term(i: usize, op: fn(String) -> NodeOperator) -> NodeSelectorTerm {
    let op = op(format!("z-{i}"));
    NodeSelectorTerm { expressions: vec![NodeRequirement { key: ZONE.into(), op }], fields: vec![] }
}

fn node_affinity(count: usize, op: fn(String) -> NodeOperator, required: bool) -> Pod {
    let mut affinity = NodeAffinity::default();
    if required {
        let last = NodeSelectorTerm {
            expressions: vec![NodeRequirement { key: ZONE.into(), op: NodeOperator::Exists }],
            fields: vec![],
        };
        let terms = (0..count).map(|i| node_term(i, op)).chain([last]).collect();
        affinity.required = Some(NodeSelector { terms });
    } else {
        let preferred = |i| PreferredNodeTerm { weight: 1, term: node_term(i, op) };
        affinity.preferred = Some((0..count).map(preferred).collect());
    }
    new(|p| p.affinity(|a| a.node = Some(affinity)))
}

fn tolerations(count: usize) -> Pod {
    let one = |i| Toleration {
        key: format!("key-{i}").into(),
        op: TolerationOperator::Exists,
        value: "".into(),
        effect: None,
        seconds: None,
    };
    new(|p| p.with(|pod| pod.spec.tolerations.extend((0..count).map(one))))
}

fn pods() -> Vec<(&'static str, Pod)> {
    let (soft, hard) = (WhenUnsatisfiable::ScheduleAnyway, WhenUnsatisfiable::DoNotSchedule);
    let app = |i: usize| selector(&[("app", &format!("app-{i}"))]);
    vec![
        ("plain", new(|p| p)),
        ("two spread constraints", spread(2, ZONE, hard, app)),
        ("1,000 ScheduleAnyway constraints, In, zone", spread(1_000, ZONE, soft, app)),
        ("1,000 ScheduleAnyway constraints, NotIn, zone", spread(1_000, ZONE, soft, not_in)),
        ("1,000 ScheduleAnyway constraints, NotIn, hostname", spread(1_000, HOST, soft, not_in)),
        ("1,000 DoNotSchedule constraints, NotIn, zone", spread(1_000, ZONE, hard, not_in)),
        ("1,000 DoNotSchedule constraints, NotIn, hostname", spread(1_000, HOST, hard, not_in)),
        ("1,000 preferred anti-affinity terms, NotIn, zone", preferred_anti(1_000, ZONE, false)),
        ("1,000 preferred anti-affinity terms, NotIn, zone, all namespaces", preferred_anti(1_000, ZONE, true)),
        ("1,000 preferred anti-affinity terms, NotIn, hostname, all", preferred_anti(1_000, HOST, true)),
        ("1,000 required anti-affinity terms, hostname, all", required_anti(1_000, HOST)),
        ("10,000 required anti-affinity terms, hostname, all", required_anti(10_000, HOST)),
        ("10,000 required node affinity terms, In", node_affinity(10_000, |v| NodeOperator::In(vec![v.into()]), true)),
        ("10,000 required node affinity terms, Gt", node_affinity(10_000, |_| NodeOperator::Gt(5), true)),
        (
            "10,000 preferred node affinity terms, In",
            node_affinity(10_000, |v| NodeOperator::In(vec![v.into()]), false),
        ),
        ("10,000 tolerations", tolerations(10_000)),
    ]
}

/// How long it takes, the best of some runs of two seconds at most.
fn time(mut run: impl FnMut()) -> Duration {
    let begun = Instant::now();
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed());
        if begun.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    best
}

/// The longest that a decision goes on after its flag was set at some time.
fn time_to_end(view: &View, pod: &Pod, whole: Duration) -> Duration {
    let mut longest = Duration::ZERO;
    for part in 1..8 {
        let flag = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ended = scope.spawn(|| {
                let result = decide(view, &IncomingPod::new(pod), &Profile::default(), &Options::default(), &flag);
                (matches!(result, Err(EngineError::Cancelled(_))), Instant::now())
            });
            std::thread::sleep(whole * part / 8);
            let set = Instant::now();
            flag.store(true, Ordering::Relaxed);
            let (cancelled, at) = ended.join().unwrap();
            if cancelled {
                longest = longest.max(at.saturating_duration_since(set));
            }
        });
    }
    longest
}

fn main() {
    let plain = view();
    let profile = Profile::default();
    println!(
        "{:<66} {:>10} {:>10} {:>10} {:>8} {:>10} {:>10}",
        "pod", "ms", "kept, ms", "units", "ns/unit", "recheck", "ends in ms"
    );
    for (name, pod) in pods() {
        let incoming = IncomingPod::new(&pod);
        let never = AtomicBool::new(false);
        let run = |view: &View| {
            black_box(decide(view, &incoming, &profile, &Options::default(), &never).unwrap());
        };
        let whole = time(|| run(&plain));
        let mut keeps = plain.clone();
        let keys = profile.count_keys(&keeps, &pod);
        let keep = |key| keeps.keep_counts(key);
        keys.into_iter().for_each(keep);
        let kept = time(|| run(&keeps));
        let told = cost(&plain, &incoming, &profile, None);
        let end = time_to_end(&plain, &pod, whole);
        println!(
            "{name:<66} {:>10.2} {:>10.2} {:>10} {:>8.1} {:>10} {:>10.2}",
            whole.as_secs_f64() * 1e3,
            kept.as_secs_f64() * 1e3,
            told.total,
            whole.as_nanos() as f64 / told.total as f64,
            told.recheck,
            end.as_secs_f64() * 1e3,
        );
    }
}
