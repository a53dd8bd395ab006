//! The outside of a test's runs: mounts, interfaces and named namespaces that a run must not change.
//!
//! A thread that has called [`leave`] has an outside of its own, and so has all that it starts: other programs do
//! not change it, and whatever changes in it was made by this test.

use std::collections::BTreeSet;
use std::fs;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::thread::UnshareFlags;

/// The state of the outside. The kernel's files of a thread are those of its own namespaces.
#[derive(Debug, PartialEq, Eq)]
pub struct Outside {
    namespaces: BTreeSet<String>,
    interfaces: BTreeSet<String>,
    mounts: String,
    hosts: String,
}

impl Outside {
    pub fn look() -> Self {
        Self {
            namespaces: namespaces(),
            interfaces: interfaces(),
            mounts: fs::read_to_string("/proc/thread-self/mounts").expect("Linux"),
            hosts: fs::read_to_string("/etc/hosts").unwrap_or_default(),
        }
    }
}

thread_local! {
    static HAS_LEFT: bool = unshare();
}

/// Gives this thread an outside of its own, unless it has one. False: the thread may not, and so cannot change
/// the machine's either.
pub fn leave() -> bool {
    HAS_LEFT.with(|it| *it)
}

/// Moves to mounts and interfaces of this thread's own, with an empty /run and a copy of /etc/hosts.
fn unshare() -> bool {
    #[expect(
        deprecated,
        reason = "its successor is unsafe because of file descriptors; they stay shared"
    )]
    let left = rustix::thread::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWNET);
    match left {
        Err(Errno::PERM) => return false,
        _ => left.expect("namespaces"),
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).expect("mounts of its own");
    mount("none", "/run", "tmpfs", MountFlags::empty(), None).expect("a /run");
    fs::write("/run/hosts", fs::read("/etc/hosts").unwrap_or_default()).expect("a file");
    mount_bind("/run/hosts", "/etc/hosts").expect("an /etc/hosts");
    true
}

/// The names that `ip netns` lists.
fn namespaces() -> BTreeSet<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn interfaces() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").expect("Linux");
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}
