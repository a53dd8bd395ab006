//! The daemon under test.

use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use super::{Curl, Process, Reply, World, wait_for, wait_until};

/// The program that was built with the tests.
pub const BINARY: &str = env!("CARGO_BIN_EXE_hearsay");

/// A running daemon. Its log continues over restarts.
pub struct Hearsay {
    process: Process,
    launch: Launch,
    /// The address of the explicit proxy.
    pub proxy: SocketAddr,
}

/// The command that starts the daemon.
#[derive(Clone)]
struct Launch {
    before: Vec<String>,
    args: Vec<String>,
    control: PathBuf,
    store: PathBuf,
    log: PathBuf,
}

impl Hearsay {
    /// Starts a daemon with a store on disk, and a proxy port on loopback.
    pub fn start(world: &World) -> Self {
        Self::start_with(world, &[])
    }

    /// Starts a daemon with more arguments, which may replace `--store` and `--listen`.
    pub fn start_with(world: &World, args: &[&str]) -> Self {
        Self::start_under(world, &[], args)
    }

    /// Starts a daemon as the argument of another program, which must `exec` it.
    pub fn start_under(world: &World, before: &[&str], args: &[&str]) -> Self {
        Self::launch(Launch::new(world, before, args))
    }

    /// Starts a daemon whose store may make it fail. An error is the reason.
    pub fn may_start(world: &World) -> Result<Self, String> {
        Self::try_launch(Launch::new(world, &[], &[]))
    }

    fn launch(launch: Launch) -> Self {
        Self::try_launch(launch).unwrap_or_else(|why| panic!("{why}"))
    }

    fn try_launch(launch: Launch) -> Result<Self, String> {
        let mut process = launch.spawn();
        let status = wait_for("the daemon to be ready", || {
            if process.has_ended() { Some(Err(launch.text())) } else { launch.status().map(Ok) }
        });
        let status = status.map_err(|said| format!("the daemon did not start: {said}"))?;
        let listener = status["listeners"][0].as_str().and_then(|text| text.parse().ok());
        let proxy = listener.unwrap_or_else(|| SocketAddr::from(([0; 4], 0)));
        Ok(Self { process, launch, proxy })
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Starts a daemon that should fail, and returns its exit status and its output. A daemon that keeps running is
    /// killed.
    pub fn try_start(world: &World, args: &[&str]) -> (ExitStatus, String) {
        Self::try_start_under(world, &[], args)
    }

    /// As [`Self::try_start`], as the argument of another program.
    pub fn try_start_under(world: &World, before: &[&str], args: &[&str]) -> (ExitStatus, String) {
        let launch = Launch::new(world, before, args);
        let mut process = launch.spawn();
        wait_until("the daemon to give up", || process.has_ended());
        (process.0.wait().expect("it has ended"), launch.text())
    }

    /// A curl that uses this proxy.
    pub fn curl(&self, url: &str) -> Curl {
        Curl::by_proxy(self.proxy, url)
    }

    /// Gets a URL through this proxy.
    pub fn get(&self, url: &str) -> Reply {
        self.curl(url).run()
    }

    /// The daemon's status.
    pub fn status(&self) -> Value {
        self.launch.status().unwrap_or_else(|| panic!("no status: {}", self.log()))
    }

    /// A number in the daemon's status, by a JSON pointer such as `/report/requests/hit`.
    pub fn number(&self, pointer: &str) -> u64 {
        let status = self.status();
        let value = status.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("no number {pointer} in {status}"))
    }

    /// The daemon's metrics, by its control socket.
    pub fn metrics(&self) -> String {
        let control = self.control().display();
        super::sh(&format!("curl -qsS --unix-socket {control} http://localhost/metrics"))
    }

    /// The value of a series, such as `hearsay_helper_up` or `hearsay_selftest_success{check="dns"}`.
    pub fn metric(&self, series: &str) -> Option<String> {
        let series = format!("{series} ");
        let metrics = self.metrics();
        metrics.lines().find_map(|line| line.strip_prefix(&series)).map(ToOwned::to_owned)
    }

    /// Waits until all of these stored objects are stale: those whose URL has this in it, and which change.
    pub fn wait_until_stale(&self, part: &str) {
        wait_until("stored objects to be stale", || {
            let listed = self.command(&["cache", "--json"]).stdout;
            let listed: Vec<Value> = serde_json::from_slice(&listed).expect("JSON");
            let of_them =
                listed.iter().filter(|it| it["url"].as_str().is_some_and(|url| url.contains(part)));
            let left: Vec<_> =
                of_them.map(|it| it["fresh_seconds"].as_i64().expect("a number")).collect();
            // What never changes has a year.
            !left.is_empty() && left.iter().all(|left| *left < 0 || *left > 1_000_000)
        });
    }

    /// Runs a command of the program with this daemon's control socket.
    pub fn command(&self, args: &[&str]) -> Output {
        self.launch.command(args)
    }

    /// The daemon's whole log.
    pub fn log(&self) -> String {
        self.launch.text()
    }

    pub fn store(&self) -> &PathBuf {
        &self.launch.store
    }

    pub fn control(&self) -> &PathBuf {
        &self.launch.control
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the daemon with SIGKILL; to the process this is like a power cut.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGHUP: the daemon reads its configuration again.
    pub fn hang_up(&self) {
        self.process.signal("HUP");
    }

    /// Sends the daemon a signal by name, like `TERM`.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Stops the daemon with SIGTERM; its exit code must be 0.
    #[track_caller]
    pub fn terminate(&mut self) {
        self.process.signal("TERM");
        wait_until("the daemon to end", || self.process.has_ended());
        let status = self.process.0.wait().expect("it has ended");
        assert!(status.success(), "SIGTERM ended it with {status}: {}", self.log());
    }

    /// Kills the daemon, and starts it again in the same way.
    pub fn restart(&mut self) {
        self.process.kill();
        *self = Self::launch(self.launch.clone());
    }

    /// Waits until, by the daemon's status, all transfers have ended and their stored bytes are durable.
    pub fn wait_until_durable(&self) {
        wait_until("the transfers to end", || self.number("/report/fetches") == 0);
        self.wait_until_synced();
    }

    /// Waits until all bytes written so far are durable, also those of transfers under way.
    pub fn wait_until_synced(&self) {
        wait_until("the store to be synced", || self.status()["report"]["unsynced"] == false);
    }
}

impl Launch {
    fn new(world: &World, before: &[&str], args: &[&str]) -> Self {
        let control = world.path("control");
        let mut store = world.path("store");
        let mut all = vec!["run".to_owned(), "--control".into(), control.display().to_string()];
        match args.iter().position(|arg| *arg == "--store") {
            Some(at) => store = args[at + 1].into(),
            None => all.extend(["--store".into(), store.display().to_string()]),
        }
        if !args.contains(&"--listen") && !args.contains(&"--config") {
            all.extend(["--listen".into(), "127.0.0.1:0".into()]);
        }
        if !args.contains(&"--drain") {
            all.extend(["--drain".into(), "0s".into()]);
        }
        all.extend(args.iter().map(ToString::to_string));
        let before = before.iter().map(ToString::to_string).collect();
        Self { before, args: all, control, store, log: world.path("hearsay.log") }
    }

    fn spawn(&self) -> Process {
        let log = OpenOptions::new().create(true).append(true).open(&self.log).expect("a log");
        let mut words = self.before.iter().map(String::as_str).chain([BINARY]);
        let child = Command::new(words.next().expect("at least the program"))
            .args(words)
            .args(&self.args)
            .env_remove("HEARSAY_LOG")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the daemon starts");
        Process(child)
    }

    fn command(&self, args: &[&str]) -> Output {
        let mut command = Command::new(BINARY);
        command.arg("--control").arg(&self.control).args(args).stdin(Stdio::null());
        command.output().expect("the program starts")
    }

    fn status(&self) -> Option<Value> {
        let output = self.command(&["status", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}
