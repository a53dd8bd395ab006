//! Medians and distributions. Values that are not finite are left out.

/// The finite values, ascending.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle value, or the mean of the two middle ones.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = sorted(values);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = values[values.len() / 2 - 1];
    Some(lower + (upper - lower) / 2.0)
}

/// The empirical distribution of ascending values: each distinct value, with the share of values that are not above
/// it.
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
    fn medians_by_hand() {
        assert_eq!(median([]), None);
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([9.0, 1.0]), Some(5.0));
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 10.0, 2.0]), Some(3.0));
        assert_eq!(median([f64::NAN, 4.0, f64::INFINITY]), Some(4.0));
        assert_eq!(median([9.0, f64::NAN, 1.0]), Some(5.0));
        assert_eq!(median([3.0, 1.0, f64::INFINITY, 2.0]), Some(2.0));
        assert_eq!(median([f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn distribution_by_hand() {
        assert_eq!(cdf(&[]), []);
        assert_eq!(cdf(&[5.0]), [(5.0, 1.0)]);
        assert_eq!(cdf(&[1.0, 2.0, 2.0, 8.0]), [(1.0, 0.25), (2.0, 0.75), (8.0, 1.0)]);
        assert_eq!(cdf(&[3.0, 3.0, 3.0]), [(3.0, 1.0)]);
    }
}
