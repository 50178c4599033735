use super::*;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::model::testing::{node, pod};
use crate::service::schedule::Request;
use crate::service::{ManualClock, profiles::Profiles};

fn service(objects: Vec<crate::model::Object>) -> Service {
    let service = Service::new(Profiles::default(), Arc::new(ManualClock::default()));
    let mut writer = service.cluster.writer();
    writer.begin();
    for object in objects {
        writer.upsert(Prepared::new(object), Origin::anonymous());
    }
    drop(writer);
    service
}

fn schedule(service: &Service, pod: Pod) -> super::super::schedule::Answer {
    service.schedule(Request::new(pod), &std::sync::atomic::AtomicBool::new(false)).unwrap()
}

#[test]
fn every_pod_has_a_state_and_reserved_ones_need_not_have_been_fed() {
    let finished = pod("d").on("n1").phase(crate::model::pod_status::Phase::Failed);
    let service = service(vec![
        node("n1").cpu("4").build().into(),
        pod("a").cpu("1").on("n1").build().into(),
        pod("b").build().into(),
        pod("c").on("elsewhere").build().into(),
        finished.build().into(),
    ]);
    schedule(&service, pod("e").cpu("500m").build());
    let page = service.list_pods(&PodFilter::default(), &PageRequest::default()).unwrap();
    let states: Vec<_> = page.items.iter().map(|e| (&*e.pod.meta.name, e.state, &*e.node)).collect();
    assert_eq!(
        states,
        [
            ("a", PodState::Bound, "n1"),
            ("b", PodState::Pending, ""),
            ("c", PodState::Orphaned, "elsewhere"),
            ("d", PodState::Finished, "n1"),
            ("e", PodState::Reserved, "n1"),
        ]
    );
    let summary = service.summary();
    assert!(PodState::ALL.iter().all(|state| summary.pods[state] == 1), "{:?}", summary.pods);
    assert_eq!(summary.resources["cpu"], (4_000, 1_500));
    assert_eq!(summary.resources["pods"], (110, 2));
    assert_eq!((summary.reservations, summary.objects), (1, vec![(Kind::Node, 1), (Kind::Pod, 4)]));

    let on_n1 =
        PodFilter { node: "n1".into(), states: [PodState::Bound, PodState::Reserved].into(), ..Default::default() };
    let names = |page: Page<PodEntry>| page.items.iter().map(|e| e.pod.meta.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(service.list_pods(&on_n1, &PageRequest::default()).unwrap()), ["a", "e"]);
    let other = PodFilter { namespace: "other".into(), ..Default::default() };
    assert!(names(service.list_pods(&other, &PageRequest::default()).unwrap()).is_empty());
    let unknown = PodFilter { node: "n9".into(), ..Default::default() };
    assert!(matches!(service.list_pods(&unknown, &PageRequest::default()), Err(ServiceError::NotFound { .. })));
}

#[test]
fn pages_put_together_are_the_whole_list_once() {
    let service = service((0..23).map(|i| pod(&format!("p{i:02}")).build().into()).collect());
    let mut request = PageRequest { size: 5, token: String::new() };
    let mut names = Vec::new();
    loop {
        let page = service.list_pods(&PodFilter::default(), &request).unwrap();
        names.extend(page.items.iter().map(|e| e.pod.meta.name.to_string()));
        if page.next.is_empty() {
            break;
        }
        request.token = page.next;
    }
    assert_eq!(names, (0..23).map(|i| format!("p{i:02}")).collect::<Vec<_>>());
}

#[test]
fn nodes_with_many_labels_give_shorter_pages() {
    let heavy = |i: usize| (0..2_000).fold(node(&format!("n{i}")), |n, k| n.label(&format!("k{k}"), &"v".repeat(60)));
    let service = service((0..40).map(|i| heavy(i).build().into()).collect());
    let page = service.list_nodes(&[], &PageRequest { size: 500, token: String::new() }).unwrap();
    assert!((10..30).contains(&page.items.len()), "{}", page.items.len());
    assert!(!page.next.is_empty());
}

#[test]
fn decisions_come_newest_first_and_go_on_where_they_stopped() {
    let service = service(vec![node("n1").build().into()]);
    for i in 0..5 {
        schedule(&service, pod(&format!("p{i}")).build());
    }
    let first = service.list_decisions(&PageRequest { size: 2, token: String::new() }).unwrap();
    // A decision in between doesn't shift the pages.
    schedule(&service, pod("later").build());
    let second = service.list_decisions(&PageRequest { size: 2, token: first.next.clone() }).unwrap();
    let all = service.list_decisions(&PageRequest::default()).unwrap();
    assert_eq!((all.items.len(), all.next.as_str()), (6, ""));
    let names = |page: &Page<RecentDecision>| page.items.iter().map(|d| d.name.to_string()).collect::<Vec<_>>();
    assert_eq!((names(&first), names(&second)), (vec!["p4".into(), "p3".into()], vec!["p2".into(), "p1".into()]));
}
