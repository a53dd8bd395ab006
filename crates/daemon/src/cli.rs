//! The command line, as clap reads it. What the commands do is in the files named like them.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tracing::level_filters::LevelFilter;
use wire::Selection;

use crate::config::{Overrides, Place, Size, Span};

/// What the exit codes mean.
pub const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong command line or configuration; \
    3 no daemon answers; 4 what arrived is not what was promised.";

/// A caching daemon for small mesh routers.
#[derive(Debug, Parser)]
#[command(name = "hearsay", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// The daemon's control socket [default: from the configuration]
    #[arg(long, global = true, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon, in the foreground
    Run(Box<Run>),
    /// Show what the running daemon saved, and how it is
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the other nodes of the mesh that the running daemon is connected with
    Peers {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List what the running daemon has stored
    Cache {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// At most so many objects
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Download a file through the running daemon, resume it if broken off, and verify it
    Get(Get),
    /// Publish a file in the mesh, under a name that certifies it
    Put(Put),
    /// Set, look at or remove the rules that hand clients' connections to the daemon
    Intercept {
        /// What to do with the rules
        #[command(subcommand)]
        action: Intercept,
    },
    /// Look through a configuration file
    CheckConfig {
        /// The file [default: /etc/hearsay/hearsay.toml]
        file: Option<PathBuf>,
    },
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// `hearsay run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The configuration [default: /etc/hearsay/hearsay.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the explicit proxy listens; may be given more than once
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Where content rests
    #[arg(long, value_name = "DIR|memory")]
    pub store: Option<Place>,
    /// How much of it, like 1GiB
    #[arg(long, value_name = "SIZE")]
    pub store_size: Option<Size>,
    /// The budget of caches and buffers, like 16MiB
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// How long what is under way may take to finish when the daemon is told to stop, like 60s
    #[arg(long, value_name = "TIME")]
    pub drain: Option<Span>,
    /// An interface whose clients are served without knowing it; may be given more than once
    #[arg(long, value_name = "IFACE")]
    pub intercept: Vec<String>,
    /// The port of the transparent listener
    #[arg(long, value_name = "PORT")]
    pub intercept_port: Option<u16>,
    /// An interface by which other nodes of the mesh are reached; may be given more than once
    #[arg(long, value_name = "IFACE")]
    pub mesh: Vec<String>,
    /// Whom to ask for what is not here: the next hop towards the gateway, or the gateway itself
    #[arg(long, value_name = "SCHEME", value_parser = schemes())]
    pub scheme: Option<Selection>,
    /// A file with the secret that all nodes of the mesh share; with one, what is kept and sent is sealed
    #[arg(long, value_name = "FILE")]
    pub mesh_key_file: Option<PathBuf>,
    /// Take in what neighbours send each other, as this monitor interface shows it [default: off, for
    /// the sake of privacy, power and processor time]
    #[arg(long, value_name = "IFACE")]
    pub overhear: Option<String>,
    /// Where Prometheus may ask for /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// How much to log [default: $HEARSAY_LOG, or info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<Level>,
}

/// How much to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing
    Off,
    /// What makes us fail
    Error,
    /// What somebody should look at
    Warn,
    /// Starts, stops and changes
    Info,
    /// Each request, and each step of the engine: whom it asks, how a transfer goes, which peers there are
    Debug,
    /// Each timer, each overheard chunk, each input that came too late
    Trace,
}

/// `hearsay get`.
#[derive(Debug, Args)]
pub struct Get {
    /// What to download: a URL, http only; or the OID that `hearsay put` gave
    pub url: String,
    /// The file to write [default: the last part of the URL, or the OID]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The proxy to ask [default: where the running daemon listens]
    #[arg(long, value_name = "ADDR:PORT")]
    pub proxy: Option<SocketAddr>,
    /// The SHA-256 that the file must have
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress, no report
    #[arg(short, long)]
    pub quiet: bool,
}

/// `hearsay put`.
#[derive(Debug, Args)]
pub struct Put {
    /// The file to publish; its OID is printed
    #[arg(required_unless_present_any = ["remove", "list"])]
    pub file: Option<PathBuf>,
    /// Take back what was published here
    #[arg(long, value_name = "OID", conflicts_with_all = ["file", "list"])]
    pub remove: Option<String>,
    /// List what is published here
    #[arg(long, conflicts_with = "file")]
    pub list: bool,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// `hearsay intercept`.
#[derive(Debug, Subcommand)]
pub enum Intercept {
    /// Put the rules in force; twice is the same as once
    Apply(InterceptWhat),
    /// Say what is in force, what is missing, and what may bypass it
    Check(InterceptWhat),
    /// Take the rules away, and only ours
    Remove(InterceptWhat),
}

/// What to intercept.
#[derive(Debug, Args)]
pub struct InterceptWhat {
    /// An interface whose clients are served; may be given more than once [default: as the running daemon has it, else as configured]
    #[arg(long, value_name = "IFACE")]
    pub interface: Vec<String>,
    /// The port of the transparent listener [default: as the running daemon has it, else as configured, or 3130]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// A port that is intercepted; may be given more than once [default: as the running daemon has it, else
    /// as configured, or 80]
    #[arg(long, value_name = "PORT")]
    pub dport: Vec<u16>,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

fn schemes() -> impl TypedValueParser<Value = Selection> {
    PossibleValuesParser::new(Selection::ALL.map(Selection::name)).try_map(|name| name.parse())
}

impl Run {
    /// What it says over the file.
    pub fn overrides(&self, control: Option<PathBuf>) -> Overrides {
        Overrides {
            listen: self.listen.clone(),
            store: self.store.clone(),
            store_size: self.store_size,
            memory: self.memory,
            drain: self.drain,
            intercept: self.intercept.clone(),
            intercept_port: self.intercept_port,
            mesh: self.mesh.clone(),
            scheme: self.scheme,
            mesh_key_file: self.mesh_key_file.clone(),
            overhear: self.overhear.clone(),
            metrics: self.metrics,
            control,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_run_is_told_goes_over_the_file() {
        let line = "hearsay run --listen [::1]:1 --listen 127.0.0.1:2 --store memory \
                    --store-size 9MiB --intercept br-lan --mesh wl0 --mesh wl1 --scheme thcp \
                    --mesh-key-file k --overhear mon0 --control /c --log debug";
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        let overrides = run.overrides(cli.control);
        assert_eq!(overrides.listen.len(), 2);
        assert_eq!(overrides.store, Some(Place::Memory));
        assert_eq!(overrides.store_size, Some(Size::mib(9)));
        assert_eq!(overrides.mesh, ["wl0", "wl1"]);
        assert_eq!(overrides.scheme, Some(Selection::Thcp));
        assert_eq!(overrides.mesh_key_file, Some("k".into()));
        assert_eq!(overrides.overhear, Some("mon0".into()));
        assert_eq!(overrides.control, Some("/c".into()));
        assert_eq!(run.log, Some(Level::Debug));
    }
}
