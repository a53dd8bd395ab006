//! What runs the programs `nft` and `ip`, and reads the kernel's settings.

use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Error;

/// How long a program may take. One that hangs would hold up whoever waits for it, and with it the removal of the rules.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A kernel setting in the network namespace of this thread.
pub(super) fn sysctl(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?;
    Some(text.trim().to_owned())
}

/// Runs a command that queries something. `None`: the command reports that it does not exist.
pub(super) fn query(program: &'static str, args: &[String]) -> Result<Option<String>, Error> {
    match run(program, args, None) {
        Ok(text) => Ok(Some(text)),
        Err(Error::Command { .. } | Error::Ruleset { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Runs a command, and returns its output.
pub(super) fn run(
    program: &'static str,
    args: &[String],
    input: Option<&str>,
) -> Result<String, Error> {
    let command = format!("{program} {}", args.join(" "));
    let output = output_of(program, args, input).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::ProgramMissing {
            program,
            package: if program == "nft" { "nftables" } else { "iproute2" },
        },
        _ => Error::Command { command: command.clone(), message: error.to_string() },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let message = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    let message = message.trim().to_owned();
    Err(if said.contains("Operation not permitted") {
        Error::NotPermitted { command }
    } else if program == "nft" {
        Error::Ruleset { message }
    } else {
        Error::Command { command, message }
    })
}

fn output_of(program: &str, args: &[String], input: Option<&str>) -> io::Result<Output> {
    let mut child = spawn(program, args, input.is_some()).or_else(|error| {
        // The PATH of ordinary users lacks /usr/sbin, where Debian installs both programs.
        if error.kind() == io::ErrorKind::NotFound {
            spawn(&format!("/usr/sbin/{program}"), args, input.is_some())
        } else {
            Err(error)
        }
    })?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that fails early closes its input; its exit status then gives the reason.
        let _ = stdin.write_all(text.as_bytes());
    }
    output_within(child, LIMIT)
}

/// What a program says until it ends. After this long it is killed.
fn output_within(mut child: Child, limit: Duration) -> io::Result<Output> {
    let begun = Instant::now();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    while out.is_some() || err.is_some() {
        let left = limit.saturating_sub(begun.elapsed());
        let waited =
            wait_for_any(&[out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd)], left);
        let [out_is_ready, err_is_ready] = match waited {
            Ok(ready) => ready,
            Err(error) => {
                // If it has ended meanwhile, there is nothing to kill.
                let _ = child.kill();
                child.wait()?;
                return Err(error);
            }
        };
        if out_is_ready {
            read_some(&mut out, &mut stdout)?;
        }
        if err_is_ready {
            read_some(&mut err, &mut stderr)?;
        }
    }
    Ok(Output { status: child.wait()?, stdout, stderr })
}

/// Waits until one of these can be read, and says which.
fn wait_for_any(
    files: &[Option<std::os::fd::BorrowedFd<'_>>; 2],
    left: Duration,
) -> io::Result<[bool; 2]> {
    let mut polled: Vec<_> =
        files.iter().flatten().map(|it| PollFd::from_borrowed_fd(*it, PollFlags::IN)).collect();
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut polled, Some(&left)) {
        Err(Errno::INTR) => return Ok([false; 2]),
        Ok(0) => {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long and was ended"));
        }
        other => other?,
    };
    let mut ready = polled.iter().map(|it| !it.revents().is_empty());
    Ok(files.map(|it| it.is_some() && ready.next() == Some(true)))
}

/// Reads what is there; at its end, the file is closed.
fn read_some(file: &mut Option<impl Read>, to: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    let length = file.as_mut().map_or(Ok(0), |it| it.read(&mut bytes))?;
    to.extend_from_slice(&bytes[..length]);
    if length == 0 {
        *file = None;
    }
    Ok(())
}

fn spawn(program: &str, args: &[String], has_input: bool) -> io::Result<Child> {
    Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(if has_input { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = run("hearsay-no-such-program", &[], None).unwrap_err();
        assert!(matches!(error, Error::ProgramMissing { .. }), "{error}");
    }

    #[test]
    fn all_that_a_program_says_is_read() {
        let script = "yes out | head -c 200000; yes err | head -c 100000 >&2; exit 3";
        let child = spawn("sh", &["-c".into(), script.into()], false).expect("a shell");
        let output = output_within(child, LIMIT).expect("it ends");
        assert_eq!((output.stdout.len(), output.stderr.len()), (200_000, 100_000));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let child = spawn("sleep", &["1000000".into()], false).expect("a program");
        let process = child.id();
        let error = output_within(child, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
    }
}
