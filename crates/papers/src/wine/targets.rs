//! The figures that the thesis prints.

use crate::experiment::Expectation;
use crate::experiment::targets::find;

const FIGURES: &str = include_str!("../../data/targets/wine.csv");

/// One figure, by source, topology, workload, scheme and metric; `None` if it is not printed.
pub(super) fn figure(row: [&str; 5]) -> Option<f64> {
    find(FIGURES, row)
}

/// The expectation of a figure.
pub(super) fn expected(row: [&str; 5]) -> Expectation {
    figure(row).map_or(Expectation::Nothing, Expectation::Figure)
}

/// The expectation of WINE's figure over the plain one.
pub(super) fn ratio([source, topology, workload, metric]: [&str; 4]) -> Expectation {
    let of = |scheme| figure([source, topology, workload, scheme, metric]);
    let ratio = of("wine").zip(of("basic")).map(|(wine, basic)| wine / basic);
    ratio.map_or(Expectation::Nothing, Expectation::Ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_what_they_are_of() {
        let dropped = |flows, scheme| figure(["table5.1", "chain8", flows, scheme, "dropped"]);
        assert_eq!(dropped("ftp-1", "basic"), Some(31.0));
        assert_eq!(dropped("ftp-8", "wine"), Some(4.0));
        assert_eq!(dropped("ftp-9", "wine"), None);
        let ratio = ratio(["section5.1", "chain8", "cbr-2.66Mbps", "delay_variation_mean"]);
        assert_eq!(ratio, Expectation::Ratio(0.03));
    }
}
