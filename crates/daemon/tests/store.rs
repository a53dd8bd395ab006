//! Traffic while the store is full, read-only, damaged or another user's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::world::network;
use crate::world::{Hearsay, Nginx, World, assert_same, noise, sh, skipped, wait_until};

/// Puts files on an origin: their names and contents.
fn files(nginx: &Nginx, count: u64, bytes: usize) -> Vec<(String, Vec<u8>)> {
    let make = |number| {
        let (name, content) = (format!("file{number}"), noise(number + 100, bytes));
        nginx.put(&name, &content);
        (name, content)
    };
    (0..count).map(make).collect()
}

/// Downloads all files, and returns how many were hits.
#[track_caller]
fn get_all(hearsay: &Hearsay, nginx: &Nginx, files: &[(String, Vec<u8>)]) -> usize {
    let mut hits = 0;
    for (name, content) in files {
        let reply = hearsay.get(&nginx.url(name)).expect(200);
        assert_same(&reply.body, content);
        hits += usize::from(reply.is_hit());
    }
    hits
}

/// Downloads new files until one is stored: the daemon retries the store only after a while.
fn wait_until_it_stores(hearsay: &Hearsay, nginx: &Nginx) {
    let begun = Instant::now();
    for number in 1000.. {
        let (name, content) = (format!("new{number}"), noise(number, 20_000));
        nginx.put(&name, &content);
        assert_same(&hearsay.get(&nginx.url(&name)).expect(200).body, &content);
        let again = hearsay.get(&nginx.url(&name)).expect(200);
        assert_same(&again.body, &content);
        if again.is_hit() {
            return;
        }
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(180), "nothing is stored: {}", hearsay.status());
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A file system that is mounted at this path until the value is dropped. Declare it before its users.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        // The file system may not be mounted yet; its namespace ends with the test in any case.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn traffic_goes_on_when_the_disk_is_full_and_storing_when_there_is_room() {
    network::inside("traffic_goes_on_when_the_disk_is_full_and_storing_when_there_is_room", || {
        let world = World::new();
        let disk = world.path("disk");
        fs::create_dir(&disk).expect("mkdir");
        let _mount = Mount(disk.clone());
        sh(&format!(
            // 12 MiB remain for files of 32 MB.
            "mount -t tmpfs -o size=48m none {0}; fallocate -l 36m {0}/ballast",
            disk.display()
        ));
        let nginx = Nginx::start(&world, "");
        let files = files(&nginx, 8, 4_000_000);
        let store = disk.join("store").display().to_string();
        let hearsay = Hearsay::start_with(&world, &["--store", &store]);
        for _ in 0..2 {
            get_all(&hearsay, &nginx, &files);
        }
        let status = hearsay.status();
        let page = hearsay.command(&["status"]);
        let page = String::from_utf8_lossy(&page.stdout).to_lowercase();
        assert_eq!(status["store"]["works"], false, "{status}");
        assert!(hearsay.log().contains("nothing new is stored"), "{}", hearsay.log());

        fs::remove_file(disk.join("ballast")).expect("room is made");
        wait_until_it_stores(&hearsay, &nginx);
        wait_until("the status to be well again", || hearsay.status()["store"]["works"] == true);
        assert!(!hearsay.log().contains("panicked"), "{}", hearsay.log());
        let why = status["store"]["error"].as_str().unwrap_or_default().to_lowercase();
        assert!(why.contains("no space"), "the status did not say why: {status}");
        assert!(page.contains("no space"), "the page did not say why: {page}");
    });
}

#[test]
fn traffic_goes_on_when_files_may_not_grow_and_storing_when_they_may() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 8, 2_000_000);
    // At the limit the kernel also sends SIGXFSZ, which kills a process that does not ignore it.
    let before = ["sh", "-c", "trap '' XFSZ; exec prlimit --fsize=3000000:unlimited \"$0\" \"$@\""];
    let hearsay = Hearsay::start_under(&world, &before, &[]);
    for _ in 0..2 {
        get_all(&hearsay, &nginx, &files);
    }
    let status = hearsay.status();
    assert_eq!(status["store"]["works"], false, "{status}");
    sh(&format!("prlimit --pid {} --fsize=unlimited:unlimited", hearsay.id()));
    wait_until_it_stores(&hearsay, &nginx);
    wait_until("the status to be well again", || hearsay.status()["store"]["works"] == true);
    assert!(!hearsay.log().contains("panicked"), "{}", hearsay.log());
    let why = status["store"]["error"].as_str().unwrap_or_default();
    assert!(why.contains("File too large"), "the status did not say why: {status}");
}

#[test]
fn a_limit_on_file_sizes_does_not_kill_the_daemon() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 4, 2_000_000);
    let hearsay = Hearsay::start_under(&world, &["prlimit", "--fsize=3000000"], &[]);
    get_all(&hearsay, &nginx, &files);
    assert_eq!(hearsay.status()["store"]["works"], false);
}

#[test]
fn a_store_that_may_not_be_written_serves_what_it_has() {
    network::inside("a_store_that_may_not_be_written_serves_what_it_has", || {
        let world = World::new();
        let dir = world.path("disk");
        fs::create_dir_all(dir.join("store")).expect("mkdir");
        let nginx = Nginx::start(&world, "");
        let files = files(&nginx, 2, 300_000);
        let store = dir.join("store").display().to_string();
        let mut reasons = Vec::new();
        // Once with an empty directory, and once with a sound store.
        for (round, held) in [("empty", 0), ("filled", 2)] {
            sh(&format!("mount --bind {0} {0}; mount -o remount,bind,ro {0}", dir.display()));
            let mount = Mount(dir.clone());
            let hearsay = Hearsay::start_with(&world, &["--store", &store]);
            for _ in 0..2 {
                assert_eq!(get_all(&hearsay, &nginx, &files), held, "{round}: {}", hearsay.log());
            }
            nginx.put(round, b"new");
            let new = hearsay.get(&nginx.url(round)).expect(200);
            assert!(!new.cache_status().contains("stored"), "{round}: {new:?}");
            let status = hearsay.status();
            assert_eq!(status["store"]["works"], false, "{round}: {status}");
            reasons.push(status["store"]["error"].as_str().unwrap_or_default().to_lowercase());
            drop((hearsay, mount));
            let mut hearsay = Hearsay::start_with(&world, &["--store", &store]);
            get_all(&hearsay, &nginx, &files);
            assert_eq!(get_all(&hearsay, &nginx, &files), 2, "{round}");
            hearsay.terminate();
        }
        let said = reasons.iter().all(|reason| reason.contains("read-only"));
        assert!(said, "the status did not say why: {reasons:#?}");
    });
}

/// Paths of the store's segments: all large files but the catalogue.
fn segments(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store).expect("the store");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.metadata().expect("its length").len() > 100_000)
        .filter(|path| path.file_name().is_none_or(|name| name != "catalogue"))
        .collect()
}

/// Flips a bit of each occurrence of these bytes in the store, and returns the number of occurrences.
fn flip(store: &Path, part: &[u8]) -> usize {
    let mut count = 0;
    for path in segments(store) {
        let mut bytes = fs::read(&path).expect("a segment");
        let found: Vec<_> =
            (0..bytes.len() - part.len()).filter(|at| bytes[*at..].starts_with(part)).collect();
        found.iter().for_each(|at| bytes[*at] ^= 0x40);
        count += found.len();
        fs::write(&path, bytes).expect("a segment");
    }
    count
}

#[test]
fn a_flipped_bit_is_noticed_and_the_right_bytes_delivered() {
    // In the first unit; in the middle; at the end, long after the response's head was sent.
    for position in [10, 1_500_000, 2_999_000] {
        let world = World::new();
        let nginx = Nginx::start(&world, "");
        let files = files(&nginx, 2, 3_000_000);
        let mut hearsay = Hearsay::start(&world);
        get_all(&hearsay, &nginx, &files);
        hearsay.terminate();
        let part = &files[0].1[position..position + 64];
        assert_eq!(flip(hearsay.store(), part), 1, "at {position}: not found in the store");

        hearsay.restart();
        let reply = hearsay.get(&nginx.url("file0"));
        let begin = &files[0].1[..reply.body.len().min(files[0].1.len())];
        assert_same(&reply.body, begin);
        assert_eq!((reply.exit, reply.status), (0, 200), "at {position}: {reply:?}");
        assert_same(&reply.body, &files[0].1);
        // The other file is still stored, and the damaged one is repaired.
        assert_same(&hearsay.get(&nginx.url("file1")).expect_hit().body, &files[1].1);
        assert_same(&hearsay.get(&nginx.url("file0")).expect_hit().body, &files[0].1);
        assert_eq!(nginx.count("/file1"), 1);
        assert!(nginx.count("/file0") >= 2, "at {position}");
    }
}

#[test]
fn after_any_damage_to_segments_the_bytes_are_right_and_soon_hits_again() {
    let overwrite = |path: &Path| fs::write(path, noise(55, 300_000)).expect("write");
    let truncate = |path: &Path| {
        let file = fs::OpenOptions::new().write(true).open(path).expect("open");
        file.set_len(path.metadata().expect("its length").len() / 2).expect("truncate");
    };
    let scatter = |path: &Path| {
        let mut bytes = fs::read(path).expect("read");
        bytes.iter_mut().step_by(9973).for_each(|byte| *byte ^= 0x55);
        fs::write(path, bytes).expect("write");
    };
    let remove = |path: &Path| fs::remove_file(path).expect("remove");
    let damages: [&dyn Fn(&Path); 4] = [&overwrite, &truncate, &scatter, &remove];
    for (what, damage) in ["overwritten", "truncated", "scattered", "removed"].iter().zip(damages) {
        let world = World::new();
        let nginx = Nginx::start(&world, "");
        let files = files(&nginx, 5, 400_000);
        let mut hearsay = Hearsay::start(&world);
        get_all(&hearsay, &nginx, &files);
        hearsay.terminate();
        let damaged = segments(hearsay.store());
        assert!(!damaged.is_empty());
        damaged.iter().for_each(|path| damage(path));
        hearsay.restart();
        for (name, content) in &files {
            let reply = hearsay.get(&nginx.url(name));
            assert!(content.starts_with(&reply.body), "{what}: wrong bytes: {reply:?}");
            assert_eq!((reply.exit, reply.status), (0, 200), "{what}: {reply:?}");
            assert_same(&reply.body, content);
        }
        assert_eq!(get_all(&hearsay, &nginx, &files), 5, "{what}: not mended");
        assert!(!hearsay.log().contains("panicked"), "{what}: {}", hearsay.log());
    }
}

/// Damages to a catalogue that was closed cleanly.
fn damages() -> Vec<(String, Damage)> {
    let mut all: Vec<(String, Damage)> = vec![
        ("garbage".into(), Box::new(|bytes| *bytes = noise(77, bytes.len()))),
        ("cut".into(), Box::new(|bytes| bytes.truncate(bytes.len() / 3))),
        ("cut within a page".into(), Box::new(|bytes| bytes.truncate(bytes.len() - 1000))),
        ("emptied".into(), Box::new(Vec::clear)),
        ("zeroed".into(), Box::new(|bytes| bytes.fill(0))),
        ("scattered".into(), Box::new(|bytes| spoil(bytes, 50, 97))),
        ("a byte in each page".into(), Box::new(|bytes| spoil(bytes, 4096 + 5, 4096))),
    ];
    for page in 0..12 {
        let spoil_page: Damage = Box::new(move |bytes| {
            let page = bytes.chunks_mut(4096).nth(page).unwrap_or_default();
            spoil(page, 1, 7);
        });
        all.push((format!("page {page}"), spoil_page));
    }
    all
}

type Damage = Box<dyn Fn(&mut Vec<u8>)>;

fn spoil(bytes: &mut [u8], from: usize, step: usize) {
    bytes.iter_mut().skip(from).step_by(step).for_each(|byte| *byte ^= 0x11);
}

#[test]
fn a_broken_catalogue_is_begun_anew_and_said() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 3, 60_000);
    let mut hearsay = Hearsay::start(&world);
    get_all(&hearsay, &nginx, &files);
    hearsay.terminate();
    drop(hearsay);
    let sound = fs::read(world.path("store/catalogue")).expect("the catalogue");
    let mut wrong = Vec::new();
    for (what, damage) in damages() {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        fs::write(world.path("store/catalogue"), bytes).expect("the catalogue");
        fs::remove_file(world.path("hearsay.log")).expect("the log");
        if let Err(why) = serves_and_stores(&world, &nginx, &files) {
            wrong.push(format!("{what}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that a daemon starts on the store as it is, serves the files, stores them, and has them after a restart.
fn serves_and_stores(
    world: &World,
    nginx: &Nginx,
    files: &[(String, Vec<u8>)],
) -> Result<(), String> {
    let mut hearsay = Hearsay::may_start(world)?;
    let dies = |hearsay: &Hearsay| format!("it died: {}", hearsay.log());
    // The first round may fetch from the origin; in the second every file must be a hit.
    let mut hits = [0; 2];
    for hit in &mut hits {
        for (name, content) in files {
            let reply = hearsay.get(&nginx.url(name));
            if hearsay.has_ended() || hearsay.log().contains("panicked") {
                return Err(dies(&hearsay));
            }
            let right = reply.exit == 0 && reply.status == 200 && reply.body == *content;
            right.then_some(()).ok_or_else(|| format!("a wrong answer: {reply:?}"))?;
            *hit += usize::from(reply.is_hit());
        }
    }
    let log = hearsay.log();
    if hits[1] < files.len() {
        return Err(format!("{} hits after all was fetched: {log}", hits[1]));
    }
    let said = log.contains("WARN") && log.contains("catalogue");
    if hits[0] == 0 && !said {
        return Err(format!("all was lost and nothing said: {log}"));
    }
    hearsay.terminate();
    let again = Hearsay::may_start(world)?;
    let kept = get_all(&again, nginx, files);
    (kept == files.len()).then_some(()).ok_or_else(|| format!("{kept} hits after a restart"))
}

#[test]
fn a_store_without_a_catalogue_is_begun_anew() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 3, 60_000);
    let mut hearsay = Hearsay::start(&world);
    get_all(&hearsay, &nginx, &files);
    hearsay.terminate();
    fs::remove_file(hearsay.store().join("catalogue")).expect("the catalogue");
    hearsay.restart();
    assert_eq!(get_all(&hearsay, &nginx, &files), 0);
    assert_eq!(get_all(&hearsay, &nginx, &files), 3);
}

#[test]
fn a_damaged_mark_costs_no_hit() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 3, 60_000);
    let mut hearsay = Hearsay::start(&world);
    get_all(&hearsay, &nginx, &files);
    for mark in [&b"\0\0\0\0"[..], b"hearsay-store\0 1\n"] {
        hearsay.terminate();
        world.write("store/hearsay-store", mark);
        hearsay.restart();
        assert_eq!(get_all(&hearsay, &nginx, &files), 3);
        assert_eq!(hearsay.status()["store"]["works"], true);
    }
    assert!(hearsay.log().contains("`hearsay-store` was damaged"), "{}", hearsay.log());
}

/// The modes of a store's directory and of all files in it.
fn modes(store: &Path) -> Vec<u32> {
    let files = fs::read_dir(store).expect("the store").map(|entry| entry.expect("one").path());
    let mode =
        |path: PathBuf| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    [store.to_owned()].into_iter().chain(files).map(mode).collect()
}

#[test]
fn a_store_is_its_owners_alone_even_if_it_was_not() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 1, 60_000);
    let config = world.write("hearsay.toml", b"[mesh]\ninterfaces = [\"nowhere0\"]\n");
    let config = config.display().to_string();
    let args = ["--config", &config, "--listen", "127.0.0.1:0"];
    let mut hearsay = Hearsay::start_with(&world, &args);
    get_all(&hearsay, &nginx, &files);
    let alone = |hearsay: &Hearsay| {
        let modes = modes(hearsay.store());
        assert!(hearsay.store().join("identity").exists() && modes.len() >= 6, "{modes:?}");
        assert_eq!((modes[0], modes[1..].iter().max()), (0o700, Some(&0o600)), "{modes:?}");
    };
    alone(&hearsay);
    assert!(!hearsay.log().contains("other users could read"), "{}", hearsay.log());
    hearsay.terminate();
    sh(&format!("cd {}; chmod 755 .; chmod 644 *", hearsay.store().display()));
    hearsay.restart();
    alone(&hearsay);
    assert_eq!(get_all(&hearsay, &nginx, &files), 1);
    assert!(hearsay.log().contains("other users could read the store"), "{}", hearsay.log());
}

#[test]
fn a_directory_that_is_no_store_of_ours_is_left_alone() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 1, 100_000);
    world.write("store/hearsay-store", b"hearsay-store 999\n");
    let hearsay = Hearsay::start(&world);
    for _ in 0..2 {
        get_all(&hearsay, &nginx, &files);
    }
    let status = hearsay.status();
    assert_eq!(status["store"]["works"], false, "{status}");
    assert!(status["store"]["error"].as_str().is_some_and(|it| it.contains("999")), "{status}");
    let left = fs::read_dir(hearsay.store()).expect("it").filter_map(|entry| entry.ok());
    let names: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(names.len() <= 2, "something was put there: {names:?}");
}

#[test]
fn a_store_of_somebody_else_is_refused_in_one_line() {
    let name = "a_store_of_somebody_else_is_refused_in_one_line";
    let world = World::new();
    let mut hearsay = Hearsay::start(&world);
    hearsay.terminate();
    let store = hearsay.store().display().to_string();
    if std::os::unix::fs::chown(hearsay.store(), Some(65_534), None).is_err() {
        return skipped(name, "only root can give a file to somebody else");
    }
    // Root without these capabilities is subject to file modes, like any user.
    let plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let refused = |owned: &str| {
        let (status, said) = Hearsay::try_start_under(&world, &plain, &[]);
        assert_eq!(status.code(), Some(2), "{said}");
        let said = said.trim_end().lines().last().unwrap_or_default();
        let expected = format!("hearsay: --store: {owned} belongs to user 65534");
        assert!(said.starts_with(&expected) && said.contains("chown"), "{said}");
        assert!(!world.path("control").exists(), "a half start");
    };
    refused(&store);
    // The directory belongs to us, and one file in it does not.
    std::os::unix::fs::chown(hearsay.store(), Some(0), None).expect("we are root");
    let catalogue = hearsay.store().join("catalogue");
    std::os::unix::fs::chown(&catalogue, Some(65_534), None).expect("we are root");
    refused(&catalogue.display().to_string());
}

#[test]
fn root_does_not_start_on_the_store_of_somebody_else() {
    let name = "root_does_not_start_on_the_store_of_somebody_else";
    let world = World::new();
    let store = world.path("store");
    fs::create_dir(&store).expect("mkdir");
    if std::os::unix::fs::chown(&store, Some(65_534), None).is_err() {
        return skipped(name, "only root can give a file to somebody else");
    }
    let (status, said) = Hearsay::try_start(&world, &[]);
    assert_eq!(status.code(), Some(2), "{said}");
    let said = said.trim_end().lines().last().unwrap_or_default();
    let expected = format!("hearsay: the store {} belongs to user 65534", store.display());
    let advice = format!(
        " -- hearsay run --store {} --control {}`)",
        store.display(),
        world.path("control").display()
    );
    assert!(said.starts_with(&expected) && said.ends_with(&advice), "{said}");
    assert_eq!(fs::read_dir(&store).expect("a directory").count(), 0, "something was put there");
    assert!(!world.path("control.lock").exists() && !world.path("control").exists());
    // In a directory of its own it starts.
    std::os::unix::fs::chown(&store, Some(0), None).expect("we are root");
    assert_eq!(Hearsay::start(&world).status()["store"]["works"], true);
}

#[test]
fn a_mode_that_forbids_a_store_is_named_and_an_identity_need_not_be_writable() {
    let world = World::new();
    let mut hearsay = Hearsay::start(&world);
    hearsay.terminate();
    let set_mode = |name: &str, mode| {
        let path = hearsay.store().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path
    };
    world.write("store/identity", &[7; 32]);
    set_mode("identity", 0o400);
    // Root without these capabilities is subject to file modes, like any user.
    let plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let path = set_mode("catalogue", 0o400);
    let (status, said) = Hearsay::try_start_under(&world, &plain, &[]);
    assert_eq!(status.code(), Some(2), "{said}");
    let expected = format!("--store: {} has mode 0400", path.display());
    assert!(said.contains(&expected) && said.contains("chmod u+rwX"), "{said}");
    set_mode("catalogue", 0o600);
    let hearsay = Hearsay::start_under(&world, &plain, &[]);
    assert_eq!(hearsay.status()["store"]["works"], true, "{}", hearsay.log());
}

#[test]
fn a_second_daemon_on_the_same_store_is_refused_in_one_line() {
    let world = World::new();
    let first = Hearsay::start(&world);
    let other = World::new();
    let store = first.store().display().to_string();
    let (status, said) = Hearsay::try_start(&other, &["--store", &store]);
    assert_eq!(status.code(), Some(1), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.contains("in use by another process") && said.contains(&store), "{said}");
    assert!(!other.path("control").exists(), "its control socket was left behind");
    first.status();
}

#[test]
fn a_second_daemon_on_the_same_control_socket_is_refused_in_one_line() {
    let world = World::new();
    let first = Hearsay::start(&world);
    let (status, said) = Hearsay::try_start(&world, &["--store", "memory"]);
    assert_eq!(status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("another hearsay is running"), "{said}");
    first.status();
}

#[test]
fn a_store_keeps_to_its_budget() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 24, 3_000_000);
    let hearsay = Hearsay::start_with(&world, &["--store-size", "24MiB"]);
    let usage = || -> u64 {
        let entries = fs::read_dir(hearsay.store()).expect("the store");
        entries.map(|entry| entry.and_then(|it| it.metadata()).map_or(0, |it| it.len())).sum()
    };
    for (name, content) in &files {
        assert_same(&hearsay.get(&nginx.url(name)).expect(200).body, content);
        assert!(usage() <= 26 << 20, "{} bytes on disk", usage());
    }
    assert!(hearsay.number("/report/index/evicted_bytes") > 0);
    assert_eq!(hearsay.status()["store"]["works"], true);
    // The newest file is still stored, and evicted files are fetched again.
    let (last, content) = &files[files.len() - 1];
    assert_same(&hearsay.get(&nginx.url(last)).expect_hit().body, content);
    get_all(&hearsay, &nginx, &files[..3]);
}

#[test]
fn a_store_in_memory_serves_hits_and_forgets() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let files = files(&nginx, 3, 500_000);
    let mut hearsay = Hearsay::start_with(&world, &["--store", "memory"]);
    get_all(&hearsay, &nginx, &files);
    assert_eq!(get_all(&hearsay, &nginx, &files), 3);
    hearsay.terminate();
    hearsay.restart();
    assert_eq!(get_all(&hearsay, &nginx, &files), 0);
    assert_eq!(hearsay.status()["store"]["kind"], "memory");
}

#[test]
fn the_same_content_under_two_names_is_kept_once() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let content = noise(9, 2_000_000);
    nginx.put("one", &content);
    nginx.put("two", &content);
    let hearsay = Hearsay::start(&world);
    let all_is_written = || hearsay.number("/report/pinned_bytes") == 0;
    hearsay.get(&nginx.url("one")).expect(200);
    wait_until("the first to be written", all_is_written);
    let before = hearsay.number("/store/used_bytes");
    hearsay.get(&nginx.url("two")).expect(200);
    wait_until("the second to be written", all_is_written);
    assert_same(&hearsay.get(&nginx.url("two")).expect_hit().body, &content);
    assert!(hearsay.number("/report/known_bytes") >= 1_900_000, "{}", hearsay.status());
    assert!(hearsay.number("/store/used_bytes") < before + 100_000, "{}", hearsay.status());
}
