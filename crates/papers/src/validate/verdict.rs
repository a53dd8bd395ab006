//! How far a case is from its reference.

use sim::world::{Outcome, Stat};

/// A reference is uncertain within so many standard errors of its mean.
const STANDARD_ERRORS: f64 = 2.0;
/// What is known to be off may be so much more or less than that.
const KNOWN_WITHIN: f64 = 0.05;

/// What a case gives, and what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, with its unit.
    pub name: &'static str,
    /// What it should be; `None` if nobody says.
    pub reference: Option<Reference>,
    /// By which share it may be off; `None`: it is only told.
    pub allowed: Option<f64>,
    /// The ratio to its reference that it is known to have where that is farther off.
    pub known: Option<f64>,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Its mean, or what a formula says.
    pub mean: f64,
    /// Its standard deviation over so many runs; `None` of a formula.
    pub spread: Option<(f64, f64)>,
}

/// Whether a figure is near enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody demands anything.
    Uncompared,
    /// It is.
    Passed,
    /// It is farther off than allowed, but so few runs with such a spread leave open where the reference
    /// lies: it is within two standard errors.
    Open,
    /// It is farther off than allowed, and as much as it is known to be, for a reason that
    /// docs/simulator.md tells.
    Known,
    /// It is not.
    Failed,
}

/// A figure over seeds, beside its reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What it should be.
    pub figure: Figure,
    /// What it is.
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
    /// Over runs.
    pub fn of(figure: &Figure, values: impl Iterator<Item = f64> + Clone) -> Self {
        Self { figure: figure.clone(), ours: Stat::of(values) }
    }

    /// Ours over the reference.
    pub fn ratio(&self) -> Option<f64> {
        let reference = self.figure.reference?.mean;
        (reference != 0.0).then(|| self.ours.mean / reference)
    }

    fn is_as_known(&self) -> bool {
        let ratios = self.ratio().zip(self.figure.known);
        ratios.is_some_and(|(ratio, known)| (ratio - known).abs() <= KNOWN_WITHIN)
    }

    /// Whether it is near enough.
    pub fn verdict(&self) -> Verdict {
        let (Some(reference), Some(allowed)) = (self.figure.reference, self.figure.allowed) else {
            return Verdict::Uncompared;
        };
        let off = (self.ours.mean - reference.mean).abs();
        let (sd, runs) = reference.spread.unwrap_or((0.0, 1.0));
        // What is no number is not near.
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
    /// In a word; nothing if there is nothing to say.
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
