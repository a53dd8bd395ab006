//! What experiments of all papers share.
//!
//! *What this is:* an [`Experiment`] is a list of [`Job`]s, which may run in any order and on any core. Their
//! rows are summarised as [`Findings`], with pictures and a verdict for each row of the paper. *Who calls
//! it:* the papers' folders, which define experiments, and `hearsay-lab repro`, which runs them. *What it
//! never does:* touch files, clocks or threads. *Where to start:* [`Experiment::summarise`].

mod estimate;
mod findings;
mod page;
pub(crate) mod parameters;
mod points;
pub(crate) mod resample;
mod samples;
pub(crate) mod targets;
pub(crate) mod trial;

pub use crate::Standing;
pub use estimate::Estimate;
pub use findings::{Comparison, Expectation, Findings, Picture, Verdict};
pub use parameters::{Chosen, Parameter};
pub use points::Played;
pub use samples::{Key, Row, Samples};
pub use trial::{Outcome, Trial};

use sim::scenario::Scenario;

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything that the paper shows.
    Full,
    /// A few points, for tests.
    Quick,
}

/// The clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The simulator's virtual time.
    Virtual,
    /// Real time, with real daemons on an emulated radio.
    Real,
}

/// One figure or table of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line and in file names.
    pub name: &'static str,
    /// Its title in the paper.
    pub title: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The names of a row's figures, in order.
    pub(crate) columns: &'static [&'static str],
    /// Number of runs of each point.
    pub(crate) runs: Runs,
    /// What a quick run runs.
    pub(crate) short: Short,
    pub(crate) plan: fn(Extent) -> Vec<Point>,
    pub(crate) summarise: fn(&Samples) -> Findings,
}

/// Number of runs of each point, decided before the first run. A page with another number of runs shows both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub simulated: u64,
    /// With real daemons; 0 if they cannot run it.
    pub real: u64,
    /// In a quick run.
    pub quick: u64,
}

/// What [`Extent::Quick`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// Some of the paper's points, unchanged.
    SameSize,
    /// A smaller case, about which the paper's figures say nothing.
    Smaller,
}

/// One point of an experiment, which is run with several seeds.
pub(crate) struct Point {
    key: Key,
    run: Run,
    /// The setting of a seed's run, if no trial gives it.
    setting: Option<points::MakeSetting>,
}

/// One row for each thing that was measured.
pub(crate) type Rows = Vec<Vec<f64>>;

/// How a point's rows are made.
enum Run {
    /// By a function of the seed, in virtual time only.
    Simulated(Box<dyn Fn(u64) -> Result<Rows, String> + Send + Sync>),
    /// From the outcome of a trial, simulated or made with real daemons.
    Tried(Box<dyn Fn(u64) -> Result<Trial, String> + Send + Sync>, fn(&Scenario, &Outcome) -> Rows),
}

impl Point {
    pub(crate) fn simulated(
        key: Key,
        run: impl Fn(u64) -> Result<Rows, String> + Send + Sync + 'static,
    ) -> Self {
        Self { key, run: Run::Simulated(Box::new(run)), setting: None }
    }

    /// A point whose runs give one row each.
    pub(crate) fn single(
        key: Key,
        run: impl Fn(u64) -> Result<Vec<f64>, String> + Send + Sync + 'static,
    ) -> Self {
        Self::simulated(key, move |seed| Ok(vec![run(seed)?]))
    }

    pub(crate) fn tried(
        key: Key,
        trial: impl Fn(u64) -> Result<Trial, String> + Send + Sync + 'static,
        rows: fn(&Scenario, &Outcome) -> Rows,
    ) -> Self {
        Self { key, run: Run::Tried(Box::new(trial), rows), setting: None }
    }
}

/// One run.
pub struct Job<'a> {
    point: &'a Point,
    seed: u64,
}

/// The runs of an experiment.
pub struct Plan {
    points: Vec<Point>,
    seeds: u64,
}

impl Experiment {
    /// The plan with `seeds` runs of each point; without `seeds`, with the number that the experiment
    /// defines.
    pub fn plan(&self, extent: Extent, clock: Clock, seeds: Option<u64>) -> Plan {
        let seeds = seeds.unwrap_or_else(|| self.usual(extent, clock));
        Plan { points: (self.plan)(extent), seeds }
    }

    /// The number of runs of each point that the experiment defines.
    fn usual(&self, extent: Extent, clock: Clock) -> u64 {
        match (extent, clock) {
            (Extent::Quick, _) => self.runs.quick,
            (Extent::Full, Clock::Virtual) => self.runs.simulated,
            (Extent::Full, Clock::Real) => self.runs.real,
        }
    }

    /// Whether real daemons can make its runs too.
    pub fn is_for_daemons(&self) -> bool {
        self.plan(Extent::Quick, Clock::Virtual, Some(1))
            .jobs()
            .iter()
            .all(|it| it.trial().is_some())
    }

    /// The findings of runs. Runs may be in any order; the rows of each are in their own.
    pub fn summarise(&self, mut rows: Vec<Row>, extent: Extent, clock: Clock) -> Summary {
        rows.sort_by(|a, b| a.key.order(&b.key).then(a.seed.cmp(&b.seed)));
        let samples = Samples::new(self.columns, rows, clock);
        let mut findings = (self.summarise)(&samples);
        // Rows of points that were not run are left out.
        findings.rows.retain(|it| it.ours.runs > 0);
        if (extent, self.short) == (Extent::Quick, Short::Smaller) {
            findings.rows.iter_mut().for_each(|it| it.expected = Expectation::Nothing);
        }
        Summary {
            runs_csv: samples.csv(),
            rows_csv: findings.csv(),
            html: page::page(self, &samples, &findings, (extent, clock)),
            findings,
        }
    }
}

/// An experiment's results as files and findings.
#[derive(Debug)]
pub struct Summary {
    /// Each run's figures.
    pub runs_csv: String,
    /// Our figures beside the paper's.
    pub rows_csv: String,
    /// A page with both, and pictures.
    pub html: String,
    /// The findings that the page shows.
    pub findings: Findings,
}

impl Plan {
    /// Every run, once.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        let each = self.points.iter();
        each.flat_map(|point| (1..=self.seeds).map(move |seed| Job { point, seed })).collect()
    }
}

impl Job<'_> {
    /// Runs it in virtual time, and gives its rows in order.
    ///
    /// # Errors
    ///
    /// A sentence on why it could not be run.
    pub fn run(&self) -> Result<Vec<Row>, String> {
        match &self.point.run {
            Run::Simulated(run) => Ok(self.rows(run(self.seed)?)),
            Run::Tried(trial, rows) => {
                let trial = trial(self.seed)?;
                let scenario = trial.scenario()?;
                let Trial { scheme, seed, is_observed, .. } = trial;
                let outcome = trial::simulate(&scenario, scheme, seed, is_observed)?;
                Ok(self.rows(rows(&scenario, &outcome)))
            }
        }
    }

    /// The trial that real daemons can make instead; `None` if only the simulator can run this job.
    pub fn trial(&self) -> Option<Result<Trial, String>> {
        match &self.point.run {
            Run::Simulated(_) => None,
            Run::Tried(trial, _) => Some(trial(self.seed)),
        }
    }

    /// The rows of a trial that was made elsewhere.
    ///
    /// # Errors
    ///
    /// A sentence on what is wrong with its scenario.
    pub fn rows_of(&self, trial: &Trial, outcome: &Outcome) -> Result<Vec<Row>, String> {
        match &self.point.run {
            Run::Simulated(_) => Err(format!("{} is of the simulator alone", self.name())),
            Run::Tried(_, rows) => Ok(self.rows(rows(&trial.scenario()?, outcome))),
        }
    }

    /// Its name within the experiment, for files: panel, series, place on the axis, seed.
    pub fn name(&self) -> String {
        let Key { panel, series, x, .. } = &self.point.key;
        format!("{panel}.{series}.{x}.{}", self.seed).replace(' ', "-")
    }

    /// Its panel and series.
    pub fn curve(&self) -> (&'static str, &'static str) {
        (self.point.key.panel, self.point.key.series)
    }

    /// Its seed, counted from 1.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    fn rows(&self, rows: Rows) -> Vec<Row> {
        let row = |figures| Row { key: self.point.key.clone(), seed: self.seed, figures };
        rows.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests;
