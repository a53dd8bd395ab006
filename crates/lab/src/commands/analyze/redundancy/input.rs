//! Reading an input in pieces: a file, or all files of a folder in the order of their paths.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// First bytes of pcap, in either order and with either unit of time, and of pcapng.
const CAPTURES: [[u8; 4]; 5] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

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

/// Whether an input is one file that begins as captures do.
pub fn is_capture(files: &[Input]) -> Result<bool, Failure> {
    let [Input { path, .. }] = files else { return Ok(false) };
    // What is not a file cannot be read twice.
    if !path.is_file() {
        return Ok(false);
    }
    let mut beginning = Vec::new();
    let file = File::open(path).map_err(refuse(path))?;
    file.take(4).read_to_end(&mut beginning).map_err(refuse(path))?;
    Ok(CAPTURES.iter().any(|magic| beginning == magic))
}

fn refuse(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::refused(format!("{}: {error}", path.display()))
}
