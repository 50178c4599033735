//! Nominations: who waits for which node (see `cluster::nominations`). The writer calls [`Writer::renominate`] after each change
//! of a pod or its reservation.

use std::sync::Arc;

use super::Writer;
use crate::cluster::PodInfo;
use crate::model::{Pod, Str, Time};

impl Writer {
    /// Lets a pod wait for a node until then. False when it has room already, or needs none.
    pub fn nominate(&mut self, pod: &Arc<Pod>, node: Str, expires: Time) -> bool {
        let uid = &pod.meta.uid;
        let known = self.objects.pod(uid);
        if self.reservations.of_pod(uid).is_some() || known.is_some_and(|p| p.is_bound() || p.is_terminal()) {
            return false;
        }
        self.nominations.nominate(pod.clone(), node, expires);
        self.renominate(uid);
        true
    }

    /// Lets a pod wait for nothing any more, until its status says otherwise; false when it didn't.
    pub fn clear_nomination(&mut self, uid: &str) -> bool {
        if self.view.nominations().of(uid).is_none() {
            return false;
        }
        match self.objects.pod(uid) {
            Some(pod) if !pod.status.nominated_node.is_empty() => self.nominations.clear(pod),
            _ => {
                self.nominations.forget(uid);
            }
        }
        self.renominate(uid);
        true
    }

    /// Brings the view's nomination of a pod in line with what is known of it.
    pub(super) fn renominate(&mut self, uid: &str) {
        let known = self.objects.pod(uid);
        let fed = known.as_ref().is_some_and(|pod| !pod.status.nominated_node.is_empty());
        if !fed && self.nominations.is_empty() && self.view.nominations().is_empty() {
            return;
        }
        if known.as_ref().is_some_and(|pod| pod.is_bound() || pod.is_terminal()) {
            self.nominations.forget(uid);
        } else if self.reservations.of_pod(uid).is_none()
            && let Some((pod, node)) = self.nominations.waiting(uid, known.as_ref())
        {
            self.view.nominate(Arc::new(PodInfo::on(pod, node)));
            return;
        }
        self.view.withdraw_nomination(uid);
    }
}
