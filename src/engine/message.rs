//! The text of a pod that fits nowhere, as kube-scheduler writes it into its event (spec section 3.5).

use std::collections::BTreeMap;

use super::decision::{Decision, Outcome};
use super::status::Rejection;
use crate::cluster::Ordinal;

/// `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).`; None for a placed pod.
pub fn fit_message(decision: &Decision) -> Option<String> {
    match &decision.outcome {
        Outcome::Placed { .. } => None,
        Outcome::NoNodes => Some("no nodes available to schedule pods".to_owned()),
        Outcome::Gated(rejection) => Some(rejection.message()),
        Outcome::Unsupported(features) => {
            let names: Vec<String> = features.iter().map(ToString::to_string).collect();
            Some(format!("not supported: {}", names.join("; ")))
        }
        Outcome::Unschedulable => Some(format!("0/{} nodes are available:{}", decision.nodes, tail(decision))),
    }
}

fn tail(decision: &Decision) -> String {
    if let Some(rejection) = &decision.pre_filter {
        return format!(" {}.", rejection.message());
    }
    histogram(&decision.rejected, decision.nodes, decision.absent.as_ref())
}

/// How many nodes were refused for which reason, in upstream's form; `absent` is what goes for nodes that aren't listed.
pub(super) fn histogram(rejected: &[(Ordinal, Rejection)], nodes: usize, absent: Option<&Rejection>) -> String {
    let mut histogram: BTreeMap<String, usize> = BTreeMap::new();
    for (_, rejection) in rejected {
        for reason in &rejection.reasons {
            *histogram.entry(reason.to_string()).or_default() += 1;
        }
    }
    let unseen = nodes.saturating_sub(rejected.len());
    if let (Some(absent), 1..) = (absent, unseen) {
        for reason in &absent.reasons {
            *histogram.entry(reason.to_string()).or_default() += unseen;
        }
    }
    let mut parts: Vec<String> = histogram.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if parts.is_empty() {
        return String::new();
    }
    // Sorted as text, so that "10 foo" comes before "2 bar", as upstream.
    parts.sort();
    format!(" {}.", parts.join(", "))
}
