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
    /// One record, whose fields `SHA256` and `SHA512` have a line `DIGEST SIZE PATH` for each index.
    Release,
    /// A record for each package, with `Filename` and fields of these names for digests.
    Packages { sha256: &'static str, sha512: &'static str },
}

/// Reads lines.
pub(super) struct Fields {
    records: Records,
    index: IndexId,
    root: Root,
    /// The line so far.
    line: Vec<u8>,
    is_long: bool,
    /// The algorithm of the digests in the field of a `Release`.
    listing: Option<&'static str>,
    /// Of the package's record.
    file: Option<String>,
    digest: Option<Digest>,
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
            listing: None,
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
            Records::Packages { sha256, sha512 } => {
                self.read_package(line, sha256, sha512, promises);
            }
        }
    }

    fn read_release(&mut self, line: &str, promises: &mut Promises) {
        let Some(entry) = line.strip_prefix(' ') else {
            self.listing = match line {
                "SHA256:" => Some("sha256"),
                "SHA512:" => Some("sha512"),
                _ => None,
            };
            return;
        };
        if let Some(Ok(digest)) = entry.split_ascii_whitespace().next().map(Digest::from_hex)
            && self.listing == Some(digest.algorithm())
        {
            promises.link(digest, self.root.url());
        }
    }

    fn read_package(&mut self, line: &str, sha256: &str, sha512: &str, promises: &mut Promises) {
        let Some((field, value)) = line.split_once(':') else {
            if line.is_empty() {
                (self.file, self.digest) = (None, None);
            }
            return;
        };
        let (value, is_none) = (value.trim(), self.digest.is_none());
        let read = |algorithm| {
            Digest::from_hex(value).ok().filter(|digest| digest.algorithm() == algorithm)
        };
        match field {
            "Filename" => {
                // Of another record, if that has no end.
                self.digest.take_if(|_| self.file.is_some());
                self.file = Some(value.strip_prefix("./").unwrap_or(value).to_owned());
            }
            _ if field == sha256 => self.digest = read("sha256").or(self.digest),
            // Only what has no other one.
            _ if field == sha512 && is_none => self.digest = read("sha512"),
            _ => return,
        }
        if let (Some(file), Some(digest)) = (&self.file, self.digest) {
            self.promise(file, digest, promises);
        }
    }

    fn promise(&self, path: &str, digest: Digest, promises: &mut Promises) {
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
