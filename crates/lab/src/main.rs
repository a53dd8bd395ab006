//! `hearsay-lab`: a wireless mesh on one machine: in real time with real daemons, or in virtual time.
//!
//! *What this is:* each router of a scenario in a network namespace, its interface `wl0` joined to
//! the others' by the medium of `radio`, which this program drives by the clock. *Where to start:*
//! `inside.rs`, a run from beginning to end; `air.rs`, the medium's loop; `outside.rs`, how a run
//! is begun and ended; `simulate.rs`, runs in virtual time. *What it never does:* send anything out of its own namespaces, or end
//! anything that it did not start.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

mod address;
mod air;
mod analyze;
mod buffer;
mod captures;
mod child;
mod cli;
mod clients;
mod compare;
mod failure;
mod ground;
mod inside;
mod jobs;
mod lateness;
mod lifeline;
mod list;
mod namespace;
mod network;
mod origin;
mod output;
mod outside;
mod overheard;
mod progress;
mod realtime;
mod repro;
mod require;
mod routers;
mod say;
mod simulate;
mod table;
mod tap;
mod validate;
mod verdict;

use cli::{Analyze, Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(),
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => outside::run(&args, std::env::args_os().skip(2).collect()),
        Command::Inside(args) => inside::run(&args).map_err(Failure::inside),
        Command::Sim(args) => simulate::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Repro(args) => repro::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Analyze(Analyze::Overhear(args)) => analyze::overhear(&args),
        Command::List { json } => list::show(json),
        Command::Completions { shell } => {
            let mut page = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hearsay-lab", &mut page);
            Ok(say::out(&page)?)
        }
        Command::Man => Ok(say::out(&manual()?)?),
    }
}

/// One page for the program and its commands.
fn manual() -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut out)?;
    let shown = |it: &&clap::Command| !it.is_hide_set() && it.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        // Of a command that has commands, these are what can be done.
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
