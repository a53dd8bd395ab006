//! How a command ends: the exit codes, which scripts may rely on.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not do what it was asked to; the number is the exit code (0 is success).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was tried and failed.
    Failed = 1,
    /// The command line or the configuration is wrong; nothing was tried.
    Usage = 2,
    /// No daemon answers.
    Unreachable = 3,
    /// What arrived is not what was promised.
    Unverified = 4,
}

/// The end of a command that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What went wrong, and what to do.
    pub message: String,
}

impl Failure {
    /// It was tried and failed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, message: message.to_string() }
    }

    /// The command line or the configuration is wrong.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// No daemon answers.
    pub fn unreachable(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Unreachable, message: message.to_string() }
    }

    /// What arrived is not what was promised.
    pub fn unverified(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Unverified, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
