//! Opening a capture: a file or standard input, packed by gzip or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::console::progress::Progress;

/// The first bytes of each gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes of a file, or with - those of standard input, unpacked as they are read. The progress is that in the file.
pub fn open(path: &Path, progress: &Progress) -> io::Result<Box<dyn Read>> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return unpacked(Box::new(progress.bytes(name, None).wrap_read(io::stdin())));
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    let length = about.is_file().then_some(about.len());
    unpacked(Box::new(progress.bytes(name, length).wrap_read(file)))
}

/// What gzip has packed, or the bytes themselves if it has not.
pub fn unpacked(mut bytes: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut beginning = Vec::new();
    (&mut bytes).take(GZIP.len() as u64).read_to_end(&mut beginning)?;
    let is_packed = beginning == GZIP;
    let whole = io::Cursor::new(beginning).chain(bytes);
    Ok(if is_packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}
