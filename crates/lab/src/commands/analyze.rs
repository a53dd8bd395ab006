//! `hearsay-lab analyze overhear`: what a router would have overheard that received the frames of a capture.
//!
//! *What this is:* the driver of one overhearing engine (`node::overhear`) per file: pieces of the file in,
//! counts out. `observer.rs` feeds the engine, `observed.rs` is the result, `words.rs` its text. *What it
//! never does:* hold more than a piece of a file and the engine's budget.

mod observed;
mod observer;
pub mod redundancy;
mod refused;
mod source;
mod words;

use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use node::overhear::Options;
use report::provenance::Provenance;
use wire::capture::records::Feeder;

use crate::cli::AnalyzeOverhear;
use crate::console;
use crate::console::output::is_stdout;
use crate::console::progress::Progress;
use crate::failure::Failure;
use crate::origin::origin;
use observed::{Observed, Page};
use observer::Observer;

/// Bytes read from a file at a time.
const PIECE: usize = 64 << 10;

/// Reads the files one after the other, and reports on each as far as it can be read. Errors are reported
/// last.
pub fn overhear(args: &AnalyzeOverhear) -> Result<(), Failure> {
    let progress = Progress::new(args.quiet);
    let (streams_alone, need_heads) = (args.streams_alone, args.need_heads);
    let mut page =
        Page { memory_bytes: args.memory, streams_alone, need_heads, observers: Vec::new() };
    let options =
        Options { joins_streams: !streams_alone, guesses_heads: !need_heads, ..Options::default() };
    for path in &args.files {
        let observer = Observer::new(args.memory as usize, options);
        page.observers.push(observe(path, observer, &progress));
    }
    write(args, &page)?;
    let errors: Vec<_> = page.observers.iter().filter_map(|it| it.error.as_deref()).collect();
    if errors.is_empty() { Ok(()) } else { Err(Failure::refused(errors.join("\n"))) }
}

fn write(args: &AnalyzeOverhear, page: &Page) -> Result<(), Failure> {
    let json_goes_to_stdout = args.json.as_deref().is_some_and(is_stdout);
    if let Some(path) = &args.json {
        let provenance = Provenance::new(origin(), &[], []);
        let json = serde_json::to_string_pretty(&provenance.on(observed::SCHEMA, page));
        let json = json.map_err(Failure::failed)? + "\n";
        if json_goes_to_stdout {
            console::out(json.as_bytes())?;
        } else {
            console::write(path, &json)?;
        }
    }
    if !args.quiet && !json_goes_to_stdout {
        console::out(words::page(page).as_bytes())?;
    }
    Ok(())
}

fn observe(path: &Path, mut observer: Observer, progress: &Progress) -> Observed {
    let name = path.display().to_string();
    let mut reading = Reading::default();
    let end = match source::open(path, progress) {
        Ok(capture) => reading.read(capture, &mut observer),
        Err(error) => Err(error.to_string()),
    };
    let began = Instant::now();
    let mut observed = observer.finish();
    observed.capture_bytes = reading.bytes;
    observed.processing_seconds = (reading.processing + began.elapsed()).as_secs_f64();
    observed.error = end.err().map(|why| format!("{name}: {why}"));
    observed.file = name;
    observed
}

/// Progress in reading a file.
#[derive(Debug, Default)]
struct Reading {
    bytes: u64,
    /// Processing time, without reading.
    processing: Duration,
}

impl Reading {
    /// Reads to the end, or to the first error, which it returns.
    fn read(&mut self, mut capture: impl Read, observer: &mut Observer) -> Result<(), String> {
        let (mut feeder, mut piece) = (Feeder::default(), vec![0; PIECE]);
        loop {
            let length = match capture.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("at byte {}: {error}", self.bytes)),
            };
            self.bytes += length as u64;
            let began = Instant::now();
            let taken = take(&mut feeder, &piece[..length], observer);
            self.processing += began.elapsed();
            taken?;
        }
        match self.bytes {
            0 => Err("is empty".to_owned()),
            _ => feeder.finish().map_err(text),
        }
    }
}

fn take(feeder: &mut Feeder, piece: &[u8], observer: &mut Observer) -> Result<(), String> {
    feeder.feed(piece);
    while let Some(record) = feeder.take().map_err(text)? {
        observer.handle_record(&record);
    }
    Ok(())
}

fn text(error: impl Display) -> String {
    error.to_string()
}
