//! `predicates`: the names of section 8.1, the order in which they run, and the filters that they are today.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::arguments::{Argument, argument};
use super::fields::Fields;
use crate::engine::plugin::Plugin;
use crate::engine::plugins::legacy::{
    CheckNodeCondition, CheckNodeLabelPresence, CheckNodePressure, CheckServiceAffinity, GeneralPredicates,
    MaxVolumeCount, PodToleratesNodeNoExecuteTaints, Pressure,
};
use crate::engine::plugins::{
    InterPodAffinity, NodeAffinityPlugin, NodeName, NodePorts, NodeResourcesFit, NodeUnschedulable, NodeVolumeLimits,
    PodTopologySpread, TaintToleration, VolumeBindingPlugin, VolumeRestrictions, VolumeZone,
};
use crate::manifest::error::invalid_number;
use crate::manifest::near_miss::closest;
use crate::model::Str;

/// The predicates in the order in which they run unless told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Predicate {
    CheckNodeCondition,
    CheckNodeUnschedulable,
    GeneralPredicates,
    HostName,
    PodFitsHostPorts,
    MatchNodeSelector,
    PodFitsResources,
    NoDiskConflict,
    PodToleratesNodeTaints,
    PodToleratesNodeNoExecuteTaints,
    CheckNodeLabelPresence,
    CheckServiceAffinity,
    MaxEbsVolumeCount,
    MaxGcePdVolumeCount,
    MaxCsiVolumeCount,
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    CheckVolumeBinding,
    NoVolumeZoneConflict,
    CheckNodeMemoryPressure,
    CheckNodePidPressure,
    CheckNodeDiskPressure,
    EvenPodsSpread,
    MatchInterPodAffinity,
}

use Predicate as P;

/// The names that need no argument, aliases after the name that they stand for.
const NAMES: &[(&str, Predicate)] = &[
    ("CheckNodeCondition", P::CheckNodeCondition),
    ("CheckNodeUnschedulable", P::CheckNodeUnschedulable),
    ("GeneralPredicates", P::GeneralPredicates),
    ("HostName", P::HostName),
    ("PodFitsHost", P::HostName),
    ("PodFitsHostPorts", P::PodFitsHostPorts),
    ("PodFitsPorts", P::PodFitsHostPorts),
    ("MatchNodeSelector", P::MatchNodeSelector),
    ("PodFitsResources", P::PodFitsResources),
    ("NoDiskConflict", P::NoDiskConflict),
    ("PodToleratesNodeTaints", P::PodToleratesNodeTaints),
    ("PodToleratesNodeNoExecuteTaints", P::PodToleratesNodeNoExecuteTaints),
    ("MaxEBSVolumeCount", P::MaxEbsVolumeCount),
    ("MaxGCEPDVolumeCount", P::MaxGcePdVolumeCount),
    ("MaxCSIVolumeCountPred", P::MaxCsiVolumeCount),
    ("MaxCSIVolumeCount", P::MaxCsiVolumeCount),
    ("MaxAzureDiskVolumeCount", P::MaxAzureDiskVolumeCount),
    ("MaxCinderVolumeCount", P::MaxCinderVolumeCount),
    ("CheckVolumeBinding", P::CheckVolumeBinding),
    ("NoVolumeZoneConflict", P::NoVolumeZoneConflict),
    ("CheckNodeMemoryPressure", P::CheckNodeMemoryPressure),
    ("CheckNodePIDPressure", P::CheckNodePidPressure),
    ("CheckNodeDiskPressure", P::CheckNodeDiskPressure),
    ("EvenPodsSpread", P::EvenPodsSpread),
    ("MatchInterPodAffinity", P::MatchInterPodAffinity),
];

/// Part of every Policy.
const MANDATORY: [Predicate; 2] = [P::PodToleratesNodeTaints, P::CheckNodeUnschedulable];

/// What a Policy without `predicates` has (1.20).
const DEFAULT: [Predicate; 12] = [
    P::NoVolumeZoneConflict,
    P::MaxEbsVolumeCount,
    P::MaxGcePdVolumeCount,
    P::MaxAzureDiskVolumeCount,
    P::MaxCsiVolumeCount,
    P::MatchInterPodAffinity,
    P::NoDiskConflict,
    P::GeneralPredicates,
    P::PodToleratesNodeTaints,
    P::CheckVolumeBinding,
    P::CheckNodeUnschedulable,
    P::EvenPodsSpread,
];

const FIELDS: &[&str] = &["name", "order", "argument"];
const LABELS_PRESENCE: &str = "labelsPresence";
const SERVICE_AFFINITY: &str = "serviceAffinity";
const ARGUMENTS: &[(&str, &[&str])] = &[(LABELS_PRESENCE, &["labels", "presence"]), (SERVICE_AFFINITY, &["labels"])];

/// What one entry of the list asks for.
enum Wanted {
    Named(Predicate),
    LabelPresence(CheckNodeLabelPresence),
    ServiceAffinity(Vec<Str>),
}

impl Wanted {
    fn predicate(&self) -> Predicate {
        match self {
            Self::Named(predicate) => *predicate,
            Self::LabelPresence(_) => P::CheckNodeLabelPresence,
            Self::ServiceAffinity(_) => P::CheckServiceAffinity,
        }
    }
}

/// The filters in the order in which they run.
pub(super) fn filters(policy: &Fields<'_>) -> Vec<Arc<dyn Plugin>> {
    let mut wanted = match policy.list("predicates", FIELDS) {
        None => DEFAULT.map(|predicate| (None, Wanted::Named(predicate))).into(),
        Some(entries) => read(&entries),
    };
    for predicate in MANDATORY {
        if wanted.iter().all(|(_, w)| w.predicate() != predicate) {
            wanted.push((None, Wanted::Named(predicate)));
        }
    }
    // Those with an order first; the sort is stable, so that equals stay in the order of the file.
    wanted.sort_by_key(|(order, w)| (order.is_none(), order.unwrap_or(0), w.predicate()));
    let mut placed = Placed::default();
    for (_, wanted) in wanted {
        placed.add(wanted);
    }
    placed.finish()
}

fn read(entries: &[Fields<'_>]) -> Vec<(Option<i64>, Wanted)> {
    let mut orders: BTreeMap<i64, &str> = BTreeMap::new();
    let mut wanted = Vec::with_capacity(entries.len());
    for r in entries {
        let name = r.required_text("name");
        let order = r.integer("order");
        if let Some(order) = order {
            let label = name.unwrap_or("?");
            if order <= 0 {
                r.error("order", invalid_number(order, "must be greater than 0"));
            } else if let Some(other) = orders.get(&order) {
                r.error("order", format!("Duplicate value: {order}: {other:?} has it already"));
            } else {
                orders.insert(order, label);
            }
        }
        let Some(name) = name else { continue };
        wanted.extend(entry(r, name).map(|w| (order, w)));
    }
    wanted
}

fn entry(r: &Fields<'_>, name: &str) -> Option<Wanted> {
    let argument = argument(r, "predicate", name, ARGUMENTS);
    if let Some((_, predicate)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(Wanted::Named(*predicate));
    }
    match argument {
        Argument::One(LABELS_PRESENCE, r) => Some(Wanted::LabelPresence(CheckNodeLabelPresence {
            labels: labels(&r),
            presence: r.flag("presence").unwrap_or(false),
        })),
        Argument::One(_, r) => Some(Wanted::ServiceAffinity(labels(&r))),
        Argument::Broken => None,
        Argument::None => {
            let hint = match name {
                "CheckNodeLabelPresence" => "; it needs argument.labelsPresence".to_owned(),
                "CheckServiceAffinity" => "; it needs argument.serviceAffinity".to_owned(),
                _ => closest(name, NAMES.iter().map(|(known, _)| *known))
                    .map(|known| format!("; did you mean {known:?}?"))
                    .unwrap_or_default(),
            };
            r.error("name", format!("predicate type not found for {name:?}{hint}"));
            None
        }
    }
}

fn labels(r: &Fields<'_>) -> Vec<Str> {
    r.texts("labels").into_iter().map(Str::from).collect()
}

/// The filters so far. Each rule is placed once, where it comes first: a node that passed it won't fail it later.
#[derive(Default)]
struct Placed {
    filters: Vec<Arc<dyn Plugin>>,
    done: BTreeSet<Predicate>,
    /// Where CheckServiceAffinity stands, and the labels of all of them: several such predicates are one.
    service_affinity: Option<(usize, Vec<Str>)>,
}

impl Placed {
    fn add(&mut self, wanted: Wanted) {
        match wanted {
            Wanted::LabelPresence(rule) => self.filters.push(Arc::new(rule)),
            Wanted::ServiceAffinity(labels) => {
                let (_, all) = self.service_affinity.get_or_insert_with(|| (self.filters.len(), Vec::new()));
                for label in labels {
                    if !all.contains(&label) {
                        all.push(label);
                    }
                }
            }
            Wanted::Named(P::GeneralPredicates) => {
                let parts = [P::PodFitsResources, P::HostName, P::PodFitsHostPorts, P::MatchNodeSelector];
                let members: Vec<Arc<dyn Plugin>> =
                    parts.into_iter().filter(|part| self.done.insert(*part)).filter_map(todays).collect();
                if !members.is_empty() {
                    self.filters.push(Arc::new(GeneralPredicates { members }));
                }
            }
            Wanted::Named(predicate) => self.add_named(predicate),
        }
    }

    fn add_named(&mut self, predicate: Predicate) {
        if !self.done.insert(predicate) {
            return;
        }
        if let Some(plugin) = todays(predicate) {
            self.filters.push(plugin);
            return;
        }
        if let Some((legacy, and_csi)) = without_plugin(predicate) {
            self.filters.push(legacy);
            if and_csi {
                self.add_named(P::MaxCsiVolumeCount);
            }
        }
    }

    fn finish(mut self) -> Vec<Arc<dyn Plugin>> {
        if let Some((at, labels)) = self.service_affinity {
            self.filters.insert(at, Arc::new(CheckServiceAffinity { labels }));
        }
        self.filters
    }
}

/// The plugin that a predicate is today.
fn todays(predicate: Predicate) -> Option<Arc<dyn Plugin>> {
    Some(match predicate {
        P::CheckNodeUnschedulable => Arc::new(NodeUnschedulable),
        P::HostName => Arc::new(NodeName),
        P::PodFitsHostPorts => Arc::new(NodePorts),
        P::MatchNodeSelector => Arc::new(NodeAffinityPlugin::default()),
        P::PodFitsResources => Arc::new(NodeResourcesFit::default()),
        P::NoDiskConflict => Arc::new(VolumeRestrictions),
        P::PodToleratesNodeTaints => Arc::new(TaintToleration),
        P::MaxCsiVolumeCount => Arc::new(NodeVolumeLimits),
        P::CheckVolumeBinding => Arc::new(VolumeBindingPlugin),
        P::NoVolumeZoneConflict => Arc::new(VolumeZone),
        P::EvenPodsSpread => Arc::new(PodTopologySpread::default()),
        P::MatchInterPodAffinity => Arc::new(InterPodAffinity::default()),
        _ => return None,
    })
}

/// The rule of a predicate that is no plugin any more, and whether NodeVolumeLimits goes with it: that is what the counts of
/// in-tree volumes are today, on nodes that left the type to its CSI driver.
fn without_plugin(predicate: Predicate) -> Option<(Arc<dyn Plugin>, bool)> {
    let plugin: Arc<dyn Plugin> = match predicate {
        P::CheckNodeCondition => Arc::new(CheckNodeCondition),
        P::PodToleratesNodeNoExecuteTaints => Arc::new(PodToleratesNodeNoExecuteTaints),
        P::CheckNodeMemoryPressure => Arc::new(CheckNodePressure(Pressure::Memory)),
        P::CheckNodePidPressure => Arc::new(CheckNodePressure(Pressure::Pid)),
        P::CheckNodeDiskPressure => Arc::new(CheckNodePressure(Pressure::Disk)),
        P::MaxEbsVolumeCount => return Some((Arc::new(MaxVolumeCount::EBS), true)),
        P::MaxGcePdVolumeCount => return Some((Arc::new(MaxVolumeCount::GCE_PD), true)),
        P::MaxAzureDiskVolumeCount => return Some((Arc::new(MaxVolumeCount::AZURE_DISK), true)),
        P::MaxCinderVolumeCount => return Some((Arc::new(MaxVolumeCount::CINDER), true)),
        _ => return None,
    };
    Some((plugin, false))
}
