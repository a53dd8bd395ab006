//! Chunk frames: what is sent on data connections, and so can be overheard.
//!
//! # Bytes of a chunk's head
//!
//! | bytes | field |
//! |---|---|
//! | 4 | `HSCH` |
//! | 1 | version: 2 |
//! | 32 | name |
//! | 4 | total, big-endian |
//! | 4 | offset, big-endian |
//! | 4 | length, big-endian |
//! | 1 | source: 0 held, 1 relayed, 2 origin |
//!
//! Numbers have fixed sizes here: a listener that captures a packet in mid-stream can search it for
//! a head, and knows the head's length at once.

use super::codec::{FrameError, Reader, VERSION, sound};
use crate::ChunkId;

const MARKER: [u8; 4] = *b"HSCH";

/// The header before the bytes of a unit. It is in clear, so that an overhearing node knows which
/// bytes follow and can verify them.
///
/// *Usage:* `length` bytes of the unit follow. *Effects:* the receiver writes them at `offset`, and
/// verifies the whole unit against its name. *Side effects:* every listener in range learns that
/// the sender has these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    /// The unit's name.
    pub name: ChunkId,
    /// The length of the whole unit in bytes: at most [`ChunkHead::TOTAL_MAX`].
    pub total: u32,
    /// The offset of these bytes in the unit.
    pub offset: u32,
    /// The number of bytes: at least one, and no more than the unit has from `offset` on.
    pub length: u32,
    /// Where the sender got them.
    pub source: Source,
}

/// Where the sender of a unit got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The sender's own store.
    Held = 0,
    /// Another peer, just now.
    Relayed = 1,
    /// The origin, just now.
    Origin = 2,
}

impl ChunkHead {
    /// Its length in bytes.
    pub const LENGTH: usize = 50;
    /// The longest unit of any profile, in bytes.
    pub const TOTAL_MAX: u32 = 32 * 1024;

    /// Its bytes. The limits of the fields are not checked here; [`ChunkHead::decode`] checks them.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut out = [0; Self::LENGTH];
        out[0..4].copy_from_slice(&MARKER);
        out[4] = VERSION;
        out[5..37].copy_from_slice(&self.name.0);
        out[37..41].copy_from_slice(&self.total.to_be_bytes());
        out[41..45].copy_from_slice(&self.offset.to_be_bytes());
        out[45..49].copy_from_slice(&self.length.to_be_bytes());
        out[49] = self.source as u8;
        out
    }

    /// Reads a head.
    ///
    /// # Errors
    ///
    /// [`FrameError::Version`] if the version is another; [`FrameError::TooLong`] if the unit is
    /// longer than any profile allows; [`FrameError::Malformed`] if these bytes are not a head, or
    /// its numbers contradict each other.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        reader.opening(MARKER)?;
        let head = Self {
            name: ChunkId(reader.array()?),
            total: reader.array().map(u32::from_be_bytes)?,
            offset: reader.array().map(u32::from_be_bytes)?,
            length: reader.array().map(u32::from_be_bytes)?,
            source: Source::from_code(reader.byte()?)?,
        };
        head.check()?;
        Ok(head)
    }

    fn check(&self) -> Result<(), FrameError> {
        if self.total > Self::TOTAL_MAX {
            return Err(FrameError::TooLong);
        }
        let end = self.offset.checked_add(self.length);
        sound(self.length > 0 && end.is_some_and(|end| end <= self.total))
    }
}

impl Source {
    fn from_code(code: u8) -> Result<Self, FrameError> {
        [Self::Held, Self::Relayed, Self::Origin]
            .into_iter()
            .find(|it| *it as u8 == code)
            .ok_or(FrameError::Malformed)
    }
}
