//! A hole in a stored object, being fetched from the origin for one reader.

use crate::input::ExchangeId;
use bytes::Bytes;
use content::Entry;
use std::collections::VecDeque;
use wire::ChunkId;

/// Consecutive units missing from a stored object, being fetched from the origin.
#[derive(Debug)]
pub struct Repairing {
    /// The reader that waits for them.
    pub reader: ExchangeId,
    /// The offset of the first unit in the object.
    pub first: u64,
    /// Units still to come, as the manifest lists them.
    pub units: VecDeque<Entry>,
    tail: Vec<u8>,
}

/// The origin's bytes are not those that the manifest names.
#[derive(Debug)]
pub struct OtherBytes;

impl Repairing {
    pub fn new(reader: ExchangeId, first: u64, units: VecDeque<Entry>) -> Self {
        Self { reader, first, units, tail: Vec::new() }
    }

    /// Bytes still to come.
    pub fn wanted(&self) -> u64 {
        self.units.iter().map(|unit| u64::from(unit.length)).sum::<u64>() - self.tail.len() as u64
    }

    /// Takes content and returns the units that it completes, in the form in which they are stored:
    /// sealed again if they were sealed, each checked against its name.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<(ChunkId, Bytes)>, OtherBytes> {
        self.tail.extend_from_slice(bytes);
        let (mut whole, mut used) = (Vec::new(), 0);
        while let Some(Entry { id, length, key, .. }) = self.units.front().copied()
            && let Some(unit) = self.tail.get(used..used + length as usize)
        {
            let mut unit = unit.to_vec();
            if let Some(key) = key {
                content::cipher(&key, &mut unit);
            }
            if content::name(&unit) != id {
                return Err(OtherBytes);
            }
            whole.push((id, unit.into()));
            used += length as usize;
            self.units.pop_front();
        }
        self.tail.drain(..used);
        Ok(whole)
    }
}
