//! Resource lists and `resources: {requests, limits}`.
//!
//! Quantities that the API server stores in whole thousandths (all but metrics and storage sizes) are rounded up here, each
//! on its own, before anything is summed (spec section 1.3).

use std::collections::BTreeSet;

use super::error::{invalid, too_many};
use super::names::qualified_name_problem;
use super::near_miss;
use super::reader::Reader;
use super::shared::shared;
use crate::model::resources::ResourceClass;
use crate::model::{Quantity, ResourceList, ResourceRequirements};

/// Resources that one object may name, in one list or in all of them. The API server sets no limit below its 1.5 MiB an
/// object; real nodes name up to some thirty, and each name is one more thing that every node is asked about.
const MAX_RESOURCE_NAMES: usize = 256;

/// How strictly a list is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// What a writer asks for: names are checked, amounts aren't negative, devices aren't divided.
    Asked,
    /// What a node offers: amounts aren't negative.
    Offered,
    /// What a status reports: taken as it is.
    Reported,
}

/// None: the list is null.
pub(super) fn resource_list(parent: &Reader<'_>, field: &str, rule: Rule) -> Option<ResourceList> {
    let mut list = ResourceList::new();
    if is_too_long(parent, field) {
        return Some(list);
    }
    parent
        .entries(field, |name, r| {
            if rule == Rule::Asked
                && let Some(problem) = qualified_name_problem(name)
            {
                r.error(invalid(name, problem));
            }
            let Some(quantity) = r.as_quantity() else { return };
            let class = ResourceClass::of(name);
            if rule != Rule::Reported && quantity.is_negative() {
                r.error(invalid(&written(r), "must be greater than or equal to 0"));
            } else if rule == Rule::Asked
                && class == ResourceClass::Extended
                && quantity != Quantity::from_units(quantity.value())
            {
                r.error(invalid(&written(r), "must be an integer"));
            }
            list.insert(shared(name), quantity.round_up_to_milli());
        })
        .then_some(list)
}

/// Whether a list names too many resources, which is reported.
pub(super) fn is_too_long(parent: &Reader<'_>, field: &str) -> bool {
    let names = parent.any(field).and_then(|list| list.map()).map_or(0, serde_json::Map::len);
    if names > MAX_RESOURCE_NAMES {
        parent.error_in(field, too_many(names, MAX_RESOURCE_NAMES, "resources"));
    }
    names > MAX_RESOURCE_NAMES
}

/// Reports an object whose lists together name too many resources.
pub(super) fn check_names<'l>(object: &Reader<'_>, field: &str, lists: impl Iterator<Item = &'l ResourceList> + Clone) {
    // As a rule a few lists of two or three names each, which need no set.
    if lists.clone().map(ResourceList::len).sum::<usize>() > MAX_RESOURCE_NAMES {
        let names = lists.flat_map(ResourceList::keys).collect::<BTreeSet<_>>().len();
        if names > MAX_RESOURCE_NAMES {
            object.error_in(field, too_many(names, MAX_RESOURCE_NAMES, "different resources"));
        }
    }
}

/// A quantity as the manifest has it.
fn written(r: &Reader<'_>) -> String {
    r.value().as_str().map_or_else(|| r.value().to_string(), str::to_owned)
}

/// `resources`; None: it is null. Requests that are absent become the limits.
pub(super) fn requirements(parent: &Reader<'_>, defaulting: Defaulting) -> Option<ResourceRequirements> {
    let r = parent.object("resources")?;
    r.known(&near_miss::RESOURCES);
    let mut requests = resource_list(&r, "requests", Rule::Asked).unwrap_or_default();
    let limits = resource_list(&r, "limits", Rule::Asked).unwrap_or_default();
    if defaulting == Defaulting::RequestsFromLimits {
        for (name, limit) in &limits {
            requests.entry(name.clone()).or_insert(*limit);
        }
    }
    Some(ResourceRequirements { requests, limits })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Defaulting {
    /// Containers and init containers.
    RequestsFromLimits,
    /// Pod level: `defaulting::pod_level_requests` looks at the containers first.
    Later,
}
