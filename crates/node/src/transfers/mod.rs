//! Objects under way. Every machine may read this table; only `object` writes it.

pub mod check;
pub mod cutting;
pub mod incoming;
pub mod parts;
pub mod reader;
pub mod rest;
pub mod transfer;

use crate::chunks::Unit;
use crate::exchanges::Exchanges;
use crate::hasher::Map;
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use crate::request::UNASKED_BYTES;
use content::Segment;
use incoming::Incoming;
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use wire::{ChunkId, RecordId};

/// Exchanges that read an object.
pub type Readers = SmallVec<[ExchangeId; 8]>;

/// The transfers by number; see the module.
#[derive(Debug, Default)]
pub struct Transfers(Map<FetchId, Incoming>);

impl Deref for Transfers {
    type Target = Map<FetchId, Incoming>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Transfers {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Transfers {
    /// The transfer that fills a record's holes, if there is one.
    pub fn filling(&self, record: &Record) -> Option<FetchId> {
        let fills = |it: &Incoming| it.record == record.id && it.is_filling();
        self.0.iter().find_map(|(id, incoming)| fills(incoming).then_some(*id))
    }

    /// The exchanges that read an object.
    pub fn readers(&self, id: FetchId) -> Readers {
        self.0.get(&id).map(Incoming::reader_ids).unwrap_or_default()
    }

    /// Those readers that are peers.
    pub fn peers(&self, id: FetchId, exchanges: &Exchanges) -> Readers {
        self.readers(id).into_iter().filter(|reader| exchanges.is_peer(*reader)).collect()
    }

    /// Whether a transfer carries this record.
    pub fn has(&self, record: RecordId) -> bool {
        self.0.values().any(|incoming| incoming.record == record)
    }
}

/// The units that follow a first segment without a want.
pub fn unsolicited(segment: &Segment) -> Vec<(ChunkId, Unit)> {
    let mut end = segment.first_offset;
    let mut units = Vec::new();
    for entry in &segment.entries {
        end += u64::from(entry.length);
        if end > UNASKED_BYTES {
            break;
        }
        units.push((entry.id, Unit::listed(entry, end)));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use content::Entry;

    #[test]
    fn the_units_in_the_first_16_kib_follow_without_a_want() {
        let follow = |lengths: &[u32]| {
            let entry = |length: &u32| {
                let id = content::name(&length.to_le_bytes());
                Entry { id, length: *length, parent_end: false, key: None }
            };
            let segment = Segment {
                profile: content::Profile::DEFAULT,
                number: 0,
                first_offset: 0,
                first_unit: 0,
                previous: [0; 32],
                entries: lengths.iter().map(entry).collect(),
                closing: None,
            };
            unsolicited(&segment).iter().map(|(_, unit)| unit.end).collect::<Vec<_>>()
        };
        assert_eq!(follow(&[8000, 8384, 1]), [8000, 16_384]);
        assert_eq!(follow(&[8000, 8385, 1]), [8000]);
        assert!(follow(&[16_385]).is_empty());
    }
}
