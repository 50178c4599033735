//! What the cache holds, as rows.

use std::collections::BTreeSet;

use super::decision::outcome;
use super::{count, object_ref, timestamp, view_info};
use crate::api::pb;
use crate::cluster::PodState;
use crate::cluster::readiness::Ready;
use crate::engine::Profile;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};
use crate::model::{Kind, requests};
use crate::service::config_file::ConfigStatus;
use crate::service::inspect::{AmountMap, NodeEntry, PageRequest, PodEntry, PodFilter, Summary};
use crate::service::recent::RecentDecision;
use crate::service::{FieldError, ServiceError};

pub(in crate::api) fn page(size: i32, token: String) -> PageRequest {
    PageRequest { size, token }
}

/// # Errors
/// A state that isn't one.
pub(in crate::api) fn pod_filter(node: String, namespace: String, states: &[i32]) -> Result<PodFilter, ServiceError> {
    let mut wanted = BTreeSet::new();
    let mut errors = Vec::new();
    for (i, state) in states.iter().enumerate() {
        match pb::PodState::try_from(*state) {
            Ok(pb::PodState::Pending) => wanted.insert(PodState::Pending),
            Ok(pb::PodState::Reserved) => wanted.insert(PodState::Reserved),
            Ok(pb::PodState::Bound) => wanted.insert(PodState::Bound),
            Ok(pb::PodState::Orphaned) => wanted.insert(PodState::Orphaned),
            Ok(pb::PodState::Finished) => wanted.insert(PodState::Finished),
            Ok(pb::PodState::Unspecified) | Err(_) => {
                errors.push(FieldError { path: format!("states[{i}]"), message: format!("{state} is no state") });
                false
            }
        };
    }
    if errors.is_empty() {
        Ok(PodFilter { node, namespace, states: wanted })
    } else {
        Err(ServiceError::Invalid(errors))
    }
}

fn pod_state(state: PodState) -> pb::PodState {
    match state {
        PodState::Pending => pb::PodState::Pending,
        PodState::Reserved => pb::PodState::Reserved,
        PodState::Bound => pb::PodState::Bound,
        PodState::Orphaned => pb::PodState::Orphaned,
        PodState::Finished => pb::PodState::Finished,
    }
}

pub(in crate::api) fn cluster(summary: Summary) -> pb::GetClusterResponse {
    let not_ready_reason = match &summary.ready {
        Ready::Waiting { kinds } => ServiceError::NotReady(kinds.clone()).to_string(),
        Ready::Files | Ready::Snapshots | Ready::Manual => String::new(),
    };
    let states = summary.pods.into_iter();
    let resources = summary.resources.into_iter().map(|(name, (allocatable, requested))| pb::ResourceTotal {
        resource: name.to_string(),
        allocatable,
        requested,
    });
    pb::GetClusterResponse {
        view: Some(view_info(&summary.view)),
        ready: summary.ready.is_ready(),
        not_ready_reason,
        pods: states.map(|(s, n)| pb::PodStateCount { state: pod_state(s).into(), count: count(n) }).collect(),
        objects: summary.objects.into_iter().map(|(kind, n)| (kind.to_string(), count(n))).collect(),
        reservations: count(summary.reservations),
        resources: resources.collect(),
        profiles: summary.profiles.iter().map(ToString::to_string).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: Some(timestamp(summary.started)),
        config_file: summary.config_file.map(config_file),
        policy_file: summary.policy_file.map(config_file),
    }
}

fn config_file(status: ConfigStatus) -> pb::ConfigFile {
    let (refused_at, errors) = status.refused.map(|(at, errors)| (timestamp(at), errors)).unzip();
    pb::ConfigFile {
        file: status.file,
        loaded_at: Some(timestamp(status.loaded)),
        notes: status.notes,
        refused_at,
        errors: errors.unwrap_or_default(),
    }
}

fn amounts(amounts: AmountMap) -> std::collections::BTreeMap<String, i64> {
    amounts.into_iter().map(|(name, amount)| (name.to_string(), amount)).collect()
}

pub(in crate::api) fn node(entry: NodeEntry) -> pb::NodeRow {
    let node = &entry.node;
    let taints = node.taints.iter().map(|taint| pb::Taint {
        key: taint.key.to_string(),
        value: taint.value.to_string(),
        effect: taint.effect.as_str().to_owned(),
        time_added: taint.added.map(rfc3339).unwrap_or_default(),
    });
    pb::NodeRow {
        name: node.meta.name.to_string(),
        allocatable: amounts(entry.allocatable),
        requested: amounts(entry.requested),
        pods: count(entry.pods),
        allowed_pods: u32::try_from(entry.allowed_pods.max(0)).unwrap_or(u32::MAX),
        unschedulable: node.unschedulable,
        taints: taints.collect(),
        labels: node.meta.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
    }
}

fn rfc3339(time: crate::model::Time) -> String {
    jiff::Timestamp::from_microsecond(time.0).map(|at| at.to_string()).unwrap_or_default()
}

pub(in crate::api) fn pod(entry: PodEntry) -> pb::PodRow {
    let requests = requests::in_force(&entry.pod);
    let dedicated =
        [(CPU, requests.milli_cpu), (MEMORY, requests.memory), (EPHEMERAL_STORAGE, requests.ephemeral_storage)];
    let scalars = requests.scalars.iter().map(|(name, amount)| (name.to_string(), *amount));
    let all = dedicated.into_iter().map(|(name, amount)| (name.to_owned(), amount)).chain(scalars);
    pb::PodRow {
        pod: Some(object_ref(Kind::Pod, &entry.pod.meta)),
        node: entry.node.to_string(),
        state: pod_state(entry.state).into(),
        priority: entry.pod.priority(),
        requests: all.filter(|(_, amount)| *amount != 0).collect(),
        scheduler_name: entry.pod.spec.scheduler_name.to_string(),
        nominated_node: entry.nominated.to_string(),
    }
}

pub(in crate::api) fn profile(profile: &Profile) -> pb::Profile {
    let scores = profile.scorers().map(|(plugin, weight)| pb::ScorePlugin { name: plugin.name().to_owned(), weight });
    pb::Profile {
        name: profile.name().to_string(),
        filters: profile.filters().map(|plugin| plugin.name().to_owned()).collect(),
        scores: scores.collect(),
        seed: profile.seed(),
    }
}

pub(in crate::api) fn decision(decision: RecentDecision) -> pb::DecisionRow {
    pb::DecisionRow {
        pod: Some(pb::ObjectRef {
            kind: Kind::Pod.as_str().to_owned(),
            namespace: decision.namespace.to_string(),
            name: decision.name.to_string(),
            uid: decision.uid.to_string(),
        }),
        node: decision.node.map(|node| node.to_string()).unwrap_or_default(),
        outcome: outcome(decision.outcome).into(),
        message: decision.message,
        revision: decision.revision,
        profile: decision.profile.to_string(),
        decided_at: Some(timestamp(decision.at)),
        duration_us: u32::try_from(decision.micros).unwrap_or(u32::MAX),
        dry_run: decision.dry_run,
    }
}
