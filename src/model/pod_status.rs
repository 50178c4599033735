//! `status` of a pod.

use super::{ResourceList, Str, Time};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodStatus {
    pub phase: Phase,
    /// Such as `Evicted` or `NodeAffinity`.
    pub reason: Str,
    /// Empty: none.
    pub nominated_node: Str,
    pub started: Option<Time>,
    pub conditions: Vec<PodCondition>,
    pub containers: Vec<ContainerStatus>,
    pub init_containers: Vec<ContainerStatus>,
    pub ephemeral_containers: Vec<ContainerStatus>,
    /// Pod-level resources in force (None when the field is null).
    pub resources: Option<ResourceList>,
    pub allocated_resources: ResourceList,
    /// Empty when not reported.
    pub qos_class: Str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

impl Phase {
    pub const ALL: [Phase; 5] = [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }

    /// The pod has ended and holds nothing any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodCondition {
    pub kind: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    pub reason: Str,
    pub last_transition: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContainerStatus {
    pub name: Str,
    pub restart_count: i32,
    pub ready: bool,
    pub image_id: Str,
    pub state: ContainerState,
    pub last_state: ContainerState,
    /// `resources.requests` in force; None when `resources` is null.
    pub requests: Option<ResourceList>,
    pub allocated: ResourceList,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ContainerState {
    #[default]
    Unset,
    Waiting {
        reason: Str,
    },
    Running {
        started: Option<Time>,
    },
    Terminated {
        reason: Str,
        exit_code: i32,
        finished: Option<Time>,
    },
}

impl PodStatus {
    /// A resize was asked for that this node can't give: the FIRST `PodResizePending` condition says `Infeasible`
    /// (its status isn't looked at, as upstream).
    pub fn resize_infeasible(&self) -> bool {
        self.conditions.iter().find(|c| &*c.kind == "PodResizePending").is_some_and(|c| &*c.reason == "Infeasible")
    }
}
