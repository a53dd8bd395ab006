//! The format of a segment file: its types, and the bytes of each header.
//!
//! *What this is:* the types ([`SegmentId`], [`Location`], [`Entry`], [`Unit`]) and the only code
//! that encodes and decodes them. *Who calls it:* the log writes with it, recovery and readers
//! parse with it, the index computes sizes with it. *What it never does:* open a file, or trust a
//! byte.
//!
//! ```text
//! segment  = header 32 B | unit … unit | footer, once it is full
//! unit     = header 48 B | its bytes   | zeros up to a multiple of 16
//! footer   = entry 40 B × units | trailer 32 B, which ends the file
//! ```
//!
//! Each header has a CRC-32 that also covers the segment's number and the header's offset, so a
//! header that is found in a wrong place is not accepted. The CRC of the trailer also covers the
//! segment's salt, which is secret: a unit whose bytes imitate a trailer cannot pass for one.
//!
//! *What survives a crash:* a trailer is written after the units before it are durable. Recovery
//! therefore trusts a segment with a valid trailer, and checks any other unit by unit.

use bytes::Bytes;
use wire::ChunkId;

/// Longest unit in bytes: the largest chunk of any chunking profile.
pub const UNIT_BYTES_MAX: u32 = 32 * 1024;

/// Largest segment in bytes: the index addresses it with 21 bits, in steps of 16 bytes.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 32 << 20;
/// Largest budget in bytes: the index numbers segments of that size with 16 bits.
pub const BUDGET_BYTES_MAX: u64 = u16::MAX as u64 * SEGMENT_BYTES_MAX as u64;
/// Smallest segment in bytes: room for a few units of the greatest length.
pub(crate) const SEGMENT_BYTES_MIN: u32 = 128 << 10;
/// Units start at multiples of this many bytes.
pub(crate) const ALIGN: u32 = 16;
pub(crate) const SEGMENT_HEADER: u32 = 32;
pub(crate) const UNIT_HEADER: u32 = 48;
pub(crate) const FOOTER_ENTRY: u32 = 40;
pub(crate) const TRAILER: u32 = 32;

const SEGMENT_MAGIC: &[u8; 8] = b"HEARSEG1";
const TRAILER_MAGIC: &[u8; 8] = b"HEARFTR1";
pub(crate) const UNIT_MAGIC: &[u8; 3] = b"HU\x01";

/// The number of a segment file. Numbers ascend; none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// Where a unit is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The segment.
    pub segment: SegmentId,
    /// The offset of the unit's header in the segment, in bytes; a multiple of 16.
    pub offset: u32,
}

/// Why a unit was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// A client of this node requested the unit.
    Own = 0,
    /// The unit was relayed for another node.
    Relayed = 1,
    /// The unit was overheard.
    Overheard = 2,
    /// The unit was published on this node.
    Put = 3,
}

impl Provenance {
    /// Decodes the low two bits of a byte.
    pub(crate) fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Own,
            1 => Self::Relayed,
            2 => Self::Overheard,
            _ => Self::Put,
        }
    }
}

/// One unit in the footer of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The unit's name.
    pub id: ChunkId,
    /// The unit's length in bytes, without header or padding.
    pub length: u32,
    /// The offset of the unit's header in the segment, in bytes.
    pub offset: u32,
    /// Why the unit was stored.
    pub provenance: Provenance,
}

/// A unit to be stored.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The unit's name; the store does not check the bytes against it.
    pub id: ChunkId,
    /// The unit's bytes, at most [`UNIT_BYTES_MAX`].
    pub bytes: Bytes,
    /// Why the unit is stored.
    pub provenance: Provenance,
    /// No client or peer has requested the unit. It is written to a segment of such units, and
    /// evicted first. All units of one append have the same value.
    pub on_probation: bool,
}

/// The segment size for a budget, both in bytes: a 64th of the budget, but at least 128 KiB and at
/// most 32 MiB.
///
/// A few segments are always being written or reclaimed, so a segment must be small compared with
/// the budget. Above 32 MiB a larger segment gives no advantage.
pub fn segment_bytes(budget_bytes: u64) -> u32 {
    let wanted = (budget_bytes / 64).min(u64::from(SEGMENT_BYTES_MAX)) as u32;
    wanted.max(SEGMENT_BYTES_MIN) / ALIGN * ALIGN
}

/// Bytes on disk of a unit of `length` bytes: header, bytes and padding.
pub const fn unit_disk_bytes(length: u32) -> u32 {
    (UNIT_HEADER + length).next_multiple_of(ALIGN)
}

/// As [`unit_disk_bytes`], with the unit's entry in the footer.
pub const fn unit_log_bytes(length: u32) -> u32 {
    unit_disk_bytes(length) + FOOTER_ENTRY
}

/// The kind of units in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Units that were requested or published.
    Fresh = 0,
    /// Units that survived the reclaiming of another segment.
    Kept = 1,
    /// Units on probation: stored without a request.
    Probation = 2,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Fresh, Self::Kept, Self::Probation];

    /// Decodes the byte in a segment's header; an unknown kind, of a later version, counts as
    /// fresh.
    fn from_byte(byte: u8) -> Self {
        let known = Self::ALL.into_iter().find(|kind| *kind as u8 == byte);
        known.unwrap_or(Self::Fresh)
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub id: SegmentId,
    pub kind: Kind,
    pub salt: u64,
}

impl SegmentHeader {
    pub fn emit(&self) -> [u8; SEGMENT_HEADER as usize] {
        let mut out = [0; SEGMENT_HEADER as usize];
        out[..8].copy_from_slice(SEGMENT_MAGIC);
        out[8..12].copy_from_slice(&self.id.0.to_le_bytes());
        out[12] = self.kind as u8;
        out[16..24].copy_from_slice(&self.salt.to_le_bytes());
        let crc = crc32fast::hash(&out[..28]);
        out[28..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub fn parse(bytes: &[u8], id: SegmentId) -> Option<Self> {
        let bytes: &[u8; SEGMENT_HEADER as usize] = bytes.first_chunk()?;
        let sound = bytes.starts_with(SEGMENT_MAGIC)
            && u32_at(bytes, 28)? == crc32fast::hash(&bytes[..28])
            && u32_at(bytes, 8)? == id.0;
        sound.then_some(Self { id, kind: Kind::from_byte(bytes[12]), salt: u64_at(bytes, 16)? })
    }
}

/// The header of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitHeader {
    pub id: ChunkId,
    pub length: u32,
    pub provenance: Provenance,
    /// CRC-32 of the unit's bytes. Recovery checks it; readers need not, because the engine checks
    /// the bytes against the unit's name.
    pub body_crc: u32,
}

impl UnitHeader {
    pub fn emit(&self, at: Location) -> [u8; UNIT_HEADER as usize] {
        let mut out = [0; UNIT_HEADER as usize];
        out[..3].copy_from_slice(UNIT_MAGIC);
        out[3] = self.provenance as u8;
        out[4..8].copy_from_slice(&self.length.to_le_bytes());
        out[8..40].copy_from_slice(self.id.as_bytes());
        out[40..44].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc_at(at, &out[..44]);
        out[44..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub fn parse(bytes: &[u8], at: Location) -> Option<Self> {
        let bytes: &[u8; UNIT_HEADER as usize] = bytes.first_chunk()?;
        let length = u32_at(bytes, 4)?;
        let sound = bytes.starts_with(UNIT_MAGIC)
            && length <= UNIT_BYTES_MAX
            && u32_at(bytes, 44)? == crc_at(at, &bytes[..44]);
        sound.then_some(Self {
            id: ChunkId(*bytes[8..].first_chunk()?),
            length,
            provenance: Provenance::from_bits(bytes[3]),
            body_crc: u32_at(bytes, 40)?,
        })
    }
}

/// The footer of a sealed segment: its entries, then the trailer at the end of the file.
pub(crate) fn emit_footer(header: &SegmentHeader, offset: u32, entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(footer_bytes(entries.len()) as usize);
    for entry in entries {
        out.extend_from_slice(entry.id.as_bytes());
        out.extend_from_slice(&entry.offset.to_le_bytes());
        out.extend_from_slice(&(entry.length << 2 | entry.provenance as u32).to_le_bytes());
    }
    let entries_crc = salted(header, &out);
    let start = out.len();
    out.extend_from_slice(TRAILER_MAGIC);
    out.extend_from_slice(&header.id.0.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    out.extend_from_slice(&entries_crc.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let trailer_crc = salted(header, &out[start..]);
    out.extend_from_slice(&trailer_crc.to_le_bytes());
    out
}

/// Bytes of a footer with this many entries.
pub(crate) fn footer_bytes(entries: usize) -> u32 {
    entries as u32 * FOOTER_ENTRY + TRAILER
}

/// The trailer: the last bytes of a sealed segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trailer {
    /// The offset of the footer in the segment, in bytes.
    pub footer_offset: u32,
    /// Bytes of all entries.
    pub entries_bytes: u32,
    entries_crc: u32,
}

impl Trailer {
    /// Parses the trailer at the end of a file of `file_bytes`.
    pub fn parse(bytes: &[u8], header: &SegmentHeader, file_bytes: u64) -> Option<Self> {
        let bytes: &[u8; TRAILER as usize] = bytes.first_chunk()?;
        let footer_offset = u32_at(bytes, 12)?;
        let entries_bytes = u32_at(bytes, 16)?.checked_mul(FOOTER_ENTRY)?;
        let end = u64::from(footer_offset) + u64::from(entries_bytes) + u64::from(TRAILER);
        let sound = bytes.starts_with(TRAILER_MAGIC)
            && u32_at(bytes, 28)? == salted(header, &bytes[..28])
            && u32_at(bytes, 8)? == header.id.0
            && end == file_bytes;
        sound.then_some(Self { footer_offset, entries_bytes, entries_crc: u32_at(bytes, 20)? })
    }

    /// Parses the entries before it; `None` if any of them is damaged.
    pub fn entries(&self, bytes: &[u8], header: &SegmentHeader) -> Option<Vec<Entry>> {
        if salted(header, bytes) != self.entries_crc {
            return None;
        }
        bytes.chunks_exact(FOOTER_ENTRY as usize).map(|entry| self.entry(entry)).collect()
    }

    fn entry(&self, bytes: &[u8]) -> Option<Entry> {
        let (offset, packed) = (u32_at(bytes, 32)?, u32_at(bytes, 36)?);
        let length = packed >> 2;
        let sound = offset.is_multiple_of(ALIGN)
            && offset >= SEGMENT_HEADER
            && length <= UNIT_BYTES_MAX
            && offset.checked_add(unit_disk_bytes(length))? <= self.footer_offset;
        let id = ChunkId(*bytes.first_chunk()?);
        let provenance = Provenance::from_bits(packed as u8);
        sound.then_some(Entry { id, length, offset, provenance })
    }
}

fn crc_at(at: Location, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&at.segment.0.to_le_bytes());
    crc.update(&at.offset.to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

fn salted(header: &SegmentHeader, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header.salt.to_le_bytes());
    crc.update(&header.id.0.to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
