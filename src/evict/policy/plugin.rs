//! The plugins that a policy can name, and where they run.

use super::{
    HighNodeUtilizationArgs, LowNodeUtilizationArgs, PodLifeTimeArgs, RemoveDuplicatesArgs, RemoveFailedPodsArgs,
    RemovePodsHavingTooManyRestartsArgs, RemovePodsViolatingInterPodAntiAffinityArgs,
    RemovePodsViolatingNoExecuteTaintsArgs, RemovePodsViolatingNodeAffinityArgs, RemovePodsViolatingNodeTaintsArgs,
    RemovePodsViolatingTopologySpreadConstraintArgs,
};

/// When a plugin runs: all Deschedule plugins of all profiles go first (spec 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExtensionPoint {
    Deschedule,
    Balance,
}

impl ExtensionPoint {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deschedule => "deschedule",
            Self::Balance => "balance",
        }
    }
}

macro_rules! plugins {
    ($($name:ident($args:ident) at $point:ident;)*) => {
        /// A strategy by its upstream name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PluginName {
            $($name,)*
        }

        impl PluginName {
            /// In the order of the names.
            pub const ALL: &[PluginName] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            pub fn extension_point(self) -> ExtensionPoint {
                match self {
                    $(Self::$name => ExtensionPoint::$point,)*
                }
            }
        }

        /// A strategy with its arguments.
        #[derive(Debug, Clone, PartialEq)]
        pub enum PluginConfig {
            $($name($args),)*
        }

        impl PluginConfig {
            pub fn name(&self) -> PluginName {
                match self {
                    $(Self::$name(_) => PluginName::$name,)*
                }
            }
        }
    };
}

plugins! {
    HighNodeUtilization(HighNodeUtilizationArgs) at Balance;
    LowNodeUtilization(LowNodeUtilizationArgs) at Balance;
    PodLifeTime(PodLifeTimeArgs) at Deschedule;
    RemoveDuplicates(RemoveDuplicatesArgs) at Balance;
    RemoveFailedPods(RemoveFailedPodsArgs) at Deschedule;
    RemovePodsHavingTooManyRestarts(RemovePodsHavingTooManyRestartsArgs) at Deschedule;
    RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinityArgs) at Deschedule;
    RemovePodsViolatingNoExecuteTaints(RemovePodsViolatingNoExecuteTaintsArgs) at Deschedule;
    RemovePodsViolatingNodeAffinity(RemovePodsViolatingNodeAffinityArgs) at Deschedule;
    RemovePodsViolatingNodeTaints(RemovePodsViolatingNodeTaintsArgs) at Deschedule;
    RemovePodsViolatingTopologySpreadConstraint(RemovePodsViolatingTopologySpreadConstraintArgs) at Balance;
}

impl PluginName {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|plugin| plugin.as_str() == name)
    }
}
