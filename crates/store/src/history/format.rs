//! The format of a history's files, and the only code that encodes and decodes it.
//!
//! ```text
//! block    = header 60 B | record … record | footer, once the block has all its records
//! header   = magic 8 | block's number u64 | generation u32 | slot of the first record u32
//!          | epoch 16 | check of the key 16 | CRC-32 u32
//! record   = record header 64 B | the unit's bytes
//!   header = length u32 | CRC-32 of the bytes u32 | nonce 12 | CRC-32 of the header u32
//!          | name 16 | features 16 | url 8
//! footer   = all record headers again | magic 8 | their number u32 | CRC-32 u32
//! ```
//!
//! Integers are little-endian. With a key, everything of a record after its header's CRC is
//! enciphered. The CRCs are of what the file holds, so damage is found without the key. A record's
//! CRC also covers its epoch and position, and a record in a wrong place is therefore not accepted.
//! The epoch is random, so a unit whose bytes imitate a footer cannot pass for one.
//!
//! A *generation* counts the resets of a history; only the blocks of the highest one are valid. The
//! name of a file has the generation and the block's number.

use bytes::Bytes;

use super::Mark;
use super::cipher::Cipher;
use crate::segment::{UNIT_BYTES_MAX, u32_at, u64_at};

/// Units in a block: position p is in block p / `BLOCK_UNITS`.
pub(super) const BLOCK_UNITS: u32 = 1024;
/// The number of the last block: positions after it do not fit into 64 bits.
pub(super) const BLOCK_MAX: u64 = u64::MAX / BLOCK_UNITS as u64 - 1;
/// The greatest end of a history.
pub(super) const POSITION_MAX: u64 = (BLOCK_MAX + 1) * BLOCK_UNITS as u64;
pub(super) const HEADER: u32 = 60;
pub(super) const RECORD_HEADER: u32 = 64;
const TRAILER: u32 = 16;
/// Where the enciphered part of a record begins.
const PRIVATE: usize = 24;

const MAGIC: &[u8; 8] = b"HEARHIS1";
const TRAILER_MAGIC: &[u8; 8] = b"HEARHIF1";
const SUFFIX: &str = ".history";

/// A block: its number, and the history that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId {
    pub generation: u32,
    pub epoch: [u8; 16],
    pub number: u64,
}

impl BlockId {
    pub fn file_name(&self) -> String {
        format!("{:08x}-{:016x}{SUFFIX}", self.generation, self.number)
    }

    /// The position of slot 0.
    pub fn start(&self) -> u64 {
        self.number * u64::from(BLOCK_UNITS)
    }
}

/// The generation and the block's number in a file's name; `None` for any other file.
pub(super) fn parse_name(name: &str) -> Option<(u32, u64)> {
    let (generation, number) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    let is_long = generation.len() == 8 && number.len() == 16;
    let generation = u32::from_str_radix(generation, 16).ok().filter(|_| is_long)?;
    Some((generation, u64::from_str_radix(number, 16).ok()?))
}

/// The header of a block whose first record is in slot `first`.
pub(super) fn emit_header(id: &BlockId, first: u32, cipher: &Cipher) -> [u8; HEADER as usize] {
    let mut out = [0; HEADER as usize];
    out[..8].copy_from_slice(MAGIC);
    out[8..16].copy_from_slice(&id.number.to_le_bytes());
    out[16..20].copy_from_slice(&id.generation.to_le_bytes());
    out[20..24].copy_from_slice(&first.to_le_bytes());
    out[24..40].copy_from_slice(&id.epoch);
    let check = cipher.check(&out[..40]);
    out[40..56].copy_from_slice(&check);
    let crc = crc32fast::hash(&out[..56]);
    out[56..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The block and the slot of its first record; `None` if the header is damaged, belongs to another
/// file, or was written with another key.
pub(super) fn parse_header(
    bytes: &[u8],
    (generation, number): (u32, u64),
    cipher: &Cipher,
) -> Option<(BlockId, u32)> {
    let bytes: &[u8; HEADER as usize] = bytes.first_chunk()?;
    let first = u32_at(bytes, 20)?;
    let is_sound = bytes.starts_with(MAGIC)
        && u32_at(bytes, 56)? == crc32fast::hash(&bytes[..56])
        && (u32_at(bytes, 16)?, u64_at(bytes, 8)?) == (generation, number)
        && number <= BLOCK_MAX
        && first < BLOCK_UNITS
        && bytes[40..56] == cipher.check(&bytes[..40]);
    is_sound.then_some((BlockId { generation, epoch: *bytes[24..].first_chunk()?, number }, first))
}

/// A record as it is written: its header and its bytes.
pub(super) fn emit_record(
    id: &BlockId,
    position: u64,
    mark: &Mark,
    bytes: &Bytes,
    cipher: &Cipher,
) -> ([u8; RECORD_HEADER as usize], Bytes) {
    let mut out = [0; RECORD_HEADER as usize];
    out[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    out[24..40].copy_from_slice(&mark.name);
    for (lane, feature) in out[40..56].chunks_exact_mut(4).zip(mark.features) {
        lane.copy_from_slice(&feature.to_le_bytes());
    }
    out[56..].copy_from_slice(&mark.url.to_le_bytes());
    let (nonce, body) = cipher.seal(&id.epoch, position, &mut out[PRIVATE..], bytes);
    out[4..8].copy_from_slice(&crc32fast::hash(&body).to_le_bytes());
    out[8..20].copy_from_slice(&nonce);
    let crc = header_crc(id, position, &out);
    out[20..24].copy_from_slice(&crc.to_le_bytes());
    (out, body)
}

/// The clear part of a record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub length: u32,
    bytes_crc: u32,
    nonce: [u8; 12],
}

impl RecordHeader {
    /// `None` if the header is damaged or belongs to another position.
    pub fn parse(bytes: &[u8], id: &BlockId, position: u64) -> Option<Self> {
        let bytes: &[u8; RECORD_HEADER as usize] = bytes.first_chunk()?;
        let length = u32_at(bytes, 0)?;
        let is_sound =
            length <= UNIT_BYTES_MAX && u32_at(bytes, 20)? == header_crc(id, position, bytes);
        let (bytes_crc, nonce) = (u32_at(bytes, 4)?, *bytes[8..].first_chunk()?);
        is_sound.then_some(Self { length, bytes_crc, nonce })
    }

    /// Whether these are the record's bytes.
    pub fn matches(&self, body: &[u8]) -> bool {
        crc32fast::hash(body) == self.bytes_crc
    }

    /// Deciphers a record in place, or its header alone; returns the mark.
    pub fn open(&self, record: &mut [u8], cipher: &Cipher) -> Option<Mark> {
        cipher.apply(&self.nonce, record.get_mut(PRIVATE..)?);
        let mut features = [0; 4];
        for (lane, feature) in features.iter_mut().enumerate() {
            *feature = u32_at(record, 40 + 4 * lane)?;
        }
        let (name, url) = (*record.get(24..)?.first_chunk()?, u64_at(record, 56)?);
        Some(Mark { name, features, url, length: self.length })
    }
}

fn header_crc(id: &BlockId, position: u64, header: &[u8; RECORD_HEADER as usize]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&id.epoch);
    crc.update(&position.to_le_bytes());
    crc.update(&header[..20]);
    crc.update(&header[24..]);
    crc.finalize()
}

/// Bytes of a footer with this many record headers.
pub(super) fn footer_bytes(records: u32) -> u32 {
    records * RECORD_HEADER + TRAILER
}

/// Completes a footer: `headers` holds all record headers of the block.
pub(super) fn emit_footer(id: &BlockId, mut headers: Vec<u8>) -> Vec<u8> {
    let records = headers.len() as u32 / RECORD_HEADER;
    headers.extend_from_slice(TRAILER_MAGIC);
    headers.extend_from_slice(&records.to_le_bytes());
    let crc = footer_crc(id, &headers);
    headers.extend_from_slice(&crc.to_le_bytes());
    headers
}

/// The record headers in a footer; `None` if it is damaged or belongs to another block.
pub(super) fn parse_footer<'a>(bytes: &'a [u8], id: &BlockId, records: u32) -> Option<&'a [u8]> {
    let (headers, trailer) = bytes.split_at_checked((records * RECORD_HEADER) as usize)?;
    let is_sound = trailer.len() == TRAILER as usize
        && trailer.starts_with(TRAILER_MAGIC)
        && u32_at(trailer, 8)? == records
        && u32_at(trailer, 12)? == footer_crc(id, &bytes[..bytes.len() - 4]);
    is_sound.then_some(headers)
}

fn footer_crc(id: &BlockId, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&id.epoch);
    crc.update(&id.number.to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BlockId = BlockId { generation: 3, epoch: [7; 16], number: 5 };

    fn mark() -> Mark {
        Mark { name: [1; 16], features: [2, 3, 4, u32::MAX], url: u64::MAX - 1, length: 9 }
    }

    #[test]
    fn names_of_files_are_parsed_back() {
        for (generation, number) in [(0, 0), (3, 5), (u32::MAX, u64::MAX)] {
            let name = BlockId { generation, epoch: [0; 16], number }.file_name();
            assert_eq!(parse_name(&name), Some((generation, number)), "{name}");
        }
        for name in ["", "lock", "1-1.history", "00000001_0000000000000001.history"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_header_is_accepted_whole_with_its_key_and_in_its_file_only() {
        let key = Cipher::new(Some([9; 32]));
        for cipher in [&Cipher::new(None), &key] {
            let header = emit_header(&ID, 17, cipher);
            assert_eq!(parse_header(&header, (3, 5), cipher), Some((ID, 17)));
            assert_eq!(parse_header(&header, (3, 6), cipher), None);
            assert_eq!(parse_header(&header, (2, 5), cipher), None);
            assert_eq!(parse_header(&header, (3, 5), &Cipher::new(Some([8; 32]))), None);
            for at in 0..header.len() {
                let mut damaged = header;
                damaged[at] ^= 1;
                assert_eq!(parse_header(&damaged, (3, 5), cipher), None, "{at}");
                assert_eq!(parse_header(&header[..at], (3, 5), cipher), None, "{at}");
            }
        }
        assert_eq!(parse_header(&emit_header(&ID, 17, &key), (3, 5), &Cipher::new(None)), None);
        assert_eq!(parse_header(&emit_header(&ID, 1024, &key), (3, 5), &key), None);
    }

    #[test]
    fn a_record_is_accepted_whole_and_at_its_position_only() {
        for cipher in [Cipher::new(None), Cipher::new(Some([9; 32]))] {
            let bytes = Bytes::from_static(b"some unit");
            let (header, body) = emit_record(&ID, 5 * 1024 + 8, &mark(), &bytes, &cipher);
            let mut record = [&header[..], &body].concat();
            let parsed = RecordHeader::parse(&record, &ID, 5 * 1024 + 8).unwrap();
            assert!(parsed.matches(&body) && !parsed.matches(&body[1..]));
            assert_eq!(RecordHeader::parse(&record, &ID, 5 * 1024 + 9), None);
            let other = BlockId { epoch: [8; 16], ..ID };
            assert_eq!(RecordHeader::parse(&record, &other, 5 * 1024 + 8), None);
            for at in 0..header.len() {
                record[at] ^= 1;
                assert_eq!(RecordHeader::parse(&record, &ID, 5 * 1024 + 8), None, "{at}");
                record[at] ^= 1;
            }
            let mut alone = header;
            assert_eq!(parsed.open(&mut alone, &cipher), Some(mark()));
            assert_eq!(parsed.open(&mut record, &cipher), Some(mark()));
            assert_eq!(record[64..], bytes);
        }
    }

    #[test]
    fn a_footer_is_accepted_whole_and_in_its_block_only() {
        let headers: Vec<u8> = (0..3 * 64).map(|byte| byte as u8).collect();
        let mut footer = emit_footer(&ID, headers.clone());
        assert_eq!(footer.len() as u32, footer_bytes(3));
        assert_eq!(parse_footer(&footer, &ID, 3), Some(&headers[..]));
        assert_eq!(parse_footer(&footer, &ID, 2), None);
        assert_eq!(parse_footer(&footer, &BlockId { number: 6, ..ID }, 3), None);
        for at in 0..footer.len() {
            footer[at] ^= 1;
            assert_eq!(parse_footer(&footer, &ID, 3), None, "{at}");
            footer[at] ^= 1;
            assert_eq!(parse_footer(&footer[..at], &ID, 3), None, "{at}");
        }
    }
}
