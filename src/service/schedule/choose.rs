//! The choice, on a view that may be the writer's own or a fork, and its commit under the writer.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::attempt::Attempt;
use super::messages::Held;
use crate::cluster::reservation::{Basis, Reservation};
use crate::cluster::writer::{Reserve, WriteError};
use crate::cluster::{Ordinal, View, Writer};
use crate::engine::{self, Decision, Detail, IncomingPod, Options, Outcome};
use crate::model::{Str, Time};
use crate::service::{Service, ServiceError, ViewInfo};

/// What the pod has already when it is decided on.
#[derive(Debug, Default)]
pub(super) struct Ground {
    /// Its earlier reservation.
    pub(super) before: Option<Reservation>,
    /// The hold of an eviction plan that it would take.
    pub(super) hold: Option<Reservation>,
}

impl Ground {
    pub(super) fn of(service: &Service, writer: &Writer, attempt: &Attempt) -> Self {
        let before = writer.reservations().of_pod(&attempt.pod.meta.uid).cloned();
        let hold = match (&before, &attempt.taker) {
            (None, Some(taker)) => service.hold_for(writer, taker),
            _ => None,
        };
        Self { before, hold }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.before.is_none() && self.hold.is_none()
    }

    /// Whether the pod has the same as then, be it held longer by now.
    pub(super) fn is_still(&self, then: &Self) -> bool {
        let same = |a: &Option<Reservation>, b: &Option<Reservation>| match (a, b) {
            (Some(a), Some(b)) => a.id == b.id && a.node() == b.node(),
            (None, None) => true,
            _ => false,
        };
        same(&self.before, &then.before) && same(&self.hold, &then.hold)
    }

    /// Makes room for the pod: its own reservation's, and that of the hold.
    pub(super) fn clear(&self, attempt: &Attempt, fork: &mut View) {
        fork.remove_pod(&attempt.pod.meta.uid);
        if let Some(hold) = &self.hold {
            fork.remove_pod(&hold.pod.pod.meta.uid);
        }
    }
}

/// What was chosen.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) decision: Decision,
    /// The earlier reservation's node passes again.
    pub(super) again: bool,
    /// The view that it was decided on, if that is one of its own.
    pub(super) own_view: Option<View>,
}

/// A choice that was committed, or needs no commit.
#[derive(Debug)]
pub(super) enum Chosen {
    /// There was nothing to decide.
    Bound {
        node: Str,
        info: ViewInfo,
    },
    Decided(Box<Decided>),
}

#[derive(Debug)]
pub(super) struct Decided {
    pub(super) decision: Decision,
    /// The view that it was decided on, where the answer has more to say than a node.
    pub(super) seen: Option<View>,
    pub(super) info: ViewInfo,
    pub(super) held: Option<Held>,
    pub(super) previous_node: Option<Str>,
    pub(super) hold_taken: Option<Str>,
}

/// Asks the engine for one attempt.
pub(super) struct Decider<'a> {
    pub(super) service: &'a Service,
    pub(super) attempt: &'a Attempt,
    pub(super) incoming: IncomingPod<'a>,
    pub(super) cancel: &'a AtomicBool,
}

impl<'a> Decider<'a> {
    pub(super) fn new(service: &'a Service, attempt: &'a Attempt, cancel: &'a AtomicBool) -> Self {
        Self { service, attempt, incoming: IncomingPod::new(&attempt.pod), cancel }
    }

    /// The plain question: on all candidates, or on one node alone.
    pub(super) fn decide(&self, view: &View, only: Option<Ordinal>) -> Result<Decision, ServiceError> {
        let attempt = self.attempt;
        let candidates: Vec<Ordinal> = match only {
            Some(ordinal) => vec![ordinal],
            None => attempt.candidate_ordinals(view)?,
        };
        let restricted = only.is_some() || !attempt.candidates.is_empty();
        let detail = if attempt.detail.needs_everything() { Detail::Full } else { Detail::Choice };
        let options = Options { candidates: restricted.then_some(&*candidates), detail };
        let begun = Instant::now();
        let decided = engine::decide(view, &self.incoming, &attempt.profile, &options, self.cancel);
        self.service.metrics.algorithm(begun.elapsed());
        Ok(decided?)
    }

    /// Decides on a view that was made clear. The node of an earlier reservation is kept while it passes, unless it is a dry
    /// run; so is the held one.
    pub(super) fn choose(&self, view: &View, ground: &Ground) -> Result<Choice, ServiceError> {
        if let Some(earlier) = &ground.before
            && !self.attempt.dry_run
            && self.attempt.asks_the_same(earlier)
            && let Some(ordinal) = view.ordinal(earlier.node())
        {
            let as_decided = as_decided(view, earlier);
            let decision = self.decide(&as_decided, Some(ordinal))?;
            if decision.node().is_some() {
                return Ok(Choice { decision, again: true, own_view: Some(as_decided) });
            }
        }
        if let Some(hold) = &ground.hold {
            let candidates = &self.attempt.candidates;
            let allowed = candidates.is_empty() || candidates.contains(hold.node());
            if let Some(ordinal) = view.ordinal(hold.node()).filter(|_| allowed) {
                let decision = self.decide(view, Some(ordinal))?;
                if decision.node().is_some() {
                    return Ok(Choice { decision, again: false, own_view: None });
                }
            }
        }
        Ok(Choice { decision: self.decide(view, None)?, again: false, own_view: None })
    }
}

/// The view in which the claims of a reservation keep the volumes that were decided for them, while those will do: they may
/// be half bound.
pub(super) fn as_decided(view: &View, earlier: &Reservation) -> View {
    let mut as_decided = view.clone();
    as_decided.hold(earlier.pod.bindings());
    as_decided
}

impl Choice {
    /// The view that the answer is told from, where that takes one.
    pub(super) fn seen(&self, view: &View, attempt: &Attempt) -> Option<View> {
        let needed = attempt.detail.needs_everything() || self.decision.node().is_none();
        needed.then(|| self.own_view.as_ref().unwrap_or(view).clone())
    }
}

impl Attempt {
    /// Decides under the writer and commits, or in a dry run on a fork. None: that may be long, and nothing was done.
    pub(super) fn choose_now(&self, service: &Service, cancel: &AtomicBool) -> Result<Option<Chosen>, ServiceError> {
        let decider = Decider::new(service, self, cancel);
        let mut writer = service.cluster.writer();
        service.check_basis(&writer, &self.incarnation, self.min_revision)?;
        if let Some(bound) = self.already_bound(service, &writer)? {
            return Ok(Some(bound));
        }
        if self.is_long(writer.view()) {
            return Ok(None);
        }
        let keys = self.count_keys(writer.view());
        let missing = writer.touch(keys);
        if self.dry_run {
            let (ground, mut fork) = (Ground::of(service, &writer, self), writer.view().clone());
            let info = service.view_info(&writer);
            drop(writer);
            ground.clear(self, &mut fork);
            let choice = decider.choose(&fork, &ground)?;
            return Ok(Some(self.without_commit(choice, &ground, fork, info)));
        }
        if !missing.is_empty() {
            // Counting visits pods, so it is done without the writer; what changes meanwhile is counted again.
            let fork = writer.view().clone();
            drop(writer);
            let counts = fork.count_all(missing, cancel).ok_or(ServiceError::Cancelled)?;
            writer = service.cluster.writer();
            writer.keep(counts, &fork);
            drop(fork);
            if let Some(bound) = self.already_bound(service, &writer)? {
                return Ok(Some(bound));
            }
        }
        let ground = Ground::of(service, &writer, self);
        let cleared = (!ground.is_empty()).then(|| {
            let mut cleared = writer.view().clone();
            ground.clear(self, &mut cleared);
            cleared
        });
        let view = cleared.as_ref().unwrap_or_else(|| writer.view());
        let choice = decider.choose(view, &ground)?;
        let seen = choice.seen(view, self);
        self.commit(service, &mut writer, ground, choice, seen).map(Some)
    }

    pub(super) fn without_commit(&self, choice: Choice, ground: &Ground, view: View, info: ViewInfo) -> Chosen {
        Chosen::Decided(Box::new(Decided {
            seen: choice.seen(&view, self),
            decision: choice.decision,
            info,
            held: None,
            previous_node: None,
            hold_taken: ground.hold.as_ref().map(|hold| hold.id.clone()),
        }))
    }

    /// Whether there is nothing to decide.
    ///
    /// # Errors
    /// The pod has ended: there is no room to hold for it.
    pub(super) fn already_bound(&self, service: &Service, writer: &Writer) -> Result<Option<Chosen>, ServiceError> {
        let Some(known) = service.cluster.objects().pod(&self.pod.meta.uid) else { return Ok(None) };
        if known.is_bound() {
            let (node, info) = (known.spec.node_name.clone(), service.view_info(writer));
            return Ok(Some(Chosen::Bound { node, info }));
        }
        if known.is_terminal() && !self.dry_run {
            return Err(ServiceError::PodEnded(known.meta.key()));
        }
        Ok(None)
    }

    fn candidate_ordinals(&self, view: &View) -> Result<Vec<Ordinal>, ServiceError> {
        let find = |name: &Str| {
            let missing = || ServiceError::NotFound { what: "node", name: name.to_string(), known: Vec::new() };
            view.ordinal(name).ok_or_else(missing)
        };
        self.candidates.iter().map(find).collect()
    }

    /// Takes the room of a choice that holds on the writer's view as it is. One that fits nowhere gives up what it had.
    pub(super) fn commit(
        &self,
        service: &Service,
        writer: &mut Writer,
        ground: Ground,
        choice: Choice,
        seen: Option<View>,
    ) -> Result<Chosen, ServiceError> {
        let Ground { before, hold } = ground;
        let now = service.now();
        let expires = Time(now.0.saturating_add(self.ttl_micros));
        let decision = choice.decision;
        if let (true, Some(earlier)) = (choice.again, &before) {
            let renewed = if decision.bindings == earlier.pod.bindings() {
                writer.renew(&self.pod.meta.uid, expires)
            } else {
                writer.begin();
                let Reservation { id, created, basis, pod, .. } = earlier.clone();
                let (node, bindings) = (pod.node.clone(), decision.bindings.clone());
                let pod = self.pod.clone();
                let ask = Reserve { pod, node, bindings, id: Some(id), now: created, expires, basis };
                Some(writer.reserve(ask).map_err(refused)?)
            };
            let (held, info) = (renewed.as_ref().map(Held::from), service.view_info(writer));
            let decided = Decided { decision, seen, info, held, previous_node: None, hold_taken: None };
            return Ok(Chosen::Decided(Box::new(decided)));
        }
        if let Some(hold) = &hold {
            // Taken, or of no use to a pod that fits nowhere.
            writer.begin();
            writer.release(&hold.id);
        }
        let reservation = match &decision.outcome {
            Outcome::Placed { node, .. } => {
                writer.begin();
                let basis = Basis::Decided {
                    profile: self.profile.name().clone(),
                    overrides: self.overrides.clone(),
                    candidates: self.candidates.clone(),
                };
                let (pod, node, bindings) = (self.pod.clone(), node.clone(), decision.bindings.clone());
                let ask = Reserve { pod, node, bindings, id: None, now, expires, basis };
                Some(writer.reserve(ask).map_err(refused)?)
            }
            _ => {
                // The pod fits nowhere now, so the room it held is of no use to it.
                if let Some(earlier) = &before {
                    writer.begin();
                    writer.release(&earlier.id);
                }
                None
            }
        };
        let info = service.view_info(writer);
        Ok(Chosen::Decided(Box::new(Decided {
            decision,
            seen,
            info,
            held: reservation.as_ref().map(Held::from),
            previous_node: before.map(|b| b.node().clone()),
            hold_taken: hold.map(|hold| hold.id),
        })))
    }
}

/// Whoever commits has looked that the pod is neither bound nor ended and that the node is there.
fn refused(error: WriteError) -> ServiceError {
    match error {
        WriteError::Finished(pod) => ServiceError::PodEnded(pod),
        WriteError::UnknownNode(_) | WriteError::BoundElsewhere { .. } => ServiceError::Internal(error.to_string()),
    }
}
