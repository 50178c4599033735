//! The lanes that decisions wait in, and the slots that they work in.
//!
//! There are two. In the short lane is what is over in some milliseconds; it has twice as many slots as there are cores, so
//! that while one call has the writer others convert. In the long lane is what may take longer, as few at a time as leave the
//! others a core. A slot belongs to the work, not to the call: whoever gives up gets no second one while the engine still
//! finds out about the first.
//!
//! A queue is short in time, not in calls. It knows how long a slot was held lately, so it can tell a newcomer's wait; a
//! call that would come too late for its deadline, or wait longer than [`LONGEST_WAIT`], is refused at once, while it can
//! still go elsewhere. In the queue calls are ordered by deadline, those without a near one by arrival, and one whose caller
//! has gone leaves it undecided. Streams are not refused: they stop reading instead.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::error::{Problem, overloaded};
use crate::telemetry::metrics::LaneMetrics;

/// How long a call of the short lane may wait. Health checks and retries of clients have timeouts of a second and more; an
/// answer that waited a tenth of that is still one.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Calls that may wait at a time, however short they are: each keeps its request.
const MOST_WAITING: usize = 4_096;
/// How much one more slot that was given back weighs in the mean of how long they are held.
const WEIGHT: f64 = 1.0 / 32.0;

/// A queue and its slots.
#[derive(Debug, Clone)]
pub(super) struct Lane(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    slots: usize,
    longest_wait: Duration,
    most_waiting: usize,
    metrics: LaneMetrics,
}

#[derive(Debug, Default)]
struct State {
    /// Slots in use.
    taken: usize,
    /// Who waits, the most urgent first; equals by arrival.
    waiting: BTreeMap<Place, oneshot::Sender<()>>,
    /// Numbers arrivals.
    arrived: u64,
    /// For how long slots were held lately, in seconds.
    held: f64,
    /// When a slot was last taken or given back.
    moved: Option<Instant>,
}

/// A place in the queue: by when, and the number of the arrival.
type Place = (Instant, u64);

/// Whether a caller can be told to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Refused when its wait would be too long.
    Call,
    /// Waits as long as it takes.
    Stream,
}

impl Lane {
    pub(super) fn new(slots: usize, longest_wait: Duration, most_waiting: usize, metrics: LaneMetrics) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { state, slots: slots.max(1), longest_wait, most_waiting, metrics }))
    }

    /// For what is over in some milliseconds.
    pub(super) fn short(cores: usize, metrics: LaneMetrics) -> Self {
        Self::new(cores * 2, LONGEST_WAIT, MOST_WAITING, metrics)
    }

    /// For what may take longer: half the cores, and a queue as long as deadlines allow, of few calls, since such requests
    /// are large.
    pub(super) fn long(cores: usize, longest: Duration, metrics: LaneMetrics) -> Self {
        Self::new(cores / 2, longest, 64, metrics)
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when a call's turn would come after its deadline, or too late for anybody; a stream waits.
    pub(super) async fn enter(&self, deadline: Instant, manner: Manner) -> Result<Slot, Problem> {
        let Some(waiting) = self.line_up(deadline, manner)? else { return Ok(self.slot()) };
        waiting.turn().await.ok_or_else(|| self.refuse())
    }

    /// None: there is a free slot, and it is taken.
    fn line_up(&self, deadline: Instant, manner: Manner) -> Result<Option<Waiting>, Problem> {
        let now = Instant::now();
        let shared = &self.0;
        let mut state = shared.state.lock();
        if state.taken < shared.slots && state.waiting.is_empty() {
            state.taken += 1;
            state.moved = Some(now);
            return Ok(None);
        }
        // Who has a near deadline goes first; among the others nobody waits longer for those who have a later one.
        let by = deadline.min(now + shared.longest_wait);
        state.arrived += 1;
        let place = (by, state.arrived);
        if manner == Manner::Call {
            let wait = state.wait_before(place, shared.slots, now);
            let too_late = now + wait > deadline || wait > shared.longest_wait;
            if too_late || state.waiting.len() >= shared.most_waiting {
                drop(state);
                return Err(self.refuse());
            }
        }
        let (grant, granted) = oneshot::channel();
        state.waiting.insert(place, grant);
        shared.metrics.waiting(state.waiting.len());
        drop(state);
        Ok(Some(Waiting { lane: self.clone(), place, granted }))
    }

    fn refuse(&self) -> Problem {
        self.0.metrics.refused();
        overloaded()
    }

    fn slot(&self) -> Slot {
        Slot { lane: self.clone(), since: Instant::now() }
    }

    /// A slot is free: whoever is next has it.
    fn pass_on(&self, held: Option<Duration>) {
        let mut state = self.0.state.lock();
        state.moved = Some(Instant::now());
        if let Some(held) = held {
            state.held += WEIGHT * (held.as_secs_f64() - state.held);
        }
        // One that has gone takes no grant.
        while let Some((_, next)) = state.waiting.pop_first() {
            if next.send(()).is_ok() {
                self.0.metrics.waiting(state.waiting.len());
                return;
            }
        }
        state.taken = state.taken.saturating_sub(1);
        self.0.metrics.waiting(0);
    }
}

impl State {
    /// How long who takes this place will wait, going by how long slots were held lately, or are held already.
    fn wait_before(&self, place: Place, slots: usize, now: Instant) -> Duration {
        let ahead = self.waiting.range(..place).count() + 1;
        let already = self.moved.map_or(0.0, |moved| now.saturating_duration_since(moved).as_secs_f64());
        #[allow(clippy::cast_precision_loss)]
        let wait = already.max(self.held * ahead as f64 / slots as f64);
        Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }
}

/// Somebody in the queue. Dropping it leaves the queue, or passes on the slot that was granted meanwhile.
struct Waiting {
    lane: Lane,
    place: Place,
    granted: oneshot::Receiver<()>,
}

impl Waiting {
    async fn turn(mut self) -> Option<Slot> {
        (&mut self.granted).await.ok()?;
        Some(self.lane.slot())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.lane.0.state.lock();
        let was_waiting = state.waiting.remove(&self.place).is_some();
        self.lane.0.metrics.waiting(state.waiting.len());
        drop(state);
        // Taken by `turn` already, unless that was given up between the grant and its next poll.
        if !was_waiting && self.granted.try_recv().is_ok() {
            self.lane.pass_on(None);
        }
    }
}

/// The right to work. Dropping it passes it on.
#[derive(Debug)]
pub(super) struct Slot {
    lane: Lane,
    since: Instant,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.lane.pass_on(Some(self.since.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use tonic::Status;
    use tonic_types::StatusExt;

    use super::*;

    fn lane(slots: usize, most_waiting: usize) -> Lane {
        Lane::new(slots, LONGEST_WAIT, most_waiting, LaneMetrics::default())
    }

    fn in_a_minute() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// Whether a future isn't ready when it is polled once.
    async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn calls_beyond_the_queue_are_shed_and_told_when_to_come_back() {
        let lane = lane(1, 1);
        let slot = lane.enter(in_a_minute(), Manner::Call).await.unwrap();
        let mut waiting = pin!(lane.enter(in_a_minute(), Manner::Call));
        assert!(is_pending(&mut waiting).await, "the second waits");
        let status = Status::from(lane.enter(in_a_minute(), Manner::Call).await.unwrap_err());
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert!(status.get_details_retry_info().is_some());
        drop(slot);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn a_stream_is_never_shed() {
        let lane = lane(1, 0);
        let slot = lane.enter(in_a_minute(), Manner::Call).await.unwrap();
        let mut waiting = pin!(lane.enter(in_a_minute(), Manner::Stream));
        assert!(is_pending(&mut waiting).await);
        drop(slot);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn a_call_whose_turn_would_come_after_its_deadline_is_refused_at_once() {
        let lane = lane(1, 8);
        lane.0.state.lock().held = 0.050;
        let _slot = lane.enter(in_a_minute(), Manner::Call).await.unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(lane.enter(soon, Manner::Call).await.is_err());
        let mut patient = pin!(lane.enter(in_a_minute(), Manner::Call));
        assert!(is_pending(&mut patient).await);
        // And two that are ahead make it 100 ms and more, which is too long for anybody.
        let mut second = pin!(lane.enter(in_a_minute(), Manner::Call));
        assert!(is_pending(&mut second).await);
        assert!(lane.enter(in_a_minute(), Manner::Call).await.is_err());
    }

    #[tokio::test]
    async fn who_has_the_nearer_deadline_goes_first() {
        let lane = lane(1, 8);
        let slot = lane.enter(in_a_minute(), Manner::Call).await.unwrap();
        let mut patient = pin!(lane.enter(in_a_minute(), Manner::Call));
        assert!(is_pending(&mut patient).await);
        let mut urgent = pin!(lane.enter(Instant::now() + Duration::from_millis(50), Manner::Call));
        assert!(is_pending(&mut urgent).await);
        drop(slot);
        assert!(is_pending(&mut patient).await);
        let slot = urgent.await.unwrap();
        drop(slot);
        assert!(patient.await.is_ok());
    }

    #[tokio::test]
    async fn who_has_gone_leaves_the_queue_and_loses_no_slot() {
        let lane = lane(1, 8);
        let slot = lane.enter(in_a_minute(), Manner::Call).await.unwrap();
        {
            let mut gone = pin!(lane.enter(in_a_minute(), Manner::Call));
            assert!(is_pending(&mut gone).await);
        }
        assert!(lane.0.state.lock().waiting.is_empty());
        {
            let mut granted = pin!(lane.enter(in_a_minute(), Manner::Call));
            assert!(is_pending(&mut granted).await);
            drop(slot);
            // Gone between the grant and the next poll.
        }
        assert_eq!(lane.0.state.lock().taken, 0);
        assert!(lane.enter(in_a_minute(), Manner::Call).await.is_ok());
    }
}
