//! Tools of the black-box tests: the daemon, clients and origins as real processes on loopback or in a private
//! network.
//!
//! *What this is:* [`World`], a temporary directory; [`Hearsay`], the daemon under test; [`Nginx`], a
//! well-behaved origin, and [`Script`], an origin that sends any bytes; [`Curl`] and [`Raw`], clients;
//! [`network`], three namespaces in a row. *What it never does:* wait for a fixed time, or end a process that it
//! did not start. `Drop` ends processes and removes files, so declare each value before its users.

use std::fmt::Debug;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

mod client;
mod far_end;
mod hearsay;
pub mod network;
mod nginx;
mod reply;
pub mod row;
pub mod schema;
mod script;
mod tenant;

pub use client::{Curl, Raw};
pub use far_end::{FarEnd, Site, key_of_gateway};
pub use hearsay::Hearsay;
pub use nginx::Nginx;
pub use reply::Reply;
pub use script::{Script, Visit};
pub use tenant::Tenant;

/// How long a test waits for a condition; a busy machine may need most of it.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A directory for one test.
pub struct World(tempfile::TempDir);

impl World {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("hearsay-test.").tempdir();
        Self(dir.expect("a directory for the test"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the directories above it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is below the world")).expect("mkdir");
        std::fs::write(&path, bytes).expect("write");
        path
    }

    /// Writes a file that only its owner can read.
    pub fn write_secret(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.write(name, bytes);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("chmod");
        path
    }
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the test runs; in a private network that is the router.
    Here,
    /// In a namespace of the private network.
    In(&'static str),
}

impl Place {
    pub fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        match self {
            Self::Here => Command::new(program),
            Self::In(name) => {
                let mut command = Command::new(tool("ip"));
                command.args(["netns", "exec", name]).arg(program);
                command
            }
        }
    }
}

/// The path of a program. Debian keeps some outside ordinary users' PATH.
pub fn tool(name: &str) -> PathBuf {
    let sbin = Path::new("/usr/sbin").join(name);
    if sbin.exists() { sbin } else { name.into() }
}

/// Waits until `look` returns a value.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "waited in vain for {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// A process that is killed when this value is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal by name, like `TERM`.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(done.is_ok_and(|it| it.success()), "kill -s {name}");
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(_)))
    }

    /// Kills the process with SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address on loopback that refuses connections: until this is dropped, no other process can listen there.
pub struct ClosedPort(OwnedFd);

impl ClosedPort {
    pub fn new() -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, socket};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        Self(socket)
    }

    pub fn address(&self) -> SocketAddr {
        let name = rustix::net::getsockname(&self.0).expect("it is bound");
        name.try_into().expect("of IPv4")
    }
}

/// A port that was free a moment ago. Another process may take it, so callers must be ready to try again.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    listener.local_addr().expect("its address").port()
}

/// Bytes that neither compress nor repeat; the same seed gives the same bytes.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Compares contents without printing megabytes.
#[track_caller]
pub fn assert_same(got: &[u8], expected: &[u8]) {
    let at = got.iter().zip(expected).position(|(a, b)| a != b);
    assert!(
        got == expected,
        "wrong content: {} bytes instead of {}, first difference at {at:?}",
        got.len(),
        expected.len()
    );
}

/// Prints that a test was not run, past the harness's capture.
pub fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

/// Runs a shell script, which must succeed. Returns its output.
#[track_caller]
pub fn sh(script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
        .output()
        .expect("sh starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "failed: {script}\n{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
