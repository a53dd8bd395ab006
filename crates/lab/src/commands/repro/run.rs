//! One run of a series with real daemons: where its outcome is kept, and how it is made.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use papers::experiment::{Job, Outcome, Row, Trial};
use report::provenance::{Program, Provenance, Stamped};
use serde::Deserialize;
use sim::observers::{Made as Heard, Observers};
use sim::result::RunResult;
use sim::scenario::Scenario;
use wire::Instant;
use wire::capture::records::Feeder;

use super::real::Series;
use crate::cli::{Cli, Command};
use crate::console;
use crate::console::output::{self, behind_links};
use crate::failure::Failure;
use crate::origin::program;
use crate::realtime::launch;

/// Attempts at a run whose results do not count because the machine was too busy.
const TRIES: usize = 3;

/// Name of the schema of a kept outcome with its provenance.
const SCHEMA: &str = "hearsay/outcome/1";

/// The part of a kept outcome that says which program made it.
#[derive(Deserialize)]
struct Maker {
    provenance: Option<Provenance>,
}

/// One run.
pub struct Run<'a> {
    /// Its job in the experiment.
    pub job: &'a Job<'a>,
    /// Its name in the experiment and in file names.
    pub name: String,
    series: &'a Series,
    trial: Trial,
    scenario: Scenario,
}

impl<'a> Run<'a> {
    /// The run of a job.
    pub fn of(job: &'a Job<'a>, series: &'a Series) -> Result<Self, Failure> {
        let trial = job.trial().ok_or_else(|| Failure::failed("a run for the simulator only"))?;
        let trial = trial.map_err(Failure::failed)?;
        let scenario = trial.scenario().map_err(Failure::failed)?;
        Ok(Self { job, name: job.name(), series, trial, scenario })
    }

    /// The file of its outcome.
    pub fn file(&self) -> PathBuf {
        self.series.folder.join(format!("{}.json", self.name))
    }

    /// A folder that no other process uses.
    fn own(&self) -> PathBuf {
        self.series.folder.join(format!("{}.{}.running", self.name, std::process::id()))
    }

    /// Runs until an outcome counts, and keeps that. Returns whether there is one; there is none if the
    /// machine was too busy each time.
    pub fn make(&self) -> Result<bool, Failure> {
        // Another process may work on the same series.
        if self.kept()?.is_some() {
            return Ok(true);
        }
        for _ in 0..TRIES {
            self.series.check()?;
            match self.attempt() {
                Ok(outcome) if outcome.content.result.valid => {
                    return self.keep(&outcome).map(|()| true);
                }
                Ok(_) => console::note(&format!("{}: not valid", self.name)),
                // Another attempt may succeed.
                Err(failure) if failure.code == 1 => {
                    console::note(&format!("{}: failed. {}", self.name, failure.message));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(false)
    }

    /// Its rows, from an outcome.
    pub fn rows(&self, outcome: &Outcome) -> Result<Vec<Row>, Failure> {
        self.job.rows_of(&self.trial, outcome).map_err(Failure::failed)
    }

    /// The kept outcome, if the run was made before.
    pub fn kept(&self) -> Result<Option<Outcome>, Failure> {
        let path = self.file();
        // Reading a pipe would wait for a writer.
        let text = match output::check_is_file(&path).and_then(|()| fs::read(&path)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::refused(format!("{}: {error}", path.display()))),
        };
        let refuse = |error| {
            let path = path.display();
            Failure::refused(format!("{path} is not an outcome of a run ({error}): remove it"))
        };
        // Outcomes of another version may have other members.
        if let Some(made) = serde_json::from_slice::<Maker>(&text).map_err(refuse)?.provenance {
            self.check_program(&made.origin.program)?;
        }
        let outcome = serde_json::from_slice::<Stamped<Outcome>>(&text).map_err(refuse)?.content;
        self.check(&outcome)?;
        Ok(Some(outcome))
    }

    /// Refuses an outcome of another version of this program, which may differ from ours.
    fn check_program(&self, made: &Program) -> Result<(), Failure> {
        let ours = program();
        if *made == ours {
            return Ok(());
        }
        let path = self.file();
        let named = |it: &Program| format!("{} {}, commit {}", it.name, it.version, it.commit);
        Err(Failure::refused(format!(
            "{} was made by {}, and this is {}: remove it to make it again, go on with that program, or name \
             another folder (--out)",
            path.display(),
            named(made),
            named(&ours)
        )))
    }

    /// Refuses an outcome that was made with other settings.
    fn check(&self, outcome: &Outcome) -> Result<(), Failure> {
        let now = self.scenario.values();
        let made = (&outcome.result.scheme[..], outcome.result.seed);
        let differs = now.iter().find(|(key, value)| outcome.keys.get(*key) != Some(*value));
        let why = match differs {
            Some((key, _)) => format!("another `{key}`"),
            None if outcome.keys.len() != now.len() => "other keys".to_owned(),
            None if made != (self.trial.scheme.name(), self.trial.seed) => {
                "another scheme or seed".to_owned()
            }
            None if self.is_whole(outcome) => return Ok(()),
            None => "other routers or requests".to_owned(),
        };
        let text =
            format!("{} was made with {why} than this run: remove it", self.file().display());
        Err(Failure::refused(text))
    }

    /// Whether there are all transfers and observers.
    fn is_whole(&self, outcome: &Outcome) -> bool {
        let observers = if self.trial.is_observed { self.scenario.routers.len() } else { 0 };
        let transfers = self.scenario.requests(self.trial.seed).len();
        (outcome.observers.len(), outcome.result.transfers.len()) == (observers, transfers)
    }

    /// Writes the outcome by renaming, so that an interrupted write leaves none.
    fn keep(&self, outcome: &Stamped<Outcome>) -> Result<(), Failure> {
        // A link to it stays.
        let path = behind_links(&self.file());
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let json = serde_json::to_string_pretty(outcome).map_err(Failure::failed)? + "\n";
        let failed = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
        fs::write(&part, json).and_then(|()| output::rename(&part, &path)).map_err(failed)
    }

    /// Makes the run in a temporary folder.
    fn attempt(&self) -> Result<Stamped<Outcome>, Failure> {
        let scratch = Scratch::new(self.own())?;
        let json = scratch.0.join("result.json");
        let words = self.words(&scratch.0);
        let parsed = Cli::try_parse_from(&words).map_err(Failure::failed)?;
        let Command::Run(args) = parsed.command else { return Err(Failure::failed("no run")) };
        // Without the names of the program and of the command.
        let end = launch::launch(&args, words.into_iter().skip(2).collect());
        self.series.check()?;
        match end {
            // Failed transfers are part of the outcome. The run has reported them.
            Err(failure) if failure.code == 1 && failure.message.is_empty() && json.exists() => {}
            Err(failure) => return Err(failure),
            Ok(()) => {}
        }
        let wrong = |error| Failure::failed(format!("{}: {error}", json.display()));
        let run = serde_json::from_slice::<Stamped<RunResult>>(&fs::read(&json)?);
        let Stamped { provenance, content: result, .. } = run.map_err(wrong)?;
        let observers = match self.trial.is_observed {
            true => self.observe(&scratch.0, result.began_unix_s)?,
            false => Vec::new(),
        };
        let outcome = Outcome { keys: self.scenario.values(), result, observers };
        Ok(provenance.on(SCHEMA, outcome))
    }

    /// The command line of the run.
    fn words(&self, scratch: &Path) -> Vec<OsString> {
        let Trial { scheme, seed, .. } = self.trial;
        let mut words: Vec<OsString> = ["hearsay-lab", "run", self.trial.scenario, "--quiet"]
            .into_iter()
            .chain(["--scheme", scheme.name(), "--seed", &seed.to_string()])
            .map(OsString::from)
            .collect();
        for (key, value) in &self.trial.settings {
            words.extend(["--set".into(), format!("{key}={value}").into()]);
        }
        words.extend(["--json".into(), scratch.join("result.json").into()]);
        for router in self.scenario.routers.iter().filter(|_| self.trial.is_observed) {
            let mut capture = OsString::from(format!("{}=", router.name));
            capture.push(capture_of(scratch, &router.name));
            words.extend(["--pcap".into(), capture]);
        }
        words
    }

    /// What each router reconstructed from its monitor interface's frames from a date on.
    fn observe(&self, scratch: &Path, from_unix_s: f64) -> Result<Vec<[Heard; 3]>, Failure> {
        let from = Instant::ZERO + Duration::from_secs_f64(from_unix_s.max(0.0));
        let observers = Observers::new(self.scenario.routers.len());
        let mut tap = observers.tap();
        for (station, router) in self.scenario.routers.iter().enumerate() {
            let path = capture_of(scratch, &router.name);
            let named =
                |error: &dyn Display| Failure::failed(format!("{}: {error}", path.display()));
            let failed = |error| named(&error);
            let mut feeder = Feeder::default();
            feeder.feed(&fs::read(&path).map_err(|error| named(&error))?);
            while let Some(record) = feeder.take().map_err(failed)? {
                if record.time >= from {
                    tap.frame(station, record.time, record.frame.bytes);
                }
            }
            feeder.finish().map_err(failed)?;
        }
        Ok(observers.finish())
    }
}

fn capture_of(scratch: &Path, router: &str) -> PathBuf {
    scratch.join(format!("{router}.pcap"))
}

/// A folder that is removed when this is dropped. A killed run leaves it behind; the next process with the
/// same id replaces it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> Result<Self, Failure> {
        let refuse = |error| Failure::refused(format!("cannot make {}: {error}", path.display()));
        if path.exists() {
            fs::remove_dir_all(&path).map_err(refuse)?;
        }
        fs::create_dir(&path).map_err(refuse)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
