//! CheckNodeMemoryPressure, CheckNodePIDPressure and CheckNodeDiskPressure (spec 8.1; removed in 1.17, when conditions
//! became taints). Memory pressure keeps off only pods of the BestEffort class, the others any pod.

use crate::cluster::NodeRow;
use crate::engine::legacy_reason::LegacyReason;
use crate::engine::plugin::{Cycle, FilterPlugin, NodeFilter, Plugin, PreFilter};
use crate::engine::status::{Reason, Rejection};
use crate::model::qos;

#[derive(Debug)]
pub struct CheckNodePressure(pub Pressure);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    Memory,
    Pid,
    Disk,
}

impl Pressure {
    fn condition(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Pid => "PIDPressure",
            Self::Disk => "DiskPressure",
        }
    }

    fn reason(self) -> LegacyReason {
        match self {
            Self::Memory => LegacyReason::MemoryPressure,
            Self::Pid => LegacyReason::PidPressure,
            Self::Disk => LegacyReason::DiskPressure,
        }
    }
}

impl Plugin for CheckNodePressure {
    fn name(&self) -> &'static str {
        match self.0 {
            Pressure::Memory => "CheckNodeMemoryPressure",
            Pressure::Pid => "CheckNodePIDPressure",
            Pressure::Disk => "CheckNodeDiskPressure",
        }
    }

    fn filter(&self) -> Option<&dyn FilterPlugin> {
        Some(self)
    }
}

impl FilterPlugin for CheckNodePressure {
    fn has_pre_filter(&self) -> bool {
        false
    }

    fn prepare<'a>(&'a self, cycle: &Cycle<'a>) -> PreFilter<'a> {
        if self.0 == Pressure::Memory && !qos::is_best_effort(cycle.pod.pod) {
            return PreFilter::Skip;
        }
        PreFilter::Filter(Box::new(Filter { plugin: self.name(), pressure: self.0 }))
    }
}

struct Filter {
    plugin: &'static str,
    pressure: Pressure,
}

impl NodeFilter for Filter {
    fn check(&self, node: &NodeRow<'_>) -> Result<(), Rejection> {
        let condition = self.pressure.condition();
        if node.node().conditions.iter().any(|c| &*c.kind == condition && &*c.status == "True") {
            return Err(Rejection::unresolvable(self.plugin, Reason::Legacy(self.pressure.reason())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{only, scene};
    use crate::model::NodeCondition;
    use crate::model::testing::{PodBuilder, node, pod};

    fn refusal(pressure: Pressure, status: &str, pod: PodBuilder) -> Option<String> {
        let condition = NodeCondition { kind: pressure.condition().into(), status: status.into() };
        let pressed = node("n").with(|n| n.conditions.push(condition));
        let verdict = scene([pressed], []).profile(only(CheckNodePressure(pressure))).decide(pod);
        verdict.feasible().is_empty().then(|| verdict.refusal("n"))
    }

    #[test]
    fn memory_pressure_keeps_off_best_effort_pods_only() {
        let text = "CheckNodeMemoryPressure UU: node(s) had memory pressure";
        assert_eq!(refusal(Pressure::Memory, "True", pod("p")).as_deref(), Some(text));
        assert_eq!(refusal(Pressure::Memory, "True", pod("p").cpu("1m")), None);
        assert_eq!(refusal(Pressure::Memory, "Unknown", pod("p")), None);
    }

    #[test]
    fn pid_and_disk_pressure_keep_off_any_pod() {
        let text = "CheckNodePIDPressure UU: node(s) had pid pressure";
        assert_eq!(refusal(Pressure::Pid, "True", pod("p").cpu("1")).as_deref(), Some(text));
        let text = "CheckNodeDiskPressure UU: node(s) had disk pressure";
        assert_eq!(refusal(Pressure::Disk, "True", pod("p").cpu("1")).as_deref(), Some(text));
        assert_eq!(refusal(Pressure::Disk, "False", pod("p")), None);
    }
}
