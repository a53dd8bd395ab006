//! Logging: lines on standard error, where systemd, procd and terminals take them.

use std::io::IsTerminal as _;

use clap::ValueEnum as _;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, registry};

use crate::exit::Failure;
use crate::level::Level;
use crate::term;

/// The log of this process.
pub struct Log {
    level: Handle<LevelFilter, Registry>,
    /// The level that the command line or the environment names.
    asked: Option<Level>,
}

/// Starts logging, once per process.
pub fn start(asked: Option<Level>) -> Result<Log, Failure> {
    let asked = match asked {
        Some(level) => Some(level),
        None => from_text(std::env::var("HEARSAY_LOG").ok().as_deref())?,
    };
    let (filter, level) = reload::Layer::new(LevelFilter::from(asked.unwrap_or_default()));
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        // Without this, a line that cannot be written is reported on standard error, and if that is closed, panics.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && term::may_colour())
        .with_target(false);
    // systemd's journal adds a timestamp to each line itself.
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        registry().with(filter).with(lines.without_time()).init();
    } else {
        registry().with(filter).with(lines).init();
    }
    Ok(Log { level, asked })
}

impl Log {
    /// Logs as much as the configuration says from now on, unless the command line or the environment says how much.
    pub fn set(&self, configured: Level) {
        // It fails only if the log has ended.
        let _ = self.level.reload(LevelFilter::from(self.asked.unwrap_or(configured)));
    }
}

fn from_text(text: Option<&str>) -> Result<Option<Level>, Failure> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    Level::from_str(text, true).map(Some).map_err(|_| {
        Failure::usage(format!(
            "HEARSAY_LOG: {text:?} is not a log level: use off, error, warn, info, debug or trace"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_or_refused() {
        assert_eq!(from_text(None), Ok(None));
        assert_eq!(from_text(Some("")), Ok(None));
        assert_eq!(from_text(Some("DEBUG")), Ok(Some(Level::Debug)));
        assert!(from_text(Some("loud")).unwrap_err().message.contains("not a log level"));
    }
}
