//! Points in time as the API server writes them. Parsing RFC 3339 is `manifest`'s business; here it is only a number.

/// Microseconds since the Unix epoch (UTC). Kubernetes stores seconds, or micros for `MicroTime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

impl Time {
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Whole seconds from `earlier` to `self`; negative when `self` is the earlier one.
    pub const fn secs_since(self, earlier: Time) -> i64 {
        self.0.saturating_sub(earlier.0) / 1_000_000
    }
}
