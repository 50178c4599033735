//! A histogram of durations that is recorded without a lock.
//!
//! prometheus-client's own takes a mutex for each observation; threads that decide at the same time would meet there. This
//! one is an array of atomics. A scrape that reads it between two of them may see an observation in its bucket and not yet
//! in the sum, which the next scrape has; the count is taken from the buckets, so that those two always agree.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The first upper bound. kube-scheduler begins at 1 ms, where nearly all of Berth's decisions would be in one bucket.
const FIRST_NANOS: u64 = 10_000;
/// Each bound is twice the one before: up to about 5 s.
const BOUNDS: usize = 20;

#[derive(Debug, Clone, Default)]
pub(super) struct Timing(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    /// One a bound; the last is for what lies beyond all of them.
    buckets: [AtomicU64; BOUNDS + 1],
    /// Wraps after 584 years of observed time.
    nanos: AtomicU64,
}

fn bound_nanos(i: usize) -> u64 {
    FIRST_NANOS << i
}

/// As one division, so that bounds are the decimal numbers that people would write.
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

impl Timing {
    pub(super) fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (0..BOUNDS).find(|i| nanos <= bound_nanos(*i)).unwrap_or(BOUNDS);
        self.0.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl TypedMetric for Timing {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Timing {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let sum = seconds(self.0.nanos.load(Ordering::Relaxed));
        let bounds = (0..BOUNDS).map(|i| seconds(bound_nanos(i))).chain([f64::INFINITY]);
        let counts = self.0.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_is_not_below_it() {
        let timing = Timing::default();
        for micros in [0, 10, 11, 20, 10_000_000] {
            timing.observe(Duration::from_micros(micros));
        }
        let mut registry = Registry::default();
        registry.register("t", "t", timing);
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        for line in [
            "t_bucket{le=\"0.00001\"} 2",
            "t_bucket{le=\"0.00002\"} 4",
            "t_bucket{le=\"1.31072\"} 4",
            "t_bucket{le=\"5.24288\"} 4",
            "t_bucket{le=\"+Inf\"} 5",
            "t_count 5",
            "t_sum 10.000041",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
        }
    }
}
