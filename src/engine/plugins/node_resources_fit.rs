//! NodeResourcesFit (spec 4.6 and 5.2): the node must have room for what the pod asks for, and one of three strategies
//! says how much room is best.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cluster::NodeRow;
use crate::cluster::view::ResourceId;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::events::{ActionType, EventResource, EventSet};
use crate::engine::fixes::Fix;
use crate::engine::plugin::{
    Cycle, FilterPlugin, MAX_SCORE, NodeFilter, NodeScore, Plugin, PreFilter, PreScore, ScorePlugin,
};
use crate::engine::status::{Code, Reason, Rejection};
use crate::model::Str;
use crate::model::requests::{self, Amounts};
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, ResourceClass};

const NAME: &str = "NodeResourcesFit";

#[derive(Debug)]
pub struct NodeResourcesFit {
    /// Extended resources that the filter leaves to somebody else.
    pub ignored_resources: Vec<Str>,
    /// The same by the part of the name before the slash.
    pub ignored_groups: Vec<Str>,
    pub strategy: ScoringStrategy,
    /// Resources that the strategy weighs.
    pub resources: Vec<(Str, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoringStrategy {
    LeastAllocated,
    MostAllocated,
    /// Points in ascending utilisation.
    RequestedToCapacityRatio(Vec<ShapePoint>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapePoint {
    /// Percent, 0 to 100.
    pub utilization: i64,
    /// 0 to 100 (ten times what the file says).
    pub score: i64,
}

impl Default for NodeResourcesFit {
    fn default() -> Self {
        Self {
            ignored_resources: Vec::new(),
            ignored_groups: Vec::new(),
            strategy: ScoringStrategy::LeastAllocated,
            resources: cpu_and_memory(),
        }
    }
}

/// The resources that upstream's scorers weigh unless told otherwise.
pub(super) fn cpu_and_memory() -> Vec<(Str, i64)> {
    vec![(CPU.into(), 1), (MEMORY.into(), 1)]
}

const EVENTS: EventSet = EventSet::NONE
    .with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeAllocatable])
    .with(EventResource::AssignedPod, &[ActionType::Delete, ActionType::UpdatePodScaleDown])
    .with(EventResource::UnschedulablePod, &[ActionType::UpdatePodScaleDown]);

impl Plugin for NodeResourcesFit {
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

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let names = sizes.resources();
        Share { prepare: names.saturating_mul(4), ..Share::a_node(1 + names, 1 + units(self.resources.len())) }
    }
}

impl NodeResourcesFit {
    fn ignores(&self, name: &str) -> bool {
        ResourceClass::of(name) == ResourceClass::Extended
            && (self.ignored_resources.iter().any(|r| &**r == name)
                || name.split_once('/').is_some_and(|(group, _)| self.ignored_groups.iter().any(|g| &**g == group)))
    }
}

/// One resource that the pod asks for.
struct Want {
    name: Str,
    /// None: no node of the view offers it or has it in use.
    id: Option<ResourceId>,
    amount: i64,
}

impl FilterPlugin for NodeResourcesFit {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        let Amounts { milli_cpu, memory, ephemeral_storage, scalars } = &cycle.pod.filter_requests;
        let dedicated = [
            (CPU, ResourceId::CPU, *milli_cpu),
            (MEMORY, ResourceId::MEMORY, *memory),
            (EPHEMERAL_STORAGE, ResourceId::EPHEMERAL_STORAGE, *ephemeral_storage),
        ];
        let mut wants: SmallVec<[Want; 4]> = dedicated
            .into_iter()
            .filter(|(_, _, amount)| *amount > 0)
            .map(|(name, id, amount)| Want { name: name.into(), id: Some(id), amount })
            .collect();
        let table = cycle.view.resources();
        // Scalars are sorted by name already, which upstream leaves to map order.
        let scalars = scalars.iter().filter(|(name, amount)| *amount != 0 && !self.ignores(name));
        wants.extend(scalars.map(|(name, amount)| Want { name: name.clone(), id: table.get(name), amount: *amount }));
        PreFilter::Filter(Box::new(Filter { wants }))
    }
}

struct Filter {
    wants: SmallVec<[Want; 4]>,
}

impl Filter {
    fn is_full(node: &NodeRow<'_>) -> bool {
        i64::try_from(node.pods().len()).unwrap_or(i64::MAX) >= node.allowed_pods()
    }
}

impl Want {
    fn is_short_on(&self, node: &NodeRow<'_>) -> bool {
        let (allocatable, requested) = offer(node, self.id);
        self.amount > allocatable.saturating_sub(requested)
    }
}

impl NodeFilter for Filter {
    fn passes(&self, node: &NodeRow<'_>) -> bool {
        !Self::is_full(node) && !self.wants.iter().any(|want| want.is_short_on(node))
    }

    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        if self.passes(node) {
            return Ok(());
        }
        let mut reasons = SmallVec::new();
        let mut resolvable = true;
        if Self::is_full(node) {
            let pods = i64::try_from(node.pods().len()).unwrap_or(i64::MAX);
            reasons.push(Reason::TooManyPods { pods, allowed: node.allowed_pods() });
        }
        for want in self.wants.iter().filter(|w| w.is_short_on(node)) {
            let (allocatable, used) = offer(node, want.id);
            resolvable &= want.amount <= allocatable;
            reasons.push(Reason::InsufficientResource {
                resource: want.name.clone(),
                requested: want.amount,
                free: allocatable.saturating_sub(used),
                allocatable,
            });
        }
        let code = if resolvable { Code::Unschedulable } else { Code::UnschedulableAndUnresolvable };
        Err(Rejection { plugin: NAME, code, reasons })
    }
}

/// Allocatable and requested.
fn offer(node: &NodeRow<'_>, id: Option<ResourceId>) -> (i64, i64) {
    id.map_or((0, 0), |id| (node.allocatable(id), node.requested(id)))
}

impl ScorePlugin for NodeResourcesFit {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let with_pod_level;
        let requests = if cycle.profile.has_fix(Fix::PodLevelRequestInScore) {
            with_pod_level = requests::for_fit_score_with_pod_level(cycle.pod.pod);
            &with_pod_level
        } else {
            &cycle.pod.fit_score_requests
        };
        let weighed = self.resources.iter().filter_map(|(name, weight)| {
            let request = requests.get(name);
            // A scalar that the pod doesn't ask for, or a resource that no node has, says nothing.
            if request == 0 && is_scalar(name) {
                return None;
            }
            Some(Weighed { id: cycle.view.resources().get(name)?, request, weight: *weight })
        });
        PreScore::Score(Box::new(Score { strategy: &self.strategy, resources: weighed.collect() }))
    }
}

/// Not one of the three dedicated resources.
pub(super) fn is_scalar(name: &str) -> bool {
    !matches!(name, CPU | MEMORY | EPHEMERAL_STORAGE)
}

struct Weighed {
    id: ResourceId,
    request: i64,
    weight: i64,
}

struct Score<'a> {
    strategy: &'a ScoringStrategy,
    resources: SmallVec<[Weighed; 2]>,
}

impl NodeScore for Score<'_> {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for Weighed { id, request, weight } in &self.resources {
            let allocatable = node.allocatable(*id);
            if allocatable == 0 {
                continue;
            }
            let used = match *id {
                ResourceId::CPU => node.non_zero_cpu(),
                ResourceId::MEMORY => node.non_zero_memory(),
                id => node.requested(id),
            };
            let requested = used.saturating_add(*request);
            let score = match self.strategy {
                ScoringStrategy::LeastAllocated if requested > allocatable => 0,
                ScoringStrategy::LeastAllocated => share(allocatable - requested, allocatable),
                ScoringStrategy::MostAllocated => share(requested.min(allocatable), allocatable),
                ScoringStrategy::RequestedToCapacityRatio(shape) => {
                    let full = requested > allocatable;
                    let score = interpolate(shape, if full { 100 } else { share(requested, allocatable) });
                    if score == 0 {
                        // Upstream drops such a resource from the mean altogether.
                        continue;
                    }
                    score
                }
            };
            sum += score * weight;
            weights += weight;
        }
        if weights == 0 {
            return 0;
        }
        match self.strategy {
            ScoringStrategy::RequestedToCapacityRatio(_) => rounded_mean(sum, weights),
            ScoringStrategy::LeastAllocated | ScoringStrategy::MostAllocated => sum / weights,
        }
    }
}

/// `part * 100 / whole`, without overflow for amounts up to the largest i64.
fn share(part: i64, whole: i64) -> i64 {
    match part.checked_mul(MAX_SCORE) {
        Some(scaled) => scaled / whole,
        None => i64::try_from(i128::from(part) * i128::from(MAX_SCORE) / i128::from(whole)).unwrap_or(MAX_SCORE),
    }
}

/// Upstream rounds half away from zero in f64.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn rounded_mean(sum: i64, weights: i64) -> i64 {
    (sum as f64 / weights as f64).round() as i64
}

/// The piecewise linear function through the points, in integers as upstream computes it.
fn interpolate(shape: &[ShapePoint], utilization: i64) -> i64 {
    let Some(after) = shape.iter().position(|p| utilization <= p.utilization) else {
        return shape.last().map_or(0, |p| p.score);
    };
    let to = shape[after];
    if after == 0 {
        return to.score;
    }
    let from = shape[after - 1];
    from.score + (to.score - from.score) * (utilization - from.utilization) / (to.utilization - from.utilization)
}

impl NodeResourcesFit {
    /// This plugin with another way to score.
    #[must_use]
    pub fn scoring(strategy: ScoringStrategy, resources: Vec<(Str, i64)>) -> Arc<Self> {
        Arc::new(Self { strategy, resources, ..Self::default() })
    }
}

#[cfg(test)]
#[path = "node_resources_fit_tests.rs"]
mod tests;
