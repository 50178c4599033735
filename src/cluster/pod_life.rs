//! The life of a pod in the cache: its states, and what moves it from one to the next.
//!
//! ```text
//!                 reserve (decision, assume)
//!   Pending ------------------------------------> Reserved -----+ reserve again: the room moves
//!    |  ^  ^     release, expiry                   |  |  ^------+
//!    |  |  +---------------------------------------+  |
//!    |  |                                             | seen bound, on whichever node: the truth wins, the room moves
//!    |  +-- update without nodeName: no change        v
//!    |                                              Bound <----+ resized, relabelled, moved: room and counts follow
//!    |      seen bound (another scheduler)           |  |  ^---+
//!    +-----------------------------------------------+  |
//!                                           node gone   v   node comes (again)
//!                                               Orphaned: bound, waits for its node, takes no room
//!
//!   any state --- phase Succeeded or Failed ---> Finished: takes no room, stays visible, e.g. to strategies that look
//!                                                at failed pods
//!   any state --- deleted, or another pod has its name ---> Gone: not in the cache any more
//! ```
//!
//! - A pod is its uid. A delete that names another uid than the one that is known does nothing, so a late delete of an old
//!   pod spares the one that took its name.
//! - An update without `nodeName` leaves a reservation alone; the pod's requests and labels are then those of the update.
//! - A pod may hold a reservation without ever having been fed. When the node of a reservation goes, the reservation lives
//!   on without room, and takes it again if the node comes back before it expires.
//! - Only the writer moves pods ([`super::writer`]). After every move the view is the one that would be built from the same
//!   objects and reservations at once; `pod_life_tests.rs` walks each edge and checks that.

use super::reservation::Reservations;
use super::view::View;
use crate::model::Pod;

/// Where a known pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PodState {
    /// Waits for a node.
    Pending,
    /// A decision or an `assume` took room for it.
    Reserved,
    /// Takes room on the node that its spec names.
    Bound,
    /// Bound to a node that isn't known (yet).
    Orphaned,
    /// Succeeded or Failed: takes no room.
    Finished,
}

impl PodState {
    pub const ALL: [PodState; 5] = [Self::Pending, Self::Reserved, Self::Bound, Self::Orphaned, Self::Finished];

    /// The word for metrics and dumps.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Reserved => "reserved",
            Self::Bound => "bound",
            Self::Orphaned => "orphaned",
            Self::Finished => "finished",
        }
    }

    /// Where a pod stands in a view and with these reservations.
    pub fn of(pod: &Pod, view: &View, reservations: &Reservations) -> Self {
        let uid = &pod.meta.uid;
        if reservations.of_pod(uid).is_some() {
            Self::Reserved
        } else if pod.is_terminal() {
            Self::Finished
        } else if !pod.is_bound() {
            Self::Pending
        } else if view.pod(uid).is_some() {
            Self::Bound
        } else {
            Self::Orphaned
        }
    }
}

#[cfg(test)]
#[path = "pod_life_tests.rs"]
mod tests;
