//! A scheduling profile: which plugins run, in which order, with which weights, arguments and tie-breaking seed,
//! and which deliberate differences from upstream are switched on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fixes::Fix;
use super::plugin::Plugin;
use super::registry;
use super::status::Rejection;
use crate::cluster::View;
use crate::cluster::counts::CountKey;
use crate::model::{Pod, Str};

/// The profile that pods without `schedulerName` ask for.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

#[derive(Debug, Clone)]
pub struct Profile {
    name: Str,
    seed: u64,
    plugins: Vec<Entry>,
    post_filters: Vec<PostFilter>,
    fixes: BTreeSet<Fix>,
}

/// What runs after a pod was refused everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostFilter {
    /// Looks for resource claims to deallocate. Berth decides on no pod that has any, so what is left of it is its text.
    DynamicResources,
    DefaultPreemption,
}

#[derive(Debug, Clone)]
struct Entry {
    plugin: Arc<dyn Plugin>,
    /// 0 for a plugin that scores nothing in this profile.
    weight: i64,
}

impl Default for Profile {
    /// kube-scheduler's default profile.
    fn default() -> Self {
        Self::new(DEFAULT_SCHEDULER.into(), 0, registry::default_plugins())
    }
}

impl Profile {
    /// Plugins in the order in which they run, each with its score weight.
    pub fn new(name: Str, seed: u64, plugins: Vec<(Arc<dyn Plugin>, i64)>) -> Self {
        let plugins = plugins.into_iter().map(|(plugin, weight)| Entry { plugin, weight }).collect();
        let post_filters = vec![PostFilter::DynamicResources, PostFilter::DefaultPreemption];
        Self { name, seed, plugins, post_filters, fixes: BTreeSet::new() }
    }

    /// The `schedulerName` it answers to.
    pub fn name(&self) -> &Str {
        &self.name
    }

    /// Decides the order among equal nodes.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What runs after a refusal, in place of the default profile's.
    #[must_use]
    pub fn with_post_filters(mut self, post_filters: Vec<PostFilter>) -> Self {
        self.post_filters = post_filters;
        self
    }

    /// Whether a refused pod may ask others to leave.
    pub fn preempts(&self) -> bool {
        self.post_filters.contains(&PostFilter::DefaultPreemption)
    }

    /// Whether upstream looks for claims to deallocate before it thinks of preemption, which shows in texts.
    pub(super) fn asks_for_claims_first(&self) -> bool {
        let at = |wanted| self.post_filters.iter().position(|p| *p == wanted);
        let claims = at(PostFilter::DynamicResources);
        claims.is_some() && at(PostFilter::DefaultPreemption).is_none_or(|preemption| claims < Some(preemption))
    }

    /// Switches a deliberate difference from upstream on.
    #[must_use]
    pub fn with_fix(mut self, fix: Fix) -> Self {
        self.fixes.insert(fix);
        self
    }

    pub fn has_fix(&self, fix: Fix) -> bool {
        self.fixes.contains(&fix)
    }

    /// The differences that are switched on, by name.
    pub fn fixes(&self) -> impl Iterator<Item = Fix> {
        self.fixes.iter().copied()
    }

    pub fn has(&self, plugin: &str) -> bool {
        self.plugins.iter().any(|e| e.plugin.name() == plugin)
    }

    pub(super) fn plugin(&self, name: &str) -> Option<&dyn Plugin> {
        self.plugins.iter().map(|e| &*e.plugin).find(|p| p.name() == name)
    }

    /// Plugins that filter, in order.
    pub fn filters(&self) -> impl Iterator<Item = &dyn Plugin> {
        self.plugins.iter().map(|e| &*e.plugin).filter(|p| p.filter().is_some())
    }

    /// Plugins that score, in order, with their weights.
    pub fn scorers(&self) -> impl Iterator<Item = (&dyn Plugin, i64)> {
        self.plugins.iter().filter(|e| e.weight > 0 && e.plugin.score().is_some()).map(|e| (&*e.plugin, e.weight))
    }

    /// The first refusal of a pod that may not be scheduled at all yet.
    pub(super) fn pre_enqueue(&self, pod: &Pod) -> Option<Rejection> {
        self.plugins.iter().find_map(|e| e.plugin.pre_enqueue(pod))
    }

    /// The selector counts that a decision on this pod will read.
    pub fn count_keys(&self, view: &View, pod: &Pod) -> Vec<CountKey> {
        self.plugins.iter().flat_map(|e| e.plugin.count_keys(view, pod, self)).collect()
    }
}
