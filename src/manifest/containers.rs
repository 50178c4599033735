//! Containers and init containers.

use rustc_hash::FxHashSet;

use super::error::{REQUIRED, duplicate, invalid, invalid_number};
use super::names::dns_label_problem;
use super::near_miss;
use super::reader::Reader;
use super::resources::{Defaulting, requirements};
use super::shared::shared;
use crate::model::{Container, ContainerPort, Str};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Regular,
    Init,
}

/// A list of containers, in order. Names must be unique over `others` too.
pub(super) fn containers(
    spec: &Reader<'_>,
    field: &str,
    sort: Sort,
    host_network: bool,
    others: &[Container],
) -> Vec<Container> {
    let mut seen: FxHashSet<Str> = others.iter().map(|c| c.name.clone()).collect();
    let list = spec.list(field, |r| {
        let container = container(r, sort, host_network);
        if !container.name.is_empty() && !seen.insert(container.name.clone()) {
            r.error_in("name", duplicate(&container.name));
        }
        Some(container)
    });
    list.unwrap_or_default()
}

fn container(r: &Reader<'_>, sort: Sort, host_network: bool) -> Container {
    r.known(&near_miss::CONTAINER);
    let name = r.required_str("name");
    if !name.is_empty()
        && let Some(problem) = dns_label_problem(&name)
    {
        r.error_in("name", invalid(&name, problem));
    }
    let always = r.choice("restartPolicy", &[("Always", true), ("Never", false), ("OnFailure", false)]);
    let rules = r.list("restartPolicyRules", |rule| rule.text("action").map(|a| a == "RestartAllContainers"));
    Container {
        name,
        image: r.str("image"),
        resources: requirements(r, Defaulting::RequestsFromLimits).unwrap_or_default(),
        ports: r.list("ports", |p| port(p, host_network)).unwrap_or_default(),
        restart_always: sort == Sort::Init && always == Some(true),
        restarts_all_containers: rules.is_some_and(|rules| rules.contains(&true)),
    }
}

fn port(r: &Reader<'_>, host_network: bool) -> Option<ContainerPort> {
    r.known(&near_miss::PORT);
    if !r.has("containerPort") {
        r.error_in("containerPort", REQUIRED);
    }
    let container_port = port_number(r, "containerPort", 1);
    // Zero is how Go writes an absent host port.
    let host_port = if r.has("hostPort") { port_number(r, "hostPort", 0) } else { Some(0) };
    let protocol = r.choice("protocol", &[("SCTP", "SCTP"), ("TCP", "TCP"), ("UDP", "UDP")]);
    let (container_port, host_port) = (container_port?, host_port?);
    Some(ContainerPort {
        container_port,
        // On the host's network the container's port is the host's (spec section 1.3).
        host_port: if host_network && host_port == 0 { container_port } else { host_port },
        protocol: shared(protocol.unwrap_or("TCP")),
        host_ip: r.str("hostIP"),
    })
}

fn port_number(r: &Reader<'_>, field: &str, least: u16) -> Option<u16> {
    let number = r.integer(field)?;
    let port = u16::try_from(number).ok().filter(|p| *p >= least);
    if port.is_none() {
        r.error_in(field, invalid_number(number, "must be between 1 and 65535, inclusive"));
    }
    port
}
