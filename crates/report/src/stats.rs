//! What pictures need of many values. Only finite ones count.

/// The finite values, ascending.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle of ascending values, or the mean of the two middle ones.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    Some(lower + (upper - lower) / 2.0)
}

/// The steps of the empirical distribution of ascending values: each value that occurs, with the
/// share of all that are not above it.
pub(crate) fn cdf(sorted: &[f64]) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / sorted.len() as f64;
    let last_of_equals = |at: usize| sorted.get(at + 1) != Some(&sorted[at]);
    let ends = (0..sorted.len()).filter(|&at| last_of_equals(at));
    ends.map(|at| (sorted[at], share(at + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_of_finite_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&sorted([9.0, f64::NAN, 1.0])), Some(5.0));
        assert_eq!(median(&sorted([3.0, 1.0, f64::INFINITY, 2.0])), Some(2.0));
    }

    #[test]
    fn distribution_by_hand() {
        assert_eq!(cdf(&[]), []);
        assert_eq!(cdf(&[5.0]), [(5.0, 1.0)]);
        assert_eq!(cdf(&[1.0, 2.0, 2.0, 8.0]), [(1.0, 0.25), (2.0, 0.75), (8.0, 1.0)]);
        assert_eq!(cdf(&[3.0, 3.0, 3.0]), [(3.0, 1.0)]);
    }
}
