//! Reading an input in pieces: a file, or all files of a folder in the order of their paths.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use wire::capture::records::Decoder;

use super::super::source;
use crate::failure::Failure;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// Bytes at the beginning of a capture that show its format.
const MAGIC: usize = 4;

/// A file to read.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    /// Its length when it was listed.
    pub bytes: u64,
}

/// The files of an input. Symbolic links in a folder are left out, as is what is neither file nor folder.
pub fn files(path: &Path) -> Result<Vec<Input>, Failure> {
    let mut files = Vec::new();
    let about = fs::metadata(path).map_err(refuse(path))?;
    if about.is_dir() {
        walk(path, &mut files)?;
    } else {
        files.push(Input { path: path.to_owned(), bytes: about.len() });
    }
    if files.iter().all(|it| it.bytes == 0) && (about.is_dir() || about.is_file()) {
        return Err(Failure::refused(format!("{}: is empty", path.display())));
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<Input>) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(refuse(folder))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let about = entry.metadata().map_err(refuse(&path))?;
        if about.is_dir() {
            walk(&path, files)?;
        } else if about.is_file() {
            files.push(Input { path, bytes: about.len() });
        }
    }
    Ok(())
}

/// Gives the bytes of the files, one after the other.
pub fn read(
    files: &[Input],
    mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut piece = vec![0; PIECE];
    for Input { path, .. } in files {
        let mut file = File::open(path).map_err(refuse(path))?;
        loop {
            let length = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(refuse(path)(error)),
            };
            each(&piece[..length])?;
        }
    }
    Ok(())
}

/// Whether an input is one file that begins as captures do, packed by gzip or not.
pub fn is_capture(files: &[Input]) -> Result<bool, Failure> {
    let [Input { path, .. }] = files else { return Ok(false) };
    // What is not a file cannot be read twice.
    if !path.is_file() {
        return Ok(false);
    }
    let file = File::open(path).map_err(refuse(path))?;
    let mut beginning = Vec::new();
    let unpacked = source::unpacked(Box::new(file)).map_err(refuse(path))?;
    // What gzip has not packed, though it begins so, is content like any other.
    let is_read = unpacked.take(MAGIC as u64).read_to_end(&mut beginning).is_ok();
    let is_known = || Decoder::new().take(&mut &beginning[..]).is_ok();
    Ok(is_read && beginning.len() == MAGIC && is_known())
}

fn refuse(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::refused(format!("{}: {error}", path.display()))
}
