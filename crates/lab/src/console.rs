//! Output: lines on standard error, and results on standard output and in files.

use std::io::{self, Write as _};
use std::path::Path;

use crate::failure::Failure;
use output::is_stdout;

pub mod output;
pub mod progress;
pub mod table;
pub mod writable;

/// Prints an error or a warning on standard error, after the program's name.
pub fn note(text: &str) {
    err(&format!("hearsay-lab: {text}"));
}

/// Prints a line on standard error.
pub fn err(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a result on standard output.
pub fn out(page: &[u8]) -> Result<(), Failure> {
    let written = io::stdout().write_all(page).and_then(|()| io::stdout().flush());
    written.map_err(|error| Failure::writing("cannot write to standard output", &error))
}

/// The result of a command, in three forms.
pub struct Summary {
    /// JSON, with a newline at its end.
    pub json: String,
    /// The page.
    pub html: String,
    /// The table for a terminal.
    pub table: String,
}

/// The requested outputs.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// File for the JSON; `-` is standard output. What is written there takes the table's place.
    pub json: Option<&'a Path>,
    /// File for the page.
    pub html: Option<&'a Path>,
    /// Whether to print no table.
    pub quiet: bool,
}

/// Writes the requested outputs. Files come first, because the reader of standard output may close it.
pub fn deliver(wanted: Wanted<'_>, summary: &Summary) -> Result<(), Failure> {
    let json_goes_to_stdout = wanted.json.is_some_and(is_stdout);
    let has_table = !wanted.quiet && !wanted.html.is_some_and(is_stdout);
    if let Some(path) = wanted.json.filter(|_| !json_goes_to_stdout) {
        write(path, &summary.json)?;
    }
    if let Some(path) = wanted.html {
        write(path, &summary.html)?;
    }
    if json_goes_to_stdout {
        out(summary.json.as_bytes())?;
    } else if has_table {
        out(summary.table.as_bytes())?;
    }
    Ok(())
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    output::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::writing(format!("cannot write {}", path.display()), &error))
}

/// A number with its noun, in the plural if necessary.
pub fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
