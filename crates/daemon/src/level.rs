//! How much is logged.

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;

/// How much to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing
    Off,
    /// Errors that end the daemon or a task
    Error,
    /// Problems that an operator should look at
    Warn,
    /// Start, stop and changes of state
    #[default]
    Info,
    /// Each request, and each step of the engine: the sources it asks, transfers, peers that connect or leave
    Debug,
    /// Each timer, each overheard chunk, each input that came too late
    Trace,
}

impl Level {
    /// All of them, by their names.
    pub const ALL: [(&str, Self); 6] = [
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::OFF,
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
            Level::Trace => Self::TRACE,
        }
    }
}
