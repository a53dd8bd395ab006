//! The date, and whether it can be believed: routers boot in 1970.

use wire::{Date, Instant};

/// Joins the driver's monotonic clock to the world's date.
#[derive(Debug)]
pub struct Clock {
    set: Option<(Instant, Date)>,
    /// Nothing we know of can be later than now: the build date, or the newest record seen.
    floor: Date,
}

impl Clock {
    pub fn new(built: Date) -> Self {
        Self { set: None, floor: built }
    }

    /// The driver says what date it is.
    pub fn set(&mut self, now: Instant, date: Date) {
        self.set = Some((now, date));
    }

    /// The date as the clock has it, right or wrong; differences are right unless it was set.
    pub fn date(&self, now: Instant) -> Date {
        let (at, date) = self.set.unwrap_or_default();
        date.plus((now - at).as_secs())
    }

    /// Whether the date can be believed.
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
