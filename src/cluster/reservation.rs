//! Room that a decision took and that no bound pod fills yet.
//!
//! How a pod comes by one and loses it is in [`super::pod_life`].

use std::sync::Arc;

use imbl::HashMap;

use super::pod_info::PodInfo;
use crate::model::{Str, Time};

/// A live reservation.
#[derive(Debug, Clone)]
pub struct Reservation {
    /// Names it for a release. Unique over restarts.
    pub id: Str,
    pub pod: Arc<PodInfo>,
    pub created: Time,
    /// A client doesn't bind after this.
    pub expires: Time,
    pub basis: Basis,
}

/// How a reservation came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// Decided here, for a request that may be repeated and then gets the same answer.
    Decided {
        profile: Str,
        /// What the request changed of the profile, as one text; empty: nothing.
        overrides: Str,
        /// The only nodes that came into question, sorted; empty: all.
        candidates: Vec<Str>,
    },
    /// Told by a client.
    Assumed,
    /// A plan of evictions keeps the room for the replacement of a pod, of which this is the uid. The reservation's own pod
    /// is a placeholder and no pod of the cluster.
    Held { victim: Str },
}

/// What became of reservations since the start. Those made and assumed are those confirmed, released, expired, withdrawn
/// and live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReservationTally {
    /// Taken by a decision, or held by a plan.
    pub made: u64,
    /// Told by a client.
    pub assumed: u64,
    /// Held longer, or told once more.
    pub renewed: u64,
    /// The pod turned up bound.
    pub confirmed: u64,
    pub released: u64,
    pub expired: u64,
    /// The pod went away or ended, or got another reservation.
    pub withdrawn: u64,
}

impl Reservation {
    pub fn node(&self) -> &Str {
        &self.pod.node
    }
}

/// All live reservations, one a pod at most. Cloning is as cheap as forking a view.
#[derive(Debug, Clone, Default)]
pub struct Reservations {
    by_pod: HashMap<Str, Reservation>,
    pods: HashMap<Str, Str>,
}

impl Reservations {
    pub fn of_pod(&self, uid: &str) -> Option<&Reservation> {
        self.by_pod.get(uid)
    }

    pub fn with_id(&self, id: &str) -> Option<&Reservation> {
        self.by_pod.get(self.pods.get(id)?)
    }

    pub fn len(&self) -> usize {
        self.by_pod.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_pod.is_empty()
    }

    /// All of them, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.by_pod.values()
    }

    /// All of them, oldest first.
    pub fn list(&self) -> Vec<Reservation> {
        let mut list: Vec<Reservation> = self.by_pod.values().cloned().collect();
        list.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        list
    }

    pub(super) fn insert(&mut self, reservation: Reservation) {
        let uid = reservation.pod.pod.meta.uid.clone();
        self.remove(&uid);
        self.pods.insert(reservation.id.clone(), uid.clone());
        self.by_pod.insert(uid, reservation);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Reservation> {
        let reservation = self.by_pod.remove(uid)?;
        self.pods.remove(&reservation.id);
        Some(reservation)
    }

    pub(super) fn renew(&mut self, uid: &str, expires: Time) -> Option<Reservation> {
        let reservation = self.by_pod.get_mut(uid)?;
        reservation.expires = expires;
        Some(reservation.clone())
    }

    pub(super) fn replace_pod(&mut self, uid: &str, pod: Arc<PodInfo>) {
        if let Some(reservation) = self.by_pod.get_mut(uid) {
            reservation.pod = pod;
        }
    }

    /// Uids of the pods whose reservation has ended by `now`, sorted.
    pub(super) fn expired(&self, now: Time) -> Vec<Str> {
        let ended = self.by_pod.iter().filter(|(_, r)| r.expires <= now);
        let mut uids: Vec<Str> = ended.map(|(uid, _)| uid.clone()).collect();
        uids.sort();
        uids
    }
}
