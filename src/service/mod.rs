//! The use cases, one file each: what a handler calls between two conversions, and what `berth answer` and the other
//! commands call without a network.
//!
//! A use case takes the writer or a fork, asks the engine and reserves. Nothing here knows of gRPC. Calls may take
//! milliseconds (a decision over all nodes, a batch of 1,024 objects): whoever calls from async code does so on a blocking
//! thread.

pub mod answer;
pub mod clock;
pub mod compare;
pub mod config_file;
pub mod error;
pub mod evict;
mod evictions;
pub mod explain;
pub mod feed;
pub mod holds;
pub mod inspect;
pub mod load;
pub mod measure;
pub mod policy_file;
pub mod profiles;
pub mod recent;
pub mod retries;
pub mod schedule;
pub mod source;

#[cfg(test)]
mod extremes;
#[cfg(test)]
mod volume_tests;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{FieldError, ServiceError};

use crate::cluster::readiness::{Ready, SourceState};
use crate::cluster::{Cluster, Writer};
use crate::manifest;
use crate::model::pod::PreemptionPolicy;
use crate::model::{Kind, Object, ResourceList, Str, Time};
use crate::telemetry::metrics::Metrics;
use profiles::Profiles;
use recent::RecentDecisions;
use retries::Retries;

/// Everything that the use cases share.
#[derive(Debug)]
pub struct Service {
    pub cluster: Cluster,
    profiles: RwLock<Arc<Profiles>>,
    clock: Arc<dyn Clock>,
    recent: RecentDecisions,
    retries: Arc<Retries>,
    fencing: feed::Fencing,
    metrics: Metrics,
    config_file: config_file::ConfigFile,
    policy_file: policy_file::PolicyFile,
    holds: holds::Holds,
    max_decision_time: Duration,
    started: Time,
}

/// How long a decision may take unless `--max-decision-time` says otherwise: far beyond what any real pod needs.
pub const DEFAULT_MAX_DECISION_TIME: Duration = Duration::from_secs(10);

impl Default for Service {
    /// An empty cluster, upstream's default profile, the system's clock.
    fn default() -> Self {
        Self::new(Profiles::default(), Arc::new(SystemClock))
    }
}

impl Service {
    pub fn new(profiles: Profiles, clock: Arc<dyn Clock>) -> Self {
        Self {
            cluster: Cluster::default(),
            profiles: RwLock::new(Arc::new(profiles)),
            started: clock.now(),
            clock,
            recent: RecentDecisions::default(),
            retries: Arc::default(),
            fencing: feed::Fencing::default(),
            metrics: Metrics::default(),
            config_file: config_file::ConfigFile::default(),
            policy_file: policy_file::PolicyFile::default(),
            holds: holds::Holds::default(),
            max_decision_time: DEFAULT_MAX_DECISION_TIME,
        }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn started(&self) -> Time {
        self.started
    }

    /// The profiles in force.
    pub fn profiles(&self) -> Arc<Profiles> {
        self.profiles.read().clone()
    }

    pub fn set_profiles(&self, profiles: Profiles) {
        *self.profiles.write() = Arc::new(profiles);
    }

    /// The longest that a decision may take, whatever deadline its caller gives it.
    pub fn max_decision_time(&self) -> Duration {
        self.max_decision_time
    }

    pub fn set_max_decision_time(&mut self, longest: Duration) {
        self.max_decision_time = longest;
    }

    pub fn recent(&self) -> &RecentDecisions {
        &self.recent
    }

    /// What is counted as it happens; all parts of the process record here.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether decisions can be made.
    pub fn ready(&self) -> Ready {
        let writer = self.cluster.writer();
        writer.readiness().check(writer.view().node_count())
    }

    /// Gives back the room of reservations whose time is up; how many there were. Called about once a second, and looks after
    /// what else ends in silence.
    pub fn expire_reservations(&self) -> usize {
        let now = self.now();
        let mut writer = self.cluster.writer();
        let ended = writer.expire(now);
        self.holds.sweep(&writer);
        ended
    }

    fn view_info(&self, writer: &Writer) -> ViewInfo {
        let nodes = writer.view().node_count();
        ViewInfo {
            revision: writer.view().revision(),
            incarnation: writer.incarnation().clone(),
            sources: writer.readiness().sources().iter().map(|(name, state)| (name.clone(), state.clone())).collect(),
            manual: writer.readiness().check(nodes) == Ready::Manual,
            nodes,
            now: self.now(),
        }
    }
}

/// What an answer was computed from.
#[derive(Debug, Clone)]
pub struct ViewInfo {
    pub revision: u64,
    pub incarnation: Str,
    /// Feeding clients by name.
    pub sources: Vec<(Str, SourceState)>,
    /// Nobody said Hello: nothing says that the picture is complete.
    pub manual: bool,
    pub nodes: usize,
    pub now: Time,
}

/// Priority and runtime classes as they were fed, for defaulting pods.
impl manifest::Classes for Cluster {
    fn priority(&self, name: &str) -> Option<(i32, PreemptionPolicy)> {
        match self.objects().other(Kind::PriorityClass, &Str::default(), &name.into())? {
            Object::PriorityClass(class) => Some((class.value, class.preemption_policy)),
            _ => None,
        }
    }

    fn default_priority(&self) -> Option<(i32, PreemptionPolicy)> {
        if self.objects().count(Kind::PriorityClass) == 0 {
            return None;
        }
        // Of several default classes the one with the lowest value counts, as in the API server's admission.
        let classes = self.objects().others(Kind::PriorityClass).into_iter().filter_map(|o| match o {
            Object::PriorityClass(class) if class.global_default => Some((class.value, class.preemption_policy)),
            _ => None,
        });
        classes.min_by_key(|(value, _)| *value)
    }

    fn overhead(&self, runtime_class: &str) -> Option<ResourceList> {
        match self.objects().other(Kind::RuntimeClass, &Str::default(), &runtime_class.into())? {
            Object::RuntimeClass(class) => Some(class.overhead.clone()),
            _ => None,
        }
    }
}
