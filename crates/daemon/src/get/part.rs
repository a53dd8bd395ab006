//! An incomplete file: `FILE.part`, and beside it `FILE.part.meta`, which says what it is a part
//! of. Bytes are synced before the meta file counts them. So a power cut loses at most
//! [`CHECKPOINT_BYTES`], and never leaves holes in a download that is resumed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::target::{self, with_suffix};

/// How much a power cut may lose, in bytes.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The mode of the meta file, less the user's mask.
const META_MODE: u32 = 0o666;

/// The meta file: what the part is a part of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The URL that was requested.
    pub url: String,
    /// The version's `ETag`, verbatim.
    pub etag: Option<String>,
    /// The version's `Last-Modified`, verbatim.
    pub last_modified: Option<String>,
    /// The strong validator to send as `If-Range`; without it the download cannot be resumed.
    pub validator: Option<String>,
    /// The whole file's length in bytes, if a response declared it.
    pub length: Option<u64>,
    /// The whole file's `Repr-Digest`, verbatim.
    pub repr_digest: Option<String>,
    /// The root of a published object, verbatim.
    #[serde(default)]
    pub root: Option<String>,
    /// Bytes that were synced to disk.
    pub synced_bytes: u64,
}

/// An open part. When it is dropped, its bytes are kept for a later download to resume.
#[derive(Debug)]
pub struct Part {
    file: File,
    path: PathBuf,
    meta: Meta,
    bytes: u64,
    is_finished: bool,
}

/// `FILE.part`.
pub fn part_path(output: &Path) -> PathBuf {
    with_suffix(output, ".part")
}

/// How many bytes an earlier download left, and whether it can be resumed.
pub fn left(output: &Path) -> (u64, bool) {
    let path = part_path(output);
    let bytes = std::fs::metadata(&path).map_or(0, |there| there.len());
    (bytes, read_meta(&path).is_some_and(|meta| meta.validator.is_some()))
}

fn read_meta(part: &Path) -> Option<Meta> {
    serde_json::from_slice(&std::fs::read(meta_path(part)).ok()?).ok()
}

fn meta_path(part: &Path) -> PathBuf {
    with_suffix(part, ".meta")
}

impl Part {
    /// Opens the part of an earlier download of the same URL, or begins a new one.
    pub fn open(output: &Path, url: &str) -> io::Result<Self> {
        let path = part_path(output);
        // It gets the file's name at the end, and is removed if nothing has arrived.
        target::check_is_file(&path)?;
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another download is writing it"),
            TryLockError::Error(error) => error,
        })?;
        let mut part = Self { file, path, meta: Meta::default(), bytes: 0, is_finished: false };
        let there = part.file.metadata()?.len();
        match read_meta(&part.path) {
            Some(meta) if meta.url == url && meta.synced_bytes <= there => {
                part.cut(meta.synced_bytes)?;
                part.meta = meta;
            }
            _ => part.begin(Meta { url: url.to_owned(), ..Meta::default() })?,
        }
        Ok(part)
    }

    /// The meta file's content: what the part is a part of.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How many bytes have arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The part's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all bytes have arrived.
    pub fn is_whole(&self) -> bool {
        self.bytes > 0 && self.meta.length == Some(self.bytes)
    }

    /// The first missing byte and the validator for `If-Range`, if a request can resume here.
    pub fn resumable(&self) -> Option<(u64, &str)> {
        let validator = self.meta.validator.as_deref()?;
        (self.bytes > 0).then_some((self.bytes, validator))
    }

    /// Empties the part, and begins one of `meta`.
    pub fn begin(&mut self, meta: Meta) -> io::Result<()> {
        self.meta = Meta { synced_bytes: 0, ..meta };
        // The meta file is written first: after a crash in between, it counts no bytes, so old ones
        // are not resumed.
        self.write_meta()?;
        self.cut(0)
    }

    /// Adds what a later response says of the same version.
    pub fn learn(&mut self, length: Option<u64>, repr_digest: Option<String>) {
        self.meta.length = self.meta.length.or(length);
        self.meta.repr_digest = self.meta.repr_digest.take().or(repr_digest);
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        if self.bytes - self.meta.synced_bytes >= CHECKPOINT_BYTES {
            self.checkpoint()
        } else {
            Ok(())
        }
    }

    /// The file, with the cursor at its beginning.
    pub fn reread(&mut self) -> io::Result<&mut File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(&mut self.file)
    }

    /// Renames the complete file to its final name, durably, and removes the meta file.
    pub fn finish(mut self, output: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        target::rename(&self.path, output)?;
        self.is_finished = true;
        self.forget();
        Ok(())
    }

    /// Removes the meta file, so that the next download starts over; the bytes stay for inspection.
    pub fn condemn(mut self) {
        self.is_finished = true;
        self.forget();
    }

    /// Syncs the bytes, then counts them in the meta file.
    fn checkpoint(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.meta.synced_bytes = self.bytes;
        self.write_meta()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.file.seek(SeekFrom::Start(bytes))?;
        self.bytes = bytes;
        Ok(())
    }

    /// Replaces the meta file atomically: a half-written one would lose the whole part.
    fn write_meta(&self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.meta)?;
        target::replace(&meta_path(&self.path), &text, META_MODE).map(drop)
    }

    fn forget(&self) {
        // A meta file that cannot be removed does no harm without its part.
        let _ = std::fs::remove_file(meta_path(&self.path));
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if self.bytes == 0 {
            self.forget();
            let _ = std::fs::remove_file(&self.path);
        } else if self.bytes > self.meta.synced_bytes {
            // If this fails, the next download resumes from the checkpoint before.
            let _ = self.checkpoint();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::Pipe;

    fn meta(url: &str) -> Meta {
        Meta {
            url: url.into(),
            validator: Some("\"1\"".into()),
            length: Some(6),
            ..Meta::default()
        }
    }

    #[test]
    fn a_part_is_continued_and_then_gets_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("file");
        let mut part = Part::open(&output, "http://a/").unwrap();
        part.begin(meta("http://a/")).unwrap();
        part.append(b"abc").unwrap();
        assert!(Part::open(&output, "http://a/").is_err(), "two writers at once");
        drop(part);
        let mut part = Part::open(&output, "http://a/").unwrap();
        assert_eq!((part.resumable(), part.is_whole()), (Some((3, "\"1\"")), false));
        part.append(b"def").unwrap();
        assert!(part.is_whole());
        part.finish(&output).unwrap();
        assert_eq!(std::fs::read(&output).unwrap(), b"abcdef");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_what_was_synced_counts() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("file");
        let mut part = Part::open(&output, "http://a/").unwrap();
        part.begin(meta("http://a/")).unwrap();
        part.append(b"abc").unwrap();
        drop(part);
        let mut file = OpenOptions::new().append(true).open(part_path(&output)).unwrap();
        file.write_all(&[0; 9]).unwrap();
        assert_eq!(Part::open(&output, "http://a/").unwrap().bytes(), 3);
    }

    #[test]
    fn a_part_of_something_else_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("file");
        let mut part = Part::open(&output, "http://a/").unwrap();
        part.begin(meta("http://a/")).unwrap();
        part.append(b"abc").unwrap();
        drop(part);
        let part = Part::open(&output, "http://b/").unwrap();
        assert_eq!((part.bytes(), part.resumable()), (0, None));
        drop(part);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing, so no part");
    }

    #[test]
    fn a_pipe_that_has_come_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("file");
        let mut part = Part::open(&output, "http://a/").unwrap();
        part.begin(meta("http://a/")).unwrap();
        part.append(b"abcdef").unwrap();
        let pipe = Pipe::make(&output);
        let error = part.finish(&output).unwrap_err();
        assert!(error.to_string().contains("is not a regular file"), "{error}");
        assert!(pipe.is_there());
        assert!(Part::open(&output, "http://a/").unwrap().is_whole(), "it is kept");
    }
}
