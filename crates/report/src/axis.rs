//! Scales for throughputs: linear from zero, or logarithmic where the span is wide.

/// The scale is logarithmic if the largest value is this many times the smallest positive one, or more.
const WIDE_RATIO: f64 = 20.0;

/// The approximate number of ticks of a linear scale.
const TICKS: f64 = 5.0;

/// A logarithmic scale with more ticks than this keeps only powers of ten.
const LOG_TICKS_MAX: usize = 8;

/// A scale: it maps values to shares of a length.
#[derive(Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    pub(crate) log: bool,
    /// The values of the ticks, ascending, from one end of the scale to the other.
    pub(crate) ticks: Vec<f64>,
}

impl Axis {
    /// The scale for values in ascending order.
    pub(crate) fn over(sorted: &[f64]) -> Self {
        let high = sorted.last().copied().unwrap_or(0.0);
        match smallest_positive(sorted) {
            Some(low) if spans_wide(low, high) => Self::logarithmic(low, high),
            Some(_) => Self::linear(high),
            None => Self::linear(1.0),
        }
    }

    /// The linear scale from zero to a value or a little more.
    pub(crate) fn from_zero(high: f64) -> Self {
        Self::linear(if high > 0.0 { high } else { 1.0 })
    }

    fn linear(high: f64) -> Self {
        let step = round_up(high / TICKS);
        let count = (high / step - 1e-9).ceil().max(1.0) as usize;
        let ticks: Vec<_> = (0..=count).map(|at| at as f64 * step).collect();
        Self { low: 0.0, high: ticks[count], log: false, ticks }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let (low, high) = (round_down(low), round_up(high));
        let decades = exponent(low)..=exponent(high);
        let all = decades.clone().flat_map(|k| [1.0, 2.0, 5.0].map(|m| m * power_of_ten(k)));
        let within = |tick: &f64| (low * 0.999..=high * 1.001).contains(tick);
        let mut ticks: Vec<_> = all.filter(within).collect();
        if ticks.len() > LOG_TICKS_MAX {
            let thinning = (ticks.len() / 3).div_ceil(LOG_TICKS_MAX).max(1);
            ticks = decades.step_by(thinning).map(power_of_ten).filter(within).collect();
        }
        Self { low, high, log: true, ticks }
    }

    /// The place of a value, from 0 to 1. A value outside the scale is at the nearer end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        if self.log {
            let above_low = |v: f64| libm::log(v) - libm::log(self.low);
            above_low(value) / above_low(self.high)
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// Values from `low` to `high` at equal distances on the scale that would show them.
pub(crate) fn steps(low: f64, high: f64, count: usize) -> Vec<f64> {
    let share = |at: usize| at as f64 / count as f64;
    let between = |share: f64| match low > 0.0 && spans_wide(low, high) {
        true => libm::exp(libm::log(low) + (libm::log(high) - libm::log(low)) * share),
        false => low + (high - low) * share,
    };
    (0..=count).map(|at| between(share(at))).collect()
}

/// The largest number of the form 1, 2 or 5 times a power of ten that is not above a positive value.
pub(crate) fn round_down(value: f64) -> f64 {
    let unit = power_of_ten(exponent(value));
    let fits = |m: &f64| m * unit <= value * (1.0 + 1e-9);
    [5.0, 2.0].into_iter().find(fits).unwrap_or(1.0) * unit
}

/// The smallest number of the form 1, 2 or 5 times a power of ten that is not below a positive value.
fn round_up(value: f64) -> f64 {
    let unit = power_of_ten(exponent(value));
    let fits = |m: &f64| m * unit >= value * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * unit
}

fn spans_wide(low: f64, high: f64) -> bool {
    high / low > WIDE_RATIO
}

fn smallest_positive(sorted: &[f64]) -> Option<f64> {
    sorted.iter().copied().find(|&value| value >= f64::MIN_POSITIVE)
}

fn exponent(value: f64) -> i32 {
    let floor = libm::floor(libm::log10(value)) as i32;
    // Rounding can put the logarithm of a power of ten just below a whole number.
    if power_of_ten(floor + 1) <= value { floor + 1 } else { floor }
}

/// A power of ten, rounded as decimal literals are.
fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_by_hand() {
        assert_eq!(
            [1.0, 1.9, 2.0, 49.0, 1000.0, 0.07].map(round_down),
            [1., 1., 2., 20., 1e3, 0.05]
        );
        assert_eq!([1.0, 1.1, 2.1, 5.1, 1000.0, 0.07].map(round_up), [1., 2., 5., 10., 1e3, 0.1]);
    }

    #[test]
    fn narrow_spans_are_linear_from_zero() {
        let axis = Axis::over(&[200.0, 930.0]);
        assert!(!axis.log);
        assert_eq!(axis.ticks, [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(axis.share(500.0), 0.5);
    }

    #[test]
    fn wide_spans_are_logarithmic() {
        let axis = Axis::over(&[0.0, 12.0, 950.0]);
        assert!(axis.log);
        assert_eq!(axis.ticks, [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert!((axis.share(100.0) - 0.5).abs() < 1e-12);
        assert_eq!(axis.share(0.0), 0.0);
    }

    #[test]
    fn very_wide_spans_keep_few_ticks() {
        let axis = Axis::over(&[1e-9, 1e12]);
        assert!((4..=LOG_TICKS_MAX + 1).contains(&axis.ticks.len()), "{:?}", axis.ticks);
    }

    #[test]
    fn degenerate_values_still_have_a_scale() {
        for values in [&[][..], &[0.0], &[0.0, 0.0], &[7.0, 7.0], &[f64::MAX], &[f64::MIN_POSITIVE]]
        {
            let axis = Axis::over(values);
            assert!(axis.ticks.len() >= 2, "{values:?}");
            assert!((0.0..=1.0).contains(&axis.share(7.0)), "{values:?}");
        }
    }

    #[test]
    fn steps_follow_the_scale() {
        assert_eq!(steps(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let log = steps(1.0, 100.0, 2);
        assert!((log[1] - 10.0).abs() < 1e-9);
    }
}
