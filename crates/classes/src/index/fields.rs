//! Fields of control files: Debian's `Release` and `Packages` (deb822), and OpenWrt's `Packages`.

use wire::Digest;

use super::promises::{IndexId, Promises};
use crate::Url;
use crate::path::Clean;

/// The longest line that is read, in bytes; a longer one is passed over.
const LINE_MAX: usize = 4 << 10;

/// What an index is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// One record, whose field `SHA256` has a line `DIGEST SIZE PATH` for each index.
    Release,
    /// A record for each package, with `Filename` and a field for the digest.
    Packages { digest: &'static str },
}

/// Reads lines.
pub(super) struct Fields {
    records: Records,
    index: IndexId,
    root: Root,
    /// The line so far.
    line: Vec<u8>,
    is_long: bool,
    /// Within the field `SHA256` of a `Release`.
    is_listing: bool,
    /// Of the package's record.
    file: Option<String>,
    digest: Option<[u8; 32]>,
}

/// The folder that an index's paths are below.
struct Root {
    tls: bool,
    host: Box<str>,
    port: u16,
    path: Box<str>,
}

impl Root {
    fn url(&self) -> Url<'_> {
        let Self { tls, host, port, path } = self;
        Url { tls: *tls, host, port: *port, path }
    }
}

impl Fields {
    /// Reads an index whose paths are below a folder.
    pub(super) fn new(records: Records, index: IndexId, root: Url<'_>) -> Self {
        let Url { tls, host, port, path } = root;
        Self {
            records,
            index,
            root: Root { tls, host: host.into(), port, path: path.into() },
            line: Vec::new(),
            is_long: false,
            is_listing: false,
            file: None,
            digest: None,
        }
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], promises: &mut Promises) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (piece, rest) = bytes.split_at(at);
            bytes = &rest[1..];
            self.add(piece);
            let line = std::mem::take(&mut self.line);
            if !std::mem::take(&mut self.is_long)
                && let Ok(text) = std::str::from_utf8(&line)
            {
                self.read(text.trim_end(), promises);
            }
            self.line = line;
            self.line.clear();
        }
        self.add(bytes);
    }

    fn add(&mut self, piece: &[u8]) {
        self.is_long |= self.line.len() + piece.len() > LINE_MAX;
        if !self.is_long {
            self.line.extend_from_slice(piece);
        }
    }

    fn read(&mut self, line: &str, promises: &mut Promises) {
        match self.records {
            Records::Release => self.read_release(line, promises),
            Records::Packages { digest } => self.read_package(line, digest, promises),
        }
    }

    fn read_release(&mut self, line: &str, promises: &mut Promises) {
        let Some(entry) = line.strip_prefix(' ') else {
            self.is_listing = line == "SHA256:";
            return;
        };
        if self.is_listing
            && let Some(Ok(digest)) = entry.split_ascii_whitespace().next().map(Digest::from_hex)
        {
            promises.link(digest, self.root.url());
        }
    }

    fn read_package(&mut self, line: &str, name: &str, promises: &mut Promises) {
        if let Some((field, value)) = line.split_once(':') {
            if field == "Filename" {
                self.file = Some(value.trim().to_owned());
            } else if field == name
                && let Ok(Digest::Sha256(digest)) = Digest::from_hex(value.trim())
            {
                self.digest = Some(digest);
            }
        } else if line.is_empty() {
            self.digest = None;
            self.file = None;
        }
        // Both are there once in a record.
        if let (Some(file), Some(digest)) = (&self.file, self.digest) {
            let file = file.strip_prefix("./").unwrap_or(file).to_owned();
            self.promise(&file, digest, promises);
            self.digest = None;
            self.file = None;
        }
    }

    fn promise(&self, path: &str, digest: [u8; 32], promises: &mut Promises) {
        let is_clear = Clean::new(&format!("/{path}")).is_some_and(|it| it.query.is_none());
        if is_clear {
            promises.add(self.index, path, digest);
        }
    }

    /// An index of files counts for its archive from now on; a `Release` only tells which indexes an archive has.
    pub(super) fn begin(&self, promises: &mut Promises) {
        if let Records::Packages { .. } = self.records {
            promises.add_index(self.index, self.root.url());
        }
    }

    /// The index was read whole, and has this digest.
    pub(super) fn verify(&self, digest: Digest, promises: &mut Promises) {
        promises.verify(self.index, digest);
    }

    /// The capacity of its buffers, in bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.line.capacity() + self.file.as_ref().map_or(0, String::capacity)
    }
}
