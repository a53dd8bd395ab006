//! Whether a store can be kept at a path, told before anything is made there.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, statfs};
use rustix::io::Errno;

use super::disk::{is_ours, is_written};

/// File systems that show the kernel's own state, by `f_type` (statfs(2)): proc, sysfs, cgroup, cgroup2,
/// devpts, debugfs, tracefs, securityfs, configfs, mqueue, binfmt_misc.
const OF_THE_KERNEL: [u32; 11] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x1cd1,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    0x1980_0202,
    0x4249_4e4d,
];

/// Why a store cannot be kept at a path: that is the path's fault, and no disk has failed.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Something else is there, or on the way.
    #[error("{0} is not a directory: give the path of one, or of one that can be made")]
    NotADirectory(PathBuf),
    /// A symbolic link leads nowhere.
    #[error("{0} is a link to nothing: make what it points to, or give another path")]
    Dangling(PathBuf),
    /// Nothing can be stored on such a file system.
    #[error("{0} shows the kernel's own state and keeps no files: give a directory on a disk")]
    OfTheKernel(PathBuf),
    /// It would have to be made where nothing can be.
    #[error("{0} is not there, and its file system is read-only: give another path")]
    ReadOnly(PathBuf),
    /// It is somebody else's.
    #[error(
        "{path} belongs to user {owner}, and we are user {user} and may not use it: give it to us \
         (`chown -R {user} PATH`), run as that user, or give another path"
    )]
    Foreign {
        /// The directory or file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        user: u32,
    },
    /// It is ours, and its mode forbids us to use it.
    #[error(
        "{path} has mode {mode:04o}, which keeps us, its owner, from using it: allow it \
         (`chmod u+rwX {path}`), or give another path"
    )]
    Mode {
        /// The directory or file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// No path at all, for this system.
    #[error("{path} is no usable path: {error}")]
    Unusable {
        /// What was given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Whether a store is at a path, or could be begun there. Makes and opens nothing.
///
/// # Errors
/// [`Unfit`] says what to do. That a file system is read-only is none where the directory exists, nor is a
/// disk that fails or a store of another version: such a store is done without, or only read.
pub fn check_place(root: &Path) -> Result<(), Unfit> {
    match fs::metadata(root) {
        Ok(it) if it.is_dir() => check_directory(root),
        Ok(_) => Err(Unfit::NotADirectory(root.to_owned())),
        Err(error) => match error.kind() {
            ErrorKind::NotFound if fs::symlink_metadata(root).is_ok() => {
                Err(Unfit::Dangling(root.to_owned()))
            }
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => {
                check_above(root)
            }
            _ if is_of_the_path(&error) => Err(Unfit::Unusable { path: root.to_owned(), error }),
            _ => Ok(()),
        },
    }
}

/// Links in a circle, a name that is too long, a zero within: as opposed to a disk that fails.
fn is_of_the_path(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::LOOP | Errno::NAMETOOLONG))
        || error.kind() == ErrorKind::InvalidInput
}

fn check_directory(root: &Path) -> Result<(), Unfit> {
    check_kind(root)?;
    permitted(root, Access::READ_OK | Access::EXEC_OK)?;
    permitted(root, Access::WRITE_OK)?;
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        // What is no file, as the control socket or lost+found, is not read by a store.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_file && is_ours(name)) else { continue };
        permitted(&entry.path(), Access::READ_OK)?;
        if is_written(name) {
            permitted(&entry.path(), Access::WRITE_OK)?;
        }
    }
    Ok(())
}

/// It would have to be made in the nearest directory above it that is there.
fn check_above(root: &Path) -> Result<(), Unfit> {
    let mut above = root.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    let Some((above, it)) = above.find_map(|path| Some((path, fs::metadata(path).ok()?))) else {
        return Ok(());
    };
    if !it.is_dir() {
        return Err(Unfit::NotADirectory(above.to_owned()));
    }
    check_kind(above)?;
    match access(above, Access::WRITE_OK | Access::EXEC_OK) {
        Err(Errno::ROFS) => Err(Unfit::ReadOnly(root.to_owned())),
        outcome => outcome.or_else(|errno| refusal(above, errno)),
    }
}

fn check_kind(directory: &Path) -> Result<(), Unfit> {
    // The numbers have 32 bits, whatever the platform's word for them has.
    let kind = statfs(directory).map_or(0, |it| it.f_type as u32);
    if OF_THE_KERNEL.contains(&kind) {
        return Err(Unfit::OfTheKernel(directory.to_owned()));
    }
    Ok(())
}

/// What a read-only file system refuses is no matter of whose it is.
fn permitted(path: &Path, wanted: Access) -> Result<(), Unfit> {
    match access(path, wanted) {
        Ok(()) | Err(Errno::ROFS) => Ok(()),
        Err(errno) => refusal(path, errno),
    }
}

fn access(path: &Path, wanted: Access) -> Result<(), Errno> {
    accessat(CWD, path, wanted, AtFlags::EACCESS)
}

fn refusal(path: &Path, errno: Errno) -> Result<(), Unfit> {
    match (errno, fs::metadata(path)) {
        (Errno::ACCESS | Errno::PERM, Ok(it)) => {
            let user = fs::metadata("/proc/self").map_or(u32::MAX, |it| it.uid());
            let (path, owner) = (path.to_owned(), it.uid());
            if owner == user {
                return Err(Unfit::Mode { path, mode: it.mode() & 0o7777 });
            }
            Err(Unfit::Foreign { path, owner, user })
        }
        // It went away in between, or its disk fails.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &Path) -> String {
        check_place(path).expect_err("it is unfit").to_string()
    }

    #[test]
    fn what_is_or_can_be_a_directory_is_fit_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        check_place(dir.path()).unwrap();
        check_place(&dir.path().join("a/b/c")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "a file").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let complaint = format!("{} is not a directory", file.display());
        for path in [file.clone(), file.join("store"), file.join("a/b")] {
            assert!(said(&path).starts_with(&complaint), "{}", said(&path));
        }
        assert!(said(&link).contains("a link to nothing"));
    }

    #[test]
    fn what_is_no_path_is_named_and_what_lies_beside_a_store_does_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        let circle = dir.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        for path in [circle.join("store"), dir.path().join("x".repeat(300))] {
            assert!(said(&path).contains("no usable path"), "{}", said(&path));
        }
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        check_place(dir.path()).unwrap();
    }

    #[test]
    fn the_kernels_file_systems_are_refused() {
        for path in ["/proc", "/proc/x", "/proc/x/y", "/sys/x", "/proc/sys/net"] {
            assert!(said(Path::new(path)).contains("kernel's own state"), "{path}");
        }
    }
}
