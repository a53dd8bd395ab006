//! The figures that the paper's text states. Its pictures carry no numbers.

use crate::experiment::targets::find;

const FIGURES: &str = include_str!("../../data/targets/inpcm.csv");

/// One figure, by source, topology, error rate and metric; `None` if it is not stated.
pub(super) fn figure(row: [&str; 4]) -> Option<f64> {
    find(FIGURES, row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_what_they_are_of() {
        let gain = |topology, metric| figure(["section5", topology, "5", metric]);
        assert_eq!(gain("grid4x4-4flows", "max_ack_gain_aggregate"), Some(53.0));
        assert_eq!(gain("random20-mobile", "max_ack_gain"), Some(17.0));
        assert_eq!(gain("chain6", "time_to_transfer_1Mb"), None, "words are not figures");
    }
}
