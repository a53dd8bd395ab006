//! Checks what a run needs of the machine, before anything is built.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sim::scenario::{Routing, Scenario, Traffic};
use wire::Scheme;

use super::tap::DEVICE;
use crate::cli::Run;
use crate::console::writable;
use crate::failure::Failure;

/// Folders in which Debian keeps programs, and which ordinary users' PATH lacks.
const MORE_FOLDERS: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"];

/// Largest number of routers. There are names and addresses for these, and the medium keeps up with the
/// clock.
const ROUTERS_MAX: usize = 200;

/// The programs that a run starts.
#[derive(Clone, Debug)]
pub struct Programs {
    pub curl: PathBuf,
    pub nginx: PathBuf,
    pub hearsay: PathBuf,
    /// Only if babeld makes the routes.
    pub babeld: Option<PathBuf>,
}

/// The PATH for us and all programs that we start.
pub fn complete_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = env::split_paths(&path).collect();
    for folder in MORE_FOLDERS.map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Finds the programs, or reports which are missing and what to install.
pub fn programs(scenario: &Scenario, scheme: Scheme) -> Result<Programs, Failure> {
    let mut missing = Vec::new();
    let mut find = |name: &'static str, package: &'static str| {
        let found = find(name);
        if found.is_none() {
            missing.push((name, package));
        }
        found.unwrap_or_default()
    };
    find("ip", "iproute2");
    find("unshare", "util-linux");
    find("chrt", "util-linux");
    if scheme.interception().is_some() {
        find("nft", "nftables");
    }
    let (curl, nginx) = (find("curl", "curl"), find("nginx", "nginx-light"));
    let babeld = (scenario.routing == Routing::Babel).then(|| find("babeld", "babeld"));
    if !missing.is_empty() {
        let names = missing.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let packages = missing.iter().map(|(_, package)| *package).collect::<Vec<_>>().join(" ");
        return Err(Failure::refused(format!(
            "not installed: {names}. On Debian: apt install {packages}"
        )));
    }
    let hearsay = hearsay()?;
    for program in [&env::current_exe()?, &hearsay] {
        if writable::is_hidden(program) {
            let text = "a run has a /run of its own; put it elsewhere";
            return Err(Failure::refused(format!("{}: {text}", program.display())));
        }
    }
    Ok(Programs { curl, nginx, hearsay, babeld })
}

/// Checks that a scenario can be run in real time.
pub fn playable(scenario: &Scenario) -> Result<(), Failure> {
    let (name, routers) = (&scenario.name, scenario.routers.len());
    let here = "`hearsay-lab sim` can";
    if scenario.traffic != Traffic::Files {
        let traffic = scenario.key("traffic");
        let text = format!("{name}: `traffic` is \"{traffic}\", which daemons cannot run; {here}");
        return Err(Failure::refused(text));
    }
    if scenario.changes.is_some() {
        let text =
            format!("{name}: `mobility` and `cuts` change links, and here they stay; {here}");
        return Err(Failure::refused(text));
    }
    if !scenario.liars.is_empty() {
        let text = format!("{name}: `liars`: daemons do not lie; {here}");
        return Err(Failure::refused(text));
    }
    if scenario.plane.is_on() {
        let text = format!("{name}: `pace` and `recover` are not in daemons yet; {here}");
        return Err(Failure::refused(text));
    }
    if routers > ROUTERS_MAX {
        let text = format!("{name}: {routers} routers are more than {ROUTERS_MAX}; {here}");
        return Err(Failure::refused(text));
    }
    Ok(())
}

/// Checks that the routers that options name are in the scenario.
pub fn routers(scenario: &Scenario, args: &Run) -> Result<(), Failure> {
    let names: Vec<_> = scenario.routers.iter().map(|it| it.name.as_str()).collect();
    for (place, (router, _)) in args.pcap.iter().enumerate() {
        if args.pcap[..place].iter().any(|(other, _)| other == router) {
            return Err(Failure::refused(format!("--pcap: router {router} is named twice")));
        }
        if !names.contains(&router.as_str()) {
            let known = names.join(", ");
            let text = format!("--pcap: there is no router {router} in {}: {known}", scenario.name);
            return Err(Failure::refused(text));
        }
    }
    Ok(())
}

/// The daemon: the one that HEARSAY_BIN names, beside this program, or on the PATH.
fn hearsay() -> Result<PathBuf, Failure> {
    if let Some(path) = env::var_os("HEARSAY_BIN").map(PathBuf::from) {
        return fs::canonicalize(&path).ok().filter(|it| is_program(it)).ok_or_else(|| {
            Failure::refused(format!("HEARSAY_BIN: {} is not a program", path.display()))
        });
    }
    let beside = env::current_exe().ok().map(|it| it.with_file_name("hearsay"));
    beside.filter(|it| is_program(it)).or_else(|| find("hearsay")).ok_or_else(|| {
        Failure::refused(
            "there is no `hearsay` beside hearsay-lab or on the PATH: \
             run `cargo build --release`, or name it in HEARSAY_BIN",
        )
    })
}

/// Checks that we may make namespaces and TAP devices, or reports what is needed.
pub fn rights() -> Result<(), Failure> {
    if let Err(error) = OpenOptions::new().read(true).write(true).open(DEVICE) {
        let next = match error.kind() {
            ErrorKind::NotFound => "load the kernel's module: `modprobe tun` as root",
            ErrorKind::PermissionDenied => {
                "run as root, or let others use it: `chmod 666 \
                /dev/net/tun` as root (Debian's default)"
            }
            _ => "run as root",
        };
        return Err(Failure::refused(format!("cannot open {DEVICE}: {error}: {next}")));
    }
    let output = Command::new("unshare")
        .args(unshare_flags())
        .args(["sh", "-c", "mount -t tmpfs tmpfs /run && ip netns add try"])
        .env("PATH", env::join_paths(complete_path()).unwrap_or_default())
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it does not say why");
    Err(Failure::refused(format!(
        "this machine forbids network namespaces ({said}): run as root, or allow user namespaces \
         (sysctl kernel.unprivileged_userns_clone=1; kernel.apparmor_restrict_unprivileged_userns=0)"
    )))
}

/// The namespaces of a run as options of `unshare` and `nsenter`. An ordinary user needs a user namespace
/// too.
pub fn namespaces() -> Vec<&'static str> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let ours = ["--mount", "--net", "--pid"];
    if is_root { ours.to_vec() } else { [&["--user"], &ours[..]].concat() }
}

/// The options of `unshare` that make them.
pub fn unshare_flags() -> Vec<&'static str> {
    let mut flags = namespaces();
    if flags.contains(&"--user") {
        flags.push("--map-root-user");
    }
    flags.extend(["--fork", "--mount-proc", "--kill-child"]);
    flags
}

fn find(name: &str) -> Option<PathBuf> {
    complete_path().iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
