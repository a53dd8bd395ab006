//! Checks before a run that its outputs can be written.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::output::behind_links;
use crate::cli::Run;
use crate::failure::Failure;

/// Checks that the outputs of a real run can be written.
pub fn outputs(args: &Run) -> Result<(), Failure> {
    let captures = args.pcap.iter().map(|(_, path)| Path::new(path));
    files(args.json.as_deref(), args.html.as_deref(), captures, true)
}

/// Checks that the outputs of runs in virtual time can be written.
pub fn results(
    json: Option<&Path>,
    html: Option<&Path>,
    events: Option<&Path>,
) -> Result<(), Failure> {
    files(json, html, events.into_iter(), false)?;
    let json = json.filter(|path| *path != Path::new("-"));
    json.into_iter().chain(html).chain(events).try_for_each(opens)
}

/// Opens a file for writing, because permissions alone do not tell. Pipes and other special files are left
/// alone.
fn opens(path: &Path) -> Result<(), Failure> {
    let real = behind_links(path);
    let opened = match OpenOptions::new().write(true).create_new(true).open(&real) {
        // It was not there, and the link to it stays.
        Ok(_) => fs::remove_file(&real),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match real.exists() && !real.is_file() {
                true => Ok(()),
                // A circle of links is found here, too.
                false => OpenOptions::new().append(true).open(&real).map(drop),
            }
        }
        Err(error) => Err(error),
    };
    opened.map_err(|error| Failure::refused(format!("cannot write {}: {error}", path.display())))
}

fn files<'a>(
    json: Option<&'a Path>,
    html: Option<&'a Path>,
    captures: impl Iterator<Item = &'a Path>,
    hidden: bool,
) -> Result<(), Failure> {
    let json = json.filter(|path| *path != Path::new("-"));
    let mut seen = Vec::new();
    for path in json.into_iter().chain(html).chain(captures) {
        let real = behind_links(path);
        // A device such as /dev/null takes both.
        let is_device = fs::metadata(path).is_ok_and(|it| it.file_type().is_char_device());
        if seen.contains(&real) && !is_device {
            let text = format!("cannot write {}: two options name it", path.display());
            return Err(Failure::refused(text));
        }
        writable(path, &real, hidden)?;
        seen.push(real);
    }
    Ok(())
}

fn writable(path: &Path, real: &Path, hidden: bool) -> Result<(), Failure> {
    let refuse =
        |why: &str| Err(Failure::refused(format!("cannot write {}: {why}", path.display())));
    if path == Path::new("-") {
        return refuse("only --json goes to standard output; ./- is a file");
    }
    if path.is_dir() {
        return refuse("it is a directory");
    }
    let (Some(folder), Some(real_folder)) = (folder(path), folder(real)) else {
        return refuse("there is no such directory");
    };
    if hidden && [&folder, &real_folder, real].into_iter().any(is_hidden) {
        return refuse("a run has a /run of its own; choose another directory");
    }
    let target = if path.exists() { path } else { &real_folder };
    match rustix::fs::access(target, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => refuse(&std::io::Error::from(error).to_string()),
    }
}

/// The directory of a file, behind all links; `None`: there is none.
fn folder(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(folder).ok()
}

/// Whether a path is below /run, where a real run mounts its own directory.
pub fn is_hidden(path: &Path) -> bool {
    path.starts_with("/run")
}
