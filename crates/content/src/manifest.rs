//! Manifests: the list of an object's units, in segments that can be sent before the whole object
//! is cut.
//!
//! *What this is:* [`Segment`] and its encoding, and [`ManifestBuilder`], which fills segments. A
//! segment holds the digest of its predecessor, so a signature on one covers all segments before
//! it. *Who calls it:* `node`, at both ends of a transfer; the catalogue, which stores encoded
//! segments. *What it never does:* sign, seal, or promise that a node holds the units. *Where to
//! start:* [`Segment`]. *Source:* our own; `docs/decisions/0001-nested-gear-chunking.md`.
//!
//! # Bytes of a segment
//!
//! | bytes | field |
//! |---|---|
//! | 4 | `HSMF` |
//! | 1 | version of the format: 1 |
//! | 1 | profile id |
//! | 1 | flags: bit 0 closing; the others zero |
//! | varint | number of the segment, from 0 |
//! | varint | offset of its first unit in the object, bytes |
//! | varint | number of its first unit |
//! | 32 | digest of the segment before; zeros in segment 0 |
//! | varint | number of entries |
//! | … | entries |
//! | varint, varint | if closing: the object's length in bytes, its number of units |
//!
//! An entry is a 32-byte name; a varint `length << 2 | keyed << 1 | parent_end`; and, if keyed, a
//! 32-byte key. Each entry has its own flag for the key, so every list of entries can be encoded,
//! even if only some of them have keys.
//!
//! Every segment has exactly one encoding, and the decoder accepts no other.

use thiserror::Error;
use wire::{ChunkId, varint};

use crate::profile::Profile;

/// The greatest length of an encoded segment, in bytes.
pub const SEGMENT_MAX: usize = 32 * 1024;

const MAGIC: [u8; 4] = *b"HSMF";
const VERSION: u8 = 1;
const CLOSING: u8 = 1;

/// The greatest length of the header, with every number at its longest, in bytes.
const HEAD_MAX: usize = MAGIC.len() + 3 + 3 * varint::LONGEST + 32 + COUNT_MAX;
/// The greatest length of the number of entries, in bytes: 32 KiB holds fewer than 2^14 entries.
const COUNT_MAX: usize = 2;
/// The greatest length of the closing numbers, in bytes.
const CLOSING_MAX: usize = 2 * varint::LONGEST;
/// The space for all entries of a segment, in bytes.
const ENTRIES_BYTES_MAX: usize = SEGMENT_MAX - HEAD_MAX - CLOSING_MAX;
/// The shortest entry, in bytes: a name and a length.
const ENTRY_MIN: usize = ChunkId::LEN + 1;

/// A contiguous part of an object's list of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The profile by which the object was cut.
    pub profile: &'static Profile,
    /// The number of segments before this one.
    pub number: u64,
    /// The number of the object's bytes before the first entry.
    pub first_offset: u64,
    /// The number of units before the first entry.
    pub first_unit: u64,
    /// The [`Segment::digest`] of the previous segment; zeros if there is none.
    pub previous: [u8; 32],
    /// The units; empty only in a closing segment.
    pub entries: Vec<Entry>,
    /// Present in the last segment only.
    pub closing: Option<Closing>,
}

/// One unit of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its stored bytes.
    pub id: ChunkId,
    /// Its length in bytes: 1 to the profile's maximum for units.
    pub length: u32,
    /// Whether a parent ends with it. (The end of the object ends a parent too, even without this
    /// mark.)
    pub parent_end: bool,
    /// The key that opens it, if it is sealed.
    pub key: Option<[u8; 32]>,
}

/// The totals of the whole object, in its last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Its length in bytes.
    pub length: u64,
    /// Its number of units.
    pub units: u64,
}

/// Why bytes are not a segment, or a segment is not the next one.
///
/// The sender is always at fault. Nothing was changed; asking the same sender again does not help.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ManifestError {
    /// More than [`SEGMENT_MAX`] bytes.
    #[error("a manifest segment of {0} bytes is too long")]
    TooLong(usize),
    /// Ends within a field, or has a greater number of entries than fit into its bytes.
    #[error("the manifest segment is cut short")]
    Truncated,
    /// Does not begin with the magic bytes of a segment.
    #[error("this is not a manifest segment")]
    Magic,
    /// A format that this version does not know.
    #[error("manifest format {0} is unknown")]
    Version(u8),
    /// A profile that this version does not know.
    #[error("chunking profile {0} is unknown")]
    Profile(u8),
    /// Flags that this version does not know.
    #[error("manifest flags {0:#04x} are unknown")]
    Flags(u8),
    /// A number that is not in its shortest encoding, or above 64 bits.
    #[error("a number in the manifest segment is malformed")]
    Number,
    /// A unit that is empty, or longer than the profile allows.
    #[error("a unit of {0} bytes is not possible")]
    Length(u64),
    /// Bytes after the end.
    #[error("{0} bytes follow the manifest segment")]
    Trailing(usize),
    /// No entries, and not the last segment.
    #[error("the manifest segment is empty")]
    Empty,
    /// Its number, offset, first unit and predecessor contradict each other.
    #[error("the manifest segment's position contradicts itself")]
    Position,
    /// The closing totals do not match the entries.
    #[error("the manifest's totals are not those of its entries")]
    Totals,
    /// Does not follow the segment that it was compared with.
    #[error("the manifest segment does not follow the one before")]
    Chain,
}

impl Segment {
    /// The digest by which the next segment, or a signature, refers to an encoded segment.
    pub fn digest(encoded: &[u8]) -> [u8; 32] {
        *blake3::hash(encoded).as_bytes()
    }

    /// The number of the object's bytes before the next segment.
    pub fn end_offset(&self) -> u64 {
        self.entries.iter().fold(self.first_offset, |end, entry| end + u64::from(entry.length))
    }

    /// The number of units before the next segment.
    pub fn end_unit(&self) -> u64 {
        self.first_unit + self.entries.len() as u64
    }

    /// Checks that this segment directly follows `previous`.
    ///
    /// # Errors
    ///
    /// [`ManifestError::Chain`] if it does not; nothing follows a closing segment.
    pub fn follows(&self, previous: &Self) -> Result<(), ManifestError> {
        let in_order = previous.closing.is_none()
            && self.profile == previous.profile
            && previous.number.checked_add(1) == Some(self.number)
            && self.first_offset == previous.end_offset()
            && self.first_unit == previous.end_unit();
        // The digest is compared last, because only this takes time.
        if in_order && self.previous == Self::digest(&previous.encode()) {
            Ok(())
        } else {
            Err(ManifestError::Chain)
        }
    }

    /// Its encoding. If the segment came from [`ManifestBuilder`] or [`Segment::decode`], it has at
    /// most [`SEGMENT_MAX`] bytes and decodes to the same segment. Otherwise, only
    /// [`Segment::decode`] shows whether it is valid.
    pub fn encode(&self) -> Vec<u8> {
        let entries: usize = self.entries.iter().map(Entry::encoded_len).sum();
        let mut out = Vec::with_capacity(HEAD_MAX + entries + CLOSING_MAX);
        out.extend(MAGIC);
        out.extend([VERSION, self.profile.id, if self.closing.is_some() { CLOSING } else { 0 }]);
        varint::write(self.number, &mut out);
        varint::write(self.first_offset, &mut out);
        varint::write(self.first_unit, &mut out);
        out.extend(self.previous);
        varint::write(self.entries.len() as u64, &mut out);
        for entry in &self.entries {
            entry.encode(&mut out);
        }
        if let Some(closing) = self.closing {
            varint::write(closing.length, &mut out);
            varint::write(closing.units, &mut out);
        }
        out
    }

    /// Reads exactly one segment.
    ///
    /// # Errors
    ///
    /// Any input that is not the encoding of a possible segment. Memory is allocated only for
    /// entries that fit into the bytes received.
    pub fn decode(encoded: &[u8]) -> Result<Self, ManifestError> {
        if encoded.len() > SEGMENT_MAX {
            return Err(ManifestError::TooLong(encoded.len()));
        }
        let mut reader = Reader(encoded);
        let (profile, closes) = reader.opening()?;
        let segment = Self {
            profile,
            number: reader.number()?,
            first_offset: reader.number()?,
            first_unit: reader.number()?,
            previous: reader.array()?,
            entries: reader.entries(profile)?,
            closing: closes.then(|| reader.closing()).transpose()?,
        };
        reader.end()?;
        segment.check()?;
        Ok(segment)
    }

    /// Checks everything that can be checked without the other segments.
    fn check(&self) -> Result<(), ManifestError> {
        if self.entries.is_empty() && self.closing.is_none() {
            return Err(ManifestError::Empty);
        }
        let end = self.checked_end().ok_or(ManifestError::Position)?;
        if self.is_misplaced() {
            return Err(ManifestError::Position);
        }
        match self.closing {
            Some(Closing { length, units }) if (length, units) != end => Err(ManifestError::Totals),
            _ => Ok(()),
        }
    }

    /// The offset and number of the unit after the last entry; `None` if they exceed 64 bits.
    fn checked_end(&self) -> Option<(u64, u64)> {
        let bytes = self.entries.iter().map(|entry| u64::from(entry.length)).sum();
        let units = self.entries.len() as u64;
        Some((self.first_offset.checked_add(bytes)?, self.first_unit.checked_add(units)?))
    }

    /// Whether the position is impossible: each segment but the last has at least one unit, each
    /// unit at least one byte, and none more than the profile's maximum.
    fn is_misplaced(&self) -> bool {
        let bytes_max = self.first_unit.saturating_mul(u64::from(self.profile.unit.maximum));
        let first = self.number == 0;
        first != (self.previous == [0; 32])
            || first && self.first_unit != 0
            || self.first_unit < self.number
            || self.first_offset < self.first_unit
            || self.first_offset > bytes_max
    }
}

impl Entry {
    fn encoded_len(&self) -> usize {
        let key = self.key.map_or(0, |key| key.len());
        ChunkId::LEN + varint::length(self.tagged_length()) + key
    }

    fn tagged_length(&self) -> u64 {
        u64::from(self.length) << 2
            | u64::from(self.key.is_some()) << 1
            | u64::from(self.parent_end)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.id.as_bytes());
        varint::write(self.tagged_length(), out);
        out.extend(self.key.iter().flatten());
    }
}

/// The bytes that are not decoded yet.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(ManifestError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn number(&mut self) -> Result<u64, ManifestError> {
        varint::read(&mut self.0).ok_or(ManifestError::Number)
    }

    /// Decodes the fields up to the flags: the profile, and whether the segment is the last.
    fn opening(&mut self) -> Result<(&'static Profile, bool), ManifestError> {
        if self.array()? != MAGIC {
            return Err(ManifestError::Magic);
        }
        let [version] = self.array()?;
        if version != VERSION {
            return Err(ManifestError::Version(version));
        }
        let [profile, flags] = self.array()?;
        if flags & !CLOSING != 0 {
            return Err(ManifestError::Flags(flags));
        }
        let profile = Profile::from_id(profile).ok_or(ManifestError::Profile(profile))?;
        Ok((profile, flags & CLOSING != 0))
    }

    fn entries(&mut self, profile: &Profile) -> Result<Vec<Entry>, ManifestError> {
        let count = self.number()?;
        if count > (self.0.len() / ENTRY_MIN) as u64 {
            return Err(ManifestError::Truncated);
        }
        (0..count).map(|_| self.entry(profile)).collect()
    }

    fn entry(&mut self, profile: &Profile) -> Result<Entry, ManifestError> {
        let id = ChunkId(self.array()?);
        let tagged = self.number()?;
        let length = tagged >> 2;
        if length == 0 || length > u64::from(profile.unit.maximum) {
            return Err(ManifestError::Length(length));
        }
        let key = (tagged & 2 != 0).then(|| self.array()).transpose()?;
        Ok(Entry { id, length: length as u32, parent_end: tagged & 1 != 0, key })
    }

    fn closing(&mut self) -> Result<Closing, ManifestError> {
        Ok(Closing { length: self.number()?, units: self.number()? })
    }

    fn end(&self) -> Result<(), ManifestError> {
        match self.0.len() {
            0 => Ok(()),
            bytes => Err(ManifestError::Trailing(bytes)),
        }
    }
}

/// Fills segments with entries as units are cut.
///
/// ```
/// use content::{Entry, ManifestBuilder, Profile, Segment, name};
///
/// let mut builder = ManifestBuilder::new(Profile::DEFAULT);
/// let unit = b"a small object";
/// let entry = Entry { id: name(unit), length: 14, parent_end: true, key: None };
/// assert_eq!(builder.push(entry), None, "the segment is not full");
/// let segment = builder.close();
/// assert_eq!(Segment::decode(&segment.encode()), Ok(segment));
/// ```
#[derive(Clone, Debug)]
pub struct ManifestBuilder {
    open: Segment,
    /// Encoded size of the open segment's entries, in bytes.
    entry_bytes: usize,
}

impl ManifestBuilder {
    /// Begins the manifest of an object.
    pub fn new(profile: &'static Profile) -> Self {
        let open = Segment {
            profile,
            number: 0,
            first_offset: 0,
            first_unit: 0,
            previous: [0; 32],
            entries: Vec::new(),
            closing: None,
        };
        Self { open, entry_bytes: 0 }
    }

    /// The least number of units that a full segment lists, sealed or not.
    pub fn entries_min(profile: &Profile, sealed: bool) -> usize {
        let key = sealed.then_some([0; 32]);
        let longest = profile.unit.maximum;
        let entry = Entry { id: ChunkId([0; 32]), length: longest, parent_end: true, key };
        ENTRIES_BYTES_MAX / entry.encoded_len()
    }

    /// Adds a unit; returns the previous segment if it had no space left.
    pub fn push(&mut self, entry: Entry) -> Option<Segment> {
        debug_assert!((1..=self.open.profile.unit.maximum).contains(&entry.length));
        let bytes = entry.encoded_len();
        let full = self.entry_bytes + bytes > ENTRIES_BYTES_MAX;
        let done = if full { self.flush() } else { None };
        self.entry_bytes += bytes;
        self.open.entries.push(entry);
        done
    }

    /// The segment that is being filled, for readers that have read all complete segments.
    pub fn open(&self) -> &Segment {
        &self.open
    }

    /// Closes the current segment early, for waiting readers; `None` if it is empty.
    pub fn flush(&mut self) -> Option<Segment> {
        if self.open.entries.is_empty() {
            return None;
        }
        let next = Segment {
            profile: self.open.profile,
            number: self.open.number + 1,
            first_offset: self.open.end_offset(),
            first_unit: self.open.end_unit(),
            previous: Segment::digest(&self.open.encode()),
            entries: Vec::new(),
            closing: None,
        };
        self.entry_bytes = 0;
        Some(std::mem::replace(&mut self.open, next))
    }

    /// Ends the manifest: returns its last segment.
    pub fn close(mut self) -> Segment {
        let closing = Closing { length: self.open.end_offset(), units: self.open.end_unit() };
        self.open.closing = Some(closing);
        self.open
    }
}
