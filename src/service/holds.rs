//! Room that a plan of evictions keeps for its replacements, so that it holds while other pods arrive.
//!
//! A hold is a reservation ([`Basis::Held`]) of a placeholder: the victim as its owner would make it anew, under a uid of its
//! own. So it takes room like any pod, shows among the reservations, ends with its time and can be released by its id; it is
//! no pod anywhere else. There is one a victim at most.
//!
//! ```text
//!             a plan lands the victim's replacement
//!   (none) ------------------------------------------> held <---+ the same plan again: held longer, under the same id
//!      ^                                                |  |  +--+
//!      |     expiry, release, another landing           |  |
//!      +------------------------------------------------+  | Schedule, no dry run, of a pod of the same owner and class
//!                                                          v
//!                                     taken: the pod gets the held node if it passes the filters, else is decided anew
//! ```
//!
//! - Who takes it: the next pod with the same controller and of the same class (namespace, labels, and all of the spec but
//!   the node). Of several holds the oldest. A pod that has a reservation of its own takes none. Nor does one that another
//!   scheduler bound: then the hold ends with its time.
//! - A dry run sees the holds of others, and not the one that it would take.
//! - A plan doesn't see holds whose victim is still there, since it decides about that one anew: equal requests give equal
//!   plans, holds or not. It sees the others: their replacements are on the way.
//! - Nobody checks that the room is still free. Until the victims go it may be taken twice over, which only keeps others
//!   away.
//! - A victim without a controller has none: nobody makes a replacement. Nor has one that has ended: its owner has made it.
//!
//! The index by owner may lag behind the reservations, which are the truth: what ended is passed over, and swept once a
//! second and with each plan. Locks: the writer's, then the index's.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Service;
use super::schedule::Held;
use crate::cluster::reservation::{Basis, Reservation};
use crate::cluster::writer::Reserve;
use crate::cluster::{Snapshot, Writer};
use crate::evict::outcome::Suggestion;
use crate::model::pod::PodSpec;
use crate::model::pod_status::PodStatus;
use crate::model::volume::VolumeSource;
use crate::model::{Labels, Pod, Str, Time};

/// How long a landing is held unless the request says otherwise. Pods have 30 s to end by default and a plan is carried out
/// eviction by eviction; this covers that, and still lets go of what nobody comes back for.
pub const DEFAULT_HOLD_SECS: i64 = 300;
/// Holds that are made at a time. Each takes up to 10 us, so that the writer is kept for less than 500 us.
const SLICE: usize = 32;

/// Controllers whose holds are looked through at a time for those that have ended.
const SWEPT_AT_A_TIME: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    /// By the uid of the controller.
    by_owner: BTreeMap<Str, Vec<ClassHolds>>,
    /// Up to where the sweep has come. None: it begins anew.
    swept: Option<Str>,
}

/// The holds for pods of one class. A controller has a few classes at most, unless it labels each of its pods.
#[derive(Debug)]
struct ClassHolds {
    class: Class,
    /// The oldest first.
    holds: VecDeque<Hold>,
}

/// Uid of the placeholder, and id of its reservation.
type Hold = (Str, Str);

/// Pods of one template: all that doesn't differ between replicas.
#[derive(Debug, PartialEq)]
struct Class {
    namespace: Str,
    labels: Labels,
    spec: PodSpec,
}

/// A pod that may take a hold.
#[derive(Debug)]
pub(super) struct Taker {
    /// Uid of its controller.
    owner: Str,
    class: Class,
}

impl Class {
    fn of(pod: &Pod) -> Self {
        let mut spec = pod.spec.clone();
        spec.node_name = Str::default();
        for volume in &mut spec.volumes {
            // The API server makes names up (`kube-api-access-x7k2p`). Where a claim is named after its volume, it counts.
            if volume.source != VolumeSource::Ephemeral {
                volume.name = Str::default();
            }
        }
        Self { namespace: pod.meta.namespace.clone(), labels: pod.meta.labels.clone(), spec }
    }
}

impl Holds {
    fn add(&self, owner: Str, class: Class, hold: Hold) {
        let mut index = self.0.lock();
        let classes = index.by_owner.entry(owner).or_default();
        match classes.iter_mut().find(|c| c.class == class) {
            Some(known) => known.holds.push_back(hold),
            None => classes.push(ClassHolds { class, holds: [hold].into() }),
        }
    }

    /// Whether a controller has no holds, as most: then a pod's class needn't be made.
    fn is_without(&self, owner: &str) -> bool {
        !self.0.lock().by_owner.contains_key(owner)
    }

    /// The oldest that lives. Ended ones before it are forgotten.
    fn oldest<'a>(&self, writer: &'a Writer, owner: &str, class: &Class) -> Option<&'a Reservation> {
        let mut index = self.0.lock();
        let classes = index.by_owner.get_mut(owner)?;
        let known = classes.iter_mut().find(|c| c.class == *class)?;
        loop {
            let oldest = known.holds.front()?;
            match live(writer, oldest) {
                Some(reservation) => return Some(reservation),
                None => known.holds.pop_front(),
            };
        }
    }

    /// Forgets those that have ended, of some controllers at each call.
    pub(super) fn sweep(&self, writer: &Writer) {
        let mut index = self.0.lock();
        let from = index.swept.take().map_or(Bound::Unbounded, Bound::Excluded);
        let owners = index.by_owner.range((from, Bound::Unbounded)).map(|(owner, _)| owner.clone());
        let owners: Vec<Str> = owners.take(SWEPT_AT_A_TIME).collect();
        for owner in &owners {
            let Some(classes) = index.by_owner.get_mut(owner) else { continue };
            classes.retain_mut(|class| {
                class.holds.retain(|hold| live(writer, hold).is_some());
                !class.holds.is_empty()
            });
            if classes.is_empty() {
                index.by_owner.remove(owner);
            }
        }
        index.swept = owners.last().filter(|_| owners.len() == SWEPT_AT_A_TIME).cloned();
    }
}

fn live<'a>(writer: &'a Writer, (placeholder, id): &Hold) -> Option<&'a Reservation> {
    writer.reservations().of_pod(placeholder).filter(|r| r.id == *id)
}

impl Service {
    /// Holds the landings of suggestions until then, each for the replacement of its pod. None where there is nothing to
    /// hold: no landing, no controller, or the pod or the node went away meanwhile.
    pub(super) fn hold_landings(&self, suggestions: &[Suggestion], ttl_micros: i64) -> Vec<Option<Held>> {
        let mut held = Vec::with_capacity(suggestions.len());
        for slice in suggestions.chunks(SLICE) {
            let now = self.now();
            let expires = Time(now.0.saturating_add(ttl_micros));
            let mut writer = self.cluster.writer();
            self.holds.sweep(&writer);
            let mut begun = false;
            for suggestion in slice {
                held.push(self.hold_landing(&mut writer, &mut begun, suggestion, now, expires));
            }
        }
        held
    }

    fn hold_landing(
        &self,
        writer: &mut Writer,
        begun: &mut bool,
        suggestion: &Suggestion,
        now: Time,
        expires: Time,
    ) -> Option<Held> {
        let landing = suggestion.landing.as_ref()?;
        let victim = self.cluster.objects().pod(&suggestion.pod.meta.uid).filter(|pod| !pod.is_terminal())?;
        let owner = victim.meta.controller().filter(|owner| !owner.uid.is_empty())?.uid.clone();
        let pod = placeholder(&victim);
        let (uid, class) = (pod.meta.uid.clone(), Class::of(&pod));
        let earlier = writer.reservations().of_pod(&uid);
        if earlier.is_some_and(|r| *r.node() == landing.node && Class::of(&r.pod.pod) == class) {
            return writer.renew(&uid, expires).as_ref().map(Held::from);
        }
        if !*begun {
            writer.begin();
            *begun = true;
        }
        let ask = Reserve {
            pod: Arc::new(pod),
            node: landing.node.clone(),
            bindings: Vec::new(),
            id: None,
            now,
            expires,
            basis: Basis::Held { victim: victim.meta.uid.clone() },
        };
        let reservation = writer.reserve(ask).ok()?;
        self.holds.add(owner, class, (uid, reservation.id.clone()));
        Some(Held::from(&reservation))
    }

    /// What a pod needs to take a hold, if its controller has any: worked out without the writer, since it copies the pod.
    pub(super) fn taker(&self, pod: &Pod) -> Option<Taker> {
        let owner = &pod.meta.controller()?.uid;
        (!self.holds.is_without(owner)).then(|| Taker { owner: owner.clone(), class: Class::of(pod) })
    }

    /// The hold that a pod would take.
    pub(super) fn hold_for(&self, writer: &Writer, taker: &Taker) -> Option<Reservation> {
        self.holds.oldest(writer, &taker.owner, &taker.class).cloned()
    }
}

/// Takes the holds out of a snapshot whose victims are still there.
pub(super) fn forget_holds(snapshot: &mut Snapshot) {
    let is_there = |victim: &str| snapshot.view.pod(victim).is_some_and(|info| !info.pod.meta.is_terminating());
    let forgotten: Vec<Str> = snapshot
        .reservations
        .iter()
        .filter(|r| matches!(&r.basis, Basis::Held { victim } if is_there(victim)))
        .map(|r| r.pod.pod.meta.uid.clone())
        .collect();
    forgotten.iter().for_each(|uid| snapshot.forget_reservation(uid));
}

/// The pod as its owner would make it anew, as far as decisions look at it.
pub(super) fn replacement_of(pod: &Pod) -> Pod {
    let mut replacement = pod.clone();
    replacement.spec.node_name = Str::default();
    replacement.status = PodStatus::default();
    replacement.meta.deleted = None;
    replacement
}

fn placeholder(victim: &Pod) -> Pod {
    let mut pod = replacement_of(victim);
    pod.meta.uid = format!("hold:{}", victim.meta.uid).into();
    pod
}

#[cfg(test)]
#[path = "holds_tests.rs"]
mod tests;
