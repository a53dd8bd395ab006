//! A store is accessible to its owner only, because its catalogue shows what clients requested.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use store::{Catalogue, CatalogueOptions, Disk, Index, Log, LogOptions, Policy};

use crate::common::unit;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Opens a store and writes to it; returns whether others could read a file before.
fn use_store(root: &Path) -> bool {
    let disk = Disk::open(root).expect("it can be made");
    let was_open = disk.was_open_to_others();
    let files = Arc::new(disk);
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (mut log, _) = Log::open(files.clone(), LogOptions::default(), &mut index).expect("a log");
    log.append(&[unit(1, 3000)]).expect("there is room");
    Catalogue::open(files, CatalogueOptions::default()).expect("a catalogue");
    was_open
}

fn modes(root: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(root).expect("a directory").map(|entry| entry.expect("an entry"));
    entries.map(|it| (it.file_name().to_string_lossy().into_owned(), mode(&it.path()))).collect()
}

#[test]
fn a_new_store_is_its_owners_alone_and_what_is_above_it_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("above/store");
    assert!(!use_store(&root));
    assert_eq!(mode(&root), 0o700);
    let (above, ordinary) = (dir.path().join("above"), dir.path().join("ordinary"));
    fs::create_dir(&ordinary).expect("mkdir");
    assert_eq!(mode(&above), mode(&ordinary), "others may have caches beside it");
    let modes = modes(&root);
    assert!(modes.len() >= 4 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}

#[test]
fn a_store_that_others_could_read_is_closed_to_them_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("store");
    use_store(&root);
    fs::write(root.join("identity"), [7; 32]).expect("write");
    set_mode(&root, 0o755);
    modes(&root).iter().for_each(|(name, _)| set_mode(&root.join(name), 0o644));
    assert!(use_store(&root), "the change is reported");
    assert_eq!(mode(&root), 0o700);
    let modes = modes(&root);
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    assert!(!use_store(&root));
}

#[test]
fn a_directory_where_others_keep_theirs_stays_open() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, before) in [("shared", 0o755), ("sticky", 0o1777)] {
        let root = dir.path().join(name);
        fs::create_dir(&root).expect("mkdir");
        if name == "shared" {
            fs::write(root.join("a letter"), "to a friend").expect("write");
            set_mode(&root.join("a letter"), 0o644);
        }
        set_mode(&root, before);
        use_store(&root);
        assert_eq!(mode(&root), before, "{name}");
        for (file, mode) in modes(&root) {
            assert_eq!(mode, if file == "a letter" { 0o644 } else { 0o600 }, "{name}/{file}");
        }
    }
}
