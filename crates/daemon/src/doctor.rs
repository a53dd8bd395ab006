//! `hearsay doctor`: why nothing is saved. Each check is one line, and the next step where something is wrong.
//!
//! *What this is:* checks, a file for each group of them in `doctor/`. Each reads something, and a function without
//! I/O judges what was read, so that tests judge recorded readings too. *Who calls it:* `main.rs`, and `selftest.rs`
//! for those that the daemon makes itself. *What it never does:* mend something, or send anything beyond this machine
//! but what `outside.rs` asks. *Where to start:* [`own`] lists the checks.

use std::future::poll_fn;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::task::Poll;

use host::egress;
use rustix::net::sockopt::socket_peercred;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::ask;
use crate::cli::Doctor;
use crate::config::{Config, Overrides};
use crate::exit::Failure;
use crate::ledger::unix_now;
use crate::out;
use crate::status::{Finding, Verdict};
use crate::term::Style;

mod kernel;
mod links;
mod machine;
mod mesh;
mod outside;
mod page;
mod process;
mod rules;
mod view;

use machine::Theirs;

pub use kernel::Kernel;
pub use machine::{BUILT, GROUPS};
pub use view::View;

/// The checks that a daemon makes of itself: they read files, sockets and the kernel's tables, and change nothing.
/// They wait for the kernel and the resolver, so they belong on a thread of their own.
pub fn own(view: &View, theirs: &Theirs) -> Vec<Finding> {
    let mut found = vec![
        machine::clock(unix_now(), theirs),
        machine::disk(view),
        machine::memory(view),
        rules::set(view),
        rules::offload(view),
        mesh::route(view),
        mesh::peers(view),
        mesh::overhearing(view),
        outside::dns(),
        outside::far_end(view),
        process::rights(view),
    ];
    found.extend(links::check(view));
    found.sort_by_key(|it| it.check);
    found
}

/// Makes all checks, and prints what they found. Fails with exit code 1 if something is broken, with 2 if something
/// could not be looked at.
pub async fn run(args: &Doctor, paths: &[PathBuf]) -> Result<(), Failure> {
    // What the checks set up must be removed even if somebody is impatient.
    let mut stops = stops().map_err(Failure::failed)?;
    let config =
        Config::load(args.config.as_deref(), &Overrides::default()).map_err(Failure::usage)?;
    let mut paths = paths.to_vec();
    if args.config.is_some() && !paths.contains(&config.control) {
        paths.push(config.control.clone());
    }
    let status = ask::status(&paths).await;
    let peers =
        if status.is_ok() { ask::peers(&paths).await.unwrap_or_default() } else { Vec::new() };
    let process = if status.is_ok() { paths.iter().find_map(process_at) } else { None };
    let daemon = process::running(status.as_ref(), process);
    let out = match &status {
        Ok(status) => status.intercept.out.clone(),
        Err(_) => {
            let egress = egress::follow(config.access.out.clone(), &config.mesh.interfaces).await;
            egress.map(|it| it.interfaces()).unwrap_or_default()
        }
    };
    let view = View { config, status: status.ok(), peers, process, out, kernel: Kernel::Own };
    let upstream = outside::look(&view).await;
    let theirs = upstream.clock();
    let look = tokio::task::spawn_blocking(move || {
        let mut found = own(&view, &theirs);
        found.push(process::ports(&view));
        found.extend(rules::through(&view));
        found
    });
    let mut found = look.await.map_err(Failure::failed)?;
    found.extend([daemon, outside::judge_upstream(&upstream)]);
    found.sort_by_key(|it| it.check);
    say(&found, args.json)?;
    let is_stopped = is_stopped(&mut stops).await;
    match page::all(&found) {
        _ if is_stopped => Err(Failure::failed("interrupted")),
        Verdict::Broken => Err(Failure::failed(page::summary(&found))),
        Verdict::Unknown => Err(Failure::unseen(page::summary(&found))),
        Verdict::Fine | Verdict::Off => Ok(()),
    }
}

/// What would end the program where it stands: Ctrl-C, `kill`, and a terminal or a connection to it that is closed.
fn stops() -> io::Result<[Signal; 3]> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [interrupt, terminate, hangup] = kinds.map(signal);
    Ok([interrupt?, terminate?, hangup?])
}

/// Whether one of these signals has come.
async fn is_stopped(stops: &mut [Signal]) -> bool {
    poll_fn(|cx| Poll::Ready(stops.iter_mut().any(|it| it.poll_recv(cx).is_ready()))).await
}

fn say(found: &[Finding], json: bool) -> Result<(), Failure> {
    if json {
        return out::json(&page::as_json(found));
    }
    let style = Style::of_stdout();
    found.iter().try_for_each(|it| out::print(page::lines(it, style)))
}

/// An error in words, without the number that follows them.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The process that listens on a control socket; `None` if it cannot be seen from here.
fn process_at(path: &PathBuf) -> Option<u32> {
    let stream = UnixStream::connect(path).ok()?;
    let process = socket_peercred(&stream).ok()?.pid.as_raw_nonzero().get();
    u32::try_from(process).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};
    use std::time::Duration;

    #[tokio::test(flavor = "current_thread")]
    async fn a_closed_terminal_does_not_end_it_before_it_has_cleaned_up() {
        let mut stops = stops().expect("signals can be awaited");
        assert!(!is_stopped(&mut stops).await);
        // Not awaited, this would end the test's process.
        kill_process(getpid(), rustix::process::Signal::HUP).expect("one's own process");
        let comes = async {
            while !is_stopped(&mut stops).await {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), comes).await.expect("the signal is seen");
    }
}
