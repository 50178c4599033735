//! Room against what the truth says of each pod.
//!
//! Only of pods that the truth and the cache both know, and of reservations: a pod that is missing or extra takes too little
//! or too much room anyway, and says so once.

use rustc_hash::FxHashMap;

use super::{Difference, DifferenceType, Key, Truth};
use crate::cluster::Snapshot;
use crate::cluster::reservation::{Basis, Reservation};
use crate::model::{Kind, Object, ObjectRef, Pod};

pub(super) fn compare(
    truth: &Truth,
    cached: &FxHashMap<Key, Object>,
    covered: bool,
    snapshot: &Snapshot,
    differences: &mut Vec<Difference>,
) {
    for (key, object) in truth.of_kind(Kind::Pod) {
        let Object::Pod(pod) = object else { continue };
        let known = cached.get(key).filter(|known| known.meta().uid == pod.meta.uid);
        if let Some(known) = known
            && snapshot.reservations.of_pod(&pod.meta.uid).is_none()
            && let Some((kind, message)) = placement(pod, snapshot)
        {
            let found = Difference::new(kind, ObjectRef::of(object)).message(message);
            differences.push(found.versions(Some(object), Some(known)));
        }
    }
    for reservation in snapshot.reservations.iter() {
        differences.extend(needless(reservation, truth, covered));
    }
}

/// Where a pod ought to take room and where it does.
fn placement(pod: &Pod, snapshot: &Snapshot) -> Option<(DifferenceType, String)> {
    let expected = (pod.is_bound() && !pod.is_terminal()).then_some(&pod.spec.node_name);
    let actual = snapshot.view.pod(&pod.meta.uid).map(|info| &info.node);
    Some(match (expected, actual) {
        (None, None) => return None,
        (Some(expected), Some(actual)) if expected == actual => return None,
        (Some(expected), None) if snapshot.view.ordinal(expected).is_none() => {
            (DifferenceType::Orphaned, format!("takes no room: node {expected} is not known"))
        }
        (Some(expected), None) => (DifferenceType::RoomMisplaced, format!("takes no room, is bound to {expected}")),
        (Some(expected), Some(actual)) => {
            (DifferenceType::RoomMisplaced, format!("takes room on {actual}, is bound to {expected}"))
        }
        (None, Some(actual)) if pod.is_terminal() => {
            (DifferenceType::RoomMisplaced, format!("takes room on {actual}, has ended"))
        }
        (None, Some(actual)) => (DifferenceType::RoomMisplaced, format!("takes room on {actual}, is not bound")),
    })
}

/// A reservation whose pod needs it no more.
fn needless(reservation: &Reservation, truth: &Truth, covered: bool) -> Option<Difference> {
    if matches!(reservation.basis, Basis::Held { .. }) {
        // Its pod is a placeholder, which no truth knows.
        return None;
    }
    let pod = &reservation.pod.pod;
    let key = (pod.meta.namespace.clone(), pod.meta.name.clone());
    let why = match truth.get(Kind::Pod, &key) {
        Some(Object::Pod(now)) if now.meta.uid == pod.meta.uid => match now {
            now if now.is_terminal() => "has ended".to_owned(),
            now if now.is_bound() => format!("is bound to {}", now.spec.node_name),
            _ => return None,
        },
        Some(_) => "is gone: another pod has its name".to_owned(),
        None if covered => "is gone".to_owned(),
        None => return None,
    };
    let named = ObjectRef::of(&Object::Pod(pod.clone()));
    let message = format!("reservation {} holds room on {}, and the pod {why}", reservation.id, reservation.node());
    Some(Difference::new(DifferenceType::StaleReservation, named).message(message))
}
