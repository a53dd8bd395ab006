//! The command line, as clap parses it. Each command is implemented in the file of its name.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
#[cfg(feature = "completions")]
use clap_complete::Shell;
use node::Prefix;
use wire::{PublicKey, Selection};

use crate::config::{FarGiven, FarOverrides, Overrides, Place, Size, Span};
use crate::level::Level;
use crate::since::Since;

/// The exit codes, for `--help` and the manual page.
pub const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong command line or configuration; \
    3 no daemon answers; 4 the content failed its verification; 141 nobody reads the output. Of `doctor`: 1 something is broken; \
    2 something could not be looked at.";

/// A caching daemon for small mesh routers.
#[derive(Debug, Parser)]
#[command(name = "hearsay", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// The control socket of the daemon, or of the far end [default: from the configuration]
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
    /// Show what the running daemon saved, and its state
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the other nodes of the mesh that the running daemon is connected with
    Peers {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the uplink's far end, and what crossed the uplink
    Uplink(ShowUplink),
    /// Run the far end of a gateway's uplink, on a server: what has crossed once does not cross again
    Far(Box<Far>),
    /// Show what was given, saved and forwarded, by class and source, in all time or of late
    Ledger(ShowLedger),
    /// List what the running daemon has stored, or remove some of it
    Cache(Cache),
    /// Download a file through the running daemon and verify it; a second run resumes a download
    /// that was interrupted
    Get(Get),
    /// Publish a file in the mesh, under a name that certifies it
    Put(Put),
    /// Apply, check or remove the firewall rules that hand clients' connections to the daemon
    Intercept {
        /// The action
        #[command(subcommand)]
        action: Intercept,
    },
    /// Show what package managers need to use this router's mirror, and what the mirror has
    Mirror {
        /// What to show
        #[command(subcommand)]
        action: Mirror,
    },
    /// Find out why nothing is saved: check the machine, the rules, the mesh and the uplink, and say what to do next
    #[command(
        after_help = "Exit codes: 0 all is well; 1 something is broken; 2 nothing is broken, but something \
        could not be looked at.\n\nAs root, an object of its own is sent through the interception, from a network \
        namespace that lasts a second. deb.debian.org is asked for its date and its certificate."
    )]
    Doctor(Doctor),
    /// Check a configuration file
    CheckConfig {
        /// The file [default: /etc/hearsay/hearsay.toml, with --far /etc/hearsay/far.toml]
        file: Option<PathBuf>,
        /// Read the file as a far end's
        #[arg(long)]
        far: bool,
    },
    /// Print completions for a shell
    #[cfg(feature = "completions")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    #[cfg(feature = "man")]
    Man {
        /// Instead of one page, write one for each command, hearsay.toml(5) and hearsay-far.toml(5) into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// `hearsay run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The configuration file [default: /etc/hearsay/hearsay.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the explicit proxy listens; may be given more than once
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Where content is stored
    #[arg(long, value_name = "DIR|memory")]
    pub store: Option<Place>,
    /// The size of the store, like 1GiB
    #[arg(long, value_name = "SIZE")]
    pub store_size: Option<Size>,
    /// The budget of caches and buffers, like 16MiB
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// How long transfers may take to finish when the daemon is told to stop, like 60s
    #[arg(long, value_name = "TIME")]
    pub drain: Option<Span>,
    /// An interface whose clients' connections are intercepted; may be given more than once
    #[arg(long, value_name = "IFACE")]
    pub intercept: Vec<String>,
    /// The port of the transparent listener
    #[arg(long, value_name = "PORT")]
    pub intercept_port: Option<u16>,
    /// An interface to other nodes of the mesh; may be given more than once
    #[arg(long, value_name = "IFACE")]
    pub mesh: Vec<String>,
    /// Which node to ask for content that this node lacks: the nearest that is said to have it, else the next hop
    /// towards the gateway (auto), always the next hop (ph-thcp), or the gateway itself (thcp)
    #[arg(long, value_name = "SCHEME", value_parser = schemes())]
    pub scheme: Option<Selection>,
    /// A file with the secret that all nodes of the mesh share; with it, content is sealed before
    /// it is stored and sent
    #[arg(long, value_name = "FILE")]
    pub mesh_key_file: Option<PathBuf>,
    /// Store chunks that neighbours send each other, as this monitor interface captures them
    /// [default: off, for privacy, power and processor time]
    #[arg(long, value_name = "IFACE")]
    pub overhear: Option<String>,
    /// The address where Prometheus can fetch /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// How much to log [default: $HEARSAY_LOG, or what the configuration says, or info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<Level>,
    /// Run as the helper of the daemon that started this process
    #[arg(long, hide = true)]
    pub as_helper: bool,
}

/// `hearsay uplink`.
#[derive(Debug, Args)]
pub struct ShowUplink {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print this node's key, which `hearsay far --near` wants; no daemon needs to run
    #[arg(long, conflicts_with = "json")]
    pub key: bool,
    /// Where the node's store is, beside which its key is kept [default: from the configuration]
    #[arg(long, value_name = "DIR", requires = "key")]
    pub store: Option<Place>,
}

/// `hearsay ledger`.
#[derive(Debug, Args)]
pub struct ShowLedger {
    /// Only the last hours or days, like 24h or 30d, or since `today`, `yesterday` or a date in UTC, like 2026-11-01 or
    /// 2026-11-01T14:00; up to two days by the hour, up to 62 by the day, else by the month
    #[arg(long, value_name = "TIME")]
    pub since: Option<Since>,
    /// Print JSON, with each period
    #[arg(long)]
    pub json: bool,
    /// Print CSV: a line for each figure of each period
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Where the store of a daemon is that does not run, whose ledger is beside it [default: from the
    /// configuration]
    #[arg(long, value_name = "DIR")]
    pub store: Option<Place>,
}

/// `hearsay doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The configuration file [default: /etc/hearsay/hearsay.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `hearsay far`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Far {
    /// The command about one that runs; without it, run one.
    #[command(subcommand)]
    pub action: Option<FarAction>,
    /// The configuration file [default: /etc/hearsay/far.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The key of a gateway that may connect, as `hearsay uplink --key` prints it there; may be
    /// given more than once
    #[arg(long, value_name = "KEY")]
    pub near: Vec<PublicKey>,
    /// Where gateways connect [default: port 3144 of all addresses]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Where what has crossed is kept [default: /var/lib/hearsay-far for root, else in
    /// $XDG_CACHE_HOME]
    #[arg(long, value_name = "DIR|memory")]
    pub store: Option<Place>,
    /// How much of it is kept for each gateway [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub store_size: Option<Size>,
    /// Memory for indexes and for content under way, of all gateways together [default: 64MiB, and 1MiB more for each
    /// gateway]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Private destinations that gateways may reach through it, besides the internet; may be given
    /// more than once
    #[arg(long, value_name = "PREFIX")]
    pub private: Vec<Prefix>,
    /// A file with certificates of CAs that are trusted besides the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// How much to log [default: $HEARSAY_LOG, or what the configuration says, or info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<Level>,
}

/// Commands about a far end that runs.
#[derive(Debug, Subcommand)]
pub enum FarAction {
    /// Show the gateways of the far end that runs on this machine, what crossed, and what was saved
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `hearsay cache`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Cache {
    /// The command; without it, list
    #[command(subcommand)]
    pub action: Option<CacheAction>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List at most this many objects
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
}

/// `hearsay cache …`.
#[derive(Debug, Subcommand)]
pub enum CacheAction {
    /// Remove stored objects from this router, so that the next request for one asks its origin
    Rm(Remove),
}

/// `hearsay cache rm`: those that all options choose.
#[derive(Debug, Args)]
#[group(id = "chosen", args = ["url", "host", "class", "older"], required = true, multiple = true)]
pub struct Remove {
    /// What is stored for this URL
    #[arg(conflicts_with_all = ["host", "class", "older"])]
    pub url: Option<String>,
    /// What is stored of this host, such as deb.debian.org, or *.ubuntu.com for all names below it
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// What is of this content class, such as apt; `other`: of none
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// What was fetched or confirmed at least so long ago, like 12h or 30d
    #[arg(long, value_name = "AGE")]
    pub older: Option<Span>,
    /// Only say how much that is
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `hearsay get`.
#[derive(Debug, Args)]
pub struct Get {
    /// An http URL, or an https URL where the gateway has a far end, or the OID that `hearsay put` printed
    pub url: String,
    /// The file to write, through links; a device or a pipe gets all bytes before they are verified, and such a
    /// download is not resumed [default: the last part of the URL, or the OID]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The proxy to use [default: where the running daemon listens]
    #[arg(long, value_name = "ADDR:PORT")]
    pub proxy: Option<SocketAddr>,
    /// The SHA-256 that the file must have
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress and no report
    #[arg(short, long)]
    pub quiet: bool,
}

/// `hearsay put`.
#[derive(Debug, Args)]
pub struct Put {
    /// The file to publish; the command prints its OID
    #[arg(required_unless_present_any = ["remove", "list"])]
    pub file: Option<PathBuf>,
    /// Withdraw a file that was published on this node
    #[arg(long, value_name = "OID", conflicts_with_all = ["file", "list"])]
    pub remove: Option<String>,
    /// List the files that are published on this node
    #[arg(long, conflicts_with = "file")]
    pub list: bool,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// `hearsay mirror`.
#[derive(Debug, Subcommand)]
pub enum Mirror {
    /// Print the lines that a client needs, and where they belong
    Setup {
        /// The client
        #[arg(value_parser = PossibleValuesParser::new(classes::SETUPS))]
        client: String,
        /// The mirror's address, like http://192.0.2.1:3142 [default: from the running daemon, else from the
        /// configuration, and this machine's addresses]
        #[arg(long, value_name = "URL", value_parser = mirror_address)]
        at: Option<String>,
        /// The configuration file [default: /etc/hearsay/hearsay.toml, if it exists]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// List the archives by class: URLs, hosts and, as JSON, paths
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The configuration file [default: /etc/hearsay/hearsay.toml, if it exists]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// `hearsay intercept`.
#[derive(Debug, Subcommand)]
pub enum Intercept {
    /// Apply the rules; a second time changes nothing
    Apply(InterceptWhat),
    /// Show which rules are set, which are missing, and which traffic may bypass them
    Check(InterceptWhat),
    /// Remove the rules that hearsay set, and no others
    Remove(InterceptWhat),
}

/// What to intercept.
#[derive(Debug, Args)]
pub struct InterceptWhat {
    /// An interface whose clients' connections are intercepted; may be given more than once
    /// [default: the running daemon's, else the configured ones]
    #[arg(long, value_name = "IFACE")]
    pub interface: Vec<String>,
    /// The port of the transparent listener [default: the running daemon's, else the configured
    /// one, or 3130]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// A destination port of HTTP to intercept; may be given more than once [default: the running
    /// daemon's, else the configured ones, or 80]
    #[arg(long, value_name = "PORT")]
    pub dport: Vec<u16>,
    /// Report as JSON
    #[arg(long)]
    pub json: bool,
}

fn schemes() -> impl TypedValueParser<Value = Selection> {
    PossibleValuesParser::new(Selection::ALL.map(Selection::name)).try_map(|name| name.parse())
}

/// The mirror's address as clients write it: `http://HOST:PORT`. The scheme may be missing.
fn mirror_address(text: &str) -> Result<String, String> {
    let authority = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let is_right = authority.parse::<http::uri::Authority>().is_ok_and(|it| {
        !it.host().is_empty() && it.as_str().len() <= 255 && !it.as_str().contains('@')
    });
    match is_right {
        true => Ok(format!("http://{authority}")),
        false => Err("expected an address such as http://192.0.2.1:3142".to_owned()),
    }
}

impl Run {
    /// The settings of the command line that override the file's.
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

impl Far {
    /// Where the far end's settings are: the file, and the options that override it.
    pub fn given(self, control: Option<PathBuf>) -> FarGiven {
        let overrides = FarOverrides {
            gateways: self.near,
            listen: self.listen,
            store: self.store,
            store_size: self.store_size,
            memory: self.memory,
            private: self.private,
            ca: self.ca,
            control,
        };
        FarGiven { file: self.config, overrides }
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
    fn a_mirrors_address_is_told_with_or_without_its_scheme() {
        for text in ["http://192.0.2.1:3142", "192.0.2.1:3142", "http://192.0.2.1:3142/"] {
            assert_eq!(mirror_address(text).as_deref(), Ok("http://192.0.2.1:3142"));
        }
        let literal = mirror_address("[2001:db8::1]:3142");
        assert_eq!(literal.as_deref(), Ok("http://[2001:db8::1]:3142"));
        for text in ["", "https://a", "http://a/b", "a b", "http://x@y:1"] {
            assert!(mirror_address(text).is_err(), "{text}");
        }
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
