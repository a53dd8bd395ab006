//! `hearsay-lab`: a wireless mesh on one machine, in real time with real daemons, or in virtual time.
//!
//! *What this is:* each router of a scenario has a network namespace, whose interface `wl0` is connected to
//! the others' by the medium of `radio`; this program drives that by the clock. *Where to start:*
//! `realtime/`, runs of real daemons; `commands/`, one file for each other command, such as
//! `commands/simulate.rs` for runs in virtual time; `console.rs`, output. *What it never does:* send a packet
//! out of its own namespaces, or end a process that it did not start.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

mod cli;
mod commands;
mod console;
mod failure;
mod ground;
mod origin;
mod realtime;
mod redundancy;

use cli::{Analyze, Cli, Command, Plan};
use commands::{analyze, compare, list, plan, repro, simulate, validate};
use failure::Failure;
use realtime::{launch, run};

fn main() -> ExitCode {
    let ended = match Cli::try_parse() {
        Ok(cli) => dispatch(cli.command),
        Err(said) => match said.print() {
            Ok(()) => return ExitCode::from(said.exit_code() as u8),
            Err(error) => Err(Failure::writing("cannot write to standard output", &error)),
        },
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.message.lines().for_each(console::note);
            failure.end()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => launch::launch(&args, std::env::args_os().skip(2).collect()),
        Command::Inside(args) => run::run(&args).map_err(Failure::inside),
        Command::Sim(args) => simulate::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Repro(args) => repro::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Analyze(Analyze::Overhear(args)) => analyze::overhear(&args),
        Command::Analyze(Analyze::Redundancy(args)) => analyze::redundancy::redundancy(&args),
        Command::Plan(Plan::Interlay(args)) => plan::interlay(&args),
        Command::List { scenario, json } => list::show(scenario.as_deref(), json),
        Command::Completions { shell } => {
            let mut page = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hearsay-lab", &mut page);
            console::out(&page)
        }
        Command::Man => console::out(&manual()?),
    }
}

/// The manual page of the program and its commands.
fn manual() -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut out)?;
    let shown = |it: &&clap::Command| !it.is_hide_set() && it.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        // A command with subcommands is described by these.
        let inner: Vec<_> = sub.get_subcommands().filter(shown).collect();
        for sub in if inner.is_empty() { vec![sub] } else { inner } {
            let manual = clap_mangen::Man::new(sub.clone());
            manual.render_name_section(&mut out)?;
            manual.render_synopsis_section(&mut out)?;
            manual.render_options_section(&mut out)?;
        }
    }
    Ok(out)
}
