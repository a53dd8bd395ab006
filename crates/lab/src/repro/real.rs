//! Experiments with real daemons, in real time: each run is one of `hearsay-lab run`, and what came of it
//! is kept in a folder, so that hours of runs can be broken off and gone on with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use clap::Parser as _;
use sim::observers::{Made as Heard, Observers};
use sim::repro::{Job, Outcome, Row, Trial};
use sim::scenario::Scenario;
use wire::capture::records::Feeder;

use crate::cli::{Cli, Command, Repro};
use crate::failure::Failure;
use crate::jobs::Jobs;
use crate::outside;

/// How often a run is tried of which the machine made nothing that counts.
const TRIES: usize = 3;
/// How much of a capture is read at a time.
const PIECE: usize = 64 << 10;

/// What there is of an experiment.
pub struct Made {
    /// Of runs that are there for all points of their curve.
    pub rows: Vec<Row>,
    /// How many runs there should be, and are not.
    pub missing: usize,
}

/// Makes the runs that are not there yet, one seed after the other.
pub fn make(jobs: &[Job<'_>], folder: &Path, args: &Repro) -> Result<Made, Failure> {
    let refuse = |error| Failure::refused(format!("cannot write to {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(refuse)?;
    let mut jobs: Vec<_> = jobs.iter().collect();
    jobs.sort_by_key(|it| it.seed());
    let is_wanted =
        |job: &Job<'_>| args.only.as_ref().is_none_or(|text| job.name().contains(text.as_str()));
    let how = Jobs { what: "runs", at_a_time: Some(args.jobs.unwrap_or(1)), quiet: args.quiet };
    let rows = how.run(jobs.len(), |place| {
        let job = jobs[place];
        let trial = job.trial().expect("it was looked for").map_err(Failure::failed)?;
        let run = Run { trial: &trial, name: job.name(), folder };
        let outcome = if is_wanted(job) { run.outcome()? } else { run.kept()? };
        let rows = outcome.map(|it| job.tell(&trial, &it).map_err(Failure::failed));
        rows.transpose()
    })?;
    let missing = rows.iter().filter(|it| it.is_none()).count();
    let ran = jobs.iter().zip(rows);
    let ran = ran.map(|(job, rows)| Ran { curve: job.curve(), seed: job.seed(), rows }).collect();
    Ok(Made { rows: complete(ran), missing })
}

/// A run that is there, or is not.
struct Ran<T> {
    curve: (&'static str, &'static str),
    seed: u64,
    rows: Option<Vec<T>>,
}

/// Of each curve the seeds of which all runs are there, up to the first of which one is not: figures are means
/// over seeds, and ratios go by pairs of them.
fn complete<T>(all: Vec<Ran<T>>) -> Vec<T> {
    let mut broken = BTreeMap::new();
    for run in all.iter().filter(|it| it.rows.is_none()) {
        let first = broken.entry(run.curve).or_insert(run.seed);
        *first = run.seed.min(*first);
    }
    let counts = |run: &Ran<T>| broken.get(&run.curve).is_none_or(|first| run.seed < *first);
    all.into_iter().filter(counts).filter_map(|it| it.rows).flatten().collect()
}

/// One run.
struct Run<'a> {
    trial: &'a Trial,
    name: String,
    folder: &'a Path,
}

impl Run<'_> {
    /// What came of it, now or before; `None` if the machine was too busy each time.
    fn outcome(&self) -> Result<Option<Outcome>, Failure> {
        if let Some(outcome) = self.kept()? {
            return Ok(Some(outcome));
        }
        for _ in 0..TRIES {
            let outcome = self.attempt()?;
            if outcome.result.valid {
                self.keep(&outcome)?;
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    fn kept(&self) -> Result<Option<Outcome>, Failure> {
        let path = self.file();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::refused(format!("{}: {error}", path.display()))),
        };
        let refuse = |error| {
            let path = path.display();
            Failure::refused(format!("{path} is no outcome of a run ({error}): remove it"))
        };
        serde_json::from_slice(&text).map(Some).map_err(refuse)
    }

    /// Whole or not at all, whenever somebody ends us.
    fn keep(&self, outcome: &Outcome) -> Result<(), Failure> {
        let path = self.file();
        let part = path.with_extension("part");
        let json = serde_json::to_string_pretty(outcome).map_err(Failure::failed)? + "\n";
        let failed = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
        fs::write(&part, json).and_then(|()| fs::rename(&part, &path)).map_err(failed)
    }

    /// A run in a folder of its own, of which nothing stays.
    fn attempt(&self) -> Result<Outcome, Failure> {
        let scratch = Scratch::new(self.folder.join(format!("{}.running", self.name)))?;
        let scenario = self.trial.scenario().map_err(Failure::failed)?;
        let json = scratch.0.join("result.json");
        let words = self.words(&scenario, &scratch.0);
        let parsed = Cli::try_parse_from(&words).map_err(Failure::failed)?;
        let Command::Run(args) = parsed.command else { return Err(Failure::failed("no run")) };
        // Behind the name of the program and of the command.
        let inside = words.into_iter().skip(2).collect();
        match outside::run(&args, inside) {
            // Transfers that fail are part of what came of it.
            Err(failure) if failure.code != 1 || !json.exists() => return Err(failure),
            Ok(()) | Err(_) => {}
        }
        let result = serde_json::from_reader(BufReader::new(File::open(&json)?));
        let result = result.map_err(Failure::failed)?;
        let observers = match self.trial.is_observed {
            true => observe(&scenario, &scratch.0)?,
            false => Vec::new(),
        };
        Ok(Outcome { result, observers })
    }

    /// The command line of the run.
    fn words(&self, scenario: &Scenario, scratch: &Path) -> Vec<OsString> {
        let Trial { scheme, seed, .. } = *self.trial;
        let mut words: Vec<OsString> = ["hearsay-lab", "run", self.trial.scenario, "--quiet"]
            .into_iter()
            .chain(["--scheme", scheme.name(), "--seed", &seed.to_string()])
            .map(OsString::from)
            .collect();
        for (key, value) in &self.trial.settings {
            words.extend(["--set".into(), format!("{key}={value}").into()]);
        }
        words.extend(["--json".into(), scratch.join("result.json").into()]);
        for router in scenario.routers.iter().filter(|_| self.trial.is_observed) {
            let mut capture = OsString::from(format!("{}=", router.name));
            capture.push(capture_of(scratch, &router.name));
            words.extend(["--pcap".into(), capture]);
        }
        words
    }
}

fn capture_of(scratch: &Path, router: &str) -> PathBuf {
    scratch.join(format!("{router}.pcap"))
}

/// What each router made of what its monitor interface showed.
fn observe(scenario: &Scenario, scratch: &Path) -> Result<Vec<[Heard; 3]>, Failure> {
    let observers = Observers::new(scenario.routers.len());
    for (station, router) in scenario.routers.iter().enumerate() {
        let path = capture_of(scratch, &router.name);
        let failed = |error| Failure::failed(format!("{}: {error}", path.display()));
        listen(&path, station, &observers).map_err(failed)?;
    }
    Ok(observers.finish())
}

fn listen(path: &Path, station: usize, observers: &Observers) -> io::Result<()> {
    let (mut file, mut feeder, mut piece) = (File::open(path)?, Feeder::default(), vec![0; PIECE]);
    let mut tap = observers.tap();
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return feeder.finish().map_err(io::Error::other);
        }
        feeder.feed(&piece[..length]);
        while let Some(record) = feeder.take().map_err(io::Error::other)? {
            tap.frame(station, record.time, record.frame.bytes);
        }
    }
}

/// A folder that goes when it is dropped; a run that was killed has left it as it was.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> io::Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_curve_only_whole_seeds_count_up_to_the_first_that_is_not() {
        let ran = |series, seed, rows: Option<u8>| Ran {
            curve: ("a", series),
            seed,
            rows: rows.map(|it| vec![it]),
        };
        let all = vec![
            ran("x", 1, Some(1)),
            ran("y", 1, Some(2)),
            ran("x", 2, Some(3)),
            ran("x", 2, None),
            ran("y", 2, Some(4)),
            ran("x", 3, Some(5)),
            ran("x", 3, Some(6)),
        ];
        assert_eq!(complete(all), [1, 2, 4]);
    }
}
