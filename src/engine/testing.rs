//! What plugin tests share: a scene of nodes, bound pods and namespaces, and the verdict on a pod.
//!
//! Every verdict is reached twice, without kept counts and with them, and both must be the same.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::plugin::Plugin;
use super::{Code, Decision, Detail, IncomingPod, Options, Profile, Rejection, decide};
use crate::cluster::{PodInfo, View};
use crate::model::testing::{NodeBuilder, PodBuilder};
use crate::model::{Namespace, Object, ObjectMeta, Pod};

#[derive(Debug, Clone, Default)]
pub(crate) struct Scene {
    pub(crate) view: View,
    profile: Profile,
}

/// A cluster of these nodes and bound pods under the default profile.
pub(crate) fn scene(nodes: impl IntoIterator<Item = NodeBuilder>, pods: impl IntoIterator<Item = PodBuilder>) -> Scene {
    let mut scene = Scene::default();
    for node in nodes {
        scene.view.upsert_node(Arc::new(node.build()));
    }
    for pod in pods {
        scene.put(pod);
    }
    scene
}

/// A profile of one plugin.
pub(crate) fn only(plugin: impl Plugin + 'static) -> Profile {
    Profile::new("test".into(), 0, vec![(Arc::new(plugin), 1)])
}

impl Scene {
    pub(crate) fn put(&mut self, pod: PodBuilder) {
        assert!(self.view.add_pod(Arc::new(PodInfo::bound(Arc::new(pod.build())))), "no such node");
    }

    pub(crate) fn object(mut self, object: impl Into<Object>) -> Self {
        self.view.set_object(object.into());
        self
    }

    pub(crate) fn namespace(self, name: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().copied().collect();
        self.object(Namespace { meta: ObjectMeta { name: name.into(), labels, ..Default::default() } })
    }

    pub(crate) fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    pub(crate) fn of(view: View) -> Self {
        Self { view, ..Self::default() }
    }

    pub(crate) fn decide(&self, pod: PodBuilder) -> Verdict {
        self.decide_on_pod(&pod.build())
    }

    pub(crate) fn decide_on_pod(&self, pod: &Pod) -> Verdict {
        let walked = self.decide_on(&self.view, pod);
        let mut fork = self.view.clone();
        for key in self.profile.count_keys(&fork, pod) {
            fork.keep_counts(key);
        }
        assert_eq!(walked, self.decide_on(&fork, pod), "kept counts change the decision");
        Verdict { decision: walked, view: self.view.clone() }
    }

    fn decide_on(&self, view: &View, pod: &Pod) -> Decision {
        let options = Options { detail: Detail::Full, ..Options::default() };
        let cancel = AtomicBool::new(false);
        decide(view, &IncomingPod::new(pod), &self.profile, &options, &cancel).unwrap()
    }
}

/// A decision, read by node name.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) decision: Decision,
    view: View,
}

impl Verdict {
    /// Names of feasible nodes, sorted.
    pub(crate) fn feasible(&self) -> Vec<&str> {
        let rows = self.decision.feasible.iter().filter_map(|o| self.view.node(*o));
        let mut names: Vec<&str> = rows.map(|row| &**row.name()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn rejection(&self, node: &str) -> &Rejection {
        let ordinal = self.view.ordinal(node).unwrap();
        let mut rejected = self.decision.rejected.iter();
        rejected.find(|(o, _)| *o == ordinal).map(|(_, r)| r).unwrap_or_else(|| panic!("{node} wasn't refused"))
    }

    /// `Plugin U: text` or `Plugin UU: text` of a refused node.
    pub(crate) fn refusal(&self, node: &str) -> String {
        let rejection = self.rejection(node);
        let code = match rejection.code {
            Code::Unschedulable => "U",
            Code::UnschedulableAndUnresolvable => "UU",
        };
        format!("{} {code}: {}", rejection.plugin, rejection.message())
    }

    /// A plugin's weighted score of a feasible node; 0 where the plugin was skipped.
    pub(crate) fn score(&self, plugin: &str, node: &str) -> i64 {
        let ordinal = self.view.ordinal(node).unwrap();
        let i = self.decision.feasible.iter().position(|o| *o == ordinal).unwrap();
        let scores = self.decision.scores.as_ref().unwrap();
        scores.plugins.iter().position(|p| *p == plugin).map_or(0, |p| scores.by_plugin[p][i])
    }

    /// Whether a plugin scored at all.
    pub(crate) fn scored(&self, plugin: &str) -> bool {
        self.decision.scores.as_ref().is_some_and(|s| s.plugins.contains(&plugin))
    }
}
