//! Quantiles of many durations in little memory: a histogram.
//!
//! *Who calls it:* clients, for each fetch, and the experiment, for the quantiles of all. *What it never
//! does:* grow with the number of durations.

use std::time::Duration;

/// Significant bits of a duration after the first: durations in one bin differ by less than 1 part in 128.
const BITS: u32 = 7;
/// Number of bins in each power of two.
const PER_OCTAVE: u64 = 1 << BITS;

/// A histogram of durations. Mean and count are exact, quantiles to half a bin, 0.4 %.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    count: u64,
    sum_nanos: u128,
    /// Counts by bin; as long as the longest duration needs, at most about 7400.
    bins: Vec<u32>,
}

impl Times {
    /// Adds a duration.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.sum_nanos += u128::from(nanos);
        let bin = self.bin(bin(nanos));
        *bin = bin.saturating_add(1);
    }

    /// Adds all durations of another histogram.
    pub fn add(&mut self, others: &Self) {
        self.count += others.count;
        self.sum_nanos += others.sum_nanos;
        for (place, count) in others.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bin = self.bin(place);
            *bin = bin.saturating_add(*count);
        }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sum_nanos).unwrap_or(u64::MAX))
    }

    /// Their mean in seconds; 0 if there are none.
    pub fn mean_s(&self) -> f64 {
        self.sum_nanos as f64 / 1e9 / self.count.max(1) as f64
    }

    /// The quantile for `share`, in seconds; 0 if there are none.
    pub fn quantile_s(&self, share: f64) -> f64 {
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (place, count) in self.bins.iter().enumerate() {
            below += u64::from(*count);
            if below >= wanted {
                return middle_nanos(place) / 1e9;
            }
        }
        0.0
    }

    fn bin(&mut self, place: usize) -> &mut u32 {
        if self.bins.len() <= place {
            self.bins.resize(place + 1, 0);
        }
        &mut self.bins[place]
    }
}

/// The bin of a duration. Short durations have bins of their own; each power of two has equally many bins.
fn bin(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(BITS + 1);
    (u64::from(shift) * PER_OCTAVE + (nanos >> shift)) as usize
}

fn middle_nanos(bin: usize) -> f64 {
    let bin = bin as u64;
    let shift = (bin / PER_OCTAVE).saturating_sub(1);
    let first = bin - shift * PER_OCTAVE;
    let width = (1_u64 << shift) as f64;
    first as f64 * width + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_of_any_times_are_within_half_a_percent(
            mut nanos in prop::collection::vec((0..40_u32).prop_flat_map(|bits| 0..1_u64 << bits), 1..300),
            share in 0.0..=1.0_f64,
        ) {
            let mut times = Times::default();
            nanos.iter().for_each(|it| times.record(Duration::from_nanos(*it)));
            nanos.sort_unstable();
            let place = ((share * nanos.len() as f64).ceil() as usize).max(1) - 1;
            let (exact, found) = (nanos[place] as f64, times.quantile_s(share) * 1e9);
            prop_assert!((found - exact).abs() <= exact * 0.004 + 1e-6, "{found} for {exact}");
            let sum: u64 = nanos.iter().sum();
            prop_assert_eq!(times.sum(), Duration::from_nanos(sum));
            prop_assert_eq!(times.count(), nanos.len() as u64);
        }
    }

    #[test]
    fn quantiles_are_right_to_less_than_half_a_percent() {
        let mut times = Times::default();
        assert_eq!((times.mean_s(), times.quantile_s(0.5)), (0.0, 0.0));
        (1..=1000).for_each(|ms| times.record(Duration::from_millis(ms)));
        assert_eq!(times.count(), 1000);
        assert!((times.mean_s() - 0.5005).abs() < 1e-12);
        for (share, expected) in [(0.0, 0.001), (0.5, 0.5), (0.95, 0.95), (1.0, 1.0)] {
            let ratio = times.quantile_s(share) / expected;
            assert!((ratio - 1.0).abs() < 0.004, "{share}: {ratio}");
        }
    }

    #[test]
    fn every_time_is_in_a_bin_beside_it() {
        let mut nanos = 0_u64;
        while nanos < u64::MAX / 2 {
            let middle = middle_nanos(bin(nanos));
            assert!((middle - nanos as f64).abs() <= nanos as f64 / 255.0, "{nanos}: {middle}");
            assert!(bin(nanos) <= bin(nanos + 1));
            nanos += nanos / 8 + 1;
        }
        assert!(bin(u64::MAX) < 7_500);
    }

    #[test]
    fn times_of_several_are_added() {
        let of = |seconds: &[u64]| {
            let mut times = Times::default();
            seconds.iter().for_each(|it| times.record(Duration::from_secs(*it)));
            times
        };
        let mut sum = of(&[1, 5]);
        sum.add(&of(&[3, 9]));
        assert_eq!(sum, of(&[1, 3, 5, 9]));
    }
}
