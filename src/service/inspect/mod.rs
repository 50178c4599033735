//! What does the cache hold: a summary, and lists in pages.
//!
//! Everything is read from the object store and from a fork, so that looking never holds up a decision for longer than the
//! fork takes; lists sort only the page that they give. Calls take up to some tens of milliseconds at 150,000 pods: off the
//! async threads.

mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use page::{Page, PageRequest};

use super::config_file::ConfigStatus;
use super::recent::RecentDecision;
use super::{Service, ServiceError, ViewInfo};
use crate::cluster::readiness::Ready;
use crate::cluster::reservation::{Basis, Reservation, Reservations};
use crate::cluster::{NodeRow, PodState, View};
use crate::engine::Profile;
use crate::model::resources::PODS;
use crate::model::{Kind, Node, Pod, Str, Time};
use page::{List, Place, smallest};

/// Amounts by resource, sorted by name: thousandths for cpu, bytes for memory and storage, pieces else.
pub type AmountMap = BTreeMap<Str, i64>;

#[derive(Debug, Clone)]
pub struct Summary {
    pub view: ViewInfo,
    pub ready: Ready,
    /// States without pods are left out.
    pub pods: BTreeMap<PodState, usize>,
    /// Kinds without objects are left out.
    pub objects: Vec<(Kind, usize)>,
    pub reservations: usize,
    /// Allocatable and requested over all nodes.
    pub resources: BTreeMap<Str, (i64, i64)>,
    pub profiles: Vec<Str>,
    pub started: Time,
    /// The file that the profiles come from, if one was named.
    pub config_file: Option<ConfigStatus>,
    /// The file of the descheduler policy, if one was named.
    pub policy_file: Option<ConfigStatus>,
}

#[derive(Debug, Clone)]
pub struct NodeEntry {
    pub node: Arc<Node>,
    pub allocatable: AmountMap,
    pub requested: AmountMap,
    pub pods: usize,
    pub allowed_pods: i64,
}

/// Which pods to list; all conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct PodFilter {
    /// Empty: on any node or none.
    pub node: String,
    /// Empty: of any namespace.
    pub namespace: String,
    /// Empty: in any state.
    pub states: BTreeSet<PodState>,
}

#[derive(Debug, Clone)]
pub struct PodEntry {
    pub pod: Arc<Pod>,
    /// Where it is bound or reserved; empty: nowhere.
    pub node: Str,
    pub state: PodState,
    /// The node that it waits for; empty: none.
    pub nominated: Str,
}

impl Service {
    pub fn summary(&self) -> Summary {
        let pods = self.cluster.objects().pods_unsorted();
        let (view, reservations, info, ready) = {
            let writer = self.cluster.writer();
            let ready = writer.readiness().check(writer.view().node_count());
            (writer.view().clone(), writer.reservations().clone(), self.view_info(&writer), ready)
        };
        let mut states = BTreeMap::new();
        for entry in entries(pods, &view, &reservations) {
            *states.entry(entry.state).or_default() += 1;
        }
        let resources = totals(&view);
        let counts = Kind::ALL.iter().map(|kind| (*kind, self.cluster.objects().count(*kind)));
        Summary {
            view: info,
            ready,
            pods: states,
            objects: counts.filter(|(_, count)| *count > 0).collect(),
            reservations: reservations.len(),
            resources,
            profiles: self.profiles().iter().map(|p| p.name().clone()).collect(),
            started: self.started(),
            config_file: self.config_status(),
            policy_file: self.policy_status(),
        }
    }

    /// The nodes by name; only those of `names`, if any are given.
    pub fn list_nodes(&self, names: &[String], request: &PageRequest) -> Result<Page<NodeEntry>, ServiceError> {
        let place = Place::<1>::of(List::Nodes, request)?;
        let view = self.cluster.fork();
        let rows: Vec<NodeRow<'_>> = if names.is_empty() {
            view.nodes().collect()
        } else {
            let names: BTreeSet<&String> = names.iter().collect();
            names.into_iter().filter_map(|name| view.node_named(name)).collect()
        };
        let after = place.after.as_ref().map(|[name]| name.as_str());
        let keys = rows.iter().map(|row| (&**row.name(), row.ordinal()));
        let keys = smallest(keys.filter(|(name, _)| after.is_none_or(|after| *name > after)).collect(), place.wanted());
        let entries = keys.into_iter().filter_map(|(_, ordinal)| view.node(ordinal)).map(|row| {
            let (allocatable, requested) = amounts(&row);
            NodeEntry {
                node: row.fixed().node.clone(),
                allocatable,
                requested,
                pods: row.pods().len(),
                allowed_pods: row.allowed_pods(),
            }
        });
        let weight = |entry: &NodeEntry| {
            let node = &entry.node;
            let labels: usize = node.meta.labels.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
            let taints: usize = node.taints.iter().map(|taint| taint.key.len() + taint.value.len() + 24).sum();
            let amounts = entry.allocatable.keys().chain(entry.requested.keys()).map(|name| name.len() + 16);
            64 + node.meta.name.len() + labels + taints + amounts.sum::<usize>()
        };
        Ok(place.cut(entries.collect(), view.revision(), |entry| [entry.node.meta.name.to_string()], weight))
    }

    /// The pods by namespace, name and uid; those that hold a reservation without ever having been fed are among them.
    pub fn list_pods(&self, filter: &PodFilter, request: &PageRequest) -> Result<Page<PodEntry>, ServiceError> {
        let place = Place::<3>::of(List::Pods, request)?;
        let pods = self.cluster.objects().pods_unsorted();
        let (view, reservations) = self.forks();
        if !filter.node.is_empty() && view.ordinal(&filter.node).is_none() {
            return Err(ServiceError::NotFound { what: "node", name: filter.node.clone(), known: Vec::new() });
        }
        let after = place.after.as_ref().map(|[namespace, name, uid]| (&**namespace, &**name, &**uid));
        let wanted: Vec<PodEntry> = entries(pods, &view, &reservations)
            .filter(|entry| {
                (filter.namespace.is_empty() || *entry.pod.meta.namespace == *filter.namespace)
                    && (filter.node.is_empty() || *entry.node == *filter.node)
                    && (filter.states.is_empty() || filter.states.contains(&entry.state))
                    && after.is_none_or(|after| pod_key(&entry.pod) > after)
            })
            .collect();
        let order: Vec<_> = wanted.iter().enumerate().map(|(i, entry)| (pod_key(&entry.pod), i)).collect();
        let order = smallest(order, place.wanted());
        let page = order.into_iter().map(|(_, i)| wanted[i].clone()).collect();
        let weight = |entry: &PodEntry| {
            let meta = &entry.pod.meta;
            let names = meta.namespace.len() + meta.name.len() + meta.uid.len() + entry.node.len();
            // Few pods ask for more than a handful of resources; each entry is a name and a number.
            let containers = entry.pod.spec.containers.iter().chain(&entry.pod.spec.init_containers);
            let requests = containers.flat_map(|c| c.resources.requests.keys()).map(|name| name.len() + 16);
            96 + names + entry.pod.spec.scheduler_name.len() + requests.sum::<usize>()
        };
        Ok(place.cut(page, view.revision(), |entry| strings(pod_key(&entry.pod)), weight))
    }

    /// The live reservations, by namespace, name and uid of the pod.
    pub fn list_reservations(&self, request: &PageRequest) -> Result<Page<Reservation>, ServiceError> {
        let place = Place::<3>::of(List::Reservations, request)?;
        let (view, reservations) = self.forks();
        let after = place.after.as_ref().map(|[namespace, name, uid]| (&**namespace, &**name, &**uid));
        let all: Vec<&Reservation> = reservations.iter().collect();
        let keys = all.iter().enumerate().map(|(i, r)| (pod_key(&r.pod.pod), i));
        let keys = smallest(keys.filter(|(key, _)| after.is_none_or(|after| *key > after)).collect(), place.wanted());
        let page = keys.into_iter().map(|(_, i)| all[i].clone()).collect();
        let weight = |r: &Reservation| {
            let (namespace, name, uid) = pod_key(&r.pod.pod);
            96 + namespace.len() + name.len() + uid.len() + r.id.len() + r.node().len()
        };
        Ok(place.cut(page, view.revision(), |r| strings(pod_key(&r.pod.pod)), weight))
    }

    /// The profiles by name.
    pub fn list_profiles(&self, request: &PageRequest) -> Result<Page<Arc<Profile>>, ServiceError> {
        let place = Place::<1>::of(List::Profiles, request)?;
        let after = place.after.as_ref().map(|[name]| name.as_str());
        let profiles = self.profiles();
        let rest = profiles.iter().filter(|p| after.is_none_or(|after| **p.name() > *after));
        let page = rest.take(place.wanted()).cloned().collect();
        // A hundred plugins of 40 bytes each.
        Ok(place.cut(page, 0, |p: &Arc<Profile>| [p.name().to_string()], |_| 4_096))
    }

    /// The last decisions, newest first.
    pub fn list_decisions(&self, request: &PageRequest) -> Result<Page<RecentDecision>, ServiceError> {
        let place = Place::<1>::of(List::Decisions, request)?;
        let before = place.after.as_ref().and_then(|[number]| number.parse().ok());
        let decisions = self.recent().page(before, place.wanted());
        let weight = |(_, d): &(u64, RecentDecision)| {
            let node = d.node.as_ref().map_or(0, |node| node.len());
            128 + d.namespace.len() + d.name.len() + d.uid.len() + node + d.message.len() + d.profile.len()
        };
        let Page { items, next, revision } = place.cut(decisions, 0, |(number, _)| [number.to_string()], weight);
        Ok(Page { items: items.into_iter().map(|(_, decision)| decision).collect(), next, revision })
    }

    fn forks(&self) -> (View, Reservations) {
        let writer = self.cluster.writer();
        (writer.view().clone(), writer.reservations().clone())
    }
}

/// Allocatable and requested over all nodes.
fn totals(view: &View) -> BTreeMap<Str, (i64, i64)> {
    let mut resources: BTreeMap<&str, (i128, i128)> = BTreeMap::new();
    for row in view.nodes() {
        for (name, amount) in
            row.offered().map(|(name, amount)| (&**name, amount)).chain([(PODS, row.allowed_pods().into())])
        {
            resources.entry(name).or_default().0 += amount;
        }
        for (name, amount) in
            row.taken().map(|(name, amount)| (&**name, amount)).chain([(PODS, row.pods().len() as i128)])
        {
            resources.entry(name).or_default().1 += amount;
        }
    }
    let some = resources.into_iter().filter(|(_, sums)| *sums != (0, 0));
    some.map(|(name, (offered, taken))| (name.into(), (saturated(offered), saturated(taken)))).collect()
}

/// The pods of the store, which was read before the fork was taken, with their states; then those that only a reservation
/// knows; holds of a plan are no pods. A pod that went away in between is left out.
pub(super) fn entries<'a>(
    pods: Vec<Arc<Pod>>,
    view: &'a View,
    reservations: &'a Reservations,
) -> impl Iterator<Item = PodEntry> + 'a {
    let fed: rustc_hash::FxHashSet<Str> = if reservations.is_empty() {
        rustc_hash::FxHashSet::default()
    } else {
        pods.iter().filter(|pod| reservations.of_pod(&pod.meta.uid).is_some()).map(|p| p.meta.uid.clone()).collect()
    };
    let is_pod = |r: &&Reservation| !matches!(r.basis, Basis::Held { .. });
    let unfed = reservations.iter().filter(is_pod).filter(move |r| !fed.contains(&r.pod.pod.meta.uid));
    let unfed = unfed.map(|r| r.pod.pod.clone());
    pods.into_iter().chain(unfed).filter_map(|pod| {
        let state = PodState::of(&pod, view, reservations);
        let node = match reservations.of_pod(&pod.meta.uid) {
            Some(reservation) => reservation.node().clone(),
            None => pod.spec.node_name.clone(),
        };
        let gone = state == PodState::Orphaned && view.ordinal(&node).is_some();
        let nominated = view.nominations().of(&pod.meta.uid).cloned().unwrap_or_default();
        (!gone).then_some(PodEntry { pod, node, state, nominated })
    })
}

pub(super) fn pod_key(pod: &Pod) -> (&str, &str, &str) {
    (&pod.meta.namespace, &pod.meta.name, &pod.meta.uid)
}

fn strings((a, b, c): (&str, &str, &str)) -> [String; 3] {
    [a.to_owned(), b.to_owned(), c.to_owned()]
}

/// What a node has and what is taken of it; resources of which it has and gives none are left out.
pub fn amounts(row: &NodeRow<'_>) -> (AmountMap, AmountMap) {
    fn shown<'a>(amounts: impl Iterator<Item = (&'a Str, i128)>, pods: i128) -> AmountMap {
        let pods = Some((Str::from(PODS), pods)).filter(|(_, pods)| *pods != 0);
        let named = amounts.map(|(name, amount)| (name.clone(), amount)).chain(pods);
        named.map(|(name, amount)| (name, saturated(amount))).collect()
    }
    (shown(row.offered(), row.allowed_pods().into()), shown(row.taken(), row.pods().len() as i128))
}

/// A sum as it is shown.
fn saturated(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum > 0 { i64::MAX } else { i64::MIN })
}

#[cfg(test)]
mod tests;
