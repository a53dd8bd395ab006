//! Words for whoever listens. That nobody does (a closed pipe) is no error of ours.

use std::io::{self, Write as _};

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
