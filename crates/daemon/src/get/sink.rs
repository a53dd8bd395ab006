//! Where a download goes: into a part, which gets the file's name at the end, or straight through to a device, a pipe
//! or a socket, whose reader has the bytes before they are verified.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use super::ANEW;
use super::part::{Meta, Part};
use super::verify::{self, Promises, Sums};
use crate::exit::Failure;
use crate::target::{self, Target};
use crate::term;

/// Where a download goes.
#[derive(Debug)]
pub enum Sink {
    /// Into a part, and then to this path.
    Part(Part, PathBuf),
    /// To what is not a file.
    Through(Through),
}

/// A download that is written through. Nothing is kept of it, so it cannot be resumed.
#[derive(Debug)]
pub struct Through {
    file: File,
    meta: Meta,
    sums: Sums,
}

impl Sink {
    /// Opens the target for a download of this URL. `sums`, of no bytes yet, has the digests that may be promised.
    pub fn open(target: &Target, url: &str, sums: Sums) -> io::Result<Self> {
        Ok(match target {
            Target::File(output) => Self::Part(Part::open(output, url)?, output.clone()),
            Target::Through(path) => {
                let meta = Meta { url: url.to_owned(), ..Meta::default() };
                Self::Through(Through { file: target::open(path)?, meta, sums })
            }
        })
    }

    /// The version of the URL that is downloaded.
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Part(part, _) => part.meta(),
            Self::Through(through) => &through.meta,
        }
    }

    /// How many bytes have arrived.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Part(part, _) => part.bytes(),
            Self::Through(through) => through.sums.length(),
        }
    }

    /// Whether all bytes had arrived in an earlier download.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Part(part, _) if part.is_whole())
    }

    /// The first missing byte and the validator for `If-Range`, if a request can resume here.
    pub fn resumable(&self) -> Option<(u64, &str)> {
        match self {
            Self::Part(part, _) => part.resumable(),
            Self::Through(_) => None,
        }
    }

    /// Begins a download of `meta` at its first byte.
    pub fn begin(&mut self, meta: Meta) -> io::Result<()> {
        match self {
            Self::Part(part, _) => part.begin(meta),
            Self::Through(through) if through.sums.length() == 0 => {
                through.meta = meta;
                Ok(())
            }
            Self::Through(_) => Err(io::Error::other("what is written cannot be taken back")),
        }
    }

    /// Adds what a later response says of the same version.
    pub fn learn(&mut self, length: Option<u64>, repr_digest: Option<String>) {
        if let Self::Part(part, _) = self {
            part.learn(length, repr_digest);
        }
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Part(part, _) => part.append(bytes),
            Self::Through(through) => {
                through.file.write_all(bytes)?;
                through.sums.add(bytes);
                Ok(())
            }
        }
    }

    /// Checks what has arrived; returns what it was verified against, for the report.
    pub async fn verify(&mut self, promises: &Promises) -> Result<Vec<String>, Failure> {
        match self {
            Self::Part(part, _) => {
                let path = part.path().to_owned();
                let file = part.reread().map_err(|error| {
                    Failure::failed(format!("cannot read {}: {error}", path.display()))
                })?;
                verify::verify(file, promises).await
            }
            Self::Through(through) => through.sums.clone().check(promises),
        }
    }

    /// Gives the complete file its name.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::Part(part, output) => part.finish(&output),
            // Of a disk, an error may show only now; pipes and other devices cannot be synced.
            Self::Through(through) => match through.file.metadata()?.file_type() {
                kind if kind.is_block_device() || kind.is_file() => through.file.sync_all(),
                _ => Ok(()),
            },
        }
    }

    /// Ends a download that failed its verification; the next one starts over. Returns where its bytes are, for the
    /// user.
    pub fn condemn(self) -> String {
        match self {
            Self::Part(part, _) => {
                let path = part.path().display().to_string();
                part.condemn();
                format!("{path} is kept for inspection, and not resumed")
            }
            Self::Through(through) => {
                format!("{} are written already", term::bytes(through.sums.length()))
            }
        }
    }

    /// A text for the user on the bytes of a download that broke off; `None`: no byte has arrived.
    pub fn left(&self) -> Option<String> {
        let bytes = term::bytes(self.bytes());
        match self {
            _ if self.bytes() == 0 => None,
            Self::Part(part, _) if part.resumable().is_some() => {
                Some(format!("{bytes} are in {}; the same command resumes", part.path().display()))
            }
            Self::Part(..) => Some(format!("{bytes} had arrived; {ANEW}")),
            Self::Through(_) => {
                Some(format!("{bytes} are written already; the same command starts over"))
            }
        }
    }
}
