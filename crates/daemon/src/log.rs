//! Logging: lines on standard error, where systemd, procd and terminals take them.

use std::io::IsTerminal as _;

use clap::ValueEnum as _;
use tracing::level_filters::LevelFilter;

use crate::cli::Level;
use crate::exit::Failure;
use crate::term;

/// Starts logging, once per process.
pub fn start(asked: Option<Level>) -> Result<(), Failure> {
    let level = match asked {
        Some(level) => level,
        None => from_text(std::env::var("HEARSAY_LOG").ok().as_deref())?,
    };
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        // Without this, a line that cannot be written is reported on standard error, and if that is closed, panics.
        .log_internal_errors(false)
        .with_max_level(LevelFilter::from(level))
        .with_ansi(std::io::stderr().is_terminal() && term::may_colour())
        .with_target(false);
    // systemd's journal adds a timestamp to each line itself.
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        lines.without_time().init();
    } else {
        lines.init();
    }
    Ok(())
}

fn from_text(text: Option<&str>) -> Result<Level, Failure> {
    let text = text.filter(|text| !text.is_empty()).unwrap_or("info");
    Level::from_str(text, true).map_err(|_| {
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
        assert_eq!(from_text(None), Ok(Level::Info));
        assert_eq!(from_text(Some("")), Ok(Level::Info));
        assert_eq!(from_text(Some("DEBUG")), Ok(Level::Debug));
        assert!(from_text(Some("loud")).unwrap_err().message.contains("not a log level"));
    }
}
