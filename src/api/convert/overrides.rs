//! Changes to a profile, as a request brings them. Names are looked at where the profile is.

use crate::api::pb;
use crate::engine::Override;
use crate::engine::plugins::{ScoringStrategy, ShapePoint};
use crate::model::Str;
use crate::service::{FieldError, ServiceError};

/// # Errors
/// All mistakes that show without the profile.
pub(super) fn read(message: pb::ProfileOverride) -> Result<Override, ServiceError> {
    let mut errors = Vec::new();
    let strategy = message.scoring_strategy.map(|strategy| scoring_strategy(strategy, &mut errors));
    if !errors.is_empty() {
        return Err(ServiceError::Invalid(errors));
    }
    Ok(Override {
        weights: message.score_weights.into_iter().map(|(plugin, weight)| (plugin, weight.into())).collect(),
        enable: message.enable.into_iter().collect(),
        disable: message.disable.into_iter().collect(),
        strategy,
    })
}

fn scoring_strategy(message: pb::ScoringStrategy, errors: &mut Vec<FieldError>) -> (ScoringStrategy, Vec<(Str, i64)>) {
    let mut wrong = |path: String, message: &str| {
        errors.push(FieldError { path: format!("override.scoring_strategy.{path}"), message: message.to_owned() });
    };
    let mut resources = Vec::with_capacity(message.resources.len());
    for (i, resource) in message.resources.into_iter().enumerate() {
        if resource.name.is_empty() {
            wrong(format!("resources[{i}].name"), "Required value");
        }
        if !(0..=100).contains(&resource.weight) {
            wrong(format!("resources[{i}].weight"), "must be between 1 and 100, or 0 for 1");
        }
        resources.push((Str::from(resource.name), i64::from(resource.weight.max(1))));
    }
    let mut shape: Vec<ShapePoint> = Vec::with_capacity(message.shape.len());
    for (i, point) in message.shape.iter().enumerate() {
        let (utilization, score) = (i64::from(point.utilization), i64::from(point.score));
        if !(0..=100).contains(&utilization) {
            wrong(format!("shape[{i}].utilization"), "not in valid range [0, 100]");
        }
        if shape.last().is_some_and(|before| utilization <= before.utilization) {
            wrong(format!("shape[{i}].utilization"), "values must be sorted in increasing order");
        }
        if !(0..=10).contains(&score) {
            wrong(format!("shape[{i}].score"), "not in valid range [0, 10]");
        }
        // Nodes get ten times what files and requests say.
        shape.push(ShapePoint { utilization, score: score * 10 });
    }
    let kind = pb::ScoringStrategyType::try_from(message.r#type);
    let is_ratio = kind == Ok(pb::ScoringStrategyType::RequestedToCapacityRatio);
    if is_ratio && shape.is_empty() {
        wrong("shape".to_owned(), "at least one point must be specified");
    }
    if !is_ratio && !shape.is_empty() {
        wrong("shape".to_owned(), "means nothing without type REQUESTED_TO_CAPACITY_RATIO");
    }
    let strategy = match kind {
        Ok(pb::ScoringStrategyType::LeastAllocated) => ScoringStrategy::LeastAllocated,
        Ok(pb::ScoringStrategyType::MostAllocated) => ScoringStrategy::MostAllocated,
        Ok(pb::ScoringStrategyType::RequestedToCapacityRatio) => ScoringStrategy::RequestedToCapacityRatio(shape),
        Ok(pb::ScoringStrategyType::Unspecified) | Err(_) => {
            wrong("type".to_owned(), "must be a strategy");
            ScoringStrategy::LeastAllocated
        }
    };
    (strategy, resources)
}
