//! What was heard of others' transfers, and what becomes of it: units that nobody asked for are kept, units
//! that are on their way are here sooner, and of what was half heard only the rest is asked for.
//!
//! *Which segments:* those for others, as the driver says, who alone knows all our addresses. What goes to
//! us comes by its own connection, and heard a second time it would take back wants that are being met.
//! What our peers say to others, and others to them, is the best there is: a next hop serves our neighbours
//! what we may want, and is served what it will send us.
//! *Source:* Ditto §4.2, §4.3; §8 for taking back what is on its way.
//!
//! *Who calls it:* the node. What it asks is answered at once; what the listener has found is polled, and handed
//! on to whom it concerns.

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

/// Of the memory for units that wait for the disk, one part in so many is for those that nobody asked for:
/// whoever floods us with such holds nobody else back.
const WAITING_PART: u64 = 2;
/// They are written in groups of so many bytes, so that what is read together lies together …
const GROUP_BYTES: u64 = 256 * 1024;
/// … or after so long.
const GROUP_AFTER: Duration = Duration::from_secs(1);
/// A range of a unit that is asked for costs so much on the air beside its bytes: the head of a frame, and
/// two numbers in a want. What was heard is used if it saves more.
const RANGE_COST: u64 = ChunkHead::LENGTH as u64 + 6;
/// A shorter unit that nobody asked for is not kept: its place costs more than it, and whoever sent many of them
/// would take far more room, in memory and on disk, than they have bytes.
const LENGTH_MIN: usize = 256;
/// After a unit was overheard that nobody here had asked for, objects whose units are here may be asked for
/// so long: units that come unasked are likely to be a waste.
const OVERHEARD_RECENTLY: Duration = Duration::from_secs(60);

/// The first segment of a manifest lists one unit as a rule, and only the second tells which follows it: who
/// has both says both at once, and who still cuts the object says the second soon. For what is behind a
/// missed head the first unit is asked for so much later.
const ORDER_AFTER: Duration = Duration::from_millis(50);

/// Requests of ours, and names of units that peers need not send for them any more.
pub type TakenBack = BTreeMap<(NodeId, Request), Vec<ChunkId>>;

/// What a node holds, and what it may take in.
pub struct Here<'a> {
    pub chunks: &'a mut Chunks,
    pub in_flight: &'a mut InFlight,
    /// Units may wait in memory for the disk up to this many bytes; none, where there is no disk.
    pub pinned_max: u64,
    /// What is taken in, for people who watch it.
    pub events: &'a mut Events,
}

/// See the module.
pub struct Listener {
    engine: Overhear,
    options: Options,
    /// Units that nobody asked for, to be written side by side.
    group: Vec<(ChunkId, Bytes)>,
    group_bytes: u64,
    /// When they are written, however few they are.
    write_at: Option<Instant>,
    /// Bytes of units that nobody asked for and the disk does not have yet, at most.
    waiting_max: u64,
    /// Until when it counts as likely that much of an object is here.
    hope_until: Option<Instant>,
    /// Transfers whose readers want nothing before the second segment or this time has come.
    awaiting: BTreeMap<FetchId, Instant>,
    taken_back: TakenBack,
    values: VecDeque<Heard>,
    report: Overhearing,
}

impl Listener {
    /// One that has heard nothing yet; `None` if none is wished for.
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

    /// Segments were heard that are for others: a few, to be polled for before the next.
    pub fn handle_segments(&mut self, now: Instant, segments: &[Overheard]) {
        let heard: SmallVec<[_; SEGMENTS_AT_ONCE]> =
            segments.iter().map(Overheard::as_heard).collect();
        self.engine.handle_segments(now, &heard);
    }

    /// A segment of an object's manifest has come: what was heard of its units can be told from where it
    /// lies, whether or not their heads were heard.
    pub fn handle_listed(&mut self, now: Instant, before: Option<&Segment>, segment: &Segment) {
        let last = before.and_then(|before| before.entries.last());
        let units = last.into_iter().chain(&segment.entries);
        let units: Vec<_> = units.map(|entry| (entry.id, entry.length)).collect();
        self.engine.list(now, &units);
    }

    /// Time has passed.
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

    /// When it wants [`handle_timeout`](Self::handle_timeout) to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        timer::earliest([
            (Timer::OverheardFlow, self.engine.poll_timeout()),
            (Timer::OverheardWrite, self.write_at),
            (Timer::OverheardWait, self.awaiting.values().copied().min()),
        ])
    }

    /// Gives out one thing that was found, and keeps what nobody asked for; to be called until there is none.
    pub fn poll(&mut self, now: Instant, here: &mut Here<'_>) -> Option<Heard> {
        loop {
            if let Some(value) = self.values.pop_front() {
                return Some(value);
            }
            match self.engine.poll_output()? {
                // Bytes of a unit begin to come: of what is here, no more is kept.
                Output::Begun { name, total } if here.chunks.holds(&name) => {
                    self.engine.cancel(now, name, total);
                }
                Output::Begun { .. } => {}
                // It comes from the peer, or else may be heard once more.
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

    /// Whether a unit is on its way and nothing that is on its way is taken back.
    fn is_left_to_come(&self, in_flight: &InFlight, name: &ChunkId) -> bool {
        !self.options.cancels && in_flight.contains(name)
    }

    /// A unit that is on its way was overheard before it came: it need not come any more.
    fn heard_first(&mut self, name: ChunkId, mut flight: Flight, bytes: Bytes) {
        let length = bytes.len() as u64;
        self.report.cancelled_units += 1;
        self.report.cancelled_bytes += length;
        let readers = std::mem::take(&mut flight.counted);
        self.values.push_back(Heard::NotFromPeer { readers, bytes: length, mended: 0 });
        self.values.push_back(Heard::Unit(name, flight, bytes));
    }

    /// A unit that nobody asked for enters on probation, if it is not here and there is room.
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

    /// Takes in a unit that nobody asked for; gives out the group when it is time.
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

    /// So many bytes of units that nobody asked for wait for the disk no more.
    pub fn written(&mut self, bytes: u64) {
        self.report.waiting_bytes -= bytes.min(self.report.waiting_bytes);
    }

    /// A request need not be answered with a unit any more.
    pub fn take_back(&mut self, asked: (NodeId, Request), name: ChunkId) {
        self.taken_back.entry(asked).or_default().push(name);
    }

    /// What requests need not be answered with, since this was last called.
    pub fn taken_back(&mut self) -> TakenBack {
        std::mem::take(&mut self.taken_back)
    }

    /// A unit came of which part had been overheard.
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

    /// What was overheard of a unit and what a peer sent do not make what it is called. Whoever was heard
    /// may have lied, and the peer may be honest: it is asked for the rest, and answers for the whole then.
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

    /// Whether readers of an object want nothing for a moment.
    pub fn is_awaiting(&self, id: FetchId) -> bool {
        self.awaiting.contains_key(&id)
    }

    /// A segment of a transfer's manifest has come: whether its readers should want nothing for a moment, if they
    /// may, since what was heard of the object may lie behind a missed head.
    pub fn awaits_order(&mut self, now: Instant, id: FetchId, may_wait: bool) -> bool {
        self.awaiting.remove(&id);
        let is_of_use = self.options.goes_by_places() && self.engine.counters().headless_bytes > 0;
        let waits = may_wait && is_of_use;
        if waits {
            self.awaiting.insert(id, now + ORDER_AFTER);
        }
        waits
    }

    /// Whether units that come unasked are likely to be here already.
    pub fn is_hopeful(&self, now: Instant) -> bool {
        self.hope_until.is_some_and(|until| now < until)
    }

    /// Nothing was here of an object of which nothing comes unasked: that was a hop's round trip for nothing. The
    /// next object is asked for in the usual way.
    pub fn hoped_in_vain(&mut self) {
        self.hope_until = None;
    }

    /// Parts of units that were heard and are to be joined to what peers send take this many bytes.
    pub fn set_aside(&mut self, now: Instant, bytes: u64) {
        self.report.aside_bytes = bytes;
        self.engine.set_aside(now, usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// What is missing of a unit, if what was heard of it is worth it and there is room to set it aside.
    fn worth_missing(&self, name: &ChunkId, length: u32) -> Option<Vec<Range<u32>>> {
        if !self.engine.may_give(length as usize) {
            return None;
        }
        self.engine.missing(*name, length).filter(|ranges| is_worth(ranges, length))
    }

    /// What [`expect`](Self::expect) would leave to be asked for of a unit, in bytes.
    pub fn lacks(&self, name: &ChunkId, length: u32) -> u32 {
        let missing = self.worth_missing(name, length);
        missing.map_or(length, |ranges| ranges.iter().map(|range| range.end - range.start).sum())
    }

    /// A unit is going to be asked for: what was heard of it, if that is worth the ranges that a want then
    /// names and there is room for it. It is listened to further: somebody may say all of it before the peer
    /// does.
    pub fn expect(&mut self, now: Instant, name: ChunkId, length: u32) -> Vec<Part> {
        let missing = self.worth_missing(&name, length);
        let heard = missing.and_then(|_| self.engine.take(now, name, length));
        self.want(now, name, length);
        heard.map_or_else(Vec::new, |heard| heard.parts)
    }

    /// A unit is on its way.
    pub fn want(&mut self, now: Instant, name: ChunkId, length: u32) {
        self.engine.want(now, name, length);
    }

    /// Units are not on their way any more, and not here.
    pub fn unwant(&mut self, now: Instant, wants: &[Want]) {
        wants.iter().for_each(|want| self.engine.unwant(now, want.name, want.length));
    }

    /// A unit is here.
    pub fn cancel(&mut self, now: Instant, name: ChunkId, length: u32) {
        self.engine.cancel(now, name, length);
    }

    /// What came of it.
    pub fn report(&self) -> Overhearing {
        let heard = *self.engine.counters();
        Overhearing { unused_bytes: heard.unused_bytes(), heard, ..self.report }
    }
}

/// Whether the ranges that are missing of a unit cost less to ask for than the whole.
fn is_worth(missing: &[Range<u32>], length: u32) -> bool {
    let bytes: u32 = missing.iter().map(|range| range.end - range.start).sum();
    u64::from(length - bytes.min(length)) > RANGE_COST * missing.len() as u64
}
