//! The single writer: every change to objects, view and reservations goes through here.
//!
//! The check of an item, its object and its row change in one critical section (the caller holds the writer), so that no
//! reader ever sees them disagree. All changes of one call to [`Writer::begin`]'s revision become visible together, since
//! readers fork under the same lock. Every method's cost is that of the one object it names.

mod nominate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;

use super::counts::{CountKey, NodeCounts};
use super::nominations::Recorded;
use super::pod_info::PodInfo;
use super::pod_life::PodState;
use super::pod_volumes::VolumeBinding;
use super::readiness::Readiness;
use super::reservation::{Basis, Reservation, ReservationTally, Reservations};
use super::resource_version::is_older;
use super::snapshot::Snapshot;
use super::store::{ObjectStore, Origin};
use super::view::View;
use crate::model::{Kind, Object, ObjectRef, Pod, Str, Time};

/// How many selector counts are kept at once; past it the least recently used half is dropped. At 5,000 nodes a kept count
/// is about 20 KiB, so this bounds them to some 80 MiB.
const MAX_KEPT_COUNTS: usize = 4_096;
/// Nodes that may have changed while counts were made for them to be kept: some 100 us of counting again.
const MOST_RECOUNTED: usize = 256;

/// An object ready to be written, with what can be worked out before the lock is taken.
#[derive(Debug, Clone)]
pub struct Prepared {
    object: Object,
    /// For a pod that takes room on the node its spec names.
    info: Option<Arc<PodInfo>>,
}

impl Prepared {
    pub fn new(object: Object) -> Self {
        let info = match &object {
            Object::Pod(pod) if pod.is_bound() && !pod.is_terminal() => Some(Arc::new(PodInfo::bound(pod.clone()))),
            _ => None,
        };
        Self { object, info }
    }

    pub fn object(&self) -> &Object {
        &self.object
    }
}

/// What became of an object that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Applied,
    /// It says what is known already.
    Unchanged,
    /// A newer version is known.
    Stale,
}

/// What a reservation is asked for.
#[derive(Debug, Clone)]
pub struct Reserve {
    pub pod: Arc<Pod>,
    pub node: Str,
    /// What was decided about the pod's claims. Empty: nothing, or what an earlier reservation on the node holds.
    pub bindings: Vec<VolumeBinding>,
    /// None: a new name.
    pub id: Option<Str>,
    pub now: Time,
    pub expires: Time,
    pub basis: Basis,
}

/// Why a change to one object was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("node {0:?} is not known")]
    UnknownNode(Str),
    #[error("pod {pod} is bound to node {node:?}")]
    BoundElsewhere { pod: String, node: Str },
    #[error("pod {0} has ended")]
    Finished(String),
}

#[derive(Debug)]
pub struct Writer {
    objects: Arc<ObjectStore>,
    view: View,
    reservations: Reservations,
    nominations: Recorded,
    /// Pods and reservations whose node isn't known, by node name and uid, as they will stand on it.
    orphans: FxHashMap<Str, BTreeMap<Str, Arc<PodInfo>>>,
    /// The fed pods that the view doesn't hold by their own spec (see [`Snapshot`]).
    apart: imbl::HashMap<Str, Arc<Pod>>,
    tally: ReservationTally,
    readiness: Readiness,
    /// Kept counts and the revision at which each was last asked for.
    watched: FxHashMap<CountKey, u64>,
    /// Kinds whose objects from files have been handed over to a feed.
    handed_over: BTreeSet<Kind>,
    last_snapshot: u64,
    last_reservation: u64,
    incarnation: Str,
}

impl Writer {
    pub(super) fn new(objects: Arc<ObjectStore>) -> Self {
        Self {
            objects,
            view: View::default(),
            reservations: Reservations::default(),
            tally: ReservationTally::default(),
            nominations: Recorded::default(),
            orphans: FxHashMap::default(),
            apart: imbl::HashMap::default(),
            readiness: Readiness::default(),
            watched: FxHashMap::default(),
            handed_over: BTreeSet::new(),
            last_snapshot: 0,
            last_reservation: 0,
            incarnation: super::fresh_id::fresh_id().to_string().into(),
        }
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// All that is known now, at one revision.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            view: self.view.clone(),
            reservations: self.reservations.clone(),
            apart: self.apart.clone(),
            nominations: self.nominations.clone(),
            incarnation: self.incarnation.clone(),
        }
    }

    pub fn reservation_tally(&self) -> ReservationTally {
        self.tally
    }

    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    pub fn readiness_mut(&mut self) -> &mut Readiness {
        &mut self.readiness
    }

    /// Names this life of the process: revisions and reservations of another one mean nothing here.
    pub fn incarnation(&self) -> &Str {
        &self.incarnation
    }

    /// Begins a revision; the changes that follow belong to it.
    pub fn begin(&mut self) -> u64 {
        self.view.advance()
    }

    /// Writes an object, unless a newer version of it is known from the same feed.
    pub fn upsert(&mut self, prepared: Prepared, origin: Origin) -> Written {
        if let Some(known) = self.objects.stored(&prepared.object) {
            let (new, old) = (prepared.object.meta(), known.object.meta());
            let stale = origin.is_same_feed(&known.origin)
                && new.uid == old.uid
                && is_older(&new.resource_version, &old.resource_version);
            if stale || prepared.object == known.object {
                // It was sent, so the end of a snapshot must not take it. A resync mostly comes through here.
                self.objects.renew(&known.object, origin);
                return if stale { Written::Stale } else { Written::Unchanged };
            }
        }
        self.write(prepared, origin);
        Written::Applied
    }

    fn write(&mut self, prepared: Prepared, origin: Origin) {
        match prepared.object {
            Object::Node(node) => {
                self.objects.put_node(node.clone(), origin);
                let name = node.meta.name.clone();
                self.view.upsert_node(node);
                self.adopt(&name);
            }
            Object::Pod(pod) => self.upsert_pod(pod, prepared.info, origin),
            other => {
                self.objects.put_other(other.clone(), origin);
                self.view.set_object(other);
            }
        }
    }

    fn upsert_pod(&mut self, pod: Arc<Pod>, info: Option<Arc<PodInfo>>, origin: Origin) {
        let uid = pod.meta.uid.clone();
        // A name belongs to one living pod: whoever had it before is gone, even if its deletion is still on the way.
        if let Some(previous) = self.objects.pod_uid(&pod.meta.namespace, &pod.meta.name)
            && previous != uid
        {
            self.forget_pod(&previous);
        }
        let before = self.standing(&uid).cloned();
        let nominated_before = self.objects.pod(&uid).map(|known| known.status.nominated_node.clone());
        if nominated_before.unwrap_or_default() != pod.status.nominated_node {
            self.nominations.forget(&uid);
        }
        self.unbook(&uid);
        self.objects.put_pod(pod.clone(), origin);
        if pod.is_terminal() {
            self.tally.withdrawn += u64::from(self.reservations.remove(&uid).is_some());
        } else if let Some(info) = info {
            self.tally.confirmed += u64::from(self.reservations.remove(&uid).is_some());
            self.book(keep_bindings(before.as_deref(), info));
        } else if let Some(node) = self.reservations.of_pod(&uid).map(|r| r.node().clone()) {
            let info = keep_bindings(before.as_deref(), Arc::new(PodInfo::on(pod.clone(), node)));
            self.reservations.replace_pod(&uid, info.clone());
            self.book(info);
        }
        if self.reservations.of_pod(&uid).is_none() && self.view.pod(&uid).is_some() {
            self.apart.remove(&uid);
        } else {
            self.apart.insert(uid.clone(), pod);
        }
        self.renominate(&uid);
    }

    /// Deletes an object; false when there is none, or when the reference names another uid than the one that is known.
    pub fn delete(&mut self, object: &ObjectRef) -> bool {
        match object.kind {
            Kind::Node => {
                let known = self.objects.node(&object.name);
                if !known.is_some_and(|n| object.uid.is_empty() || n.meta.uid == object.uid) {
                    return false;
                }
                self.objects.take_node(&object.name);
                for info in self.view.remove_node(&object.name) {
                    let uid = &info.pod.meta.uid;
                    if self.reservations.of_pod(uid).is_none() {
                        self.apart.insert(uid.clone(), info.pod.clone());
                    }
                    self.orphans.entry(info.node.clone()).or_default().insert(uid.clone(), info);
                }
                true
            }
            Kind::Pod => {
                let uid = if object.uid.is_empty() {
                    self.objects.pod_uid(&object.namespace, &object.name)
                } else {
                    Some(object.uid.clone())
                };
                uid.is_some_and(|uid| self.forget_pod(&uid))
            }
            kind => {
                let known = self.objects.other(kind, &object.namespace, &object.name);
                if !known.is_some_and(|o| object.uid.is_empty() || o.meta().uid == object.uid) {
                    return false;
                }
                self.objects.take_other(kind, &object.namespace, &object.name);
                self.view.remove_object(kind, &object.namespace, &object.name);
                true
            }
        }
    }

    fn forget_pod(&mut self, uid: &Str) -> bool {
        self.unbook(uid);
        self.apart.remove(uid);
        self.tally.withdrawn += u64::from(self.reservations.remove(uid).is_some());
        self.nominations.forget(uid);
        let known = self.objects.take_pod(uid).is_some();
        self.renominate(uid);
        known
    }

    /// Puts a pod on its node, or among the orphans.
    fn book(&mut self, info: Arc<PodInfo>) {
        if !self.view.add_pod(info.clone()) {
            self.orphans.entry(info.node.clone()).or_default().insert(info.pod.meta.uid.clone(), info);
        }
    }

    /// A pod as it takes room, or would if its node were known.
    fn standing(&self, uid: &Str) -> Option<&Arc<PodInfo>> {
        let booked = self.reservations.of_pod(uid).map(|r| &r.pod).or_else(|| self.view.pod(uid));
        booked.or_else(|| self.orphans.get(&self.apart.get(uid)?.spec.node_name)?.get(uid))
    }

    fn unbook(&mut self, uid: &Str) {
        if self.view.remove_pod(uid).is_some() || self.orphans.is_empty() {
            return;
        }
        let node = match self.reservations.of_pod(uid) {
            Some(reservation) => Some(reservation.node().clone()),
            None => self.objects.pod(uid).map(|p| p.spec.node_name.clone()),
        };
        if let Some(node) = node
            && let Some(pods) = self.orphans.get_mut(&node)
        {
            pods.remove(uid);
            if pods.is_empty() {
                self.orphans.remove(&node);
            }
        }
    }

    /// A node came: the pods that waited for it take their room.
    fn adopt(&mut self, node: &Str) {
        for (uid, info) in self.orphans.remove(node).unwrap_or_default() {
            if self.reservations.of_pod(&uid).is_none() {
                self.apart.remove(&uid);
            }
            self.view.add_pod(info);
        }
    }

    pub fn pod_state(&self, pod: &Pod) -> PodState {
        PodState::of(pod, &self.view, &self.reservations)
    }

    // --- reservations ---

    /// Takes room for a pod on a node, in place of an earlier reservation of the pod. The pod needn't have been fed.
    /// `id` names it, when it had a name before (an `assume` after a restart). `bindings` are held against other pods as
    /// long as the reservation lives, and then until the claims are seen bound or the pod is gone.
    pub fn reserve(&mut self, ask: Reserve) -> Result<Reservation, WriteError> {
        let Reserve { pod, node, bindings, id, now, expires, basis } = ask;
        if let Some(known) = self.objects.pod(&pod.meta.uid) {
            if known.is_terminal() {
                return Err(WriteError::Finished(known.meta.key()));
            }
            if known.is_bound() {
                return Err(WriteError::BoundElsewhere { pod: known.meta.key(), node: known.spec.node_name.clone() });
            }
        }
        if self.view.ordinal(&node).is_none() {
            return Err(WriteError::UnknownNode(node));
        }
        let uid = pod.meta.uid.clone();
        let earlier = self.reservations.of_pod(&uid).map(|r| (r.id.clone(), r.pod.clone()));
        self.unbook(&uid);
        self.last_reservation += 1;
        let id = id.unwrap_or_else(|| format!("{}-{}", self.incarnation, self.last_reservation).into());
        if earlier.as_ref().is_some_and(|(earlier, _)| *earlier == id) {
            self.tally.renewed += 1;
        } else {
            self.tally.withdrawn += u64::from(earlier.is_some());
            match basis {
                Basis::Decided { .. } | Basis::Held { .. } => self.tally.made += 1,
                Basis::Assumed => self.tally.assumed += 1,
            }
        }
        let before = earlier.map(|(_, pod)| pod);
        let info = Arc::new(PodInfo::on(pod, node).with_bindings(bindings));
        let info = if info.bindings().is_empty() { keep_bindings(before.as_deref(), info) } else { info };
        let reservation = Reservation { id, pod: info.clone(), created: now, expires, basis };
        self.reservations.insert(reservation.clone());
        self.book(info);
        self.nominations.forget(&uid);
        self.renominate(&uid);
        Ok(reservation)
    }

    /// Holds a pod's reservation longer; None when it has none.
    pub fn renew(&mut self, uid: &str, expires: Time) -> Option<Reservation> {
        let renewed = self.reservations.renew(uid, expires);
        self.tally.renewed += u64::from(renewed.is_some());
        renewed
    }

    /// Gives the room of a reservation back; false when there is none of this id.
    pub fn release(&mut self, id: &str) -> bool {
        let Some(uid) = self.reservations.with_id(id).map(|r| r.pod.pod.meta.uid.clone()) else { return false };
        self.tally.released += u64::from(self.end_reservation(&uid));
        true
    }

    /// False if there is none.
    fn end_reservation(&mut self, uid: &Str) -> bool {
        self.unbook(uid);
        let ended = self.reservations.remove(uid).is_some();
        self.renominate(uid);
        ended
    }

    /// Ends the reservations and nominations whose time is up; how many there were. None while the pod feed is stale: the
    /// pods may have been bound, and nobody told us yet.
    pub fn expire(&mut self, now: Time) -> usize {
        if self.readiness.pod_feed_is_stale(now) {
            return 0;
        }
        let (reserved, nominated) = (self.reservations.expired(now), self.nominations.expired(now));
        if !reserved.is_empty() || !nominated.is_empty() {
            self.begin();
        }
        for uid in &reserved {
            self.tally.expired += u64::from(self.end_reservation(uid));
        }
        for uid in &nominated {
            self.nominations.forget(uid);
            self.renominate(uid);
        }
        reserved.len() + nominated.len()
    }

    // --- snapshots ---

    /// A number for a snapshot that begins: objects written during it carry it.
    pub fn begin_snapshot(&mut self) -> u64 {
        self.last_snapshot += 1;
        self.last_snapshot
    }

    /// Whether the snapshot that ends is the first of its kind, and takes over what came from files.
    pub(super) fn hand_over(&mut self, kind: Kind) -> bool {
        self.handed_over.insert(kind)
    }

    // --- kept counts ---

    /// Notes that these counts are asked for; gives back those that aren't kept. Whoever wants them kept counts them on a
    /// fork ([`View::count_all`]) and hands them to [`Self::keep`].
    pub fn touch(&mut self, keys: impl IntoIterator<Item = CountKey>) -> Vec<CountKey> {
        let revision = self.view.revision();
        let mut missing = Vec::new();
        for key in keys {
            match self.watched.get_mut(&key) {
                Some(last_used) => *last_used = revision,
                None => missing.push(key),
            }
        }
        missing
    }

    /// Begins to keep counts that were made on a fork of this view: nodes that changed since are counted again. Does nothing
    /// where too much changed; then decisions count for themselves, and the next one tries again.
    pub fn keep(&mut self, counts: Vec<(CountKey, NodeCounts)>, fork: &View) {
        let Some(changed) = self.view.recountable_since(fork, MOST_RECOUNTED) else { return };
        let now = self.view.revision();
        for (key, counts) in counts {
            if self.watched.contains_key(&key) {
                continue;
            }
            if self.watched.len() >= MAX_KEPT_COUNTS {
                self.sweep_counts();
            }
            self.view.adopt_counts(key.clone(), counts, &changed);
            self.watched.insert(key, now);
        }
    }

    /// Sees to it that these counts are kept, counting under the writer: for set-ups that nobody waits for.
    pub fn watch(&mut self, keys: impl IntoIterator<Item = CountKey>) {
        let missing = self.touch(keys);
        let fork = self.view.clone();
        let counts = fork.count_all(missing, &AtomicBool::new(false)).unwrap_or_default();
        self.keep(counts, &fork);
    }

    fn sweep_counts(&mut self) {
        let mut by_age: Vec<(u64, CountKey)> = self.watched.iter().map(|(key, used)| (*used, key.clone())).collect();
        by_age.sort();
        for (_, key) in by_age.into_iter().take(MAX_KEPT_COUNTS / 2) {
            self.view.drop_counts(&key);
            self.watched.remove(&key);
        }
    }
}

/// A pod's new state with what was decided about its claims, if it is where that was decided for. The feed may show the
/// pod bound before it shows its claims bound; until then nobody else may get their volumes.
fn keep_bindings(before: Option<&PodInfo>, info: Arc<PodInfo>) -> Arc<PodInfo> {
    match before {
        Some(before) if before.node == info.node && !before.bindings().is_empty() => {
            Arc::new(PodInfo::clone(&info).with_bindings(before.bindings().to_vec()))
        }
        _ => info,
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
