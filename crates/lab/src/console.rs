//! What a person or a script gets to read: lines of standard error, and results on standard output and in files.
//! That nobody reads (a closed pipe) is no error of ours.

use std::io::{self, Write as _};
use std::path::Path;

use crate::failure::Failure;

pub mod progress;
pub mod table;
pub mod writable;

/// Something went wrong, or has to be known: a line of standard error with our name before it.
pub fn note(text: &str) {
    err(&format!("hearsay-lab: {text}"));
}

/// A line of standard error.
pub fn err(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The answer, on standard output.
pub fn out(page: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(page).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// What a command gives, in three forms.
pub struct Summary {
    /// With a newline at its end.
    pub json: String,
    /// A page.
    pub html: String,
    /// For a terminal.
    pub table: String,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Where the JSON goes; `-` is standard output, and then there is no table.
    pub json: Option<&'a Path>,
    /// Where the page goes.
    pub html: Option<&'a Path>,
    /// No table.
    pub quiet: bool,
}

/// Writes it, files first: whoever reads standard output may go away.
pub fn deliver(wanted: Wanted<'_>, summary: &Summary) -> Result<(), Failure> {
    let json_goes_to_stdout = wanted.json == Some(Path::new("-"));
    if let Some(path) = wanted.json.filter(|_| !json_goes_to_stdout) {
        write(path, &summary.json)?;
    }
    if let Some(path) = wanted.html {
        write(path, &summary.html)?;
    }
    if json_goes_to_stdout {
        out(summary.json.as_bytes())?;
    } else if !wanted.quiet {
        out(summary.table.as_bytes())?;
    }
    Ok(())
}

/// Writes a file.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// So many of something, in words.
pub fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
