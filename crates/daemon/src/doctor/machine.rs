//! Checks of the machine: clock, disk, memory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use wire::Date;

use super::view::View;
use super::words;
use crate::entropy;
use crate::status::{Check, Finding};
use crate::term;

/// An earlier date on the machine's clock is wrong: this version was built in November 2026.
pub const BUILT: Date = Date::from_unix(1_793_491_200);
/// A clock that differs by more makes stored responses too old or too young by a lifetime that origins often give.
const CLOCK_TOLERANCE: u64 = 300;
/// The last second that has a date of HTTP: the end of the year 9999.
const DATE_MAX: u64 = 253_402_300_799;
/// A disk with less room is full: segments of the store are not smaller.
const ROOM_MIN: u64 = 8 << 20;
/// How much is written to measure the disk's speed, and how much room the disk must have for that.
const WRITTEN: usize = 4 << 20;
const ROOM_TO_WRITE: u64 = 64 << 20;
/// A disk that writes less in a second delays what clients wait for.
const SPEED_LOW: u64 = 2 << 20;

/// The clock by another machine: its name, and its date in seconds since 1970.
pub type Theirs = Option<(String, u64)>;

/// Judges the clock: `now` is in seconds since 1970.
pub fn clock(now: u64, theirs: &Theirs) -> Finding {
    let shown = |seconds: u64| {
        let within = Duration::from_secs(seconds.min(DATE_MAX));
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + within)
    };
    let how = "set it, and keep it set by NTP: until then, ages of responses are wrong";
    let text = match theirs {
        _ if now < BUILT.as_unix() => {
            let text = format!("it says {}: before this program was built", shown(now));
            return Finding::broken(Check::Clock, text, how);
        }
        None => shown(now),
        Some((host, date)) => {
            let apart = now.abs_diff(*date);
            let (way, apart_shown) = (
                if now < *date { "behind" } else { "ahead of" },
                term::duration(Duration::from_secs(apart)),
            );
            if apart > CLOCK_TOLERANCE {
                let text = format!("it says {}: {apart_shown} {way} {host}", shown(now));
                return Finding::broken(Check::Clock, text, how);
            }
            format!("{}, as {host} has it", shown(now))
        }
    };
    Finding::fine(Check::Clock, text)
}

/// What was read of the disk where the store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Bytes that may still be written.
    pub room: u64,
    /// Whether it is mounted read-only.
    pub is_read_only: bool,
    /// The kind of file system, as far as it matters: `tmpfs`, `ubifs`, `jffs2`, `f2fs`, `overlay`.
    pub kind: &'static str,
    /// Bytes written in a second; `None` if that was not measured.
    pub speed: Option<u64>,
}

/// File systems whose kind matters, by their magic numbers (linux/magic.h).
const KINDS: [(u64, &str); 6] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "tmpfs"),
    (0x2405_1905, "ubifs"),
    (0x72b6, "jffs2"),
    (0xf2f5_2010, "f2fs"),
    (0x794c_7630, "overlay"),
];

/// The check of the disk.
pub fn disk(view: &View) -> Finding {
    let trouble = view.status.as_ref().and_then(|it| it.store.error.clone());
    let Some(path) = view.store() else {
        return Finding::fine(Check::Disk, "the store is in memory: a restart empties it");
    };
    match read_disk(&path, !view.is_daemon()) {
        Ok(disk) => judge_disk(&path, &disk, view.store_bytes(), trouble),
        Err(error) => {
            let next = "look as the daemon's user or as root";
            Finding::unknown(Check::Disk, format!("{}: {}", path.display(), words(&error)), next)
        }
    }
}

/// Judges the disk: `size` and `used` are the store's bytes, `trouble` is what the daemon says of its store.
pub fn judge_disk(
    path: &Path,
    disk: &Disk,
    (size, used): (u64, u64),
    trouble: Option<String>,
) -> Finding {
    let shown = path.display();
    let needed = size.saturating_sub(used);
    let room = term::bytes(disk.room);
    if disk.is_read_only {
        let next = "make it writable (`mount -o remount,rw …`; the kernel's log says why it is not), then restart the daemon";
        return Finding::broken(
            Check::Disk,
            format!("{shown} is read-only: nothing new is stored"),
            next,
        );
    }
    if disk.room < ROOM_MIN && disk.room < needed {
        let next = "make room, or choose another `[store] path`";
        return Finding::broken(Check::Disk, format!("{shown} is full: {room} are free"), next);
    }
    if let Some(trouble) = trouble {
        let next = "repair the disk or choose another `[store] path`, then restart the daemon";
        return Finding::broken(Check::Disk, format!("{shown}: {trouble}"), next);
    }
    if disk.room < needed {
        let text =
            format!("{shown} has {room} free, and the store may take {} more", term::bytes(needed));
        return Finding::broken(Check::Disk, text, "lower `[store] size`, or make room");
    }
    let mut text =
        format!("{shown}: {room} free, {} of {} used", term::bytes(used), term::bytes(size));
    if let Some(speed) = disk.speed {
        text += &format!(", writes {}/s", term::bytes(speed));
    }
    let found = Finding::fine(Check::Disk, text);
    match (disk.kind, disk.speed) {
        ("tmpfs", _) => found.advise(
            "it is in memory (tmpfs): it takes from memory what it holds, and a restart empties it",
        ),
        (kind @ ("ubifs" | "jffs2"), _) => {
            found.advise(format!("it is flash ({kind}), which wears: a USB disk lasts longer"))
        }
        (_, Some(speed)) if speed < SPEED_LOW => {
            found.advise("it is slow: what clients fetch may not be stored in time")
        }
        _ => found,
    }
}

/// Reads the disk of a directory, or of the directory above that is there.
fn read_disk(path: &Path, measures: bool) -> io::Result<Disk> {
    let mut dir = PathBuf::from(path);
    while !dir.exists() && dir.pop() {}
    if dir.as_os_str() == OsStr::new("") {
        dir.push(".");
    }
    let (room, kind) =
        (rustix::fs::statvfs(&dir)?, rustix::fs::statfs(&dir)?.f_type as u64 & 0xffff_ffff);
    let mut disk = Disk {
        room: room.f_bavail.saturating_mul(room.f_frsize),
        is_read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
        kind: KINDS.iter().find(|(magic, _)| *magic == kind).map_or("", |(_, name)| name),
        speed: None,
    };
    if measures && !disk.is_read_only && disk.room > ROOM_TO_WRITE && disk.kind != "tmpfs" {
        disk.speed = speed(&dir);
    }
    Ok(disk)
}

/// Bytes written in a second, to a file without a name; `None` where the file system has no such files.
fn speed(dir: &Path) -> Option<u64> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR).ok()?);
    let bytes = incompressible();
    let begun = Instant::now();
    file.write_all(&bytes).ok()?;
    file.sync_data().ok()?;
    let micros = begun.elapsed().as_micros().max(1);
    u64::try_from(WRITTEN as u128 * 1_000_000 / micros).ok()
}

/// What is written to measure the speed. Some file systems compress, so it repeats nothing (Marsaglia's xorshift64).
fn incompressible() -> Vec<u8> {
    let mut state = u64::from_le_bytes(entropy::bytes()) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes())
    };
    std::iter::from_fn(next).take(WRITTEN / 8).flatten().collect()
}

/// What was read of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What the machine can still give.
    pub available: u64,
    /// The limit of the daemon's control group, if it has one.
    pub limit: Option<u64>,
    /// What the daemon has now.
    pub resident: u64,
    /// What the settings allow it: caches and buffers, overhearing, and a store in memory.
    pub budget: u64,
}

/// The check of memory.
pub fn memory(view: &View) -> Finding {
    let config = &view.config;
    let in_memory = if view.store().is_none() { view.store_bytes().0 } else { 0 };
    let (budget, resident) = match &view.status {
        Some(it) => (it.memory_budget_bytes, it.process.rss_bytes),
        None => (config.memory_bytes, 0),
    };
    let overheard = match &view.status {
        Some(it) => it.overhear.as_ref().map_or(0, |it| it.memory_budget_bytes),
        None => config.overhear.budget_bytes().unwrap_or(0),
    };
    let Some(available) = available() else {
        return Finding::unknown(Check::Memory, "/proc/meminfo cannot be read", "mount /proc");
    };
    let limit = view.process.and_then(group_limit);
    judge_memory(Memory { available, limit, resident, budget: budget + overheard + in_memory })
}

/// Judges memory.
pub fn judge_memory(it: Memory) -> Finding {
    let missing = it.budget.saturating_sub(it.resident);
    let (budget, free) = (term::bytes(it.budget), term::bytes(it.available));
    let next =
        "lower `memory` (and `[overhear] memory`, or a store in memory), or stop other programs";
    if missing > it.available {
        let text = format!("the budget is {budget}, and the machine has only {free} left");
        return Finding::broken(Check::Memory, text, next);
    }
    if let Some(limit) = it.limit.filter(|limit| *limit < it.budget) {
        let text =
            format!("the budget is {budget}, and its control group gives {}", term::bytes(limit));
        return Finding::broken(
            Check::Memory,
            text,
            "raise the limit (systemd: MemoryMax=), or lower `memory`",
        );
    }
    let now = if it.resident > 0 {
        format!("{} resident, ", term::bytes(it.resident))
    } else {
        String::new()
    };
    Finding::fine(Check::Memory, format!("{now}budget {budget}, {free} free"))
}

fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Where control groups are mounted (cgroups(7)); the daemon must be able to read here once its rights are limited.
pub const GROUPS: &str = "/sys/fs/cgroup";

/// The limit of the control group that a process is in (cgroup v2).
fn group_limit(process: u32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let file = Path::new(GROUPS).join(group).join("memory.max");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Verdict;

    const NOW: u64 = 1_795_000_000;

    #[test]
    fn a_clock_is_wrong_before_the_build_and_far_from_others() {
        let host = |date| Some(("a.test".to_owned(), date));
        assert_eq!(clock(NOW, &None).verdict, Verdict::Fine);
        assert_eq!(clock(NOW, &host(NOW + 200)).verdict, Verdict::Fine);
        let early = clock(1_600_000_000, &host(1_600_000_000));
        assert_eq!(early.verdict, Verdict::Broken);
        assert!(
            early.text.contains("Sun, 13 Sep 2020") && early.text.contains("before this program")
        );
        let behind = clock(NOW, &host(NOW + 7200));
        assert!(
            behind.verdict == Verdict::Broken && behind.text.contains("2 h behind a.test"),
            "{behind}"
        );
        assert!(clock(NOW, &host(NOW - 7200)).text.contains("2 h ahead of a.test"));
        assert!(clock(u64::MAX, &host(NOW)).text.contains("9999"), "no date of HTTP is later");
    }

    fn on(disk: Disk) -> Finding {
        judge_disk(Path::new("/s"), &disk, (100 << 20, 40 << 20), None)
    }

    #[test]
    fn a_disk_must_have_room_and_be_writable() {
        let sound = Disk { room: 1 << 30, speed: Some(50 << 20), ..Disk::default() };
        assert_eq!((on(sound.clone()).verdict, on(sound.clone()).next), (Verdict::Fine, None));
        for (disk, expected) in [
            (
                Disk { is_read_only: true, ..sound.clone() },
                "/s is read-only: nothing new is stored",
            ),
            (Disk { room: 1 << 20, ..sound.clone() }, "/s is full: 1.0 MiB are free"),
            (
                Disk { room: 20 << 20, ..sound.clone() },
                "/s has 20 MiB free, and the store may take 60 MiB more",
            ),
        ] {
            let found = on(disk);
            assert_eq!((found.verdict, found.text.as_str()), (Verdict::Broken, expected));
        }
        for (kind, word) in [("tmpfs", "restart"), ("ubifs", "wears")] {
            let found = on(Disk { kind, ..sound.clone() });
            assert!(found.verdict == Verdict::Fine && found.next.unwrap().contains(word));
        }
        assert!(on(Disk { speed: Some(1 << 20), ..sound.clone() }).next.unwrap().contains("slow"));
        let trouble = judge_disk(Path::new("/s"), &sound, (1, 0), Some("damaged".into()));
        assert_eq!((trouble.verdict, trouble.text.as_str()), (Verdict::Broken, "/s: damaged"));
    }

    #[test]
    fn a_full_store_needs_no_room() {
        let disk = Disk { room: 0, ..Disk::default() };
        let found = judge_disk(Path::new("/s"), &disk, (100, 100), None);
        assert_eq!(found.verdict, Verdict::Fine, "{found}");
    }

    #[test]
    fn a_disk_is_read_where_the_store_is_or_will_be() {
        let dir = tempfile::tempdir().unwrap();
        let disk = read_disk(&dir.path().join("not/yet"), true).unwrap();
        assert!(!disk.is_read_only && disk.room > 0, "{disk:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn the_budget_must_fit_into_what_is_left() {
        let sound =
            Memory { available: 100 << 20, limit: None, resident: 30 << 20, budget: 120 << 20 };
        assert_eq!(judge_memory(sound).verdict, Verdict::Fine);
        let tight = judge_memory(Memory { available: 80 << 20, ..sound });
        assert!(
            tight.verdict == Verdict::Broken && tight.text.contains("only 80 MiB left"),
            "{tight}"
        );
        let limited = judge_memory(Memory { limit: Some(64 << 20), ..sound });
        assert!(
            limited.verdict == Verdict::Broken && limited.text.contains("gives 64 MiB"),
            "{limited}"
        );
    }
}
