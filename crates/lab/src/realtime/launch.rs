//! The launcher: the part of a run that stays outside its namespaces. It checks that everything needed is
//! there, starts itself again inside, and waits.
//!
//! It holds the other end of the inner process's standard input, the lifeline. When that closes, on a signal
//! or because the launcher has died, the inner process ends. The kernel then ends all processes in its
//! namespaces, and removes namespaces, devices and files.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sim::scenario::Scenario;
use wire::Scheme;

use super::require;
use super::run::ENTER;
use crate::cli::Run;
use crate::console::writable;
use crate::failure::Failure;

/// How long the inner process may take to end after the lifeline is cut.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the launcher waits for.
enum Event {
    Signal(i32),
    Ended(io::Result<ExitStatus>),
}

/// The requested scheme, or that of the scenario's paper.
pub fn scheme(args: &Run, scenario: &Scenario) -> Result<Scheme, Failure> {
    scenario.scheme(args.scheme).map_err(Failure::refused)
}

/// `hearsay-lab run`; `words` is its command line after `run`.
pub fn launch(args: &Run, words: Vec<OsString>) -> Result<(), Failure> {
    let scenario =
        Scenario::load_seeded(&args.scenario, &args.set, args.seed).map_err(Failure::refused)?;
    require::playable(&scenario)?;
    require::programs(&scenario, scheme(args, &scenario)?)?;
    require::routers(&scenario, args)?;
    writable::outputs(args)?;
    require::rights()?;
    // From here on a signal removes what was built.
    let (events, next) = channel();
    let signals = events.clone();
    let mut caught = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let catching = caught.handle();
    std::thread::spawn(move || {
        caught.forever().try_for_each(|signal| signals.send(Event::Signal(signal)))
    });
    let end = start_inside(words).map_err(Failure::from).and_then(|mut child| {
        let lifeline = child.stdin.take();
        let inside = rustix::process::Pid::from_child(&child);
        std::thread::spawn(move || events.send(Event::Ended(child.wait())));
        wait(&next, lifeline, inside)
    });
    catching.close();
    end
}

fn start_inside(words: Vec<OsString>) -> io::Result<Child> {
    Command::new("unshare")
        .args(require::unshare_flags())
        .arg("--")
        .arg(env::current_exe()?)
        .arg("inside")
        .args(words)
        .env("PATH", env::join_paths(require::complete_path()).map_err(io::Error::other)?)
        .env(ENTER, how_to_enter())
        .stdin(Stdio::piped())
        // A process group of its own: ctrl-C on the terminal is for the launcher.
        .process_group(0)
        .spawn()
}

/// The command that enters the namespaces. Our child is `unshare`; its child is the first process inside.
fn how_to_enter() -> String {
    let us = std::process::id();
    let namespaces = require::namespaces().join(" ");
    format!("nsenter --target $(pgrep -P $(pgrep -P {us})) {namespaces} --preserve-credentials")
}

fn wait(
    next: &Receiver<Event>,
    mut lifeline: Option<ChildStdin>,
    inside: rustix::process::Pid,
) -> Result<(), Failure> {
    let mut interrupted = None;
    loop {
        let event = if interrupted.is_some() {
            next.recv_timeout(TIMEOUT)
        } else {
            next.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match event {
            Ok(Event::Signal(signal)) => {
                interrupted.get_or_insert(signal);
                drop(lifeline.take());
            }
            Ok(Event::Ended(status)) => return ended(status?, interrupted),
            // The inner process hangs. `unshare` ends it when killed.
            Err(_) => rustix::process::kill_process(inside, rustix::process::Signal::KILL)
                .map_err(io::Error::from)?,
        }
    }
}

fn ended(status: ExitStatus, interrupted: Option<i32>) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    // A kept run ends by ctrl-C, and may have failed before.
    if let Some(failure) = status.code().and_then(Failure::said_inside) {
        return Err(failure);
    }
    match interrupted {
        Some(signal) => Err(Failure { code: 128 + signal as u8, message: "interrupted".into() }),
        None => {
            Err(Failure::failed(format!("the process inside the namespaces was ended ({status})")))
        }
    }
}
