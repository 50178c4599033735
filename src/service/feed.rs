//! Takes in the cluster: one session for each open stream.
//!
//! ```text
//!            Hello (first request only)          SnapshotBegin
//!  Opened ------------------------> Named source <------------> In a snapshot
//!    | first request without Hello               SnapshotEnd
//!    v
//!  Unnamed (no snapshots)
//! ```
//!
//! A batch is read and checked before the writer is taken, then applied in one revision. A bad item is rejected alone.
//! What happened is gathered in an [`Ack`], which whoever owns the session takes when the client is ready to read it: a
//! client that never reads gets one merged ack later and holds up nothing.

use std::sync::Arc;

use serde_json::Value;

use super::error::FieldError;
use super::schedule::{DEFAULT_TTL_SECS, TTL_SECS};
use super::{Service, ServiceError};
use crate::cluster::Writer;
use crate::cluster::reservation::Basis;
use crate::cluster::store::{FILE_SOURCE, Origin};
use crate::cluster::writer::{Prepared, Reserve, WriteError};
use crate::manifest::{self, Warning};
use crate::model::{Kind, Object, ObjectRef, Pod, Str, Time};

/// Events a batch may have.
pub const MAX_EVENTS: usize = 1_024;
/// Bytes an object may have as JSON.
pub const MAX_OBJECT_BYTES: usize = 3 * 512 * 1024;
/// Rejections and warnings that an ack spells out; the rest is counted. Keeps an ack that nobody fetches below 4 MiB.
pub const MAX_REMARKS: usize = 1_024;

/// Which of the three streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    Nodes,
    Pods,
    Objects,
}

impl StreamKind {
    pub fn takes(self, kind: Kind) -> bool {
        match self {
            Self::Nodes => kind == Kind::Node,
            Self::Pods => kind == Kind::Pod,
            Self::Objects => !matches!(kind, Kind::Node | Kind::Pod),
        }
    }

    fn only_kind(self) -> Option<Kind> {
        match self {
            Self::Nodes => Some(Kind::Node),
            Self::Pods => Some(Kind::Pod),
            Self::Objects => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Batch {
    /// The client's number; looked at only after a Hello.
    pub sequence: u64,
    pub events: Vec<Event>,
    pub control: Option<Control>,
}

#[derive(Debug)]
pub enum Event {
    /// The object as it now is.
    Upsert(Value),
    /// The same as JSON text.
    UpsertJson(Vec<u8>),
    Delete(Reference),
    Assume(Assume),
    /// Something that could not be read this far.
    Unreadable(Vec<FieldError>),
}

/// An object as a client names it.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

#[derive(Debug)]
pub struct Assume {
    pub pod: Value,
    pub node: String,
    pub ttl_micros: Option<i64>,
    /// Empty: a new name.
    pub reservation_id: String,
}

#[derive(Debug, Clone)]
pub enum Control {
    Hello { source: String, epoch: u64, incarnation: String },
    SnapshotBegin { kinds: Vec<String> },
    SnapshotEnd,
    Bookmark,
}

/// Why an item was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionCode {
    Malformed,
    Invalid,
    WrongKind,
    TooLarge,
    MissingUid,
    UnknownNode,
    Conflict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRejection {
    pub sequence: u64,
    /// Position in its batch.
    pub index: usize,
    pub object: Named,
    pub code: RejectionCode,
    pub message: String,
    pub errors: Vec<FieldError>,
}

/// An object's name as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Named {
    fn of(object: &ObjectRef) -> Self {
        Self {
            kind: object.kind.as_str().to_owned(),
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
            uid: object.uid.to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemWarning {
    pub sequence: u64,
    pub index: usize,
    pub object: Named,
    pub warning: Warning,
}

/// What was taken in since the last ack.
#[derive(Debug, Clone, Default)]
pub struct Ack {
    pub sequence: u64,
    pub revision: u64,
    pub incarnation: Str,
    pub applied: u64,
    pub stale: u64,
    pub removed: u64,
    pub rejections: Vec<ItemRejection>,
    pub warnings: Vec<ItemWarning>,
    /// Rejections and warnings beyond [`MAX_REMARKS`].
    pub omitted: u64,
}

impl Ack {
    fn reject(&mut self, rejection: ItemRejection) {
        if self.rejections.len() < MAX_REMARKS {
            self.rejections.push(rejection);
        } else {
            self.omitted += 1;
        }
    }

    fn warn(&mut self, warning: ItemWarning) {
        if self.warnings.len() < MAX_REMARKS {
            self.warnings.push(warning);
        } else {
            self.omitted += 1;
        }
    }
}

/// One open stream.
#[derive(Debug)]
pub struct FeedSession {
    service: Arc<Service>,
    kind: StreamKind,
    state: State,
    sequence: u64,
    ack: Ack,
    has_news: bool,
}

#[derive(Debug)]
enum State {
    Opened,
    Unnamed,
    Named { source: Str, snapshot: Option<Snapshot> },
}

#[derive(Debug)]
struct Snapshot {
    number: u64,
    kinds: Vec<Kind>,
}

/// An event after reading and checking, ready for the writer.
enum Ready {
    Upsert(Box<Prepared>),
    Delete(ObjectRef),
    Assume { pod: Arc<Pod>, node: Str, id: Option<Str>, ttl_micros: i64 },
}

impl FeedSession {
    pub fn new(service: Arc<Service>, kind: StreamKind) -> Self {
        Self { service, kind, state: State::Opened, sequence: 0, ack: Ack::default(), has_news: false }
    }

    /// What is to be told to the client; None when there is nothing new.
    pub fn take_ack(&mut self) -> Option<Ack> {
        if !self.has_news {
            return None;
        }
        self.has_news = false;
        Some(std::mem::take(&mut self.ack))
    }

    /// Applies a batch. An error ends the stream; what was applied before stays.
    pub fn apply(&mut self, batch: Batch) -> Result<(), ServiceError> {
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
        let strict = matches!(self.state, State::Named { .. });
        let options = manifest::Options { allow_missing_uid: !strict };
        let mut ready: Vec<(usize, Ready)> = Vec::with_capacity(batch.events.len());
        for (index, event) in batch.events.into_iter().enumerate() {
            match self.read(event, options, index) {
                Ok(item) => ready.push((index, item)),
                Err(rejection) => self.ack.reject(*rejection),
            }
        }
        self.write(ready, end_of_snapshot);
        self.has_news = true;
        Ok(())
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
                let now = self.service.now();
                let mut writer = self.service.cluster.writer();
                if !incarnation.is_empty() && *incarnation != **writer.incarnation() {
                    let current = writer.incarnation().clone();
                    return Err(ServiceError::OtherIncarnation { named: incarnation.clone(), current });
                }
                let source = Str::from(source.as_str());
                writer.readiness_mut().stream_opened(&source, epoch, now);
                self.state = State::Named { source, snapshot: None };
            }
            (_, Some(_)) => {
                return Err(ServiceError::invalid("control.hello", "only the first request of a stream may say hello"));
            }
            (State::Opened, None) => {
                let now = self.service.now();
                self.service.cluster.writer().readiness_mut().stream_opened(&Str::default(), 0, now);
                self.state = State::Unnamed;
            }
            (State::Unnamed | State::Named { .. }, None) => {}
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
        self.ack.sequence = self.sequence;
        Ok(())
    }

    fn begin_snapshot(&mut self, names: &[String]) -> Result<(), ServiceError> {
        const PATH: &str = "control.snapshot_begin";
        let State::Named { snapshot, .. } = &mut self.state else {
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
        let number = self.service.cluster.writer().begin_snapshot();
        *snapshot = Some(Snapshot { number, kinds });
        Ok(())
    }

    fn read(&mut self, event: Event, options: manifest::Options, index: usize) -> Result<Ready, Box<ItemRejection>> {
        let sequence = self.sequence;
        let refuse = |object: Named, code, message: String, errors| {
            Box::new(ItemRejection { sequence, index, object, code, message, errors })
        };
        match event {
            Event::Unreadable(errors) => {
                let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                Err(refuse(Named::default(), RejectionCode::Malformed, message, errors))
            }
            Event::UpsertJson(bytes) => {
                if bytes.len() > MAX_OBJECT_BYTES {
                    let message = format!("object has {} bytes, at most {MAX_OBJECT_BYTES} are taken", bytes.len());
                    return Err(refuse(Named::default(), RejectionCode::TooLarge, message, Vec::new()));
                }
                match serde_json::from_slice(&bytes) {
                    Ok(value) => self.read(Event::Upsert(value), options, index),
                    Err(e) => Err(refuse(Named::default(), RejectionCode::Malformed, e.to_string(), Vec::new())),
                }
            }
            Event::Upsert(value) => {
                let parsed = manifest::object(&value, options).map_err(|e| self.refusal(&e, index))?;
                let object = self.finish(parsed.value, parsed.warnings, index);
                if !self.kind.takes(object.kind()) {
                    let message = format!("this stream doesn't take objects of kind {}", object.kind());
                    let named = Named::of(&ObjectRef::of(&object));
                    return Err(refuse(named, RejectionCode::WrongKind, message, Vec::new()));
                }
                Ok(Ready::Upsert(Box::new(Prepared::new(object))))
            }
            Event::Delete(reference) => {
                let named = Named {
                    kind: reference.kind.clone(),
                    namespace: reference.namespace.clone(),
                    name: reference.name.clone(),
                    uid: reference.uid.clone(),
                };
                self.reference(reference)
                    .map(Ready::Delete)
                    .map_err(|(code, error)| refuse(named, code, error.to_string(), vec![error]))
            }
            Event::Assume(assume) => self.read_assume(assume, options, index),
        }
    }

    fn read_assume(
        &mut self,
        assume: Assume,
        options: manifest::Options,
        index: usize,
    ) -> Result<Ready, Box<ItemRejection>> {
        let mut errors = Vec::new();
        let ttl_micros = assume.ttl_micros.unwrap_or(DEFAULT_TTL_SECS * 1_000_000);
        if !TTL_SECS.contains(&(ttl_micros / 1_000_000)) {
            errors.push(FieldError { path: "assume.ttl".into(), message: "must be between 1 s and 1 h".into() });
        }
        if assume.node.is_empty() {
            errors.push(FieldError { path: "assume.node".into(), message: "Required value".into() });
        }
        let parsed = match manifest::pod_from(&assume.pod, options) {
            Ok(parsed) if errors.is_empty() => parsed,
            Ok(parsed) => {
                let object = Named::of(&ObjectRef::of(&Object::from(parsed.value)));
                let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                return Err(Box::new(ItemRejection {
                    sequence: self.sequence,
                    index,
                    object,
                    code: RejectionCode::Invalid,
                    message,
                    errors,
                }));
            }
            Err(error) => {
                let mut refusal = self.refusal(&error, index);
                refusal.errors.extend(errors);
                return Err(refusal);
            }
        };
        let object = self.finish(Object::from(parsed.value), parsed.warnings, index);
        let Object::Pod(pod) = object else {
            return Err(Box::new(ItemRejection {
                sequence: self.sequence,
                index,
                object: Named::of(&ObjectRef::of(&object)),
                code: RejectionCode::WrongKind,
                message: "only a pod can be assumed".into(),
                errors: Vec::new(),
            }));
        };
        let id = (!assume.reservation_id.is_empty()).then(|| Str::from(assume.reservation_id));
        Ok(Ready::Assume { pod, node: assume.node.into(), id, ttl_micros })
    }

    fn refusal(&self, error: &manifest::ManifestError, index: usize) -> Box<ItemRejection> {
        let lacks_uid = |e: &FieldError| e.path == "metadata.uid";
        let code = if error.errors.iter().all(lacks_uid) { RejectionCode::MissingUid } else { RejectionCode::Invalid };
        Box::new(ItemRejection {
            sequence: self.sequence,
            index,
            object: Named {
                kind: error.kind.clone(),
                namespace: error.namespace.clone(),
                name: error.name.clone(),
                uid: String::new(),
            },
            code,
            message: error.to_string(),
            errors: error.errors.clone(),
        })
    }

    /// Defaults that need other objects, and the remarks on the object.
    fn finish(&mut self, object: Object, mut warnings: Vec<Warning>, index: usize) -> Object {
        let object = match object {
            Object::Pod(mut pod) => {
                manifest::apply_classes(Arc::make_mut(&mut pod), &self.service.cluster, &mut warnings);
                Object::Pod(pod)
            }
            other => other,
        };
        if !warnings.is_empty() {
            let named = Named::of(&ObjectRef::of(&object));
            for warning in warnings {
                self.ack.warn(ItemWarning { sequence: self.sequence, index, object: named.clone(), warning });
            }
        }
        object
    }

    fn reference(&self, reference: Reference) -> Result<ObjectRef, (RejectionCode, FieldError)> {
        let error = |path: &str, message: String| FieldError { path: path.to_owned(), message };
        let kind = match (reference.kind.as_str(), self.kind.only_kind()) {
            ("", Some(kind)) => kind,
            ("", None) => return Err((RejectionCode::Invalid, error("delete.kind", "Required value".into()))),
            (name, _) => match Kind::parse(name) {
                Some(kind) if self.kind.takes(kind) => kind,
                _ => {
                    let message = format!("{name:?} is no kind of this stream");
                    return Err((RejectionCode::WrongKind, error("delete.kind", message)));
                }
            },
        };
        if reference.name.is_empty() && (kind != Kind::Pod || reference.uid.is_empty()) {
            return Err((RejectionCode::Invalid, error("delete.name", "Required value".into())));
        }
        let namespace = match (kind.is_namespaced(), reference.namespace.as_str()) {
            (false, _) => "",
            (true, "") => "default",
            (true, given) => given,
        };
        Ok(ObjectRef { kind, namespace: namespace.into(), name: reference.name.into(), uid: reference.uid.into() })
    }

    /// The critical section: all accepted items in one revision.
    fn write(&mut self, items: Vec<(usize, Ready)>, end_of_snapshot: bool) {
        let now = self.service.now();
        let service = self.service.clone();
        let mut writer = service.cluster.writer();
        let (source, number) = match &self.state {
            State::Named { source, snapshot } => (source.clone(), snapshot.as_ref().map_or(0, |s| s.number)),
            State::Opened | State::Unnamed => (Str::default(), 0),
        };
        writer.readiness_mut().heard(&source, now);
        if !items.is_empty() || end_of_snapshot {
            writer.begin();
        }
        let origin = Origin { source: source.clone(), snapshot: number };
        for (index, item) in items {
            match item {
                Ready::Upsert(prepared) => {
                    writer.upsert(*prepared, origin.clone());
                    self.ack.applied += 1;
                }
                Ready::Delete(object) => {
                    if writer.delete(&object) {
                        self.ack.applied += 1;
                    } else {
                        self.ack.stale += 1;
                    }
                }
                Ready::Assume { pod, node, id, ttl_micros } => {
                    let expires = Time(now.0.saturating_add(ttl_micros));
                    let (bindings, basis) = (Vec::new(), Basis::Assumed);
                    self.assume(&mut writer, index, Reserve { pod, node, bindings, id, now, expires, basis });
                }
            }
        }
        if end_of_snapshot
            && let State::Named { snapshot, .. } = &mut self.state
            && let Some(ended) = snapshot.take()
        {
            self.ack.removed += writer.finish_snapshot(&source, ended.number, &ended.kinds) as u64;
        }
        self.ack.revision = writer.view().revision();
        self.ack.incarnation = writer.incarnation().clone();
    }

    fn assume(&mut self, writer: &mut Writer, index: usize, ask: Reserve) {
        let pod = ask.pod.clone();
        let taken = ask.id.as_ref().and_then(|id| writer.reservations().with_id(id));
        let result = match taken {
            Some(other) if other.pod.pod.meta.uid != pod.meta.uid => {
                Err((RejectionCode::Conflict, format!("reservation {} is another pod's", other.id)))
            }
            _ => writer.reserve(ask).map_err(|e| match e {
                WriteError::UnknownNode(_) => (RejectionCode::UnknownNode, e.to_string()),
                WriteError::BoundElsewhere { .. } | WriteError::Finished(_) => (RejectionCode::Conflict, e.to_string()),
            }),
        };
        match result {
            Ok(_) => self.ack.applied += 1,
            Err((code, message)) => self.ack.reject(ItemRejection {
                sequence: self.sequence,
                index,
                object: Named::of(&ObjectRef::of(&Object::Pod(pod))),
                code,
                message,
                errors: Vec::new(),
            }),
        }
    }
}

impl Drop for FeedSession {
    /// The stream is over; a snapshot that has not ended deletes nothing.
    fn drop(&mut self) {
        let source = match &self.state {
            State::Opened => return,
            State::Unnamed => Str::default(),
            State::Named { source, .. } => source.clone(),
        };
        self.service.cluster.writer().readiness_mut().stream_closed(&source);
    }
}
