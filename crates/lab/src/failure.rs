//! How a command ends: the exit codes, which scripts may rely on.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Exit code of a run that was broken off by ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// The end of a command that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    /// What went wrong and what to do; empty if it was said already.
    pub message: String,
}

impl Failure {
    /// It was tried and failed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// Something is wrong or missing; nothing was tried.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// A client got something else than the origin has.
    pub fn wrong_bytes(message: impl fmt::Display) -> Self {
        Self { code: 4, message: message.to_string() }
    }

    /// Somebody said it already.
    pub fn said(code: u8) -> Self {
        Self { code, message: String::new() }
    }

    /// Shows it on standard error.
    pub fn show(self) -> ExitCode {
        self.message.lines().for_each(|line| eprintln!("hearsay-lab: {line}"));
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}
