use super::*;
use crate::engine::testing::scene;
use crate::model::testing::{PodBuilder, container, node, pod};

/// Whether the second pod can join the first.
fn joins(used: PodBuilder, wanted: PodBuilder) -> bool {
    !scene([node("n")], [used.on("n")]).decide(wanted).feasible().is_empty()
}

fn port(ip: &str, protocol: &str, port: u16) -> PodBuilder {
    pod("p").host_port(ip, protocol, port)
}

#[test]
fn ports_conflict_by_number_protocol_and_address() {
    for (used, wanted, free) in [
        (("", "TCP", 80), ("", "TCP", 80), false),
        (("", "TCP", 80), ("", "TCP", 81), true),
        (("", "TCP", 53), ("", "UDP", 53), true),
        (("", "", 80), ("", "TCP", 80), false),
        (("0.0.0.0", "TCP", 80), ("127.0.0.1", "TCP", 80), false),
        (("127.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), false),
        (("10.0.0.1", "TCP", 80), ("127.0.0.1", "TCP", 80), true),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), false),
        (("10.0.0.1", "TCP", 80), ("::", "TCP", 80), true),
        (("0.0.0.0", "TCP", 80), ("::", "TCP", 80), false),
    ] {
        let of = |(ip, protocol, number): (&str, &str, u16)| port(ip, protocol, number);
        assert_eq!(joins(of(used).uid("used"), of(wanted)), free, "{wanted:?} next to {used:?}");
    }
}

#[test]
fn a_conflict_is_resolvable_and_names_the_port() {
    let s = scene([node("n")], [port("", "TCP", 80).uid("used").on("n")]);
    let v = s.decide(port("", "TCP", 79).container(container("d").host_port("127.0.0.1", "", 80)));
    assert_eq!(v.refusal("n"), "NodePorts U: node(s) didn't have free ports for the requested pod ports");
    let reason = Reason::PortConflict { ip: "127.0.0.1".into(), protocol: "TCP".into(), port: 80 };
    assert_eq!(v.rejection("n").reasons[0], reason);
}

#[test]
fn sidecars_take_ports_and_ordinary_init_containers_do_not() {
    let init = || pod("p").init(container("i").host_port("", "TCP", 80));
    let sidecar = || pod("p").init(container("s").sidecar().host_port("", "TCP", 80));
    assert!(joins(init().uid("used"), port("", "TCP", 80)) && joins(port("", "TCP", 80).uid("used"), init()));
    assert!(!joins(sidecar().uid("used"), port("", "TCP", 80)) && !joins(port("", "TCP", 80).uid("used"), sidecar()));
}

#[test]
fn a_pods_own_repeated_ports_do_not_conflict() {
    let twice = port("", "TCP", 80).container(container("d").host_port("", "TCP", 80));
    assert!(joins(pod("used"), twice));
}

#[test]
fn a_terminating_pod_still_holds_its_ports() {
    assert!(!joins(port("", "TCP", 80).uid("used").terminating(), port("", "TCP", 80)));
}

#[test]
fn container_ports_alone_take_nothing() {
    let plain = || port("", "TCP", 80).with(|p| p.spec.containers[0].ports[0].host_port = 0);
    assert!(joins(plain().uid("used"), plain()) && joins(port("", "TCP", 80).uid("used"), plain()));
}
