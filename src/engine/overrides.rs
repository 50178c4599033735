//! Changes to a profile for one request: weights, plugins on and off, how NodeResourcesFit scores.
//!
//! They are applied to a copy of the profile, so that nothing but the request sees them. Promise: all mistakes are told at
//! once, each with its path below the override; an override without mistakes gives a profile that differs from the original
//! in what it names only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plugin::Plugin;
use super::plugins::{NodeResourcesFit, ScoringStrategy};
use super::profile::{PostFilter, Profile};
use super::registry::{self, Point};
use crate::model::Str;

/// What to change. The order in which names are given means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Override {
    /// New weights of plugins that score, 1 or more.
    pub weights: BTreeMap<String, i64>,
    /// Plugins that run wherever they have a part, after the profile's own where they don't run yet.
    pub enable: BTreeSet<String>,
    /// Plugins that don't run at all.
    pub disable: BTreeSet<String>,
    /// How NodeResourcesFit scores, and what it weighs; no resources: cpu and memory alike.
    pub strategy: Option<(ScoringStrategy, Vec<(Str, i64)>)>,
}

/// A mistake of an override: where, and what.
pub type Mistake = (String, String);

const FIT: &str = "NodeResourcesFit";

impl Override {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same for the same changes, and another for others.
    pub fn key(&self) -> Str {
        if self.is_empty() { Str::default() } else { format!("{self:?}").into() }
    }

    /// The profile with the changes.
    ///
    /// # Errors
    /// All mistakes: names of no plugin, plugins both enabled and disabled, weights of plugins that don't score.
    pub fn apply(&self, profile: &Profile) -> Result<Profile, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        for (field, names) in [("enable", &self.enable), ("disable", &self.disable)] {
            for name in names.iter().filter(|name| !is_known(profile, name)) {
                mistakes.push((format!("{field}[{name}]"), format!("no plugin is called {name:?}")));
            }
        }
        for name in self.enable.intersection(&self.disable) {
            mistakes.push((format!("enable[{name}]"), "is disabled by the same override".to_owned()));
        }
        let mut points = profile.points().clone();
        self.switch_off(&mut points);
        self.switch_on(&mut points);
        for (name, weight) in &self.weights {
            let path = || format!("score_weights[{name}]");
            let Some((_, current)) = points.scores.iter_mut().find(|(plugin, _)| plugin.name() == name) else {
                let message = match is_known(profile, name) {
                    true => format!("{name} doesn't score in profile {:?}; enable it", &**profile.name()),
                    false => format!("no plugin is called {name:?}"),
                };
                mistakes.push((path(), message));
                continue;
            };
            // As wide as upstream's, so that no sum of weighted scores overflows.
            if !(1..=i64::from(i32::MAX)).contains(weight) {
                let message = "must be between 1 and 2147483647; disable the plugin to leave it out";
                mistakes.push((path(), message.to_owned()));
            }
            *current = *weight;
        }
        if let Some((strategy, resources)) = &self.strategy {
            let mut fits = points.scores.iter_mut().filter(|(plugin, _)| plugin.name() == FIT).peekable();
            if fits.peek().is_none() {
                let message = format!("{FIT} doesn't score in profile {:?}; enable it", &**profile.name());
                mistakes.push(("scoring_strategy".to_owned(), message));
            }
            let resources = match resources.is_empty() {
                true => NodeResourcesFit::default().resources,
                false => resources.clone(),
            };
            // Only its scores: the filter of the profile stays as it is, ignored resources and all.
            let scorer: Arc<dyn Plugin> = NodeResourcesFit::scoring(strategy.clone(), resources);
            fits.for_each(|(plugin, _)| *plugin = scorer.clone());
        }
        if mistakes.is_empty() { Ok(profile.clone().at_points(points)) } else { Err(mistakes) }
    }

    fn switch_off(&self, points: &mut super::profile::Points) {
        let stays = |plugin: &Arc<dyn Plugin>| !self.disable.contains(plugin.name());
        points.pre_enqueue.retain(stays);
        points.pre_filters.retain(stays);
        points.filters.retain(stays);
        points.scores.retain(|(plugin, _)| stays(plugin));
        points.post_filters.retain(|post_filter| !self.disable.contains(post_filter.name()));
    }

    fn switch_on(&self, points: &mut super::profile::Points) {
        for name in &self.enable {
            let Some(known) = registry::find(name) else { continue };
            if let Some(post_filter) = PostFilter::parse(name).filter(|p| !points.post_filters.contains(p)) {
                points.post_filters.push(post_filter);
            }
            let lists = [&points.pre_enqueue, &points.pre_filters, &points.filters];
            let running = lists.into_iter().flatten().chain(points.scores.iter().map(|(plugin, _)| plugin));
            // One that runs somewhere already brings the arguments of its profile.
            let running = running.into_iter().find(|plugin| plugin.name() == name).cloned();
            let Some(plugin) = running.or_else(|| registry::make(name)) else { continue };
            for (point, list) in [
                (Point::PreEnqueue, &mut points.pre_enqueue),
                (Point::PreFilter, &mut points.pre_filters),
                (Point::Filter, &mut points.filters),
            ] {
                if known.points.contains(&point) && list.iter().all(|p| p.name() != name) {
                    list.push(plugin.clone());
                }
            }
            if known.points.contains(&Point::Score) && points.scores.iter().all(|(p, _)| p.name() != name) {
                points.scores.push((plugin, known.default.unwrap_or_default().max(1)));
            }
        }
    }
}

/// Whether a name is one of upstream's plugins, or of the profile's.
fn is_known(profile: &Profile, name: &str) -> bool {
    registry::find(name).is_some()
        || profile.filters().any(|plugin| plugin.name() == name)
        || profile.scorers().any(|(plugin, _)| plugin.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    fn weights(profile: &Profile) -> Vec<(&str, i64)> {
        profile.scorers().map(|(plugin, weight)| (plugin.name(), weight)).collect()
    }

    #[test]
    fn weights_and_switches_change_what_they_name_only() {
        let changes = Override {
            weights: BTreeMap::from([("ImageLocality".to_owned(), 9)]),
            disable: names(&["TaintToleration", "DefaultPreemption", "SchedulingGates"]),
            ..Override::default()
        };
        let default = Profile::default();
        let changed = changes.apply(&default).unwrap();
        let mut expected: Vec<_> = weights(&default).into_iter().filter(|(n, _)| *n != "TaintToleration").collect();
        expected.iter_mut().filter(|(name, _)| *name == "ImageLocality").for_each(|(_, weight)| *weight = 9);
        assert_eq!(weights(&changed), expected);
        assert!(changed.filters().all(|plugin| plugin.name() != "TaintToleration"));
        assert!(!changed.preempts() && default.preempts());
        assert!(changed.points().pre_enqueue.iter().all(|plugin| plugin.name() != "SchedulingGates"));
    }

    #[test]
    fn enabling_adds_at_the_end_with_the_default_weight() {
        let off = Override { disable: names(&["TaintToleration"]), ..Override::default() };
        let without = off.apply(&Profile::default()).unwrap();
        let on = Override { enable: names(&["TaintToleration"]), ..Override::default() };
        let with = on.apply(&without).unwrap();
        assert_eq!(weights(&with).last(), Some(&("TaintToleration", 3)));
        assert_eq!(with.filters().last().map(Plugin::name), Some("TaintToleration"));
        let again = on.apply(&with).unwrap();
        assert_eq!(weights(&again), weights(&with), "what runs already is left alone");
    }

    #[test]
    fn all_mistakes_are_told_with_their_paths() {
        let wrong = Override {
            weights: BTreeMap::from([("NodePorts".to_owned(), 1), ("ImageLocality".to_owned(), 0)]),
            enable: names(&["NodePort", "NodeName"]),
            disable: names(&["NodeName", NodeResourcesFit::default().name()]),
            strategy: Some((ScoringStrategy::MostAllocated, Vec::new())),
        };
        let mistakes = wrong.apply(&Profile::default()).unwrap_err();
        let told: Vec<String> = mistakes.iter().map(|(path, message)| format!("{path}: {message}")).collect();
        assert_eq!(
            told,
            [
                "enable[NodePort]: no plugin is called \"NodePort\"",
                "enable[NodeName]: is disabled by the same override",
                "score_weights[ImageLocality]: must be between 1 and 2147483647; disable the plugin to leave it out",
                "score_weights[NodePorts]: NodePorts doesn't score in profile \"default-scheduler\"; enable it",
                "scoring_strategy: NodeResourcesFit doesn't score in profile \"default-scheduler\"; enable it",
            ]
        );
    }

    #[test]
    fn keys_tell_overrides_apart() {
        let one = Override { disable: names(&["NodePorts"]), ..Override::default() };
        let other = Override { enable: names(&["NodePorts"]), ..Override::default() };
        assert_eq!(one.key(), one.clone().key());
        assert_ne!(one.key(), other.key());
        assert_eq!(Override::default().key(), Str::default());
    }
}
