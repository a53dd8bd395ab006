//! Means over runs, and their confidence intervals.

use report::Mean;

/// A mean and its confidence intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// `None` for a single run, which has no interval.
    pub sure: Option<Intervals>,
    /// Number of runs.
    pub runs: usize,
}

/// Confidence intervals of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervals {
    /// The 95 % interval.
    pub wide: [f64; 2],
    /// The 90 % interval: two one-sided tests at 5 %.
    pub narrow: [f64; 2],
}

impl Estimate {
    /// The estimate from independent values, by Student's t.
    pub fn of(values: &[f64]) -> Self {
        let runs = values.len();
        let mean = values.iter().sum::<f64>() / runs.max(1) as f64;
        let error = error(values.iter().map(|it| it - mean), runs);
        Self { mean, sure: error.map(|it| Intervals::around(mean, it, runs - 1)), runs }
    }

    /// The ratio of two means over the same seeds in virtual time. Runs with the same seed share much of
    /// their randomness, so the interval is that of a ratio estimator, from the runs' differences.
    pub fn ratio(over: &[f64], under: &[f64]) -> Self {
        let runs = over.len().min(under.len());
        let mean = |values: &[f64]| values[..runs].iter().sum::<f64>() / runs.max(1) as f64;
        let (above, below) = (mean(over), mean(under));
        let ratio = above / below;
        let rests = over.iter().zip(under).map(|(above, below)| above - ratio * below);
        let error = error(rests, runs).map(|it| it / below);
        Self { mean: ratio, sure: error.map(|it| Intervals::around(ratio, it, runs - 1)), runs }
    }

    /// The 95 % interval.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.sure.map(|it| it.wide)
    }
}

impl Intervals {
    fn around(mean: f64, error: f64, freedom: usize) -> Self {
        let [wide, narrow] = student(freedom).map(|it| [mean - it * error, mean + it * error]);
        Self { wide, narrow }
    }
}

impl From<Estimate> for Mean {
    fn from(estimate: Estimate) -> Self {
        Self { mean: estimate.mean, interval: estimate.interval() }
    }
}

/// The standard error of a mean, from the residuals.
fn error(rests: impl Iterator<Item = f64>, runs: usize) -> Option<f64> {
    let freedom = runs.checked_sub(1).filter(|it| *it > 0)?;
    let variance = rests.map(|it| it * it).sum::<f64>() / freedom as f64;
    Some((variance / runs as f64).sqrt())
}

/// The 97.5 % and 95 % quantiles of Student's t from a table. Between its rows the larger value is used.
fn student(freedom: usize) -> [f64; 2] {
    const FIRST: [[f64; 2]; 30] = [
        [12.706, 6.314],
        [4.303, 2.920],
        [3.182, 2.353],
        [2.776, 2.132],
        [2.571, 2.015],
        [2.447, 1.943],
        [2.365, 1.895],
        [2.306, 1.860],
        [2.262, 1.833],
        [2.228, 1.812],
        [2.201, 1.796],
        [2.179, 1.782],
        [2.160, 1.771],
        [2.145, 1.761],
        [2.131, 1.753],
        [2.120, 1.746],
        [2.110, 1.740],
        [2.101, 1.734],
        [2.093, 1.729],
        [2.086, 1.725],
        [2.080, 1.721],
        [2.074, 1.717],
        [2.069, 1.714],
        [2.064, 1.711],
        [2.060, 1.708],
        [2.056, 1.706],
        [2.052, 1.703],
        [2.048, 1.701],
        [2.045, 1.699],
        [2.042, 1.697],
    ];
    match freedom {
        1..=30 => FIRST[freedom - 1],
        31..=39 => [2.042, 1.697],
        40..=59 => [2.021, 1.684],
        60..=119 => [2.000, 1.671],
        _ => [1.980, 1.658],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the deviation of 1, 2, 3 is 1, and t(2) = 4.303.
    #[test]
    fn an_interval_is_students() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        assert_eq!((estimate.mean, estimate.runs), (2.0, 3));
        let Intervals { wide, narrow } = estimate.sure.unwrap();
        assert!((wide[1] - 2.0 - 4.303 / 3_f64.sqrt()).abs() < 1e-12);
        assert!((2.0 - narrow[0] - 2.920 / 3_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[5.0]), Estimate { mean: 5.0, sure: None, runs: 1 });
        assert_eq!(Estimate::of(&[5.0]).interval(), None);
    }

    #[test]
    fn what_seeds_have_in_common_does_not_widen_a_ratio() {
        let ratio = Estimate::ratio(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]);
        assert_eq!((ratio.mean, ratio.interval()), (2.0, Some([2.0, 2.0])));
        // By hand: the deviation of the rests -1 and 1 is sqrt(2), and t(1) = 12.706. A ratio has no unit.
        for unit in [1.0, 4.0] {
            let ratio = Estimate::ratio(&[unit, 3.0 * unit], &[unit, unit]);
            assert_eq!(ratio.mean, 2.0);
            assert!((ratio.interval().unwrap()[1] - 14.706).abs() < 1e-9);
        }
    }

    /// Student's table has rows for 30, 40, 60 and 120.
    #[test]
    fn between_two_rows_of_the_table_the_wider_one_counts() {
        for (freedom, quantiles) in [
            (30, [2.042, 1.697]),
            (39, [2.042, 1.697]),
            (40, [2.021, 1.684]),
            (59, [2.021, 1.684]),
            (60, [2.000, 1.671]),
            (119, [2.000, 1.671]),
            (120, [1.980, 1.658]),
        ] {
            assert_eq!(student(freedom), quantiles, "{freedom}");
        }
    }

    #[test]
    fn quantiles_fall_with_freedom() {
        let falls = |it: usize, side: usize| student(it)[side] >= student(it + 1)[side];
        assert!((1..200).all(|it| falls(it, 0) && falls(it, 1) && student(it)[0] > student(it)[1]));
    }
}
