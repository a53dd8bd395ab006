//! Units that are on their way from peers, and who waits for them.
//!
//! Bounded by what is asked for: each reader of a transfer asks for a window of units ahead, and each
//! request of a peer has at most [`WANTS_MAX`](crate::exchanges::peer_reader::WANTS_MAX) under way.

use super::unsolicited::Early;
use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use content::Entry;
use std::collections::BTreeMap;
use std::ops::Range;
use wire::ChunkId;
use wire::peer::Want;

/// Bytes of a unit, and where in it they begin.
pub type Part = (u32, Bytes);

/// A part takes this many bytes beside its own.
const PART_COST: u64 = 64;

/// A unit that was asked of a peer.
#[derive(Debug)]
pub struct Flight {
    /// For which transfer.
    pub fetch: FetchId,
    /// What the manifest, or who wants it, says of it.
    pub unit: Unit,
    /// Who wants to know when it is here.
    pub waiters: Vec<ExchangeId>,
    /// Which readers count it as a peer's, of whichever transfer.
    pub counted: Vec<ExchangeId>,
    /// Parts that have come from the peer.
    parts: Vec<Part>,
    /// Parts that were overheard before it was asked for. Nobody vouches for them, and no peer is to blame
    /// for them.
    heard: Vec<Part>,
    /// In which order it was asked for.
    order: u64,
}

/// All units on their way.
#[derive(Debug, Default)]
pub struct InFlight {
    /// Units that came before anybody wanted them.
    pub early: Early,
    units: Map<ChunkId, Flight>,
    /// Those of each transfer, in the order they were asked for.
    of: Map<FetchId, BTreeMap<u64, ChunkId>>,
    begun: u64,
    /// What overheard parts take, in bytes.
    heard_cost: u64,
}

impl InFlight {
    /// None yet, and this much memory for those that come before they are wanted: the first of small objects
    /// may overtake their manifest, which comes by another connection. The oldest leaves first.
    pub fn new(early_bytes_max: u64) -> Self {
        Self { early: Early::new(early_bytes_max), ..Self::default() }
    }

    /// Notes that a unit is asked for.
    pub fn begin(&mut self, name: ChunkId, fetch: FetchId, unit: Unit) {
        let (waiters, counted) = (Vec::new(), Vec::new());
        let (parts, heard) = (Vec::new(), Vec::new());
        self.resume(name, Flight { fetch, unit, waiters, counted, parts, heard, order: 0 });
    }

    /// Notes that a unit is on its way still, or again.
    pub fn resume(&mut self, name: ChunkId, flight: Flight) {
        self.remove(&name);
        self.begun += 1;
        let order = self.begun;
        self.of.entry(flight.fetch).or_default().insert(order, name);
        self.heard_cost += flight.heard_cost();
        self.units.insert(name, Flight { order, ..flight });
    }

    /// Parts of a unit were overheard: a peer is not asked for them.
    pub fn overheard(&mut self, name: &ChunkId, parts: Vec<Part>) {
        if let Some(flight) = self.units.get_mut(name) {
            self.heard_cost -= flight.heard_cost();
            flight.heard = parts;
            self.heard_cost += flight.heard_cost();
        }
    }

    /// What is to be asked for of a unit that is on its way.
    pub fn want_of(&self, name: &ChunkId) -> Option<Want> {
        Some(self.units.get(name)?.want(*name))
    }

    /// Has somebody woken when a unit is here; false if it is not on its way.
    pub fn wait_for(&mut self, name: &ChunkId, waiter: ExchangeId) -> bool {
        let Some(flight) = self.units.get_mut(name) else { return false };
        if !flight.waiters.contains(&waiter) {
            flight.waiters.push(waiter);
        }
        true
    }

    /// A unit that is on its way.
    pub fn get_mut(&mut self, name: &ChunkId) -> Option<&mut Flight> {
        self.units.get_mut(name)
    }

    /// Whether a unit is on its way.
    pub fn contains(&self, name: &ChunkId) -> bool {
        self.units.contains_key(name)
    }

    /// Takes in bytes of a unit; gives it out once it is complete, checked or not.
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

    /// A reader counts a unit as a peer's.
    pub fn count_for(&mut self, name: &ChunkId, reader: ExchangeId) {
        if let Some(flight) = self.units.get_mut(name) {
            flight.counted.push(reader);
        }
    }

    /// A unit is not on its way any more.
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

    /// Nothing more of a transfer is on its way; answers who waited for units of it.
    pub fn remove_all(&mut self, fetch: FetchId) -> Vec<ExchangeId> {
        let units = self.of.remove(&fetch).unwrap_or_default();
        let in_flight = units.into_values().filter_map(|name| self.units.remove(&name));
        let in_flight: Vec<Flight> = in_flight.collect();
        self.heard_cost -= in_flight.iter().map(Flight::heard_cost).sum::<u64>();
        in_flight.into_iter().flat_map(|flight| flight.waiters).collect()
    }

    /// What a transfer has asked for, in that order, with what is missing of each.
    pub fn wants_of(&self, fetch: FetchId) -> Vec<Want> {
        self.names_of(fetch).filter_map(|name| self.want_of(name)).collect()
    }

    /// Names of what a transfer has asked for.
    pub fn names_of(&self, fetch: FetchId) -> impl Iterator<Item = &ChunkId> {
        self.of.get(&fetch).into_iter().flat_map(BTreeMap::values)
    }

    /// Forgets parts: what one peer sent is not joined to what another sends.
    pub fn drop_parts(&mut self, fetch: FetchId) {
        for name in self.of.get(&fetch).into_iter().flat_map(BTreeMap::values) {
            if let Some(flight) = self.units.get_mut(name) {
                flight.parts.clear();
            }
        }
    }

    /// Whether a transfer waits for units.
    pub fn has(&self, fetch: FetchId) -> bool {
        self.of.contains_key(&fetch)
    }

    /// Nobody waits in a client's or peer's name any more.
    pub fn leave(&mut self, waiter: ExchangeId) {
        for flight in self.units.values_mut() {
            flight.waiters.retain(|id| *id != waiter);
            flight.counted.retain(|id| *id != waiter);
        }
    }

    /// What overheard parts take of memory, in bytes, until they are joined to what comes.
    pub fn heard_cost(&self) -> u64 {
        self.heard_cost
    }

    /// How many units are on their way.
    pub fn len(&self) -> usize {
        self.units.len()
    }
}

/// A unit as a manifest lists it.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Its length in bytes.
    pub length: u32,
    /// Whether a parent ends with it.
    pub parent_end: bool,
    /// Where it ends in the object; zero if that is not known.
    pub end: u64,
}

impl Unit {
    /// As an entry lists it that ends there in the object.
    pub fn listed(entry: &Entry, end: u64) -> Self {
        Self { length: entry.length, parent_end: entry.parent_end, end }
    }

    /// As a peer wants it, who does not say where it stands.
    pub fn wanted(want: &Want) -> Self {
        Self { length: want.length, parent_end: false, end: 0 }
    }

    /// All of it, wanted by name.
    pub fn want(self, name: ChunkId) -> Want {
        Want { name, length: self.length, missing: Vec::new() }
    }
}

impl Flight {
    /// Keeps bytes that are not there yet. Overlaps are not merged: what was wanted never overlaps, and
    /// the whole is held against its name in any case.
    fn add(&mut self, offset: u32, bytes: Bytes) {
        let end = offset + bytes.len() as u32;
        let overlaps = |(at, part): &(u32, Bytes)| *at < end && offset < at + part.len() as u32;
        if self.parts.len() < Want::RANGES_MAX && !self.parts.iter().any(overlaps) {
            self.parts.push((offset, bytes));
            self.parts.sort_unstable_by_key(|(at, _)| *at);
        }
    }

    /// The whole, if all parts are there.
    fn join(&mut self, total: u32) -> Option<Bytes> {
        if !self.missing(total).is_empty() {
            return None;
        }
        let mut whole = vec![0; total as usize];
        // What the peer sent is right where both have the same.
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
        // All of it is asked for in the same way if it is in more pieces than a want can name, or than are
        // kept beside those that have come.
        if self.has_parts() && self.parts.len() + missing.len() <= Want::RANGES_MAX {
            want.missing = missing;
        }
        want
    }

    fn has_parts(&self) -> bool {
        !self.parts.is_empty() || !self.heard.is_empty()
    }

    /// Whether a peer has begun to send it.
    pub fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Bytes of it that were overheard, and that a peer need not send.
    pub fn heard_bytes(&self) -> u64 {
        self.heard.iter().map(|(_, part)| part.len() as u64).sum()
    }

    fn heard_cost(&self) -> u64 {
        self.heard_bytes() + PART_COST * self.heard.len() as u64
    }

    /// What was overheard of it is false: only what the peer sent counts.
    pub fn mistrust_heard(&mut self) {
        self.heard.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: ChunkId = ChunkId([7; 32]);

    /// Bytes that were asked for come, and are what the peer has.
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
}
