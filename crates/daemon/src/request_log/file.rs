//! The file of the log of requests, and the old files beside it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::Requests;

/// A file that lines are added to.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
}

/// Creates the file's directory, if it is missing, and opens the file, with the rights of the start; `None` if requests are
/// not logged.
pub fn prepare(requests: &Requests) -> Option<io::Result<LogFile>> {
    let path = requests.file.as_deref()?;
    if let Some(dir) = path.parent() {
        // If it fails, the file says why.
        let _ = DirBuilder::new().recursive(true).mode(0o750).create(dir);
    }
    Some(LogFile::open(path))
}

impl LogFile {
    /// Opens a file to add lines to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Neither a link that another user may have put there, nor a pipe that no one reads.
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
        let mut options = OpenOptions::new();
        let options =
            options.append(true).create(true).mode(0o640).custom_flags(flags.cast_signed());
        let file = options.open(path)?;
        let there = file.metadata()?;
        match there.is_file() {
            true => Ok(Self { path: path.to_owned(), file, length: there.len() }),
            false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file")),
        }
    }

    /// Adds whole lines. If they make the file larger than `size_max`, they begin a new one, and `keep` old ones are kept.
    ///
    /// # Errors
    /// If they could not be written; then no part of them is in the file.
    pub fn add(&mut self, lines: &[u8], size_max: u64, keep: u32) -> io::Result<()> {
        if self.length > 0 && self.length + lines.len() as u64 > size_max {
            self.rotate(keep)?;
        }
        if let Err(error) = self.file.write_all(lines) {
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    fn rotate(&mut self, keep: u32) -> io::Result<()> {
        let mut beyond = keep + 1;
        while std::fs::remove_file(self.old(beyond)).is_ok() {
            beyond += 1;
        }
        for number in (1..keep).rev() {
            rename(&self.old(number), &self.old(number + 1))?;
        }
        match keep {
            0 => std::fs::remove_file(&self.path).or_else(unless_missing)?,
            _ => rename(&self.path, &self.old(1))?,
        }
        *self = Self::open(&self.path)?;
        Ok(())
    }

    /// The name of an old file; the newest is number 1.
    fn old(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to).or_else(unless_missing)
}

fn unless_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(dir: &Path) -> Vec<(String, String)> {
        let read = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        };
        let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(read).collect();
        files.sort();
        files
    }

    #[test]
    fn a_full_file_is_renamed_and_few_old_ones_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = LogFile::open(&dir.path().join("r")).unwrap();
        for n in 0..9 {
            file.add(format!("{n}\n").as_bytes(), 4, 2).unwrap();
        }
        let named = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let expected = [named("r", "8\n"), named("r.1", "6\n7\n"), named("r.2", "4\n5\n")];
        assert_eq!(listing(dir.path()), expected);
        // What was there counts, and fewer are kept from now on.
        let mut file = LogFile::open(&dir.path().join("r")).unwrap();
        file.add(b"long\n", 4, 1).unwrap();
        assert_eq!(listing(dir.path()), [named("r", "long\n"), named("r.1", "8\n")]);
        file.add(b"9\n", 4, 0).unwrap();
        assert_eq!(listing(dir.path()), [named("r", "9\n")]);
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink(at("elsewhere"), at("link")).unwrap();
        std::fs::create_dir(at("dir")).unwrap();
        let pipe = crate::target::tests::Pipe::make(&at("pipe"));
        for name in ["link", "dir", "pipe", "missing/file"] {
            assert!(LogFile::open(&at(name)).is_err(), "{name}");
        }
        assert!(!at("elsewhere").exists() && pipe.is_there());
    }

    #[test]
    fn a_line_that_does_not_fit_on_the_disk_leaves_no_part() {
        // A full device is no regular file, so that it cannot be opened as a log.
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut file = LogFile { path: "/dev/full".into(), file: full, length: 0 };
        let error = file.add(b"line\n", 100, 1).unwrap_err();
        assert_eq!((error.kind(), file.length), (ErrorKind::StorageFull, 0));
    }
}
