//! Between messages and the nouns of `service`: nothing but conversions, in one file a service.
//!
//! `object` brings objects in, in their three forms; this file holds what several services share.

pub(super) mod compare;
pub(super) mod decision;
pub(super) mod feed;
pub(super) mod inspect;
pub(super) mod object;
mod overrides;
mod preemption;
pub(super) mod retries;

use super::pb;
use crate::cluster::reservation::{Basis, Reservation};
use crate::manifest::Warning;
use crate::model::{Kind, ObjectMeta, Time};
use crate::service::ViewInfo;

/// A number of things, which are never as many as four thousand millions.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn timestamp(time: Time) -> prost_types::Timestamp {
    let nanos = time.0.rem_euclid(1_000_000) * 1_000;
    prost_types::Timestamp { seconds: time.0.div_euclid(1_000_000), nanos: i32::try_from(nanos).unwrap_or_default() }
}

/// A span of time in microseconds.
pub(super) fn micros(duration: &prost_types::Duration) -> i64 {
    duration.seconds.saturating_mul(1_000_000).saturating_add(i64::from(duration.nanos) / 1_000)
}

fn duration(from: Time, to: Time) -> prost_types::Duration {
    let micros = to.0.saturating_sub(from.0).max(0);
    let nanos = i32::try_from(micros % 1_000_000 * 1_000).unwrap_or_default();
    prost_types::Duration { seconds: micros / 1_000_000, nanos }
}

pub(super) fn object_ref(kind: Kind, meta: &ObjectMeta) -> pb::ObjectRef {
    pb::ObjectRef {
        kind: kind.as_str().to_owned(),
        namespace: meta.namespace.to_string(),
        name: meta.name.to_string(),
        uid: meta.uid.to_string(),
    }
}

pub(super) fn warning(warning: Warning) -> pb::Warning {
    pb::Warning { field: warning.path, message: warning.message }
}

pub(super) fn view_info(info: &ViewInfo) -> pb::ViewInfo {
    let sources = info.sources.iter().map(|(name, state)| pb::SourceStaleness {
        source: name.to_string(),
        epoch: state.epoch,
        age: Some(duration(state.last_heard, info.now)),
        connected: state.streams > 0,
        complete_kinds: state.complete.iter().map(ToString::to_string).collect(),
    });
    pb::ViewInfo {
        revision: info.revision,
        incarnation: info.incarnation.to_string(),
        sources: sources.collect(),
        manual_mode: info.manual,
        nodes: count(info.nodes),
    }
}

pub(super) fn reservation_state(basis: &Basis) -> pb::ReservationState {
    match basis {
        Basis::Decided { .. } => pb::ReservationState::Decided,
        Basis::Assumed => pb::ReservationState::Assumed,
    }
}

pub(super) fn reservation(reservation: &Reservation) -> pb::Reservation {
    pb::Reservation {
        id: reservation.id.to_string(),
        pod: Some(object_ref(Kind::Pod, &reservation.pod.pod.meta)),
        node: reservation.node().to_string(),
        expires_at: Some(timestamp(reservation.expires)),
        created_at: Some(timestamp(reservation.created)),
        state: reservation_state(&reservation.basis).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_have_positive_nanos() {
        let at = timestamp(Time(-1));
        assert_eq!((at.seconds, at.nanos), (-1, 999_999_000));
    }

    #[test]
    fn spans_are_whole_microseconds_and_saturate() {
        assert_eq!(micros(&prost_types::Duration { seconds: 1, nanos: 500_000_999 }), 1_500_000);
        assert_eq!(micros(&prost_types::Duration { seconds: i64::MAX, nanos: 0 }), i64::MAX);
    }
}
