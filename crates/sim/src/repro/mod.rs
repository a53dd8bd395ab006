//! Experiments of the papers, run again: ours beside the paper's.
//!
//! *What this is:* [`ALL`], the experiments by name. Each is a list of [`Job`]s, which may run in any order
//! and on any core, and says what came of them: [`Findings`], with pictures and a verdict for each row of
//! the paper. *Who calls it:* `hearsay-lab repro`. *What it never does:* touch files, clocks or threads, or
//! change a parameter for one scheme alone. *Where to start:* `per_hop.rs` (figures 4 to 6 of MeshCache),
//! `table2.rs`; then [`Experiment::tell`].

mod ditto;
mod estimate;
mod fig4;
mod fig5;
mod fig6;
mod findings;
mod lru;
mod per_hop;
mod samples;
mod table2;
mod targets;

pub use estimate::Estimate;
pub use findings::{Comparison, Expectation, Findings, Parameter, Picture, Verdict};
pub use samples::{Key, Row, Samples};

use crate::report;

/// All that can be run again, in the order in which they are listed.
pub static ALL: [Experiment; 8] = [
    fig4::FIGURE,
    fig5::FIGURE,
    fig6::FIGURE,
    table2::TABLE,
    ditto::PLACES,
    ditto::CALIBRATION,
    ditto::ALL,
    ditto::ELSEWHERE,
];

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that the paper shows.
    Full,
    /// A few points: for tests.
    Quick,
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
    columns: &'static [&'static str],
    /// Runs of each point: in full, and of a few points.
    seeds: [u64; 2],
    plan: fn(Extent) -> Vec<Point>,
    tell: fn(&Samples) -> Findings,
}

/// Something that is run with several seeds.
struct Point {
    key: Key,
    run: Run,
}

/// Gives a row for each thing that was looked at.
type Run = Box<dyn Fn(u64) -> Result<Vec<Vec<f64>>, String> + Send + Sync>;

impl Point {
    /// Of runs that give one row.
    fn single(
        key: Key,
        run: impl Fn(u64) -> Result<Vec<f64>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { key, run: Box::new(move |seed| Ok(vec![run(seed)?])) }
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
    /// The experiment of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|it| it.name == name)
    }

    /// What is to be run, with `seeds` runs of each point; without, as many as it is worth.
    pub fn plan(&self, extent: Extent, seeds: Option<u64>) -> Plan {
        let usual = self.seeds[usize::from(extent == Extent::Quick)];
        Plan { points: (self.plan)(extent), seeds: seeds.unwrap_or(usual) }
    }

    /// What came of the runs, which may be in any order; the rows of each in theirs.
    pub fn tell(&self, mut rows: Vec<Row>) -> Told {
        rows.sort_by(|a, b| a.key.order(&b.key).then(a.seed.cmp(&b.seed)));
        let samples = Samples::new(self.columns, rows);
        let findings = (self.tell)(&samples);
        Told {
            runs_csv: samples.csv(),
            rows_csv: findings.csv(),
            html: report::reproduction(self, &samples, &findings),
            findings,
        }
    }
}

/// What there is to tell of an experiment.
#[derive(Debug)]
pub struct Told {
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
    /// Runs it; gives its rows, in their order.
    ///
    /// # Errors
    /// A sentence on why it could not be run.
    pub fn run(&self) -> Result<Vec<Row>, String> {
        let rows = (self.point.run)(self.seed)?.into_iter();
        let row = |figures| Row { key: self.point.key.clone(), seed: self.seed, figures };
        Ok(rows.map(row).collect())
    }
}
