//! The daemon under test.

use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use super::{Curl, Process, Reply, World, wait_for, wait_until};

/// The program that was built with the tests.
pub const BINARY: &str = env!("CARGO_BIN_EXE_hearsay");

/// A running daemon; its log is kept over restarts.
pub struct Hearsay {
    process: Process,
    launch: Launch,
    /// Where the explicit proxy listens.
    pub proxy: SocketAddr,
}

/// How it is started.
#[derive(Clone)]
struct Launch {
    before: Vec<String>,
    args: Vec<String>,
    control: PathBuf,
    store: PathBuf,
    log: PathBuf,
}

impl Hearsay {
    /// With a store on disk, and a proxy port on loopback.
    pub fn start(world: &World) -> Self {
        Self::start_with(world, &[])
    }

    /// With more arguments; they may replace `--store` and `--listen`.
    pub fn start_with(world: &World, args: &[&str]) -> Self {
        Self::start_under(world, &[], args)
    }

    /// As the argument of another program, which must become it.
    pub fn start_under(world: &World, before: &[&str], args: &[&str]) -> Self {
        Self::launch(Launch::new(world, before, args))
    }

    /// With a store that may make it fail: why, if it did.
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

    /// A start that should fail: how it ended and what it said. One that goes on is ended.
    pub fn try_start(world: &World, args: &[&str]) -> (ExitStatus, String) {
        Self::try_start_under(world, &[], args)
    }

    /// The same as the argument of another program.
    pub fn try_start_under(world: &World, before: &[&str], args: &[&str]) -> (ExitStatus, String) {
        let launch = Launch::new(world, before, args);
        let mut process = launch.spawn();
        wait_until("the daemon to give up", || process.has_ended());
        (process.0.wait().expect("it has ended"), launch.text())
    }

    /// A curl that asks this proxy.
    pub fn curl(&self, url: &str) -> Curl {
        Curl::by_proxy(self.proxy, url)
    }

    /// Gets a URL through this proxy.
    pub fn get(&self, url: &str) -> Reply {
        self.curl(url).run()
    }

    /// How it says it is.
    pub fn status(&self) -> Value {
        self.launch.status().unwrap_or_else(|| panic!("no status: {}", self.log()))
    }

    /// A number of its status, like `/report/requests/hit`.
    pub fn number(&self, pointer: &str) -> u64 {
        let status = self.status();
        let value = status.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("no number {pointer} in {status}"))
    }

    /// A command of the program, pointed to this daemon.
    pub fn command(&self, args: &[&str]) -> Output {
        self.launch.command(args)
    }

    /// All that it logged.
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

    /// As if the power were cut, as far as the process knows.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// As an operator has it read its configuration again.
    pub fn hang_up(&self) {
        self.process.signal("HUP");
    }

    /// Sends it a signal by name, like `TERM`.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// As an operator stops it. It must end well.
    #[track_caller]
    pub fn terminate(&mut self) {
        self.process.signal("TERM");
        wait_until("the daemon to end", || self.process.has_ended());
        let status = self.process.0.wait().expect("it has ended");
        assert!(status.success(), "SIGTERM ended it with {status}: {}", self.log());
    }

    /// Starts it again, as before.
    pub fn restart(&mut self) {
        self.process.kill();
        *self = Self::launch(self.launch.clone());
    }

    /// Waits until all transfers have ended and what they stored is durable, as far as it says.
    pub fn wait_until_durable(&self) {
        wait_until("the transfers to end", || self.number("/report/fetches") == 0);
        self.wait_until_synced();
    }

    /// Waits until what was written so far is durable, even of transfers under way.
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
