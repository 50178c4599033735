//! What is long is decided aside and comes to the same; it never takes room twice, and keeps nobody's counts out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::pod_status::Phase;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector};
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{Object, TopologySpreadConstraint};

const HOST: &str = "kubernetes.io/hostname";

fn service(nodes: impl IntoIterator<Item = NodeBuilder>) -> Service {
    let service = Service::default();
    nodes.into_iter().for_each(|node| put(&service, node.build()));
    service
}

fn put(service: &Service, object: impl Into<Object>) {
    let mut writer = service.cluster.writer();
    writer.begin();
    writer.upsert(Prepared::new(object.into()), Origin::anonymous());
}

/// A pod with so much to check on each node that its decision may be long.
fn long(mut p: PodBuilder) -> PodBuilder {
    for i in 0..20_000 {
        p = p.tolerates(&format!("key-{i}"), None, None);
    }
    p
}

fn begin(service: &Service, p: PodBuilder) -> Step {
    service.begin_schedule(Request::new(p.build()), &AtomicBool::new(false)).unwrap()
}

fn schedule(service: &Service, request: Request) -> Result<Answer, ServiceError> {
    service.schedule(request, &AtomicBool::new(false))
}

fn spread(when: WhenUnsatisfiable, key: &str, app: &str) -> TopologySpreadConstraint {
    TopologySpreadConstraint::new(1, key.into(), when, selector(&[("app", app)]))
}

#[test]
fn what_may_be_long_is_left_to_another_lane_and_takes_no_room_before() {
    let service = service([node("n1").cpu("4")]);
    assert!(matches!(begin(&service, pod("short").cpu("1")), Step::Done(_)));
    let Step::Long(rest) = begin(&service, long(pod("long").cpu("1"))) else { panic!("20,000 tolerations are short") };
    assert_eq!(service.cluster.writer().reservations().len(), 1);
    let answer = service.finish_schedule(rest, &AtomicBool::new(false)).unwrap();
    assert_eq!(answer.verdict.node().map(|n| &**n), Some("n1"));
    assert_eq!(service.cluster.writer().reservations().len(), 2);
}

#[test]
fn a_long_decision_stops_when_nobody_waits_for_it() {
    let service = service([node("n1").cpu("4")]);
    let Step::Long(rest) = begin(&service, long(pod("long"))) else { panic!("it is long") };
    let error = service.finish_schedule(rest, &AtomicBool::new(true)).unwrap_err();
    assert_eq!(error, ServiceError::Cancelled);
    assert!(service.cluster.writer().reservations().is_empty());
}

#[test]
fn a_long_decision_asked_again_keeps_its_node_and_its_reservation() {
    let service = service(["n1", "n2", "n3"].map(|n| node(n).cpu("4")));
    let ask = || Request::new(long(pod("long").cpu("3")).build());
    let first = schedule(&service, ask()).unwrap();
    let held = |answer: &Answer| match &answer.verdict {
        Verdict::Placed { reservation: Some(held), .. } => held.id.clone(),
        other => panic!("{other:?}"),
    };
    put(&service, pod("other").cpu("1").on(first.verdict.node().unwrap()).build());
    let again = schedule(&service, ask()).unwrap();
    assert_eq!((again.verdict.node(), held(&again)), (first.verdict.node(), held(&first)));
    // Without room for it any more it goes elsewhere.
    put(&service, pod("more").cpu("4").on(first.verdict.node().unwrap()).build());
    let moved = schedule(&service, ask()).unwrap();
    assert_eq!(moved.previous_node.as_ref(), first.verdict.node());
    assert_ne!(moved.verdict.node(), first.verdict.node());
}

/// Each node has room for one of the pods; the callers want the same ones.
#[test]
fn long_decisions_of_many_callers_never_take_room_twice() {
    const CALLERS: usize = 8;
    let service =
        Arc::new(service((0..CALLERS).map(|i| node(&format!("n{i}")).cpu("4").label(HOST, &format!("n{i}")))));
    let callers: Vec<_> = (0..CALLERS)
        .map(|i| {
            let service = service.clone();
            std::thread::spawn(move || {
                let mut contended = 0;
                loop {
                    let p =
                        pod(&format!("p{i}")).label("app", "web").pod_anti_affinity(HOST, selector(&[("app", "web")]));
                    match schedule(&service, Request::new(long(p.cpu("1")).build())) {
                        Ok(answer) => return answer.verdict.node().cloned(),
                        Err(ServiceError::Contended { .. }) if contended < 1_000 => contended += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    let mut nodes: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap().expect("there is room")).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), CALLERS, "two pods that keep each other away share a node");
}

#[test]
fn a_pod_that_has_ended_gets_no_room() {
    let service = service([node("n1").cpu("4")]);
    put(&service, pod("p").phase(Phase::Failed).build());
    let ask = |dry_run| Request { dry_run, ..Request::new(pod("p").build()) };
    assert_eq!(schedule(&service, ask(false)).unwrap_err(), ServiceError::PodEnded("default/p".into()));
    assert!(schedule(&service, ask(true)).is_ok(), "a dry run asks what if");
}

#[test]
fn a_pod_with_many_selectors_and_a_dry_run_keep_no_counts() {
    let service = service([node("n1").cpu("4").label(HOST, "n1").label("zone", "a")]);
    let soft = |p: PodBuilder, n: usize| {
        (0..n).fold(p, |p, i| {
            p.spread(spread(WhenUnsatisfiable::ScheduleAnyway, &format!("key-{i}"), &format!("app-{i}")))
        })
    };
    let kept = || service.cluster.fork().kept_keys();
    schedule(&service, Request { dry_run: true, ..Request::new(soft(pod("dry"), 2).build()) }).unwrap();
    assert_eq!(kept(), 0);
    schedule(&service, Request::new(soft(pod("usual"), 2).build())).unwrap();
    assert_eq!(kept(), 2);
    schedule(&service, Request::new(soft(pod("many"), 64).build())).unwrap();
    assert_eq!(kept(), 2);
}
