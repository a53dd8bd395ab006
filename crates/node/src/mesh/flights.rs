//! Units that are on their way from peers, and who waits for them.
//!
//! Bounded by what is asked for: each reader of a transfer asks for a window of units ahead, and each
//! request of a peer has at most [`WANTS_MAX`](crate::supplying::WANTS_MAX) under way.

use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use content::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use wire::ChunkId;
use wire::peer::Want;

/// A unit that was asked of a peer.
#[derive(Debug)]
pub struct Flight {
    /// For which transfer.
    pub fetch: FetchId,
    /// What the manifest, or who wants it, says of it.
    pub unit: Unit,
    /// Who wants to know when it is here.
    pub waiters: Vec<ExchangeId>,
    /// Parts that have come.
    parts: Vec<(u32, Bytes)>,
    /// In which order it was asked for.
    order: u64,
}

/// Units that came before anybody wanted them, at most: the first of small objects may overtake their
/// manifest, which comes by another connection. The oldest leaves first.
const EARLY_MAX: usize = 64;

/// All units on their way.
#[derive(Debug, Default)]
pub struct Flights {
    early: VecDeque<(ChunkId, Bytes)>,
    units: Map<ChunkId, Flight>,
    /// Those of each transfer, in the order they were asked for.
    of: Map<FetchId, BTreeMap<u64, ChunkId>>,
    begun: u64,
}

impl Flights {
    /// Notes that a unit is asked for.
    pub fn begin(&mut self, name: ChunkId, fetch: FetchId, unit: Unit) {
        self.remove(&name);
        self.begun += 1;
        let order = self.begun;
        let flight = Flight { fetch, unit, waiters: Vec::new(), parts: Vec::new(), order };
        self.units.insert(name, flight);
        self.of.entry(fetch).or_default().insert(order, name);
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
        let flight = self.units.get_mut(name)?;
        if offset == 0 && bytes.len() as u32 == total {
            return self.remove(name).map(|flight| (flight, bytes));
        }
        if total != flight.unit.length {
            return None;
        }
        flight.add(offset, bytes);
        let whole = flight.join(total)?;
        self.remove(name).map(|flight| (flight, whole))
    }

    /// Keeps a unit that came before anybody wanted it.
    pub fn keep_early(&mut self, name: ChunkId, bytes: Bytes) {
        if self.early.len() >= EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back((name, bytes));
    }

    /// A unit that came before it was wanted.
    pub fn take_early(&mut self, name: &ChunkId) -> Option<Bytes> {
        let at = self.early.iter().position(|(early, _)| early == name)?;
        self.early.remove(at).map(|(_, bytes)| bytes)
    }

    /// A unit is not on its way any more.
    pub fn remove(&mut self, name: &ChunkId) -> Option<Flight> {
        let flight = self.units.remove(name)?;
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
        let flights = units.into_values().filter_map(|name| self.units.remove(&name));
        flights.flat_map(|flight| flight.waiters).collect()
    }

    /// What a transfer has asked for, in that order, with what is missing of each.
    pub fn wants_of(&self, fetch: FetchId) -> Vec<Want> {
        let names = self.of.get(&fetch).into_iter().flat_map(BTreeMap::values);
        names.filter_map(|name| Some(self.units.get(name)?.want(*name))).collect()
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
        self.units.values_mut().for_each(|flight| flight.waiters.retain(|id| *id != waiter));
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
        if self.parts.len() < Want::RANGES_MAX - 1 && !self.parts.iter().any(overlaps) {
            self.parts.push((offset, bytes));
            self.parts.sort_unstable_by_key(|(at, _)| *at);
        }
    }

    /// The whole, if all parts are there.
    fn join(&mut self, total: u32) -> Option<Bytes> {
        if self.missing(total).is_empty() {
            let whole: Vec<u8> = self.parts.iter().flat_map(|(_, part)| part.to_vec()).collect();
            return Some(whole.into());
        }
        None
    }

    fn missing(&self, total: u32) -> Vec<Range<u32>> {
        let (mut missing, mut at) = (Vec::new(), 0);
        for (offset, part) in &self.parts {
            if *offset > at {
                missing.push(at..*offset);
            }
            at = offset + part.len() as u32;
        }
        if at < total {
            missing.push(at..total);
        }
        missing
    }

    fn want(&self, name: ChunkId) -> Want {
        let mut want = self.unit.want(name);
        if !self.parts.is_empty() {
            want.missing = self.missing(self.unit.length);
        }
        want
    }
}
