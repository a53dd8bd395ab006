//! A private machine for a test, which starts itself again in new namespaces.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

const INSIDE: &str = "HEARSAY_TEST_INSIDE_NAMESPACE";

/// Runs `body` as root of a private machine, or reports that this is not possible here: namespaces
/// are not permitted, or the script `needed` fails inside.
pub fn inside(test: &str, needed: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let flags = if is_root { "-nm" } else { "-Urnm" };
    let args = [flags, "--pid", "--fork", "--mount-proc", "--kill-child"];
    let can = Command::new("unshare")
        .args(args)
        .args(["sh", "-c", &format!("{needed} && ip link")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) {
        return skipped(test, &format!("network namespaces or `{needed}` do not work here"));
    }
    // The harness names the thread of a test after it, with its modules.
    let whole_name = std::thread::current().name().expect("a test's thread").to_owned();
    let output = Command::new("unshare")
        .args(args)
        .arg(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", &whole_name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("unshare starts");
    // A wrong test name would run no test, and succeed.
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "inside its namespace: {said}");
}

/// Prints the message even when the test's output is captured.
pub fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

/// Runs a script, which must succeed.
pub fn sh(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status().expect("sh starts");
    assert!(status.success(), "failed: {script}");
}
