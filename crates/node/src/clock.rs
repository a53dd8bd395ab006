//! The date, and whether it can be trusted: routers boot in 1970.

use wire::{Date, Instant};

/// Combines the driver's monotonic clock with the date.
#[derive(Debug)]
pub struct Clock {
    set: Option<(Instant, Date)>,
    /// The date cannot be earlier than this: the build date, or that of the newest record seen.
    floor: Date,
}

impl Clock {
    pub fn new(built: Date) -> Self {
        Self { set: None, floor: built }
    }

    /// The driver tells the date.
    pub fn set(&mut self, now: Instant, date: Date) {
        self.set = Some((now, date));
    }

    /// The date by this clock, right or wrong. Differences are right unless it was set in between.
    pub fn date(&self, now: Instant) -> Date {
        let (at, date) = self.set.unwrap_or_default();
        date.plus((now - at).as_secs())
    }

    /// Whether the date can be trusted.
    pub fn right(&self, now: Instant) -> bool {
        self.set.is_some() && self.date(now) >= self.floor
    }

    /// A record was made at this date by a clock that was right.
    pub fn seen(&mut self, date: Date) {
        self.floor = self.floor.max(date);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_before_what_is_known_is_wrong() {
        let mut clock = Clock::new(Date::from_unix(1000));
        let now = Instant::from_nanos(0);
        assert!(!clock.right(now));
        clock.set(now, Date::from_unix(5));
        assert!(!clock.right(now));
        clock.set(now, Date::from_unix(1000));
        assert!(clock.right(now));
        clock.seen(Date::from_unix(1003));
        assert!(!clock.right(now));
        assert!(clock.right(now + Duration::from_secs(3)));
    }
}
