//! Checks before a run that its outputs can be written.

use std::fs::{self, OpenOptions};
use std::path::Path;

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
    let is_new = !path.exists();
    if !is_new && !path.is_file() {
        return Ok(());
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened
        .and_then(|_| if is_new { fs::remove_file(path) } else { Ok(()) })
        .map_err(|error| Failure::refused(format!("cannot write {}: {error}", path.display())))
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
        if seen.contains(&path) {
            let text = format!("cannot write {}: two options name it", path.display());
            return Err(Failure::refused(text));
        }
        seen.push(path);
        writable(path, hidden)?;
    }
    Ok(())
}

fn writable(path: &Path, hidden: bool) -> Result<(), Failure> {
    let refuse =
        |why: &str| Err(Failure::refused(format!("cannot write {}: {why}", path.display())));
    if path == Path::new("-") {
        return refuse("only --json goes to standard output; ./- is a file");
    }
    if path.is_dir() {
        return refuse("it is a directory");
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(folder) = fs::canonicalize(folder) else { return refuse("there is no such directory") };
    let real = fs::canonicalize(path).unwrap_or_default();
    if hidden && (is_hidden(&folder) || is_hidden(&real)) {
        return refuse("a run has a /run of its own; choose another directory");
    }
    let target = if path.exists() { path } else { &folder };
    match rustix::fs::access(target, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => refuse(&std::io::Error::from(error).to_string()),
    }
}

/// Whether a path is below /run, where a real run mounts its own directory.
pub fn is_hidden(path: &Path) -> bool {
    path.starts_with("/run")
}
