//! Time: instants of the driver's monotonic clock, and calendar dates.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of the driver's monotonic clock: nanoseconds since a zero that the driver chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The driver's zero.
    pub const ZERO: Self = Self(0);

    /// The moment this many nanoseconds after zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates some 584 years after zero.
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// A date of the wall clock: whole seconds since 1970-01-01 00:00 UTC, the resolution of HTTP
/// dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(u64);

impl Date {
    /// The date this many seconds after the epoch.
    pub const fn from_unix(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Seconds since the epoch.
    pub const fn as_unix(self) -> u64 {
        self.0
    }

    /// Whole seconds from `earlier` to this date; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The date this many seconds later.
    #[must_use]
    pub const fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_runs_backwards_nor_over() {
        let (early, late) = (Instant::from_nanos(5), Instant::from_nanos(9));
        assert_eq!(late - early, Duration::from_nanos(4));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(Instant::from_nanos(u64::MAX) + Duration::MAX, Instant::from_nanos(u64::MAX));
        assert_eq!(Date::from_unix(3).since(Date::from_unix(7)), 0);
    }
}
