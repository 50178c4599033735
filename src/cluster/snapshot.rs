//! All that the cache knows at one revision.
//!
//! Taking one costs the fork of a view and two roots of persistent maps, whatever the size of the cluster: a view holds
//! every object but the pods that aren't on a node, and those the writer keeps apart in a map of their own. The object store
//! could not give this: its maps move on while they are walked.

use std::sync::Arc;

use imbl::HashMap;

use super::nominations::Recorded;
use super::pod_info::PodInfo;
use super::pod_life::PodState;
use super::reservation::Reservations;
use super::view::View;
use crate::model::{Kind, Object, Pod, Str};

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub view: View,
    pub reservations: Reservations,
    /// The fed pods that don't take room by their own spec, by uid: pending, reserved, orphaned and finished ones.
    pub(super) apart: HashMap<Str, Arc<Pod>>,
    pub(super) nominations: Recorded,
    pub incarnation: Str,
}

impl Snapshot {
    /// The pods that were fed, in no particular order.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let on_nodes = self.view.nodes().flat_map(|row| row.pods().iter());
        let bound = on_nodes.filter(|info| self.reservations.of_pod(&info.pod.meta.uid).is_none());
        bound.map(|info| &info.pod).chain(self.apart.values())
    }

    /// The objects of a kind that were fed, in no particular order.
    pub fn objects(&self, kind: Kind) -> Vec<Object> {
        match kind {
            Kind::Node => self.view.nodes().map(|row| Object::Node(row.fixed().node.clone())).collect(),
            Kind::Pod => self.pods().cloned().map(Object::Pod).collect(),
            other => self.view.objects().of_kind(other).cloned().collect(),
        }
    }

    /// Takes a reservation out, as if it had never been made. Only of pods that were never fed.
    pub fn forget_reservation(&mut self, uid: &Str) {
        if self.reservations.remove(uid).is_some() {
            self.view.remove_pod(uid);
        }
    }

    pub fn state(&self, pod: &Pod) -> PodState {
        PodState::of(pod, &self.view, &self.reservations)
    }

    /// The view as it would be if all objects and reservations had come at once. Costs some microseconds a pod.
    pub fn rebuilt(&self) -> View {
        let mut view = View::default();
        self.view.keep_same_counts(&mut view);
        for kind in Kind::ALL.iter().filter(|kind| !matches!(kind, Kind::Node | Kind::Pod)) {
            self.view.objects().of_kind(*kind).for_each(|object| view.set_object(object.clone()));
        }
        for row in self.view.nodes() {
            view.upsert_node(row.fixed().node.clone());
        }
        for pod in self.pods().filter(|pod| pod.is_bound() && !pod.is_terminal()) {
            let bindings = self.view.pod(&pod.meta.uid).map_or_else(Vec::new, |info| info.bindings().to_vec());
            view.add_pod(Arc::new(PodInfo::bound(pod.clone()).with_bindings(bindings)));
        }
        for reservation in self.reservations.iter() {
            let PodInfo { pod, node, .. } = &*reservation.pod;
            let bindings = reservation.pod.bindings().to_vec();
            view.add_pod(Arc::new(PodInfo::on(pod.clone(), node.clone()).with_bindings(bindings)));
        }
        let nominated = self.apart.iter().filter(|(_, pod)| !pod.status.nominated_node.is_empty()).map(|(uid, _)| uid);
        for uid in nominated.chain(self.nominations.uids()).filter(|uid| self.reservations.of_pod(uid).is_none()) {
            let known = self.apart.get(uid).or_else(|| self.view.pod(uid).map(|info| &info.pod));
            if let Some((pod, node)) = self.nominations.waiting(uid, known) {
                view.nominate(Arc::new(PodInfo::on(pod, node)));
            }
        }
        view
    }
}
