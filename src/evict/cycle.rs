//! One descheduling cycle (spec section 2): the plugins of a policy in their order, and the sink that decides as the
//! descheduler and the API server would.

use std::collections::BTreeSet;

use super::Mode;
use super::evictor::Evictor;
use super::limits::{Limits, Spent};
use super::outcome::{Failure, LeftAlone, LeftAlonePod, Outcome, Suggestion};
use super::policy::{PluginConfig, PluginName, Policy, PolicyProfile};
use super::snapshot::{PodId, Scene};
use super::strategies::{self, Candidate, Context, Sink, Verdict};
use crate::engine::EngineError;
use crate::model::Str;

/// Fewer policy nodes than this, and the descheduler skips the cycle.
const MIN_NODES: usize = 2;

/// Runs a policy as the descheduler does.
///
/// # Errors
/// [`EngineError::Cancelled`], soon after the scene's flag is set.
pub fn compatible(scene: &Scene, policy: &Policy) -> Result<Outcome, EngineError> {
    let nodes = scene.ready_nodes(policy.node_selector.as_ref());
    if nodes.len() < MIN_NODES {
        check(scene)?;
        return Ok(Outcome { skipped: Some(nodes.len()), ..Outcome::default() });
    }
    let limits =
        Limits { per_node: policy.max_per_node, per_namespace: policy.max_per_namespace, total: policy.max_total };
    let mut ledger = Ledger {
        scene,
        spent: Spent::new(limits),
        gone: BTreeSet::new(),
        grace_period_seconds: policy.grace_period_seconds,
        outcome: Outcome::default(),
    };
    for (profile, plugin) in in_order(policy) {
        let evictor = Evictor::new(scene, &profile.evictor, Mode::Compatible);
        let context = Context { scene, evictor: &evictor, nodes: &nodes, has_metrics: policy.kubernetes_metrics };
        let mut turn = Turn { ledger: &mut ledger, strategy: plugin.name(), profile: &profile.name };
        let ran = strategies::of(plugin).run(&context, &mut turn);
        check(scene)?;
        // One that can't run stops no other.
        if let Err(error) = ran {
            let (strategy, profile) = (plugin.name(), profile.name.clone());
            ledger.outcome.failures.push(Failure { strategy, profile, error });
        }
    }
    Ok(ledger.outcome)
}

/// Before anything is made of what was worked out: once the flag is set that means nothing.
pub(super) fn check(scene: &Scene) -> Result<(), EngineError> {
    if scene.cancel.is_set() { Err(EngineError::Cancelled(0)) } else { Ok(()) }
}

/// All Deschedule plugins of all profiles come before any Balance plugin.
pub(super) fn in_order(policy: &Policy) -> impl Iterator<Item = (&PolicyProfile, &PluginConfig)> {
    let deschedule = policy.profiles.iter().flat_map(|p| p.deschedule.iter().map(move |plugin| (p, plugin)));
    let balance = policy.profiles.iter().flat_map(|p| p.balance.iter().map(move |plugin| (p, plugin)));
    deschedule.chain(balance)
}

/// What all plugins of a cycle share. Pods that went stay on their nodes until it ends, as in the descheduler's cache.
struct Ledger<'a> {
    scene: &'a Scene<'a>,
    spent: Spent,
    gone: BTreeSet<PodId>,
    grace_period_seconds: Option<i64>,
    outcome: Outcome,
}

/// One plugin's run.
struct Turn<'a, 'l> {
    ledger: &'l mut Ledger<'a>,
    strategy: PluginName,
    profile: &'a Str,
}

impl Sink for Turn<'_, '_> {
    fn consider(&mut self, candidate: Candidate) -> Verdict {
        let id = candidate.pod;
        let scene = self.ledger.scene;
        if scene.cancel.is_set() {
            return Verdict::TotalLimit;
        }
        if self.ledger.gone.contains(&id) {
            self.leave_alone(id, LeftAlone::AlreadySuggested);
            return Verdict::Refused;
        }
        if let Some(limit) = self.ledger.spent.limit_reached(scene, id) {
            self.leave_alone(id, LeftAlone::Limit(limit));
            return limit.verdict();
        }
        match self.ledger.spent.take(scene, id) {
            Err(why) => {
                self.leave_alone(id, why);
                Verdict::Refused
            }
            Ok(budgets) => {
                self.ledger.gone.insert(id);
                let pod = scene.pod(id);
                self.ledger.outcome.suggestions.push(Suggestion {
                    pod: pod.pod.clone(),
                    node: scene.node(pod.node).node.meta.name.clone(),
                    strategy: self.strategy,
                    profile: self.profile.clone(),
                    reason: candidate.reason,
                    grace_period_seconds: self.ledger.grace_period_seconds,
                    not_before: candidate.not_before,
                    budgets,
                    landing: None,
                    gain: None,
                });
                Verdict::Evicted
            }
        }
    }

    fn leave_alone(&mut self, pod: PodId, why: LeftAlone) {
        let scene = self.ledger.scene;
        let subject = scene.pod(pod);
        self.ledger.outcome.left_alone.push(LeftAlonePod {
            pod: subject.pod.clone(),
            node: scene.node(subject.node).node.meta.name.clone(),
            strategy: self.strategy,
            profile: self.profile.clone(),
            why,
        });
    }
}
