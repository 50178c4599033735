//! `priorities`: the names of section 8.2, their weights, and the scorers that they are today.

use std::sync::Arc;

use super::arguments::{Argument, argument};
use super::fields::Fields;
use crate::engine::plugin::{MAX_SCORE, Plugin};
use crate::engine::plugins::legacy::{
    NodeLabelPriority, NodePreferAvoidPodsPriority, ServiceAntiAffinityPriority, ServiceSpreadingPriority,
};
use crate::engine::plugins::{
    ImageLocality, InterPodAffinity, NodeAffinityPlugin, NodeResourcesBalancedAllocation, NodeResourcesFit,
    PodTopologySpread, ScoringStrategy, ShapePoint, TaintToleration,
};
use crate::manifest::error::{duplicate, invalid_number};
use crate::manifest::near_miss::closest;
use crate::model::Str;
use crate::model::resources::{CPU, MEMORY};

type Scorer = (Arc<dyn Plugin>, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Priority {
    LeastRequested,
    MostRequested,
    BalancedResourceAllocation,
    /// SelectorSpreadPriority and EvenPodsSpreadPriority: one plugin today.
    TopologySpread,
    ServiceSpreading,
    InterPodAffinity,
    NodeAffinity,
    TaintToleration,
    ImageLocality,
    NodePreferAvoidPods,
    Equal,
}

const NAMES: &[(&str, Priority)] = &[
    ("LeastRequestedPriority", Priority::LeastRequested),
    ("MostRequestedPriority", Priority::MostRequested),
    ("BalancedResourceAllocation", Priority::BalancedResourceAllocation),
    ("SelectorSpreadPriority", Priority::TopologySpread),
    ("EvenPodsSpreadPriority", Priority::TopologySpread),
    ("ServiceSpreadingPriority", Priority::ServiceSpreading),
    ("InterPodAffinityPriority", Priority::InterPodAffinity),
    ("NodeAffinityPriority", Priority::NodeAffinity),
    ("TaintTolerationPriority", Priority::TaintToleration),
    ("ImageLocalityPriority", Priority::ImageLocality),
    ("NodePreferAvoidPodsPriority", Priority::NodePreferAvoidPods),
    ("EqualPriority", Priority::Equal),
];

/// What a Policy without `priorities` has (1.20): SelectorSpread 1 and EvenPodsSpread 2 are one plugin with the larger.
const DEFAULT: [(Priority, i64); 8] = [
    (Priority::TopologySpread, 2),
    (Priority::InterPodAffinity, 1),
    (Priority::LeastRequested, 1),
    (Priority::BalancedResourceAllocation, 1),
    (Priority::NodePreferAvoidPods, 10_000),
    (Priority::NodeAffinity, 1),
    (Priority::TaintToleration, 1),
    (Priority::ImageLocality, 1),
];

const FIELDS: &[&str] = &["name", "weight", "argument"];
const LABEL_PREFERENCE: &str = "labelPreference";
const SERVICE_ANTI_AFFINITY: &str = "serviceAntiAffinity";
const CAPACITY_RATIO: &str = "requestedToCapacityRatioArguments";
const ARGUMENTS: &[(&str, &[&str])] = &[
    (LABEL_PREFERENCE, &["label", "presence"]),
    (SERVICE_ANTI_AFFINITY, &["label"]),
    (CAPACITY_RATIO, &["shape", "resources"]),
];

/// The scorers with their weights. `hard_weight` is what a required affinity term of a bound pod is worth.
pub(super) fn scores(policy: &Fields<'_>, hard_weight: i64) -> Vec<Scorer> {
    let mut named: Vec<(Priority, i64)> = Vec::new();
    let mut custom: Vec<Scorer> = Vec::new();
    match policy.list("priorities", FIELDS) {
        None => named.extend(DEFAULT),
        Some(entries) => read(policy, &entries, &mut named, &mut custom),
    }
    let named = named.into_iter().filter_map(|(priority, weight)| Some((plugin(priority, hard_weight)?, weight)));
    named.chain(custom).collect()
}

fn read(policy: &Fields<'_>, entries: &[Fields<'_>], named: &mut Vec<(Priority, i64)>, custom: &mut Vec<Scorer>) {
    let mut sum: i64 = 0;
    // The name of the one priority that has a shape: two shapes can't be one plugin.
    let mut shaped: Option<&str> = None;
    for r in entries {
        let name = r.required_text("name");
        let weight = weight(r, name.unwrap_or("?"));
        sum = sum.saturating_add(weight);
        let Some(name) = name else { continue };
        let argument = argument(r, "priority", name, ARGUMENTS);
        if let Some((_, priority)) = NAMES.iter().find(|(known, _)| *known == name) {
            // Two names of one plugin: the larger weight counts.
            match named.iter_mut().find(|(other, _)| other == priority) {
                Some((_, larger)) => *larger = weight.max(*larger),
                None => named.push((*priority, weight)),
            }
            continue;
        }
        match argument {
            Argument::One(kind, argument) => {
                if kind == CAPACITY_RATIO {
                    if let Some(first) = shaped {
                        let text = format!(
                            "Priority '{name}' redeclares custom priority 'RequestedToCapacityRatio', from:'{first}'"
                        );
                        r.error("argument", text);
                    }
                    shaped.get_or_insert(name);
                }
                custom.extend(custom_plugin(kind, &argument).map(|plugin| (plugin, weight)));
            }
            Argument::Broken => {}
            Argument::None => r.error("name", not_found(name)),
        }
    }
    if sum.checked_mul(MAX_SCORE).is_none() {
        policy.error("priorities", "total score of priorities could overflow");
    }
}

/// Positive, and small enough for 100 times it to be a number; 1 where it is a mistake.
fn weight(r: &Fields<'_>, name: &str) -> i64 {
    let weight = if r.get("weight").is_none() { Some(0) } else { r.integer("weight") };
    match weight {
        Some(weight) if weight <= 0 || weight >= i64::MAX / MAX_SCORE => {
            let text = format!("Priority {name} should have a positive weight applied to it or it has overflown");
            r.error("weight", text);
            1
        }
        Some(weight) => weight,
        None => 1,
    }
}

fn not_found(name: &str) -> String {
    let hint = match name {
        "NodeLabelPriority" => "; it needs argument.labelPreference".to_owned(),
        "ServiceAntiAffinityPriority" => "; it needs argument.serviceAntiAffinity".to_owned(),
        "RequestedToCapacityRatioPriority" => "; it needs argument.requestedToCapacityRatioArguments".to_owned(),
        _ => closest(name, NAMES.iter().map(|(known, _)| *known))
            .map(|known| format!("; did you mean {known:?}?"))
            .unwrap_or_default(),
    };
    format!("priority type not found for {name:?}{hint}")
}

/// None for EqualPriority: what all nodes have alike ranks none of them.
fn plugin(priority: Priority, hard_weight: i64) -> Option<Arc<dyn Plugin>> {
    Some(match priority {
        Priority::LeastRequested => NodeResourcesFit::scoring(ScoringStrategy::LeastAllocated, cpu_and_memory()),
        Priority::MostRequested => NodeResourcesFit::scoring(ScoringStrategy::MostAllocated, cpu_and_memory()),
        Priority::BalancedResourceAllocation => Arc::new(NodeResourcesBalancedAllocation::default()),
        Priority::TopologySpread => Arc::new(PodTopologySpread::default()),
        Priority::ServiceSpreading => Arc::new(ServiceSpreadingPriority),
        Priority::InterPodAffinity => {
            Arc::new(InterPodAffinity { hard_pod_affinity_weight: hard_weight, ..InterPodAffinity::default() })
        }
        Priority::NodeAffinity => Arc::new(NodeAffinityPlugin::default()),
        Priority::TaintToleration => Arc::new(TaintToleration),
        Priority::ImageLocality => Arc::new(ImageLocality),
        Priority::NodePreferAvoidPods => Arc::new(NodePreferAvoidPodsPriority),
        Priority::Equal => return None,
    })
}

fn cpu_and_memory() -> Vec<(Str, i64)> {
    vec![(CPU.into(), 1), (MEMORY.into(), 1)]
}

fn custom_plugin(kind: &str, r: &Fields<'_>) -> Option<Arc<dyn Plugin>> {
    Some(match kind {
        LABEL_PREFERENCE => Arc::new(NodeLabelPriority {
            label: r.required_text("label")?.into(),
            presence: r.flag("presence").unwrap_or(false),
        }),
        SERVICE_ANTI_AFFINITY => Arc::new(ServiceAntiAffinityPriority { label: r.required_text("label")?.into() }),
        _ => {
            let (shape, resources) = (shape(r), resources(r));
            NodeResourcesFit::scoring(ScoringStrategy::RequestedToCapacityRatio(shape), resources)
        }
    })
}

/// Ascending utilisation in percent, scores of 0 to 10.
fn shape(r: &Fields<'_>) -> Vec<ShapePoint> {
    let points = r.list("shape", &["utilization", "score"]).unwrap_or_default();
    if r.get("shape").is_none_or(|shape| shape.as_array().is_some_and(Vec::is_empty)) {
        r.error("shape", "Required value: at least one point must be specified");
    }
    let mut shape: Vec<ShapePoint> = Vec::with_capacity(points.len());
    for point in &points {
        let utilization = point.integer("utilization").unwrap_or(0);
        let score = point.integer("score").unwrap_or(0);
        if !(0..=100).contains(&utilization) {
            point.error("utilization", invalid_number(utilization, "not in valid range [0, 100]"));
        }
        if !(0..=10).contains(&score) {
            point.error("score", invalid_number(score, "not in valid range [0, 10]"));
        }
        if shape.last().is_some_and(|before| before.utilization >= utilization) {
            point.error("utilization", invalid_number(utilization, "values must be sorted in increasing order"));
        }
        shape.push(ShapePoint { utilization, score: score.saturating_mul(MAX_SCORE / 10) });
    }
    shape
}

/// Resources with their weights; cpu and memory alike if there are none, and 0 means 1.
fn resources(r: &Fields<'_>) -> Vec<(Str, i64)> {
    let entries = r.list("resources", &["name", "weight"]).unwrap_or_default();
    let mut resources: Vec<(Str, i64)> = Vec::with_capacity(entries.len());
    for entry in &entries {
        let Some(name) = entry.required_text("name") else { continue };
        let weight = match entry.integer("weight").unwrap_or(0) {
            0 => 1,
            weight => weight,
        };
        if !(1..=100).contains(&weight) {
            let text = format!("resource weight of {name} not in valid range (0, 100]");
            entry.error("weight", invalid_number(weight, text));
        }
        if resources.iter().any(|(other, _)| **other == *name) {
            entry.error("name", duplicate(name));
        }
        resources.push((name.into(), weight));
    }
    if entries.is_empty() { cpu_and_memory() } else { resources }
}
