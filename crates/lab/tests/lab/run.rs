//! A running `hearsay-lab`.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::processes::{Process, family};
use super::{Ended, wait_until};

/// A running lab. Dropping it kills the lab, which must then end all its processes.
pub struct Run {
    child: Child,
    began: Instant,
    out: Said,
    err: Said,
}

/// The lab's output so far.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Run {
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().expect("it starts");
        let out = Said::listen(child.stdout.take().expect("it is piped"));
        let err = Said::listen(child.stderr.take().expect("it is piped"));
        Self { child, began, out, err }
    }

    pub fn id(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// The lab's process and all its descendants.
    pub fn family(&self) -> Vec<Process> {
        family(self.id())
    }

    /// Waits until this appears on standard error, and returns all of standard error.
    #[track_caller]
    pub fn wait_for_word(&mut self, word: &str) -> String {
        self.wait_while_it_runs(word, |run| run.err.text().contains(word));
        self.err.text()
    }

    /// Waits until a descendant of the lab runs a program of this name.
    #[track_caller]
    pub fn wait_for_program(&mut self, name: &str) -> Process {
        let find = |run: &Self| run.family().into_iter().rfind(|it| it.name == name);
        let mut found = None;
        self.wait_while_it_runs(name, |run| {
            found = find(run);
            found.is_some()
        });
        found.expect("it was waited for")
    }

    /// Waits until the lab's process inside the namespaces exists.
    #[track_caller]
    pub fn wait_for_inside(&mut self) -> Process {
        let mut found = None;
        self.wait_while_it_runs("the inside", |run| {
            let mut own = run.family().into_iter().skip(1);
            found = own.rfind(|it| it.name.starts_with("hearsay-lab") && it.id != run.id());
            found.is_some()
        });
        found.expect("it was waited for")
    }

    #[track_caller]
    fn wait_while_it_runs(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let mut has_ended = false;
        let said = Arc::clone(&self.err.bytes);
        let otherwise = || format!("{what}: {}", text(&said));
        wait_until(otherwise, || {
            // The lab's output is complete once the reader has ended.
            let holds = holds(self);
            assert!(holds || !has_ended, "it ended before {what}: {}", self.err.text());
            has_ended = matches!(self.child.try_wait(), Ok(Some(_))) && self.err.is_complete();
            holds
        });
    }

    pub fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Waits for the lab's end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let mut status = None;
        let said = Arc::clone(&self.err.bytes);
        wait_until(
            || format!("it does not end: {}", text(&said)),
            || {
                status = self.child.try_wait().expect("it is our child");
                status.is_some()
            },
        );
        let took = self.began.elapsed();
        let otherwise = || "another process still has its standard output or error".to_owned();
        wait_until(otherwise, || self.out.is_complete() && self.err.is_complete());
        let status = status.expect("it was waited for");
        Ended { status, out: self.out.text(), err: self.err.text(), took }
    }
}

/// Kills a process of a run with SIGKILL.
pub fn kill(process: &Process) {
    send(process.id, Signal::KILL);
}

/// Sends a signal. The process may have ended already.
fn send(id: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(id).expect("no process has the id 0"), signal);
}

impl Drop for Run {
    fn drop(&mut self) {
        // The lab may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn listen(mut from: impl Read + Send + 'static) -> Self {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let to = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut block) {
                to.lock().unwrap_or_else(PoisonError::into_inner).extend(&block[..length]);
            }
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        text(&self.bytes)
    }

    fn is_complete(&self) -> bool {
        self.reader.is_finished()
    }
}

fn text(bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}
