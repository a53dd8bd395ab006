//! Means over seeds, and how sure they are.

use report::Mean;

/// A mean, and half of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The interval goes so far to both sides; `None` of a single run.
    pub half: Option<f64>,
    /// Of so many runs.
    pub runs: usize,
}

impl Estimate {
    /// Of values that are independent of each other.
    pub fn of(values: &[f64]) -> Self {
        let runs = values.len();
        let mean = values.iter().sum::<f64>() / runs.max(1) as f64;
        Self { mean, half: half(values.iter().map(|it| it - mean), runs), runs }
    }

    /// Of the ratio of two means over the same seeds. Runs of a seed have much of their chance in
    /// common, so the interval comes from their differences: that of a ratio estimator.
    pub fn ratio(over: &[f64], under: &[f64]) -> Self {
        let runs = over.len().min(under.len());
        let mean = |values: &[f64]| values[..runs].iter().sum::<f64>() / runs.max(1) as f64;
        let (above, below) = (mean(over), mean(under));
        let ratio = above / below;
        let rests = over.iter().zip(under).map(|(above, below)| above - ratio * below);
        let half = half(rests, runs).map(|it| it / below);
        Self { mean: ratio, half, runs }
    }

    /// The ends of the interval; the mean twice if there is none.
    pub fn interval(&self) -> [f64; 2] {
        Mean::from(*self).interval()
    }
}

impl From<Estimate> for Mean {
    fn from(Estimate { mean, half, .. }: Estimate) -> Self {
        Self { mean, half }
    }
}

/// Half of the interval of a mean, from the distances to it.
fn half(rests: impl Iterator<Item = f64>, runs: usize) -> Option<f64> {
    let freedom = runs.checked_sub(1).filter(|it| *it > 0)?;
    let variance = rests.map(|it| it * it).sum::<f64>() / freedom as f64;
    Some(student(freedom) * (variance / runs as f64).sqrt())
}

/// The 97.5 % quantile of Student's t, from the tables; between the rows the larger one.
fn student(freedom: usize) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        1..=30 => FIRST[freedom - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 1, 2, 3 the deviation is 1, and t(2) = 4.303.
    #[test]
    fn an_interval_is_students() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        assert_eq!((estimate.mean, estimate.runs), (2.0, 3));
        assert!((estimate.half.unwrap() - 4.303 / 3_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[5.0]), Estimate { mean: 5.0, half: None, runs: 1 });
        assert_eq!(Estimate::of(&[5.0]).interval(), [5.0, 5.0]);
    }

    #[test]
    fn what_seeds_have_in_common_does_not_widen_a_ratio() {
        let ratio = Estimate::ratio(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]);
        assert_eq!((ratio.mean, ratio.half), (2.0, Some(0.0)));
        let ratio = Estimate::ratio(&[1.0, 3.0], &[1.0, 1.0]);
        assert_eq!(ratio.mean, 2.0);
        assert!((ratio.half.unwrap() - 12.706).abs() < 1e-9);
    }

    #[test]
    fn quantiles_fall_with_freedom() {
        assert!((1..200).all(|it| student(it) >= student(it + 1)));
    }
}
