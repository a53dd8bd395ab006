//! Reads what an index promises: the digests of other files below its archive's root.
//!
//! Debian's `Release` lists the digests of an archive's indexes, so that a second mirror's files are known by an index
//! that was read from the first. An index is read as it comes, compressed or not, in pieces of any size. Nothing is believed of a path that is not
//! below the archive's root. A broken index, or one that grows too much when it is decompressed, is given up without an
//! error: its promises so far stay, since a file that does not keep one is not stored.

mod fields;
mod promises;
mod ring;

use std::io::Write;

use bzip2::{Decompress, Status};
use flate2::write::MultiGzDecoder;
use xz4rust::XzDecoder;

use crate::path::Clean;
use crate::{IndexFormat, Url};
use wire::Digest;

use fields::{Fields, Records};
use promises::IndexId;

pub use promises::Promises;

/// The largest index, in bytes, when it is decompressed.
const SIZE_MAX: u64 = 512 << 20;

/// How much larger than its compressed form an index may be. Lists of packages shrink to a fifth or a seventh.
const RATIO_MAX: u64 = 100;

/// The largest dictionary of an index that is compressed with xz, in bytes: that of `xz -6`.
const DICTIONARY_MAX: usize = 8 << 20;

/// The most compressed bytes that wait for more of them, since the decoder cannot use them alone.
const REST_MAX: usize = 8 << 10;

/// Reads one index.
pub struct IndexReader {
    form: Form,
    /// How many bytes were read.
    read: u64,
}

enum Form {
    /// Nothing was read, and the name does not say its form.
    Unknown(Box<Sink>),
    Plain(Box<Sink>),
    Gzip(Box<MultiGzDecoder<Sink>>),
    Bzip2(Box<Bzip2>),
    Xz(Box<Xz>),
    /// It is broken, or too large.
    GivenUp,
}

/// Takes what is decompressed.
struct Sink {
    fields: Fields,
    promises: Promises,
    room: u64,
}

struct Bzip2 {
    decoder: Decompress,
    sink: Sink,
    out: Box<[u8]>,
}

struct Xz {
    decoder: Box<XzDecoder<'static>>,
    sink: Sink,
    rest: Vec<u8>,
    out: Box<[u8]>,
}

impl std::fmt::Debug for IndexReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexReader").field("read", &self.read).finish_non_exhaustive()
    }
}

impl IndexReader {
    /// A reader of the index at a URL. `None` if this index cannot promise anything: its path has no root, or a query.
    pub fn new(format: IndexFormat, url: Url<'_>) -> Option<Self> {
        let (path, root) = (Clean::new(url.path)?, root(format, url)?);
        let records = match format {
            IndexFormat::AptRelease => Records::Release,
            IndexFormat::AptPackages => Records::Packages { sha256: "SHA256", sha512: "SHA512" },
            IndexFormat::OpenwrtPackages => {
                Records::Packages { sha256: "SHA256sum", sha512: "SHA512sum" }
            }
        };
        let fields = Fields::new(records, IndexId::of_url(url), root);
        let sink = Sink { fields, promises: Promises::default(), room: SIZE_MAX };
        let form = match (format, path.last().rsplit_once('.')) {
            (IndexFormat::AptRelease, _) => Form::Plain(Box::new(sink)),
            (_, Some((_, "gz"))) => Form::gzip(sink),
            (_, Some((_, "xz"))) => Form::xz(sink),
            (_, Some((_, "bz2"))) => Form::bzip2(sink),
            _ => Form::Unknown(Box::new(sink)),
        };
        Some(Self { form, read: 0 })
    }

    /// Whether it holds only one line of the index; otherwise a dictionary, of up to 8 MiB.
    pub fn is_small(&self) -> bool {
        matches!(self.form, Form::Plain(_) | Form::GivenUp)
    }

    /// Takes a piece of the index.
    pub fn feed(&mut self, bytes: &[u8], promises: &mut Promises) {
        if self.read == 0
            && let Some(sink) = self.form.sink()
        {
            sink.fields.begin(promises);
        }
        self.read += bytes.len() as u64;
        let read = self.read;
        self.form.settle(bytes);
        let Some(sink) = self.form.sink() else { return };
        std::mem::swap(&mut sink.promises, promises);
        let is_well = self.form.feed(bytes);
        let Some(sink) = self.form.sink() else { return };
        std::mem::swap(&mut sink.promises, promises);
        let grown = (SIZE_MAX - sink.room).saturating_sub(1 << 20);
        if !is_well || grown > read.saturating_mul(RATIO_MAX) {
            promises.give_up();
            self.form = Form::GivenUp;
        }
    }

    /// The index was read whole, and has this digest: its promises count for other archives that have it.
    pub fn verified(&mut self, digest: Digest, promises: &mut Promises) {
        if let Some(sink) = self.form.sink() {
            sink.fields.verify(digest, promises);
        }
    }
}

impl Promises {
    /// The index at a URL has a digest. If it was read elsewhere, what it promises counts for this archive too.
    pub fn same(&mut self, format: IndexFormat, url: Url<'_>, digest: Digest) {
        if let Some(root) = root(format, url) {
            self.link(digest, root);
        }
    }
}

/// The folder that the paths in an index are below.
fn root(format: IndexFormat, url: Url<'_>) -> Option<Url<'_>> {
    let path = Clean::new(url.path).filter(|it| it.query.is_none())?;
    let end = match format {
        IndexFormat::AptRelease | IndexFormat::AptPackages => path.path.find("/dists/")? + 1,
        IndexFormat::OpenwrtPackages => path.path.len() - path.last().len(),
    };
    Some(Url { path: &path.path[..end], ..url })
}

impl Form {
    fn gzip(sink: Sink) -> Self {
        Self::Gzip(Box::new(MultiGzDecoder::new(sink)))
    }

    fn bzip2(sink: Sink) -> Self {
        Self::Bzip2(Box::new(Bzip2::new(sink)))
    }

    fn xz(sink: Sink) -> Self {
        Self::Xz(Box::new(Xz::new(sink)))
    }

    /// The first byte shows the form: no list of packages begins with that of gzip (RFC 1952 §2.3.1), xz or bzip2 (`B`).
    fn settle(&mut self, bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        *self = match (std::mem::replace(self, Self::GivenUp), first) {
            (Self::Unknown(sink), 0x1f) => Self::gzip(*sink),
            (Self::Unknown(sink), 0xfd) => Self::xz(*sink),
            (Self::Unknown(sink), b'B') => Self::bzip2(*sink),
            (Self::Unknown(sink), _) => Self::Plain(sink),
            (known, _) => known,
        };
    }

    fn sink(&mut self) -> Option<&mut Sink> {
        match self {
            Self::Plain(sink) | Self::Unknown(sink) => Some(sink),
            Self::Gzip(decoder) => Some(decoder.get_mut()),
            Self::Bzip2(bzip2) => Some(&mut bzip2.sink),
            Self::Xz(xz) => Some(&mut xz.sink),
            Self::GivenUp => None,
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Plain(sink) | Self::Unknown(sink) => sink.write_all(bytes).is_ok(),
            // Without the flush, the decoder keeps its last output back.
            Self::Gzip(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()).is_ok(),
            Self::Bzip2(bzip2) => bzip2.feed(bytes).is_some(),
            Self::Xz(xz) => xz.feed(bytes).is_some(),
            Self::GivenUp => false,
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.room.checked_sub(bytes.len() as u64);
        self.room = left.ok_or_else(|| std::io::Error::other("the index is too large"))?;
        self.fields.feed(bytes, &mut self.promises);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Bzip2 {
    fn new(sink: Sink) -> Self {
        Self { decoder: Decompress::new(false), sink, out: vec![0; 32 << 10].into() }
    }

    /// Takes a piece; `None` if the index is broken.
    fn feed(&mut self, mut bytes: &[u8]) -> Option<()> {
        loop {
            let (read, wrote) = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(bytes, &mut self.out).ok()?;
            let read = (self.decoder.total_in() - read) as usize;
            let wrote = (self.decoder.total_out() - wrote) as usize;
            bytes = &bytes[read..];
            self.sink.write_all(&self.out[..wrote]).ok()?;
            match status {
                Status::MemNeeded => return None,
                Status::Ok if read + wrote == 0 && !bytes.is_empty() => return None,
                // Programs that compress in parallel write one stream after the other.
                Status::StreamEnd => self.decoder = Decompress::new(false),
                _ => {}
            }
            // A block's output is given before more is read.
            if bytes.is_empty() && wrote < self.out.len() {
                return Some(());
            }
        }
    }
}

impl Xz {
    fn new(sink: Sink) -> Self {
        // The decoder gets a larger dictionary when the index asks for it.
        let decoder = Box::new(XzDecoder::with_alloc_dict_size(64 << 10, DICTIONARY_MAX));
        Self { decoder, sink, rest: Vec::new(), out: vec![0; 32 << 10].into() }
    }

    /// Takes a piece; `None` if the index is broken.
    fn feed(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest.extend_from_slice(bytes);
        let mut read = 0;
        while read < self.rest.len() {
            let result = match self.decoder.decode(&self.rest[read..], &mut self.out) {
                Err(xz4rust::XzError::NeedsLargerInputBuffer) => break,
                result => result.ok()?,
            };
            self.sink.write_all(&self.out[..result.output_produced()]).ok()?;
            read += result.input_consumed();
            if result.is_end_of_stream() {
                // Nothing follows in an archive's indexes.
                read = self.rest.len();
            } else if !result.made_progress() {
                break;
            }
        }
        self.rest.drain(..read);
        (self.rest.len() <= REST_MAX).then_some(())
    }
}

#[cfg(test)]
mod tests;
