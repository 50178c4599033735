//! What plugin tests share: a view built from objects, and a decision on it by the default profile.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::plugin::PreFilter;
use super::{Cancel, Code, Decision, Detail, EngineError, IncomingPod, Options, Profile, Rejection, decide, message};
use crate::cluster::{PodInfo, View};
use crate::engine::Cycle;
use crate::model::Object;
use crate::model::testing::{NodeBuilder, PodBuilder};

/// Objects come before nodes and pods, as good as any order.
pub(crate) fn view_of(nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>, objects: Vec<Object>) -> View {
    let mut view = View::default();
    for object in objects {
        view.set_object(object);
    }
    for node in nodes {
        view.upsert_node(Arc::new(node.build()));
    }
    for pod in pods {
        assert!(view.add_pod(Arc::new(PodInfo::bound(Arc::new(pod.build())))), "a pod without its node");
    }
    view
}

pub(crate) fn try_decide(view: &View, pod: PodBuilder) -> Result<Decision, EngineError> {
    let pod = pod.build();
    let options = Options { detail: Detail::Full, ..Options::default() };
    decide(view, &IncomingPod::new(&pod), &Profile::default(), &options, &AtomicBool::new(false))
}

pub(crate) fn decision(view: &View, pod: PodBuilder) -> Decision {
    try_decide(view, pod).unwrap()
}

/// Names of the nodes that pass every filter, sorted.
pub(crate) fn feasible(view: &View, pod: PodBuilder) -> Vec<String> {
    let decision = decision(view, pod);
    let rows = decision.feasible.iter().filter_map(|ordinal| view.node(*ordinal));
    let mut names: Vec<String> = rows.map(|row| row.name().to_string()).collect();
    names.sort();
    names
}

/// Plugin, code and texts of a node's refusal, or of the whole pod's.
pub(crate) fn refusal(view: &View, pod: PodBuilder, node: &str) -> Option<(&'static str, Code, Vec<String>)> {
    let decision = decision(view, pod);
    let ordinal = view.ordinal(node);
    let of_node = decision.rejected.iter().find(|(o, _)| Some(*o) == ordinal).map(|(_, r)| r);
    let rejection: &Rejection = decision.pre_filter.as_ref().or(of_node)?;
    Some((rejection.plugin, rejection.code, rejection.reasons.iter().map(ToString::to_string).collect()))
}

pub(crate) fn fit_message(view: &View, pod: PodBuilder) -> String {
    message::fit_message(&decision(view, pod)).unwrap_or_default()
}

/// Hands the prepared filter of one plugin of the default profile to a test; None when it skips or refuses the pod.
pub(crate) fn prepared<T>(view: &View, pod: PodBuilder, plugin: &str, test: impl FnOnce(PreFilter<'_>) -> T) -> T {
    let pod = pod.build();
    let pod = IncomingPod::new(&pod);
    let profile = Profile::default();
    let plugin = profile.filters().find(|p| p.name() == plugin).and_then(|p| p.filter()).unwrap();
    test(plugin.prepare(&Cycle::new(view, &pod, &profile, Cancel::never())))
}
