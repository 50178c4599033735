//! A scheduling profile: which plugins run at which extension point, in which order, with which weights, arguments and
//! tie-breaking seed, and which deliberate differences from upstream are switched on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fixes::Fix;
use super::plugin::{FilterPlugin, Plugin};
use super::registry;
use super::status::Rejection;
use crate::cluster::View;
use crate::cluster::counts::CountKey;
use crate::model::{Pod, Str};

/// The profile that pods without `schedulerName` ask for.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

impl PostFilter {
    pub fn name(self) -> &'static str {
        match self {
            Self::DynamicResources => "DynamicResources",
            Self::DefaultPreemption => "DefaultPreemption",
        }
    }

    /// By its upstream name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::DynamicResources, Self::DefaultPreemption].into_iter().find(|post_filter| post_filter.name() == name)
    }
}

#[derive(Debug, Clone)]
pub struct Profile {
    name: Str,
    seed: u64,
    points: Points,
    check_all: bool,
    fixes: BTreeSet<Fix>,
}

/// Which plugins run at which extension point, each list in the order in which they run. One plugin stands in several
/// lists, as clones of one `Arc`: that is how PreFilter and Filter of a plugin find each other.
#[derive(Debug, Clone, Default)]
pub struct Points {
    pub pre_enqueue: Vec<Arc<dyn Plugin>>,
    /// Their order decides which refusal of the whole pod is the one that is told. Plugins without a PreFilter upstream
    /// ([`FilterPlugin::has_pre_filter`]) don't belong here.
    pub pre_filters: Vec<Arc<dyn Plugin>>,
    /// Their order decides which plugin refuses a node first.
    pub filters: Vec<Arc<dyn Plugin>>,
    /// With weights above 0; upstream reads 0 as 1, which is for whoever reads the file to do.
    pub scores: Vec<(Arc<dyn Plugin>, i64)>,
    pub post_filters: Vec<PostFilter>,
}

/// What runs after a pod was refused everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostFilter {
    /// Looks for resource claims to deallocate. Berth decides on no pod that has any, so what is left of it is its text.
    DynamicResources,
    DefaultPreemption,
}

impl Default for Profile {
    /// kube-scheduler's default profile.
    fn default() -> Self {
        Self::new(DEFAULT_SCHEDULER.into(), 0, registry::default_plugins())
    }
}

impl Points {
    /// Each plugin at every point that it has a part in, in this order; those with weight 0 score nothing.
    pub fn everywhere(plugins: Vec<(Arc<dyn Plugin>, i64)>) -> Self {
        let all = || plugins.iter().map(|(plugin, _)| plugin.clone());
        let has_pre_filter = |p: &Arc<dyn Plugin>| p.filter().is_some_and(FilterPlugin::has_pre_filter);
        Self {
            pre_enqueue: all().collect(),
            pre_filters: all().filter(has_pre_filter).collect(),
            filters: all().filter(|p| p.filter().is_some()).collect(),
            scores: plugins.iter().filter(|(p, weight)| *weight > 0 && p.score().is_some()).cloned().collect(),
            post_filters: vec![PostFilter::DynamicResources, PostFilter::DefaultPreemption],
        }
    }
}

impl Profile {
    /// Plugins in the order in which they run, each with its score weight, at every point that they have a part in.
    pub fn new(name: Str, seed: u64, plugins: Vec<(Arc<dyn Plugin>, i64)>) -> Self {
        Self::with_points(name, seed, Points::everywhere(plugins))
    }

    pub fn with_points(name: Str, seed: u64, points: Points) -> Self {
        Self { name, seed, points, check_all: false, fixes: BTreeSet::new() }
    }

    /// This profile with other plugins.
    #[must_use]
    pub(super) fn at_points(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// Which plugins run where.
    pub fn points(&self) -> &Points {
        &self.points
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
        self.points.post_filters = post_filters;
        self
    }

    /// Every filter of a refused node tells its reasons, not only the first one that refuses. Which nodes are feasible is
    /// the same.
    #[must_use]
    pub fn with_check_all(mut self, check_all: bool) -> Self {
        self.check_all = check_all;
        self
    }

    pub fn checks_all(&self) -> bool {
        self.check_all
    }

    /// Whether a refused pod may ask others to leave.
    pub fn preempts(&self) -> bool {
        self.points.post_filters.contains(&PostFilter::DefaultPreemption)
    }

    /// Whether upstream looks for claims to deallocate before it thinks of preemption, which shows in texts.
    pub(super) fn asks_for_claims_first(&self) -> bool {
        let at = |wanted| self.points.post_filters.iter().position(|p| *p == wanted);
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

    /// The plugins of a name; a profile may hold several.
    pub(super) fn plugins_named(&self, name: &str) -> impl Iterator<Item = &dyn Plugin> {
        let Points { pre_enqueue, pre_filters, filters, .. } = &self.points;
        let all = pre_enqueue.iter().chain(pre_filters).chain(filters);
        all.map(|plugin| &**plugin).filter(move |plugin| plugin.name() == name)
    }

    /// Plugins that filter, in order.
    pub fn filters(&self) -> impl Iterator<Item = &dyn Plugin> {
        self.points.filters.iter().map(|p| &**p)
    }

    /// Plugins that score, in order, with their weights.
    pub fn scorers(&self) -> impl Iterator<Item = (&dyn Plugin, i64)> {
        self.points.scores.iter().map(|(plugin, weight)| (&**plugin, *weight))
    }

    /// The first refusal of a pod that may not be scheduled at all yet.
    pub(super) fn pre_enqueue(&self, pod: &Pod) -> Option<Rejection> {
        self.points.pre_enqueue.iter().find_map(|plugin| plugin.pre_enqueue(pod))
    }

    /// The plugins that filter or score, each once.
    pub(super) fn plugins(&self) -> Vec<&Arc<dyn Plugin>> {
        let Points { pre_filters, filters, scores, .. } = &self.points;
        let all = pre_filters.iter().chain(filters).chain(scores.iter().map(|(plugin, _)| plugin));
        let mut seen: Vec<&Arc<dyn Plugin>> = Vec::with_capacity(pre_filters.len() + filters.len());
        for plugin in all {
            if !seen.iter().any(|other| is_same(other, plugin)) {
                seen.push(plugin);
            }
        }
        seen
    }

    /// The selector counts that a decision on this pod will read.
    pub fn count_keys(&self, view: &View, pod: &Pod) -> Vec<CountKey> {
        self.plugins().into_iter().flat_map(|plugin| plugin.count_keys(view, pod, self)).collect()
    }
}

/// Whether both are one plugin of one profile. Names don't tell: a profile may hold several of one name.
pub(super) fn is_same(one: &Arc<dyn Plugin>, other: &Arc<dyn Plugin>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}
