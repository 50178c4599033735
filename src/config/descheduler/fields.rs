//! Fields that several plugins have, read strictly.

use super::queries;
use crate::evict::policy::{LabelQuery, Namespaces, PodSelection};
use crate::manifest::{Issues, Reader, expected, invalid, optional_selector};
use crate::model::{LabelSelector, Str};

const SELECTOR: [&str; 2] = ["matchExpressions", "matchLabels"];
const REQUIREMENT: [&str; 3] = ["key", "operator", "values"];

/// `namespaces` and `labelSelector`.
pub(super) fn selection(r: &Reader<'_>) -> PodSelection {
    PodSelection { namespaces: namespaces(r, "namespaces"), label_selector: selector(r, "labelSelector") }
}

/// None: it is absent.
pub(super) fn selector(r: &Reader<'_>, field: &str) -> Option<LabelSelector> {
    {
        let selector = r.object(field)?;
        selector.only_or(&SELECTOR, |key| {
            let values = selector.map()?.get(key)?;
            values.is_string().then(|| format!("a label to match goes into matchLabels: {field}.matchLabels.{key}"))
        });
        selector.list("matchExpressions", |e| {
            e.only_or(&REQUIREMENT, |_| None);
            Some(())
        });
    }
    // Read on its own, so that each mistake can say what it came from.
    let issues = Issues::default();
    let found = Reader::root(r.value(), &issues).and_then(|own| optional_selector(&own, field));
    for error in issues.finish().err().into_iter().flatten() {
        r.error_in(&error.path, format!("failed to get label selectors from strategy's params: {}", error.message));
    }
    found
}

/// `{include, exclude}`.
pub(super) fn namespaces(r: &Reader<'_>, field: &str) -> Namespaces {
    let Some(names) = r.object(field) else { return Namespaces::All };
    let (include, exclude) = include_exclude(&names);
    match (include.is_empty(), exclude.is_empty()) {
        (true, true) => Namespaces::All,
        (false, true) => Namespaces::Include(include),
        (true, false) => Namespaces::Exclude(exclude),
        (false, false) => {
            names.error("only one of Include/Exclude namespaces can be set");
            Namespaces::All
        }
    }
}

pub(super) fn include_exclude(names: &Reader<'_>) -> (Vec<Str>, Vec<Str>) {
    names.only_or(&["exclude", "include"], |key| {
        let is_nested = key == "namespaces" || key == "kinds";
        is_nested.then(|| "include and exclude stand here directly".to_owned())
    });
    (names.texts("include"), names.texts("exclude"))
}

/// `evictableNamespaces` of the utilization plugins: what is excluded.
pub(super) fn excluded_namespaces(r: &Reader<'_>, field: &str) -> Vec<Str> {
    let Some(names) = r.object(field) else { return Vec::new() };
    let (include, exclude) = include_exclude(&names);
    if !include.is_empty() {
        names.error_in("include", "only Exclude namespaces can be set, inclusion is not supported");
    }
    exclude
}

/// A label selector in one line. None: it is absent or empty, and selects everything.
pub(super) fn query(r: &Reader<'_>, field: &str) -> Option<LabelQuery> {
    let text = r.text(field)?;
    match queries::parse(text) {
        Ok(query) => Some(query).filter(|q| !q.requirements().is_empty()),
        Err(problem) => {
            r.error_in(field, invalid(text, problem));
            None
        }
    }
}

pub(super) fn exit_codes(r: &Reader<'_>) -> Vec<i32> {
    let mut codes = Vec::new();
    r.items("exitCodes", |item| match item.value().as_i64().map(i32::try_from) {
        Some(Ok(code)) => codes.push(code),
        Some(Err(_)) => item.error("must fit in 32 bits"),
        None => item.error(expected("an integer", item.value())),
    });
    codes
}
