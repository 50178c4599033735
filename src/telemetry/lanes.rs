//! What the queues of decisions look like from outside.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lane {
    lane: &'static str,
}

/// The queues of all lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    waiting: Family<Lane, Gauge>,
    refused: Family<Lane, Counter>,
}

impl Lanes {
    pub(super) fn register(berth: &mut Registry) -> Self {
        let lanes = Self::default();
        berth.register("decisions_waiting", "Calls that wait for a slot now, by lane", lanes.waiting.clone());
        let help = "Calls that were refused since their turn would have come too late, by lane";
        berth.register("decisions_refused", help, lanes.refused.clone());
        lanes
    }

    pub(super) fn lane(&self, lane: &'static str) -> LaneMetrics {
        let labels = Lane { lane };
        LaneMetrics {
            waiting: self.waiting.get_or_create(&labels).clone(),
            refused: self.refused.get_or_create(&labels).clone(),
        }
    }
}

/// The queue of one lane.
#[derive(Debug, Clone, Default)]
pub struct LaneMetrics {
    waiting: Gauge,
    refused: Counter,
}

impl LaneMetrics {
    /// So many wait now.
    pub fn waiting(&self, calls: usize) {
        self.waiting.set(i64::try_from(calls).unwrap_or(i64::MAX));
    }

    pub fn refused(&self) {
        self.refused.inc();
    }
}
