//! How a command ends: the exit codes, which scripts may rely on.

use std::fmt;
use std::io;

/// Exit code of a run that was broken off by ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// What the inside of a run adds to its exit code, so that the outside knows it from those of
/// `unshare`, which stands between them.
const FROM_INSIDE: u8 = 64;

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

    /// As the inside of a run tells it to the outside.
    pub fn inside(self) -> Self {
        Self { code: self.code + FROM_INSIDE, ..self }
    }

    /// What an exit code means if it is one of the inside's, which has said why.
    pub fn said_inside(code: i32) -> Option<Self> {
        let code = u8::try_from(code).ok()?.checked_sub(FROM_INSIDE)?;
        (code < FROM_INSIDE).then_some(Self { code, message: String::new() })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}
