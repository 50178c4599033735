//! The in-memory picture of a cluster: what is known (objects), what decisions read (the view) and who changes both (one
//! writer).
//!
//! - [`view::View`] holds the columns and indexes that the engine reads. Cloning it is a cheap fork.
//! - [`store::ObjectStore`] holds every object as it was fed, in concurrent maps, for look-ups that need no consistency
//!   with a decision.
//! - [`writer::Writer`] is the only thing that changes either; [`Cluster`] owns it behind a lock that nobody holds over an
//!   await or while converting input.
//!
//! Promises: no map guard leaves this module, nothing here is async, and nothing here knows of gRPC.

pub(crate) mod cancel;
pub mod counting;
pub mod counts;
pub mod fresh_id;
pub mod label_sets;
pub mod node_tally;
mod nominations;
pub mod pod_info;
pub mod pod_life;
pub mod pod_set;
pub mod pod_volumes;
pub mod readiness;
pub mod reservation;
pub mod resource_version;
pub mod snapshot;
pub mod store;
pub mod terms;
pub mod view;
pub mod writer;

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use self::store::{FILE_SOURCE, Origin};
use crate::model::{Kind, Str};

pub use cancel::Cancel;
pub use pod_info::PodInfo;
pub use pod_life::PodState;
pub use pod_volumes::VolumeBinding;
pub use snapshot::Snapshot;
pub use store::ObjectStore;
pub use view::{NodeRow, Ordinal, View};
pub use writer::Writer;

/// Objects that the end of a snapshot deletes at a time. A pod takes about a microsecond, a node with its pods some ten, so
/// that a slice stays below 500 us.
const SNAPSHOT_SLICE: usize = 48;

/// The cluster cache: one writer, many readers.
#[derive(Debug)]
pub struct Cluster {
    objects: Arc<ObjectStore>,
    writer: Mutex<Writer>,
}

impl Default for Cluster {
    fn default() -> Self {
        let objects = Arc::new(ObjectStore::default());
        Self { writer: Mutex::new(Writer::new(objects.clone())), objects }
    }
}

impl Cluster {
    /// The single writer. Hold it for as short as a change or a decision takes, and never over an await.
    pub fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// A consistent fork of the view, which the caller owns: later changes don't show in it, nor its changes elsewhere.
    pub fn fork(&self) -> View {
        self.writer.lock().view().clone()
    }

    /// All that is known at one revision. As cheap as a fork.
    pub fn snapshot(&self) -> Snapshot {
        self.writer.lock().snapshot()
    }

    /// Ends a snapshot: deletes what its source had written before and didn't send again, and, for the first snapshot of a
    /// kind, what came from files. How many objects that were.
    ///
    /// Objects are looked for without the writer and deleted in slices, so that decisions go on in between. One that
    /// somebody wrote meanwhile stays.
    pub fn finish_snapshot(&self, source: &Str, snapshot: u64, kinds: &[Kind]) -> usize {
        let mut removed = 0;
        for kind in kinds {
            let take_over_files = self.writer().hand_over(*kind);
            let is_gone = |origin: &Origin| {
                (origin.source == *source && origin.snapshot != snapshot)
                    || (take_over_files && &*origin.source == FILE_SOURCE)
            };
            for slice in self.objects.select(*kind, is_gone).chunks(SNAPSHOT_SLICE) {
                let mut writer = self.writer();
                writer.begin();
                for object in slice {
                    if self.objects.origin(object).is_some_and(|origin| is_gone(&origin)) {
                        removed += usize::from(writer.delete(object));
                    }
                }
            }
        }
        self.writer().readiness_mut().snapshot_finished(source, kinds);
        removed
    }

    /// The objects as they were last fed. Reads are consistent per object only.
    pub fn objects(&self) -> &ObjectStore {
        &self.objects
    }
}
