//! GeneralPredicates (spec 8.1): several of today's filters as one. Unlike a profile's, a node's failures are collected from
//! all of them; the first that fails gives the refusal its name.

use std::sync::Arc;

use crate::cluster::counts::CountKey;
use crate::cluster::{NodeRow, PodInfo, View};
use crate::engine::cost::{Share, Sizes};
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::profile::Profile;
use crate::engine::status::Rejection;
use crate::model::{Pod, Str};

#[derive(Debug)]
pub struct GeneralPredicates {
    /// In the order in which their reasons are told.
    pub members: Vec<Arc<dyn Plugin>>,
}

impl Plugin for GeneralPredicates {
    fn name(&self) -> &'static str {
        "GeneralPredicates"
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        self.members.iter().fold(Share::default(), |sum, member| sum.and(member.cost(sizes)))
    }

    fn count_keys(&self, view: &View, pod: &Pod, profile: &Profile) -> Vec<CountKey> {
        self.members.iter().flat_map(|m| m.count_keys(view, pod, profile)).collect()
    }
}

impl FilterPlugin for GeneralPredicates {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let mut filters = Vec::new();
        let mut only: Option<Vec<Str>> = None;
        for filter in self.members.iter().filter_map(|m| m.filter()) {
            match filter.prepare(cycle) {
                PreFilter::Skip => {}
                PreFilter::Filter(filter) => filters.push(filter),
                PreFilter::Narrow(names, filter) => {
                    filters.push(filter);
                    only = Some(match only {
                        None => names,
                        Some(before) => before.into_iter().filter(|name| names.contains(name)).collect(),
                    });
                }
                refusal @ (PreFilter::Reject(_) | PreFilter::Error(_)) => return refusal,
            }
        }
        if filters.is_empty() {
            return PreFilter::Skip;
        }
        let filter = Box::new(Filter(filters));
        match only {
            None => PreFilter::Filter(filter),
            Some(names) => PreFilter::Narrow(names, filter),
        }
    }
}

struct Filter<'a>(Vec<Box<dyn NodeFilter + 'a>>);

impl NodeFilter for Filter<'_> {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        match self.0.iter().filter_map(|filter| filter.check(node).err()).reduce(Rejection::and) {
            None => Ok(()),
            Some(all) => Err(all),
        }
    }

    fn passes(&self, node: &NodeRow<'_>) -> bool {
        self.0.iter().all(|filter| filter.passes(node))
    }

    fn expect_changes(&mut self) {
        self.0.iter_mut().for_each(|filter| filter.expect_changes());
    }

    fn pod_added(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        self.0.iter_mut().for_each(|filter| filter.pod_added(node, pod));
    }

    fn pod_removed(&mut self, node: &NodeRow<'_>, pod: &PodInfo) {
        self.0.iter_mut().for_each(|filter| filter.pod_removed(node, pod));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plugins::{NodeAffinityPlugin, NodeName, NodePorts, NodeResourcesFit};
    use crate::engine::testing::{only, scene};
    use crate::model::testing::{node, pod};

    fn general() -> GeneralPredicates {
        let members: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(NodeResourcesFit::default()),
            Arc::new(NodeName),
            Arc::new(NodePorts),
            Arc::new(NodeAffinityPlugin::default()),
        ];
        GeneralPredicates { members }
    }

    #[test]
    fn all_reasons_of_a_node_are_collected() {
        let taken = pod("taken").host_port("", "TCP", 80).on("n");
        let scene = scene([node("n").cpu("1")], [taken]).profile(only(general()));
        let p = pod("p").cpu("2").host_port("", "TCP", 80).node_selector("disk", "ssd").with(|p| {
            p.spec.node_name = "elsewhere".into();
        });
        let text = "NodeResourcesFit UU: Insufficient cpu, node(s) didn't match the requested node name, node(s) didn't \
                    have free ports for the requested pod ports, node(s) didn't match Pod's node affinity/selector";
        assert_eq!(scene.decide(p).refusal("n"), text);
        let ports = scene.decide(pod("q").host_port("", "TCP", 80));
        assert_eq!(ports.refusal("n"), "NodePorts U: node(s) didn't have free ports for the requested pod ports");
        assert_eq!(scene.decide(pod("r").cpu("1")).feasible(), ["n"]);
    }
}
