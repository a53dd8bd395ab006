//! The frames of a capture file in either format (pcap, pcapng), read in pieces.
//!
//! [`Decoder`] takes records off the front of bytes in memory, without copying. [`Feeder`] keeps
//! the incomplete record at the end of a piece until the next piece arrives.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use thiserror::Error;

use super::pcapng::{self, Section};
use super::{Frame, pcap};
use crate::Instant;

/// The longest frame that a capture may hold, in bytes; other programs have the same limit.
pub const FRAME_MAX: usize = 262_144;

/// A decoder that is given this number of bytes always makes progress.
pub const IN_HAND_MAX: usize = pcapng::BLOCK_MAX;

/// One frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970: the zero of these instants.
    pub time: Instant,
    /// The frame.
    pub frame: Frame<'a>,
}

/// Why the rest of a file cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("at byte {offset} of the capture: {cause}")]
pub struct RecordsError {
    /// Where the record or block begins.
    pub offset: u64,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Cause {
    /// Not a file of either format.
    #[error("neither pcap nor pcapng")]
    Magic,
    /// The file is truncated.
    #[error("the file ends within a record")]
    Torn,
    /// Longer than [`FRAME_MAX`].
    #[error("a frame is longer than {FRAME_MAX} bytes")]
    FrameLength,
    /// Impossible, too long for a type of block that is parsed, or different at the block's end.
    #[error("a block of impossible length")]
    BlockLength,
    /// A field or option goes beyond its block.
    #[error("a block whose fields go beyond its end")]
    Block,
    /// No block describes the packet's interface.
    #[error("a packet of an interface that was not described")]
    NoInterface,
    /// A section describes more interfaces than are supported.
    #[error("too many interfaces")]
    Interfaces,
}

/// Takes records off the front of a capture's bytes.
///
/// ```
/// # use wire::capture::records::{Decoder, RecordsError};
/// # fn count(file: &[u8]) -> Result<usize, RecordsError> {
/// let (mut decoder, mut left, mut frames) = (Decoder::new(), file, 0);
/// while let Some(_record) = decoder.take(&mut left)? {
///     frames += 1;
/// }
/// decoder.finish(left)?;
/// # Ok(frames)
/// # }
/// # assert!(count(&[]).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    kind: Kind,
    /// Bytes taken so far.
    offset: u64,
    /// Bytes still to be skipped.
    skip: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Unknown,
    Pcap(pcap::Format),
    Pcapng(Section),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder at the start of a file.
    pub fn new() -> Self {
        Self { kind: Kind::Unknown, offset: 0, skip: 0 }
    }

    /// Takes the next record off the front of `bytes`, and everything before it; `None` if it is
    /// incomplete. The caller then calls again with the bytes that are left and those that follow.
    /// An error is final.
    pub fn take<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Record<'a>>, RecordsError> {
        loop {
            self.pass_over(bytes);
            let here = *bytes;
            let read = self.read(here);
            let read = read.map_err(|cause| RecordsError { offset: self.offset, cause })?;
            let Some((length, record)) = read else { return Ok(None) };
            self.skip = length;
            if record.is_some() {
                self.pass_over(bytes);
                return Ok(record);
            }
        }
    }

    /// Checks that the file may end here, where `left` are the bytes that [`Decoder::take`] left.
    pub fn finish(&self, left: &[u8]) -> Result<(), RecordsError> {
        if left.is_empty() && self.skip == 0 && !matches!(self.kind, Kind::Unknown) {
            return Ok(());
        }
        Err(RecordsError { offset: self.offset, cause: Cause::Torn })
    }

    /// The length of the item at the front, and its record, if it holds one.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<(u64, Option<Record<'a>>)>, Cause> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match &mut self.kind {
            Kind::Unknown if bytes.starts_with(&pcapng::SECTION_HEADER.to_be_bytes()) => {
                self.kind = Kind::Pcapng(Section::new());
                Ok(Some((0, None)))
            }
            Kind::Unknown => {
                let Some(format) = pcap::Format::read(bytes)? else { return Ok(None) };
                self.kind = Kind::Pcap(format);
                Ok(Some((pcap::FILE_HEADER_LEN as u64, None)))
            }
            Kind::Pcap(format) => {
                let record = format.record(bytes)?;
                Ok(record.map(|(record, length)| (length as u64, Some(record))))
            }
            Kind::Pcapng(section) => {
                let block = section.block(bytes)?;
                Ok(block.map(|block| (block.length.into(), block.record)))
            }
        }
    }

    fn pass_over(&mut self, bytes: &mut &[u8]) {
        let now = bytes.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        *bytes = bytes.get(now..).unwrap_or_default();
        self.skip -= now as u64;
        self.offset += now as u64;
    }
}

/// Records of a file that is read in pieces. Memory stays below the sum of [`IN_HAND_MAX`] and a
/// piece, provided the caller calls [`Feeder::take`] after each piece until it returns `None`.
#[derive(Clone, Debug, Default)]
pub struct Feeder {
    decoder: Decoder,
    held: Vec<u8>,
    /// The bytes of `held` that were taken.
    taken: usize,
}

impl Feeder {
    /// Adds the next piece of the file, of any length.
    pub fn feed(&mut self, piece: &[u8]) {
        self.held.drain(..self.taken);
        self.taken = 0;
        self.held.extend_from_slice(piece);
    }

    /// The next complete record. An error is final.
    pub fn take(&mut self) -> Result<Option<Record<'_>>, RecordsError> {
        let mut left = self.held.get(self.taken..).unwrap_or_default();
        let before = left.len();
        let record = self.decoder.take(&mut left);
        self.taken += before - left.len();
        record
    }

    /// Checks that the file may end here.
    pub fn finish(&self) -> Result<(), RecordsError> {
        self.decoder.finish(self.held.get(self.taken..).unwrap_or_default())
    }
}
