//! The command line, as clap reads it. What the commands do is in `commands` and `realtime`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use node::overhear::Overhear;
use wire::Scheme;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("HEARSAY_COMMIT"), ")");

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong command line or scenario, or \
    something is missing: nothing was built, or a capture cannot be read; 4 a transfer was not what \
    the origin has; 128 and the signal's \
    number: ended by a signal, like 130 after ctrl-C.";

/// A wireless mesh on one machine: real routers, real traffic, an emulated radio.
#[derive(Debug, Parser)]
#[command(name = "hearsay-lab", version = VERSION, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a scenario's mesh, run its transfers, and take everything down again
    Run(Run),
    /// Inside the namespaces that `run` has made: do it
    #[command(hide = true)]
    Inside(Run),
    /// Run a scenario in virtual time, once for each seed
    Sim(Sim),
    /// Hold the simulator against ns-3 and against closed forms
    Validate(Validate),
    /// Repeat experiments of the papers, and put ours beside theirs
    Repro(Repro),
    /// Put several results of one scenario on one page, side by side
    Compare(Compare),
    /// Read captures
    #[command(subcommand)]
    Analyze(Analyze),
    /// Show the scenarios and their keys
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// `hearsay-lab run`.
#[derive(Debug, Clone, Args)]
pub struct Run {
    /// A scenario's name (see `hearsay-lab list`), or a file: ./NAME.toml
    pub scenario: String,
    /// Who intercepts and caches [default: that of the key `paper`, or default]
    #[arg(long, value_name = "SCHEME", value_parser = schemes())]
    pub scheme: Option<Scheme>,
    /// Another value for a key of the scenario; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// All chance comes from here: losses, back-off, order, content of files
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a report with pictures, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Capture what a router's monitor interface shows; may be given more than once
    #[arg(long, value_name = "ROUTER=FILE", value_parser = capture)]
    pub pcap: Vec<(String, String)>,
    /// Leave the mesh standing after the transfers, until ctrl-C
    #[arg(long)]
    pub keep: bool,
    /// No progress, no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab sim`.
#[derive(Debug, Clone, Args)]
pub struct Sim {
    /// A scenario's name (see `hearsay-lab list`), or a file: ./NAME.toml
    pub scenario: String,
    /// Who intercepts and caches, where clients ask for files [default: that of the key `paper`, or default]
    #[arg(long, value_name = "SCHEME", value_parser = schemes())]
    pub scheme: Option<Scheme>,
    /// Another value for a key of the scenario; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// The first run's seed: all its chance comes from there
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many runs, each with the next seed
    #[arg(long, value_name = "K", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub seeds: u64,
    /// How many runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Write the results as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a report, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write what each router's monitor interface shows: DIR/ROUTER.pcap, or of several seeds
    /// DIR/seed-N/ROUTER.pcap
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Fail if a flow or a client got nothing, or a transfer ended early: as a rule that is what came of the run
    #[arg(long)]
    pub strict: bool,
    /// No progress, no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab validate`.
#[derive(Debug, Clone, Args)]
pub struct Validate {
    /// Fewer runs, and fewer cells
    #[arg(long)]
    pub quick: bool,
    /// Run ns-3 as well, where it is installed: writes a program of cases that nothing was tuned to, builds it in
    /// DIR, runs it, and compares by both rules of the medium
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "ns3",
        conflicts_with_all = ["quick", "set"])]
    pub ns3: Option<PathBuf>,
    /// How many runs of each case [default: 5, or 2 with --quick, or 10 with --ns3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// How many runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Another medium than the reference's, for all cases: receiver, reception or dcf
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with pictures, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// No progress, no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab repro`.
#[derive(Debug, Clone, Args)]
pub struct Repro {
    /// Which one, or "all"; without, what there is
    pub name: Option<String>,
    /// How many runs of each point [default: as many as the experiment says]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// A few points only, in seconds
    #[arg(long)]
    pub quick: bool,
    /// With real daemons in real time, which takes hours (ditto, ditto-calibration): what was run is kept in
    /// DIR/NAME-real and not run again
    #[arg(long, conflicts_with = "quick")]
    pub real: bool,
    /// Run only what has this in its name, like "emulab8-one-by-one" or ".end-to-end."; the names are those of
    /// the files there
    #[arg(long, value_name = "TEXT", requires = "real")]
    pub only: Option<String>,
    /// How many runs at a time [default: one for each core; one with --real]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Where CSV, SVG and HTML files go
    #[arg(long, value_name = "DIR", default_value = "repro")]
    pub out: PathBuf,
    /// No progress, no summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// What `run --json` wrote; runs of one scheme with several seeds count as one
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
    /// Where the page goes
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// The scenario, if it is a file of yours [default: the one that the results name]
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<String>,
}

/// `hearsay-lab analyze`.
#[derive(Debug, Subcommand)]
pub enum Analyze {
    /// What a router would have overheard that heard what a capture holds
    Overhear(AnalyzeOverhear),
}

/// `hearsay-lab analyze overhear`.
#[derive(Debug, Args)]
pub struct AnalyzeOverhear {
    /// Captures (pcap or pcapng; Ethernet, 802.11, radiotap), each an observer of its own; - is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What an observer may hold, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, value_parser = memory())]
    pub memory: u64,
    /// Reassemble each stream alone: what was heard of a chunk on several hops is not joined
    #[arg(long)]
    pub streams_alone: bool,
    /// Use a chunk's bytes only behind a head that was heard in the same stream
    #[arg(long)]
    pub need_heads: bool,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No progress, no table
    #[arg(long, short)]
    pub quiet: bool,
}

fn schemes() -> impl TypedValueParser<Value = Scheme> {
    let shown = |it: Scheme| PossibleValue::new(it.name()).help(it.summary());
    PossibleValuesParser::new(Scheme::ALL.map(shown)).try_map(|name| name.parse())
}

fn jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=1024).contains(jobs));
    jobs.ok_or_else(|| "this is no whole number from 1 to 1024".to_owned())
}

/// From the smallest budget of an engine to what no router has.
fn memory() -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(Overhear::BUDGET_MIN as u64..=64 << 30)
}

fn capture(text: &str) -> Result<(String, String), String> {
    setting(text).map_err(|_| "this is not of the form ROUTER=FILE".to_owned())
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("this is not of the form KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
