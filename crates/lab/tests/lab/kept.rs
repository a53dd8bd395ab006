//! A mesh that runs until the test ends: its origin's files, its clients, its daemons.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::processes::{Process, family};
use super::run::{Run, kill};
use super::{Ended, World, wait_until};

/// A run with `--keep`, and its namespaces.
pub struct Kept {
    run: Run,
    /// A process inside the mesh, and the namespaces to enter.
    inside: Process,
    namespaces: Vec<String>,
}

/// The end of a kept run's last line: the command for a shell on its gateway.
const LAST_WORD: &str = "bash\n";

/// A process that the test has started inside the namespaces. It is killed when this is dropped.
pub struct Within(Child);

/// A client's download.
pub struct Download {
    curl: Within,
    /// Bytes received so far, head and body.
    came: Vec<u8>,
}

/// The response that a client received.
pub struct Got {
    /// The response's head.
    pub head: String,
    /// The bytes of the body that arrived.
    pub body: Vec<u8>,
    /// Whether curl reported success.
    pub is_whole: bool,
}

impl Kept {
    /// Starts a run, and waits until its own transfers have ended.
    #[track_caller]
    pub fn start(world: &World, args: &[&str]) -> Self {
        let mut run = world.start(&[args, &["--keep"]].concat());
        run.wait_for_word(LAST_WORD);
        Self::enter(run)
    }

    /// Starts a run, and waits until the first of its own clients asks.
    #[track_caller]
    pub fn begin(world: &World, args: &[&str]) -> Self {
        let mut run = world.start(&[args, &["--keep"]].concat());
        run.wait_for_program("curl");
        Self::enter(run)
    }

    /// Waits until the run's own transfers have ended and their result is written.
    #[track_caller]
    pub fn wait_for_result(&mut self) {
        self.run.wait_for_word(LAST_WORD);
    }

    /// The process inside has the command that enters the namespaces in its environment.
    #[track_caller]
    fn enter(mut run: Run) -> Self {
        let inside = run.wait_for_inside();
        let environ = fs::read(format!("/proc/{}/environ", inside.id)).expect("it is there");
        let environ = String::from_utf8_lossy(&environ);
        let mut variables = environ.split('\0');
        let command = variables.find_map(|it| it.strip_prefix("HEARSAY_LAB_ENTER="));
        let words = command.expect("it is told").split_whitespace();
        let flags = words.filter(|it| it.starts_with("--") && *it != "--target");
        let namespaces = flags.map(str::to_owned).collect();
        Self { run, inside, namespaces }
    }

    /// A command inside one of the network namespaces.
    pub fn command(&self, namespace: &str, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        command.env("PATH", path).args(["--target", &self.inside.id.to_string()]);
        command.args(&self.namespaces).args(["ip", "netns", "exec", namespace]).args(words);
        command
    }

    /// The output of a command, which must succeed.
    #[track_caller]
    pub fn say(&self, namespace: &str, words: &[&str]) -> String {
        let output = self.command(namespace, words).stdin(Stdio::null()).output();
        let output = output.expect("it starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{namespace}: {words:?}: {err}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a background process inside a namespace.
    #[track_caller]
    pub fn start_within(&self, namespace: &str, words: &[&str]) -> Within {
        let mut command = self.command(namespace, words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Within(command.spawn().expect("it starts"))
    }

    /// Puts a file of unique content on the origin.
    #[track_caller]
    pub fn publish(&self, name: &str, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new_derive_key("hearsay-lab 2026 content of a test")
            .update(name.as_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        self.publish_as(name, &bytes);
        bytes
    }

    /// Puts a file of this content on the origin.
    #[track_caller]
    pub fn publish_as(&self, name: &str, bytes: &[u8]) {
        let script = format!("cat > /run/lab/www/{name}");
        let mut command = self.command("origin", &["sh", "-ec", &script]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("it is piped").write_all(bytes).expect("it is taken");
        assert!(child.wait().expect("it is our child").success());
    }

    /// Starts a download of one of the origin's files by the client behind a router.
    #[track_caller]
    pub fn download(&self, router: &str, name: &str) -> Download {
        let url = format!("http://origin/{name}");
        let words = ["curl", "-sS", "--noproxy", "*", "--max-time", "120", "--include", &url];
        let mut command = self.command(&format!("client-{router}"), &words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let curl = Within(command.spawn().expect("it starts"));
        Download { curl, came: Vec::new() }
    }

    /// Downloads a file to its end.
    #[track_caller]
    pub fn get(&self, router: &str, name: &str) -> Got {
        self.download(router, name).end()
    }

    /// The process of a router's daemon.
    #[track_caller]
    pub fn daemon(&self, router: &str) -> Process {
        self.hearsay(&format!("/run/lab/router-{router}.control"))
    }

    /// The process of the `hearsay` that has this word in its command line.
    #[track_caller]
    pub fn hearsay(&self, word: &str) -> Process {
        let family = self.run.family();
        let has = |it: &&Process| it.name == "hearsay" && words(it).iter().any(|it| it == word);
        family.iter().find(has).unwrap_or_else(|| panic!("no daemon in {family:?}")).clone()
    }

    /// Kills a router's daemon with SIGKILL.
    #[track_caller]
    pub fn kill(&self, router: &str) {
        end(&self.daemon(router));
    }

    /// Kills a router's daemon, starts it again, and waits until it answers and has a route.
    #[track_caller]
    pub fn restart(&self, router: &str) -> Within {
        let words = words(&self.daemon(router));
        self.kill(router);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let daemon = self.start_within(&format!("router-{router}"), &words);
        let knows = || self.status(router).is_some_and(|it| it["route"]["up"] == true);
        wait_until(|| format!("{:?}", self.status(router)), knows);
        daemon
    }

    /// The status of a router's daemon, if it answers.
    pub fn status(&self, router: &str) -> Option<Value> {
        self.ask(router, &["status", "--json"])
    }

    /// What a router's daemon answers to a command, if it answers.
    pub fn ask(&self, router: &str, what: &[&str]) -> Option<Value> {
        let daemon = hearsay();
        let control = format!("/run/lab/router-{router}.control");
        let words = [&[daemon.as_str()], what, &["--control", &control]].concat();
        let output = self.command(&format!("router-{router}"), &words).output().ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Ends the run.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.run.signal(Signal::INT);
        self.run.end()
    }
}

impl Download {
    /// Waits until this many bytes have arrived.
    #[track_caller]
    pub fn wait_for(&mut self, bytes: usize) {
        let stdout = self.curl.0.stdout.as_mut().expect("it is piped");
        let mut block = [0; 16 * 1024];
        while self.came.len() < bytes {
            let length = stdout.read(&mut block).expect("a pipe can be read");
            assert!(length > 0, "it ended after {} bytes", self.came.len());
            self.came.extend(&block[..length]);
        }
    }

    /// Waits for the rest; curl has a time limit of its own.
    pub fn end(mut self) -> Got {
        let stdout = self.curl.0.stdout.as_mut().expect("it is piped");
        stdout.read_to_end(&mut self.came).expect("a pipe can be read");
        let status = self.curl.0.wait().expect("it is our child");
        let end = self.came.windows(4).position(|it| it == b"\r\n\r\n").map_or(0, |at| at + 4);
        let body = self.came.split_off(end);
        let head = String::from_utf8_lossy(&self.came).into_owned();
        Got { head, body, is_whole: status.success() }
    }
}

impl Got {
    /// Checks that the response is the origin's file with status 200.
    #[track_caller]
    pub fn expect(self, bytes: &[u8]) -> Self {
        let came = self.body.len();
        assert!(self.head.starts_with("HTTP/1.1 200"), "{}", self.head);
        assert!(self.body == bytes && self.is_whole, "{came} of {}: {}", bytes.len(), self.head);
        self
    }

    /// `Cache-Status`, from the origin's side.
    pub fn caches(&self) -> Vec<String> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let lists = fields.filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
        lists.flat_map(|(_, list)| list.split(',')).map(|it| it.trim().to_owned()).collect()
    }

    /// Checks that the cache next to the client answered from its store.
    #[track_caller]
    pub fn expect_hit_at(&self, router: &str) {
        let last = self.caches().pop().unwrap_or_default();
        let is_hit = last.split(';').any(|it| it.trim() == "hit");
        assert!(is_hit && last.starts_with(&format!("router-{router};")), "{}", self.head);
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        // `nsenter` is the process's parent, and does not end it.
        family(self.0.id().cast_signed()).iter().for_each(kill);
        let _ = self.0.wait();
    }
}

/// The daemon's program.
pub fn hearsay() -> String {
    let lab = std::path::Path::new(env!("CARGO_BIN_EXE_hearsay-lab"));
    let daemon = lab.with_file_name("hearsay");
    daemon.into_os_string().into_string().expect("a path of plain letters")
}

/// Kills a process with SIGKILL, and waits for its end.
#[track_caller]
pub fn end(process: &Process) {
    kill(process);
    wait_until(|| format!("{process:?} is there"), || !process.is_alive());
}

/// The command line of a process.
pub fn words(process: &Process) -> Vec<String> {
    let line = fs::read(format!("/proc/{}/cmdline", process.id)).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
