//! What the process holds, in numbers for `/metrics` and as a picture for `/debug/cache`.
//!
//! Both are read from the object store and from forks, so that a scrape holds up a decision for no longer than a fork takes.
//! A walk over 150,000 pods takes some tens of milliseconds: off the async threads.

use super::inspect::{PodEntry, Summary};
use super::{Service, ViewInfo};
use crate::cluster::PodState;
use crate::cluster::View;
use crate::cluster::readiness::Ready;
use crate::cluster::reservation::{Basis, Reservations};
use crate::model::{Kind, Str, Time};
use crate::telemetry::sizes::Sizes;

/// A consistent view with what lies beside it. Pods and counts of objects were read a moment before the view was forked.
#[derive(Debug)]
pub struct Picture {
    pub view: View,
    pub reservations: Reservations,
    pub info: ViewInfo,
    pub ready: Ready,
    pub profiles: Vec<Str>,
    /// Kinds without objects are left out.
    pub objects: Vec<(Kind, usize)>,
    /// Pods that take no room on a known node, by namespace, name and uid.
    pub elsewhere: Vec<PodEntry>,
}

impl Service {
    /// The numbers of now.
    pub fn sizes(&self) -> Sizes {
        let Summary { view, ready, pods, objects, started, config_file, policy_file, .. } = self.summary();
        let (tally, reservations, room, kept) = {
            let writer = self.cluster.writer();
            let (room, kept) = (writer.view().pod_count(), writer.view().kept_keys());
            (writer.reservation_tally(), writer.reservations().clone(), room, kept)
        };
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let based = |basis: fn(&Basis) -> bool| count(reservations.iter().filter(|r| basis(&r.basis)).count());
        let states = PodState::ALL.iter().map(|s| (s.as_str(), count(pods.get(s).copied().unwrap_or_default())));
        let of_kind = |kind: &Kind| objects.iter().find(|(k, _)| k == kind).map_or(0, |(_, n)| *n);
        let named = view.sources.iter().filter(|(name, _)| !name.is_empty());
        Sizes {
            cache: vec![
                ("nodes", count(view.nodes)),
                ("pods", count(room)),
                ("assumed_pods", count(reservations.len())),
                ("selector_counts", count(kept)),
            ],
            pods: states.collect(),
            objects: Kind::ALL.iter().map(|kind| (kind.as_str(), count(of_kind(kind)))).collect(),
            reservations: vec![
                ("decided", based(|basis| matches!(basis, Basis::Decided { .. }))),
                ("assumed", based(|basis| matches!(basis, Basis::Assumed))),
                ("held", based(|basis| matches!(basis, Basis::Held { .. }))),
            ],
            reservation_events: vec![
                ("made", tally.made),
                ("assumed", tally.assumed),
                ("renewed", tally.renewed),
                ("confirmed", tally.confirmed),
                ("released", tally.released),
                ("expired", tally.expired),
                ("withdrawn", tally.withdrawn),
            ],
            revision: view.revision,
            ready: ready.is_ready(),
            sources: named.map(|(name, state)| (name.clone(), seconds(view.now, state.last_heard))).collect(),
            started_seconds: seconds(started, Time(0)),
            config: config_file.map(|status| (status.refused.is_none(), seconds(status.loaded, Time(0)))),
            policy: policy_file.map(|status| status.refused.is_none()),
        }
    }

    /// All there is to show, on forks.
    pub fn picture(&self) -> Picture {
        let pods = self.cluster.objects().pods_unsorted();
        let objects = Kind::ALL.iter().map(|kind| (*kind, self.cluster.objects().count(*kind)));
        let objects = objects.filter(|(_, count)| *count > 0).collect();
        let (view, reservations, info, ready) = {
            let writer = self.cluster.writer();
            let ready = writer.readiness().check(writer.view().node_count());
            (writer.view().clone(), writer.reservations().clone(), self.view_info(&writer), ready)
        };
        let mut elsewhere: Vec<PodEntry> = super::inspect::entries(pods, &view, &reservations)
            .filter(|entry| view.pod(&entry.pod.meta.uid).is_none())
            .collect();
        elsewhere.sort_by(|a, b| super::inspect::pod_key(&a.pod).cmp(&super::inspect::pod_key(&b.pod)));
        let profiles = self.profiles().iter().map(|p| p.name().clone()).collect();
        Picture { view, reservations, info, ready, profiles, objects, elsewhere }
    }
}

/// Never negative, even if the clock was set back.
#[allow(clippy::cast_precision_loss, reason = "microseconds of a lifetime fit into 53 bits")]
fn seconds(now: Time, then: Time) -> f64 {
    now.0.saturating_sub(then.0).max(0) as f64 / 1e6
}
