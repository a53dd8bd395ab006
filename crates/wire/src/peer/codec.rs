//! Encoding and decoding of all frames between peers.
//!
//! A frame has exactly one encoding, and the decoder accepts nothing else. The limits of a frame
//! are in one place, [`Part::check`], which is applied both to what is received and to what is to
//! be sent.

use thiserror::Error;

use crate::varint;

/// The version of the protocol between peers.
pub const VERSION: u8 = 1;

/// Why bytes are not a frame. The sender is always at fault, and its connection must be closed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The format's version is not ours.
    #[error("the peer speaks version {0} of the protocol")]
    Version(u8),
    /// Not a frame of this protocol.
    #[error("the peer sent a malformed frame")]
    Malformed,
    /// Longer than the longest frame, or with a field beyond its limit.
    #[error("the peer sent a frame or a field that is too long")]
    TooLong,
}

/// A frame, or a part of one.
pub(super) trait Part: Sized {
    /// Appends its bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes it off the front. The result is not checked yet, but its size is bounded by the bytes
    /// received.
    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError>;

    /// Checks its limits.
    fn check(&self) -> Result<(), FrameError>;
}

/// A part that occurs in lists.
pub(super) trait Item: Part {
    /// The shortest encoding of one, in bytes.
    const SHORTEST: usize;
    /// The most items in one list.
    const MOST: usize;
}

/// The bytes of a whole frame; `None` if it breaks a limit.
pub(super) fn encode<T: Part>(frame: &T, length_max: usize) -> Option<Vec<u8>> {
    frame.check().ok()?;
    let mut out = Vec::new();
    frame.write(&mut out);
    (out.len() <= length_max).then_some(out)
}

/// Reads exactly one frame.
pub(super) fn decode<T: Part>(bytes: &[u8], length_max: usize) -> Result<T, FrameError> {
    if bytes.len() > length_max {
        return Err(FrameError::TooLong);
    }
    let mut reader = Reader(bytes);
    let frame = T::read(&mut reader)?;
    sound(reader.0.is_empty())?;
    frame.check()?;
    Ok(frame)
}

/// The bytes that are not decoded yet.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(FrameError::Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn byte(&mut self) -> Result<u8, FrameError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// The marker and the version of a frame that is sent outside Noise.
    pub fn opening(&mut self, marker: [u8; 4]) -> Result<(), FrameError> {
        sound(self.array()? == marker)?;
        match self.byte()? {
            VERSION => Ok(()),
            other => Err(FrameError::Version(other)),
        }
    }

    /// Options, one bit each; unknown bits are refused.
    pub fn flags(&mut self, known: u8) -> Result<u8, FrameError> {
        let flags = self.byte()?;
        sound(flags & !known == 0)?;
        Ok(flags)
    }

    pub fn number<T: TryFrom<u64>>(&mut self) -> Result<T, FrameError> {
        let number = varint::read(&mut self.0).ok_or(FrameError::Malformed)?;
        T::try_from(number).map_err(|_| FrameError::Malformed)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, FrameError> {
        let length = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(FrameError::Malformed)?;
        self.0 = rest;
        Ok(bytes.to_vec())
    }

    pub fn text(&mut self) -> Result<String, FrameError> {
        String::from_utf8(self.bytes()?).map_err(|_| FrameError::Malformed)
    }

    pub fn list<T: Item>(&mut self) -> Result<Vec<T>, FrameError> {
        let count: usize = self.number()?;
        at_most(count, T::MOST)?;
        sound(count <= self.0.len() / T::SHORTEST)?;
        (0..count).map(|_| T::read(self)).collect()
    }

    /// An optional part, whose presence a flag announces.
    pub fn option<T>(
        &mut self,
        present: bool,
        read: impl FnOnce(&mut Self) -> Result<T, FrameError>,
    ) -> Result<Option<T>, FrameError> {
        present.then(|| read(self)).transpose()
    }
}

pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::write(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

pub(super) fn write_list<T: Item>(list: &[T], out: &mut Vec<u8>) {
    varint::write(list.len() as u64, out);
    for item in list {
        item.write(out);
    }
}

pub(super) fn check_list<T: Item>(list: &[T]) -> Result<(), FrameError> {
    at_most(list.len(), T::MOST)?;
    list.iter().try_for_each(T::check)
}

/// Checks a text that must fit on one line.
pub(super) fn check_line(text: &str, length_max: usize) -> Result<(), FrameError> {
    at_most(text.len(), length_max)?;
    sound(!text.contains(char::is_control))
}

pub(super) fn at_most(length: usize, length_max: usize) -> Result<(), FrameError> {
    if length <= length_max { Ok(()) } else { Err(FrameError::TooLong) }
}

pub(super) fn sound(holds: bool) -> Result<(), FrameError> {
    if holds { Ok(()) } else { Err(FrameError::Malformed) }
}
