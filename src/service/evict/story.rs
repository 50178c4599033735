//! The whole story of one pod: what protects it, what each strategy made of it, and where a replacement would go.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::PodName;
use crate::cluster::{Cancel, PodState, Snapshot};
use crate::engine::{self, IncomingPod, Options, message};
use crate::evict::evictor::{Evictor, Protection};
use crate::evict::limits::Budget;
use crate::evict::outcome::{LeftAlone, Outcome};
use crate::evict::policy::{PluginConfig, PluginName, PolicyProfile};
use crate::evict::reason::Reason;
use crate::evict::snapshot::{NodeId, PodId};
use crate::evict::strategies::{self, Candidate, Context, Sink, StrategyError, Verdict as SinkVerdict};
use crate::evict::{Mode, Policy, Scene};
use crate::model::{Pod, Str, Time};
use crate::service::ServiceError;
use crate::service::holds::replacement_of;
use crate::service::profiles::Profiles;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodStory {
    pub pod: Arc<Pod>,
    /// Why no strategy looks at it.
    pub not_considered: Option<NotConsidered>,
    /// By name.
    pub budgets: Vec<BudgetState>,
    /// In the order of the policy; empty for a pod that isn't considered.
    pub profiles: Vec<ProfileStory>,
    pub landing: Landing,
}

/// Why no strategy looks at a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotConsidered {
    #[error("the pod isn't bound to a node, so there is nothing to evict")]
    Unbound,
    #[error("the pod isn't seen bound yet and only holds a reservation on node {0}, so there is nothing to evict")]
    Reserved(Str),
    #[error("the pod is bound to node {0}, which isn't known")]
    UnknownNode(Str),
    #[error("node {0} of the pod isn't ready or isn't selected by the policy's nodeSelector")]
    NodeNotSelected(Str),
    #[error("the policy selects {0} ready nodes, and the descheduler does nothing with fewer than two")]
    TooFewNodes(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetState {
    pub budget: Budget,
    pub allowed: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileStory {
    pub profile: Str,
    pub protections: Vec<Protection>,
    /// What the evictor's late check has against it.
    pub pre_eviction: Option<LeftAlone>,
    /// In the order in which they run.
    pub strategies: Vec<StrategyStory>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyStory {
    pub strategy: PluginName,
    pub verdict: Verdict,
}

/// What a strategy came to about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Suggested {
        /// Its place in the plan.
        position: usize,
        reason: Reason,
    },
    LeftAlone(LeftAlone),
    /// The rule applies, and the strategy ended before the pod's turn came.
    NotReached(Reason),
    RuleDoesNotApply,
    Failed(StrategyError),
}

/// Where a replacement would go, if the pod alone were evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    On {
        node: Str,
        score: i64,
        is_source: bool,
    },
    /// In the scheduler's words, or what Berth can't judge.
    Nowhere(String),
}

/// What the story is told from.
pub(super) struct Asked<'a> {
    pub snapshot: &'a Snapshot,
    pub policy: &'a Policy,
    pub mode: Mode,
    pub profiles: &'a Profiles,
    pub now: Time,
    pub cancel: &'a AtomicBool,
}

/// The pod of a name.
///
/// # Errors
/// There is none.
pub(super) fn find(snapshot: &Snapshot, named: &PodName) -> Result<Arc<Pod>, ServiceError> {
    let namespace = if named.namespace.is_empty() { "default" } else { &named.namespace };
    let is_meant = |pod: &&Arc<Pod>| {
        let meta = &pod.meta;
        *meta.name == *named.name && *meta.namespace == *namespace && (named.uid.is_empty() || *meta.uid == *named.uid)
    };
    let missing = || {
        let uid = if named.uid.is_empty() { String::new() } else { format!(" with uid {}", named.uid) };
        ServiceError::NotFound { what: "pod", name: format!("{namespace}/{}{uid}", named.name), known: Vec::new() }
    };
    snapshot.pods().find(is_meant).cloned().ok_or_else(missing)
}

pub(super) fn tell(asked: &Asked<'_>, outcome: &Outcome, pod: Arc<Pod>) -> Result<PodStory, ServiceError> {
    let scene = Scene::of(asked.snapshot, asked.now, Cancel::new(asked.cancel));
    let nodes = scene.ready_nodes(asked.policy.node_selector.as_ref());
    let placed = placed(asked, &scene, &nodes, outcome, &pod);
    let (profiles, not_considered) = match placed {
        Ok(id) => {
            let tell = |profile| of_profile(asked, &scene, &nodes, outcome, profile, id);
            (asked.policy.profiles.iter().map(tell).collect(), None)
        }
        Err(why) => (Vec::new(), Some(why)),
    };
    let state = |budget: &crate::model::PodDisruptionBudget| BudgetState {
        budget: Budget { namespace: budget.meta.namespace.clone(), name: budget.meta.name.clone() },
        allowed: budget.disruptions_allowed,
    };
    let budgets = scene.budgets_of(&pod).map(|budget| state(budget)).collect();
    let landing = landing(asked, &pod)?;
    // What strategies and the evictor said after it was set means nothing.
    super::check(asked.cancel)?;
    Ok(PodStory { pod, not_considered, budgets, profiles, landing })
}

/// The pod among those that strategies look at, or why it isn't.
fn placed(
    asked: &Asked<'_>,
    scene: &Scene,
    nodes: &[NodeId],
    outcome: &Outcome,
    pod: &Pod,
) -> Result<PodId, NotConsidered> {
    let on = &pod.spec.node_name;
    if !pod.is_bound() {
        let reserved = asked.snapshot.reservations.of_pod(&pod.meta.uid);
        let is_reserved = asked.snapshot.state(pod) == PodState::Reserved;
        return Err(match reserved.filter(|_| is_reserved) {
            Some(reservation) => NotConsidered::Reserved(reservation.node().clone()),
            None => NotConsidered::Unbound,
        });
    }
    let node = scene.node_named(on).ok_or_else(|| NotConsidered::UnknownNode(on.clone()))?;
    if let Some(nodes) = outcome.skipped {
        return Err(NotConsidered::TooFewNodes(nodes));
    }
    if !nodes.contains(&node) {
        return Err(NotConsidered::NodeNotSelected(on.clone()));
    }
    let found = scene.node(node).pods.iter().copied().find(|id| scene.pod(*id).pod.meta.uid == pod.meta.uid);
    found.ok_or(NotConsidered::Unbound)
}

fn of_profile(
    asked: &Asked<'_>,
    scene: &Scene,
    nodes: &[NodeId],
    outcome: &Outcome,
    profile: &PolicyProfile,
    pod: PodId,
) -> ProfileStory {
    let evictor = Evictor::new(scene, &profile.evictor, asked.mode);
    let context = Context { scene, evictor: &evictor, nodes, has_metrics: asked.policy.kubernetes_metrics };
    let plugins = profile.deschedule.iter().chain(&profile.balance);
    let strategies = plugins.map(|plugin| StrategyStory {
        strategy: plugin.name(),
        verdict: of_strategy(&context, outcome, &profile.name, plugin, pod),
    });
    ProfileStory {
        profile: profile.name.clone(),
        protections: evictor.filter(pod),
        pre_eviction: evictor.pre_eviction(pod).err(),
        strategies: strategies.collect(),
    }
}

/// What the plan says; where it says nothing, whether the rule applies at all.
fn of_strategy(context: &Context<'_>, outcome: &Outcome, profile: &Str, plugin: &PluginConfig, pod: PodId) -> Verdict {
    let uid = &context.scene.pod(pod).pod.meta.uid;
    let strategy = plugin.name();
    let is_here = |by: PluginName, of: &Str| by == strategy && of == profile;
    let suggested = outcome.suggestions.iter().enumerate();
    let mut suggested = suggested.filter(|(_, s)| is_here(s.strategy, &s.profile) && s.pod.meta.uid == *uid);
    if let Some((position, suggestion)) = suggested.next() {
        return Verdict::Suggested { position, reason: suggestion.reason.clone() };
    }
    let mut left = outcome.left_alone.iter().filter(|l| is_here(l.strategy, &l.profile) && l.pod.meta.uid == *uid);
    if let Some(left) = left.next() {
        return Verdict::LeftAlone(left.why.clone());
    }
    if let Some(failure) = outcome.failures.iter().find(|f| is_here(f.strategy, &f.profile)) {
        return Verdict::Failed(failure.error.clone());
    }
    let mut probe = Probe { pod, found: None };
    match strategies::of(plugin).run(context, &mut probe) {
        Err(error) => Verdict::Failed(error),
        Ok(()) => probe.found.unwrap_or(Verdict::RuleDoesNotApply),
    }
}

/// Lets a strategy come by all its candidates, for what it says of one of them.
struct Probe {
    pod: PodId,
    found: Option<Verdict>,
}

impl Sink for Probe {
    fn consider(&mut self, candidate: Candidate) -> SinkVerdict {
        if candidate.pod == self.pod {
            self.found.get_or_insert(Verdict::NotReached(candidate.reason));
        }
        // As if a budget spoke against each: no limit is reached, and no node is relieved.
        SinkVerdict::Refused
    }

    fn leave_alone(&mut self, pod: PodId, why: LeftAlone) {
        if pod == self.pod {
            self.found.get_or_insert(Verdict::LeftAlone(why));
        }
    }
}

/// What the engine would do with a replacement if nothing else changed.
fn landing(asked: &Asked<'_>, pod: &Pod) -> Result<Landing, ServiceError> {
    let scheduler = &pod.spec.scheduler_name;
    let Some(profile) = asked.profiles.find(scheduler) else {
        return Ok(Landing::Nowhere(LeftAlone::UnknownProfile(scheduler.clone()).to_string()));
    };
    let mut view = asked.snapshot.view.clone();
    view.remove_pod(&pod.meta.uid);
    let replacement = replacement_of(pod);
    let incoming = IncomingPod::new(&replacement);
    let decision = engine::decide(&view, &incoming, &profile, &Options::default(), asked.cancel)?;
    Ok(match &decision.outcome {
        engine::Outcome::Placed { node, score, .. } => {
            Landing::On { node: node.clone(), score: *score, is_source: *node == pod.spec.node_name }
        }
        engine::Outcome::Unsupported(features) => {
            let names: Vec<String> = features.iter().map(ToString::to_string).collect();
            Landing::Nowhere(LeftAlone::Unsupported(names.join("; ").into()).to_string())
        }
        engine::Outcome::Unschedulable | engine::Outcome::Gated(_) | engine::Outcome::NoNodes => {
            Landing::Nowhere(message::fit_message(&decision).unwrap_or_default())
        }
    })
}
