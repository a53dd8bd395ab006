//! How late the medium acts: a histogram of fixed size.

use std::time::Duration;

/// Width of the fine bins, up to a millisecond.
const FINE: Duration = Duration::from_micros(1);
const FINE_STEPS: usize = 1_000;

/// Width of the coarse bins, from there on.
const COARSE: Duration = Duration::from_micros(100);
/// The last bin has no upper end.
const COARSE_STEPS: usize = 9_991;

/// Where the coarse bins begin, in units of coarse bins.
const FIRST_COARSE: usize = 10;

/// A histogram of delays, in bins of 1 µs up to 1 ms, then of 100 µs up to a second.
#[derive(Clone, Debug)]
pub struct Lateness {
    steps: Vec<u64>,
    count: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { steps: vec![0; FINE_STEPS + COARSE_STEPS], count: 0 }
    }
}

impl Lateness {
    /// Adds a delay.
    pub fn add(&mut self, late: Duration) {
        let fine = (late.as_nanos() / FINE.as_nanos()) as usize;
        let step = if fine < FINE_STEPS {
            fine
        } else {
            let coarse = (late.as_nanos() / COARSE.as_nanos()) as usize - FIRST_COARSE;
            FINE_STEPS + coarse.min(COARSE_STEPS - 1)
        };
        self.steps[step] += 1;
        self.count += 1;
    }

    /// The quantile for `part`, rounded up to a bin; zero without delays.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = (self.count as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (step, count) in self.steps.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return upper(step);
            }
        }
        Duration::ZERO
    }

    /// The delays added since `earlier`, a former state of this histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let steps = self.steps.iter().zip(&earlier.steps).map(|(now, then)| now - then).collect();
        Self { steps, count: self.count - earlier.count }
    }
}

fn upper(step: usize) -> Duration {
    if step < FINE_STEPS {
        FINE * (step as u32 + 1)
    } else {
        COARSE * ((step - FINE_STEPS + FIRST_COARSE) as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_rounded_up_to_a_step() {
        let mut late = Lateness::default();
        assert_eq!(late.quantile(0.99), Duration::ZERO);
        for micros in 0..100 {
            late.add(Duration::from_micros(micros));
        }
        assert_eq!(late.quantile(0.5), Duration::from_micros(50));
        assert_eq!(late.quantile(0.99), Duration::from_micros(99));
        let before = late.clone();
        late.add(Duration::from_millis(1));
        late.add(Duration::from_millis(3));
        late.add(Duration::from_secs(90));
        let since = late.since(&before);
        assert_eq!(since.quantile(0.1), Duration::from_micros(1_100));
        assert_eq!(since.quantile(0.6), Duration::from_micros(3_100));
        assert!(since.quantile(1.0) >= Duration::from_secs(1), "the last step has no upper end");
    }
}
