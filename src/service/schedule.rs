//! Where should this pod run: decide, and hold the room.

mod messages;
mod preempt;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub use messages::{Answer, Held, Request, Verdict, VerdictKind};
pub use preempt::{DEFAULT_NOMINATION_SECS, PreemptionAnswer};

use self::preempt::Refused;
use super::explain::{DetailLevel, Explanation, explain};
use super::recent::RecentDecision;
use super::{FieldError, Service, ServiceError, ViewInfo};
use crate::cluster::readiness::Ready;
use crate::cluster::reservation::{Basis, Reservation};
use crate::cluster::writer::Reserve;
use crate::cluster::{Ordinal, View, Writer};
use crate::engine::events::{ActionType, EventResource};
use crate::engine::overrides::Mistake;
use crate::engine::{self, Decision, Detail, IncomingPod, Options, Outcome, Override, Profile, Waiting, message};
use crate::manifest::{self, Warning};
use crate::model::{Pod, Str, Time};
use crate::telemetry::metrics::AttemptResult;

/// How long room is held unless the request says otherwise.
pub const DEFAULT_TTL_SECS: i64 = 60;
/// The bounds of a request's time to live, in seconds.
pub const TTL_SECS: std::ops::RangeInclusive<i64> = 1..=3_600;

/// Whether a time to live is within its bounds; else what to say.
pub(super) fn check_ttl(micros: i64) -> Result<(), String> {
    let bounds = TTL_SECS.start() * 1_000_000..=TTL_SECS.end() * 1_000_000;
    if bounds.contains(&micros) { Ok(()) } else { Err("must be between 1 s and 1 h".to_owned()) }
}

impl Service {
    /// Decides one pod and, unless it is a dry run, holds its room.
    pub fn schedule(&self, request: Request, cancel: &AtomicBool) -> Result<Answer, ServiceError> {
        let begun = Instant::now();
        let dry_run = request.dry_run;
        let profiles = self.profiles();
        let profile = profiles.get(request.profile.as_deref().unwrap_or(&request.pod.spec.scheduler_name))?;
        let profile = overridden(profile, &request.overrides)?;
        let candidates: Vec<Str> = request.candidates.iter().map(|name| Str::from(&**name)).collect();
        let decided = self.decide_and_reserve(request, profile.clone(), cancel);
        self.count(profile.name(), dry_run, &decided, begun.elapsed());
        let answer = decided?;
        if !dry_run {
            self.note_for_retries(&answer, profile, profiles, candidates);
        }
        let meta = &answer.pod.meta;
        self.recent.push(RecentDecision {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            node: answer.verdict.node().cloned(),
            outcome: answer.verdict.kind(),
            message: answer.message.clone(),
            revision: answer.view.revision,
            profile: answer.profile.clone(),
            dry_run,
            at: answer.view.now,
            micros: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
        Ok(answer)
    }

    /// Counts a decision that was tried. What was refused before it came to that is no attempt, as in kube-scheduler.
    fn count(&self, profile: &Str, dry_run: bool, decided: &Result<Answer, ServiceError>, took: Duration) {
        let result = match decided {
            Ok(answer) => match answer.verdict.kind() {
                VerdictKind::Placed => AttemptResult::Scheduled,
                VerdictKind::Unschedulable | VerdictKind::Gated => AttemptResult::Unschedulable,
                VerdictKind::Unsupported => AttemptResult::Error,
                VerdictKind::AlreadyBound => return,
            },
            Err(ServiceError::Cancelled | ServiceError::Internal(_)) => AttemptResult::Error,
            Err(_) => return,
        };
        if dry_run {
            self.metrics.dry_run(result, profile);
        } else {
            self.metrics.attempt(result, profile, took);
        }
    }

    fn decide_and_reserve(
        &self,
        request: Request,
        profile: Arc<Profile>,
        cancel: &AtomicBool,
    ) -> Result<Answer, ServiceError> {
        let Request { mut pod, mut warnings, dry_run, .. } = request;
        manifest::apply_classes(&mut pod, &self.cluster, &mut warnings);
        let ttl = request.ttl_micros.unwrap_or(DEFAULT_TTL_SECS * 1_000_000);
        let nomination_ttl = request.nomination_ttl_micros.unwrap_or(DEFAULT_NOMINATION_SECS * 1_000_000);
        let mut wrong = Vec::new();
        for (path, micros) in [("reservation_ttl", ttl), ("nomination_ttl", nomination_ttl)] {
            if let Err(message) = check_ttl(micros) {
                wrong.push(FieldError { path: path.to_owned(), message });
            }
        }
        if request.nominate && dry_run {
            let message = "a dry run records nothing; leave one of both out".to_owned();
            wrong.push(FieldError { path: "nominate".to_owned(), message });
        }
        if !wrong.is_empty() {
            return Err(ServiceError::Invalid(wrong));
        }
        let pod = Arc::new(pod);

        let mut writer = self.cluster.writer();
        self.check_basis(&writer, &request.incarnation, request.min_revision)?;
        let mut candidates = request.candidates;
        candidates.sort();
        candidates.dedup();
        let mut work = Work {
            service: self,
            pod,
            profile,
            overrides: request.overrides.key(),
            candidates: candidates.into_iter().map(Str::from).collect(),
            warnings,
            detail: request.detail,
            cancel,
        };
        if let Some(known) = self.cluster.objects().pod(&work.pod.meta.uid)
            && known.is_bound()
        {
            let verdict = Verdict::AlreadyBound { node: known.spec.node_name.clone() };
            let mut answer = work.answer_without_decision(verdict, self.view_info(&writer));
            answer.message = format!("pod {} is already bound to node {}", known.meta.key(), known.spec.node_name);
            return Ok(answer);
        }
        let keys = work.profile.count_keys(writer.view(), &work.pod);
        writer.watch(keys);
        if dry_run {
            let mut fork = writer.view().clone();
            let info = self.view_info(&writer);
            let has_room = writer.reservations().of_pod(&work.pod.meta.uid).is_some();
            let hold = if has_room { None } else { self.hold_for(&writer, &work.pod) };
            drop(writer);
            work.clear(&mut fork, hold.as_ref());
            let decision = work.decide_with_hold(&fork, hold.as_ref())?;
            let explanation = work.explain(&fork, &decision);
            let mut answer = work.answer(&decision, explanation, info, None, None);
            answer.hold_taken = hold.map(|hold| hold.id);
            work.add_preemption(&mut answer, &Refused { decision, view: fork })?;
            return Ok(answer);
        }
        let now = self.now();
        let (mut answer, refused) = work.reserve(&mut writer, now, Time(now.0.saturating_add(ttl)))?;
        drop(writer);
        if let Some(refused) = refused {
            work.add_preemption(&mut answer, &refused)?;
            if let (true, Some(preemption)) = (request.nominate, &mut answer.preemption) {
                preemption.nominate(self, &work.pod, Time(self.now().0.saturating_add(nomination_ttl)));
            }
        }
        Ok(answer)
    }

    /// Whether the request's idea of the cache agrees with it, and the cache with the cluster.
    pub(super) fn check_basis(&self, writer: &Writer, incarnation: &str, min: Option<u64>) -> Result<(), ServiceError> {
        if !incarnation.is_empty() && *incarnation != **writer.incarnation() {
            return Err(ServiceError::OtherIncarnation {
                named: incarnation.to_owned(),
                current: writer.incarnation().clone(),
            });
        }
        if let Ready::Waiting { kinds } = writer.readiness().check(writer.view().node_count()) {
            return Err(ServiceError::NotReady(kinds));
        }
        let current = writer.view().revision();
        match min {
            Some(wanted) if wanted > current => Err(ServiceError::RevisionNotReached { wanted, current }),
            _ => Ok(()),
        }
    }

    /// Gives a reservation back: whether it lived, and the revision at which its room is free.
    pub fn release(&self, id: &str) -> (bool, u64) {
        let mut writer = self.cluster.writer();
        if writer.reservations().with_id(id).is_none() {
            return (false, writer.view().revision());
        }
        // First, so that whoever asks for the changes since an earlier revision is told of this one.
        writer.begin();
        (writer.release(id), writer.view().revision())
    }
}

/// The profile as the request wants it.
fn overridden(profile: Arc<Profile>, overrides: &Override) -> Result<Arc<Profile>, ServiceError> {
    if overrides.is_empty() {
        return Ok(profile);
    }
    let in_request = |(path, message): Mistake| FieldError { path: format!("override.{path}"), message };
    let changed = overrides.apply(&profile);
    changed.map(Arc::new).map_err(|mistakes| ServiceError::Invalid(mistakes.into_iter().map(in_request).collect()))
}

/// One request on its way.
struct Work<'a> {
    service: &'a Service,
    pod: Arc<Pod>,
    profile: Arc<Profile>,
    /// What the request changed of the profile; empty: nothing.
    overrides: Str,
    candidates: Vec<Str>,
    warnings: Vec<Warning>,
    detail: DetailLevel,
    cancel: &'a AtomicBool,
}

impl Work<'_> {
    fn decide(&self, view: &View, only: Option<Ordinal>) -> Result<Decision, ServiceError> {
        let candidates: Vec<Ordinal> = match only {
            Some(ordinal) => vec![ordinal],
            None => self.candidate_ordinals(view)?,
        };
        let restricted = only.is_some() || !self.candidates.is_empty();
        let detail = if self.detail.needs_everything() { Detail::Full } else { Detail::Choice };
        let options = Options { candidates: restricted.then_some(&*candidates), detail };
        let begun = Instant::now();
        let decided = engine::decide(view, &IncomingPod::new(&self.pod), &self.profile, &options, self.cancel);
        self.service.metrics.algorithm(begun.elapsed());
        Ok(decided?)
    }

    /// Makes room for the pod: its own reservation's, and that of the hold which it takes.
    fn clear(&self, fork: &mut View, hold: Option<&Reservation>) {
        fork.remove_pod(&self.pod.meta.uid);
        if let Some(hold) = hold {
            fork.remove_pod(&hold.pod.pod.meta.uid);
        }
    }

    /// Decides on a view that was made clear; the held node is taken if it passes.
    fn decide_with_hold(&self, view: &View, hold: Option<&Reservation>) -> Result<Decision, ServiceError> {
        if let Some(hold) = hold {
            let allowed = self.candidates.is_empty() || self.candidates.contains(hold.node());
            if let Some(ordinal) = view.ordinal(hold.node()).filter(|_| allowed) {
                let decision = self.decide(view, Some(ordinal))?;
                if decision.node().is_some() {
                    return Ok(decision);
                }
            }
        }
        self.decide(view, None)
    }

    fn explain(&self, view: &View, decision: &Decision) -> Explanation {
        explain(view, decision, self.detail, self.profile.seed())
    }

    fn candidate_ordinals(&self, view: &View) -> Result<Vec<Ordinal>, ServiceError> {
        let find = |name: &Str| {
            let missing = || ServiceError::NotFound { what: "node", name: name.to_string(), known: Vec::new() };
            view.ordinal(name).ok_or_else(missing)
        };
        self.candidates.iter().map(find).collect()
    }

    /// What preemption can do, if the pod was refused.
    fn add_preemption(&self, answer: &mut Answer, refused: &Refused) -> Result<(), ServiceError> {
        if refused.decision.outcome == Outcome::Unschedulable {
            let preemption = preempt::preempt(self.service, refused, &self.pod, &self.profile, self.cancel)?;
            if let Some(tail) = &preemption.tail {
                answer.message = format!("{} {tail}", answer.fit_message);
            }
            if let (Some(_), Some(waiting)) = (preemption.chosen(), &mut answer.waiting) {
                // As upstream's DefaultPreemption registers: the victims go.
                waiting.events.insert(EventResource::AssignedPod, ActionType::Delete);
            }
            answer.preemption = Some(preemption);
        }
        Ok(())
    }

    /// Decides with the writer held and takes the room; an earlier reservation of the pod is kept while it still passes.
    /// Of a refusal the view that it was made on comes back too.
    fn reserve(
        &mut self,
        writer: &mut Writer,
        now: Time,
        expires: Time,
    ) -> Result<(Answer, Option<Refused>), ServiceError> {
        let before = writer.reservations().of_pod(&self.pod.meta.uid).cloned();
        let hold = if before.is_some() { None } else { self.service.hold_for(writer, &self.pod) };
        let mut view_without_own;
        let view = if before.is_none() && hold.is_none() {
            writer.view()
        } else {
            view_without_own = writer.view().clone();
            self.clear(&mut view_without_own, hold.as_ref());
            &view_without_own
        };
        if let Some(earlier) = &before
            && self.asks_the_same(earlier)
            && let Some(ordinal) = view.ordinal(earlier.node())
        {
            // Its claims keep the volumes that were decided for them while those will do: they may be half bound.
            let held = earlier.pod.bindings();
            let mut as_decided = view.clone();
            as_decided.hold(held);
            let again = self.decide(&as_decided, Some(ordinal))?;
            if again.node().is_some() {
                let explanation = self.explain(&as_decided, &again);
                let renewed = if again.bindings == held {
                    writer.renew(&self.pod.meta.uid, expires)
                } else {
                    writer.begin();
                    let Reservation { id, created, basis, pod, .. } = earlier.clone();
                    let (node, bindings) = (pod.node.clone(), again.bindings.clone());
                    let pod = self.pod.clone();
                    let ask = Reserve { pod, node, bindings, id: Some(id), now: created, expires, basis };
                    Some(writer.reserve(ask).map_err(|e| ServiceError::Internal(e.to_string()))?)
                };
                let info = self.service.view_info(writer);
                return Ok((self.answer(&again, explanation, info, renewed.as_ref(), None), None));
            }
        }
        let decision = self.decide_with_hold(view, hold.as_ref())?;
        let explanation = self.explain(view, &decision);
        let chosen = decision.node().cloned();
        if let Some(hold) = &hold {
            // Taken, or of no use to a pod that fits nowhere.
            writer.begin();
            writer.release(&hold.id);
        }
        let reservation = match chosen {
            Some(node) => {
                writer.begin();
                let ask = Reserve {
                    pod: self.pod.clone(),
                    node,
                    bindings: decision.bindings.clone(),
                    id: None,
                    now,
                    expires,
                    basis: Basis::Decided {
                        profile: self.profile.name().clone(),
                        overrides: self.overrides.clone(),
                        candidates: self.candidates.clone(),
                    },
                };
                Some(writer.reserve(ask).map_err(|e| ServiceError::Internal(e.to_string()))?)
            }
            None => {
                // The pod fits nowhere now, so the room it held is of no use to it.
                if let Some(earlier) = &before {
                    writer.begin();
                    writer.release(&earlier.id);
                }
                None
            }
        };
        let info = self.service.view_info(writer);
        let previous = before.map(|b| b.node().clone());
        let mut answer = self.answer(&decision, explanation, info, reservation.as_ref(), previous);
        answer.hold_taken = hold.map(|hold| hold.id);
        let refused = decision.outcome == Outcome::Unschedulable;
        Ok((answer, refused.then(|| Refused { decision, view: writer.view().clone() })))
    }

    fn asks_the_same(&self, earlier: &Reservation) -> bool {
        let (old, new) = (&earlier.pod.pod, &self.pod);
        let same_basis = match &earlier.basis {
            Basis::Decided { profile, overrides, candidates } => {
                *profile == *self.profile.name() && *overrides == self.overrides && *candidates == self.candidates
            }
            Basis::Assumed => self.candidates.is_empty() && self.overrides.is_empty(),
            // Of a placeholder, which nobody asks for.
            Basis::Held { .. } => false,
        };
        same_basis && old.spec == new.spec && old.meta.labels == new.meta.labels
    }

    fn answer(
        &self,
        decision: &Decision,
        explanation: Explanation,
        info: ViewInfo,
        reservation: Option<&Reservation>,
        previous_node: Option<Str>,
    ) -> Answer {
        let verdict = match &decision.outcome {
            Outcome::Placed { node, score, .. } => {
                Verdict::Placed { node: node.clone(), score: *score, reservation: reservation.map(Held::from) }
            }
            Outcome::Unschedulable | Outcome::NoNodes => Verdict::Unschedulable,
            Outcome::Gated(_) => Verdict::Gated,
            Outcome::Unsupported(features) => Verdict::Unsupported(features.iter().map(ToString::to_string).collect()),
        };
        for plugin in decision.refusing_plugins() {
            self.service.metrics.refused(plugin, self.profile.name());
        }
        let fit_message = message::fit_message(decision).unwrap_or_default();
        let message = match &verdict {
            Verdict::Placed { node, .. } => {
                format!("Successfully assigned {} to {node}", self.pod.meta.key())
            }
            _ => fit_message.clone(),
        };
        Answer {
            verdict,
            bindings: decision.bindings.clone(),
            pod: self.pod.clone(),
            previous_node,
            hold_taken: None,
            fit_message,
            message,
            preemption: None,
            waiting: Waiting::of(decision, &self.profile),
            explanation,
            nodes_evaluated: decision.evaluated,
            feasible_nodes: decision.feasible.len(),
            profile: self.profile.name().clone(),
            view: info,
            warnings: self.warnings.clone(),
            detail: self.detail,
        }
    }

    fn answer_without_decision(&self, verdict: Verdict, info: ViewInfo) -> Answer {
        Answer {
            verdict,
            bindings: Vec::new(),
            pod: self.pod.clone(),
            previous_node: None,
            hold_taken: None,
            fit_message: String::new(),
            message: String::new(),
            preemption: None,
            waiting: None,
            explanation: Explanation::default(),
            nodes_evaluated: 0,
            feasible_nodes: 0,
            profile: self.profile.name().clone(),
            view: info,
            warnings: self.warnings.clone(),
            detail: self.detail,
        }
    }
}
