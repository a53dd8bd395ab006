//! One flow's content on its way through the sender: cut into units, put into batches, sent part by part.

use super::queues::Place;
use super::{AHEAD, BATCH_MAX, FIRST, FIRST_LITERALS_MAX, GATHER, LITERALS_MAX, Record};
use crate::input::FetchError;
use crate::uplink::index::Index;
use crate::uplink::messages::{Batch, Message};
use crate::uplink::tcp::{Kind, PIECE_MAX, TCP_WINDOW};
use crate::uplink::{Name, Span, WINDOW, features, name_of, short};
use bytes::{Bytes, BytesMut};
use content::{Cutter, Profile};
use std::collections::VecDeque;
use std::time::Duration;
use store::Mark;
use wire::Instant;

/// After a pause this long the unit of an answer that is being cut ends, so that what trickles does not wait for a
/// boundary.
pub const PAUSE: Duration = Duration::from_millis(50);
/// A TCP flow waits this long at most: each side may be waiting for what the other says next.
pub const PAUSE_TCP: Duration = Duration::from_millis(5);
/// … also if single bytes go on coming.
const PAUSE_TCP_MAX: Duration = Duration::from_millis(20);
/// What a TCP flow that is broken off still says at most.
pub const ABORTED_MAX: usize = 64 * 1024;
/// A TCP flow that was silent for this long counts as short again, whatever it has sent.
const SPARSE: Duration = Duration::from_millis(200);

/// A level of zstd that takes less than 10 ms for an answer.
const QUICK_LEVEL: i32 = 9;
/// What the message of uncut bytes costs, about, in bytes.
const UNCUT_COST: u64 = 6;

/// One flow's content on its way.
pub struct Flow {
    number: u64,
    pub client: u64,
    /// What kind of content it is.
    pub kind: Kind,
    /// What goes before the content, and until when it waits for it.
    pub head: Option<(Message, Instant)>,
    cutter: Cutter,
    /// The unit that is being cut, or what crosses uncut.
    partial: BytesMut,
    units: VecDeque<(Name, Bytes)>,
    /// Bytes in `partial` and `units`.
    pub queued: usize,
    /// How many more bytes the receiver lets cross.
    credit: u64,
    /// The position of the old unit that is expected next.
    pub expected: Option<u64>,
    /// The URL's hash, until the first unit is sent.
    url: u64,
    pub batches: VecDeque<Outgoing>,
    /// Bytes of payloads and headers, about, that have crossed.
    pub crossed: u64,
    /// The sender's count when it was this flow's turn last.
    pub turn: u64,
    pub ended: Option<Result<(), FetchError>>,
    /// Bytes of content that were put into batches.
    passed: u64,
    /// When content arrived last, and when that in `partial` began to wait.
    touched: Instant,
    begun: Instant,
    /// Since when units have waited to be put into a batch, until they have waited long enough.
    waiting: Option<Instant>,
    /// The receiver does not want it any more. What others may refer to still crosses.
    pub is_cancelled: bool,
    /// Where it stands in the sender's queues.
    pub place: Place,
}

/// A batch that is being packed, is ready, or is partly sent.
pub struct Outgoing {
    pub batch: Batch,
    /// The next new unit's position when it was put together.
    pub placed: u64,
    /// `None` while it is being packed.
    pub payload: Option<Bytes>,
    sent: usize,
    /// Its number among payloads, once its header is sent.
    number: Option<u64>,
}

impl Outgoing {
    /// A batch, put together when this was the next new unit's position; without literals there is nothing to pack.
    pub fn new(batch: Batch, placed: u64) -> Self {
        let payload = batch.literals.is_none().then(Bytes::new);
        Self { batch, placed, payload, sent: 0, number: None }
    }
}

/// The units of the next batch.
#[derive(Default)]
pub struct Picked {
    pub spans: Vec<Span>,
    pub names: Vec<Name>,
    /// Those that cross for the first time.
    pub literals: Vec<(Mark, Bytes)>,
    /// The old units that literals are most like.
    pub alike: Vec<u64>,
    /// The bytes of all units, and of literals.
    pub length: usize,
    pub literal_bytes: usize,
}

/// How much of a flow went into a record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    pub header: u64,
    pub payload: u64,
    /// Content that went uncut.
    pub uncut: u64,
}

impl Took {
    /// All of it.
    pub fn bytes(self) -> u64 {
        self.header + self.payload + self.uncut
    }
}

/// What a header costs, about, in bytes.
pub fn cost_of(batch: &Batch) -> u64 {
    let literals = batch.literals.as_ref();
    let numbers = literals.map_or(0, |it| it.lengths.len() + 2 * it.dictionary.len());
    (24 + 3 * batch.spans.len() + 2 * numbers) as u64
}

impl Flow {
    /// A flow that begins.
    pub fn new(now: Instant, number: u64, client: u64, kind: Kind) -> Self {
        Self {
            number,
            client,
            kind,
            head: None,
            cutter: Cutter::new(Profile::DEFAULT),
            partial: BytesMut::new(),
            units: VecDeque::new(),
            queued: 0,
            credit: window(kind),
            expected: None,
            url: 0,
            batches: VecDeque::new(),
            crossed: 0,
            turn: 0,
            ended: None,
            passed: 0,
            touched: now,
            begun: now,
            waiting: None,
            is_cancelled: false,
            place: Place::default(),
        }
    }

    /// Its URL or server has this hash, and its content last time began at this position.
    pub fn expect(&mut self, url: u64, position: Option<u64>) {
        (self.url, self.expected) = (url, position);
    }

    /// Content has come.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        if self.passed == 0 && self.queued == 0 {
            self.kind.begin(bytes);
        }
        self.touched = now;
        if self.partial.is_empty() {
            self.begun = now;
        }
        match self.kind {
            Kind::Opaque => {
                self.queued += bytes.len();
                self.partial.extend_from_slice(bytes);
            }
            Kind::Http | Kind::Tcp { .. } => self.cut(now, bytes),
        }
        if let Kind::Tcp { is_due, .. } = &mut self.kind {
            // What is due stays so, unless it has become a unit's size.
            *is_due &= self.partial.len() < PIECE_MAX;
        }
        self.waits_from(now);
    }

    /// The content has ended.
    pub fn end(&mut self, result: Result<(), FetchError>) {
        self.ended = Some(result);
        match self.kind {
            Kind::Http => self.cut_off(),
            Kind::Tcp { .. } if self.partial.len() >= PIECE_MAX => self.cut_off(),
            Kind::Tcp { .. } | Kind::Opaque => {}
        }
    }

    /// Whether it is of a dialogue that was silent for a while.
    pub fn is_sparse(&self, now: Instant) -> bool {
        let is_idle = self.queued == 0 && self.batches.is_empty();
        self.kind != Kind::Http && is_idle && now.since(self.touched) >= SPARSE
    }

    /// Its source has broken off: what it said last still crosses, unless that is much.
    pub fn abort(&mut self, why: FetchError) {
        if self.queued > ABORTED_MAX {
            self.drop_queued();
        }
        self.end(Err(why));
    }

    /// The receiver does not want it; whether nothing of it needs to cross.
    pub fn cancel(&mut self) -> bool {
        self.is_cancelled = true;
        self.drop_queued();
        // What has positions crosses in any case, since later batches may refer to it.
        self.batches.retain(|outgoing| outgoing.batch.literals.is_some());
        self.batches.is_empty()
    }

    /// Drops what is not in a batch yet.
    fn drop_queued(&mut self) {
        self.units.clear();
        self.partial.clear();
        self.queued = 0;
    }

    /// The receiver has passed on some of it.
    pub fn allow(&mut self, bytes: u64) {
        self.credit = self.credit.saturating_add(bytes).min(window(self.kind));
    }

    /// How many more bytes of content may wait here.
    pub fn room(&self) -> u64 {
        let ahead = (2 * BATCH_MAX as u64).min(self.credit);
        ahead.saturating_sub(self.queued as u64)
    }

    /// Whether nothing of it is left.
    pub fn is_drained(&self) -> bool {
        self.batches.is_empty() && self.queued == 0
    }

    fn cut(&mut self, now: Instant, mut bytes: &[u8]) {
        self.queued += bytes.len();
        let mut cut = Vec::new();
        while let Some(end) = self.cutter.cut(bytes) {
            let (unit, rest) = bytes.split_at(end.consumed);
            self.partial.extend_from_slice(unit);
            cut.push(self.partial.split().freeze());
            self.begun = now;
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
        let pieces: Vec<_> = cut.iter().map(|unit| &unit[..]).collect();
        let mut names = Vec::with_capacity(pieces.len());
        content::names(&pieces, &mut names);
        self.units.extend(names.iter().map(|name| short(name.as_bytes())).zip(cut));
    }

    /// Takes the units of the next batch off the queue, and gives the new ones positions.
    pub fn pick(&mut self, index: &mut Index) -> Picked {
        let (mut picked, literals_max) = (Picked::default(), self.literals_max());
        while let Some((name, bytes)) = self.units.front() {
            let found = index.find(name);
            let too_long = picked.length > 0 && picked.length + bytes.len() > BATCH_MAX;
            let too_new = found.is_none() && picked.literal_bytes + bytes.len() > literals_max;
            if too_long || too_new {
                break;
            }
            let Some((name, bytes)) = self.units.pop_front() else { break };
            picked.length += bytes.len();
            picked.names.push(name);
            let position = found.unwrap_or_else(|| self.place(name, bytes, index, &mut picked));
            self.url = 0;
            self.expected = match found {
                Some(position) => Some(position + 1),
                None => self.expected.map(|position| position + 1),
            };
            match picked.spans.last_mut() {
                Some(last) if last.end() == position => last.count += 1,
                _ => picked.spans.push(Span { first: position, count: 1 }),
            }
        }
        self.queued -= picked.length;
        self.passed += picked.length as u64;
        self.credit = self.credit.saturating_sub(picked.length as u64);
        if self.units.is_empty() {
            self.waiting = None;
        }
        picked
    }

    /// Gives a new unit the next position.
    fn place(&mut self, name: Name, bytes: Bytes, index: &mut Index, picked: &mut Picked) -> u64 {
        let features = features::of(&bytes);
        let similar = index.most_alike(&features, self.expected.unwrap_or_default());
        // Without anything alike the old content is expected to go on beside the new.
        self.expected = similar.or(self.expected);
        picked.alike.extend(similar);
        let mark = Mark { name, features, url: self.url, length: bytes.len() as u32 };
        let position = index.end();
        index.push(mark);
        picked.literal_bytes += bytes.len();
        picked.literals.push((mark, bytes));
        position
    }

    /// Ends the unit that is being cut.
    fn cut_off(&mut self) {
        self.cutter.finish();
        if !self.partial.is_empty() {
            let unit = self.partial.split().freeze();
            self.units.push_back((name_of(&unit), unit));
        }
    }

    fn literals_max(&self) -> usize {
        if self.passed < FIRST { FIRST_LITERALS_MAX } else { LITERALS_MAX }
    }

    /// The level of zstd for the next batch, which may be as high as this. Who waits for an answer waits for its packing,
    /// too: with a dictionary the highest levels take some 60 ms.
    pub fn level(&self, most: i32) -> i32 {
        let is_answer = self.kind != Kind::Http && self.queued < self.literals_max();
        if is_answer { most.min(QUICK_LEVEL) } else { most }
    }

    fn waits_from(&mut self, now: Instant) {
        if !self.units.is_empty() {
            self.waiting.get_or_insert(now);
        }
    }

    /// Whether a batch may be made of what waits.
    pub fn may_batch(&self) -> bool {
        let has_room = self.batches.len() < AHEAD && self.credit > 0;
        let is_enough = self.ended.is_some() || self.queued >= self.literals_max();
        has_room && !self.units.is_empty() && (is_enough || self.waiting.is_none())
    }

    /// When a batch is to be made of what waits, though it is little.
    pub fn gathers_until(&self) -> Option<Instant> {
        let may = self.batches.len() < AHEAD && self.credit > 0 && self.ended.is_none();
        self.waiting
            .filter(|_| may && self.queued < self.literals_max())
            .map(|since| since + GATHER)
    }

    /// When what is in hand has waited long enough.
    pub fn pauses_until(&self) -> Option<Instant> {
        let is_next = !self.partial.is_empty() && self.units.is_empty() && self.batches.is_empty();
        let until = match self.kind {
            Kind::Http => self.touched + PAUSE,
            Kind::Tcp { is_due: false, .. } if self.ended.is_none() => {
                let pause = self.touched + PAUSE_TCP;
                let is_little = self.partial.len() < PIECE_MAX;
                if is_little { pause.min(self.begun + PAUSE_TCP_MAX) } else { pause }
            }
            Kind::Tcp { .. } | Kind::Opaque => return None,
        };
        is_next.then_some(until)
    }

    /// The time has come of [`pauses_until`](Self::pauses_until), or of [`gathers_until`](Self::gathers_until).
    pub fn handle_timeout(&mut self, now: Instant) {
        self.waiting.take_if(|since| *since + GATHER <= now);
        if self.pauses_until().is_none_or(|at| at > now) {
            return;
        }
        match &mut self.kind {
            Kind::Http => {
                self.cut_off();
                self.waits_from(now);
            }
            Kind::Tcp { is_due, .. } if self.partial.len() < PIECE_MAX => *is_due = true,
            // Without gathering: it has waited.
            Kind::Tcp { .. } | Kind::Opaque => self.cut_off(),
        }
    }

    /// Whether something can be sent.
    pub fn is_ready(&self) -> bool {
        match self.batches.front() {
            Some(outgoing) => outgoing.payload.is_some(),
            None => self.is_loose(),
        }
    }

    /// Whether what is in hand may cross uncut.
    fn is_loose(&self) -> bool {
        let may = match self.kind {
            Kind::Http => false,
            Kind::Tcp { is_due, .. } => is_due || self.ended.is_some(),
            Kind::Opaque => true,
        };
        may && self.units.is_empty() && !self.partial.is_empty() && self.credit > 0
    }

    /// Sends the next part of the first batch, or of what crosses uncut.
    pub fn send(&mut self, payloads: &mut u64, room: usize, record: &mut Record) -> Took {
        let mut took = Took::default();
        let Some(outgoing) = self.batches.front_mut() else {
            return self.send_uncut(payloads, room, record);
        };
        let Some(payload) = &outgoing.payload else { return took };
        let number = *outgoing.number.get_or_insert_with(|| {
            let head = self.head.take().map(|(head, _)| head);
            took.header =
                cost_of(&outgoing.batch) + head.as_ref().map_or(0, |it| it.weight() as u64);
            record.messages.extend(head);
            record.messages.push(Message::Batch(outgoing.batch.clone()));
            let number = *payloads;
            *payloads += u64::from(outgoing.batch.literals.is_some());
            number
        });
        let room = room.saturating_sub(took.header as usize).max(1);
        let part = (payload.len() - outgoing.sent).min(room);
        if part > 0 {
            record.data.push((number, payload.slice(outgoing.sent..outgoing.sent + part)));
            outgoing.sent += part;
            took.payload = part as u64;
        }
        if outgoing.sent == payload.len() {
            self.batches.pop_front();
        }
        took
    }

    fn send_uncut(&mut self, payloads: &mut u64, room: usize, record: &mut Record) -> Took {
        record.messages.extend(self.head.take().map(|(head, _)| head));
        let length = self.partial.len().min(room.max(1)).min(self.credit as usize);
        let bytes = self.partial.split_to(length).freeze();
        self.queued -= length;
        self.credit -= length as u64;
        self.passed += length as u64;
        if self.partial.is_empty() {
            // What comes next is cut anew.
            self.cutter.finish();
        }
        match self.kind {
            Kind::Opaque => {
                record.messages.push(Message::Raw(self.number, length as u32));
                record.data.push((*payloads, bytes));
                *payloads += 1;
            }
            Kind::Http | Kind::Tcp { .. } => {
                record.messages.push(Message::Piece(self.number, bytes))
            }
        }
        Took { header: UNCUT_COST, payload: 0, uncut: length as u64 }
    }
}

/// How many bytes of a flow of this kind the sender may be ahead of what the receiver has passed on.
fn window(kind: Kind) -> u64 {
    match kind {
        Kind::Http => WINDOW,
        Kind::Tcp { .. } | Kind::Opaque => TCP_WINDOW,
    }
}
