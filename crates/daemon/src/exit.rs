//! The exit codes of commands. Scripts may rely on them.

use std::fmt;
use std::io;
use std::process::ExitCode;

use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;

/// Why a command failed; the number is the exit code (0 is success).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command was tried and failed.
    Failed = 1,
    /// The command line or the configuration is wrong; nothing was tried. Of `doctor` also: something could not be
    /// looked at.
    Usage = 2,
    /// No daemon answers.
    Unreachable = 3,
    /// The content does not match its digest, OID, manifest or length.
    Unverified = 4,
    /// Nobody reads the output any more. The process ends by SIGPIPE, as other programs do; this number is what shells
    /// say of it.
    Unread = 141,
}

/// A command's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The cause, and what the user can do.
    pub message: String,
}

impl Failure {
    /// The command was tried and failed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, message: message.to_string() }
    }

    /// The command line or the configuration is wrong.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// Something could not be looked at.
    pub fn unseen(message: impl fmt::Display) -> Self {
        Self::usage(message)
    }

    /// No daemon answers.
    pub fn unreachable(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Unreachable, message: message.to_string() }
    }

    /// An output cannot be written: nobody reads it any more, or something else went wrong.
    pub fn writing(what: impl fmt::Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { exit: Exit::Unread, message: String::new() },
            _ => Self::failed(format!("cannot write {what}: {error}")),
        }
    }

    /// The content does not match its digest, OID, manifest or length.
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
        if exit == Exit::Unread {
            // Returns only if it fails.
            let _ = emulate_default_handler(SIGPIPE);
        }
        Self::from(exit as u8)
    }
}
