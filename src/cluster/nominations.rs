//! Which pods wait for which node: what the feed says of them, and what was recorded here in between.
//!
//! ```text
//!                    status.nominatedNodeName, or recorded by a decision
//!   not nominated ------------------------------------------------------> Nominated
//!        ^                                                                    |
//!        +--- reserved, bound, ended, deleted; cleared; a record's time is up +
//! ```
//!
//! As upstream, an update that doesn't change `status.nominatedNodeName` leaves what was recorded; one that changes it
//! counts from then on. A record that clears a fed nomination lives until such an update. Who nominates is up to
//! `writer.rs`; here is only what was recorded.

use std::sync::Arc;

use imbl::HashMap;

use crate::model::{Pod, Str, Time};

#[derive(Debug, Clone)]
struct Record {
    pod: Arc<Pod>,
    /// None: nominated nowhere, whatever the pod's status says.
    node: Option<Str>,
    expires: Option<Time>,
}

/// What was recorded, by uid. Persistent: a snapshot has it at the price of a root.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorded(HashMap<Str, Record>);

impl Recorded {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A pod waits for a node until then.
    pub(super) fn nominate(&mut self, pod: Arc<Pod>, node: Str, expires: Time) {
        self.0.insert(pod.meta.uid.clone(), Record { pod, node: Some(node), expires: Some(expires) });
    }

    /// A pod waits for nothing, though its status says so.
    pub(super) fn clear(&mut self, pod: Arc<Pod>) {
        self.0.insert(pod.meta.uid.clone(), Record { pod, node: None, expires: None });
    }

    pub(super) fn forget(&mut self, uid: &str) -> bool {
        self.0.remove(uid).is_some()
    }

    /// The node that a pod without room waits for, and the pod as it is known: fed, else as it was when that was recorded.
    pub(super) fn waiting(&self, uid: &str, known: Option<&Arc<Pod>>) -> Option<(Arc<Pod>, Str)> {
        if known.is_some_and(|pod| pod.is_bound() || pod.is_terminal()) {
            return None;
        }
        let record = self.0.get(uid);
        let node = match record {
            Some(record) => record.node.clone()?,
            None => known.map(|pod| pod.status.nominated_node.clone()).filter(|node| !node.is_empty())?,
        };
        known.or(record.map(|record| &record.pod)).map(|pod| (pod.clone(), node))
    }

    pub(super) fn uids(&self) -> impl Iterator<Item = &Str> {
        self.0.keys()
    }

    /// Uids whose record's time is up by `now`, sorted.
    pub(super) fn expired(&self, now: Time) -> Vec<Str> {
        let ended = self.0.iter().filter(|(_, record)| record.expires.is_some_and(|expires| expires <= now));
        let mut uids: Vec<Str> = ended.map(|(uid, _)| uid.clone()).collect();
        uids.sort();
        uids
    }
}
