//! Whether a case is near enough to its reference.

use sim::world::{Outcome, Stat};

/// A reference's mean is uncertain by this many standard errors.
const STANDARD_ERRORS: f64 = 2.0;
/// A ratio that is known to be off may differ from its known value by this much.
const KNOWN_WITHIN: f64 = 0.05;

/// One figure of a case, and its reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, with its unit.
    pub name: &'static str,
    /// What it should be; `None` if there is no reference.
    pub reference: Option<Reference>,
    /// Largest relative error; `None` if the figure is only shown.
    pub allowed: Option<f64>,
    /// Its known ratio to the reference, if that is outside the allowed error.
    pub known: Option<f64>,
}

/// The reference of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Its mean, or the value of a formula.
    pub mean: f64,
    /// Its standard deviation, and the number of runs; `None` for a formula.
    pub spread: Option<(f64, f64)>,
}

/// Whether a figure is near enough to its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no reference, or no allowed error.
    Uncompared,
    /// It is near enough.
    Passed,
    /// The error is larger than allowed, but within two standard errors of a reference with few runs, so the
    /// result is open.
    Open,
    /// The error is larger than allowed, and as large as it is known to be, for a reason that
    /// docs/simulator.md gives.
    Known,
    /// It is not near enough.
    Failed,
}

/// A figure over seeds, beside its reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The figure and its reference.
    pub figure: Figure,
    /// Our value over seeds.
    pub ours: Stat,
}

impl Figure {
    /// Its value in a run.
    pub(super) fn of(&self, outcome: &Outcome) -> f64 {
        if self.name == SHARE {
            let first = outcome.flow_kbps.first().copied().unwrap_or(0.0);
            return first / outcome.goodput_kbps;
        }
        let known = outcome.figures();
        known.iter().find(|(name, _)| *name == self.name).map_or(f64::NAN, |(_, value)| *value)
    }
}

/// The first sender's share of the goodput.
pub(super) const SHARE: &str = "share_of_first";

impl Checked {
    /// Checks a figure's values over runs.
    pub fn of(figure: &Figure, values: impl Iterator<Item = f64> + Clone) -> Self {
        Self { figure: figure.clone(), ours: Stat::of(values) }
    }

    /// Our mean over the reference's.
    pub fn ratio(&self) -> Option<f64> {
        let reference = self.figure.reference?.mean;
        (reference != 0.0).then(|| self.ours.mean / reference)
    }

    fn is_as_known(&self) -> bool {
        let ratios = self.ratio().zip(self.figure.known);
        ratios.is_some_and(|(ratio, known)| (ratio - known).abs() <= KNOWN_WITHIN)
    }

    /// Whether it is near enough to its reference.
    pub fn verdict(&self) -> Verdict {
        let (Some(reference), Some(allowed)) = (self.figure.reference, self.figure.allowed) else {
            return Verdict::Uncompared;
        };
        let off = (self.ours.mean - reference.mean).abs();
        let (sd, runs) = reference.spread.unwrap_or((0.0, 1.0));
        // NaN is not near.
        if off <= allowed * reference.mean {
            Verdict::Passed
        } else if off <= STANDARD_ERRORS * sd / runs.sqrt() {
            Verdict::Open
        } else if self.is_as_known() {
            Verdict::Known
        } else {
            Verdict::Failed
        }
    }
}

impl Verdict {
    /// The verdict's text; empty without a comparison.
    pub fn word(self) -> &'static str {
        match self {
            Self::Uncompared => "",
            Self::Passed => "ok",
            Self::Open => "open",
            Self::Known => "known",
            Self::Failed => "FAILED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ours: f64, mean: f64, spread: Option<(f64, f64)>) -> Verdict {
        let reference = Some(Reference { mean, spread });
        let known = Some(0.5);
        let figure = Figure { name: "goodput_kbps", reference, allowed: Some(0.1), known };
        Checked::of(&figure, [ours].into_iter()).verdict()
    }

    #[test]
    fn what_is_off_by_more_than_allowed_fails() {
        assert_eq!(verdict(109.0, 100.0, None), Verdict::Passed);
        assert_eq!(verdict(91.0, 100.0, Some((1.0, 3.0))), Verdict::Passed);
        assert_eq!(verdict(112.0, 100.0, Some((3.0, 3.0))), Verdict::Failed);
        assert_eq!(verdict(47.0, 100.0, Some((3.0, 3.0))), Verdict::Known);
        assert_eq!(verdict(44.0, 100.0, Some((3.0, 3.0))), Verdict::Failed);
        assert_eq!(verdict(f64::NAN, 100.0, Some((90.0, 3.0))), Verdict::Failed);
    }

    #[test]
    fn a_reference_that_is_not_sure_itself_leaves_it_open() {
        // Two standard errors: 2 * 30 / sqrt(4) = 30.
        assert_eq!(verdict(129.0, 100.0, Some((30.0, 4.0))), Verdict::Open);
        assert_eq!(verdict(131.0, 100.0, Some((30.0, 4.0))), Verdict::Failed);
    }
}
