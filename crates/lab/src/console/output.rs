//! Files that are written at paths that a user gives.
//!
//! Links stay, and so do devices and pipes: a file is written in its place, or renamed over a regular file alone.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// More links than this in a row are a circle, as for the kernel.
const LINKS_MAX: usize = 40;

/// Makes a file, or empties the one that is there. For a pipe this waits until somebody reads.
pub fn create(path: &Path) -> io::Result<File> {
    if leads_to_stdout(path) {
        // By its path, a socket could not be opened, and a file would be written from its beginning.
        return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    }
    File::create(path)
}

/// Whether an output goes to standard output: `-`, or a path that leads there.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-") || leads_to_stdout(path)
}

fn leads_to_stdout(path: &Path) -> bool {
    let stdout = || File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata();
    let place = |there: fs::Metadata| (there.dev(), there.ino());
    fs::metadata(path).is_ok_and(|there| stdout().is_ok_and(|stdout| place(stdout) == place(there)))
}

/// The path of what is written, behind all links. The last one may lead to nothing yet. What a process has open, such
/// as a pipe, has no other path.
pub fn behind_links(path: &Path) -> PathBuf {
    if path.exists() {
        return fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    }
    let mut real = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&real) else { break };
        real = real.parent().unwrap_or(Path::new("")).join(to);
    }
    real
}

/// Gives a complete file its name, unless something else than a regular file has it.
pub fn rename(complete: &Path, name: &Path) -> io::Result<()> {
    check_is_file(name)?;
    fs::rename(complete, name)
}

/// Refuses what is not a regular file, behind all links. Nothing may be there.
pub fn check_is_file(path: &Path) -> io::Result<()> {
    match path.exists() && !path.is_file() {
        true => Err(io::Error::other("it is not a regular file")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType};
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_what_is_there_or_is_to_be_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = dir.path().canonicalize().expect("its path");
        let path = |name: &str| folder.join(name);
        fs::write(path("file"), "old").expect("a file");
        symlink("file", path("link")).expect("a link");
        symlink("link", path("second")).expect("a link");
        symlink("new", path("dangling")).expect("a link");
        symlink("circle", path("circle")).expect("a link");
        for (name, real) in
            [("file", "file"), ("second", "file"), ("dangling", "new"), ("none", "none")]
        {
            assert_eq!(behind_links(&path(name)), path(real), "{name}");
        }
        assert_eq!(behind_links(Path::new("none")), Path::new("none"));
        assert!(behind_links(&path("circle")).is_symlink());
        drop(create(&path("dangling")).expect("its target is made"));
        assert!(path("dangling").is_symlink() && path("new").is_file());
    }

    #[test]
    fn nothing_but_a_file_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        fs::write(path("complete"), "new").expect("a file");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, path("pipe"), FileType::Fifo, mode, 0).expect("a pipe");
        assert!(rename(&path("complete"), &path("pipe")).is_err());
        assert!(!path("pipe").is_file() && path("complete").exists());
        fs::write(path("file"), "old").expect("a file");
        rename(&path("complete"), &path("file")).expect("it is replaced");
        assert_eq!(fs::read_to_string(path("file")).expect("it is there"), "new");
    }
}
