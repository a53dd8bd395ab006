//! Random ids for records, all from one seed.

use wire::RecordId;

/// Draws record ids: BLAKE3 of a counter, keyed with the seed.
#[derive(Debug)]
pub struct RecordIds {
    seed: [u8; 32],
    drawn: u64,
}

impl RecordIds {
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    pub fn record_id(&mut self) -> RecordId {
        self.drawn += 1;
        let hash = blake3::keyed_hash(&self.seed, &self.drawn.to_le_bytes());
        let mut id = [0; RecordId::LEN];
        id.copy_from_slice(&hash.as_bytes()[..RecordId::LEN]);
        RecordId(id)
    }
}
