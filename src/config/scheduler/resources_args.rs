//! The arguments of the plugins that weigh resources.

use crate::engine::plugins::{NodeResourcesBalancedAllocation, NodeResourcesFit, ScoringStrategy, ShapePoint};
use crate::manifest::error::{duplicate, invalid, invalid_number, unsupported};
use crate::manifest::names::qualified_name_problem;
use crate::manifest::reader::Reader;
use crate::model::Str;

const STRATEGIES: [&str; 3] = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];

/// `NodeResourcesFitArgs`.
pub(super) fn fit(args: &Reader<'_>) -> NodeResourcesFit {
    let mut plugin = NodeResourcesFit::default();
    let name = |text: &str, r: &Reader<'_>| {
        if let Some(problem) = qualified_name_problem(text) {
            r.error(invalid(text, problem));
        }
    };
    plugin.ignored_resources = args.checked_texts("ignoredResources", name).unwrap_or_default();
    let groups = args.checked_texts("ignoredResourceGroups", |group, r| {
        if group.contains('/') {
            r.error(invalid(group, "resource group name can't contain '/'"));
        } else {
            name(group, r);
        }
    });
    plugin.ignored_groups = groups.unwrap_or_default();
    if let Some(r) = args.object("scoringStrategy") {
        (plugin.strategy, plugin.resources) = strategy(&r, plugin.resources);
    }
    plugin
}

/// A scoring strategy and the resources that it weighs.
fn strategy(r: &Reader<'_>, defaults: Vec<(Str, i64)>) -> (ScoringStrategy, Vec<(Str, i64)>) {
    const RATIO: &str = "requestedToCapacityRatio";
    r.only(&[RATIO, "resources", "type"]);
    let kind = r.text("type").unwrap_or_default();
    let ratio = r.object(RATIO);
    let points = ratio.as_ref().map(|ratio| {
        ratio.only(&["shape"]);
        shape(ratio, "shape")
    });
    let is_ratio = kind == "RequestedToCapacityRatio";
    if is_ratio && !r.has(RATIO) {
        r.error_in(RATIO, "Required value: must be specified when type is RequestedToCapacityRatio");
    }
    if !is_ratio && r.has(RATIO) {
        r.error_in(RATIO, "Forbidden: must be nil when type is not RequestedToCapacityRatio");
    }
    let strategy = match kind {
        "LeastAllocated" => ScoringStrategy::LeastAllocated,
        "MostAllocated" => ScoringStrategy::MostAllocated,
        "RequestedToCapacityRatio" => ScoringStrategy::RequestedToCapacityRatio(points.unwrap_or_default()),
        other => {
            r.error_in("type", unsupported(other, STRATEGIES));
            ScoringStrategy::LeastAllocated
        }
    };
    let resources = resources(r, |r, name, weight| {
        if !(1..=100).contains(&weight) {
            let text = format!("resource weight of {name} not in valid range (0, 100]");
            r.error_in("weight", invalid_number(weight, text));
        }
    });
    (strategy, if resources.is_empty() { defaults } else { resources })
}

/// A list of resources with weights; 0 or none is 1.
fn resources(r: &Reader<'_>, mut check: impl FnMut(&Reader<'_>, &Str, i64)) -> Vec<(Str, i64)> {
    let mut list: Vec<(Str, i64)> = Vec::new();
    r.list("resources", |r| {
        r.only(&["name", "weight"]);
        let name = r.required_str("name");
        let weight = r.integer("weight").filter(|weight| *weight != 0).unwrap_or(1);
        check(r, &name, weight);
        list.push((name, weight));
        Some(())
    });
    list
}

/// Points of a piecewise linear function; the scores of the file are tenths of those that nodes get.
pub(super) fn shape(r: &Reader<'_>, field: &str) -> Vec<ShapePoint> {
    let mut before: Option<i64> = None;
    let points = r.list(field, |r| {
        r.only(&["score", "utilization"]);
        let utilization = r.integer("utilization").unwrap_or_default();
        let score = r.integer("score").unwrap_or_default();
        if !(0..=100).contains(&utilization) {
            r.error_in("utilization", invalid_number(utilization, "not in valid range [0, 100]"));
        }
        if !(0..=10).contains(&score) {
            r.error_in("score", invalid_number(score, "not in valid range [0, 10]"));
        }
        if before.is_some_and(|before| utilization <= before) {
            r.error_in("utilization", invalid_number(utilization, "values must be sorted in increasing order"));
        }
        before = Some(utilization);
        Some(ShapePoint { utilization, score: score.saturating_mul(10) })
    });
    let points = points.unwrap_or_default();
    if points.is_empty() {
        r.error_in(field, "Required value: at least one point must be specified");
    }
    points
}

/// `NodeResourcesBalancedAllocationArgs`.
pub(super) fn balanced_allocation(args: &Reader<'_>) -> NodeResourcesBalancedAllocation {
    let mut seen: Vec<Str> = Vec::new();
    let resources = resources(args, |r, name, weight| {
        if weight != 1 {
            r.error_in("weight", invalid_number(weight, "must be 1"));
        }
        if seen.contains(name) && !name.is_empty() {
            r.error_in("name", duplicate(name));
        }
        seen.push(name.clone());
    });
    if resources.is_empty() {
        return NodeResourcesBalancedAllocation::default();
    }
    NodeResourcesBalancedAllocation { resources: resources.into_iter().map(|(name, _)| name).collect() }
}
