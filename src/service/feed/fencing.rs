//! Which stream may write which kind for a source.
//!
//! A source that reconnects, or a new leader of a pair, must not be overtaken by what its predecessor still had on the way.
//! So a kind of a source belongs to one stream: the one with the highest epoch, and of equal epochs the newest. The stream
//! that loses it is fenced: nothing it sends is applied any more, and it ends.
//!
//! Node and pod streams claim their kind with Hello; a stream of other objects claims a kind when it first speaks of it, so
//! that a source may spread its kinds over several streams. The highest epoch is remembered after its stream has ended:
//! an older one may not come back, until the source is forgotten among many others (`Readiness::forget_closed`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::model::{Kind, Str};

/// Tells a stream that it was fenced.
#[derive(Debug, Default)]
pub struct Fence {
    fenced: AtomicBool,
    notify: Notify,
}

impl Fence {
    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    /// Woken once when the stream is fenced, also if nobody waits yet.
    pub fn signal(&self) -> &Notify {
        &self.notify
    }

    fn shut(&self) {
        self.fenced.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}

#[derive(Debug)]
struct Holder {
    epoch: u64,
    fence: Arc<Fence>,
}

/// Who holds what. Locked after the writer, never before it.
#[derive(Debug, Default)]
pub struct Fencing {
    holders: Mutex<BTreeMap<(Str, Kind), Holder>>,
}

impl Fencing {
    /// Takes a kind of a source for a stream, fencing the one that had it.
    ///
    /// # Errors
    /// The epoch that holds it, when that is higher.
    pub fn claim(&self, source: &Str, kind: Kind, epoch: u64, stream: &Arc<Fence>) -> Result<(), u64> {
        let mut holders = self.holders.lock();
        if let Some(holder) = holders.get(&(source.clone(), kind)) {
            if Arc::ptr_eq(&holder.fence, stream) {
                return Ok(());
            }
            if holder.epoch > epoch {
                return Err(holder.epoch);
            }
            holder.fence.shut();
        }
        holders.insert((source.clone(), kind), Holder { epoch, fence: stream.clone() });
        Ok(())
    }

    /// Forgets all that sources hold which have no open stream.
    pub(super) fn forget(&self, sources: &[Str]) {
        if !sources.is_empty() {
            self.holders.lock().retain(|(source, _), _| !sources.contains(source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_epoch_fences_and_a_lower_one_is_refused() {
        let (fencing, source) = (Fencing::default(), Str::from("s"));
        let (old, new) = (Arc::new(Fence::default()), Arc::new(Fence::default()));
        assert_eq!(fencing.claim(&source, Kind::Pod, 2, &old), Ok(()));
        assert_eq!(fencing.claim(&source, Kind::Pod, 1, &new), Err(2));
        assert!(!old.is_fenced());
        assert_eq!(fencing.claim(&source, Kind::Pod, 3, &new), Ok(()));
        assert!(old.is_fenced() && !new.is_fenced());
    }

    #[test]
    fn of_equal_epochs_the_newest_stream_wins() {
        let (fencing, source) = (Fencing::default(), Str::from("s"));
        let (old, new) = (Arc::new(Fence::default()), Arc::new(Fence::default()));
        assert_eq!(fencing.claim(&source, Kind::Pod, 1, &old), Ok(()));
        assert_eq!(fencing.claim(&source, Kind::Pod, 1, &old), Ok(()), "again by itself");
        assert!(!old.is_fenced());
        assert_eq!(fencing.claim(&source, Kind::Pod, 1, &new), Ok(()));
        assert!(old.is_fenced());
    }

    #[test]
    fn a_forgotten_source_begins_afresh() {
        let (fencing, source) = (Fencing::default(), Str::from("s"));
        let stream = || Arc::new(Fence::default());
        assert_eq!(fencing.claim(&source, Kind::Pod, 2, &stream()), Ok(()));
        assert_eq!(fencing.claim(&"t".into(), Kind::Pod, 2, &stream()), Ok(()));
        fencing.forget(std::slice::from_ref(&source));
        assert_eq!(fencing.claim(&source, Kind::Pod, 1, &stream()), Ok(()));
        assert_eq!(fencing.claim(&"t".into(), Kind::Pod, 1, &stream()), Err(2));
    }

    #[test]
    fn other_sources_and_kinds_are_left_alone() {
        let fencing = Fencing::default();
        let streams: Vec<Arc<Fence>> = (0..3).map(|_| Arc::default()).collect();
        assert_eq!(fencing.claim(&"a".into(), Kind::Pod, 1, &streams[0]), Ok(()));
        assert_eq!(fencing.claim(&"b".into(), Kind::Pod, 9, &streams[1]), Ok(()));
        assert_eq!(fencing.claim(&"a".into(), Kind::Service, 9, &streams[2]), Ok(()));
        assert!(streams.iter().all(|s| !s.is_fenced()));
    }
}
