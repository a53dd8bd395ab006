//! How commands end: their exit codes, which scripts may rely on.

use std::fmt;
use std::io;
use std::process::ExitCode;

use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;

/// Exit code of a run that was ended by ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// The signal by which a process ends whose output nobody reads any more; in place of an exit code.
const UNREAD: u8 = SIGPIPE as u8;

/// Added to the exit code by the process inside a run's namespaces, so that the launcher can tell it from an
/// exit code of `unshare`, which stands between them.
const FROM_INSIDE: u8 = 64;

/// The failure of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    /// What failed and what to do; empty if that is printed already.
    pub message: String,
}

impl Failure {
    /// The command was carried out and failed.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// Something is wrong or missing, and nothing was started.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// A client got other bytes than the origin has.
    pub fn wrong_bytes(message: impl fmt::Display) -> Self {
        Self { code: 4, message: message.to_string() }
    }

    /// An output is not complete: nobody reads it any more, or something else went wrong.
    pub fn writing(why: impl fmt::Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { code: UNREAD, message: String::new() },
            _ => Self::failed(format!("{why}: {error}")),
        }
    }

    /// The same failure with the exit code that the process inside the namespaces uses.
    pub fn inside(self) -> Self {
        Self { code: self.code + FROM_INSIDE, ..self }
    }

    /// The failure for an exit code of the process inside, which has printed its message.
    pub fn said_inside(code: i32) -> Option<Self> {
        let code = u8::try_from(code).ok()?.checked_sub(FROM_INSIDE)?;
        (code < FROM_INSIDE).then_some(Self { code, message: String::new() })
    }

    /// The process's end: an exit code, or SIGPIPE, by which other programs too end if nobody reads what they write.
    pub fn end(&self) -> ExitCode {
        if self.code == UNREAD {
            // Returns only if it fails.
            let _ = emulate_default_handler(SIGPIPE);
        }
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}
