//! Where the time comes from. The engine never asks; only what expires or is reported does.

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::model::Time;

pub trait Clock: std::fmt::Debug + Send + Sync {
    fn now(&self) -> Time;
}

/// The system's wall clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until told to go on: for tests and for answers that must not depend on the day.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Time>);

impl ManualClock {
    pub fn at(now: Time) -> Self {
        Self(Mutex::new(now))
    }

    pub fn advance_secs(&self, secs: i64) {
        self.0.lock().0 += secs * 1_000_000;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        *self.0.lock()
    }
}
