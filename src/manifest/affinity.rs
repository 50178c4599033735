//! `spec.affinity` and `spec.topologySpreadConstraints`, with `matchLabelKeys` merged into the selectors.

use rustc_hash::FxHashSet;

use super::defaulting::{KeyMerge, merge_keys};
use super::error::{duplicate, invalid, invalid_number};
use super::names::qualified_name_problem;
use super::near_miss;
use super::reader::Reader;
use super::selectors::{node_selector, node_term, optional_selector, selector, selector_parts};
use crate::model::topology_spread::{InclusionPolicy, WhenUnsatisfiable};
use crate::model::{
    Affinity, LabelSelector, Labels, NodeAffinity, NodeSelectorTerm, PodAffinity, PodAffinityTerm, PreferredNodeTerm,
    Str, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

const REQUIRED_RULES: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED_RULES: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// `pod_labels` are those of the pod that carries the affinity: `matchLabelKeys` read them.
pub(super) fn affinity(spec: &Reader<'_>, pod_labels: &Labels) -> Affinity {
    let Some(r) = spec.object("affinity") else { return Affinity::default() };
    r.known(&near_miss::AFFINITY);
    Affinity {
        node: r.object("nodeAffinity").map(|n| node_affinity(&n)),
        pod: r.object("podAffinity").map(|p| pod_affinity(&p, pod_labels)),
        pod_anti: r.object("podAntiAffinity").map(|p| pod_affinity(&p, pod_labels)),
    }
}

/// A `nodeAffinity` by itself.
pub(crate) fn node_affinity(r: &Reader<'_>) -> NodeAffinity {
    r.known(&near_miss::RULES);
    NodeAffinity {
        required: node_selector(r, REQUIRED_RULES),
        preferred: r.list(PREFERRED_RULES, |p| {
            p.known(&near_miss::PREFERRED_NODE_TERM);
            let term = p.object("preference").map_or_else(NodeSelectorTerm::default, |t| node_term(&t));
            Some(PreferredNodeTerm { weight: weight(p)?, term })
        }),
    }
}

fn weight(r: &Reader<'_>) -> Option<i32> {
    let weight = r.int32("weight").or_else(|| (!r.has("weight")).then_some(0))?;
    if !(1..=100).contains(&weight) {
        r.error_in("weight", invalid_number(weight, "must be in the range 1-100"));
    }
    Some(weight)
}

fn pod_affinity(r: &Reader<'_>, pod_labels: &Labels) -> PodAffinity {
    r.known(&near_miss::RULES);
    PodAffinity {
        required: r.list(REQUIRED_RULES, |t| Some(pod_term(t, pod_labels))).unwrap_or_default(),
        preferred: r.list(PREFERRED_RULES, |p| weighted_term(p, pod_labels)).unwrap_or_default(),
    }
}

fn weighted_term(r: &Reader<'_>, pod_labels: &Labels) -> Option<WeightedPodAffinityTerm> {
    r.known(&near_miss::WEIGHTED_POD_TERM);
    let weight = weight(r);
    let Some(term) = r.object("podAffinityTerm") else {
        if !r.has("podAffinityTerm") {
            r.required("podAffinityTerm");
        }
        return None;
    };
    Some(WeightedPodAffinityTerm { term: pod_term(&term, pod_labels), weight: weight? })
}

fn pod_term(r: &Reader<'_>, pod_labels: &Labels) -> PodAffinityTerm {
    r.known(&near_miss::POD_TERM);
    let selector = match selector_parts(r, "labelSelector") {
        None => LabelSelector::Nothing,
        Some(mut parts) => {
            merge_keys(&mut parts, &keys(r, "matchLabelKeys"), pod_labels, KeyMerge::Match);
            merge_keys(&mut parts, &keys(r, "mismatchLabelKeys"), pod_labels, KeyMerge::Mismatch);
            parts.build()
        }
    };
    PodAffinityTerm {
        selector,
        namespaces: r.texts("namespaces"),
        namespace_selector: optional_selector(r, "namespaceSelector"),
        topology_key: topology_key(r),
    }
}

fn keys(r: &Reader<'_>, field: &str) -> Vec<Str> {
    let keys = r.checked_texts(field, |key, reader| {
        if let Some(problem) = qualified_name_problem(key) {
            reader.error(invalid(key, problem));
        }
    });
    keys.unwrap_or_default()
}

fn topology_key(r: &Reader<'_>) -> Str {
    let key = r.non_empty("topologyKey", "Required value: can not be empty");
    if !key.is_empty()
        && let Some(problem) = qualified_name_problem(&key)
    {
        r.error_in("topologyKey", invalid(&key, problem));
    }
    key
}

pub(crate) const POLICIES: [(&str, InclusionPolicy); 2] =
    [("Honor", InclusionPolicy::Honor), ("Ignore", InclusionPolicy::Ignore)];
pub(crate) const WHEN: [(&str, WhenUnsatisfiable); 2] =
    [("DoNotSchedule", WhenUnsatisfiable::DoNotSchedule), ("ScheduleAnyway", WhenUnsatisfiable::ScheduleAnyway)];

/// `spec.topologySpreadConstraints`.
pub(super) fn topology_spread(spec: &Reader<'_>, pod_labels: &Labels) -> Vec<TopologySpreadConstraint> {
    let mut seen: FxHashSet<(Str, WhenUnsatisfiable)> = FxHashSet::default();
    let list = spec.list("topologySpreadConstraints", |r| {
        let constraint = spread_constraint(r, pod_labels)?;
        let pair = (constraint.topology_key.clone(), constraint.when_unsatisfiable);
        if !seen.insert(pair.clone()) {
            let (_, when) = WHEN.iter().map(|(name, w)| (w, name)).find(|(w, _)| **w == pair.1)?;
            r.error(duplicate(&format!("{{{}, {when}}}", pair.0)));
        }
        Some(constraint)
    });
    list.unwrap_or_default()
}

fn spread_constraint(r: &Reader<'_>, pod_labels: &Labels) -> Option<TopologySpreadConstraint> {
    r.known(&near_miss::SPREAD);
    let max_skew = at_least_one(r, "maxSkew").or_else(|| {
        if !r.has("maxSkew") {
            r.required("maxSkew");
        }
        None
    });
    let topology_key = topology_key(r);
    let when = r.required_choice("whenUnsatisfiable", &WHEN);
    let selector = selector(r, "labelSelector");
    let match_label_keys = keys(r, "matchLabelKeys");
    let min_domains = at_least_one(r, "minDomains");
    let affinity_policy = r.choice("nodeAffinityPolicy", &POLICIES);
    let taints_policy = r.choice("nodeTaintsPolicy", &POLICIES);
    let mut constraint = TopologySpreadConstraint::new(max_skew?, topology_key, when?, selector);
    // The scheduler itself merges again, by the pod's labels of now; what is merged already stays (spec section 4.10).
    constraint.selector = constraint.selector.and(KeyMerge::Match.requirements(&match_label_keys, pod_labels));
    constraint.match_label_keys = match_label_keys;
    constraint.min_domains = min_domains.unwrap_or(constraint.min_domains);
    constraint.node_affinity_policy = affinity_policy.unwrap_or(constraint.node_affinity_policy);
    constraint.node_taints_policy = taints_policy.unwrap_or(constraint.node_taints_policy);
    Some(constraint)
}

fn at_least_one(r: &Reader<'_>, field: &str) -> Option<i32> {
    let number = r.int32(field)?;
    if number < 1 {
        r.error_in(field, invalid_number(number, "must be greater than zero"));
        return None;
    }
    Some(number)
}
