//! What was compared, all together.

use super::{Case, Checked, Group, Verdict};

/// What was compared.
#[derive(Clone, Debug)]
pub struct Report {
    /// So many runs of each case.
    pub seeds: u64,
    /// The cases, each with its figures; those of a group follow each other.
    pub cases: Vec<(Case, Vec<Checked>)>,
    /// What it took.
    pub cost: Cost,
}

/// What all runs together took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Virtual time.
    pub simulated_seconds: f64,
    /// Steps of the simulator.
    pub events: u64,
    /// Time on the wall.
    pub wall_seconds: f64,
}

impl Report {
    /// All figures, with their cases.
    pub fn figures(&self) -> impl Iterator<Item = (&Case, &Checked)> {
        self.cases.iter().flat_map(|(case, figures)| figures.iter().map(move |it| (case, it)))
    }

    /// How many figures are judged so, whatever they are evidence of.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.figures().filter(|(_, checked)| checked.verdict() == verdict).count()
    }

    /// Of the figures of one standing, how many are judged, and how many of these are near enough.
    pub fn near_enough(&self, standing: &str) -> [usize; 2] {
        let of = self.figures().filter(|(case, _)| case.group.standing.word() == standing);
        let judged: Vec<_> =
            of.map(|(_, it)| it.verdict()).filter(|it| *it != Verdict::Uncompared).collect();
        [judged.len(), judged.iter().filter(|it| **it == Verdict::Passed).count()]
    }

    /// The cases by group.
    pub fn groups(&self) -> impl Iterator<Item = (Group, &[(Case, Vec<Checked>)])> {
        let groups = self.cases.chunk_by(|(a, _), (b, _)| a.group == b.group);
        groups.map(|cases| (cases[0].0.group, cases))
    }

    /// How the medium receives in the cases of a group.
    pub fn media(&self, group: Group) -> Vec<&str> {
        let of_group = self.cases.iter().filter(|(case, _)| case.group == group);
        let mut media: Vec<_> = of_group.map(|(case, _)| case.medium.as_str()).collect();
        media.sort_unstable();
        media.dedup();
        media
    }
}
