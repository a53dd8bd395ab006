//! The figures that the paper prints.

use crate::experiment::targets::find;

const FIGURES: &str = include_str!("../../data/targets/meshcache.csv");

/// One figure; `None` if the paper does not print it.
pub(super) fn figure(source: &str, scenario: &str, scheme: &str, metric: &str) -> Option<f64> {
    find(FIGURES, [source, scenario, scheme, metric])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_what_they_are_of() {
        let aat = |scenario, scheme| figure("table2", scenario, scheme, "aat");
        assert_eq!(aat("S1", "default"), Some(1382.8));
        assert_eq!(aat("S2", "ph-thcp"), Some(853.3));
        assert_eq!(aat("S4", "default"), None);
        assert_eq!(figure("section6.2", "S1", "thcp", "hit_rate_local"), Some(14.4));
    }
}
