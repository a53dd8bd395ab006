//! An object under way: its head, its manifest so far, and its readers.

use super::Readers;
use super::reader::Reader;
use super::transfer::{Listing, Transfer};
use crate::catalogue::{Manifests, Signed, segment_number};
use crate::chunks::{Chunks, Unit};
use crate::exchanges::Exchanges;
use crate::exchanges::exchange::Exchange;
use crate::hasher::Set;
use crate::http::{Record, RecordSignature};
use crate::transfers::cutting::Cutting;
use bytes::Bytes;
use classes::{IndexReader, Promises};
use content::{Root, Segment};
use http::{HeaderMap, HeaderName, StatusCode};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::peer::Resume;
use wire::{ChunkId, Date, Digest, Instant, ObjectKey, Oid, RecordId, Signature};

/// Units are written in groups: a parent, or this many bytes.
const GROUP_BYTES: u64 = 256 * 1024;

/// The key and address under which an object is stored.
#[derive(Clone, Debug)]
pub struct Label {
    pub key: ObjectKey,
    pub uri: String,
    /// The name in the request, if the object is published.
    pub named: Option<Oid>,
    /// The key under which requests for the same digest find it.
    pub alias: Option<ObjectKey>,
}

/// An object that is stored while it arrives.
#[derive(Debug)]
pub struct Incoming {
    /// Where it is stored; `None` for a file being published, which gets its name at its end.
    pub label: Option<Label>,
    /// When it was requested.
    pub requested: Date,
    /// Content bytes granted to the origin, or bytes of units wanted from a peer; `received_bytes`
    /// counts those that have arrived.
    pub granted: u64,
    pub received_bytes: u64,
    pub record: RecordId,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub selecting: Vec<(HeaderName, Option<Vec<u8>>)>,
    pub received: Date,
    /// Whether the clock was known to be right at that time.
    pub clocked: bool,
    /// The age in seconds that the sending peer gave.
    pub carried: u64,
    /// The signature of the node that vouches for it; `None` if this node does.
    pub record_signature: Option<RecordSignature>,
    /// The digest that its body was found to have.
    pub verified: Option<Digest>,
    /// The root that certifies it, if it was requested by name.
    pub root: Option<Rc<Root>>,
    /// Its length in bytes, if announced.
    pub announced: Option<u64>,
    pub readers: Vec<Reader>,
    /// The most bytes that it may have to be stored.
    pub bytes_max: u64,
    /// Its units are evicted after all others.
    pub is_lasting: bool,
    /// Reads it as it comes, if it is an index that promises digests of other files.
    pub index: Option<Box<IndexReader>>,
    /// The source of its units.
    pub transfer: Transfer,
    /// Units that the current supplier does not have.
    pub lost: Set<ChunkId>,
    /// The offset of each closed segment.
    pub offsets: Vec<u64>,
    /// Closed segments that are not in the catalogue yet.
    pub closed: BTreeMap<u32, Rc<Signed>>,
    group: Vec<(ChunkId, Bytes)>,
    group_bytes: u64,
    /// The store failed: units that it did not take stay in memory until every reader has passed
    /// them.
    pub memory_only: bool,
    /// The end and name of each unit that is only in memory.
    pub unstored: VecDeque<(u64, ChunkId)>,
    /// When the body counts as pausing, if nothing arrives before.
    pub pause_at: Option<Instant>,
}

impl Incoming {
    pub fn new(
        record: RecordId,
        status: StatusCode,
        headers: HeaderMap,
        (received, clocked): (Date, bool),
        transfer: Transfer,
    ) -> Self {
        Self {
            label: None,
            requested: received,
            granted: 0,
            received_bytes: 0,
            record,
            status,
            headers,
            selecting: Vec::new(),
            received,
            clocked,
            carried: 0,
            record_signature: None,
            verified: None,
            root: None,
            announced: None,
            readers: Vec::new(),
            bytes_max: u64::MAX,
            is_lasting: false,
            index: None,
            transfer,
            lost: Set::default(),
            offsets: Vec::new(),
            closed: BTreeMap::new(),
            group: Vec::new(),
            group_bytes: 0,
            memory_only: false,
            unstored: VecDeque::new(),
            pause_at: None,
        }
    }

    /// The offset of loose bytes that readers should get without waiting for the unit's end, if
    /// there are any.
    pub fn loose_from(&self) -> Option<u64> {
        let known = self.known_bytes();
        let loose = match &self.transfer {
            Transfer::Cutting(cutting) => cutting.pauses && self.received_bytes > known,
            Transfer::Listing(listing) => !listing.ended && listing.tail.end().is_some(),
            Transfer::Filling(_) | Transfer::Closed(_) => false,
        };
        loose.then_some(known)
    }

    /// How far readers may be served now. A length told by a peer is not signed, so the last byte
    /// is withheld until the signed manifest, or the gateway, has ended there (decision 0023). So is the last byte of a
    /// body whose digest is still to be verified: what is false must not look complete.
    pub fn limit(&self) -> u64 {
        match (&self.transfer, self.announced) {
            (Transfer::Listing(it), Some(length)) if !it.ended => length.saturating_sub(1),
            (Transfer::Cutting(it), Some(length)) if it.check.is_some() => length.saturating_sub(1),
            _ => u64::MAX,
        }
    }

    /// Its cutter, while it arrives from an origin.
    pub fn cutting(&mut self) -> Option<&mut Cutting> {
        match &mut self.transfer {
            Transfer::Cutting(cutting) => Some(cutting),
            _ => None,
        }
    }

    /// Whether its body, which has come whole, is the one that was promised, if one was. Asked once.
    pub fn verify(&mut self, promises: &mut Promises) -> bool {
        let check = self.cutting().and_then(|cutting| cutting.check.take());
        let Some(check) = check else { return true };
        let digest = check.verified();
        self.verified = digest;
        if let (Some(digest), Some(index)) = (digest, &mut self.index) {
            index.verified(digest, promises);
        }
        digest.is_some()
    }

    /// Its manifest from a peer, if it has one.
    pub fn listing(&mut self) -> Option<&mut Listing> {
        match &mut self.transfer {
            Transfer::Listing(listing) => Some(listing),
            _ => None,
        }
    }

    /// Whether it is cut here, not listed by a peer.
    pub fn is_cut(&self) -> bool {
        matches!(self.transfer, Transfer::Cutting(_) | Transfer::Closed(_))
    }

    /// Whether its manifest is closed.
    pub fn is_ended(&self) -> bool {
        match &self.transfer {
            Transfer::Cutting(_) => false,
            Transfer::Listing(listing) => listing.ended,
            Transfer::Filling(_) | Transfer::Closed(_) => true,
        }
    }

    /// The record, once the manifest is closed.
    pub fn whole(&self) -> Option<&Rc<Record>> {
        match &self.transfer {
            Transfer::Listing(listing) => listing.whole.as_ref(),
            _ => self.in_row(),
        }
    }

    /// The record, if it is already in a row.
    pub fn in_row(&self) -> Option<&Rc<Record>> {
        match &self.transfer {
            Transfer::Filling(record) => Some(record),
            Transfer::Closed(record) => record.as_ref(),
            Transfer::Cutting(_) | Transfer::Listing(_) => None,
        }
    }

    /// Where another peer may continue it: the next segment, and the manifest credit.
    pub fn goes_on_from(&self) -> Option<(Resume, u64)> {
        let (segment, manifest_credit) = match &self.transfer {
            Transfer::Listing(it) => (it.next, it.manifest_credit),
            Transfer::Filling(_) => (self.offsets.len() as u32, 0),
            Transfer::Cutting(_) | Transfer::Closed(_) => return None,
        };
        Some((Resume { record: self.record, segment }, manifest_credit))
    }

    /// Whether it is a stored record whose holes are being filled.
    pub fn is_filling(&self) -> bool {
        matches!(self.transfer, Transfer::Filling(_))
    }

    /// Whether loose bytes of it arrive.
    pub fn is_loose(&self) -> bool {
        matches!(&self.transfer, Transfer::Listing(listing) if listing.tail.end().is_some())
    }

    /// Whether its beginning was never received.
    pub fn starts_late(&self) -> bool {
        matches!(&self.transfer, Transfer::Listing(listing) if listing.starts_late)
    }

    /// Adds a closed segment.
    pub fn close_segment(&mut self, segment: &Rc<Segment>, signature: Option<Signature>) {
        self.offsets.push(segment.first_offset);
        let signed = Signed { segment: Rc::clone(segment), signature };
        self.closed.insert(segment.number as u32, Rc::new(signed));
    }

    /// The offset of a segment that has arrived.
    pub fn offset_of(&self, number: u32) -> Option<u64> {
        let first = self.first_segment();
        self.offsets.get(number.checked_sub(first)? as usize).copied()
    }

    /// Whether a segment has arrived, or is not due yet.
    pub fn segment_is_here(&self, number: u32) -> bool {
        number >= self.first_segment()
    }

    fn first_segment(&self) -> u32 {
        match &self.transfer {
            Transfer::Listing(listing) => listing.next - self.offsets.len() as u32,
            _ => 0,
        }
    }

    /// Collects a unit for writing; returns the group when it is complete.
    pub fn collect(&mut self, unit: (ChunkId, Bytes), last: bool) -> Vec<(ChunkId, Bytes)> {
        self.group_bytes += unit.1.len() as u64;
        let full = last || self.group_bytes >= GROUP_BYTES;
        self.group.push(unit);
        if full { self.flush() } else { Vec::new() }
    }

    /// Takes the collected group.
    pub fn flush(&mut self) -> Vec<(ChunkId, Bytes)> {
        self.group_bytes = 0;
        std::mem::take(&mut self.group)
    }

    /// Drops what all readers have passed. Returns how many loose bytes that were.
    pub fn pass(&mut self, exchanges: &Exchanges, chunks: &mut Chunks) -> u64 {
        if self.memory_only {
            self.pass_unstored(exchanges, chunks);
        }
        let positions = self.readers.iter().filter_map(|reader| {
            let exchange = exchanges.get(&reader.id)?;
            // A peer's reader that has an exchange for loose bytes does not read them itself.
            exchange.flow().is_none().then(|| exchange.position()).flatten()
        });
        let slowest = positions.min().unwrap_or(u64::MAX);
        self.listing().map_or(0, |listing| listing.tail.pass(slowest))
    }

    fn pass_unstored(&mut self, exchanges: &Exchanges, chunks: &mut Chunks) {
        let readers = || self.readers.iter().filter_map(|reader| exchanges.get(&reader.id));
        let slowest = readers().filter_map(Exchange::position).min().unwrap_or(u64::MAX);
        // Segments that no reader will need again are dropped, too.
        let told = readers().filter_map(Exchange::told_to).min().unwrap_or(u32::MAX);
        self.closed
            .retain(|number, signed| *number >= told || signed.segment.end_offset() > slowest);
        while self.unstored.front().is_some_and(|(end, _)| *end <= slowest) {
            let Some((_, unit)) = self.unstored.pop_front() else { return };
            // The same unit may occur again later.
            if !self.unstored.iter().any(|(_, other)| *other == unit) {
                chunks.release(&unit);
            }
        }
    }

    /// The record as far as it is known.
    pub fn so_far(&self) -> Record {
        Record {
            id: self.record,
            status: self.status,
            headers: self.headers.clone(),
            selecting: self.selecting.clone(),
            requested: self.requested,
            received: self.received,
            clocked: self.clocked,
            invalid: false,
            carried: self.carried,
            record_signature: self.record_signature.clone(),
            verified: self.verified,
            length: self.known_bytes(),
            offsets: self.offsets.clone(),
        }
    }

    /// The exchanges that read it.
    pub fn reader_ids(&self) -> Readers {
        self.readers.iter().map(|reader| reader.id).collect()
    }

    /// The end of the bytes that readers may be given: received from the origin, or listed by a
    /// peer.
    pub fn frontier(&self) -> u64 {
        match &self.transfer {
            Transfer::Listing(listing) => listing.tail.end().unwrap_or(listing.end),
            Transfer::Filling(record) => record.length,
            Transfer::Cutting(_) | Transfer::Closed(_) => self.received_bytes,
        }
    }

    /// Content bytes that may still arrive for the credit granted; memory is reserved for them.
    pub fn promised(&self) -> u64 {
        self.granted.saturating_sub(self.received_bytes)
    }

    /// Bytes in the units listed so far.
    pub fn known_bytes(&self) -> u64 {
        match &self.transfer {
            Transfer::Cutting(cutting) => cutting.cut_bytes(),
            Transfer::Listing(listing) => listing.end,
            Transfer::Filling(record) => record.length,
            Transfer::Closed(_) => self.received_bytes,
        }
    }

    /// A stored record with holes, which a peer is to fill.
    pub fn filling(record: &Rc<Record>) -> Self {
        let transfer = Transfer::Filling(Rc::clone(record));
        let came = (record.received, record.clocked);
        Self {
            announced: Some(record.length),
            offsets: record.offsets.clone(),
            record_signature: record.record_signature.clone(),
            ..Self::new(record.id, record.status, record.headers.clone(), came, transfer)
        }
    }

    /// The units listed in a range, as far as their segments are in memory, and the end of the last
    /// one.
    pub fn listed_between(
        &self,
        manifests: &mut Manifests,
        from: u64,
        to: u64,
    ) -> (Vec<(ChunkId, Unit)>, u64) {
        let (mut units, mut at) = (Vec::new(), from);
        while at < to {
            let (number, segment) = self.segment_at(at);
            let segment = segment.or_else(|| manifests.get(self.record, number));
            let Some(segment) = segment else { break };
            let mut end = segment.first_offset;
            for entry in &segment.entries {
                end += u64::from(entry.length);
                if end > at && end - u64::from(entry.length) < to {
                    units.push((entry.id, Unit::listed(entry, end)));
                }
            }
            let covered = units.last().map_or(at, |(_, unit)| unit.end);
            // The segment lists nothing at this position: without this the loop would not end.
            if covered <= at {
                break;
            }
            at = covered;
        }
        (units, at)
    }

    /// The number of the segment that covers a position, and the segment if it is in memory.
    pub fn segment_at(&self, position: u64) -> (u32, Option<Rc<Segment>>) {
        if let Transfer::Cutting(cutting) = &self.transfer
            && let Some(open) = cutting.open_from(position)
        {
            return (open.number as u32, Some(open));
        }
        let number = self.first_segment() + segment_number(&self.offsets, position);
        let closed = self.closed.get(&number).map(|signed| Rc::clone(&signed.segment));
        (number, closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfers::transfer::Listing;

    #[test]
    fn units_are_written_together_once_there_are_256_kib_of_them_or_a_parent_ends() {
        let came = (Date::from_unix(1000), true);
        let listing = Listing::from(0, 0);
        let (record, headers) = (RecordId([0; 16]), HeaderMap::new());
        let mut incoming = Incoming::new(record, StatusCode::OK, headers, came, listing);
        let mut collect = |length: usize, last| {
            let bytes = Bytes::from(vec![0; length]);
            incoming.collect((content::name(&bytes), bytes), last).len()
        };
        let most = 256 << 10;
        assert_eq!((collect(most - 1, false), collect(1, false)), (0, 2));
        assert_eq!((collect(most - 2, false), collect(1, false), collect(1, false)), (0, 0, 3));
        assert_eq!((collect(1, false), collect(1, true), collect(1, false)), (0, 2, 0));
    }
}
