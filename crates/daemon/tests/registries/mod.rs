//! Registries of packages behind an uplink, and real package managers that use them through mirrors. README.md in this
//! folder describes the server and the clients' scripts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::network::ORIGIN;
use crate::world::{Place, Process, World, sh, wait_until};

mod fork;
mod single;

pub use fork::Fork;
pub use single::{MIRROR, PROXY, Single};

/// A public address of the origin's machine: all registries have it.
const ADDRESS: &str = "198.51.100.2";
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/registries");

/// A server of registries on the origin's machine. Their names lead to it.
pub struct Registries {
    process: Process,
    dir: PathBuf,
}

/// A response of a registry.
#[derive(Clone, Debug)]
pub struct Sent {
    pub host: String,
    /// Path and query.
    pub path: String,
    pub status: u64,
    /// Bytes of its head and body, without TLS.
    pub bytes: u64,
    /// Whether it is a file that never changes.
    pub is_file: bool,
}

impl Registries {
    /// Starts the server in a network of `network::inside`, of one router or of more. The hosts in `bare` send
    /// neither validators nor lifetimes.
    pub fn start(world: &World, bare: &[&str]) -> Self {
        Self::start_with(world, &bare.iter().flat_map(|host| ["--bare", host]).collect::<Vec<_>>())
    }

    /// As [`Self::start`], with these arguments of the server.
    pub fn start_with(world: &World, args: &[&str]) -> Self {
        sh(&format!("ip -n origin addr add {ADDRESS}/32 dev eth0"));
        let dir = world.path("registries");
        fs::create_dir_all(&dir).expect("mkdir");
        let child = ORIGIN
            .command("python3")
            .arg(Path::new(FOLDER).join("serve.py"))
            .args(["--listen", &format!("{ADDRESS}:443"), "--plain", &format!("{ADDRESS}:80")])
            .args(args)
            .arg("--dir")
            .arg(&dir)
            .arg("--ca")
            .arg(dir.join("ca"))
            .arg("--log")
            .arg(dir.join("log"))
            .stdin(Stdio::null())
            .stdout(File::create(dir.join("ready")).expect("a file"))
            .stderr(File::create(dir.join("said")).expect("a file"))
            .spawn()
            .expect("python3 starts");
        let mut process = Process(child);
        let read = |name| fs::read_to_string(dir.join(name)).unwrap_or_default();
        wait_until("the registries to be ready", || {
            assert!(!process.has_ended(), "the registries: {}", read("said"));
            read("ready").contains("ready")
        });
        let hosts = read("hosts").lines().map(|host| format!("{ADDRESS} {host}\n")).collect();
        let more = [hosts, "10.9.9.9 inner.test\n".to_owned()].concat();
        fs::write("/etc/hosts", fs::read_to_string("/etc/hosts").expect("it is there") + &more)
            .expect("the file is the test's own");
        Self { process, dir }
    }

    /// The CA to be trusted, as PEM.
    pub fn ca(&self) -> PathBuf {
        self.dir.join("ca/ca.pem")
    }

    /// All responses so far, in the order of their ends.
    pub fn sent(&self) -> Vec<Sent> {
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        log.lines().map(|line| Sent::read(&serde_json::from_str(line).expect("JSON"))).collect()
    }

    /// Bytes of files, after the first `begin` responses.
    pub fn file_bytes_since(&self, begin: usize) -> u64 {
        self.sent()[begin..].iter().filter(|sent| sent.is_file).map(|sent| sent.bytes).sum()
    }

    /// The number of responses so far from a host for a path.
    pub fn count(&self, host: &str, path: &str) -> usize {
        self.sent().iter().filter(|sent| sent.host == host && sent.path == path).count()
    }

    /// The digests of the files that a client must get, by name.
    pub fn wanted(&self, client: &str) -> BTreeMap<String, String> {
        let text = fs::read_to_string(self.dir.join("content.json")).expect("it was written");
        let all: Value = serde_json::from_str(&text).expect("JSON");
        serde_json::from_value(all[client].clone()).expect("digests by name")
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }
}

impl Sent {
    fn read(line: &Value) -> Self {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| line[name].as_u64().expect("a number");
        Self {
            host: text("host"),
            path: text("path"),
            status: number("status"),
            bytes: number("sent"),
            is_file: line["kind"] == "file",
        }
    }
}

/// The first of these programs that this machine lacks. The registries need some themselves.
pub fn missing(programs: &[&'static str]) -> Option<&'static str> {
    let is_there = |program: &str| {
        let look = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        look.is_ok_and(|output| output.status.success())
    };
    ["openssl", "python3"].iter().chain(programs).copied().find(|program| !is_there(program))
}

/// Runs a package manager with a home of its own. The variables are those that `clients/common.sh` lists. Returns the
/// digests of the files that it got, by name; if it failed, what it said.
pub fn run(
    client: &str,
    place: Place,
    variables: &[(&str, &str)],
) -> Result<BTreeMap<String, String>, String> {
    let home = tempfile::Builder::new().prefix("hearsay-home.").tempdir().expect("a directory");
    let output = place
        .command(Path::new(FOLDER).join(format!("clients/{client}.sh")))
        .env("HOME", home.path())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the client starts");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs = said.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect())
}
