//! Between messages and the nouns of `service`: nothing but conversions, in one file a service.
//!
//! `object` brings objects in, in their three forms; this file holds what several services share.

pub(super) mod compare;
pub(super) mod decision;
pub(super) mod eviction;
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

/// Microseconds since the epoch; None for what protobuf says is no time.
fn micros_of(at: &prost_types::Timestamp) -> Option<i64> {
    // 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
    const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
    let valid = SECONDS.contains(&at.seconds) && (0..1_000_000_000).contains(&at.nanos);
    valid.then(|| at.seconds * 1_000_000 + i64::from(at.nanos) / 1_000)
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
        Basis::Held { .. } => pb::ReservationState::Held,
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
    fn only_times_that_protobuf_knows_are_taken() {
        let at = |seconds, nanos| micros_of(&prost_types::Timestamp { seconds, nanos });
        assert_eq!(at(-1, 999_999_000), Some(-1));
        assert_eq!(at(253_402_300_799, 0), Some(253_402_300_799_000_000));
        assert_eq!([at(253_402_300_800, 0), at(i64::MIN, 0), at(0, -1), at(0, 1_000_000_000)], [None; 4]);
    }

    #[test]
    fn spans_are_whole_microseconds_and_saturate() {
        assert_eq!(micros(&prost_types::Duration { seconds: 1, nanos: 500_000_999 }), 1_500_000);
        assert_eq!(micros(&prost_types::Duration { seconds: i64::MAX, nanos: 0 }), i64::MAX);
    }
}
