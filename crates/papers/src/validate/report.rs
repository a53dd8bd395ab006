//! The report of all comparisons of the simulator with ns-3 and theory.

use super::{Case, Checked, Group, Verdict};

/// The cases, their figures, and the cost of the runs.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of runs of each case.
    pub seeds: u64,
    /// The cases, each with its figures; those of a group are adjacent.
    pub cases: Vec<(Case, Vec<Checked>)>,
    /// The cost of all runs.
    pub cost: Cost,
}

/// The cost of all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Virtual time, in seconds.
    pub simulated_seconds: f64,
    /// The number of the simulator's steps.
    pub events: u64,
    /// Wall-clock time, in seconds.
    pub wall_seconds: f64,
}

impl Report {
    /// All figures, each with its case.
    pub fn figures(&self) -> impl Iterator<Item = (&Case, &Checked)> {
        self.cases.iter().flat_map(|(case, figures)| figures.iter().map(move |it| (case, it)))
    }

    /// The number of figures with this verdict, whatever their standing.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.figures().filter(|(_, checked)| checked.verdict() == verdict).count()
    }

    /// The number of figures with this standing that have a verdict, and how many of them passed.
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

    /// The rules of reception in the cases of a group, each once.
    pub fn media(&self, group: Group) -> Vec<&str> {
        let of_group = self.cases.iter().filter(|(case, _)| case.group == group);
        let mut media: Vec<_> = of_group.map(|(case, _)| case.medium.as_str()).collect();
        media.sort_unstable();
        media.dedup();
        media
    }
}
