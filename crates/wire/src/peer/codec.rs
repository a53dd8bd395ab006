//! Encoding and decoding of all frames between peers.
//!
//! What this version knows of a frame has exactly one encoding, and the decoder accepts nothing else. What it
//! does not know is skipped, where a later version may add something, and reported ([`Reader::unknown`]). The
//! limits of a frame are in one place, [`Part::check`], which is applied both to what is received and to what
//! is to be sent.

use thiserror::Error;

use crate::varint;

/// The version of the protocol between peers.
pub const VERSION: u8 = 2;

/// Why bytes are not a frame. The sender is always at fault, and its connection must be closed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The format's version is not ours.
    #[error("the peer speaks version {0} of the protocol")]
    Version(u8),
    /// A connection of a kind that this version does not know.
    #[error("the peer opened a connection of the unknown kind {0}")]
    Kind(u8),
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

/// Reads exactly one frame, of which this version knows everything.
pub(super) fn decode<T: Part>(bytes: &[u8], length_max: usize) -> Result<T, FrameError> {
    let (frame, unknown) = receive(bytes, length_max)?;
    sound(unknown == Unknown::Nothing)?;
    Ok(frame)
}

/// Reads one frame, and says whether a part of it was skipped.
pub(super) fn receive<T: Part>(
    bytes: &[u8],
    length_max: usize,
) -> Result<(T, Unknown), FrameError> {
    at_most(bytes.len(), length_max)?;
    let mut reader = Reader::new(bytes);
    let frame = T::read(&mut reader)?;
    frame.check()?;
    reader.skip_rest();
    Ok((frame, reader.unknown))
}

/// What of a frame this version does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// It knows all of it.
    Nothing,
    /// Something that could be skipped.
    Optional,
    /// Something without which the frame cannot be understood.
    Required,
}

/// The bytes that are not decoded yet.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// The worst that was met so far.
    pub unknown: Unknown,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, unknown: Unknown::Nothing }
    }

    /// Something was met that this version does not know.
    pub fn meets(&mut self, unknown: Unknown) {
        self.unknown = self.unknown.max(unknown);
    }

    /// Skips what follows the known fields, if anything does.
    pub fn skip_rest(&mut self) {
        if !std::mem::take(&mut self.rest).is_empty() {
            self.meets(Unknown::Optional);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(FrameError::Malformed)?;
        self.rest = rest;
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
        let number = varint::read(&mut self.rest).ok_or(FrameError::Malformed)?;
        T::try_from(number).map_err(|_| FrameError::Malformed)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, FrameError> {
        let length = self.number()?;
        self.take(length).map(<[u8]>::to_vec)
    }

    /// The next bytes, as many as this.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(FrameError::Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub fn text(&mut self) -> Result<String, FrameError> {
        String::from_utf8(self.bytes()?).map_err(|_| FrameError::Malformed)
    }

    pub fn list<T: Item>(&mut self) -> Result<Vec<T>, FrameError> {
        let count: usize = self.number()?;
        at_most(count, T::MOST)?;
        sound(count <= self.rest.len() / T::SHORTEST)?;
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
