//! What the node does with overheard transfers: it keeps units that it had not requested, cancels requests for
//! units that it overheard before they arrived, and requests only the missing ranges of units that it overheard
//! in part.
//!
//! *Which segments:* those addressed to other routers; the driver selects them, because it alone knows all our
//! addresses. Segments addressed to us arrive on their own connections: if they were overheard as well, they would
//! cancel requests that are being answered. Traffic to and from our peers is the most useful: a next hop sends our
//! neighbours units that we may request later, and receives units that it will send us.
//! *Source:* Ditto §4.2, §4.3; §8 for cancelling requests.
//!
//! *Who calls it:* the node, which polls what the listener found and hands it to the owners of the units.

use super::{Options, Output, Overhear, Overhearing, SEGMENTS_AT_ONCE};
use crate::chunks::{Chunks, Flight, InFlight, Part};
use crate::events::{Event, Events};
use crate::heard::Heard;
use crate::input::{Config, FetchId, Listening, Overheard};
use crate::timer::{self, Timer};
use bytes::Bytes;
use content::Segment;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;
use store::Provenance;
use wire::peer::{ChunkHead, Request, Want};
use wire::{ChunkId, Instant, NodeId};

/// Unrequested units take at most one part in this many of the memory for units that wait for the disk, so that
/// a flood of them does not delay other units.
const WAITING_PART: u64 = 2;
/// Unrequested units are written in groups of this many bytes, so that units of one object are stored together …
const GROUP_BYTES: u64 = 256 * 1024;
/// … or after this time, if the group is smaller.
const GROUP_AFTER: Duration = Duration::from_secs(1);
/// Bytes on the air that each requested range costs beside its content: a chunk head, and two numbers in a `Want`.
/// Overheard bytes are used if they save more.
const RANGE_COST: u64 = ChunkHead::LENGTH as u64 + 6;
/// A shorter unrequested unit is not kept: its index entry is larger than its content, so a neighbour that sent
/// many of them would fill memory and disk with few bytes.
const LENGTH_MIN: usize = 256;
/// For this long after an unrequested unit was overheard, the units of a new object are likely to be stored already, so
/// a peer should not send units before they are requested.
const OVERHEARD_RECENTLY: Duration = Duration::from_secs(60);

/// The delay before the first unit of an object is requested, if parts of the object were overheard after a missed
/// head. The first segment of a manifest usually lists one unit; only the second tells which units follow it. A peer
/// that has both segments sends both at once; a peer that is still cutting the object sends the second soon.
const ORDER_AFTER: Duration = Duration::from_millis(50);

/// For each request that we sent to a peer, the units that the peer need not send any more.
pub type TakenBack = BTreeMap<(NodeId, Request), Vec<ChunkId>>;

/// The node's chunks, and the room that it has for more.
pub struct Here<'a> {
    pub chunks: &'a mut Chunks,
    pub in_flight: &'a mut InFlight,
    /// The most bytes of units that may wait in memory for the disk; zero if there is no disk.
    pub pinned_max: u64,
    /// Events for observers.
    pub events: &'a mut Events,
}

/// Connects the overhearing engine with the node; see the module.
pub struct Listener {
    engine: Overhear,
    options: Options,
    /// Unrequested units that are to be written together.
    group: Vec<(ChunkId, Bytes)>,
    group_bytes: u64,
    /// When the group is written even if it is small.
    write_at: Option<Instant>,
    /// The most bytes of unrequested units that wait for the disk.
    waiting_max: u64,
    /// Until then, units of a new object are likely to be stored already.
    hope_until: Option<Instant>,
    /// Transfers that request no unit before their second segment arrives, or until this time.
    awaiting: BTreeMap<FetchId, Instant>,
    taken_back: TakenBack,
    values: VecDeque<Heard>,
    report: Overhearing,
}

impl Listener {
    /// A listener that has heard nothing yet; `None` if the configuration has no overhearing.
    pub fn new(config: &Config) -> Option<Self> {
        let Listening { memory_bytes, options } = config.mesh.as_ref()?.overhear?;
        let seed = blake3::derive_key("hearsay 2026-11 tables of overhearing", &config.seed);
        Some(Self {
            engine: Overhear::with_options(memory_bytes, &seed, options),
            options,
            group: Vec::new(),
            group_bytes: 0,
            write_at: None,
            waiting_max: config.memory_bytes / 4 / WAITING_PART,
            hope_until: None,
            awaiting: BTreeMap::new(),
            taken_back: TakenBack::new(),
            values: VecDeque::new(),
            report: Overhearing::default(),
        })
    }

    /// Takes a few overheard segments that are addressed to others. Poll the listener before the next call.
    pub fn handle_segments(&mut self, now: Instant, segments: &[Overheard]) {
        let heard: SmallVec<[_; SEGMENTS_AT_ONCE]> =
            segments.iter().map(Overheard::as_heard).collect();
        self.engine.handle_segments(now, &heard);
    }

    /// Takes a segment of an object's manifest. It names the object's units in order, so that overheard bytes can
    /// be assigned to units by their position, even if the heads of the units were missed.
    pub fn handle_listed(&mut self, now: Instant, before: Option<&Segment>, segment: &Segment) {
        let last = before.and_then(|before| before.entries.last());
        let units = last.into_iter().chain(&segment.entries);
        let units: Vec<_> = units.map(|entry| (entry.id, entry.length)).collect();
        self.engine.list(now, &units);
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            self.engine.handle_timeout(now);
        }
        if self.write_at.is_some_and(|at| at <= now) {
            let group = self.flush();
            self.values.push_back(Heard::Append(group));
        }
        let values = &mut self.values;
        self.awaiting.retain(|id, at| {
            let waits = now < *at;
            values.extend((!waits).then_some(Heard::Ready(*id)));
            waits
        });
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and for which timer.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        timer::earliest([
            (Timer::OverheardFlow, self.engine.poll_timeout()),
            (Timer::OverheardWrite, self.write_at),
            (Timer::OverheardWait, self.awaiting.values().copied().min()),
        ])
    }

    /// Returns one overheard unit, and stores unrequested ones. Call it until it returns `None`.
    pub fn poll(&mut self, now: Instant, here: &mut Here<'_>) -> Option<Heard> {
        loop {
            if let Some(value) = self.values.pop_front() {
                return Some(value);
            }
            match self.engine.poll_output()? {
                // The first bytes of a unit; if it is stored, the engine need not collect the others.
                Output::Begun { name, total } if here.chunks.holds(&name) => {
                    self.engine.cancel(now, name, total);
                }
                Output::Begun { .. } => {}
                // Cancelling is off, so the peer will send the unit. The engine forgets it: should the peer fail, the
                // unit may be overheard again.
                Output::Chunk { name, .. } if self.is_left_to_come(here.in_flight, &name) => {
                    self.engine.lost(now, name);
                }
                Output::Chunk { name, bytes } => match here.in_flight.remove(&name) {
                    Some(flight) => {
                        let fetch = Some(flight.fetch);
                        here.events.emit(|| Event::Overheard { chunk: name, fetch });
                        self.heard_first(name, flight, bytes);
                    }
                    None => self.heard_unsolicited(now, here, name, bytes),
                },
            }
        }
    }

    /// Whether a unit has been requested and the options forbid to cancel requests.
    fn is_left_to_come(&self, in_flight: &InFlight, name: &ChunkId) -> bool {
        !self.options.cancels && in_flight.contains(name)
    }

    /// A requested unit was overheard before it arrived: the peer need not send it.
    fn heard_first(&mut self, name: ChunkId, mut flight: Flight, bytes: Bytes) {
        let length = bytes.len() as u64;
        self.report.cancelled_units += 1;
        self.report.cancelled_bytes += length;
        let readers = std::mem::take(&mut flight.counted);
        self.values.push_back(Heard::NotFromPeer { readers, bytes: length, mended: 0 });
        self.values.push_back(Heard::Unit(name, flight, bytes));
    }

    /// Stores an unrequested unit on probation, if it is not stored yet and there is room.
    fn heard_unsolicited(
        &mut self,
        now: Instant,
        here: &mut Here<'_>,
        name: ChunkId,
        bytes: Bytes,
    ) {
        if here.chunks.holds(&name) {
            return;
        }
        let length = bytes.len() as u64;
        let fits = here.chunks.pinned_bytes() + length <= here.pinned_max
            && self.report.waiting_bytes + length <= self.waiting_max;
        if !fits || bytes.len() < LENGTH_MIN {
            self.report.dropped_units += 1;
            self.report.dropped_bytes += length;
            return self.engine.lost(now, name);
        }
        here.events.emit(|| Event::Overheard { chunk: name, fetch: None });
        here.chunks.pin(name, bytes.clone(), Provenance::Overheard);
        self.collect(now, name, bytes);
    }

    /// Adds an unrequested unit to the group; writes the group when it is large enough.
    fn collect(&mut self, now: Instant, name: ChunkId, bytes: Bytes) {
        let length = bytes.len() as u64;
        self.report.units += 1;
        self.report.bytes += length;
        self.report.waiting_bytes += length;
        self.hope_until = Some(now + OVERHEARD_RECENTLY);
        self.write_at.get_or_insert(now + GROUP_AFTER);
        self.group_bytes += length;
        self.group.push((name, bytes));
        if self.group_bytes >= GROUP_BYTES.min(self.waiting_max / 2) {
            let group = self.flush();
            self.values.push_back(Heard::Append(group));
        }
    }

    fn flush(&mut self) -> Vec<(ChunkId, Bytes)> {
        (self.group_bytes, self.write_at) = (0, None);
        std::mem::take(&mut self.group)
    }

    /// Notes that this many bytes of unrequested units do not wait for the disk any more.
    pub fn written(&mut self, bytes: u64) {
        self.report.waiting_bytes -= bytes.min(self.report.waiting_bytes);
    }

    /// Notes that the peer need not send this unit in answer to this request any more.
    pub fn take_back(&mut self, asked: (NodeId, Request), name: ChunkId) {
        self.taken_back.entry(asked).or_default().push(name);
    }

    /// Returns and forgets the units noted by [`take_back`](Self::take_back).
    pub fn taken_back(&mut self) -> TakenBack {
        std::mem::take(&mut self.taken_back)
    }

    /// Counts a unit that is complete, if a part of it was overheard before the request.
    pub fn repaired(&mut self, flight: &Flight) {
        let bytes = flight.heard_bytes();
        if bytes == 0 {
            return;
        }
        self.report.repaired_units += 1;
        self.report.repaired_bytes += bytes;
        let readers = flight.counted.clone();
        self.values.push_back(Heard::NotFromPeer { readers, bytes, mended: bytes });
    }

    /// Handles a unit that does not match its name after its overheard part and a peer's part were joined. The
    /// overheard part may be false and the peer honest: so the peer is asked for the overheard bytes too, and is then
    /// responsible for the whole unit.
    pub fn misheard(
        &mut self,
        now: Instant,
        in_flight: &mut InFlight,
        name: ChunkId,
        mut flight: Flight,
    ) {
        let (id, length) = (flight.fetch, flight.unit.length);
        self.report.false_units += 1;
        flight.mistrust_heard();
        self.want(now, name, length);
        in_flight.resume(name, flight);
        self.values.extend(in_flight.want_of(&name).map(|want| Heard::Want(id, want)));
    }

    /// Whether a transfer must not request units yet.
    pub fn is_awaiting(&self, id: FetchId) -> bool {
        self.awaiting.contains_key(&id)
    }

    /// Takes note of a segment of a transfer's manifest. True if the transfer should request no unit for the moment,
    /// because overheard bytes after a missed head may belong to the object.
    pub fn awaits_order(&mut self, now: Instant, id: FetchId, may_wait: bool) -> bool {
        self.awaiting.remove(&id);
        let is_of_use = self.options.goes_by_places() && self.engine.counters().headless_bytes > 0;
        let waits = may_wait && is_of_use;
        if waits {
            self.awaiting.insert(id, now + ORDER_AFTER);
        }
        waits
    }

    /// Whether units that a peer would send before they are requested are likely to be stored already.
    pub fn is_hopeful(&self, now: Instant) -> bool {
        self.hope_until.is_some_and(|until| now < until)
    }

    /// Notes that no unit of an object was stored, though we told the peer to send no unit before it is requested: this
    /// cost a round trip of one hop. The next object is requested in the usual way.
    pub fn hoped_in_vain(&mut self) {
        self.hope_until = None;
    }

    /// Sets the memory of overheard parts that wait to be joined to the parts that peers send.
    pub fn set_aside(&mut self, now: Instant, bytes: u64) {
        self.report.aside_bytes = bytes;
        self.engine.set_aside(now, usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// The missing ranges of a unit, if the overheard part saves more than the ranges cost and there is room for it.
    fn worth_missing(&self, name: &ChunkId, length: u32) -> Option<Vec<Range<u32>>> {
        if !self.engine.may_give(length as usize) {
            return None;
        }
        self.engine.missing(*name, length).filter(|ranges| is_worth(ranges, length))
    }

    /// The bytes of a unit that remain to be requested after [`expect`](Self::expect).
    pub fn lacks(&self, name: &ChunkId, length: u32) -> u32 {
        let missing = self.worth_missing(name, length);
        missing.map_or(length, |ranges| ranges.iter().map(|range| range.end - range.start).sum())
    }

    /// Returns the overheard part of a unit that is about to be requested, if it saves more than the ranges in the
    /// want cost and there is room for it. The engine still listens for the unit: another router may send all of it
    /// before the peer does.
    pub fn expect(&mut self, now: Instant, name: ChunkId, length: u32) -> Vec<Part> {
        let missing = self.worth_missing(&name, length);
        let heard = missing.and_then(|_| self.engine.take(now, name, length));
        self.want(now, name, length);
        heard.map_or_else(Vec::new, |heard| heard.parts)
    }

    /// Tells the engine that a unit has been requested.
    pub fn want(&mut self, now: Instant, name: ChunkId, length: u32) {
        self.engine.want(now, name, length);
    }

    /// Tells the engine that units are no longer requested, and are not stored.
    pub fn unwant(&mut self, now: Instant, wants: &[Want]) {
        wants.iter().for_each(|want| self.engine.unwant(now, want.name, want.length));
    }

    /// Tells the engine that a unit is stored.
    pub fn cancel(&mut self, now: Instant, name: ChunkId, length: u32) {
        self.engine.cancel(now, name, length);
    }

    /// Counters of overhearing.
    pub fn report(&self) -> Overhearing {
        let heard = *self.engine.counters();
        Overhearing { unused_bytes: heard.unused_bytes(), heard, ..self.report }
    }
}

/// Whether it costs less to request the missing ranges of a unit than the whole unit.
fn is_worth(missing: &[Range<u32>], length: u32) -> bool {
    let bytes: u32 = missing.iter().map(|range| range.end - range.start).sum();
    u64::from(length - bytes.min(length)) > RANGE_COST * missing.len() as u64
}
