//! What commands print: results on standard output, remarks on standard error.
//!
//! *What it never does:* panic because nobody reads. Lints in `main.rs` keep `println!` and its kin out.

use std::fmt::Display;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::exit::Failure;

/// Prints on standard output.
pub fn print(page: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(page.as_ref())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::writing("standard output", &error))
}

/// Prints a line on standard output.
pub fn line(text: impl Display) -> Result<(), Failure> {
    print(format!("{text}\n"))
}

/// Prints a value on standard output, as a line of JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(serde_json::to_string(value).map_err(Failure::failed)?)
}

/// Prints a line on standard error, if somebody reads it.
pub fn remark(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
