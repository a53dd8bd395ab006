//! What several runs say together: medians, distributions, schemes. Only finite values count.

use std::collections::BTreeMap;

use crate::result::{RunResult, Transfer};

/// The runs of one scheme: they differ by their seeds.
pub(super) struct Scheme<'a> {
    pub(super) name: &'a str,
    pub(super) runs: Vec<&'a RunResult>,
}

impl<'a> Scheme<'a> {
    /// All transfers of all runs.
    pub(super) fn transfers(&self) -> impl Iterator<Item = &'a Transfer> {
        self.runs.iter().flat_map(|run| &run.transfers)
    }

    /// The throughputs of all transfers, ascending, in kbit/s.
    pub(super) fn throughputs(&self) -> Vec<f64> {
        sorted(self.transfers().map(|transfer| transfer.kbps))
    }

    /// The median of what each run has of something.
    pub(super) fn median_of(&self, what: impl Fn(&RunResult) -> f64) -> Option<f64> {
        median(self.runs.iter().map(|run| what(run)))
    }

    /// The median throughput of each client, by name, in kbit/s.
    pub(super) fn receivers(&self) -> BTreeMap<&'a str, f64> {
        let mut by_client = BTreeMap::<_, Vec<f64>>::new();
        for transfer in self.transfers() {
            by_client.entry(transfer.client.as_str()).or_default().push(transfer.kbps);
        }
        let medians = by_client.into_iter().map(|(client, values)| (client, median(values)));
        medians.filter_map(|(client, value)| Some((client, value?))).collect()
    }
}

/// The schemes in the order in which they first appear.
pub(super) fn by_scheme(results: &[RunResult]) -> Vec<Scheme<'_>> {
    let mut schemes = Vec::<Scheme<'_>>::new();
    for run in results {
        match schemes.iter_mut().find(|scheme| scheme.name == run.scheme) {
            Some(scheme) => scheme.runs.push(run),
            None => schemes.push(Scheme { name: &run.scheme, runs: vec![run] }),
        }
    }
    schemes
}

/// The finite values, ascending.
pub(super) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = sorted(values);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = values[values.len() / 2 - 1];
    Some(lower + (upper - lower) / 2.0)
}

/// The steps of the empirical distribution of ascending values: each value that occurs, with the
/// share of all that are not above it.
pub(super) fn cdf(sorted: &[f64]) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / sorted.len() as f64;
    let last_of_equals = |at: usize| sorted.get(at + 1) != Some(&sorted[at]);
    let ends = (0..sorted.len()).filter(|&at| last_of_equals(at));
    ends.map(|at| (sorted[at], share(at + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{run, transfer};

    #[test]
    fn medians_by_hand() {
        assert_eq!(median([]), None);
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([9.0, 1.0]), Some(5.0));
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 10.0, 2.0]), Some(3.0));
        assert_eq!(median([f64::NAN, 4.0, f64::INFINITY]), Some(4.0));
        assert_eq!(median([f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn distribution_by_hand() {
        assert_eq!(cdf(&[]), []);
        assert_eq!(cdf(&[5.0]), [(5.0, 1.0)]);
        assert_eq!(cdf(&[1.0, 2.0, 2.0, 8.0]), [(1.0, 0.25), (2.0, 0.75), (8.0, 1.0)]);
        assert_eq!(cdf(&[3.0, 3.0, 3.0]), [(3.0, 1.0)]);
    }

    #[test]
    fn seeds_of_a_scheme_are_pooled() {
        let runs = [
            run("ditto", 1, vec![transfer("a", 10.0), transfer("b", 40.0)]),
            run("default", 1, vec![transfer("a", 5.0)]),
            run("ditto", 2, vec![transfer("a", 30.0)]),
        ];
        let schemes = by_scheme(&runs);
        let names: Vec<_> = schemes.iter().map(|scheme| scheme.name).collect();
        assert_eq!(names, ["ditto", "default"]);
        assert_eq!(schemes[0].throughputs(), [10.0, 30.0, 40.0]);
        assert_eq!(schemes[0].receivers(), BTreeMap::from([("a", 20.0), ("b", 40.0)]));
        assert_eq!(schemes[0].median_of(|run| run.seed as f64), Some(1.5));
    }
}
