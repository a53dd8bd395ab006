//! The tools of the black-box tests: `hearsay-lab` as a real process, and its effects on the machine.
//!
//! *What this is:* [`World`], a temporary directory and the air, which one test has at a time; [`Run`], a
//! running lab; [`Ended`], one that has ended; [`can_run`], whether this machine permits runs. *What it never
//! does:* wait for a fixed time, end a process that no test started, or look at what other programs make.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub mod capture;
mod ended;
mod far;
pub mod kept;
mod outside;
mod processes;
pub mod provenance;
mod run;
pub mod schema;

pub use ended::{Ended, LATE};
pub use kept::Kept;
pub use processes::Process;
pub use run::{Run, kill};

use outside::Outside;

/// How long a test waits for a condition. It only ends tests that would wait for ever: on a busy machine a run
/// takes several times as long as on one that idles.
pub const TIMEOUT: Duration = Duration::from_secs(180);

/// How often a condition is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Runs are in real time: on a small machine two at once make each other late.
static AIR: Mutex<()> = Mutex::new(());

/// The directory of one test, which has the air as long as this exists. Make it before any file in /run: the
/// thread that makes it gets a /run of its own.
pub struct World {
    dir: tempfile::TempDir,
    /// `None`: this test's processes may not change the machine.
    before: Option<Outside>,
    _air: MutexGuard<'static, ()>,
}

impl World {
    pub fn new() -> Self {
        let air = AIR.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::Builder::new().prefix("hearsay-lab-test.").tempdir();
        let dir = dir.expect("a directory for the test");
        // Other users may have to run programs in it.
        open_to_all(dir.path(), 0o755);
        fs::create_dir(dir.path().join("tmp")).expect("mkdir");
        open_to_all(&dir.path().join("tmp"), 0o777);
        let before = outside::leave().then(Outside::look);
        Self { dir, before, _air: air }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// As [`Self::path`], as text for a command line.
    pub fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("a path of plain letters")
    }

    /// `hearsay-lab` with these arguments. Its processes are recognised by their TMPDIR.
    pub fn lab(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_hearsay-lab"));
        command.args(args);
        command
    }

    /// Any program, in the same environment.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).env("TMPDIR", self.path("tmp"));
        command
    }

    /// Runs `hearsay-lab` to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ended {
        self.start(args).end()
    }

    /// Starts `hearsay-lab`.
    #[track_caller]
    pub fn start(&self, args: &[&str]) -> Run {
        Run::start(self.lab(args))
    }

    /// Processes of this world's runs, except those that overwrite their environment.
    pub fn processes(&self) -> Vec<Process> {
        processes::with_variable("TMPDIR", &self.path("tmp"))
    }

    /// Whether the outside of all runs is as it was when this was made.
    pub fn is_outside_as_before(&self) -> bool {
        self.before.as_ref().is_none_or(|before| Outside::look() == *before)
    }

    /// Waits until the outside of all runs is as before the test, and no process of a run is left.
    #[track_caller]
    pub fn nothing_is_left(&self) {
        let left = || self.processes();
        wait_until(|| format!("processes are left: {:?}", left()), || left().is_empty());
        let otherwise = || format!("{:#?} instead of {:#?}", Outside::look(), self.before);
        wait_until(otherwise, || self.is_outside_as_before());
        let files: Vec<_> = fs::read_dir(self.path("tmp")).expect("it is there").collect();
        assert!(files.is_empty(), "left in TMPDIR: {files:?}");
    }
}

pub fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

/// Waits until a condition holds; `otherwise` describes the failure.
#[track_caller]
pub fn wait_until(otherwise: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain: {}", otherwise());
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether this machine permits runs and has the programs; if not, prints why.
pub fn can_run(test: &str) -> bool {
    let why = missing(&["ip", "unshare", "nft", "curl", "nginx"]).or_else(no_rights);
    why.map(|why| skipped(test, &why)).is_none()
}

/// Why runs are impossible: a missing program.
pub fn missing(programs: &[&str]) -> Option<String> {
    let absent = programs.iter().find(|name| tool(name).is_none());
    let absent = absent.map(|name| format!("{name} is not installed"));
    let daemon = Path::new(env!("CARGO_BIN_EXE_hearsay-lab")).with_file_name("hearsay");
    let build = || "there is no daemon beside hearsay-lab: cargo build -p daemon".to_owned();
    absent.or_else(|| (!daemon.exists()).then(build))
}

fn no_rights() -> Option<String> {
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return Some(format!("/dev/net/tun: {error}"));
    }
    let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"])
        .args(user)
        .args(["sh", "-c", "PATH=$PATH:/usr/sbin; mount -t tmpfs none /run && ip netns add try"])
        .output();
    let can = output.is_ok_and(|output| output.status.success());
    (!can).then(|| "network namespaces are not allowed here".to_owned())
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

/// The path of a program. Debian keeps some outside ordinary users' PATH.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|it| it.join(name)).find(|it| it.exists())
}

/// Runs a command inside a kept mesh, by the command that the lab prints for a shell. The user who types it
/// is given as a prefix.
#[track_caller]
pub fn enter(said: &str, what: &str, user: &[&str]) -> String {
    let at = said.find("nsenter").expect("the command is told");
    let command = said[at..].trim_end().strip_suffix("bash").expect("it ends with the shell");
    let script = format!("PATH=$PATH:/usr/sbin\n{command} {what}");
    let words = [user, &["sh", "-ec", &script]].concat();
    let output = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Prints that a test was not run, past the harness's capture.
pub fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}
