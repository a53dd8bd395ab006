//! What nobody reads: a closed pipe ends a command quietly by SIGPIPE, as it does other programs, and a daemon goes on.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::world::{Hearsay, Script, World};

/// How a command ends whose standard output nobody reads, and what it says on standard error.
fn unread(command: &mut Command) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output();
    let output = output.expect("it starts");
    (output.status.signal(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn a_closed_pipe_ends_every_command_quietly() {
    let world = World::new();
    let origin = Script::saying(answer(&[7; 300_000]));
    let hearsay = Hearsay::start(&world);
    let control = hearsay.control().display().to_string();
    let file = world.write("file", b"published").display().to_string();
    let (url, store) = (origin.url("object"), world.path("store").display().to_string());
    let quiet = (Some(Signal::PIPE.as_raw()), String::new());
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["peers"],
        &["peers", "--json"],
        &["ledger"],
        &["ledger", "--csv"],
        &["cache"],
        &["cache", "--json"],
        &["uplink", "--key", "--store", &store],
        &["get", &url, "-q", "-o", "/dev/stdout"],
        &["put", &file],
        &["put", "--list"],
        &["intercept", "check", "--json"],
        &["mirror", "list"],
        &["mirror", "setup", "pip", "--at", "http://[::1]:3142"],
        &["doctor"],
        &["doctor", "--json"],
        &["check-config"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["help", "get"],
        &["--version"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearsay"));
        let ended = unread(command.args(["--control", &control]).args(args));
        assert_eq!(ended, quiet, "{args:?}");
    }
}

#[test]
fn an_output_that_is_full_is_an_error_that_says_so() {
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let command = Command::new(env!("CARGO_BIN_EXE_hearsay"))
        .arg("man")
        .stdout(full)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&command.stderr);
    assert_eq!(command.status.code(), Some(1), "{said}");
    assert!(said.starts_with("hearsay: cannot write standard output: No space left"), "{said}");
}

#[test]
fn an_error_that_nobody_reads_keeps_its_exit_code() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearsay"));
    let status = command.args(["check-config", "/nowhere"]).stderr(writer).status();
    assert_eq!(status.expect("it starts").code(), Some(2));
}

#[test]
fn a_daemon_whose_log_nobody_reads_goes_on() {
    let world = World::new();
    let origin = Script::saying(answer(b"hello"));
    let closed = "exec 2> >(exec true); wait $!; exec \"$@\"";
    let mut hearsay = Hearsay::start_under(&world, &["bash", "-c", closed, "-"], &[]);
    assert_eq!(hearsay.get(&origin.url("object")).body, b"hello");
    hearsay.terminate();
}
