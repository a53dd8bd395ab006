//! The command line, as clap parses it. The commands are in `commands` and `realtime`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use node::overhear::Overhear;
use wire::Scheme;

use crate::redundancy::SMALLEST;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("HEARSAY_COMMIT"), ")");

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong command line or scenario, or \
    something is missing: nothing was built, or a capture cannot be read; 4 a transfer differed from \
    the origin's file; 128 plus the signal's \
    number: ended by a signal, such as 130 after ctrl-C.";

/// A wireless mesh on one machine: real routers, real traffic, an emulated radio.
#[derive(Debug, Parser)]
#[command(name = "hearsay-lab", version = VERSION, after_help = EXIT_CODES)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a scenario's mesh, run its transfers, and take everything down again
    Run(Run),
    /// Run a scenario inside the namespaces that `run` has made
    #[command(hide = true)]
    Inside(Run),
    /// Run a scenario in virtual time, once for each seed
    Sim(Sim),
    /// Compare the simulator with ns-3 and with closed forms
    Validate(Validate),
    /// Repeat experiments of the papers and compare the results with theirs
    Repro(Repro),
    /// Put several results of one scenario on one page
    Compare(Compare),
    /// Analyse captures and files
    #[command(subcommand)]
    Analyze(Analyze),
    /// Plan where a mesh should do what
    #[command(subcommand)]
    Plan(Plan),
    /// Show the scenarios, or one of them with its keys
    List {
        /// A scenario's name, or its file: ./NAME.toml. Without it, each scenario has a line
        scenario: Option<String>,
        /// Print JSON: all scenarios, or this one, with their keys
        #[arg(long)]
        json: bool,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
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
    /// The scheme: which routers intercept and cache [default: the scheme of the key `paper`, or auto, that of
    /// daemons that are told nothing else]
    #[arg(long, value_name = "SCHEME", value_parser = schemes())]
    pub scheme: Option<Scheme>,
    /// Set a key of the scenario; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Seed of all random numbers: losses, back-off, order of requests, content of files
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with pictures, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Capture a router's monitor interface; may be given more than once
    #[arg(long, value_name = "ROUTER=FILE", value_parser = capture)]
    pub pcap: Vec<(String, String)>,
    /// Keep the mesh after the transfers, until ctrl-C
    #[arg(long)]
    pub keep: bool,
    /// Print no progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab sim`.
#[derive(Debug, Clone, Args)]
pub struct Sim {
    /// A scenario's name (see `hearsay-lab list`), or a file: ./NAME.toml
    pub scenario: String,
    /// The scheme, if clients request files: which routers intercept and cache [default: the scheme of the
    /// key `paper`, or auto, that of daemons that are told nothing else]
    #[arg(long, value_name = "SCHEME", value_parser = schemes())]
    pub scheme: Option<Scheme>,
    /// Set a key of the scenario; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Seed of the first run's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of runs, each with the next seed
    #[arg(long, value_name = "K", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub seeds: u64,
    /// Number of runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Write the results as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Capture every router's monitor interface, in DIR/ROUTER.pcap, or with several seeds in
    /// DIR/seed-N/ROUTER.pcap
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write what each router's engine did, a JSON object on each line behind the first, which says where they
    /// come from. For instance: jq -r 'select(.event == "source") | [.at_ns, .node, .source] | @tsv' FILE
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Fail if a flow or a client got no data, or a transfer ended early. Without this option that is a
    /// result, not a failure
    #[arg(long)]
    pub strict: bool,
    /// Print no progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab validate`.
#[derive(Debug, Clone, Args)]
pub struct Validate {
    /// Make fewer runs of fewer cells
    #[arg(long)]
    pub quick: bool,
    /// Run ns-3 as well, if it is installed: write a program of cases that nothing was tuned to, build it in
    /// DIR, run it, and compare under both rules of the medium
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "ns3",
        conflicts_with_all = ["quick", "set"])]
    pub ns3: Option<PathBuf>,
    /// Number of runs of each case [default: 5, or 2 with --quick, or 10 with --ns3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Number of runs at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Use another medium than the reference's in all cases; KEY is receiver, reception or dcf
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with pictures, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print no progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab repro`.
#[derive(Debug, Clone, Args)]
pub struct Repro {
    /// An experiment, or "all"; without it, the experiments are listed
    pub name: Option<String>,
    /// Number of runs of each point [default: that of the experiment]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub seeds: Option<u64>,
    /// Run only a few points, which takes seconds
    #[arg(long)]
    pub quick: bool,
    /// Run real daemons in real time, which takes hours (ditto, ditto-calibration). Outcomes are kept in
    /// DIR/NAME-real, and those runs are not made again
    #[arg(long, conflicts_with = "quick")]
    pub real: bool,
    /// Make only runs with TEXT in their names, like "emulab8-one-by-one" or ".end-to-end."; the names are
    /// those of the kept files
    #[arg(long, value_name = "TEXT", requires = "real")]
    pub only: Option<String>,
    /// Number of runs at a time [default: one for each core; one with --real]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Folder for CSV, SVG and HTML files
    #[arg(long, value_name = "DIR", default_value = "repro")]
    pub out: PathBuf,
    /// Print no progress and no summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Results of `run --json`; runs of one scheme with several seeds are pooled
    #[arg(required = true)]
    pub results: Vec<PathBuf>,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    pub html: PathBuf,
    /// Draw the mesh without Hearsay and with it, as SVG; some of the results must be of end-to-end
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// The scenario's file, if it is not a built-in scenario [default: the scenario that the results name]
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<String>,
}

/// `hearsay-lab analyze`.
#[derive(Debug, Subcommand)]
pub enum Analyze {
    /// Show what a router would have overheard that received the frames of a capture
    Overhear(AnalyzeOverhear),
    /// Show what schemes of chunking would save of content that resembles earlier content (Wanax, section 4)
    Redundancy(AnalyzeRedundancy),
}

/// `hearsay-lab analyze overhear`.
#[derive(Debug, Args)]
pub struct AnalyzeOverhear {
    /// Captures (pcap or pcapng, packed by gzip or not), each a separate observer; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Memory of an observer, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, value_parser = memory())]
    pub memory: u64,
    /// Reassemble each stream alone: parts of a chunk from several hops are not joined
    #[arg(long)]
    pub streams_alone: bool,
    /// Use a chunk's bytes only after a head that was heard in the same stream
    #[arg(long)]
    pub need_heads: bool,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab analyze redundancy`.
#[derive(Debug, Args)]
pub struct AnalyzeRedundancy {
    /// Versions of a file, the oldest first; of a folder, all files are joined in the order of their paths; of a
    /// capture (pcap or pcapng, packed by gzip or not), its TCP streams. If there are several, the first one only fills
    /// the stores, and the others are counted
    #[arg(required = true, value_name = "FILE")]
    pub inputs: Vec<PathBuf>,
    /// The least average length of chunks, in bytes: a power of two from 32 to 8192
    #[arg(long, value_name = "BYTES", default_value_t = SMALLEST, value_parser = smallest)]
    pub smallest: u32,
    /// Memory of the tables of names, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30,
        value_parser = clap::value_parser!(u64).range(1 << 16..=1 << 40))]
    pub memory: u64,
    /// Time of a disk operation before its first byte, in ms
    #[arg(long, value_name = "MS", default_value_t = 10.0, value_parser = positive)]
    pub seek_ms: f64,
    /// Rate of the disk from there, in megabytes a second
    #[arg(long, value_name = "MB/S", default_value_t = 80.0, value_parser = positive)]
    pub disk_rate: f64,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw savings, disk operations, memory, levels and effective bandwidth in this folder, as SVG
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
    /// Print no progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// `hearsay-lab plan`.
#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Show which routers become interlay nodes, which pace what passes between them (WINE, chapter 3)
    Interlay(PlanInterlay),
}

/// `hearsay-lab plan interlay`.
#[derive(Debug, Args)]
pub struct PlanInterlay {
    /// A scenario's name (see `hearsay-lab list`), or its file: ./NAME.toml; or another file, which has a link
    /// interference matrix: a line a>b for each link, and a line a>b b>c 0.5 for each two that disturb each other
    #[arg(value_name = "SCENARIO|MATRIX")]
    pub mesh: String,
    /// Where the matrix of a scenario comes from [default: model]
    #[arg(long, value_name = "SOURCE", value_enum)]
    pub matrix: Option<MatrixSource>,
    /// Set a key of the scenario; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Seed of random places, and of simulated pairs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of pairs that are simulated at a time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Write the plan and the matrix as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the mesh with its areas and interlay nodes, as SVG
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Print no progress and no plan
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where a scenario's link interference matrix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatrixSource {
    /// Computed by a model of two contending flows (Garetto, Shi, Knightly 2005)
    Model,
    /// Simulated: two saturated flows for each two links, and each direction
    Simulate,
}

fn schemes() -> impl TypedValueParser<Value = Scheme> {
    let shown = |it: Scheme| PossibleValue::new(it.name()).help(it.summary());
    PossibleValuesParser::new(Scheme::ALL.map(shown)).try_map(|name| name.parse())
}

fn jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=1024).contains(jobs));
    jobs.ok_or_else(|| "this is not a whole number from 1 to 1024".to_owned())
}

fn smallest(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok();
    let bytes = bytes.filter(|it: &u32| it.is_power_of_two() && (SMALLEST..=8192).contains(it));
    bytes.ok_or_else(|| format!("this is not a power of two from {SMALLEST} to 8192"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it: &f64| (1e-6..=1e9).contains(it));
    number.ok_or_else(|| "this is not a number from 0.000001 to 1000000000".to_owned())
}

/// From an engine's smallest budget to more memory than any router has.
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
mod tests;
