//! Plugins by their upstream names, and where each of them has a part.
//!
//! [`IN_TREE`] knows all that kube-scheduler has, also those that have no part in a decision here (queue, bind, the claims
//! of dynamic resources): files that name them are right. [`make`] gives those that have one.

use std::sync::Arc;

use super::plugin::Plugin;
use super::plugins::{
    ImageLocality, InterPodAffinity, NodeAffinityPlugin, NodeDeclaredFeatures, NodeName, NodePorts,
    NodeResourcesBalancedAllocation, NodeResourcesFit, NodeUnschedulable, NodeVolumeLimits, PodTopologySpread,
    SchedulingGates, TaintToleration, VolumeBindingPlugin, VolumeRestrictions, VolumeZone,
};

/// Upstream's extension points, without `multiPoint`, which is shorthand for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
    PlacementGenerate,
    PlacementScore,
}

impl Point {
    pub const ALL: [Self; 14] = [
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::PreScore,
        Self::Score,
        Self::Reserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
        Self::PlacementGenerate,
        Self::PlacementScore,
    ];

    /// Its field in a configuration file.
    pub fn field(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
            Self::PlacementGenerate => "placementGenerate",
            Self::PlacementScore => "placementScore",
        }
    }

    /// The name of its interface in upstream's error texts.
    pub fn plugin_type(self) -> &'static str {
        match self {
            Self::PreEnqueue => "PreEnqueuePlugin",
            Self::QueueSort => "QueueSortPlugin",
            Self::PreFilter => "PreFilterPlugin",
            Self::Filter => "FilterPlugin",
            Self::PostFilter => "PostFilterPlugin",
            Self::PreScore => "PreScorePlugin",
            Self::Score => "ScorePlugin",
            Self::Reserve => "ReservePlugin",
            Self::Permit => "PermitPlugin",
            Self::PreBind => "PreBindPlugin",
            Self::Bind => "BindPlugin",
            Self::PostBind => "PostBindPlugin",
            Self::PlacementGenerate => "PlacementGeneratePlugin",
            Self::PlacementScore => "PlacementScorePlugin",
        }
    }
}

/// A plugin of kube-scheduler 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InTree {
    pub name: &'static str,
    /// Where it has a part upstream.
    pub points: &'static [Point],
    /// Its weight in the default profile, 0 where the profile names none; None: not in the default profile.
    pub default: Option<i64>,
}

const fn in_tree(name: &'static str, default: Option<i64>, points: &'static [Point]) -> InTree {
    InTree { name, points, default }
}

/// All of them, those of the default profile in its order (spec section 3.1). PodGroup's are off unless gated on.
pub const IN_TREE: &[InTree] = {
    use Point::{
        Bind, Filter, Permit, PlacementGenerate, PlacementScore, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore,
        QueueSort, Reserve, Score,
    };
    &[
        in_tree("SchedulingGates", Some(0), &[PreEnqueue]),
        in_tree("PrioritySort", Some(0), &[QueueSort]),
        in_tree("NodeUnschedulable", Some(0), &[Filter]),
        in_tree("NodeName", Some(0), &[Filter]),
        in_tree("TaintToleration", Some(3), &[Filter, PreScore, Score]),
        in_tree("NodeAffinity", Some(2), &[PreFilter, Filter, PreScore, Score]),
        in_tree("NodePorts", Some(0), &[PreFilter, Filter]),
        in_tree("NodeResourcesFit", Some(1), &[PreFilter, Filter, PreScore, Score]),
        in_tree("VolumeRestrictions", Some(0), &[PreFilter, Filter]),
        in_tree("NodeVolumeLimits", Some(0), &[PreFilter, Filter]),
        in_tree("VolumeBinding", Some(0), &[PreFilter, Filter, PreScore, Score, Reserve, PreBind]),
        in_tree("VolumeZone", Some(0), &[PreFilter, Filter]),
        in_tree("PodTopologySpread", Some(2), &[PreFilter, Filter, PreScore, Score]),
        in_tree("InterPodAffinity", Some(2), &[PreFilter, Filter, PreScore, Score]),
        in_tree("DynamicResources", Some(2), &[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind]),
        in_tree("DefaultPreemption", Some(0), &[PreEnqueue, PostFilter]),
        in_tree("NodeResourcesBalancedAllocation", Some(1), &[PreScore, Score]),
        in_tree("ImageLocality", Some(1), &[Score]),
        in_tree("DefaultBinder", Some(0), &[Bind]),
        in_tree("NodeDeclaredFeatures", Some(0), &[PreFilter, Filter]),
        in_tree("GangScheduling", None, &[PreEnqueue, Reserve, Permit]),
        in_tree("TopologyPlacementGenerator", None, &[PlacementGenerate]),
        in_tree("PodGroupPodsCount", None, &[PlacementScore]),
    ]
};

/// What upstream knows of a plugin.
pub fn find(name: &str) -> Option<&'static InTree> {
    IN_TREE.iter().find(|plugin| plugin.name == name)
}

/// A plugin with its default arguments. None: there is no such plugin, or it has no part in a decision.
pub fn make(name: &str) -> Option<Arc<dyn Plugin>> {
    Some(match name {
        "SchedulingGates" => Arc::new(SchedulingGates),
        "NodeUnschedulable" => Arc::new(NodeUnschedulable),
        "NodeName" => Arc::new(NodeName),
        "TaintToleration" => Arc::new(TaintToleration),
        "NodeAffinity" => Arc::new(NodeAffinityPlugin::default()),
        "NodePorts" => Arc::new(NodePorts),
        "NodeResourcesFit" => Arc::new(NodeResourcesFit::default()),
        "VolumeRestrictions" => Arc::new(VolumeRestrictions),
        "NodeVolumeLimits" => Arc::new(NodeVolumeLimits),
        "VolumeBinding" => Arc::new(VolumeBindingPlugin),
        "VolumeZone" => Arc::new(VolumeZone),
        "PodTopologySpread" => Arc::new(PodTopologySpread::default()),
        "InterPodAffinity" => Arc::new(InterPodAffinity::default()),
        "NodeResourcesBalancedAllocation" => Arc::new(NodeResourcesBalancedAllocation::default()),
        "ImageLocality" => Arc::new(ImageLocality),
        "NodeDeclaredFeatures" => Arc::new(NodeDeclaredFeatures),
        _ => return None,
    })
}

/// The plugins of the default profile that have a part in a decision, in its order, with their score weights; a plugin
/// that scores and has no weight there gets 1, as upstream.
pub fn default_plugins() -> Vec<(Arc<dyn Plugin>, i64)> {
    let of_default = IN_TREE.iter().filter_map(|known| Some((known, known.default?)));
    let weight = |known: &InTree, weight: i64| if known.points.contains(&Point::Score) { weight.max(1) } else { 0 };
    of_default.filter_map(|(known, given)| Some((make(known.name)?, weight(known, given)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plugin::FilterPlugin;

    #[test]
    fn the_registry_and_the_plugins_agree_on_where_they_run() {
        for known in IN_TREE {
            let Some(plugin) = make(known.name) else { continue };
            assert_eq!(plugin.name(), known.name);
            assert_eq!(plugin.filter().is_some(), known.points.contains(&Point::Filter), "{}", known.name);
            assert_eq!(plugin.score().is_some(), known.points.contains(&Point::Score), "{}", known.name);
            let pre_filter = plugin.filter().is_some_and(FilterPlugin::has_pre_filter);
            assert_eq!(pre_filter, known.points.contains(&Point::PreFilter), "{}", known.name);
        }
    }

    #[test]
    fn default_weights_are_those_of_the_default_profile() {
        let weights: Vec<_> = default_plugins().iter().map(|(p, w)| (p.name(), *w)).filter(|(_, w)| *w > 0).collect();
        let expected = [
            ("TaintToleration", 3),
            ("NodeAffinity", 2),
            ("NodeResourcesFit", 1),
            ("VolumeBinding", 1),
            ("PodTopologySpread", 2),
            ("InterPodAffinity", 2),
            ("NodeResourcesBalancedAllocation", 1),
            ("ImageLocality", 1),
        ];
        assert_eq!(weights, expected);
    }
}
