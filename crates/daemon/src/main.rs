//! `hearsay`: a caching daemon for small mesh routers, and the commands that look at it.
//!
//! *Where to start:* `run.rs` for the daemon; `cli.rs` for the command line; [`dispatch`] for the
//! function that runs each command. Exit codes are in `exit.rs`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;

mod ask;
mod body_credit;
mod cache;
mod changes;
mod cli;
mod clients;
mod config;
mod connections;
mod control;
mod descriptors;
mod disk;
mod doctor;
mod doors;
mod drain;
mod driver;
mod engine_log;
mod entropy;
mod exit;
mod far;
mod get;
mod identity;
mod intercept;
mod judge;
mod keeper;
mod ledger;
mod level;
mod links;
mod log;
#[cfg(feature = "man")]
mod manual;
mod mesh;
mod metrics;
mod mirror;
mod observe;
mod origins;
mod out;
mod overhear;
mod pair;
mod peers;
mod progress;
mod publish;
mod purge;
mod put;
mod query;
mod relayed;
mod reload;
mod request_log;
mod rights;
mod run;
mod selftest;
mod service;
mod show_ledger;
mod show_mirror;
mod show_uplink;
mod since;
mod status;
mod stranded;
mod target;
mod term;
mod transparent;
mod turned_away;
mod uplink;

use cli::{Cli, Command, FarAction, Run};
use config::{Config, FILE_DEFAULT, FarGiven, Given, control_paths};
use exit::Failure;
use term::Style;

fn main() -> ExitCode {
    let ended = match Cli::try_parse() {
        Ok(cli) => dispatch(cli),
        Err(said) => match said.print() {
            Ok(()) => return ExitCode::from(said.exit_code() as u8),
            Err(error) => Err(Failure::writing("standard output", &error)),
        },
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.message.lines().for_each(|line| out::remark(format_args!("hearsay: {line}")));
            failure.exit.into()
        }
    }
}

fn dispatch(cli: Cli) -> Result<(), Failure> {
    let control = cli.control;
    let paths = || control_paths(control.as_deref());
    match cli.command {
        Command::Run(run) => start(&run, control),
        Command::Status { json } => wait(show_status(&paths(), json)),
        Command::Peers { json } => wait(peers::show(&paths(), json)),
        Command::Uplink(args) => wait(show_uplink::run(&args, &paths())),
        Command::Ledger(args) => wait(show_ledger::run(&args, &paths())),
        Command::Far(args) => match args.action {
            Some(FarAction::Status { json }) => wait(far::show(control.as_deref(), json)),
            None => far::run(*args, control),
        },
        Command::Cache(args) => wait(cache::run(&args, &paths())),
        Command::Get(args) => wait(get::run(&args, &paths())),
        Command::Put(args) => wait(put::run(&args, &paths())),
        Command::Intercept { action } => wait(intercept::run(&action, &paths())),
        Command::Mirror { action } => wait(show_mirror::run(&action, control.as_deref())),
        Command::Doctor(args) => wait(doctor::run(&args, &paths())),
        Command::CheckConfig { file, far: true } => check_far_config(file),
        Command::CheckConfig { file, far: false } => check_config(file.as_deref()),
        #[cfg(feature = "completions")]
        Command::Completions { shell } => complete(shell),
        #[cfg(feature = "man")]
        Command::Man { dir: None } => manual::print(),
        #[cfg(feature = "man")]
        Command::Man { dir: Some(dir) } => manual::write_pages(&dir).map_err(Failure::failed),
    }
}

fn start(run: &Run, control: Option<PathBuf>) -> Result<(), Failure> {
    let log = log::start(run.log)?;
    let given = Given { file: run.config.clone(), overrides: run.overrides(control) };
    if run.as_helper {
        return rights::serve(&given);
    }
    let config = fit(&given)?;
    log.set(config.log);
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    rights::check_owner(&config)?;
    let helper = rights::start_helper();
    run::run(config, (given, log), helper).map_err(Failure::failed)
}

/// The settings, if this machine has every interface that they name.
fn fit(given: &Given) -> Result<Config, Failure> {
    let config = given.load().map_err(Failure::usage)?;
    let there = config.access.check_interfaces(host::egress::is_there);
    there.map_err(|wrong| Failure::usage(given.locate(wrong)))?;
    Ok(config)
}

/// Runs a command other than `run` on a tokio runtime of its own.
fn wait(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::failed)?.block_on(command)
}

async fn show_status(paths: &[PathBuf], json: bool) -> Result<(), Failure> {
    let status = ask::status(paths).await?;
    if json { out::json(&status) } else { out::print(status.page(Style::of_stdout())) }
}

fn check_config(file: Option<&Path>) -> Result<(), Failure> {
    let given = Given { file: file.map(Path::to_owned), ..Given::default() };
    let config = fit(&given)?;
    say_right(file.unwrap_or(Path::new(FILE_DEFAULT)), file.is_none())?;
    out::print(config.to_string())?;
    config.warnings.iter().try_for_each(|warning| out::line(format_args!("warning: {warning}")))
}

fn check_far_config(file: Option<PathBuf>) -> Result<(), Failure> {
    let given = FarGiven { file, ..FarGiven::default() };
    let settings = given.load().map_err(Failure::usage)?;
    say_right(given.path(), given.file.is_none())?;
    out::print(settings.to_string())
}

/// Says that a file has no mistakes. `may_lack`: it is the default one, and need not exist.
fn say_right(file: &Path, may_lack: bool) -> Result<(), Failure> {
    match may_lack && !file.exists() {
        true => out::line(format_args!("{} does not exist: the defaults apply", file.display())),
        false => out::line(format_args!("{} has no mistakes", file.display())),
    }
}

#[cfg(feature = "completions")]
fn complete(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut program = <Cli as clap::CommandFactory>::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "hearsay", &mut script);
    out::print(script)
}
