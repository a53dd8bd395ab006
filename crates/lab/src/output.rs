//! Where results go that are made in virtual time: files, and standard output.

use std::path::Path;

use crate::failure::Failure;
use crate::say;

/// What there is to tell.
pub struct Told {
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
pub fn tell(wanted: Wanted<'_>, told: &Told) -> Result<(), Failure> {
    let json_goes_to_stdout = wanted.json == Some(Path::new("-"));
    if let Some(path) = wanted.json.filter(|_| !json_goes_to_stdout) {
        write(path, &told.json)?;
    }
    if let Some(path) = wanted.html {
        write(path, &told.html)?;
    }
    if json_goes_to_stdout {
        say::out(told.json.as_bytes())?;
    } else if !wanted.quiet {
        say::out(told.table.as_bytes())?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// So many of something, in words.
pub fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
