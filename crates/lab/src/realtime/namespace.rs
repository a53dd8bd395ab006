//! Network namespaces: `ip` makes them, threads enter them.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Runs `work` on a thread that has moved to a namespace. Sockets and devices made there, and processes
/// started there, stay in the namespace.
pub fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| {
            let file = fs::File::open(format!("/run/netns/{namespace}"))?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        moved.join().expect("the work does not panic")
    })
}

/// Gives `ip` a list of commands, here or in a namespace. The error is the output of `ip`.
pub fn ip(namespace: Option<&str>, commands: &[String]) -> io::Result<()> {
    let mut ip = Command::new("ip");
    if let Some(namespace) = namespace {
        ip.args(["-n", namespace]);
    }
    let mut child = ip
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let text = commands.join("\n") + "\n";
    // If `ip` ends before it has read everything, its output is the error, not the broken pipe.
    let _ = child.stdin.take().expect("it is piped").write_all(text.as_bytes());
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let place = namespace.map(|name| format!(" in {name}")).unwrap_or_default();
    Err(io::Error::other(format!("ip{place}: {}", said.trim().replace('\n', "; "))))
}

/// Sets kernel parameters, as `name=value` with dots or slashes, in the thread's namespace.
pub fn sysctl(settings: &[&str]) -> io::Result<()> {
    for setting in settings {
        let (name, value) = setting.split_once('=').expect("name=value");
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
    }
    Ok(())
}
