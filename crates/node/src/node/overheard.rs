//! What was heard of others' transfers, and what becomes of it: units that nobody asked for are kept, units
//! that are on their way are here sooner, and of what was half heard only the rest is asked for.
//!
//! *Which segments:* those for others, as the driver says, who alone knows all our addresses. What goes to
//! us comes by its own connection, and heard a second time it would take back wants that are being met.
//! What our peers say to others, and others to them, is the best there is: a next hop serves our neighbours
//! what we may want, and is served what it will send us.
//! *Source:* Ditto §4.2, §4.3; §8 for taking back what is on its way.

use super::Node;
use super::listing::unasked;
use crate::chunks::{Flight, Part};
use crate::input::{Config, ExchangeId, FetchId, Listening, Overheard};
use crate::overhear::{AHEAD, Output, Overhear};
use crate::report::Overhearing;
use crate::source::Pursuit;
use bytes::Bytes;
use content::Segment;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use store::Provenance;
use wire::peer::{ChunkHead, Message, Request, Want};
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
const HOPE: Duration = Duration::from_secs(60);

/// The first segment of a manifest lists one unit as a rule, and only the second tells which follows it: who
/// has both says both at once, and who still cuts the object says the second soon. For what is behind a
/// missed head the first unit is asked for so much later.
const ORDER_AFTER: Duration = Duration::from_millis(50);

/// Requests of ours, and names of units that peers need not send for them any more.
type TakenBack = BTreeMap<(NodeId, Request), Vec<ChunkId>>;

/// What a node has because it listens.
pub struct Ear {
    engine: Overhear,
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
    report: Overhearing,
}

impl Ear {
    /// One that has heard nothing yet; `None` if none is wished for.
    pub fn new(config: &Config) -> Option<Self> {
        let Listening { memory_bytes, options } = config.mesh.as_ref()?.overhear?;
        let seed = blake3::derive_key("hearsay 2026-11 tables of overhearing", &config.seed);
        Some(Self {
            engine: Overhear::with_options(memory_bytes, &seed, options),
            group: Vec::new(),
            group_bytes: 0,
            write_at: None,
            waiting_max: config.memory_bytes / 4 / WAITING_PART,
            hope_until: None,
            awaiting: BTreeMap::new(),
            taken_back: TakenBack::new(),
            report: Overhearing::default(),
        })
    }

    /// When it wants [`Node::listen`] to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let awaiting = self.awaiting.values().copied();
        self.engine.poll_timeout().into_iter().chain(self.write_at).chain(awaiting).min()
    }

    /// What came of it.
    pub fn report(&self) -> Overhearing {
        Overhearing { heard: *self.engine.counters(), ..self.report }
    }

    /// Whether units that come unasked are likely to be here already.
    pub fn is_hopeful(&self, now: Instant) -> bool {
        self.hope_until.is_some_and(|until| now < until)
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

    /// Takes in a unit that nobody asked for; gives out the group when it is time.
    fn collect(&mut self, now: Instant, name: ChunkId, bytes: Bytes) -> Vec<(ChunkId, Bytes)> {
        let length = bytes.len() as u64;
        self.report.units += 1;
        self.report.bytes += length;
        self.report.waiting_bytes += length;
        self.hope_until = Some(now + HOPE);
        self.write_at.get_or_insert(now + GROUP_AFTER);
        self.group_bytes += length;
        self.group.push((name, bytes));
        let full = self.group_bytes >= GROUP_BYTES.min(self.waiting_max / 2);
        if full { self.flush() } else { Vec::new() }
    }

    /// So many bytes of units that nobody asked for wait for the disk no more.
    pub fn written(&mut self, bytes: u64) {
        self.report.waiting_bytes -= bytes.min(self.report.waiting_bytes);
    }

    fn flush(&mut self) -> Vec<(ChunkId, Bytes)> {
        (self.group_bytes, self.write_at) = (0, None);
        std::mem::take(&mut self.group)
    }
}

/// Whether the ranges that are missing of a unit cost less to ask for than the whole.
fn is_worth(missing: &[Range<u32>], length: u32) -> bool {
    let bytes: u32 = missing.iter().map(|range| range.end - range.start).sum();
    u64::from(length - bytes.min(length)) > RANGE_COST * missing.len() as u64
}

impl Node {
    /// Segments were heard that are for others.
    pub(super) fn overheard(&mut self, segments: &[Overheard]) {
        let aside = self.cx.flights.heard_cost();
        if let Some(ear) = &mut self.cx.ear {
            ear.set_aside(self.cx.now, aside);
        }
        for some in segments.chunks(AHEAD) {
            let Some(ear) = &mut self.cx.ear else { return };
            let heard: SmallVec<[_; AHEAD]> = some.iter().map(Overheard::as_heard).collect();
            ear.engine.handle_segments(self.cx.now, &heard);
            self.take_heard();
        }
        self.take_back();
    }

    /// Time has passed.
    pub(super) fn listen(&mut self) {
        let Some(ear) = &mut self.cx.ear else { return };
        if ear.engine.poll_timeout().is_some_and(|at| at <= self.cx.now) {
            ear.engine.handle_timeout(self.cx.now);
        }
        let due = |at: &Instant| *at <= self.cx.now;
        let awaited: Vec<_> =
            ear.awaiting.iter().filter(|(_, at)| due(at)).map(|(id, _)| *id).collect();
        ear.awaiting.retain(|_, at| !due(at));
        if ear.write_at.is_some_and(|at| at <= self.cx.now) {
            let group = ear.flush();
            self.cx.append(None, group);
        }
        awaited.into_iter().for_each(|id| self.readers_ready(id));
        self.take_heard();
        self.take_back();
    }

    /// Whether readers of an object should want nothing for a moment: its first segment has come, and
    /// what was heard of it may lie behind a missed head. Peers are told of it at once.
    pub(super) fn awaits_order(&mut self, id: FetchId, segment: &Segment) -> bool {
        let is_first = segment.number == 0 && segment.closing.is_none();
        let is_needed = is_first && segment.entries.iter().any(|it| self.cx.is_missing(&it.id));
        let Some(ear) = &mut self.cx.ear else { return false };
        ear.awaiting.remove(&id);
        let spares = is_needed && self.source.get(id).is_some_and(Pursuit::is_sparing);
        if !spares || ear.engine.counters().waiting_bytes == 0 {
            return false;
        }
        ear.awaiting.insert(id, self.cx.now + ORDER_AFTER);
        self.peers_ready(id);
        true
    }

    /// A segment of an object's manifest has come: what was heard of its units can be told from where it
    /// lies, whether or not their heads were heard.
    pub(super) fn heard_in_order(&mut self, before: Option<&Segment>, segment: &Segment) {
        let Some(ear) = &mut self.cx.ear else { return };
        let last = before.and_then(|before| before.entries.last());
        let units = last.into_iter().chain(&segment.entries);
        let units: Vec<_> = units.map(|entry| (entry.id, entry.length)).collect();
        ear.engine.list(self.cx.now, &units);
        self.take_heard();
        self.take_back();
    }

    /// Does with what was heard what is to be done.
    fn take_heard(&mut self) {
        while let Some(output) = self.cx.ear.as_mut().and_then(|ear| ear.engine.poll_output()) {
            match output {
                Output::Begun { name, total } => self.heard_of(name, total),
                Output::Chunk { name, bytes } => match self.cx.flights.remove(&name) {
                    Some(flight) => self.heard_first(name, flight, bytes),
                    None => self.heard_unasked(name, bytes),
                },
            }
        }
    }

    /// Bytes of a unit begin to come: of what is here, no more is kept.
    fn heard_of(&mut self, name: ChunkId, total: u32) {
        if self.cx.chunks.holds(&name)
            && let Some(ear) = &mut self.cx.ear
        {
            ear.cancel(self.cx.now, name, total);
        }
    }

    /// A unit that nobody asked for enters on probation, if it is not here and there is room.
    fn heard_unasked(&mut self, name: ChunkId, bytes: Bytes) {
        let fits = self.cx.chunks.pinned_bytes() + bytes.len() as u64 <= self.cx.pinned_max();
        let stores = self.cx.store_works() && fits && bytes.len() >= LENGTH_MIN;
        let Some(ear) = &mut self.cx.ear else { return };
        if self.cx.chunks.holds(&name) {
            return;
        }
        let length = bytes.len() as u64;
        if !stores || ear.report.waiting_bytes + length > ear.waiting_max {
            ear.report.dropped_units += 1;
            ear.report.dropped_bytes += length;
            return ear.engine.lost(self.cx.now, name);
        }
        self.cx.chunks.pin(name, bytes.clone(), Provenance::Overheard);
        let group = ear.collect(self.cx.now, name, bytes);
        self.cx.append(None, group);
    }

    /// A unit that is on its way was overheard before it came: it need not come any more.
    fn heard_first(&mut self, name: ChunkId, flight: Flight, bytes: Bytes) {
        let length = bytes.len() as u64;
        let asked = self.source.get(flight.fetch).and_then(Pursuit::giving);
        let Some(ear) = &mut self.cx.ear else { return };
        ear.report.cancelled_units += 1;
        ear.report.cancelled_bytes += length;
        // Of what has begun to come, the rest is written already.
        if let Some(asked) = asked.filter(|_| !flight.has_begun()) {
            ear.taken_back.entry(asked).or_default().push(name);
        }
        self.not_from_peer(&flight.counted, length, 0);
        self.unit_is_here(name, flight, bytes, Provenance::Overheard);
    }

    /// Tells peers what they need not send any more.
    fn take_back(&mut self) {
        let Some(ear) = &mut self.cx.ear else { return };
        for ((peer, request), names) in std::mem::take(&mut ear.taken_back) {
            for names in names.chunks(Message::WANTS_MAX) {
                self.cx.say(peer, Message::Unwant(request, names.to_vec()));
            }
        }
    }

    /// A unit came of which part had been overheard.
    pub(super) fn repaired(&mut self, flight: &Flight) {
        let heard = flight.heard_bytes();
        let Some(ear) = self.cx.ear.as_mut().filter(|_| heard > 0) else { return };
        ear.report.repaired_units += 1;
        ear.report.repaired_bytes += heard;
        self.not_from_peer(&flight.counted, heard, heard);
    }

    /// What was overheard of a unit and what a peer sent do not make what it is called. Whoever was heard
    /// may have lied, and the peer may be honest: it is asked for the rest, and answers for the whole then.
    pub(super) fn misheard(&mut self, name: ChunkId, mut flight: Flight) {
        let (id, length) = (flight.fetch, flight.unit.length);
        flight.mistrust_heard();
        let Some(ear) = &mut self.cx.ear else { return };
        ear.report.false_units += 1;
        ear.want(self.cx.now, name, length);
        self.cx.flights.resume(name, flight);
        let wants: Vec<Want> = self.cx.flights.want_of(&name).into_iter().collect();
        self.source.want(&mut self.cx, id, &wants);
    }

    /// So many bytes of a unit do not come from a peer, as these readers count it: they were heard, or
    /// so many of them mended it.
    fn not_from_peer(&mut self, readers: &[ExchangeId], bytes: u64, mended: u64) {
        for reader in readers {
            self.with_serving(*reader, |serving| {
                serving.from_peer = serving.from_peer.saturating_sub(bytes);
                serving.from_repair += mended;
            });
        }
    }

    /// The first segment of an object has come of which nothing comes unasked. If nothing of it is here,
    /// that was a hop's round trip for nothing: the next object is asked for in the usual way.
    pub(super) fn learn_of_hope(&mut self, segment: &Segment) {
        let units = unasked(segment);
        let in_vain =
            !units.is_empty() && units.iter().all(|(name, _)| !self.cx.chunks.holds(name));
        if let Some(ear) = self.cx.ear.as_mut().filter(|_| in_vain) {
            ear.hope_until = None;
        }
    }
}
