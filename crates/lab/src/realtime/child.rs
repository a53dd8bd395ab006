//! Background programs that run as long as the run.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::namespace::within;
use super::network::WORKSPACE;

/// How often a condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A background program. It is killed when this is dropped.
#[derive(Debug)]
pub struct Background {
    name: String,
    child: Child,
}

impl Background {
    /// Starts a program in a namespace; its output goes to a log file with this name.
    pub fn start(namespace: &str, name: &str, command: &mut Command) -> io::Result<Self> {
        let log = File::create(log_path(name))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // A process group of its own: ctrl-C on the terminal is for the lab, which then ends all programs.
        command.process_group(0);
        let child = within(namespace, || command.spawn())??;
        Ok(Self { name: name.to_owned(), child })
    }

    /// Fails with the program's last output if it has ended.
    pub fn check(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(io::Error::other(format!("{} ended with {status}: {}", self.name, self.said())))
            }
        }
    }

    /// The last lines of its output.
    pub fn said(&self) -> String {
        let text = fs::read_to_string(log_path(&self.name)).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        match &lines[lines.len().saturating_sub(3)..] {
            [] => "it said nothing".to_owned(),
            last => last.join(" | "),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds, while these programs run. The error names the condition.
pub fn wait_for(
    what: &str,
    timeout: Duration,
    programs: &mut [Background],
    mut holds: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    let deadline = Instant::now() + timeout;
    while !holds()? {
        programs.iter_mut().try_for_each(Background::check)?;
        if Instant::now() >= deadline {
            let text = format!("timed out after {} s: {what}", timeout.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn log_path(name: &str) -> PathBuf {
    PathBuf::from(WORKSPACE).join(format!("{name}.log"))
}
