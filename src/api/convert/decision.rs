//! Requests to decide, and decisions.

use prost::Message;

use super::object::pod_source;
use super::overrides;
use super::preemption::preemption as preemption_message;
use super::retries::events;
use super::{count, micros, object_ref, reservation_state, timestamp, view_info, warning};
use crate::api::pb;
use crate::api::pb::reason_count::Detail;
use crate::cluster::VolumeBinding;
use crate::engine::{Code, Reason};
use crate::model::Kind;
use crate::model::resources::PODS;
use crate::service::ServiceError;
use crate::service::explain::{CountedReason, DetailLevel, RefusedNode, ScoredNode};
use crate::service::schedule::{Answer, Request, Verdict, VerdictKind};

/// # Errors
/// The pod can't be read, or a field means nothing.
pub(in crate::api) fn request(request: pb::ScheduleRequest) -> Result<Request, ServiceError> {
    let detail = detail_level(request.detail, request.top_k)?;
    let overrides = request.r#override.map(overrides::read).transpose()?.unwrap_or_default();
    let pod = pod_source(request.pod).pod("pod")?;
    Ok(Request {
        pod: pod.value,
        warnings: pod.warnings,
        profile: (!request.profile.is_empty()).then_some(request.profile),
        overrides,
        dry_run: request.dry_run,
        candidates: request.candidate_nodes,
        ttl_micros: request.reservation_ttl.as_ref().map(micros),
        min_revision: request.min_revision,
        incarnation: request.incarnation,
        detail,
        nominate: request.nominate,
        nomination_ttl_micros: request.nomination_ttl.as_ref().map(micros),
    })
}

/// Nodes that TOP_K shows unless told how many.
const DEFAULT_TOP_K: usize = 5;
/// The most that it shows.
const MAX_TOP_K: u32 = 1_000;
/// Bytes of nodes that an answer may have: 4 MiB, which gRPC clients take by default, less room for the rest.
const MAX_NODE_BYTES: usize = (4 << 20) - (256 << 10);

fn detail_level(level: i32, top_k: u32) -> Result<DetailLevel, ServiceError> {
    let known = pb::DetailLevel::try_from(level);
    let known = known.map_err(|_| ServiceError::invalid("detail", format!("{level} is no detail level")))?;
    if top_k > MAX_TOP_K {
        return Err(ServiceError::invalid("top_k", format!("must be at most {MAX_TOP_K}")));
    }
    if top_k > 0 && known != pb::DetailLevel::TopK {
        return Err(ServiceError::invalid("top_k", "means nothing without detail DETAIL_LEVEL_TOP_K"));
    }
    Ok(match known {
        pb::DetailLevel::Unspecified => DetailLevel::Refusal,
        pb::DetailLevel::None => DetailLevel::None,
        pb::DetailLevel::Summary => DetailLevel::Summary,
        pb::DetailLevel::TopK if top_k == 0 => DetailLevel::TopK(DEFAULT_TOP_K),
        pb::DetailLevel::TopK => DetailLevel::TopK(usize::try_from(top_k).unwrap_or(DEFAULT_TOP_K)),
        pb::DetailLevel::Full => DetailLevel::Full,
    })
}

/// An answer as clients get it. Public for `berth schedule`, which shows local decisions as it shows a server's.
pub fn response(answer: Answer) -> pb::ScheduleResponse {
    let mut response = pb::ScheduleResponse {
        outcome: outcome(answer.verdict.kind()).into(),
        previous_node: answer.previous_node.map(|node| node.to_string()).unwrap_or_default(),
        hold_taken: answer.hold_taken.map(|id| id.to_string()).unwrap_or_default(),
        fit_message: answer.fit_message,
        message: answer.message,
        reasons: answer.explanation.reasons.into_iter().map(reason).collect(),
        nodes_evaluated: count(answer.nodes_evaluated),
        feasible_nodes: count(answer.feasible_nodes),
        view: Some(view_info(&answer.view)),
        warnings: answer.warnings.into_iter().map(warning).collect(),
        profile: answer.profile.to_string(),
        retry_on: answer.waiting.map(|waiting| events(waiting.events)).unwrap_or_default(),
        volume_bindings: answer.bindings.into_iter().map(volume_binding).collect(),
        ..Default::default()
    };
    let mut budget = MAX_NODE_BYTES;
    let preemption = answer.preemption.as_ref();
    response.preemption =
        preemption.and_then(|p| preemption_message(p, answer.detail == DetailLevel::Full, &mut budget));
    let scored = answer.explanation.scored.into_iter().map(scored_node);
    (response.scored_nodes, response.scored_nodes_omitted) = within(&mut budget, scored);
    let refused = answer.explanation.refused.into_iter().map(refused_node);
    (response.refused_nodes, response.refused_nodes_omitted) = within(&mut budget, refused);
    response.truncated = response.scored_nodes_omitted + response.refused_nodes_omitted > 0;
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

/// The first messages that together fit into what is left of the budget, and how many do not.
pub(super) fn within<M: Message>(budget: &mut usize, messages: impl Iterator<Item = M>) -> (Vec<M>, u32) {
    let (mut taken, mut omitted) = (Vec::new(), 0);
    for message in messages {
        // A tag and a length come with each message in a list.
        let bytes = message.encoded_len() + 8;
        if omitted == 0 && bytes <= *budget {
            *budget -= bytes;
            taken.push(message);
        } else {
            omitted += 1;
        }
    }
    if omitted > 0 {
        // What comes after is less important than what was left out here.
        *budget = 0;
    }
    (taken, omitted)
}

fn scored_node(node: ScoredNode) -> pb::ScoredNode {
    let plugins = node.plugins.into_iter();
    let plugins = plugins.map(|(plugin, score)| pb::PluginScore { plugin: plugin.to_owned(), score }).collect();
    pb::ScoredNode { node: node.node.to_string(), total: node.total, plugins }
}

fn refused_node(node: RefusedNode) -> pb::RefusedNode {
    pb::RefusedNode {
        node: node.node.to_string(),
        plugin: node.plugin.to_owned(),
        code: status_code(node.code).into(),
        reasons: node.reasons,
    }
}

fn status_code(code: Code) -> pb::StatusCode {
    match code {
        Code::Unschedulable => pb::StatusCode::Unschedulable,
        Code::UnschedulableAndUnresolvable => pb::StatusCode::UnschedulableAndUnresolvable,
    }
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
    let code = status_code(counted.code);
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
