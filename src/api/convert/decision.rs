//! Requests to decide, and decisions.

use super::object::pod_source;
use super::{count, micros, object_ref, reservation_state, timestamp, view_info, warning};
use crate::api::pb;
use crate::api::pb::reason_count::Detail;
use crate::cluster::VolumeBinding;
use crate::engine::{Code, Reason};
use crate::model::Kind;
use crate::model::resources::PODS;
use crate::service::ServiceError;
use crate::service::schedule::{Answer, CountedReason, Request, Verdict, VerdictKind};

/// # Errors
/// The pod can't be read.
pub(in crate::api) fn request(request: pb::ScheduleRequest) -> Result<Request, ServiceError> {
    let pod = pod_source(request.pod).pod("pod")?;
    Ok(Request {
        pod: pod.value,
        warnings: pod.warnings,
        profile: (!request.profile.is_empty()).then_some(request.profile),
        dry_run: request.dry_run,
        candidates: request.candidate_nodes,
        ttl_micros: request.reservation_ttl.as_ref().map(micros),
        min_revision: request.min_revision,
        incarnation: request.incarnation,
    })
}

/// An answer as clients get it. Public for `berth schedule`, which shows local decisions as it shows a server's.
pub fn response(answer: Answer) -> pb::ScheduleResponse {
    let mut response = pb::ScheduleResponse {
        outcome: outcome(answer.verdict.kind()).into(),
        previous_node: answer.previous_node.map(|node| node.to_string()).unwrap_or_default(),
        fit_message: answer.fit_message,
        message: answer.message,
        reasons: answer.reasons.into_iter().map(reason).collect(),
        nodes_evaluated: count(answer.nodes_evaluated),
        feasible_nodes: count(answer.feasible_nodes),
        view: Some(view_info(&answer.view)),
        warnings: answer.warnings.into_iter().map(warning).collect(),
        profile: answer.profile.to_string(),
        volume_bindings: answer.bindings.into_iter().map(volume_binding).collect(),
        ..Default::default()
    };
    match answer.verdict {
        Verdict::Placed { node, score, reservation } => {
            response.node = node.to_string();
            response.score = score;
            response.reservation = reservation.map(|held| pb::Reservation {
                id: held.id.to_string(),
                pod: Some(object_ref(Kind::Pod, &answer.pod.meta)),
                node: held.node.to_string(),
                expires_at: Some(timestamp(held.expires)),
                created_at: Some(timestamp(held.created)),
                state: reservation_state(&held.basis).into(),
            });
        }
        Verdict::AlreadyBound { node } => response.node = node.to_string(),
        Verdict::Unsupported(features) => response.unsupported = features,
        Verdict::Unschedulable | Verdict::Gated => {}
    }
    response
}

fn volume_binding(binding: VolumeBinding) -> pb::VolumeBinding {
    let (namespace, claim) = binding.claim;
    let volume = binding.volume.map(|volume| volume.to_string()).unwrap_or_default();
    pb::VolumeBinding { namespace: namespace.to_string(), claim: claim.to_string(), volume }
}

pub(super) fn outcome(kind: VerdictKind) -> pb::Outcome {
    match kind {
        VerdictKind::Placed => pb::Outcome::Placed,
        VerdictKind::Unschedulable => pb::Outcome::Unschedulable,
        VerdictKind::AlreadyBound => pb::Outcome::AlreadyBound,
        VerdictKind::Gated => pb::Outcome::Gated,
        VerdictKind::Unsupported => pb::Outcome::Unsupported,
    }
}

fn reason(counted: CountedReason) -> pb::ReasonCount {
    let code = match counted.code {
        Code::Unschedulable => pb::StatusCode::Unschedulable,
        Code::UnschedulableAndUnresolvable => pb::StatusCode::UnschedulableAndUnresolvable,
    };
    pb::ReasonCount {
        plugin: counted.plugin.to_owned(),
        code: code.into(),
        reason: counted.reason.to_string(),
        nodes: count(counted.nodes),
        example_node: counted.example.to_string(),
        detail: detail(counted.reason),
    }
}

/// The numbers behind a reason's text, where it has some.
fn detail(reason: Reason) -> Option<Detail> {
    Some(match reason {
        Reason::InsufficientResource { resource, requested, free, .. } => {
            let resource = resource.to_string();
            Detail::InsufficientResource(pb::InsufficientResource { resource, requested, max_free: free })
        }
        Reason::TooManyPods { pods, allowed } => Detail::InsufficientResource(pb::InsufficientResource {
            resource: PODS.to_owned(),
            requested: 1,
            max_free: allowed - pods,
        }),
        Reason::UntoleratedTaint { key, value, effect } => Detail::UntoleratedTaint(pb::UntoleratedTaint {
            key: key.to_string(),
            value: value.to_string(),
            effect: effect.as_str().to_owned(),
        }),
        Reason::PortConflict { ip, protocol, port } => Detail::PortConflict(pb::PortConflict {
            port: port.into(),
            protocol: protocol.to_string(),
            host_ip: ip.to_string(),
        }),
        Reason::NodeAffinity | Reason::EnforcedNodeAffinity => Detail::NodeAffinity(pb::NodeAffinityMismatch {}),
        Reason::TopologySpread { topology_key, skew, max_skew } => Detail::TopologySpread(pb::TopologySpread {
            topology_key: topology_key.to_string(),
            skew: Some(skew),
            max_skew,
        }),
        Reason::TopologySpreadMissingLabel { topology_key } => Detail::TopologySpread(pb::TopologySpread {
            topology_key: topology_key.to_string(),
            skew: None,
            max_skew: 0,
        }),
        _ => return None,
    })
}
