//! `hearsay-lab analyze redundancy`: what schemes of chunking would save of the user's own content.
//!
//! *What this is:* the driver of `crate::redundancy`: files in, a table, JSON and pictures out. `input.rs` and
//! `capture.rs` read, `findings.rs` is the result as JSON, `words.rs` its text, `pictures.rs` its figures. *What it never
//! does:* hold more than a piece of a file besides what the analysis holds.

mod capture;
mod findings;
mod input;
mod pictures;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use report::provenance::Provenance;

use crate::cli::AnalyzeRedundancy;
use crate::console::progress::Progress;
use crate::console::{self, Summary, Wanted, deliver, writable};
use crate::failure::Failure;
use crate::origin::origin;
use crate::redundancy::{Analysis, Disk, Full};
use findings::{Findings, Input};

/// Reads the inputs in their order, and writes what each scheme would have saved.
pub fn redundancy(args: &AnalyzeRedundancy) -> Result<(), Failure> {
    writable::results(args.json.as_deref(), None, None)?;
    let mut analysis = Analysis::new(args.smallest, args.memory);
    let progress = Progress::new(args.quiet);
    let (mut inputs, mut errors) = (Vec::new(), Vec::new());
    for (at, path) in args.inputs.iter().enumerate() {
        let read = read(path, &mut analysis, args, &progress)?;
        errors.extend(read.error.clone());
        inputs.push((read, analysis.end_input()));
        if at == 0 && args.inputs.len() > 1 {
            analysis.forget_uses();
        }
    }
    let disk = Disk { seek_seconds: args.seek_ms / 1e3, bytes_a_second: args.disk_rate * 1e6 };
    let schemes: Vec<_> = analysis.schemes().cloned().collect();
    write(args, &Findings::new(&schemes, inputs, disk, analysis.memory()))?;
    if errors.is_empty() { Ok(()) } else { Err(Failure::refused(errors.join("\n"))) }
}

/// Reads an input. What is wrong within a capture is returned with it, anything else ends the command.
fn read(
    path: &Path,
    analysis: &mut Analysis,
    args: &AnalyzeRedundancy,
    progress: &Progress,
) -> Result<Input, Failure> {
    let name = path.display().to_string();
    let files = input::files(path)?;
    let full = |full: Full| {
        let (memory, needed) = (args.memory, full.needed.next_power_of_two());
        let coarser = (args.smallest * 4).min(8192);
        let or = match coarser > args.smallest {
            true => format!(", or leave out small chunks with --smallest {coarser}"),
            false => String::new(),
        };
        Failure::refused(format!(
            "{name}: the tables of names need more than {memory} bytes: give --memory {needed}{or}"
        ))
    };
    if input::is_capture(&files)? {
        let (captured, error) = capture::read(path, analysis, progress, full)?;
        return Ok(Input::new(name, Some(captured), error));
    }
    let bar = progress.bytes(name.clone(), Some(files.iter().map(|it| it.bytes).sum()));
    let mut stream = analysis.stream();
    input::read(&files, |piece| {
        bar.inc(piece.len() as u64);
        analysis.feed(&mut stream, piece).map_err(full)
    })?;
    analysis.finish(stream).map_err(full)?;
    Ok(Input::new(name, None, None))
}

fn write(args: &AnalyzeRedundancy, findings: &Findings) -> Result<(), Failure> {
    let provenance = Provenance::new(origin(), &[], []);
    if let Some(folder) = &args.pictures {
        let failed = |it| Failure::failed(format!("cannot make {}: {it}", folder.display()));
        fs::create_dir_all(folder).map_err(failed)?;
        for (name, svg) in pictures::all(findings) {
            let path: PathBuf = folder.join(name);
            console::write(&path, &provenance.on_svg(&svg))?;
        }
    }
    let json = serde_json::to_string_pretty(&provenance.on(findings::SCHEMA, findings));
    let json = json.map_err(Failure::failed)? + "\n";
    let summary = Summary { table: words::page(findings), json, html: String::new() };
    deliver(Wanted { json: args.json.as_deref(), html: None, quiet: args.quiet }, &summary)
}
