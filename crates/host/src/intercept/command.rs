//! What runs the programs `nft` and `ip`, and reads the kernel's settings.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use super::Error;

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
        std::io::ErrorKind::NotFound => Error::ProgramMissing {
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

fn output_of(program: &str, args: &[String], input: Option<&str>) -> std::io::Result<Output> {
    let mut child = spawn(program, args, input.is_some()).or_else(|error| {
        // The PATH of ordinary users lacks /usr/sbin, where Debian installs both programs.
        if error.kind() == std::io::ErrorKind::NotFound {
            spawn(&format!("/usr/sbin/{program}"), args, input.is_some())
        } else {
            Err(error)
        }
    })?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that fails early closes its input; its exit status then gives the reason.
        let _ = stdin.write_all(text.as_bytes());
    }
    child.wait_with_output()
}

fn spawn(program: &str, args: &[String], has_input: bool) -> std::io::Result<std::process::Child> {
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
}
