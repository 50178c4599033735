//! Random policies: some of the strategies with arguments that bite, in one or two profiles, with and without limits.

use super::world::NOW;
use crate::engine::random_cluster::Dice;
use crate::evict::policy::{
    DefaultEvictorArgs, EvictionMode, ExtensionPoint, HighNodeUtilizationArgs, LowNodeUtilizationArgs,
    NodeAffinityType, PluginConfig, PluginName, PodConditionFilter, PodLifeTimeArgs, PodProtection, Policy,
    PolicyProfile, RemoveDuplicatesArgs, RemoveFailedPodsArgs, RemovePodsHavingTooManyRestartsArgs,
    RemovePodsViolatingInterPodAntiAffinityArgs, RemovePodsViolatingNoExecuteTaintsArgs,
    RemovePodsViolatingNodeAffinityArgs, RemovePodsViolatingNodeTaintsArgs,
    RemovePodsViolatingTopologySpreadConstraintArgs, RestartState, Thresholds, UsageSource,
};
use crate::model::topology_spread::WhenUnsatisfiable;

/// HighNodeUtilization is for schedulers that pack.
pub(super) fn random(dice: &mut Dice, packs: bool) -> Policy {
    let limit = |dice: &mut Dice| dice.one_in(4).then(|| 1 + dice.below(3) as u64);
    let count = if dice.one_in(3) { 1 } else { 2 + dice.below(4) };
    let mut profiles = vec![PolicyProfile { name: "p".into(), evictor: random_evictor(dice), ..Default::default() }];
    if dice.one_in(4) {
        profiles.push(PolicyProfile { name: "q".into(), evictor: random_evictor(dice), ..Default::default() });
    }
    for i in 0..count {
        let name = if packs && i == 0 { PluginName::HighNodeUtilization } else { dice.pick(PluginName::ALL) };
        let plugin = random_plugin(dice, name);
        let at = dice.below(profiles.len());
        match plugin.name().extension_point() {
            ExtensionPoint::Deschedule => profiles[at].deschedule.push(plugin),
            ExtensionPoint::Balance => profiles[at].balance.push(plugin),
        }
    }
    Policy {
        max_per_node: limit(dice),
        max_per_namespace: limit(dice),
        max_total: limit(dice),
        kubernetes_metrics: true,
        profiles,
        ..Policy::default()
    }
}

fn random_evictor(dice: &mut Dice) -> DefaultEvictorArgs {
    let mut args = DefaultEvictorArgs { node_fit: dice.one_in(3), ..DefaultEvictorArgs::default() };
    if dice.one_in(4) {
        args.min_replicas = 2 + dice.below(2) as u64;
    }
    if dice.one_in(6) {
        args.min_pod_age_micros = Some(i64::from(dice.pick(&[1_u8, 60])) * 1_000_000);
    }
    if dice.one_in(4) {
        args.protections.retain(|p| *p != PodProtection::DaemonSetPods);
    }
    args
}

fn thresholds(dice: &mut Dice, percents: &[f64]) -> Thresholds {
    let mut list = Thresholds::from([("cpu".into(), dice.pick(percents))]);
    if dice.one_in(3) {
        list.insert("pods".into(), dice.pick(percents));
    }
    list
}

fn random_plugin(dice: &mut Dice, name: PluginName) -> PluginConfig {
    match name {
        PluginName::HighNodeUtilization => PluginConfig::HighNodeUtilization(HighNodeUtilizationArgs {
            thresholds: thresholds(dice, &[10.0, 30.0, 60.0]),
            eviction_modes: if dice.one_in(4) { vec![EvictionMode::OnlyThresholdingResources] } else { Vec::new() },
            ..HighNodeUtilizationArgs::default()
        }),
        PluginName::LowNodeUtilization => {
            let low = thresholds(dice, &[10.0, 20.0, 40.0]);
            let target = low.iter().map(|(name, percent)| (name.clone(), percent + dice.pick(&[0.0, 10.0, 30.0])));
            PluginConfig::LowNodeUtilization(LowNodeUtilizationArgs {
                target_thresholds: target.collect(),
                thresholds: low,
                use_deviation_thresholds: dice.one_in(4),
                max_per_node: dice.one_in(6).then_some(1),
                usage: if dice.one_in(3) { UsageSource::KubernetesMetrics } else { UsageSource::Requests },
                ..LowNodeUtilizationArgs::default()
            })
        }
        PluginName::PodLifeTime => PluginConfig::PodLifeTime(match dice.below(3) {
            0 => PodLifeTimeArgs { max_seconds: Some(dice.pick(&[0, 60, 400_000])), ..Default::default() },
            1 => {
                let states = vec![dice.pick(&["Running", "Pending", "CrashLoopBackOff", "Failed"]).into()];
                PodLifeTimeArgs { states, ..Default::default() }
            }
            _ => {
                let filter = PodConditionFilter {
                    kind: Some("Ready".into()),
                    status: Some(dice.pick(&["True", "False"]).into()),
                    ..Default::default()
                };
                PodLifeTimeArgs { conditions: vec![filter], ..Default::default() }
            }
        }),
        PluginName::RemoveDuplicates => PluginConfig::RemoveDuplicates(RemoveDuplicatesArgs::default()),
        PluginName::RemoveFailedPods => PluginConfig::RemoveFailedPods(RemoveFailedPodsArgs {
            min_pod_lifetime_seconds: dice.pick(&[0, 3_600, NOW.unsigned_abs()]),
            ..RemoveFailedPodsArgs::default()
        }),
        PluginName::RemovePodsHavingTooManyRestarts => {
            PluginConfig::RemovePodsHavingTooManyRestarts(RemovePodsHavingTooManyRestartsArgs {
                restart_threshold: dice.pick(&[1, 5]),
                states: if dice.one_in(3) { vec![RestartState::CrashLoopBackOff] } else { Vec::new() },
                ..RemovePodsHavingTooManyRestartsArgs::default()
            })
        }
        PluginName::RemovePodsViolatingInterPodAntiAffinity => {
            PluginConfig::RemovePodsViolatingInterPodAntiAffinity(RemovePodsViolatingInterPodAntiAffinityArgs::default())
        }
        PluginName::RemovePodsViolatingNoExecuteTaints => {
            PluginConfig::RemovePodsViolatingNoExecuteTaints(RemovePodsViolatingNoExecuteTaintsArgs::default())
        }
        PluginName::RemovePodsViolatingNodeAffinity => {
            let types = match dice.below(3) {
                0 => vec![NodeAffinityType::Required],
                1 => vec![NodeAffinityType::Preferred],
                _ => vec![NodeAffinityType::Preferred, NodeAffinityType::Required],
            };
            PluginConfig::RemovePodsViolatingNodeAffinity(RemovePodsViolatingNodeAffinityArgs {
                types,
                ..Default::default()
            })
        }
        PluginName::RemovePodsViolatingNodeTaints => {
            PluginConfig::RemovePodsViolatingNodeTaints(RemovePodsViolatingNodeTaintsArgs {
                include_prefer_no_schedule: dice.one_in(3),
                ..Default::default()
            })
        }
        PluginName::RemovePodsViolatingTopologySpreadConstraint => {
            PluginConfig::RemovePodsViolatingTopologySpreadConstraint(RemovePodsViolatingTopologySpreadConstraintArgs {
                constraints: vec![WhenUnsatisfiable::DoNotSchedule, WhenUnsatisfiable::ScheduleAnyway],
                ..Default::default()
            })
        }
    }
}
