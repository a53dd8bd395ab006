//! What experiments of all papers have in common.
//!
//! *What this is:* an [`Experiment`] is a list of [`Job`]s, which may run in any order and on any core, and says
//! what came of them: [`Findings`], with pictures and a verdict for each row of the paper. *Who calls it:*
//! the papers' folders, which make experiments, and `hearsay-lab repro`, which runs them. *What it never
//! does:* touch files, clocks or threads. *Where to start:* [`Experiment::summarise`].

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
    /// All that the paper shows.
    Full,
    /// A few points: for tests.
    Quick,
}

/// Which time went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The simulator's.
    Virtual,
    /// That of real daemons on an emulated radio.
    Real,
}

/// One figure or table of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// On the command line, and of its files.
    pub name: &'static str,
    /// What it is called there.
    pub title: &'static str,
    /// In a sentence.
    pub about: &'static str,
    /// Of each run, by place.
    pub(crate) columns: &'static [&'static str],
    /// Runs of each point.
    pub(crate) runs: Runs,
    /// What a short run is worth.
    pub(crate) short: Short,
    pub(crate) plan: fn(Extent) -> Vec<Point>,
    pub(crate) summarise: fn(&Samples) -> Findings,
}

/// How many runs of each point there are. The numbers stand here before the first is made; a page whose runs are
/// of another number shows both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub simulated: u64,
    /// With real daemons; of what they cannot run, none.
    pub real: u64,
    /// Of a few points.
    pub quick: u64,
}

/// What [`Extent::Quick`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// Some of the paper's points, as they are.
    SameSize,
    /// Something smaller. The paper's figures say nothing of it.
    Smaller,
}

/// Something that is run with several seeds.
pub(crate) struct Point {
    key: Key,
    run: Run,
    /// What a seed's run takes place in, where no trial says so.
    setting: Option<points::MakeSetting>,
}

/// A row for each thing that was looked at.
pub(crate) type Rows = Vec<Vec<f64>>;

/// How rows are come by.
enum Run {
    /// Of a seed, in virtual time alone.
    Simulated(Box<dyn Fn(u64) -> Result<Rows, String> + Send + Sync>),
    /// From the outcome of a trial, whoever makes it.
    Tried(Box<dyn Fn(u64) -> Result<Trial, String> + Send + Sync>, fn(&Scenario, &Outcome) -> Rows),
}

impl Point {
    pub(crate) fn simulated(
        key: Key,
        run: impl Fn(u64) -> Result<Rows, String> + Send + Sync + 'static,
    ) -> Self {
        Self { key, run: Run::Simulated(Box::new(run)), setting: None }
    }

    /// Of runs that give one row.
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
    /// What is to be run, with `seeds` runs of each point; without, as many as it is worth.
    pub fn plan(&self, extent: Extent, clock: Clock, seeds: Option<u64>) -> Plan {
        let seeds = seeds.unwrap_or_else(|| self.usual(extent, clock));
        Plan { points: (self.plan)(extent), seeds }
    }

    /// How many runs of each point were decided on.
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

    /// What came of the runs, which may be in any order; the rows of each in theirs.
    pub fn summarise(&self, mut rows: Vec<Row>, extent: Extent, clock: Clock) -> Summary {
        rows.sort_by(|a, b| a.key.order(&b.key).then(a.seed.cmp(&b.seed)));
        let samples = Samples::new(self.columns, rows, clock);
        let mut findings = (self.summarise)(&samples);
        // Of what was not run there is nothing to tell.
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

/// What there is to tell of an experiment.
#[derive(Debug)]
pub struct Summary {
    /// Each run's figures.
    pub runs_csv: String,
    /// Ours beside the paper's.
    pub rows_csv: String,
    /// Both with pictures, for people.
    pub html: String,
    /// What the page is made of.
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
    /// Runs it in virtual time; gives its rows, in their order.
    ///
    /// # Errors
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

    /// What real daemons would have to do for it; `None` if it is of the simulator alone.
    pub fn trial(&self) -> Option<Result<Trial, String>> {
        match &self.point.run {
            Run::Simulated(_) => None,
            Run::Tried(trial, _) => Some(trial(self.seed)),
        }
    }

    /// The rows of a trial that somebody else has made.
    ///
    /// # Errors
    /// A sentence on what is wrong with its scenario.
    pub fn rows_of(&self, trial: &Trial, outcome: &Outcome) -> Result<Vec<Row>, String> {
        match &self.point.run {
            Run::Simulated(_) => Err(format!("{} is of the simulator alone", self.name())),
            Run::Tried(_, rows) => Ok(self.rows(rows(&trial.scenario()?, outcome))),
        }
    }

    /// Its name among all of the experiment, for files: panel, series, place on the axis, seed.
    pub fn name(&self) -> String {
        let Key { panel, series, x, .. } = &self.point.key;
        format!("{panel}.{series}.{x}.{}", self.seed).replace(' ', "-")
    }

    /// What it is part of: a panel's series.
    pub fn curve(&self) -> (&'static str, &'static str) {
        (self.point.key.panel, self.point.key.series)
    }

    /// Which of several runs of a point it is, beginning with 1.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    fn rows(&self, rows: Rows) -> Vec<Row> {
        let row = |figures| Row { key: self.point.key.clone(), seed: self.seed, figures };
        rows.into_iter().map(row).collect()
    }
}
