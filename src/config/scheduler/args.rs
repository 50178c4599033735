//! `pluginConfig`: the arguments of the plugins that have some (spec section 9.2), with upstream's defaults and checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::duration::duration;
use super::plugins::did_you_mean;
use super::resources_args::{balanced_allocation, fit, shape};
use super::{API_VERSION, Notes, no_effect};
use crate::engine::plugin::Plugin;
use crate::engine::plugins::{DefaultConstraints, InterPodAffinity, NodeAffinityPlugin, PodTopologySpread};
use crate::engine::registry;
use crate::manifest::affinity::{POLICIES, WHEN, node_affinity};
use crate::manifest::error::{Cut, REQUIRED, duplicate, invalid, invalid_number, unsupported};
use crate::manifest::names::qualified_name_problem;
use crate::manifest::reader::Reader;
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{LabelSelector, Str, TopologySpreadConstraint};

/// A profile's plugins by name, each made once.
#[derive(Debug)]
pub(super) struct Made(BTreeMap<&'static str, Arc<dyn Plugin>>);

impl Made {
    /// None: the plugin has no part in a decision.
    pub(super) fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        self.0.get(name).cloned()
    }
}

/// Makes the plugins with the arguments that the profile gives.
pub(super) fn read(profile: &Reader<'_>, notes: &mut Notes) -> Made {
    let mut made: BTreeMap<&'static str, Arc<dyn Plugin>> =
        registry::IN_TREE.iter().filter_map(|known| Some((known.name, registry::make(known.name)?))).collect();
    let mut seen: Vec<String> = Vec::new();
    profile.list("pluginConfig", |r| {
        r.only(&["args", "name"]);
        let name = r.text("name").unwrap_or_default();
        if name.is_empty() {
            if !r.has("name") || r.text("name").is_some() {
                r.error_in("name", REQUIRED);
            }
            return None;
        }
        if seen.iter().any(|earlier| earlier == name) {
            r.error_in("name", format!("repeated config for plugin {}", Cut(name)));
        }
        seen.push(name.to_owned());
        let Some(known) = registry::find(name) else {
            r.error_in("name", format!("plugin \"{}\" does not exist{}", Cut(name), did_you_mean(name)));
            return None;
        };
        let args = r.object("args")?;
        if let Some(plugin) = plugin(known.name, &args, notes) {
            made.insert(known.name, plugin);
        }
        Some(())
    });
    Made(made)
}

/// A plugin made with these arguments. None: it has no part in a decision, or the arguments are wrong, which is reported.
fn plugin(name: &str, args: &Reader<'_>, notes: &mut Notes) -> Option<Arc<dyn Plugin>> {
    if !is_of(name, args) {
        return None;
    }
    let only = |fields: &[&str]| {
        let all: Vec<&str> = fields.iter().copied().chain(["apiVersion", "kind"]).collect();
        args.only(&all);
    };
    match name {
        "NodeResourcesFit" => {
            only(&["ignoredResourceGroups", "ignoredResources", "scoringStrategy"]);
            return Some(Arc::new(fit(args)));
        }
        "NodeResourcesBalancedAllocation" => {
            only(&["resources"]);
            return Some(Arc::new(balanced_allocation(args)));
        }
        "PodTopologySpread" => {
            only(&["defaultConstraints", "defaultingType"]);
            return Some(Arc::new(PodTopologySpread { defaults: default_constraints(args) }));
        }
        "InterPodAffinity" => {
            only(&["hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"]);
            return Some(Arc::new(inter_pod_affinity(args)));
        }
        "NodeAffinity" => {
            only(&["addedAffinity"]);
            let added = args.object("addedAffinity").map(|added| node_affinity(&added));
            return Some(Arc::new(NodeAffinityPlugin { added }));
        }
        "DefaultPreemption" => {
            only(&["minCandidateNodesAbsolute", "minCandidateNodesPercentage"]);
            preemption(args, notes);
        }
        "VolumeBinding" => {
            only(&["bindTimeoutSeconds", "shape"]);
            volume_binding(args, notes);
        }
        "DynamicResources" => {
            only(&["bindingTimeout", "filterTimeout"]);
            dynamic_resources(args, notes);
        }
        _ => {
            only(&[]);
        }
    }
    None
}

/// Whether arguments are of the plugin's type; they may leave out both fields that say so.
fn is_of(name: &str, args: &Reader<'_>) -> bool {
    let mut right = true;
    if let Some(kind) = args.text("kind").filter(|kind| !kind.is_empty())
        && kind.strip_suffix("Args") != Some(name)
    {
        args.error_in("kind", invalid(kind, "has to match plugin args"));
        right = false;
    }
    if let Some(version) = args.text("apiVersion").filter(|version| !version.is_empty() && *version != API_VERSION) {
        args.error_in("apiVersion", unsupported(version, [API_VERSION]));
        right = false;
    }
    right
}

fn inter_pod_affinity(args: &Reader<'_>) -> InterPodAffinity {
    let mut plugin = InterPodAffinity::default();
    if let Some(weight) = args.int32("hardPodAffinityWeight") {
        if !(0..=100).contains(&weight) {
            args.error_in("hardPodAffinityWeight", invalid_number(weight, "not in valid range [0, 100]"));
        }
        plugin.hard_pod_affinity_weight = weight.into();
    }
    plugin.ignore_preferred_terms_of_existing_pods =
        args.flag("ignorePreferredTermsOfExistingPods").unwrap_or_default();
    plugin
}

fn default_constraints(args: &Reader<'_>) -> DefaultConstraints {
    const SYSTEM: bool = true;
    let system = args.choice_or("defaultingType", &[("List", !SYSTEM), ("System", SYSTEM)], SYSTEM).unwrap_or(SYSTEM);
    let mut seen: Vec<(Str, WhenUnsatisfiable)> = Vec::new();
    let mut given = 0;
    let list = args.list("defaultConstraints", |r| {
        given += 1;
        let constraint = constraint(r)?;
        let pair = (constraint.topology_key.clone(), constraint.when_unsatisfiable);
        if seen.contains(&pair) {
            let when = WHEN.iter().find(|(_, when)| *when == pair.1).map_or("", |(name, _)| *name);
            r.error(duplicate(&format!("{{{}, {when}}}", pair.0)));
        }
        seen.push(pair);
        Some(constraint)
    });
    if !system {
        return DefaultConstraints::List(list.unwrap_or_default());
    }
    if given > 0 {
        args.error_in("defaultingType", invalid("System", "when .defaultConstraints are not empty"));
    }
    DefaultConstraints::System
}

fn constraint(r: &Reader<'_>) -> Option<TopologySpreadConstraint> {
    r.only(&[
        "labelSelector",
        "matchLabelKeys",
        "maxSkew",
        "minDomains",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "topologyKey",
        "whenUnsatisfiable",
    ]);
    let skew = r.int32("maxSkew").or_else(|| (!r.has("maxSkew")).then_some(0));
    if let Some(skew) = skew.filter(|skew| *skew <= 0) {
        r.error_in("maxSkew", invalid_number(skew, "not in valid range (0, inf)"));
    }
    let key = match r.text("topologyKey") {
        Some(key) if !key.is_empty() => Some(key),
        None if r.has("topologyKey") => None,
        _ => {
            r.error_in("topologyKey", "Required value: can not be empty");
            None
        }
    };
    if let Some(problem) = key.and_then(qualified_name_problem) {
        r.error_in("topologyKey", invalid(key.unwrap_or_default(), problem));
    }
    let when = r.required_choice("whenUnsatisfiable", &WHEN);
    if r.has("labelSelector") {
        let text = "Forbidden: constraint must not define a selector, as they deduced for each pod";
        r.error_in("labelSelector", text);
    }
    let min_domains = r.int32("minDomains");
    if let Some(number) = min_domains.filter(|number| *number <= 0) {
        r.error_in("minDomains", invalid_number(number, "must be greater than zero"));
    }
    let affinity = r.choice("nodeAffinityPolicy", &POLICIES);
    let taints = r.choice("nodeTaintsPolicy", &POLICIES);
    // `matchLabelKeys` says nothing here: the selector is deduced and takes the labels' place.
    r.texts("matchLabelKeys");
    let mut constraint = TopologySpreadConstraint::new(skew?, key?.into(), when?, LabelSelector::Nothing);
    constraint.min_domains = min_domains.unwrap_or(constraint.min_domains);
    constraint.node_affinity_policy = affinity.unwrap_or(constraint.node_affinity_policy);
    constraint.node_taints_policy = taints.unwrap_or(constraint.node_taints_policy);
    Some(constraint)
}

fn preemption(args: &Reader<'_>, notes: &mut Notes) {
    const PERCENTAGE: &str = "minCandidateNodesPercentage";
    const ABSOLUTE: &str = "minCandidateNodesAbsolute";
    let (percentage, absolute) = (args.int32(PERCENTAGE), args.int32(ABSOLUTE));
    if let Some(number) = percentage.filter(|number| !(0..=100).contains(number)) {
        args.error_in(PERCENTAGE, invalid_number(number, "not in valid range [0, 100]"));
    }
    if let Some(number) = absolute.filter(|number| *number < 0) {
        args.error_in(ABSOLUTE, invalid_number(number, "not in valid range [0, inf)"));
    }
    if percentage == Some(0) && absolute == Some(0) {
        let text = |other: &str| invalid_number(0, format!("cannot be zero at the same time as {other}"));
        args.error_in(PERCENTAGE, text(ABSOLUTE));
        args.error_in(ABSOLUTE, text(PERCENTAGE));
    }
    for (field, given) in [(PERCENTAGE, percentage), (ABSOLUTE, absolute)] {
        if given.is_some() {
            no_effect(args, field, "Berth tries preemption on every node that it could help", notes);
        }
    }
}

fn volume_binding(args: &Reader<'_>, notes: &mut Notes) {
    if let Some(seconds) = args.integer("bindTimeoutSeconds") {
        if seconds < 0 {
            let text = "invalid BindTimeoutSeconds, should not be a negative value";
            args.error_in("bindTimeoutSeconds", invalid_number(seconds, text));
        }
        no_effect(args, "bindTimeoutSeconds", "Berth binds no volumes", notes);
    }
    if args.any("shape").is_some_and(|shape| shape.value().as_array().is_none_or(|list| !list.is_empty())) {
        shape(args, "shape");
        args.error_in("shape", "Forbidden: needs the feature gate StorageCapacityScoring, which is off");
    }
}

fn dynamic_resources(args: &Reader<'_>, notes: &mut Notes) {
    for (field, least, text) in
        [("filterTimeout", 0, "must be zero or positive"), ("bindingTimeout", 1_000_000, "must be at least 1 second")]
    {
        let Some(micros) = duration(args, field) else { continue };
        if micros < least {
            args.error_in(field, invalid(args.text(field).unwrap_or_default(), text));
        }
        no_effect(args, field, "Berth allocates no resource claims", notes);
    }
}
