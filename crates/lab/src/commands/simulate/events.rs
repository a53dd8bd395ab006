//! What the engines of a simulated run did: a file with a JSON object on each line.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::rc::Rc;

use report::provenance::Provenance;
use serde::Serialize;
use sim::router::EventSink;
use sim::router::run::Event;
use sim::scenario::{Scenario, Traffic};
use wire::Instant;

use crate::cli::Sim;
use crate::console::output;
use crate::failure::Failure;

/// The schema of the first line, with its provenance, and of all others.
const SCHEMA: &str = "hearsay/events/1";

/// A file of events that is being written.
pub struct EventLog {
    file: Rc<RefCell<EventFile>>,
    sink: EventSink,
}

struct EventFile {
    writer: BufWriter<File>,
    /// What went wrong first; nothing is written behind it.
    failed: Option<io::Error>,
}

/// The first line, beside its schema and provenance.
#[derive(Serialize)]
struct Head {}

/// One event.
#[derive(Serialize)]
struct Line<'a> {
    /// Nanoseconds of virtual time.
    at_ns: u64,
    /// The router's name in the scenario.
    node: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

/// Refuses a run or several that cannot be written to one file of events.
pub fn check(args: &Sim, scenario: &Scenario) -> Result<(), Failure> {
    if args.events.is_none() {
        return Ok(());
    }
    if args.seeds > 1 {
        let text = format!(
            "--events: the file takes the events of one run, and these are {}: leave out --seeds, and \
             say which with --seed",
            args.seeds
        );
        return Err(Failure::refused(text));
    }
    match scenario.traffic {
        Traffic::Files | Traffic::Pages => Ok(()),
        Traffic::Tcp | Traffic::Udp | Traffic::Flows | Traffic::Fetches => {
            let traffic = scenario.key("traffic");
            let text = format!("--events: `traffic` is \"{traffic}\", and no router has an engine");
            Err(Failure::refused(text))
        }
    }
}

impl EventLog {
    /// Begins the file, if there is to be one.
    pub fn create(
        args: &Sim,
        scenario: &Scenario,
        provenance: &Provenance,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = args.events.as_deref() else { return Ok(None) };
        let refuse = |error| Failure::refused(format!("cannot write {}: {error}", path.display()));
        let file = EventFile::create(path, provenance).map_err(refuse)?;
        let file = Rc::new(RefCell::new(file));
        let names: Vec<_> = scenario.routers.iter().map(|router| router.name.clone()).collect();
        let to = Rc::clone(&file);
        let sink = move |router: usize, at: Instant, event: &Event| {
            let line = Line { at_ns: at.as_nanos(), node: &names[router], event };
            to.borrow_mut().write(&line);
        };
        Ok(Some(Self { file, sink: Rc::new(sink) }))
    }

    /// What is given the events.
    pub fn sink(&self) -> EventSink {
        Rc::clone(&self.sink)
    }

    /// Writes what is not yet written.
    pub fn finish(self) -> Result<(), Failure> {
        let mut file = self.file.borrow_mut();
        let flushed = file.writer.flush();
        let written = file.failed.take().map_or(flushed, Err);
        written.map_err(|error| Failure::writing("the events are not complete", &error))
    }
}

impl EventFile {
    fn create(path: &Path, provenance: &Provenance) -> io::Result<Self> {
        let mut file = Self { writer: BufWriter::new(output::create(path)?), failed: None };
        file.write(&provenance.clone().on(SCHEMA, Head {}));
        file.failed.take().map_or(Ok(file), Err)
    }

    fn write(&mut self, line: &impl Serialize) {
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut self.writer, line).map_err(io::Error::from);
            self.failed = written.and_then(|()| self.writer.write_all(b"\n")).err();
        }
    }
}
