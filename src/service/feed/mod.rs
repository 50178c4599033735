//! Takes in the cluster: one session for each open stream.
//!
//! - [`FeedSession`] is the state machine of a stream: Hello, numbering, snapshots, and the one write of a batch.
//! - [`Fencing`] says which stream may write which kind of a source.
//! - `read` turns events into checked objects before the writer is taken.
//! - This file holds what goes in ([`Batch`]) and what comes out ([`Ack`]); `api/feed.rs` converts both.
//!
//! A batch is read and checked first, then applied in one revision. A bad item is rejected alone. Acks merge
//! ([`Ack::merge`]), so that whoever sends them may hold back until the client is ready to read: a client that never reads
//! gets one merged ack later and holds up nothing.

mod fencing;
#[cfg(test)]
mod interleavings;
mod read;
mod session;

pub use fencing::{Fence, Fencing};
pub(super) use read::read_objects;
pub use session::FeedSession;

use super::error::FieldError;
use super::source::Source;
use crate::manifest::Warning;
use crate::model::{Kind, ObjectRef, Str};

/// Events a batch may have.
pub const MAX_EVENTS: usize = 1_024;
/// Rejections and warnings that an ack spells out; the rest is counted. Keeps an ack that nobody fetches below 4 MiB.
pub const MAX_REMARKS: usize = 1_024;
/// Bytes of text that an ack's remarks may have, for the same reason: a rejection can list hundreds of mistakes.
const MAX_REMARK_BYTES: usize = 2 << 20;

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

    /// The word for metrics and the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Objects => "objects",
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
    Upsert(Source),
    Delete(Reference),
    Assume(Assume),
}

/// An object as a client names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Reference {
    fn of(object: &ObjectRef) -> Self {
        Self {
            kind: object.kind.as_str().to_owned(),
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
            uid: object.uid.to_string(),
        }
    }

    fn bytes(&self) -> usize {
        self.kind.len() + self.namespace.len() + self.name.len() + self.uid.len()
    }
}

#[derive(Debug)]
pub struct Assume {
    pub pod: Source,
    pub node: String,
    pub ttl_micros: Option<i64>,
    /// Empty: a new name.
    pub reservation_id: String,
    pub bindings: Vec<AssumedBinding>,
}

/// The volume that a claim is promised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssumedBinding {
    /// Empty: the pod's.
    pub namespace: String,
    pub claim: String,
    /// Empty: one is provisioned for the node.
    pub volume: String,
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
    /// As far as it could be read.
    pub object: Reference,
    pub code: RejectionCode,
    pub message: String,
    pub errors: Vec<FieldError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemWarning {
    pub sequence: u64,
    pub index: usize,
    pub object: Reference,
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
    /// Rejections and warnings beyond what is spelt out.
    pub omitted: u64,
    /// Items refused, those among `omitted` included.
    rejected: u64,
    remark_bytes: usize,
}

impl Ack {
    fn reject(&mut self, rejection: ItemRejection) {
        self.rejected += 1;
        let errors = rejection.errors.iter().map(|e| e.path.len() + e.message.len()).sum::<usize>();
        if self.rejections.len() < MAX_REMARKS
            && self.has_room(rejection.object.bytes() + rejection.message.len() + errors)
        {
            self.rejections.push(rejection);
        } else {
            self.omitted += 1;
        }
    }

    fn warn(&mut self, warning: ItemWarning) {
        let text = warning.warning.path.len() + warning.warning.message.len();
        if self.warnings.len() < MAX_REMARKS && self.has_room(warning.object.bytes() + text) {
            self.warnings.push(warning);
        } else {
            self.omitted += 1;
        }
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        let total = self.remark_bytes.saturating_add(bytes);
        let fits = total <= MAX_REMARK_BYTES;
        if fits {
            self.remark_bytes = total;
        }
        fits
    }

    /// Adds what a later ack says.
    pub fn merge(&mut self, later: Self) {
        self.sequence = later.sequence;
        self.revision = later.revision;
        self.incarnation = later.incarnation;
        self.applied += later.applied;
        self.stale += later.stale;
        self.removed += later.removed;
        self.omitted += later.omitted;
        later.rejections.into_iter().for_each(|rejection| self.reject(rejection));
        later.warnings.into_iter().for_each(|warning| self.warn(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(message: &str) -> ItemRejection {
        ItemRejection {
            sequence: 1,
            index: 0,
            object: Reference::default(),
            code: RejectionCode::Invalid,
            message: message.into(),
            errors: Vec::new(),
        }
    }

    #[test]
    fn merged_acks_add_up_and_stay_bounded() {
        let one = || {
            let mut ack = Ack { sequence: 3, revision: 7, applied: 2, ..Ack::default() };
            (0..MAX_REMARKS).for_each(|_| ack.reject(rejection("no")));
            ack
        };
        let mut merged = one();
        merged.merge(Ack { sequence: 4, revision: 9, ..one() });
        assert_eq!((merged.sequence, merged.revision, merged.applied), (4, 9, 4));
        assert_eq!((merged.rejections.len(), merged.omitted), (MAX_REMARKS, MAX_REMARKS as u64));
    }

    #[test]
    fn long_remarks_are_counted_rather_than_kept() {
        let mut ack = Ack::default();
        let long = "x".repeat(MAX_REMARK_BYTES / 2);
        (0..3).for_each(|_| ack.reject(rejection(&long)));
        assert_eq!((ack.rejections.len(), ack.omitted), (2, 1));
    }
}
