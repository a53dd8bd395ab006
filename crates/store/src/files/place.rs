//! Checks whether a store can be kept at a path, before anything is created there.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, statfs};
use rustix::io::Errno;

use super::disk::{is_ours, is_written};

/// Virtual file systems of the kernel, by `f_type` (statfs(2)): proc, sysfs, cgroup, cgroup2,
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

/// Why a store cannot be kept at a path. The path is at fault, not a disk.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// The path, or a part of it, is not a directory.
    #[error("{0} is not a directory: give the path of a directory, or of one that can be created")]
    NotADirectory(PathBuf),
    /// The path is a symbolic link whose target does not exist.
    #[error("{0} is a link to nothing: create its target, or give another path")]
    Dangling(PathBuf),
    /// The path is on a virtual file system of the kernel.
    #[error(
        "{0} is on one of the kernel's own file systems, which store no files: give a directory on a disk"
    )]
    OfTheKernel(PathBuf),
    /// The path does not exist, and its file system is read-only.
    #[error("{0} does not exist, and its file system is read-only: give another path")]
    ReadOnly(PathBuf),
    /// A directory or file belongs to another user, and its mode forbids access.
    #[error(
        "{path} belongs to user {owner}, and user {user} may not use it: change its owner \
         (`chown -R {user} PATH`), run as that user, or give another path"
    )]
    Foreign {
        /// The directory or file.
        path: PathBuf,
        /// The owner.
        owner: u32,
        /// The user that this process runs as.
        user: u32,
    },
    /// A directory or file belongs to this user, but its mode forbids access.
    #[error(
        "{path} has mode {mode:04o}, which denies its owner access: change it \
         (`chmod u+rwX {path}`), or give another path"
    )]
    Mode {
        /// The directory or file.
        path: PathBuf,
        /// The permission bits of the directory or file.
        mode: u32,
    },
    /// The path is not valid on this system.
    #[error("{path} is not a usable path: {error}")]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Checks whether a store is at a path, or could be created there. Creates and opens nothing.
///
/// # Errors
/// [`Unfit`], which says what the user can do. An existing directory on a read-only file system is
/// accepted, and so are a failing disk and a store of another version: the daemon then only reads
/// the store, or works without it.
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

/// Whether the error comes from the path (a loop of links, a name too long, a NUL byte), and not
/// from a disk.
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
        // Directories and sockets, such as lost+found and the control socket, are not used by the
        // store.
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

/// Checks that the nearest existing parent permits creating the directory.
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
    // The numbers have 32 bits; the type of the field differs between platforms.
    let kind = statfs(directory).map_or(0, |it| it.f_type as u32);
    if OF_THE_KERNEL.contains(&kind) {
        return Err(Unfit::OfTheKernel(directory.to_owned()));
    }
    Ok(())
}

/// Whether access is permitted. A read-only file system is not a matter of permission.
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
        // The file disappeared meanwhile, or the disk fails.
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
            assert!(said(&path).contains("not a usable path"), "{}", said(&path));
        }
        fs::create_dir(dir.path().join("lost+found")).unwrap();
        check_place(dir.path()).unwrap();
    }

    #[test]
    fn the_kernels_file_systems_are_refused() {
        for path in ["/proc", "/proc/x", "/proc/x/y", "/sys/x", "/proc/sys/net"] {
            assert!(said(Path::new(path)).contains("kernel's own file systems"), "{path}");
        }
    }
}
