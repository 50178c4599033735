//! Containers of a pod.

use super::{ResourceList, Str};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Container {
    pub name: Str,
    pub image: Str,
    pub resources: ResourceRequirements,
    pub ports: Vec<ContainerPort>,
    /// `restartPolicy: Always` on an init container: a sidecar, which runs beside the regular containers.
    pub restart_always: bool,
    /// Some rule of `restartPolicyRules` has the action RestartAllContainers.
    pub restarts_all_containers: bool,
}

/// After defaulting: every limit has a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRequirements {
    pub requests: ResourceList,
    pub limits: ResourceList,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerPort {
    pub container_port: u16,
    /// 0: no host port.
    pub host_port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Str,
    /// Empty means `0.0.0.0`.
    pub host_ip: Str,
}
