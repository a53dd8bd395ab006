//! The list of a root's chunks, as it crosses: a pruned tree, in the order of the content.
//!
//! # Bytes
//!
//! For each chunk its name (20 bytes) and a number: twice its length, and one more if its content crosses, too.

use super::{ChunkName, ENTRIES_MAX, NAME, ROOT_MAX};
use crate::uplink::codec::{Fields, Malformed, Writer};
use std::ops::Range;

/// A chunk of a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: ChunkName,
    /// Its length in bytes.
    pub length: u32,
    /// S does not believe that R has it: its content follows the list.
    pub is_missing: bool,
}

/// The chunks of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of the content. None is empty.
    pub entries: Vec<Entry>,
}

impl Listing {
    /// As bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        for entry in &self.entries {
            w.bytes(&entry.name);
            w.number(u64::from(entry.length) << 1 | u64::from(entry.is_missing));
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are no list of a root, or of one that is too long.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (mut fields, mut entries, mut total) = (Fields(bytes), Vec::new(), 0);
        while !fields.0.is_empty() {
            let name = fields.array::<NAME>()?;
            let number = fields.up_to(2 * ROOT_MAX + 1)?;
            let length = number >> 1;
            total += length;
            if length == 0 || total > ROOT_MAX || entries.len() == ENTRIES_MAX {
                return Err(Malformed);
            }
            entries.push(Entry { name, length: length as u32, is_missing: number & 1 == 1 });
        }
        if entries.is_empty() { Err(Malformed) } else { Ok(Self { entries }) }
    }

    /// The bytes of its content: all, and those that cross.
    pub fn lengths(&self) -> (usize, usize) {
        let of = |all| {
            let some = self.entries.iter().filter(|entry| all || entry.is_missing);
            some.map(|entry| entry.length as usize).sum()
        };
        (of(true), of(false))
    }

    /// Where each chunk is in the content.
    pub fn places(&self) -> impl Iterator<Item = (ChunkName, Range<usize>)> {
        self.entries.iter().scan(0, |start, entry| {
            let end = *start + entry.length as usize;
            Some((entry.name, std::mem::replace(start, end)..end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u8, length: u32, is_missing: bool) -> Entry {
        Entry { name: [number; NAME], length, is_missing }
    }

    #[test]
    fn a_list_reads_back() {
        let listing = Listing {
            entries: vec![entry(1, 1, true), entry(2, 200_000, false), entry(3, 30, true)],
        };
        let mut bytes = Vec::new();
        listing.encode(&mut bytes);
        assert_eq!(Listing::decode(&bytes).as_ref(), Ok(&listing));
        assert_eq!(listing.lengths(), (200_031, 31));
        assert_eq!(listing.places().last(), Some(([3; NAME], 200_001..200_031)));
        for cut in 1..bytes.len() {
            let part = Listing::decode(&bytes[..cut]);
            assert!(part != Ok(listing.clone()), "{cut}");
        }
    }

    #[test]
    fn what_is_too_long_or_empty_is_refused() {
        let of = |entries: &[Entry]| {
            let mut bytes = Vec::new();
            Listing { entries: entries.to_vec() }.encode(&mut bytes);
            Listing::decode(&bytes)
        };
        assert!(of(&[]).is_err() && of(&[entry(1, 0, true)]).is_err());
        let half = ROOT_MAX as u32 / 2;
        assert!(of(&[entry(1, half, true), entry(2, half, true)]).is_ok());
        assert!(of(&[entry(1, half, true), entry(2, half + 1, true)]).is_err());
        assert!(of(&vec![entry(1, 1, true); ENTRIES_MAX]).is_ok());
        assert!(of(&vec![entry(1, 1, true); ENTRIES_MAX + 1]).is_err());
    }
}
