//! NodeDeclaredFeatures (spec 4.16): what a pod needs of its kubelet beyond the ordinary, the node must declare.

use crate::cluster::NodeRow;
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::Pod;

const NAME: &str = "NodeDeclaredFeatures";

const RESTART_ALL_CONTAINERS: &str = "RestartAllContainersOnContainerExits";
const USER_NAMESPACES_HOST_NETWORK: &str = "UserNamespacesHostNetworkSupport";

#[derive(Debug)]
pub struct NodeDeclaredFeatures;

const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeDeclaredFeature])
    .with(EventResource::UnschedulablePod, &[ActionType::Update]);

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        NAME
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
}

impl FilterPlugin for NodeDeclaredFeatures {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let features = required(cycle.pod.pod);
        if features.is_empty() { PreFilter::Skip } else { PreFilter::Filter(Box::new(Filter { features })) }
    }
}

/// The features that matter to scheduling; upstream registers more, which only matter to updates of running pods.
fn required(pod: &Pod) -> Vec<&'static str> {
    let spec = &pod.spec;
    let mut features = Vec::new();
    if spec.containers.iter().chain(&spec.init_containers).any(|c| c.restarts_all_containers) {
        features.push(RESTART_ALL_CONTAINERS);
    }
    if spec.host_network && spec.own_user_namespace {
        features.push(USER_NAMESPACES_HOST_NETWORK);
    }
    features
}

struct Filter {
    features: Vec<&'static str>,
}

impl NodeFilter for Filter {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let declared = &node.node().declared_features;
        let missing: Vec<&'static str> =
            self.features.iter().copied().filter(|f| !declared.iter().any(|d| **d == **f)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Rejection::unresolvable(NAME, Reason::MissingFeatures(missing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing_views::{feasible, view_of};
    use crate::model::testing::{node, pod};

    #[test]
    fn a_pod_needs_nodes_that_declare_all_its_features() {
        let declares = |name: &str, features: &[&str]| {
            node(name).with(|n| n.declared_features = features.iter().map(|f| (*f).into()).collect())
        };
        let view = view_of(
            vec![
                declares("none", &[]),
                declares("one", &[USER_NAMESPACES_HOST_NETWORK, "SomethingElse"]),
                declares("both", &[RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK]),
            ],
            vec![],
            vec![],
        );
        let user_namespace = |p: &mut Pod| (p.spec.host_network, p.spec.own_user_namespace) = (true, true);
        assert_eq!(feasible(&view, pod("p").with(user_namespace)), ["both", "one"]);
        let restarts = |p: &mut Pod| p.spec.containers[0].restarts_all_containers = true;
        assert_eq!(feasible(&view, pod("p").with(user_namespace).with(restarts)), ["both"]);
        assert_eq!(feasible(&view, pod("p").with(|p| p.spec.host_network = true)), ["both", "none", "one"]);
    }
}
