//! Arguments of the plugins that look at how pods fare: restarts, age, failure (spec 16 to 18).

use super::PodSelection;
use crate::model::Str;

/// Spec 16.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovePodsHavingTooManyRestartsArgs {
    pub pods: PodSelection,
    /// Restarts of all containers together, at least. 1 or more.
    pub restart_threshold: i32,
    pub including_init_containers: bool,
    /// Only pods in one of these states. Empty: any.
    pub states: Vec<RestartState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartState {
    Running,
    CrashLoopBackOff,
}

impl RestartState {
    /// The phase of a pod, or the reason for which a container waits.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::CrashLoopBackOff => "CrashLoopBackOff",
        }
    }
}

/// Spec 17. The tests that are set must all pass; at least one of age, states, conditions and exit codes is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodLifeTimeArgs {
    pub pods: PodSelection,
    /// Older than this many whole seconds since creation. None: any age.
    pub max_seconds: Option<u64>,
    /// Phases, `status.reason`s and container reasons, of upstream's list. Empty: any.
    pub states: Vec<Str>,
    /// Some condition of the pod satisfies one of these. Empty: any.
    pub conditions: Vec<PodConditionFilter>,
    /// Some container has ended with one of these. Empty: any.
    pub exit_codes: Vec<i32>,
    pub owner_kinds: OwnerKinds,
    pub including_init_containers: bool,
    pub including_ephemeral_containers: bool,
}

/// What a pod condition must be like; a field that is None is not looked at, and at least one is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodConditionFilter {
    /// `type`.
    pub kind: Option<Str>,
    pub status: Option<Str>,
    pub reason: Option<Str>,
    /// Whole seconds since the last transition, at least.
    pub min_seconds_since_last_transition: Option<u64>,
}

/// Which owners a pod may have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OwnerKinds {
    #[default]
    Any,
    /// Some owner is of one of these kinds; pods without owner fail.
    Include(Vec<Str>),
    /// No owner is of one of these kinds; pods without owner pass.
    Exclude(Vec<Str>),
}

impl OwnerKinds {
    pub fn admits<'a>(&self, mut kinds_of_owners: impl Iterator<Item = &'a str>) -> bool {
        match self {
            Self::Any => true,
            Self::Include(kinds) => kinds_of_owners.any(|k| kinds.iter().any(|x| &**x == k)),
            Self::Exclude(kinds) => !kinds_of_owners.any(|k| kinds.iter().any(|x| &**x == k)),
        }
    }
}

/// Spec 18.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveFailedPodsArgs {
    pub pods: PodSelection,
    /// Pods with any owner of these kinds are skipped.
    pub exclude_owner_kinds: Vec<Str>,
    /// Whole seconds since creation, at least.
    pub min_pod_lifetime_seconds: u64,
    /// `status.reason`s and container reasons, free strings. Empty: any.
    pub reasons: Vec<Str>,
    /// Some container has ended with one of these. Empty: any.
    pub exit_codes: Vec<i32>,
    pub including_init_containers: bool,
}

impl Default for RemoveFailedPodsArgs {
    fn default() -> Self {
        Self {
            pods: PodSelection::default(),
            exclude_owner_kinds: Vec::new(),
            min_pod_lifetime_seconds: 3_600,
            reasons: Vec::new(),
            exit_codes: Vec::new(),
            including_init_containers: false,
        }
    }
}
