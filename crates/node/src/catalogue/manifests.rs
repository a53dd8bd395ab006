//! The cache of manifest segments in memory.

use super::Signed;
use crate::hasher::{Cache, Map, cache};
use crate::input::ExchangeId;
use crate::output::{Output, StoreOutput};
use content::Segment;
use quick_cache::Weighter;
use std::collections::VecDeque;
use std::rc::Rc;
use wire::RecordId;

type Place = (RecordId, u32);

/// Segments by record and number.
pub struct Manifests {
    cache: Cache<Place, Rc<Signed>, ByEntries>,
    waiting: Map<Place, Vec<ExchangeId>>,
}

#[derive(Clone, Copy, Default)]
struct ByEntries;

impl Weighter<Place, Rc<Signed>> for ByEntries {
    fn weight(&self, _: &Place, signed: &Rc<Signed>) -> u64 {
        (signed.segment.entries.len() * size_of::<content::Entry>()) as u64 + 384
    }
}

impl Manifests {
    /// An empty cache of at most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let items = (bytes / 1024).max(16) as usize;
        Self { cache: cache(items, bytes, ByEntries), waiting: Map::default() }
    }

    /// A segment, if it is in memory.
    pub fn get(&self, record: RecordId, number: u32) -> Option<Rc<Segment>> {
        self.signed(record, number).map(|signed| Rc::clone(&signed.segment))
    }

    /// A segment with its signature, if it is in memory.
    pub fn signed(&self, record: RecordId, number: u32) -> Option<Rc<Signed>> {
        self.cache.get(&(record, number)).cloned()
    }

    /// Caches a segment that was just made or has just arrived.
    pub fn put(&mut self, record: RecordId, signed: Rc<Signed>) {
        self.cache.insert((record, signed.segment.number as u32), signed);
    }

    /// Reads a segment from the catalogue for an exchange. Several exchanges share one read.
    pub fn read(&mut self, at: Place, waiter: ExchangeId, out: &mut VecDeque<Output>) {
        let waiters = self.waiting.entry(at).or_default();
        if waiters.is_empty() {
            out.push_back(Output::Store(StoreOutput::ReadSegment(at.0, at.1)));
        }
        waiters.push(waiter);
    }

    /// The exchanges that wait for a segment.
    pub fn waiters(&self, at: &Place) -> &[ExchangeId] {
        self.waiting.get(at).map_or(&[], Vec::as_slice)
    }

    /// The catalogue has answered. Returns the exchanges that waited, and the segment if it is valid.
    pub fn handle_segment(
        &mut self,
        at: Place,
        bytes: Option<&[u8]>,
    ) -> (Vec<ExchangeId>, Option<Rc<Segment>>) {
        let signed = bytes
            .and_then(Signed::decode)
            .filter(|signed| signed.segment.number == u64::from(at.1))
            .map(Rc::new);
        if let Some(signed) = &signed {
            self.cache.insert(at, Rc::clone(signed));
        }
        let segment = signed.map(|signed| Rc::clone(&signed.segment));
        (self.waiting.remove(&at).unwrap_or_default(), segment)
    }

    /// The cache's approximate size, in bytes.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}
