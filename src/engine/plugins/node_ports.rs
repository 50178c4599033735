//! NodePorts (spec 4.5): the host ports that the pod wants must be free.

use smallvec::SmallVec;

use crate::cluster::pod_info::{HostPort, host_ports};
use crate::cluster::{Cancel, NodeRow};
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};

#[derive(Debug)]
pub struct NodePorts;

const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add])
    .with(EventResource::AssignedPod, &[ActionType::Delete]);

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn events(&self) -> EventSet {
        EVENTS
    }

    fn judges_alone(&self) -> bool {
        true
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        // With the ports of some pods that are there.
        let ports = units(host_ports(sizes.pod).len());
        Share { prepare: ports, ..Share::a_node(1 + ports.saturating_mul(2), 0) }
    }
}

impl FilterPlugin for NodePorts {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let wanted = host_ports(cycle.pod.pod);
        if wanted.is_empty() {
            PreFilter::Skip
        } else {
            PreFilter::Filter(Box::new(Filter { wanted, cancel: cycle.cancel }))
        }
    }
}

struct Filter<'a> {
    wanted: SmallVec<[HostPort; 1]>,
    cancel: Cancel<'a>,
}

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let used = node.ports();
        match self.cancel.guard(&self.wanted).find(|port| used.iter().any(|taken| port.conflicts_with(taken))) {
            None => Ok(()),
            Some(HostPort { ip, protocol, port }) => Err(Rejection::resolvable(
                "NodePorts",
                Reason::PortConflict { ip: ip.clone(), protocol: protocol.clone(), port: *port },
            )),
        }
    }
}

#[cfg(test)]
#[path = "node_ports_tests.rs"]
mod tests;
