//! From a choice to what is said of it. Nothing here holds the writer, but for a nomination that was asked for.

use std::sync::atomic::AtomicBool;

use super::attempt::Attempt;
use super::choose::{Chosen, Decided};
use super::messages::{Answer, Verdict};
use super::preempt::{self, Refused};
use crate::engine::events::{ActionType, EventResource};
use crate::engine::{Outcome, Waiting, message};
use crate::model::Time;
use crate::service::explain::{Explanation, explain};
use crate::service::{Service, ServiceError};

impl Attempt {
    pub(super) fn answer(
        &self,
        service: &Service,
        chosen: Chosen,
        cancel: &AtomicBool,
    ) -> Result<Answer, ServiceError> {
        let decided = match chosen {
            Chosen::Bound { node, info } => {
                let message = format!("pod {} is already bound to node {node}", self.pod.meta.key());
                return Ok(Answer {
                    verdict: Verdict::AlreadyBound { node },
                    bindings: Vec::new(),
                    pod: self.pod.clone(),
                    previous_node: None,
                    hold_taken: None,
                    fit_message: String::new(),
                    message,
                    preemption: None,
                    waiting: None,
                    explanation: Explanation::default(),
                    nodes_evaluated: 0,
                    feasible_nodes: 0,
                    profile: self.profile.name().clone(),
                    view: info,
                    warnings: self.warnings.clone(),
                    detail: self.detail,
                });
            }
            Chosen::Decided(decided) => *decided,
        };
        let Decided { decision, seen, info, held, previous_node, hold_taken } = decided;
        let verdict = match &decision.outcome {
            Outcome::Placed { node, score, .. } => {
                Verdict::Placed { node: node.clone(), score: *score, reservation: held }
            }
            Outcome::Unschedulable | Outcome::NoNodes => Verdict::Unschedulable,
            Outcome::Gated(_) => Verdict::Gated,
            Outcome::Unsupported(features) => Verdict::Unsupported(features.iter().map(ToString::to_string).collect()),
        };
        for plugin in decision.refusing_plugins() {
            service.metrics.refused(plugin, self.profile.name());
        }
        let fit_message = message::fit_message(&decision).unwrap_or_default();
        let message = match &verdict {
            Verdict::Placed { node, .. } => format!("Successfully assigned {} to {node}", self.pod.meta.key()),
            _ => fit_message.clone(),
        };
        let explained = seen.as_ref().map(|view| explain(view, &decision, self.detail, self.profile.seed()));
        let mut answer = Answer {
            verdict,
            bindings: decision.bindings.clone(),
            pod: self.pod.clone(),
            previous_node,
            hold_taken,
            fit_message,
            message,
            preemption: None,
            waiting: Waiting::of(&decision, &self.profile),
            explanation: explained.unwrap_or_default(),
            nodes_evaluated: decision.evaluated,
            feasible_nodes: decision.feasible.len(),
            profile: self.profile.name().clone(),
            view: info,
            warnings: self.warnings.clone(),
            detail: self.detail,
        };
        if let (Outcome::Unschedulable, Some(view)) = (&decision.outcome, seen) {
            self.add_preemption(service, &mut answer, &Refused { decision, view }, cancel)?;
        }
        Ok(answer)
    }

    /// What preemption can do for a pod that was refused.
    fn add_preemption(
        &self,
        service: &Service,
        answer: &mut Answer,
        refused: &Refused,
        cancel: &AtomicBool,
    ) -> Result<(), ServiceError> {
        let mut preemption = preempt::preempt(service, refused, &self.pod, &self.profile, cancel)?;
        if let Some(tail) = &preemption.tail {
            answer.message = format!("{} {tail}", answer.fit_message);
        }
        if let (Some(_), Some(waiting)) = (preemption.chosen(), &mut answer.waiting) {
            // As upstream's DefaultPreemption registers: the victims go.
            waiting.events.insert(EventResource::AssignedPod, ActionType::Delete);
        }
        if self.nominate {
            let until = Time(service.now().0.saturating_add(self.nomination_ttl_micros));
            preemption.nominate(service, &self.pod, until);
        }
        answer.preemption = Some(preemption);
        Ok(())
    }
}
