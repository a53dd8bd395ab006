//! What the daemon may do: its helper process, and the limits that it puts on itself.
//!
//! *What this is:* [`start_helper`], before anything else; [`confine`], once all that takes rights is open; [`serve`],
//! the other process; [`check_owner`]. *Who calls it:* `main.rs` and `run.rs`; `far.rs` for the far end, which needs no helper. *What it
//! never does:* keep the daemon from starting, but for a store that it could not use. *Where to start:* [`places`], what the daemon reads and writes.

use crate::config::{Config, FarSettings, Given, Place};
use crate::exit::Failure;
use crate::reload::take_over;
use crate::status::Rights;
use host::helper::{Charge, Helper};
use host::rights::{InForce, Limits, NETWORK, Places, has_any, may_bind_without};
use rustix::thread::CapabilitySet;
use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The argument that makes `hearsay run` the helper of the daemon that started it.
const AS_HELPER: &str = "--as-helper";

/// What libraries read to resolve names and to verify servers: NSS and its modules, lists of servers and of CAs.
const READ: [&str; 13] = [
    "/etc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    // What the kernel says of routes, interfaces and this process.
    "/proc",
    "/sys/class/net",
    "/sys/devices",
    // The limits of our control group, which the daemon's own check of memory compares with its budget.
    crate::doctor::GROUPS,
    // Lists of name servers that programs keep: /etc/resolv.conf points to one of them, later perhaps to another.
    "/run",
];

/// Files that may be links to anywhere.
const LINKS: [&str; 5] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
];

/// Refuses to start as root on another user's store: without capabilities, root can neither read nor write it.
pub fn check_owner(config: &Config) -> Result<(), Failure> {
    let Place::Dir(dir) = &config.store.place else { return Ok(()) };
    match std::fs::metadata(dir).map(|it| it.uid()) {
        Ok(owner @ 1..) if rustix::process::geteuid().is_root() => {
            let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
            let (dir, name) = (dir.display(), user_name(&users, owner).unwrap_or("NAME"));
            let control = config.control.display();
            // Without these options, the daemon of that user would have a store and a socket of its own.
            Err(Failure::usage(format!(
                "the store {dir} belongs to user {owner}, and root gives up the rights to use it: start the service, or \
                 run as that user on that store (`runuser -u {name} -- hearsay run --store {dir} --control {control}`)"
            )))
        }
        _ => Ok(()),
    }
}

/// The name of a user in the text of passwd(5).
fn user_name(users: &str, user: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then_some(name)
    })
}

/// Starts the helper, if there are rights to keep. Call it while the process has one thread and nothing open.
pub fn start_helper() -> Helper {
    if !has_any(NETWORK) {
        return Helper::none(
            "this daemon was started without CAP_NET_ADMIN and CAP_NET_RAW: run it as root, or with these as ambient \
             capabilities (systemd: AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW)",
        );
    }
    let args = std::env::args_os().skip(1).chain([AS_HELPER.into()]);
    Helper::start(args).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot start the helper process: nothing can be intercepted or overheard");
        Helper::none("the helper process could not be started: the log says why")
    })
}

/// Logs the end of the helper, which must not come before the daemon's.
pub async fn say_end(helper: Helper) {
    helper.ended().await;
    tracing::error!("{}", Rights::WITHOUT_HELPER);
}

/// Runs as the helper until the daemon has ended.
pub fn serve(given: &Given) -> Result<(), Failure> {
    let mut held: Option<Config> = None;
    let read = || {
        let new = Config::load(given.file.as_deref(), &given.overrides).map_err(|error| {
            let problems: Vec<_> = error.problems.iter().map(ToString::to_string).collect();
            problems.join("; ")
        })?;
        Ok(charge(match &mut held {
            // As the daemon does: the rules must not go before it.
            Some(held) => {
                take_over(held, &new);
                held
            }
            None => {
                make_control_dir(&new);
                held.insert(new)
            }
        }))
    };
    host::helper::serve(read).map_err(Failure::usage)
}

fn charge(config: &Config) -> Charge {
    // Interfaces may come only with a reload.
    let rules = config.rules_of_any();
    let lock = Some(lock_path(&config.control));
    Charge { rules, capture: config.overhear.interface.clone(), lock }
}

/// The file that the helper locks, beside the control socket.
fn lock_path(control: &Path) -> PathBuf {
    let mut path = OsString::from(control);
    path.push(".lock");
    path.into()
}

/// Creates the lock's directory, as the control socket would, which may come later. If that fails, the socket says why.
fn make_control_dir(config: &Config) {
    if let Some(dir) = config.control.parent() {
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o755).create(dir);
    }
}

/// Gives up all rights but those that the daemon needs for its work, for good, and logs what was skipped. Call it before
/// a second thread starts.
pub fn confine(config: &Config, given: &Given) -> InForce {
    if let Place::Dir(dir) = &config.store.place {
        prepare(dir);
    }
    let needs_raw = !config.mesh.interfaces.is_empty() && !may_bind_without();
    let keeps = if needs_raw { CapabilitySet::NET_RAW } else { CapabilitySet::empty() };
    let mut in_force = impose(keeps, places(config, given));
    if needs_raw {
        let sentence = "CAP_NET_RAW is kept: before Linux 5.7 it takes this to bind sockets to the mesh's interfaces";
        tracing::warn!("not limited: {sentence}");
        in_force.skipped.push(sentence.to_owned());
    }
    in_force
}

/// As [`confine`], for the far end of an uplink, whose settings are in this file.
pub fn confine_far(settings: &FarSettings, file: &Path) {
    let mut places = Places { read: read(Some(file)), ..Places::default() };
    places.read.extend(settings.ca.iter().flat_map(|it| around(it)));
    if let Place::Dir(dir) = &settings.place {
        places.write.push(dir.clone());
    }
    places.sockets.extend(settings.control.parent().map(Path::to_owned));
    impose(CapabilitySet::empty(), places);
}

fn impose(keeps: CapabilitySet, places: Places) -> InForce {
    let limits = Limits { keeps, places };
    let in_force = limits.impose();
    for sentence in &in_force.skipped {
        tracing::warn!("not limited: {sentence}");
    }
    // `hearsay status` shows them too.
    tracing::debug!(
        capabilities = ?in_force.capabilities,
        no_new_privileges = in_force.no_new_privileges,
        seccomp = in_force.seccomp,
        landlock = in_force.landlock,
        "rights are limited"
    );
    in_force
}

fn places(config: &Config, given: &Given) -> Places {
    let file = given.file.as_deref().unwrap_or(Path::new(crate::config::FILE_DEFAULT));
    // A reload reads it again, and it may be a link; `classes.d` is beside it.
    let mut read = read(Some(file));
    read.extend(config.mesh.key_file.iter().flat_map(|it| around(it)));
    let mut places = Places { read, ..Places::default() };
    if let Place::Dir(dir) = &config.store.place {
        places.write.push(dir.clone());
    }
    places.write.extend(log_dirs(config));
    places.sockets.extend(config.control.parent().map(Path::to_owned));
    places
}

/// Where the log of requests may be: its directory now, and the service's (systemd.exec(5), `LogsDirectory=`), where a
/// reload may put it.
fn log_dirs(config: &Config) -> Vec<PathBuf> {
    let named = std::env::var_os("LOGS_DIRECTORY").unwrap_or_default();
    let of_service = std::env::split_paths(&named).filter(|it| it.is_absolute());
    config.requests.dir().map(Path::to_owned).into_iter().chain(of_service).collect()
}

/// What is read by every process of ours, and one more file.
fn read(file: Option<&Path>) -> Vec<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let links = LINKS.iter().map(Path::new).chain(named.as_deref()).chain(file);
    READ.iter().map(PathBuf::from).chain(links.flat_map(around)).collect()
}

/// The directory of a file, and the directory of what it is a link to.
fn around(file: &Path) -> Vec<PathBuf> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
        // Never the root: that would be everything.
        Some(parent) if parent == Path::new("/") => Some(path.to_owned()),
        parent => parent.map(Path::to_owned),
    };
    let target = std::fs::canonicalize(file).ok();
    parent(file).into_iter().chain(target.as_deref().and_then(parent)).collect()
}

/// Creates the store's directory, as the store itself would: only what exists can be permitted. If that fails, the store
/// says why.
fn prepare(dir: &Path) {
    if let Some(parent) = dir.parent() {
        let _ = std::fs::create_dir_all(parent);
    }
    let _ = std::fs::DirBuilder::new().mode(0o700).create(dir);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    #[test]
    fn the_daemon_writes_to_the_store_and_the_control_directory_alone() {
        let text = "control = \"/run/x/control.sock\"\n[store]\npath = \"/var/cache/x\"";
        let config = load_text(text).expect("a right file");
        let given = Given { file: Some("/srv/x/hearsay.toml".into()), ..Given::default() };
        let places = places(&config, &given);
        assert_eq!(places.write, [Path::new("/var/cache/x")]);
        assert_eq!(places.sockets, [Path::new("/run/x")]);
        assert!(places.execute.is_empty());
        assert!(places.read.contains(&"/srv/x".into()) && places.read.contains(&"/etc".into()));
        assert!(!places.read.contains(&"/".into()));
        let memory = load_text("[store]\npath = \"memory\"").expect("a right file");
        assert!(super::places(&memory, &given).write.is_empty());
    }

    #[test]
    fn the_daemon_writes_to_the_directory_of_the_log_of_requests_too() {
        let text = "[store]\npath = \"memory\"\n[log]\nrequests = \"/var/log/x/requests.log\"";
        let places = places(&load_text(text).expect("a right file"), &Given::default());
        assert_eq!(places.write, [Path::new("/var/log/x")]);
    }

    #[test]
    fn the_daemons_own_check_of_memory_can_read_its_limit() {
        let places = places(&load_text("").expect("a right file"), &Given::default());
        // cgroups(7): the usual place of the second version's hierarchy.
        let limit = Path::new("/sys/fs/cgroup/system.slice/hearsay.service/memory.max");
        assert!(places.read.iter().any(|it| limit.starts_with(it)), "{:?}", places.read);
        assert!(!places.write.iter().any(|it| limit.starts_with(it)));
    }

    #[test]
    fn a_file_in_the_root_does_not_permit_the_root() {
        assert_eq!(around(Path::new("/no-such-file")), [Path::new("/no-such-file")]);
        assert_eq!(around(Path::new("no-such-file")), [Path::new(".")]);
    }

    #[test]
    fn the_helper_may_do_what_the_configuration_says() {
        let text = "[intercept]\ninterfaces = [\"lan0\"]\nport = 7007\nhttp = [81]\n[mesh]\n\
                    interfaces = [\"wl0\"]\ndirect = [\"10.0.0.0/8\"]\n[overhear]\nmode = \"sniff\"\ninterface = \"mon0\"";
        let charge = charge(&load_text(text).expect("a right file"));
        assert_eq!(
            (&charge.rules.interfaces[..], charge.rules.listen_port),
            (&["lan0".to_owned()][..], 7007)
        );
        assert_eq!((&charge.rules.ports[..], charge.rules.direct.len()), (&[80, 81][..], 1));
        assert_eq!(charge.capture.as_deref(), Some("mon0"));
        assert!(super::charge(&load_text("").expect("a right file")).rules.interfaces.is_empty());
    }

    #[test]
    fn the_helper_knows_the_port_before_there_are_interfaces() {
        let text = "control = \"/run/x/c.sock\"\n[intercept]\ninterfaces = []\nport = 8130";
        let charge = charge(&load_text(text).expect("a right file"));
        assert_eq!((charge.rules.interfaces.len(), charge.rules.listen_port), (0, 8130));
        assert_eq!(charge.lock.as_deref(), Some(Path::new("/run/x/c.sock.lock")));
    }

    #[test]
    fn a_users_name_is_found_by_its_number() {
        let users =
            "root:x:0:0::/root:/bin/sh\n\nbroken\nann:x:1000:0::/:/bin/sh\nbob:x:100:0::/:\n";
        assert_eq!(user_name(users, 100), Some("bob"));
        assert_eq!((user_name(users, 0), user_name(users, 10)), (Some("root"), None));
    }
}
