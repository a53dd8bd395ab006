//! The delay variation of a flow.

use std::time::Duration;

use wire::Instant;

use super::times::Times;

/// The delay variation of a flow: |(t1 - t2) - (t2 - t3)|, where t1, t2 and t3 are the arrival times of three
/// consecutive packets (WINE, section 5.1).
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    last: Option<Instant>,
    gap: Option<Duration>,
    variations: Times,
}

impl Arrivals {
    /// A packet has arrived.
    pub fn add(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else { return };
        let gap = now - last;
        if let Some(before) = self.gap.replace(gap) {
            self.variations.record(gap.abs_diff(before));
        }
    }

    /// All variations.
    pub fn variations(&self) -> &Times {
        &self.variations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_how_gaps_differ() {
        let mut arrivals = Arrivals::default();
        for (ms, expected) in
            [(10, (0, 0)), (20, (0, 0)), (30, (0, 1)), (45, (5, 2)), (50, (15, 3))]
        {
            arrivals.add(Instant::from_nanos(ms * 1_000_000));
            let variations = arrivals.variations();
            let sum = Duration::from_millis(expected.0);
            assert_eq!((variations.sum(), variations.count()), (sum, expected.1));
        }
    }
}
