//! The state machine of one stream.
//!
//! ```text
//!            Hello (first request only)          SnapshotBegin
//!  Opened ------------------------> Named source <------------> In a snapshot
//!    | first request without Hello               SnapshotEnd
//!    v                                  a newer stream claims its kind, from any state after Hello
//!  Unnamed (no snapshots)               ----------------------------------------------------> Fenced: the stream ends
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::MutexGuard;

use super::fencing::Fence;
use super::read::{BatchReader, ObjectReader, Ready};
use super::{Ack, Batch, Control, ItemRejection, MAX_EVENTS, Reference, RejectionCode, StreamKind};
use crate::cluster::Writer;
use crate::cluster::reservation::Basis;
use crate::cluster::store::{FILE_SOURCE, Origin};
use crate::cluster::writer::{Reserve, WriteError, Written};
use crate::manifest;
use crate::model::{Kind, Object, ObjectRef, Str, Time};
use crate::service::{FieldError, Service, ServiceError};
use crate::telemetry::metrics::{FeedResult, OpenStream, SnapshotEvent};

/// What is written of a snapshot's batch at a time, in small pods. A changed one takes up to 10 us, so that a slice stays
/// below 500 us.
const SNAPSHOT_SLICE: usize = 32;
/// What is written at a time of a batch that is more than [`MAX_EVENTS`] small pods: some 1.3 ms, or one pod if it alone is
/// more.
const HEAVY_SLICE: usize = 128;

/// One open stream.
#[derive(Debug)]
pub struct FeedSession {
    service: Arc<Service>,
    kind: StreamKind,
    state: State,
    sequence: u64,
    fence: Arc<Fence>,
    _counted: OpenStream,
}

#[derive(Debug)]
enum State {
    Opened,
    Unnamed,
    Named { source: Str, epoch: u64, snapshot: Option<Snapshot> },
}

#[derive(Debug)]
struct Snapshot {
    number: u64,
    kinds: Vec<Kind>,
}

impl FeedSession {
    pub fn new(service: Arc<Service>, kind: StreamKind) -> Self {
        let counted = service.metrics().feed_stream(kind.as_str());
        Self { service, kind, state: State::Opened, sequence: 0, fence: Arc::default(), _counted: counted }
    }

    /// Tells when another stream has taken this one's place.
    pub fn fence(&self) -> Arc<Fence> {
        self.fence.clone()
    }

    /// Applies a batch and says what became of it.
    ///
    /// # Errors
    /// One that ends the stream; nothing of the batch was applied, and what was applied before stays.
    pub fn apply(&mut self, batch: Batch) -> Result<Ack, ServiceError> {
        let begun = Instant::now();
        let ack = self.take_in(batch)?;
        let (metrics, stream) = (self.service.metrics(), self.kind.as_str());
        metrics.feed_batch(begun.elapsed());
        metrics.feed_events(stream, FeedResult::Applied, ack.applied);
        metrics.feed_events(stream, FeedResult::Stale, ack.stale);
        metrics.feed_events(stream, FeedResult::Rejected, ack.rejected);
        metrics.feed_events(stream, FeedResult::Removed, ack.removed);
        Ok(ack)
    }

    fn take_in(&mut self, batch: Batch) -> Result<Ack, ServiceError> {
        if batch.events.len() > MAX_EVENTS {
            let message = format!("must have at most {MAX_EVENTS} items, has {}", batch.events.len());
            return Err(ServiceError::invalid("events", message));
        }
        self.open(&batch)?;
        self.number(&batch)?;
        let mut end_of_snapshot = false;
        match &batch.control {
            Some(Control::SnapshotBegin { kinds }) => self.begin_snapshot(kinds)?,
            Some(Control::SnapshotEnd) => {
                end_of_snapshot = true;
                if !matches!(&self.state, State::Named { snapshot: Some(_), .. }) {
                    return Err(ServiceError::invalid("control.snapshot_end", "no snapshot has begun on this stream"));
                }
            }
            Some(Control::Hello { .. } | Control::Bookmark) | None => {}
        }
        let mut ack = Ack { sequence: self.sequence, ..Ack::default() };
        let objects = ObjectReader {
            cluster: &self.service.cluster,
            sequence: self.sequence,
            options: manifest::Options { allow_missing_uid: !matches!(self.state, State::Named { .. }) },
            ack: &mut ack,
        };
        let reader = BatchReader { objects, stream: self.kind };
        let ready = reader.read(batch.events);
        self.write(ready, &mut ack)?;
        if end_of_snapshot {
            self.end_snapshot(&mut ack);
        }
        Ok(ack)
    }

    /// Settles who speaks, with the first batch.
    fn open(&mut self, batch: &Batch) -> Result<(), ServiceError> {
        let hello = match &batch.control {
            Some(Control::Hello { source, epoch, incarnation }) => Some((source, *epoch, incarnation)),
            _ => None,
        };
        match (&self.state, hello) {
            (State::Opened, Some((source, epoch, incarnation))) => {
                if source.is_empty() || source == FILE_SOURCE {
                    let message = "must name the client; neither empty nor \"file\"";
                    return Err(ServiceError::invalid("control.hello.source", message));
                }
                if batch.sequence == 0 {
                    return Err(ServiceError::invalid("sequence", "must be 1 or more on a stream that says hello"));
                }
                let now = self.service.now();
                let mut writer = self.service.cluster.writer();
                if !incarnation.is_empty() && *incarnation != **writer.incarnation() {
                    let current = writer.incarnation().clone();
                    return Err(ServiceError::OtherIncarnation { named: incarnation.clone(), current });
                }
                let source = Str::from(source.as_str());
                if let Some(kind) = self.kind.only_kind() {
                    self.claim(&source, epoch, [kind])?;
                }
                writer.readiness_mut().stream_opened(&source, epoch, self.kind == StreamKind::Pods, now);
                self.service.fencing.forget(&writer.readiness_mut().forget_closed());
                drop(writer);
                tracing::info!(stream = self.kind.as_str(), source = &*source, epoch, "feed stream opened");
                self.state = State::Named { source, epoch, snapshot: None };
            }
            (_, Some(_)) => {
                return Err(ServiceError::invalid("control.hello", "only the first request of a stream may say hello"));
            }
            (State::Opened, None) => {
                let now = self.service.now();
                let pods = self.kind == StreamKind::Pods;
                self.service.cluster.writer().readiness_mut().stream_opened(&Str::default(), 0, pods, now);
                tracing::info!(stream = self.kind.as_str(), "feed stream opened without hello");
                self.state = State::Unnamed;
            }
            (State::Unnamed | State::Named { .. }, None) => {}
        }
        Ok(())
    }

    /// Makes this stream the one that writes these kinds. Called with the writer held, as everything that writes is, so
    /// that nothing of a fenced stream is applied after its successor's first word.
    fn claim(&self, source: &Str, epoch: u64, kinds: impl IntoIterator<Item = Kind>) -> Result<(), ServiceError> {
        for kind in kinds {
            let claimed = self.service.fencing.claim(source, kind, epoch, &self.fence);
            claimed.map_err(|newer| ServiceError::Fenced { client: source.clone(), epoch: newer })?;
        }
        Ok(())
    }

    fn number(&mut self, batch: &Batch) -> Result<(), ServiceError> {
        if matches!(self.state, State::Unnamed) {
            self.sequence += 1;
        } else if batch.sequence > self.sequence {
            self.sequence = batch.sequence;
        } else {
            let message = format!("must grow with each request: {} follows {}", batch.sequence, self.sequence);
            return Err(ServiceError::invalid("sequence", message));
        }
        Ok(())
    }

    fn begin_snapshot(&mut self, names: &[String]) -> Result<(), ServiceError> {
        const PATH: &str = "control.snapshot_begin";
        let State::Named { source, epoch, snapshot } = &self.state else {
            return Err(ServiceError::invalid(PATH, "a stream that didn't say hello may not send snapshots"));
        };
        if snapshot.is_some() {
            return Err(ServiceError::invalid(PATH, "the snapshot before has not ended"));
        }
        let mut kinds: Vec<Kind> = Vec::new();
        let mut errors = Vec::new();
        for (i, name) in names.iter().enumerate() {
            match Kind::parse(name).filter(|k| self.kind.takes(*k)) {
                Some(kind) => kinds.push(kind),
                None => errors.push(FieldError {
                    path: format!("{PATH}.kinds[{i}]"),
                    message: format!("{name:?} is no kind of this stream"),
                }),
            }
        }
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        if kinds.is_empty() {
            match self.kind.only_kind() {
                Some(kind) => kinds.push(kind),
                None => return Err(ServiceError::invalid(format!("{PATH}.kinds"), "must name at least one kind")),
            }
        }
        kinds.sort();
        kinds.dedup();
        let mut writer = self.service.cluster.writer();
        self.check_fence()?;
        self.claim(source, *epoch, kinds.iter().copied())?;
        if kinds.contains(&Kind::Pod) {
            writer.readiness_mut().pod_snapshot(source, true);
        }
        let begun = Snapshot { number: writer.begin_snapshot(), kinds };
        drop(writer);
        self.service.metrics().snapshot(SnapshotEvent::Begun);
        if let State::Named { snapshot, .. } = &mut self.state {
            *snapshot = Some(begun);
        }
        Ok(())
    }

    fn check_fence(&self) -> Result<(), ServiceError> {
        match &self.state {
            State::Named { source, epoch, .. } if self.fence.is_fenced() => {
                Err(ServiceError::Fenced { client: source.clone(), epoch: *epoch })
            }
            _ => Ok(()),
        }
    }

    /// The critical sections. All accepted items of a batch become visible in one revision. Within a snapshot, which isn't
    /// seen as a whole anyway, each slice has its own, so that decisions go on in between; so has each of a batch of pods with
    /// hundreds of terms, volumes or ports, which would hold everybody up.
    fn write(&mut self, items: Vec<(usize, Ready)>, ack: &mut Ack) -> Result<(), ServiceError> {
        let now = self.service.now();
        let kinds: BTreeSet<Kind> = items.iter().map(|(_, item)| item.kind()).collect();
        let slice = match &self.state {
            State::Named { snapshot: Some(_), .. } => SNAPSHOT_SLICE,
            _ if items.iter().map(|(_, item)| item.weight()).sum::<usize>() > MAX_EVENTS => HEAVY_SLICE,
            _ => MAX_EVENTS,
        };
        let mut items = items.into_iter().peekable();
        loop {
            let mut writer = self.service.cluster.writer();
            self.check_fence()?;
            let origin = match &self.state {
                State::Named { source, epoch, snapshot } => {
                    self.claim(source, *epoch, kinds.iter().copied())?;
                    let snapshot = snapshot.as_ref().map_or(0, |s| s.number);
                    Origin { source: source.clone(), epoch: *epoch, snapshot }
                }
                State::Opened | State::Unnamed => Origin::anonymous(),
            };
            writer.readiness_mut().heard(&origin.source, self.kind == StreamKind::Pods, now);
            if items.peek().is_some() {
                writer.begin();
            }
            let mut weight = 0;
            while weight < slice
                && let Some((index, item)) = items.next()
            {
                weight += item.weight();
                write_item(&mut writer, index, item, &origin, now, ack);
            }
            ack.revision = writer.view().revision();
            ack.incarnation = writer.incarnation().clone();
            // To whoever waits, not to the one that lets go: the next slice would always be faster.
            MutexGuard::unlock_fair(writer);
            if items.peek().is_none() {
                return Ok(());
            }
            // A thread that is put to sleep in the middle of a slice keeps the writer; so it gives way before one.
            std::thread::yield_now();
        }
    }

    fn end_snapshot(&mut self, ack: &mut Ack) {
        let State::Named { source, snapshot, .. } = &mut self.state else { return };
        let Some(ended) = snapshot.take() else { return };
        let cluster = &self.service.cluster;
        ack.removed += cluster.finish_snapshot(source, ended.number, &ended.kinds) as u64;
        let mut writer = cluster.writer();
        if ended.kinds.contains(&Kind::Pod) {
            writer.readiness_mut().pod_snapshot(source, false);
        }
        ack.revision = writer.view().revision();
        drop(writer);
        self.service.metrics().snapshot(SnapshotEvent::Ended);
        let kinds: Vec<&str> = ended.kinds.iter().map(|kind| kind.as_str()).collect();
        tracing::info!(source = &**source, kinds = kinds.join(","), removed = ack.removed, "snapshot ended");
    }
}

fn write_item(writer: &mut Writer, index: usize, item: Ready, origin: &Origin, now: Time, ack: &mut Ack) {
    match item {
        Ready::Upsert(prepared) => match writer.upsert(*prepared, origin.clone()) {
            Written::Applied | Written::Unchanged => ack.applied += 1,
            Written::Stale => ack.stale += 1,
        },
        Ready::Delete(object) => {
            if writer.delete(&object) {
                ack.applied += 1;
            } else {
                ack.stale += 1;
            }
        }
        Ready::Assume { pod, node, bindings, id, ttl_micros } => {
            let expires = Time(now.0.saturating_add(ttl_micros));
            let basis = Basis::Assumed;
            assume(writer, index, Reserve { pod, node, bindings, id, now, expires, basis }, ack);
        }
    }
}

fn assume(writer: &mut Writer, index: usize, ask: Reserve, ack: &mut Ack) {
    let (pod, node) = (ask.pod.clone(), ask.node.clone());
    let taken = ask.id.as_ref().and_then(|id| writer.reservations().with_id(id));
    let result = match taken {
        Some(other) if other.pod.pod.meta.uid != pod.meta.uid => {
            Err((RejectionCode::Conflict, format!("reservation {} is another pod's", other.id)))
        }
        _ => match writer.reserve(ask) {
            Ok(_) => Ok(true),
            // The binding under way is done: there is nothing left to hold.
            Err(WriteError::BoundElsewhere { node: bound, .. }) if bound == node => Ok(false),
            Err(e @ WriteError::UnknownNode(_)) => Err((RejectionCode::UnknownNode, e.to_string())),
            Err(e @ (WriteError::BoundElsewhere { .. } | WriteError::Finished(_))) => {
                Err((RejectionCode::Conflict, e.to_string()))
            }
        },
    };
    match result {
        Ok(true) => ack.applied += 1,
        Ok(false) => ack.stale += 1,
        Err((code, message)) => ack.reject(ItemRejection {
            sequence: ack.sequence,
            index,
            object: Reference::of(&ObjectRef::of(&Object::Pod(pod))),
            code,
            message,
            errors: Vec::new(),
        }),
    }
}

impl Drop for FeedSession {
    /// The stream is over; a snapshot that has not ended deletes nothing.
    fn drop(&mut self) {
        let source = match &self.state {
            State::Opened => return,
            State::Unnamed => Str::default(),
            State::Named { source, snapshot, .. } => {
                if snapshot.is_some() {
                    self.service.metrics().snapshot(SnapshotEvent::Cut);
                }
                source.clone()
            }
        };
        tracing::info!(stream = self.kind.as_str(), source = &*source, "feed stream closed");
        let pods = self.kind == StreamKind::Pods;
        self.service.cluster.writer().readiness_mut().stream_closed(&source, pods);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Batch, Event};
    use super::*;
    use crate::service::source::Source;

    fn nodes(count: usize) -> Vec<Event> {
        let node = |i| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": format!("n{i}"), "uid": format!("u{i}") } });
        (0..count).map(|i| Event::Upsert(Source::from(node(i)))).collect()
    }

    fn send(session: &mut FeedSession, sequence: u64, control: Option<Control>, events: Vec<Event>) -> Ack {
        session.apply(Batch { sequence, events, control }).unwrap()
    }

    #[test]
    fn a_batch_is_one_revision_and_within_a_snapshot_one_for_each_slice() {
        let service = Arc::new(Service::default());
        let mut session = FeedSession::new(service.clone(), StreamKind::Nodes);
        let hello = Control::Hello { source: "s".into(), epoch: 1, incarnation: String::new() };
        let whole = send(&mut session, 1, Some(hello), nodes(3 * SNAPSHOT_SLICE));
        assert_eq!((whole.applied, whole.revision), (3 * SNAPSHOT_SLICE as u64, 1));
        let begin = Control::SnapshotBegin { kinds: Vec::new() };
        let sliced = send(&mut session, 2, Some(begin), nodes(3 * SNAPSHOT_SLICE + 1));
        assert_eq!((sliced.applied, sliced.revision), (3 * SNAPSHOT_SLICE as u64 + 1, 1 + 4));
        // All of it was sent in the snapshot, also what was known before, so nothing of it goes.
        let end = send(&mut session, 3, Some(Control::SnapshotEnd), Vec::new());
        assert_eq!((end.removed, service.cluster.fork().node_count()), (0, 3 * SNAPSHOT_SLICE + 1));
    }

    #[test]
    fn a_batch_of_pods_with_hundreds_of_terms_is_written_in_slices() {
        let service = Arc::new(Service::default());
        let mut session = FeedSession::new(service, StreamKind::Pods);
        let term = json!({ "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } } });
        let pod = |i, terms: usize| {
            let affinity =
                json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": vec![&term; terms] } });
            Event::Upsert(Source::from(json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("p{i}") },
                "spec": { "affinity": affinity, "containers": [{ "name": "c", "image": "i" }] },
            })))
        };
        let light = send(&mut session, 0, None, (0..64).map(|i| pod(i, 4)).collect());
        assert_eq!((light.applied, light.revision), (64, 1));
        let heavy = send(&mut session, 0, None, (0..7).map(|i| pod(i, 4 * HEAVY_SLICE)).collect());
        assert_eq!((heavy.applied, heavy.revision), (7, 2));
        let heavier = send(&mut session, 0, None, (0..12).map(|i| pod(i, 4 * HEAVY_SLICE + i)).collect());
        assert_eq!((heavier.applied, heavier.revision), (12, 2 + 12));
    }

    #[test]
    fn a_source_that_comes_under_ever_new_names_leaves_a_bounded_trace() {
        let service = Arc::new(Service::default());
        for i in 0..1_000 {
            let mut session = FeedSession::new(service.clone(), StreamKind::Pods);
            let hello = Control::Hello { source: format!("s{i}"), epoch: 1, incarnation: String::new() };
            send(&mut session, 1, Some(hello), Vec::new());
        }
        let writer = service.cluster.writer();
        assert!(writer.readiness().sources().len() < 200, "{}", writer.readiness().sources().len());
    }
}
