//! One run of all strategies over a stage, each move played as soon as it is decided on.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::measure::Tracker;
use super::stage::{Move, Played, Stage, replacement};
use super::{Planner, Work, anti_affinity, duplicates, high, low, spread};
use crate::cluster::{Ordinal, PodInfo, VolumeBinding};
use crate::engine::{self, EngineError, IncomingPod, Options, message};
use crate::evict::Mode;
use crate::evict::cycle::check;
use crate::evict::evictor::{Evictor, Protection, prefers_no_eviction};
use crate::evict::limits::{Budget, Limits, Spent};
use crate::evict::node_fit::Unfits;
use crate::evict::outcome::{Gain, Landing, LeftAlone, LeftAlonePod, NoGain, Suggestion};
use crate::evict::snapshot::{NodeId, PodId, Qos, Scene, is_healthy};
use crate::evict::strategies::{Candidate, Context, Sink, Verdict};
use crate::model::{Str, Time};

pub(super) use crate::evict::strategies::Flow;

/// What came of a run.
pub(super) struct Drafted<'a> {
    /// With all moves played.
    pub(super) stage: Stage<'a>,
    /// In which order pods move.
    pub(super) order: Vec<PodId>,
    /// They, and replacements that might have been taken for one of them: which of several of one kind and age is first
    /// goes by their names, and those of replacements aren't known yet.
    pub(super) moving: BTreeSet<PodId>,
    /// What the engine was asked for in vain, by rule.
    pub(super) refused: Refused,
    pub(super) suggestions: Vec<Suggestion>,
    pub(super) left_alone: Vec<LeftAlonePod>,
    /// Unhealthy pods that were replaced, by the budget over them.
    pub(super) credits: BTreeMap<Budget, i32>,
}

pub(super) type Refused = BTreeMap<(usize, PodId), LeftAlone>;

pub(super) struct Draft<'d, 'a> {
    planner: &'d mut Planner<'a>,
    /// As it was at the start. A pod that hasn't moved is still as it stands here.
    base: &'d Scene<'a>,
    /// One a rule.
    evictors: Rc<Vec<Evictor<'d>>>,
    pub(super) stage: Stage<'a>,
    spent: Spent,
    moved: BTreeSet<PodId>,
    order: Vec<PodId>,
    moving: BTreeSet<PodId>,
    barred: &'d BTreeSet<PodId>,
    /// Not to be asked for again.
    known: &'d Refused,
    refused: Refused,
    /// Healthy pods that stay where they are, by the uid of their owner.
    replicas: BTreeMap<Str, u64>,
    credits: BTreeMap<Budget, i32>,
    suggestions: Vec<Suggestion>,
    left_alone: Vec<LeftAlonePod>,
    /// Whether anybody reads why pods are left alone.
    tells: bool,
}

/// A move that is as good as made: its pod is off the view.
struct Ready {
    moved: Move,
    lifted: Option<Arc<PodInfo>>,
    bindings: Vec<VolumeBinding>,
    landing: Landing,
    gain: Gain,
}

impl<'d, 'a> Draft<'d, 'a> {
    /// Runs all rules. Pods in `barred` don't move, nor does what is `known` to be refused.
    pub(super) fn run(
        planner: &'d mut Planner<'a>,
        start: &'d Stage<'a>,
        barred: &'d BTreeSet<PodId>,
        known: &'d Refused,
        tells: bool,
    ) -> Result<Drafted<'a>, EngineError> {
        let policy = planner.policy;
        let limits =
            Limits { per_node: policy.max_per_node, per_namespace: policy.max_per_namespace, total: policy.max_total };
        let evictor = |rule: &super::Rule<'a>| Evictor::new(&start.scene, &rule.profile.evictor, Mode::Planned);
        let evictors = planner.rules.iter().map(evictor).collect();
        let mut draft = Self {
            planner,
            base: &start.scene,
            evictors: Rc::new(evictors),
            stage: start.clone(),
            spent: Spent::new(limits),
            moved: BTreeSet::new(),
            order: Vec::new(),
            moving: BTreeSet::new(),
            barred,
            known,
            refused: Refused::new(),
            replicas: BTreeMap::new(),
            credits: BTreeMap::new(),
            suggestions: Vec::new(),
            left_alone: Vec::new(),
            tells,
        };
        draft.count_replicas();
        for rule in 0..draft.planner.rules.len() {
            draft.run_rule(rule)?;
            draft.check()?;
        }
        let Self { stage, order, moving, refused, suggestions, left_alone, credits, .. } = draft;
        Ok(Drafted { stage, order, moving, refused, suggestions, left_alone, credits })
    }

    /// Before anything is made of what was looked at: once the flag is set that means nothing.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        check(self.base)
    }

    fn count_replicas(&mut self) {
        let min_replicas = |rule: &super::Rule<'a>| rule.profile.evictor.min_replicas > 1;
        if !self.planner.rules.iter().any(min_replicas) {
            return;
        }
        for id in self.base.pods() {
            let pod = &self.base.pod(id).pod;
            if is_healthy(pod) && !pod.meta.is_terminating() {
                for owner in &pod.meta.owners {
                    *self.replicas.entry(owner.uid.clone()).or_default() += 1;
                }
            }
        }
    }

    fn run_rule(&mut self, rule: usize) -> Result<(), EngineError> {
        match self.planner.rules[rule].work {
            Work::Failed(_) => Ok(()),
            Work::ByPod(strategy) => {
                let (evictors, nodes) = (self.evictors.clone(), self.planner.nodes.clone());
                let has_metrics = self.planner.policy.kubernetes_metrics;
                let context = Context { scene: self.base, evictor: &evictors[rule], nodes: &nodes, has_metrics };
                let mut turn = Turn { draft: self, rule, error: None };
                // Only those that read metrics can fail, and they aren't among these.
                let ran = strategy.run(&context, &mut turn);
                debug_assert_eq!(ran, Ok(()));
                turn.error.map_or(Ok(()), Err)
            }
            Work::NodeAffinity => self.propose_by_affinity(rule),
            Work::AntiAffinity => anti_affinity::propose(self, rule),
            Work::Duplicates => duplicates::propose(self, rule),
            Work::Low => low::propose(self, rule),
            Work::High => high::propose(self, rule),
            Work::Spread => spread::propose(self, rule),
        }
    }

    fn propose_by_affinity(&mut self, rule: usize) -> Result<(), EngineError> {
        let nodes = self.planner.nodes.clone();
        for node in nodes.iter() {
            let mut pods = self.base.node(*node).active.clone();
            pods.retain(|id| !self.moved.contains(id));
            pods.sort_by_key(|id| self.age_order(*id));
            for id in pods {
                let Tracker::Violations(violations) = &self.stage.trackers[rule] else { return Ok(()) };
                let reason = violations.affinity_reason(self.base, id);
                self.check()?;
                let Some(reason) = reason else { continue };
                if !self.admits(rule, id) {
                    continue;
                }
                match self.consider(rule, Candidate::new(id, reason))? {
                    Flow::Next => {}
                    Flow::NextNode => break,
                    Flow::Stop => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// The eviction order of spec section 8.1; of equals those that ran longest go first, so that a pod that has just moved
    /// is the last to move again.
    pub(super) fn importance(&self, id: PodId) -> (Option<i32>, Qos, bool, Option<Time>, usize) {
        let subject = self.stage.scene.pod(id);
        let pod = &subject.pod;
        let (created, rank) = self.age_order(id);
        (pod.spec.priority, subject.qos, prefers_no_eviction(pod), created, rank)
    }

    pub(super) fn age_order(&self, id: PodId) -> (Option<Time>, usize) {
        (self.stage.scene.pod(id).pod.meta.created, self.planner.ranks[id.index()])
    }

    pub(super) fn moves(&self) -> u64 {
        u64::try_from(self.moved.len()).unwrap_or(u64::MAX)
    }

    /// The evictor's checks, but for where the pod would go.
    pub(super) fn admits(&mut self, rule: usize, id: PodId) -> bool {
        match self.evictors[rule].admits(id) {
            Ok(()) => true,
            Err(why) => {
                self.leave_alone(rule, id, why);
                false
            }
        }
    }

    pub(super) fn leave_alone(&mut self, rule: usize, id: PodId, why: LeftAlone) {
        if !self.tells {
            return;
        }
        let subject = self.base.pod(id);
        let rule = &self.planner.rules[rule];
        self.left_alone.push(LeftAlonePod {
            pod: subject.pod.clone(),
            node: self.base.node(subject.node).node.meta.name.clone(),
            strategy: rule.strategy,
            profile: rule.profile.name.clone(),
            why,
        });
    }

    /// Moves a candidate if all is well with it.
    pub(super) fn consider(&mut self, rule: usize, candidate: Candidate) -> Result<Flow, EngineError> {
        self.evaluate(rule, candidate).map(Flow::after)
    }

    fn evaluate(&mut self, rule: usize, candidate: Candidate) -> Result<Verdict, EngineError> {
        let id = candidate.pod;
        check(self.base)?;
        if let Err(why) = self.may_move(id) {
            self.leave_alone(rule, id, why);
            return Ok(Verdict::Refused);
        }
        if let Some(limit) = self.spent.limit_reached(self.base, id) {
            self.leave_alone(rule, id, LeftAlone::Limit(limit));
            return Ok(limit.verdict());
        }
        if let Err(why) = self.leaves_enough_replicas(rule, id) {
            self.leave_alone(rule, id, why);
            return Ok(Verdict::Refused);
        }
        let budgets = match self.spent.allows(self.base, id) {
            Ok(budgets) => budgets,
            Err(why) => {
                self.leave_alone(rule, id, why);
                return Ok(Verdict::Refused);
            }
        };
        if let Some(why) = self.known.get(&(rule, id)) {
            self.leave_alone(rule, id, why.clone());
            return Ok(Verdict::Refused);
        }
        match self.prepare(rule, id)? {
            Err(why) => {
                if self.tells {
                    self.refused.insert((rule, id), why.clone());
                }
                self.leave_alone(rule, id, why);
                Ok(Verdict::Refused)
            }
            Ok(ready) => {
                self.commit(rule, candidate, budgets, ready);
                Ok(Verdict::Evicted)
            }
        }
    }

    fn may_move(&self, id: PodId) -> Result<(), LeftAlone> {
        if self.moved.contains(&id) {
            return Err(LeftAlone::AlreadySuggested);
        }
        if self.barred.contains(&id) { Err(LeftAlone::WouldMoveAgain) } else { Ok(()) }
    }

    /// `minReplicas` over healthy pods that nobody has suggested yet.
    fn leaves_enough_replicas(&self, rule: usize, id: PodId) -> Result<(), LeftAlone> {
        let Some((owner, min)) = self.evictors[rule].min_replicas(&self.base.pod(id).pod) else { return Ok(()) };
        let replicas = self.replicas.get(&owner).copied().unwrap_or(0);
        if replicas < min { Err(LeftAlone::Protected(vec![Protection::MinReplicas { replicas, min }])) } else { Ok(()) }
    }

    /// Asks the engine for the landing, and all rules that have a say for their opinion. On success the pod is off the view.
    fn prepare(&mut self, rule: usize, id: PodId) -> Result<Result<Ready, LeftAlone>, EngineError> {
        let subject = self.stage.scene.pod(id);
        let (old, from) = (subject.pod.clone(), subject.node);
        let scheduler = &old.spec.scheduler_name;
        let Some(profile) = self.planner.profile(scheduler) else {
            return Ok(Err(LeftAlone::UnknownProfile(scheduler.clone())));
        };
        let fresh = replacement(&old, self.base.now);
        self.planner.keep_counts(&mut self.stage.view, self.planner.kinds[id.index()], &fresh, &profile);
        let lifted = self.stage.lift(id);
        self.planner.decisions += 1;
        let incoming = IncomingPod::new(&fresh);
        let decision =
            engine::decide(&self.stage.view, &incoming, &profile, &Options::default(), self.planner.cancel.flag())?;
        let (node, score) = match &decision.outcome {
            engine::Outcome::Placed { node, score, .. } => (node.clone(), *score),
            outcome => {
                let why = match outcome {
                    engine::Outcome::Unsupported(features) => {
                        let names: Vec<String> = features.iter().map(ToString::to_string).collect();
                        LeftAlone::Unsupported(names.join("; ").into())
                    }
                    _ => LeftAlone::NoLanding {
                        message: message::fit_message(&decision).filter(|_| self.tells).unwrap_or_default().into(),
                    },
                };
                self.stage.put_back(lifted);
                return Ok(Err(why));
            }
        };
        let judged = match self.stage.scene.node_named(&node) {
            // The view has no node that the scene doesn't have.
            None => Err(LeftAlone::NoLanding { message: Str::default() }),
            Some(to) => {
                let fits_elsewhere = decision.feasible.iter().any(|o| self.is_way_out(rule, *o, from));
                let mut new = fresh;
                new.spec.node_name = node.clone();
                let moved = Move { id, old, from, new: Arc::new(new), to };
                let judged = self.judge(rule, &moved, &node);
                self.check()?;
                match judged {
                    Ok(_) if !fits_elsewhere => Err(LeftAlone::NoNodeFits(Unfits::default())),
                    judged => judged.map(|gain| (moved, gain)),
                }
            }
        };
        Ok(match judged {
            Ok((moved, gain)) => {
                let landing = Landing { node, score, is_source: moved.to == moved.from };
                Ok(Ready { moved, lifted, bindings: decision.bindings, landing, gain })
            }
            Err(why) => {
                self.stage.put_back(lifted);
                Err(why)
            }
        })
    }

    /// With `nodeFit` there must be another node, even for a pod that may come back to its own.
    fn is_way_out(&self, rule: usize, ordinal: Ordinal, from: NodeId) -> bool {
        if !self.planner.rules[rule].profile.evictor.node_fit {
            return true;
        }
        let row = self.stage.view.node(ordinal);
        let node = row.and_then(|row| self.stage.scene.node_named(row.name()));
        node.is_some_and(|node| node != from && self.evictors[rule].takes_landing(node))
    }

    fn judge(&self, rule: usize, moved: &Move, landing: &Str) -> Result<Gain, LeftAlone> {
        let no_gain = |why: NoGain| LeftAlone::NoGain { landing: landing.clone(), why };
        let (scene, trackers) = (&self.stage.scene, &self.stage.trackers);
        if moved.to == moved.from && !self.planner.rules[rule].wants_fresh_pods {
            return Err(LeftAlone::ReturnedToSource);
        }
        if moved.to != moved.from && !self.evictors[rule].takes_landing(moved.to) {
            return Err(no_gain(NoGain::NotSelected));
        }
        if let Some(why) = trackers[rule].objection(scene, moved) {
            return Err(no_gain(why));
        }
        let before = trackers[rule].value();
        let change = trackers[rule].change(scene, moved);
        if change >= 0 {
            let fresh = self.planner.rules[rule].wants_fresh_pods;
            return Err(no_gain(if fresh { NoGain::StillViolates } else { NoGain::NotBetter }));
        }
        let undoes = |earlier: &usize| trackers[*earlier].change(scene, moved) > 0;
        if let Some(earlier) = (0..rule).find(undoes) {
            let strategy = self.planner.rules[earlier].strategy;
            return Err(LeftAlone::Undoes { landing: landing.clone(), strategy });
        }
        Ok(Gain { metric: trackers[rule].metric(), before, after: before + change })
    }

    fn commit(&mut self, rule: usize, candidate: Candidate, budgets: Vec<Budget>, ready: Ready) {
        let id = candidate.pod;
        let pod = self.base.pod(id).pod.clone();
        self.spent.count(self.base, id, &budgets);
        if is_healthy(&pod) {
            for owner in &pod.meta.owners {
                if let Some(replicas) = self.replicas.get_mut(&owner.uid) {
                    *replicas = replicas.saturating_sub(1);
                }
            }
        } else if let [budget] = &self.base.budgets_of(&pod).collect::<Vec<_>>()[..] {
            *self.credits.entry(Budget::of(budget)).or_default() += 1;
        }
        let Ready { moved, lifted, bindings, landing, gain } = ready;
        let from = moved.from;
        self.note_moving(rule, id, from);
        self.stage.play(lifted, moved, bindings);
        self.moved.insert(id);
        self.order.push(id);
        let spec = &self.planner.rules[rule];
        self.suggestions.push(Suggestion {
            pod,
            node: self.base.node(from).node.meta.name.clone(),
            strategy: spec.strategy,
            profile: spec.profile.name.clone(),
            reason: candidate.reason,
            grace_period_seconds: self.planner.policy.grace_period_seconds,
            not_before: candidate.not_before,
            budgets,
            landing: Some(landing),
            gain: Some(gain),
        });
    }

    fn note_moving(&mut self, rule: usize, id: PodId, from: NodeId) {
        self.moving.insert(id);
        let scene = &self.stage.scene;
        let created = scene.pod(id).pod.meta.created;
        if created != Some(scene.now) {
            return;
        }
        let like = |other: &PodId| {
            self.planner.kinds[other.index()] == self.planner.kinds[id.index()]
                && scene.pod(*other).pod.meta.created == created
        };
        // Some strategies choose among the pods of one node, others among all.
        match self.planner.rules[rule].work {
            Work::AntiAffinity | Work::Spread => self.moving.extend(scene.pods().filter(like)),
            _ => self.moving.extend(scene.node(from).active.iter().copied().filter(like)),
        }
    }

    /// Plays the moves of some pods one after the other, whatever limits say, and takes them back: the first pod that
    /// would not move, if any.
    pub(super) fn first_that_stays(&mut self, rule: usize, pods: &[PodId]) -> Result<Option<PodId>, EngineError> {
        let mut played: Vec<Played> = Vec::with_capacity(pods.len());
        let mut stays = None;
        for id in pods {
            let tried = match self.may_move(*id) {
                Err(why) => Err(why),
                Ok(()) => self.prepare(rule, *id)?,
            };
            match tried {
                Ok(ready) => played.push(self.stage.play(ready.lifted, ready.moved, ready.bindings)),
                Err(why) => {
                    self.leave_alone(rule, *id, why);
                    stays = Some(*id);
                    break;
                }
            }
        }
        self.check()?;
        played.into_iter().rev().for_each(|played| self.stage.undo(played));
        Ok(stays)
    }
}

/// A strategy of the descheduler proposes, a plan decides.
struct Turn<'t, 'd, 'a> {
    draft: &'t mut Draft<'d, 'a>,
    rule: usize,
    error: Option<EngineError>,
}

impl Sink for Turn<'_, '_, '_> {
    fn consider(&mut self, candidate: Candidate) -> Verdict {
        if self.error.is_some() {
            return Verdict::TotalLimit;
        }
        self.draft.evaluate(self.rule, candidate).unwrap_or_else(|error| {
            self.error = Some(error);
            Verdict::TotalLimit
        })
    }

    fn leave_alone(&mut self, pod: PodId, why: LeftAlone) {
        self.draft.leave_alone(self.rule, pod, why);
    }
}
