//! Chunk frames: what crosses a data connection, and the air.
//!
//! # Bytes of a chunk's head
//!
//! | bytes | field |
//! |---|---|
//! | 4 | `HSCH` |
//! | 1 | version: 1 |
//! | 32 | name |
//! | 4 | total, big-endian |
//! | 4 | offset, big-endian |
//! | 4 | length, big-endian |
//! | 1 | source: 0 held, 1 relayed, 2 origin |
//!
//! Numbers have fixed sizes here, so that whoever hears a packet in the middle of things can look for a
//! head and knows at once how long it is.

use super::codec::{FrameError, Reader, VERSION, sound};
use crate::ChunkId;

const MARKER: [u8; 4] = *b"HSCH";

/// What stands in front of bytes of a unit, in clear, so that whoever hears it knows what follows
/// and can verify it.
///
/// *Usage:* `length` bytes of the unit follow. *Effects:* the receiver puts them in their place; the
/// whole is verified against the name. *Side effects:* everybody in range learns that the sender has
/// these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    /// The unit's name.
    pub name: ChunkId,
    /// The unit's whole length in bytes: at most [`ChunkHead::TOTAL_MAX`].
    pub total: u32,
    /// Where in the unit these bytes begin.
    pub offset: u32,
    /// How many there are: at least one, and no more than the unit has from there on.
    pub length: u32,
    /// Where the sender had them from.
    pub source: Source,
}

/// Where the sender of a unit had it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It held it already.
    Held = 0,
    /// It has just come from another peer.
    Relayed = 1,
    /// It has just come from the origin.
    Origin = 2,
}

impl ChunkHead {
    /// Its length in bytes.
    pub const LENGTH: usize = 50;
    /// The longest unit of any profile, in bytes.
    pub const TOTAL_MAX: u32 = 32 * 1024;

    /// Its bytes. Of a head that breaks the limits of its fields, [`ChunkHead::decode`] is the judge.
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
    /// [`FrameError::Version`] if it is another version's; [`FrameError::TooLong`] if the unit is longer
    /// than any; [`FrameError::Malformed`] if it is no head, or its numbers contradict each other.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Result<Self, FrameError> {
        let mut reader = Reader(bytes);
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
