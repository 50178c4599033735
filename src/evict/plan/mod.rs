//! PLANNED mode: only moves that are proven to land (docs/architecture.md, "Evictions").
//!
//! A plan is drafted on a fork. Each candidate of a strategy is taken off the fork, the engine says where its replacement
//! goes with the source free to be chosen, and if that is another node and what the strategy [measures](measure) gets less
//! by it, without getting more of what an earlier strategy measures, the move is played on the fork at once. The next
//! candidate sees it.
//!
//! The finished draft is then played on: what would the same request suggest next, and after that, until nothing is left?
//! A pod whose replacement would be moved again is barred, and the draft made anew. So no pod moves twice, in however many
//! requests, as long as nothing else changes. The look ahead has an [allowance](LOOK_AHEAD); a plan says how far it saw.
//!
//! Promises: pure, deterministic, the given snapshot stays as it is. Every decision goes through [`engine::decide`].

mod anti_affinity;
mod draft;
mod duplicates;
mod high;
mod low;
mod measure;
mod rules;
mod spread;
mod stage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use self::draft::{Draft, Drafted, Refused};
use self::measure::Tracker;
use self::rules::Violations;
use self::stage::Stage;
use super::cycle::{check, in_order};
use super::evictor::Evictor;
use super::outcome::{Failure, Gain, LookAhead, Measured, Outcome};
use super::policy::{NodeAffinityType, PluginConfig, PluginName, Policy, PolicyProfile};
use super::snapshot::{NodeId, PodId, Scene};
use super::strategies::{self, Context, Strategy, StrategyError};
use super::{Mode, ProfileOf};
use crate::cluster::counts::CountKey;
use crate::cluster::{Cancel, View};
use crate::engine::{EngineError, Profile};
use crate::model::{Pod, Str};

/// How much a look ahead may cost: so many nodes asked about (a decision over 1,000 nodes asks 1,000), which is about a
/// second on a machine of 2026. A big cluster with hundreds of moves, and budgets that hold back as many, comes to it.
const LOOK_AHEAD: usize = 5_000_000;
/// And so many decisions, however small the cluster: 20,000 random ones with up to 30 pods needed 388 at the most.
const MOST_DECISIONS: usize = 20_000;

/// A draft walks over all pods, whether it asks about them or not: so many cost as much as a decision.
const PODS_A_DECISION: usize = 60;
/// Each round that is looked at keeps a copy of what strategies read.
const MOST_ROUNDS: usize = 100;

/// Something that pods are moved for: a plugin, or one of the types of RemovePodsViolatingNodeAffinity.
struct Rule<'a> {
    strategy: PluginName,
    profile: &'a PolicyProfile,
    work: Work<'a>,
    /// It asks for a fresh pod, wherever that lands.
    wants_fresh_pods: bool,
}

enum Work<'a> {
    /// As the descheduler, pod by pod.
    ByPod(&'a dyn Strategy),
    NodeAffinity,
    AntiAffinity,
    Duplicates,
    Low,
    High,
    Spread,
    Failed(StrategyError),
}

/// What all drafts of a request share.
struct Planner<'a> {
    policy: &'a Policy,
    rules: Vec<Rule<'a>>,
    nodes: Rc<[NodeId]>,
    /// By pod: its place among equals.
    ranks: Vec<usize>,
    /// By pod: what it has in common with its replacements and with its like, as a number.
    kinds: Vec<usize>,
    profiles: &'a ProfileOf<'a>,
    known_profiles: BTreeMap<Str, Option<Arc<Profile>>>,
    cancel: Cancel<'a>,
    /// Kinds of pods that were decided on before.
    decided: BTreeSet<usize>,
    /// What decisions count: a fork that keeps count decides in a fraction of the time.
    counted: Vec<CountKey>,
    decisions: usize,
    /// Of walking over pods, in decisions.
    cost: usize,
    /// The look ahead ends when decisions and cost come to so many; None: the first draft isn't made yet.
    allowance: Option<usize>,
}

/// A request to come, or the one that was made.
struct Round<'a> {
    start: Stage<'a>,
    barred: BTreeSet<PodId>,
    known: Refused,
}

impl<'a> Round<'a> {
    fn new(start: Stage<'a>) -> Self {
        Self { start, barred: BTreeSet::new(), known: Refused::new() }
    }
}

/// A draft that holds, and what comes after it.
struct Settled<'a> {
    draft: Drafted<'a>,
    /// All pods that move now or later, or might instead of one that is like them.
    moving: BTreeSet<PodId>,
    ahead: LookAhead,
}

/// Plans the moves of one request.
///
/// # Errors
/// The engine's own, and [`EngineError::Cancelled`].
pub(super) fn plan(
    scene: Scene,
    view: View,
    policy: &Policy,
    profiles: &ProfileOf<'_>,
) -> Result<Outcome, EngineError> {
    let nodes: Rc<[NodeId]> = scene.ready_nodes(policy.node_selector.as_ref()).into();
    let (rules, trackers) = rules(&scene, policy, &nodes);
    let (ranks, kinds) = ranks(&scene);
    check(&scene)?;
    let mut planner = Planner {
        policy,
        rules,
        nodes,
        ranks,
        kinds,
        profiles,
        known_profiles: BTreeMap::new(),
        cancel: scene.cancel,
        decided: BTreeSet::new(),
        counted: Vec::new(),
        decisions: 0,
        cost: 0,
        allowance: None,
    };
    let before: Vec<i64> = trackers.iter().map(Tracker::value).collect();
    let settled = planner.settle(Stage { scene, view, trackers })?;
    let after = &settled.draft.stage.trackers;
    let measured = |(rule, i): (&Rule<'_>, usize)| Measured {
        strategy: rule.strategy,
        profile: rule.profile.name.clone(),
        gain: Gain { metric: after[i].metric(), before: before[i], after: after[i].value() },
    };
    let ran = |(rule, _): &(&Rule<'_>, usize)| !matches!(rule.work, Work::Failed(_));
    let measures = planner.rules.iter().zip(0..).filter(ran).map(measured).collect();
    let failures = planner.rules.iter().filter_map(|rule| match &rule.work {
        Work::Failed(error) => {
            Some(Failure { strategy: rule.strategy, profile: rule.profile.name.clone(), error: error.clone() })
        }
        _ => None,
    });
    Ok(Outcome {
        failures: failures.collect(),
        suggestions: settled.draft.suggestions,
        left_alone: settled.draft.left_alone,
        skipped: None,
        measures,
        look_ahead: Some(settled.ahead),
        decisions: planner.decisions,
    })
}

/// The order of pods by owner and labels before names, and the numbers of those kinds: a replacement has the owner and the
/// labels of its predecessor, and a name that nobody can foresee.
fn ranks(scene: &Scene) -> (Vec<usize>, Vec<usize>) {
    // In a map, which can be given up halfway, unlike a sort.
    let mut by_kind = BTreeMap::<(&Str, Vec<&Str>, Vec<(&Str, &Str)>), Vec<PodId>>::new();
    for id in scene.cancel.guard(scene.pods()) {
        let meta = &scene.pod(id).pod.meta;
        let owners = meta.owners.iter().map(|owner| &owner.uid).collect();
        by_kind.entry((&meta.namespace, owners, meta.labels.iter().collect())).or_default().push(id);
    }
    let pods = scene.pods().count();
    let (mut ranks, mut kinds) = (vec![0; pods], vec![0; pods]);
    let mut rank = 0;
    for ids in by_kind.values() {
        let first = rank;
        for id in ids {
            (ranks[id.index()], kinds[id.index()]) = (rank, first);
            rank += 1;
        }
    }
    (ranks, kinds)
}

/// The rules of a policy in their order, each with what it measures.
fn rules<'a>(scene: &Scene, policy: &'a Policy, nodes: &[NodeId]) -> (Vec<Rule<'a>>, Vec<Tracker<'a>>) {
    let mut rules = Vec::new();
    let mut trackers = Vec::new();
    for (profile, plugin) in scene.cancel.guard(in_order(policy)) {
        let evictor = Evictor::new(scene, &profile.evictor, Mode::Planned);
        let context = Context { scene, evictor: &evictor, nodes, has_metrics: policy.kubernetes_metrics };
        for (work, tracker) in work_of(plugin, &context) {
            let strategy = plugin.name();
            let wants_fresh_pods = matches!(
                strategy,
                PluginName::PodLifeTime | PluginName::RemovePodsHavingTooManyRestarts | PluginName::RemoveFailedPods
            );
            rules.push(Rule { strategy, profile, work, wants_fresh_pods });
            trackers.push(tracker);
        }
    }
    (rules, trackers)
}

fn work_of<'a>(plugin: &'a PluginConfig, context: &Context<'_>) -> Vec<(Work<'a>, Tracker<'a>)> {
    let (scene, nodes) = (context.scene, context.nodes);
    let violations = |rule: rules::Rule<'a>| Tracker::Violations(Violations::new(rule, scene, nodes));
    let by_pod = |rule| vec![(Work::ByPod(strategies::of(plugin)), violations(rule))];
    match plugin {
        PluginConfig::RemovePodsViolatingNodeTaints(args) => by_pod(rules::Rule::NodeTaints(args)),
        PluginConfig::RemovePodsViolatingNoExecuteTaints(args) => by_pod(rules::Rule::NoExecuteTaints(args)),
        PluginConfig::RemovePodsHavingTooManyRestarts(args) => by_pod(rules::Rule::TooManyRestarts(args)),
        PluginConfig::PodLifeTime(args) => by_pod(rules::Rule::LifeTime(args)),
        PluginConfig::RemoveFailedPods(args) => by_pod(rules::Rule::Failed(args)),
        PluginConfig::RemovePodsViolatingNodeAffinity(args) => {
            let rule = |kind: &NodeAffinityType| match kind {
                NodeAffinityType::Required => rules::Rule::RequiredNodeAffinity(args),
                NodeAffinityType::Preferred => rules::Rule::PreferredNodeAffinity(args),
            };
            args.types.iter().map(|kind| (Work::NodeAffinity, violations(rule(kind)))).collect()
        }
        PluginConfig::RemovePodsViolatingInterPodAntiAffinity(args) => {
            let tracker = anti_affinity::AntiAffinity::new(args, scene, nodes);
            vec![(Work::AntiAffinity, Tracker::AntiAffinity(tracker))]
        }
        PluginConfig::RemoveDuplicates(args) => {
            vec![(Work::Duplicates, Tracker::Duplicates(duplicates::Duplicates::new(args, scene, nodes)))]
        }
        PluginConfig::RemovePodsViolatingTopologySpreadConstraint(args) => {
            vec![(Work::Spread, Tracker::Spread(spread::Spread::new(args, scene, nodes)))]
        }
        PluginConfig::HighNodeUtilization(args) => {
            vec![(Work::High, Tracker::Packing(high::Packing::new(args, scene, nodes)))]
        }
        PluginConfig::LowNodeUtilization(args) => vec![match low::Load::new(args, context) {
            Ok(load) => (Work::Low, Tracker::Load(load)),
            Err(error) => (Work::Failed(error), Tracker::Failed),
        }],
    }
}

impl<'a> Planner<'a> {
    fn profile(&mut self, name: &Str) -> Option<Arc<Profile>> {
        if !self.known_profiles.contains_key(name) {
            let profile = (self.profiles)(name);
            self.known_profiles.insert(name.clone(), profile);
        }
        self.known_profiles.get(name).cloned().flatten()
    }

    /// Sees to it that the counts which decisions on pods of a kind read are kept.
    fn keep_counts(&mut self, view: &mut View, kind: usize, pod: &Pod, profile: &Profile) {
        if !self.decided.insert(kind) {
            return;
        }
        let keys = profile.count_keys(view, pod);
        view.keep_all_counts(keys.iter().cloned(), self.cancel);
        self.counted.extend(keys);
    }

    /// Drafts until none of the moves is followed by another of the same pod.
    ///
    /// What a later request would suggest is settled in the same way, before this one: rounds are a stack, from this request
    /// to the furthest that is looked at. On the heap, since there may be more of them than a thread's stack holds.
    fn settle(&mut self, start: Stage<'a>) -> Result<Settled<'a>, EngineError> {
        let mut drafted: Vec<(Round<'a>, Drafted<'a>)> = Vec::new();
        let mut round = Round::new(start);
        loop {
            let draft = self.draft(&mut round, drafted.is_empty())?;
            let is_dry = draft.order.is_empty();
            if !is_dry && !self.has_seen_enough() && drafted.len() < MOST_ROUNDS {
                let next = Round::new(self.played(&draft));
                drafted.push((round, draft));
                round = next;
                continue;
            }
            let moving = draft.moving.clone();
            let mut settled = Settled { draft, moving, ahead: LookAhead { rounds: 0, complete: is_dry } };
            // Whoever waits for this round learns of it, up to the first that has to be drafted anew.
            round = loop {
                let Some((mut earlier, draft)) = drafted.pop() else { return Ok(settled) };
                let mut again = draft.order.clone();
                again.retain(|id| settled.moving.contains(id));
                let enough = self.has_seen_enough();
                if again.is_empty() || (enough && !drafted.is_empty()) {
                    let Settled { mut moving, ahead, .. } = settled;
                    moving.extend(&draft.moving);
                    let complete = ahead.complete && again.is_empty();
                    settled = Settled { draft, moving, ahead: LookAhead { rounds: ahead.rounds + 1, complete } };
                    continue;
                }
                if enough {
                    // The last draft of all: it can't try, nor ask everything again.
                    earlier.barred.extend(again);
                    earlier.known = draft.refused;
                } else {
                    // The later ones of them first: with fewer moves the others may be right.
                    earlier.barred.extend(&again[again.len() / 2..]);
                }
                break earlier;
            };
        }
    }

    fn draft(&mut self, round: &mut Round<'a>, is_asked_for: bool) -> Result<Drafted<'a>, EngineError> {
        check(&round.start.scene)?;
        round.start.view.keep_all_counts(self.counted.iter().cloned(), self.cancel);
        let draft = Draft::run(self, &round.start, &round.barred, &round.known, is_asked_for)?;
        let pods = round.start.scene.pods().count();
        self.cost = self.cost.saturating_add(pods / PODS_A_DECISION);
        let nodes = round.start.view.node_count().max(1);
        let allowance = (LOOK_AHEAD / nodes).min(MOST_DECISIONS);
        let spent = self.decisions.saturating_add(self.cost);
        self.allowance.get_or_insert(spent.saturating_add(allowance));
        Ok(draft)
    }

    /// Whether the look ahead is at its end.
    fn has_seen_enough(&self) -> bool {
        self.allowance.is_some_and(|allowance| self.decisions.saturating_add(self.cost) >= allowance)
    }

    /// The cluster as the next request would find it, with the draft carried out and nothing else changed.
    fn played(&self, draft: &Drafted<'a>) -> Stage<'a> {
        let mut stage = draft.stage.clone();
        for (budget, healthy) in &draft.credits {
            stage.scene.credit_budget(&budget.namespace, &budget.name, *healthy);
        }
        // What nodes and pods report of their usage stays as it was.
        let is_reported = |tracker: &Tracker<'_>| matches!(tracker, Tracker::Load(load) if load.is_reported());
        if stage.trackers.iter().any(is_reported) {
            let (_, anew) = rules(&stage.scene, self.policy, &self.nodes);
            for (tracker, anew) in stage.trackers.iter_mut().zip(anew) {
                if is_reported(tracker) {
                    *tracker = anew;
                }
            }
        }
        stage
    }
}
