//! Where a file is written: what a path leads to, and how a file is replaced as a whole.
//!
//! *What this is:* [`Target::of`] and [`open`] for a path that a user gives; [`replace`] for a file that has its old
//! content or its new one, also after a crash. *Who calls it:* `get.rs`, `identity.rs`, `ledger/file.rs`. *What it never
//! does:* put a regular file in the place of a link, a device, a pipe, a socket or a directory.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// More links than this in a row are a circle, as for the kernel.
const LINKS_MAX: usize = 40;

/// The links below are no names: each stands for a file that a process has open.
const OPEN_FILES: &str = "/proc";

/// The file, device or pipe that a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A regular file, or none yet. This is its path behind all links.
    File(PathBuf),
    /// A device, a pipe, a socket, or whatever a process has open, by the path that was given. It takes bytes one
    /// after the other, and stays what it is.
    Through(PathBuf),
}

impl Target {
    /// Follows a path. Nothing is made or opened.
    ///
    /// # Errors
    /// If the path leads to a directory, or cannot be followed.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => return Ok(Self::Through(path.to_owned())),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            // A regular file, or a link to one that is to be made.
            _ => {}
        }
        let mut real = path.to_owned();
        for _ in 0..LINKS_MAX {
            match fs::read_link(&real) {
                Ok(_) if is_open_file(&real) => return Ok(Self::Through(path.to_owned())),
                Ok(to) => real = real.parent().unwrap_or(Path::new("")).join(to),
                // It is no link, or not there.
                Err(error)
                    if [ErrorKind::InvalidInput, ErrorKind::NotFound].contains(&error.kind()) =>
                {
                    return Ok(Self::File(real));
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many links in a row"))
    }
}

fn is_open_file(link: &Path) -> bool {
    let folder = link.parent().and_then(|folder| fs::canonicalize(folder).ok());
    folder.is_some_and(|folder| folder.starts_with(OPEN_FILES))
}

/// Opens what takes bytes one after the other. For a pipe this waits until somebody reads.
pub fn open(through: &Path) -> io::Result<File> {
    if is_stdout(through) {
        // By its path, a socket could not be opened, and a file would be written from its beginning.
        return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    }
    OpenOptions::new().write(true).truncate(true).open(through)
}

/// Whether a path leads to standard output.
pub fn is_stdout(path: &Path) -> bool {
    let stdout = || File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata();
    let place = |there: Metadata| (there.dev(), there.ino());
    fs::metadata(path).is_ok_and(|there| stdout().is_ok_and(|stdout| place(stdout) == place(there)))
}

/// Refuses what is not a regular file, a link too. Nothing may be there.
pub fn check_is_file(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            Err(io::Error::other(format!("{} is not a regular file", path.display())))
        }
        _ => Ok(()),
    }
}

/// Gives a complete file its name, durably, in the place of the file that has it. The caller has synced its content.
pub fn rename(complete: &Path, name: &Path) -> io::Result<()> {
    // What the path led to may have changed since the caller looked.
    check_is_file(name)?;
    fs::rename(complete, name)?;
    let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Replaces a file as a whole, durably, and returns it open for writing. It is written as `PATH.new` first; no two
/// processes may do this at a time.
///
/// # Errors
/// As of the kernel; and if the path leads to what is not a regular file, which is left alone.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<File> {
    let Target::File(path) = Target::of(path)? else {
        return Err(io::Error::other(format!("{} is not a regular file", path.display())));
    };
    let unfinished = with_suffix(&path, ".new");
    check_is_file(&unfinished)?;
    // An interrupted write may have left one behind.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    rename(&unfinished, &path)?;
    Ok(file)
}

/// A path with more at its end.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

    use super::*;

    /// A named pipe, and a reader that never waits.
    pub(crate) struct Pipe {
        path: PathBuf,
        reader: File,
    }

    impl Pipe {
        pub(crate) fn make(path: &Path) -> Self {
            mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            // Open for writing as well, the pipe takes bytes and has no end.
            let reader =
                OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap();
            Self { path: path.to_owned(), reader }
        }

        /// Reads the text that was written to it since the last call.
        pub(crate) fn read(&mut self) -> String {
            let mut bytes = [0; 4096];
            let length = self.reader.read(&mut bytes).unwrap_or(0);
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        }

        pub(crate) fn is_there(&self) -> bool {
            fs::symlink_metadata(&self.path).is_ok_and(|it| it.file_type().is_fifo())
        }
    }

    #[test]
    fn links_are_followed_to_what_is_there_or_is_to_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("folder/file"), "old").unwrap();
        symlink("folder/file", path("relative")).unwrap();
        symlink(path("relative"), path("absolute")).unwrap();
        symlink("../new", path("folder/dangling")).unwrap();
        symlink("circle", path("circle")).unwrap();
        symlink("folder", path("to-folder")).unwrap();
        for (name, file) in [
            ("folder/file", "folder/file"),
            ("absolute", "folder/file"),
            ("none", "none"),
            ("folder/dangling", "folder/../new"),
            ("to-folder/file", "to-folder/file"),
        ] {
            assert_eq!(Target::of(&path(name)).unwrap(), Target::File(path(file)), "{name}");
        }
        for (name, kind) in [
            ("folder", ErrorKind::IsADirectory),
            ("to-folder", ErrorKind::IsADirectory),
            ("folder/file/x", ErrorKind::NotADirectory),
        ] {
            assert_eq!(Target::of(&path(name)).unwrap_err().kind(), kind, "{name}");
        }
        assert!(Target::of(&path("circle")).is_err());
    }

    #[test]
    fn what_is_not_a_file_and_what_is_open_is_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let _listener = UnixListener::bind(path("socket")).unwrap();
        let mut pipe = Pipe::make(&path("pipe"));
        symlink("pipe", path("link")).unwrap();
        let unnamed = tempfile::tempfile().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&unnamed);
        symlink(format!("/proc/self/fd/{number}"), path("open")).unwrap();
        for name in ["socket", "pipe", "link", "open"] {
            assert_eq!(Target::of(&path(name)).unwrap(), Target::Through(path(name)));
        }
        assert_eq!(
            Target::of(Path::new("/dev/null")).unwrap(),
            Target::Through("/dev/null".into())
        );
        open(&path("link")).unwrap().write_all(b"abc").unwrap();
        assert_eq!(pipe.read(), "abc");
        open(&path("open")).unwrap().write_all(b"abc").unwrap();
        assert_eq!(unnamed.metadata().unwrap().len(), 3);
        // No program can open it, and it stays.
        assert!(open(&path("socket")).is_err());
        assert!(fs::symlink_metadata(path("socket")).unwrap().file_type().is_socket());
    }

    #[test]
    fn a_file_is_replaced_and_its_link_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("folder")).unwrap();
        symlink("folder/file", path("link")).unwrap();
        fs::write(path("folder/file.new"), "left by an interrupted write").unwrap();
        for text in ["first", "second"] {
            replace(&path("link"), text.as_bytes(), 0o600).unwrap();
            assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(path("folder/file")).unwrap(), text);
        }
        assert_eq!(fs::metadata(path("folder/file")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path("folder")).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_a_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let pipe = Pipe::make(&path("pipe"));
        symlink("pipe", path("link")).unwrap();
        for name in ["pipe", "link"] {
            let error = replace(&path(name), b"abc", 0o600).unwrap_err();
            assert!(error.to_string().contains("is not a regular file"), "{error}");
        }
        assert!(pipe.is_there() && !path("pipe.new").exists());
        let other = Pipe::make(&path("file.new"));
        assert!(replace(&path("file"), b"abc", 0o600).is_err());
        assert!(other.is_there() && !path("file").exists());
    }
}
