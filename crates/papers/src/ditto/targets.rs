//! The figures that the paper prints.

use crate::experiment::targets::find;

const FIGURES: &str = include_str!("../../data/targets/ditto.csv");

/// One figure; `None` if the paper does not print it.
pub(super) fn figure(testbed: &str, scheme: &str, metric: &str) -> Option<f64> {
    let sections = ["section6.2", "section6.2.2", "section6.3", "section6.4.2"];
    sections.into_iter().find_map(|section| find(FIGURES, [section, testbed, scheme, metric]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_what_they_are_of() {
        let observers = |testbed| figure(testbed, "ditto", "observers_reconstructing_over_half");
        assert_eq!((observers("campus"), observers("emulab")), (Some(25.0), Some(50.0)));
    }
}
