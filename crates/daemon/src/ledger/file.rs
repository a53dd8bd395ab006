//! The ledger's file in the store's directory.
//!
//! *What survives:* all that was written and synced. A new file replaces the old one by its name; an entry that was
//! written only in part is recognised and dropped at the next start. A file that cannot be read is kept beside the new
//! one, and so is the one that was kept before it; no more.

use super::page::Damaged;
use crate::target::{self, Target};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use store::ledger::{FILE_BYTES_MAX, Ledger, Lost, Reading, read};

/// The file's name in the store's directory.
pub const NAME: &str = "ledger";
/// What the name of a damaged file ends with …
const DAMAGED: &str = ".damaged";
/// … and that of the one before it.
const OLDER: &str = ".damaged.old";
/// Only its owner may read it: hosts tell about people.
const MODE: u32 = 0o600;

/// The file, as it was last written.
pub struct LedgerFile {
    dir: PathBuf,
    /// The file and its length; `None`: it must be written anew.
    open: Option<(File, u64)>,
    /// The trouble that was said last, so that each is said once.
    said: Option<String>,
}

/// Reads the ledger of a store's directory. `None`: there is none.
///
/// # Errors
/// If the file cannot be read.
pub fn load(dir: &Path) -> io::Result<Option<Reading>> {
    match File::open(dir.join(NAME)) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
            Ok(Some(read(&bytes)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl LedgerFile {
    /// Opens the ledger. One that cannot be read is begun anew, and the log says so.
    pub fn open(dir: &Path) -> (Ledger, Self) {
        let mut file = Self { dir: dir.to_owned(), open: None, said: None };
        let path = dir.join(NAME);
        let reading = match load(dir) {
            Ok(Some(reading)) => reading,
            Ok(None) => return (Ledger::default(), file),
            Err(error) => {
                tracing::warn!(
                    "{}: cannot be read: {error}; the ledger begins anew",
                    path.display()
                );
                keep_damaged(&path);
                return (Ledger::default(), file);
            }
        };
        match reading.lost {
            Lost::Nothing if reading.bytes > 0 => {
                let open = OpenOptions::new().write(true).open(&path);
                file.open = open.ok().map(|it| (it, reading.bytes as u64));
            }
            Lost::Nothing => {}
            // A power cut leaves such an end; what it was lasted seconds.
            Lost::End(bytes) => {
                tracing::warn!(
                    "{}: the last {bytes} bytes were damaged, and are dropped",
                    path.display()
                );
            }
            Lost::All => {
                tracing::warn!("{}: it is damaged, or no ledger; it begins anew", path.display());
                keep_damaged(&path);
            }
        }
        (reading.ledger, file)
    }

    /// Whether this many more bytes can be added; otherwise the file must be written anew.
    pub fn takes(&self, bytes: usize) -> bool {
        let length = self.open.as_ref().map(|(_, length)| *length);
        length.is_some_and(|length| length + bytes as u64 <= FILE_BYTES_MAX as u64)
    }

    /// Adds entries, or writes the `whole` file anew. What cannot be written is written with the whole next time; the
    /// log says why.
    pub fn write(&mut self, entries: &[u8], whole: Option<Vec<u8>>) {
        let written = match (whole, self.open.take()) {
            (None, Some((file, length))) => append(file, length, entries),
            (Some(whole), _) => self.replace(&whole),
            (None, None) => Err(io::Error::other("it is not open")),
        };
        match written {
            Ok(open) => (self.open, self.said) = (Some(open), None),
            Err(error) => {
                let text = error.to_string();
                if self.said.as_ref() != Some(&text) {
                    tracing::warn!("the ledger cannot be written: {text}; it is kept in memory");
                }
                self.said = Some(text);
            }
        }
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<(File, u64)> {
        let file = target::replace(&self.dir.join(NAME), bytes, MODE)?;
        Ok((file, bytes.len() as u64))
    }
}

/// Puts a file that cannot be read aside, where the new one does not replace it.
fn keep_damaged(path: &Path) {
    // A pipe or a device is not put aside; nor is it replaced.
    let Ok(Target::File(real)) = Target::of(path) else { return };
    let (damaged, older) = (with(&real, DAMAGED), with(&real, OLDER));
    // There may be none yet.
    let _ = fs::rename(&damaged, older);
    match fs::rename(&real, &damaged) {
        Ok(()) => tracing::warn!("the damaged ledger is kept as {}", damaged.display()),
        Err(error) => tracing::warn!("{}: cannot be kept: {error}", real.display()),
    }
}

/// The ledger of a store's directory that was damaged last and is kept.
pub fn damaged(dir: &Path) -> Option<Damaged> {
    let Ok(Target::File(real)) = Target::of(&dir.join(NAME)) else { return None };
    let file = with(&real, DAMAGED);
    let written = fs::symlink_metadata(&file).ok()?.modified().ok()?;
    let written = written.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    Some(Damaged { file: file.display().to_string(), written })
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn append(file: File, length: u64, entries: &[u8]) -> io::Result<(File, u64)> {
    file.write_all_at(entries, length)?;
    file.sync_data()?;
    Ok((file, length + entries.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::Pipe;
    use std::fs;
    use store::ledger::{Amount, Topic, entry};

    fn amounts(count: u64) -> [Amount; 1] {
        [Amount { topic: Topic::Class, name: "apt".into(), column: 0, count }]
    }

    fn sum(ledger: &Ledger) -> u64 {
        ledger.ever().iter().map(|it| it.count).sum()
    }

    #[test]
    fn what_was_written_is_there_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let (mut ledger, mut file) = LedgerFile::open(dir.path());
        assert!(load(dir.path()).unwrap().is_none() && !file.takes(0));
        ledger.add(Some(1_795_000_000), &amounts(1));
        file.write(&[], Some(ledger.snapshot()));
        for count in [10, 100] {
            let entry = entry(Some(1_795_000_000), &amounts(count));
            assert!(file.takes(entry.len()));
            file.write(&entry, None);
        }
        assert!(!file.takes(FILE_BYTES_MAX));
        let (ledger, mut file) = LedgerFile::open(dir.path());
        assert_eq!(sum(&ledger), 111);
        file.write(&entry(None, &amounts(1000)), None);
        assert_eq!(sum(&LedgerFile::open(dir.path()).0), 1111);
    }

    #[test]
    fn a_damaged_file_is_begun_anew_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        for bytes in [&b"HSLEDGR1 and what is no ledger"[..], b"", &[0; 5000], &[7; 300 << 10]] {
            fs::write(dir.path().join(NAME), bytes).unwrap();
            fs::write(dir.path().join("ledger.new"), "left behind").unwrap();
            let (mut ledger, mut file) = LedgerFile::open(dir.path());
            assert_eq!((sum(&ledger), file.takes(1)), (0, false));
            ledger.add(None, &amounts(5));
            file.write(&[], Some(ledger.snapshot()));
            assert_eq!(sum(&LedgerFile::open(dir.path()).0), 5);
            assert!(!dir.path().join("ledger.new").exists());
        }
    }

    #[test]
    fn a_damaged_file_is_kept_and_so_is_one_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let has = |name: &str| fs::read(dir.path().join(name)).ok();
        assert_eq!(damaged(dir.path()), None);
        for damage in [b"first", b"other", b"third"] {
            fs::write(dir.path().join(NAME), damage).unwrap();
            let (mut ledger, mut file) = LedgerFile::open(dir.path());
            assert_eq!(has("ledger.damaged"), Some(damage.to_vec()));
            ledger.add(None, &amounts(5));
            file.write(&[], Some(ledger.snapshot()));
            // A ledger that can be read puts nothing aside.
            assert_eq!(sum(&LedgerFile::open(dir.path()).0), 5);
            assert_eq!(has("ledger.damaged"), Some(damage.to_vec()));
        }
        assert_eq!(has("ledger.damaged.old"), Some(b"other".to_vec()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        let kept = damaged(dir.path()).expect("one is kept");
        assert!(kept.file.ends_with("/ledger.damaged") && kept.written > 0, "{kept:?}");
    }

    #[test]
    fn a_link_stays_and_a_pipe_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join(NAME);
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let (mut ledger, mut file) = LedgerFile::open(dir.path());
        ledger.add(None, &amounts(5));
        file.write(&[], Some(ledger.snapshot()));
        assert!(link.is_symlink() && dir.path().join("elsewhere").is_file());
        assert_eq!(sum(&LedgerFile::open(dir.path()).0), 5);

        fs::remove_file(&link).unwrap();
        let pipe = Pipe::make(&link);
        file.write(&[], Some(ledger.snapshot()));
        assert!(pipe.is_there() && file.said.is_some_and(|it| it.contains("not a regular file")));
    }

    #[test]
    fn a_disk_that_fails_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("gone");
        let (mut ledger, mut file) = LedgerFile::open(&place);
        ledger.add(None, &amounts(5));
        file.write(&[], Some(ledger.snapshot()));
        assert!(!file.takes(1) && file.said.is_some());
        fs::create_dir(&place).unwrap();
        file.write(&[], Some(ledger.snapshot()));
        assert!(file.takes(1) && file.said.is_none());
        assert_eq!(sum(&LedgerFile::open(&place).0), 5);
    }
}
