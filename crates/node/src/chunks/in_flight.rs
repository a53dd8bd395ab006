//! Units in flight: requested from peers, but not complete yet; and the exchanges that wait for them.
//!
//! *Bounds:* each reader of a transfer requests a window of units ahead, and each request of a peer has
//! at most [`WANTS_MAX`](crate::exchanges::peer_reader::WANTS_MAX) units in flight.

use super::unsolicited::Unsolicited;
use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use content::Entry;
use std::collections::BTreeMap;
use std::ops::Range;
use wire::ChunkId;
use wire::peer::Want;

/// A part of a unit: its offset in the unit, and its bytes.
pub type Part = (u32, Bytes);

/// The memory that a part needs beside its bytes.
const PART_COST: u64 = 64;

/// A unit that was requested from a peer.
#[derive(Debug)]
pub struct Flight {
    /// The transfer for which it was requested.
    pub fetch: FetchId,
    /// The unit's properties, from the manifest or from a peer's request.
    pub unit: Unit,
    /// The exchanges to wake when the unit is complete.
    pub waiters: Vec<ExchangeId>,
    /// The readers, of any transfer, that count the unit as served by a peer.
    pub counted: Vec<ExchangeId>,
    /// Parts that the peer has sent.
    parts: Vec<Part>,
    /// Parts that were overheard before the request. They are unverified, and no peer is blamed if they
    /// are wrong.
    heard: Vec<Part>,
    /// The unit's place in the order of requests.
    order: u64,
}

/// All units in flight.
#[derive(Debug, Default)]
pub struct InFlight {
    /// Units that arrived before they were requested.
    pub unsolicited: Unsolicited,
    units: Map<ChunkId, Flight>,
    /// The units of each transfer, in the order of their requests.
    of: Map<FetchId, BTreeMap<u64, ChunkId>>,
    begun: u64,
    /// The memory of overheard parts, in bytes.
    heard_cost: u64,
}

impl InFlight {
    /// No units yet, and this much memory for units that arrive before they are requested (see
    /// `unsolicited.rs`).
    pub fn new(unsolicited_bytes_max: u64) -> Self {
        Self { unsolicited: Unsolicited::new(unsolicited_bytes_max), ..Self::default() }
    }

    /// A unit is requested.
    pub fn begin(&mut self, name: ChunkId, fetch: FetchId, unit: Unit) {
        let (waiters, counted) = (Vec::new(), Vec::new());
        let (parts, heard) = (Vec::new(), Vec::new());
        self.resume(name, Flight { fetch, unit, waiters, counted, parts, heard, order: 0 });
    }

    /// A unit is still in flight, or again.
    pub fn resume(&mut self, name: ChunkId, flight: Flight) {
        self.remove(&name);
        self.begun += 1;
        let order = self.begun;
        self.of.entry(flight.fetch).or_default().insert(order, name);
        self.heard_cost += flight.heard_cost();
        self.units.insert(name, Flight { order, ..flight });
    }

    /// Parts of a unit were overheard: they are not requested from a peer.
    pub fn overheard(&mut self, name: &ChunkId, parts: Vec<Part>) {
        if let Some(flight) = self.units.get_mut(name) {
            self.heard_cost -= flight.heard_cost();
            flight.heard = parts;
            self.heard_cost += flight.heard_cost();
        }
    }

    /// The request for a unit in flight: the whole unit, or its missing bytes.
    pub fn want_of(&self, name: &ChunkId) -> Option<Want> {
        Some(self.units.get(name)?.want(*name))
    }

    /// Wakes an exchange when a unit is complete; false if the unit is not in flight.
    pub fn wait_for(&mut self, name: &ChunkId, waiter: ExchangeId) -> bool {
        let Some(flight) = self.units.get_mut(name) else { return false };
        if !flight.waiters.contains(&waiter) {
            flight.waiters.push(waiter);
        }
        true
    }

    /// A unit in flight.
    pub fn get_mut(&mut self, name: &ChunkId) -> Option<&mut Flight> {
        self.units.get_mut(name)
    }

    /// Whether a unit is in flight.
    pub fn contains(&self, name: &ChunkId) -> bool {
        self.units.contains_key(name)
    }

    /// Adds bytes of a unit. Returns and removes the unit once it is complete; its hash is not checked yet.
    pub fn arrive(
        &mut self,
        name: &ChunkId,
        total: u32,
        offset: u32,
        bytes: Bytes,
    ) -> Option<(Flight, Bytes)> {
        if offset == 0 && bytes.len() as u32 == total {
            let mut flight = self.remove(name)?;
            flight.heard.clear();
            return Some((flight, bytes));
        }
        let flight = self.units.get_mut(name)?;
        if total != flight.unit.length {
            return None;
        }
        flight.add(offset, bytes);
        let whole = flight.join(total)?;
        self.remove(name).map(|flight| (flight, whole))
    }

    /// A reader counts a unit as served by a peer.
    pub fn count_for(&mut self, name: &ChunkId, reader: ExchangeId) {
        if let Some(flight) = self.units.get_mut(name) {
            flight.counted.push(reader);
        }
    }

    /// A unit is no longer in flight.
    pub fn remove(&mut self, name: &ChunkId) -> Option<Flight> {
        let flight = self.units.remove(name)?;
        self.heard_cost -= flight.heard_cost();
        if let Some(units) = self.of.get_mut(&flight.fetch) {
            units.remove(&flight.order);
            if units.is_empty() {
                self.of.remove(&flight.fetch);
            }
        }
        Some(flight)
    }

    /// A transfer's units are no longer in flight. Returns the exchanges that waited for them.
    pub fn remove_all(&mut self, fetch: FetchId) -> Vec<ExchangeId> {
        let units = self.of.remove(&fetch).unwrap_or_default();
        let in_flight = units.into_values().filter_map(|name| self.units.remove(&name));
        let in_flight: Vec<Flight> = in_flight.collect();
        self.heard_cost -= in_flight.iter().map(Flight::heard_cost).sum::<u64>();
        in_flight.into_iter().flat_map(|flight| flight.waiters).collect()
    }

    /// The requests of a transfer, in their order, each for the unit's missing bytes.
    pub fn wants_of(&self, fetch: FetchId) -> Vec<Want> {
        self.names_of(fetch).filter_map(|name| self.want_of(name)).collect()
    }

    /// The names of a transfer's units in flight, in the order of their requests.
    pub fn names_of(&self, fetch: FetchId) -> impl Iterator<Item = &ChunkId> {
        self.of.get(&fetch).into_iter().flat_map(BTreeMap::values)
    }

    /// Drops the parts that a transfer's peer has sent: they are not joined with another peer's.
    pub fn drop_parts(&mut self, fetch: FetchId) {
        for name in self.of.get(&fetch).into_iter().flat_map(BTreeMap::values) {
            if let Some(flight) = self.units.get_mut(name) {
                flight.parts.clear();
            }
        }
    }

    /// Whether a transfer has units in flight.
    pub fn has(&self, fetch: FetchId) -> bool {
        self.of.contains_key(&fetch)
    }

    /// An exchange no longer waits for any unit, and counts none.
    pub fn leave(&mut self, waiter: ExchangeId) {
        for flight in self.units.values_mut() {
            flight.waiters.retain(|id| *id != waiter);
            flight.counted.retain(|id| *id != waiter);
        }
    }

    /// The memory of overheard parts that wait for the rest of their units, in bytes.
    pub fn heard_cost(&self) -> u64 {
        self.heard_cost
    }

    /// How many units are in flight.
    pub fn len(&self) -> usize {
        self.units.len()
    }
}

/// A unit as a manifest lists it.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The unit's length in bytes.
    pub length: u32,
    /// Whether a parent chunk ends with this unit.
    pub parent_end: bool,
    /// The offset of the unit's end in the object; zero if it is unknown.
    pub end: u64,
}

impl Unit {
    /// The unit of a manifest's entry, which ends at this offset in the object.
    pub fn listed(entry: &Entry, end: u64) -> Self {
        Self { length: entry.length, parent_end: entry.parent_end, end }
    }

    /// The unit of a peer's request, which does not give its place in the object.
    pub fn wanted(want: &Want) -> Self {
        Self { length: want.length, parent_end: false, end: 0 }
    }

    /// A request for the whole unit.
    pub fn want(self, name: ChunkId) -> Want {
        Want { name, length: self.length, missing: Vec::new() }
    }
}

impl Flight {
    /// Adds a part, unless it overlaps another. Requested parts never overlap, and the whole unit is
    /// checked against its name in any case.
    fn add(&mut self, offset: u32, bytes: Bytes) {
        let end = offset + bytes.len() as u32;
        let overlaps = |(at, part): &(u32, Bytes)| *at < end && offset < at + part.len() as u32;
        if self.parts.len() < Want::RANGES_MAX && !self.parts.iter().any(overlaps) {
            self.parts.push((offset, bytes));
            self.parts.sort_unstable_by_key(|(at, _)| *at);
        }
    }

    /// The whole unit, if no part is missing.
    fn join(&mut self, total: u32) -> Option<Bytes> {
        if !self.missing(total).is_empty() {
            return None;
        }
        let mut whole = vec![0; total as usize];
        // Copied in this order, a peer's parts overwrite overheard ones.
        for (at, part) in self.heard.iter().chain(&self.parts) {
            let place = whole.get_mut(*at as usize..)?.get_mut(..part.len())?;
            place.copy_from_slice(part);
        }
        Some(whole.into())
    }

    fn missing(&self, total: u32) -> Vec<Range<u32>> {
        let end = |(at, part): &Part| *at + part.len() as u32;
        let mut there: Vec<_> =
            self.parts.iter().chain(&self.heard).map(|part| (part.0, end(part))).collect();
        there.sort_unstable();
        let (mut missing, mut at) = (Vec::new(), 0);
        for (from, to) in there {
            if from > at {
                missing.push(at..from);
            }
            at = at.max(to);
        }
        if at < total {
            missing.push(at..total);
        }
        missing
    }

    fn want(&self, name: ChunkId) -> Want {
        let mut want = self.unit.want(name);
        let missing = self.missing(self.unit.length);
        // The whole unit is requested if the missing ranges are too many for one request, or for the
        // parts that can be kept.
        if self.has_parts() && self.parts.len() + missing.len() <= Want::RANGES_MAX {
            want.missing = missing;
        }
        want
    }

    fn has_parts(&self) -> bool {
        !self.parts.is_empty() || !self.heard.is_empty()
    }

    /// Whether a peer has sent a part of the unit.
    pub fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    /// How many bytes of the unit were overheard, which a peer need not send.
    pub fn heard_bytes(&self) -> u64 {
        self.heard.iter().map(|(_, part)| part.len() as u64).sum()
    }

    fn heard_cost(&self) -> u64 {
        self.heard_bytes() + PART_COST * self.heard.len() as u64
    }

    /// Drops the overheard parts, since one of them is wrong; the peer's parts remain.
    pub fn mistrust_heard(&mut self) {
        self.heard.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: ChunkId = ChunkId([7; 32]);

    /// The peer sends all requested bytes correctly.
    fn answer(in_flight: &mut InFlight, want: &Want) -> Option<(Flight, Bytes)> {
        let all = std::iter::once(0..want.length).filter(|_| want.missing.is_empty());
        let ranges: Vec<_> = all.chain(want.missing.clone()).collect();
        let came = ranges.into_iter().map(|range| {
            let bytes = vec![1; range.len()].into();
            in_flight.arrive(&want.name, want.length, range.start, bytes)
        });
        came.last().flatten()
    }

    #[test]
    fn a_unit_that_was_heard_falsely_in_any_number_of_pieces_comes_whole_in_the_end() {
        for pieces in 1..=40 {
            let mut in_flight = InFlight::default();
            let unit = Unit { length: pieces * 64, parent_end: false, end: 0 };
            in_flight.begin(NAME, FetchId(1), unit);
            let lies = (0..pieces).map(|at| (at * 64 + 1, vec![9; 63].into()));
            in_flight.overheard(&NAME, lies.collect());
            let want = in_flight.want_of(&NAME).expect("it is on its way");
            let Some((mut flight, whole)) = answer(&mut in_flight, &want) else {
                panic!("{pieces} pieces: what was asked for came");
            };
            if want.missing.is_empty() {
                continue;
            }
            assert!(whole.contains(&9), "{pieces} pieces: what was heard is in it");
            flight.mistrust_heard();
            in_flight.resume(NAME, flight);
            let want = in_flight.want_of(&NAME).expect("it is on its way");
            let whole = answer(&mut in_flight, &want).map(|(_, whole)| whole);
            assert!(whole.is_some_and(|it| it.iter().all(|byte| *byte == 1)), "{pieces} pieces");
        }
    }

    /// A unit of which a peer has sent every other byte, this many, from the second byte on.
    fn in_parts(parts: u32) -> InFlight {
        let mut in_flight = InFlight::default();
        in_flight.begin(NAME, FetchId(1), Unit { length: 100, parent_end: false, end: 0 });
        for part in 0..parts {
            let arrived = in_flight.arrive(&NAME, 100, 2 * part + 1, vec![1].into());
            assert!(arrived.is_none());
        }
        in_flight
    }

    #[test]
    fn missing_bytes_are_wanted_only_if_all_parts_can_be_kept() {
        // One range is missing before each part, and one behind the last: 15 and 16 are 31 of 32.
        let want = in_parts(15).want_of(&NAME).expect("it is in flight");
        assert_eq!(want.missing.len(), 16);
        assert_eq!((want.missing[1].clone(), want.missing[15].clone()), (2..3, 30..100));
        // What touches the last part is a part of its own: 16 and 16.
        let mut in_flight = in_parts(15);
        assert!(in_flight.arrive(&NAME, 100, 30, vec![1].into()).is_none());
        assert_eq!(in_flight.want_of(&NAME).expect("it is in flight").missing.len(), 16);
        assert_eq!(in_parts(16).want_of(&NAME).expect("it is in flight").missing, []);
    }

    #[test]
    fn a_peer_sends_a_unit_in_at_most_32_parts() {
        let mut in_flight = in_parts(33);
        assert_eq!(in_flight.get_mut(&NAME).map(|flight| flight.parts.len()), Some(32));
        // Parts that touch do not overlap, and one that does is not kept.
        let mut in_flight = in_parts(2);
        for (offset, parts) in [(2, 3), (3, 3), (0, 4)] {
            assert!(in_flight.arrive(&NAME, 100, offset, vec![1].into()).is_none());
            let kept = in_flight.get_mut(&NAME).map(|flight| flight.parts.len());
            assert_eq!(kept, Some(parts), "at {offset}");
        }
    }
}
