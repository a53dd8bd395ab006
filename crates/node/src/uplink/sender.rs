//! The sending half: cuts flows into units, finds those that have crossed before, and lets the others cross as
//! differences from what is most like them.
//!
//! *In:* content of flows, credit, results of jobs. *Out:* jobs, and, when the connection takes some more, the
//! next headers and payloads. *What it never does:* read an old unit; it knows their names, features and
//! lengths (`index.rs`).

use super::dictionary::dictionary;
use super::features;
use super::index::Index;
use super::messages::{Batch, Coding, Literals, Message};
use super::schedule::{Rate, SHORT, Shares, Turn};
use super::work::Job;
use super::{BATCH_MAX, LITERALS_MAX, Name, Span, WINDOW, digest_of, short};
use crate::input::FetchError;
use bytes::{Bytes, BytesMut};
use content::{Cutter, Profile};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use store::{HistoryState, Mark};
use wire::Instant;

/// After a pause this long the unit that is being cut ends, so that what trickles does not wait for a boundary.
pub const PAUSE: Duration = Duration::from_millis(50);
/// Batches of a flow that are ready or being packed at most.
const AHEAD: usize = 2;
/// Units that may have positions while an older one is not sent, about: the receiver keeps them in memory.
const UNORDERED_MAX: u64 = 512;
/// Payloads of long flows that are ready or being packed at most, in bytes.
const UNSENT_MAX: usize = 512 * 1024;
/// Jobs that pack long flows' batches at one time at most.
const PACKING_MAX: usize = 2;

/// Content waits this long for more of it, unless there is enough for a batch or it has ended: each batch
/// has a digest and a header.
const GATHER: Duration = Duration::from_millis(3);
/// The literals of a flow's first batches at most, in bytes: nothing of a batch is passed on before all of it has
/// crossed, and the first bytes of an answer are awaited.
const FIRST_LITERALS_MAX: usize = 16 * 1024;
/// The first batches are those of this many bytes of content.
const FIRST: u64 = 64 * 1024;
/// A head waits this long for the first content, to share its record.
const HEAD_WAIT: Duration = Duration::from_millis(5);

/// One flow's content on its way.
struct Flow {
    client: u64,
    /// What goes before the content, and until when it waits for it.
    head: Option<(Message, Instant)>,
    cutter: Cutter,
    /// The unit that is being cut.
    partial: BytesMut,
    units: VecDeque<(Name, Bytes)>,
    /// Bytes in `partial` and `units`.
    queued: usize,
    /// How many more bytes the receiver lets cross.
    credit: u64,
    /// The position of the old unit that is expected next.
    expected: Option<u64>,
    /// The URL's hash, until the first unit is sent.
    url: u64,
    batches: VecDeque<Outgoing>,
    /// Bytes of payloads and headers, about, that have crossed.
    crossed: u64,
    ended: Option<Result<(), FetchError>>,
    /// Bytes of content that were put into batches.
    passed: u64,
    /// When content arrived last.
    touched: Instant,
    /// Since when units have waited to be put into a batch.
    waiting: Option<Instant>,
    /// The receiver does not want it any more. What others may refer to still crosses.
    is_cancelled: bool,
}

/// A batch that is being packed, is ready, or is partly sent.
struct Outgoing {
    batch: Batch,
    /// `None` while it is being packed.
    payload: Option<Bytes>,
    sent: usize,
    /// Its number among payloads, once its header is sent.
    number: Option<u64>,
}

/// The units of the next batch.
#[derive(Default)]
struct Picked {
    spans: Vec<Span>,
    names: Vec<Name>,
    /// Those that cross for the first time.
    literals: Vec<(Mark, Bytes)>,
    /// The old units that literals are most like.
    alike: Vec<u64>,
    /// The bytes of all units, and of literals.
    length: usize,
    literal_bytes: usize,
}

/// What goes into the next record.
#[derive(Debug, Default)]
pub struct Record {
    /// Control messages.
    pub messages: Vec<Message>,
    /// Parts of payloads, each with its payload's number.
    pub data: Vec<(u64, Bytes)>,
}

/// The sending half of a pair's end.
pub struct Sender {
    index: Index,
    flows: BTreeMap<u64, Flow>,
    shares: Shares,
    /// Which flow's batch a job packs.
    packing: BTreeMap<u64, u64>,
    /// Bytes of payloads that are not sent.
    unsent: usize,
    /// The number of the next payload.
    payloads: u64,
    /// Heads whose content lets them wait, and ends of flows.
    due: VecDeque<Message>,
    /// Bytes of units that crossed as references, with a dictionary, and without one.
    pub as_references: u64,
    pub as_differences: u64,
    pub as_new: u64,
}

impl Sender {
    /// A sender whose history has these units, which begin at a position.
    pub fn new(units_max: usize, held: HistoryState, marks: impl Iterator<Item = Mark>) -> Self {
        let mut index = Index::new(units_max);
        index.clear(held.first);
        marks.for_each(|mark| index.push(mark));
        Self {
            index,
            flows: BTreeMap::new(),
            shares: Shares::default(),
            packing: BTreeMap::new(),
            unsent: 0,
            payloads: 0,
            due: VecDeque::new(),
            as_references: 0,
            as_differences: 0,
            as_new: 0,
        }
    }

    /// A connection begins: nothing is on its way, and both ends hold the positions from `floor` to `end`.
    pub fn begin(&mut self, end: Option<u64>, floor: u64) {
        self.drop_flows();
        match end {
            Some(end) => {
                self.index.truncate(end);
                if self.index.end() != end {
                    self.index.clear(end);
                }
                self.index.raise_floor(floor);
            }
            None => self.index.clear(0),
        }
    }

    /// The connection has ended.
    pub fn drop_flows(&mut self) {
        self.flows.clear();
        self.packing.clear();
        self.due.clear();
        (self.unsent, self.payloads) = (0, 0);
    }

    /// The receiver does not hold older positions any more.
    pub fn raise_floor(&mut self, floor: u64) {
        self.index.raise_floor(floor);
    }

    /// A flow begins, for this client. `url` is a hash of the URL, or zero.
    pub fn open(&mut self, now: Instant, flow: u64, client: u64, url: u64) {
        let expected = self.index.of_url(url);
        let flow_state = Flow {
            client,
            head: None,
            cutter: Cutter::new(Profile::DEFAULT),
            partial: BytesMut::new(),
            units: VecDeque::new(),
            queued: 0,
            credit: WINDOW,
            expected,
            url,
            batches: VecDeque::new(),
            crossed: 0,
            ended: None,
            passed: 0,
            touched: now,
            waiting: None,
            is_cancelled: false,
        };
        self.flows.insert(flow, flow_state);
    }

    /// What goes before a flow's content.
    pub fn head(&mut self, now: Instant, flow: u64, head: Message) {
        if let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.is_cancelled) {
            flow.head = Some((head, now + HEAD_WAIT));
        }
    }

    /// Content of a flow.
    pub fn push(&mut self, now: Instant, flow: u64, bytes: &[u8]) {
        let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.is_cancelled) else {
            return;
        };
        flow.touched = now;
        flow.cut(bytes);
        flow.waits_from(now);
    }

    /// A flow's content has ended.
    pub fn finish(&mut self, flow: u64, result: Result<(), FetchError>) {
        let Some(flow) = self.flows.get_mut(&flow) else { return };
        flow.cut_off();
        flow.ended = Some(result);
    }

    /// The receiver does not want this flow.
    pub fn cancel(&mut self, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        flow.is_cancelled = true;
        flow.units.clear();
        flow.partial.clear();
        flow.queued = 0;
        // What has positions crosses in any case, since later batches may refer to it.
        flow.batches.retain(|outgoing| outgoing.batch.literals.is_some());
        if flow.batches.is_empty() {
            self.flows.remove(&id);
        }
    }

    /// The receiver has passed on some of a flow.
    pub fn credit(&mut self, flow: u64, bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.credit = flow.credit.saturating_add(bytes).min(WINDOW);
        }
    }

    /// How many more bytes of a flow's content may wait here.
    pub fn room(&self, flow: u64) -> u64 {
        let Some(flow) = self.flows.get(&flow).filter(|flow| flow.ended.is_none()) else {
            return 0;
        };
        let ahead = (2 * BATCH_MAX as u64).min(flow.credit);
        ahead.saturating_sub(flow.queued as u64)
    }

    /// All bytes that wait.
    pub fn waiting(&self) -> u64 {
        self.flows.values().map(|flow| flow.queued as u64).sum::<u64>() + self.unsent as u64
    }

    /// Whether anything of this flow is still to cross.
    pub fn has(&self, flow: u64) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Makes batches of what waits; returns jobs, each with the flow that it is for.
    pub fn prepare(&mut self, now: Instant, rate: &Rate) -> Vec<(u64, Job)> {
        let mut jobs = Vec::new();
        let mut turns: Vec<_> = self.flows.iter().map(|(id, flow)| self.turn(*id, flow)).collect();
        turns.sort_unstable();
        let end = self.oldest_unsent() + UNORDERED_MAX;
        for (_, id) in turns {
            while self.index.end() < end && self.may_prepare(now, id, jobs.len()) {
                jobs.extend(self.make_batch(id, rate.level()).map(|job| (id, job)));
            }
            self.finish_if_drained(id);
        }
        jobs
    }

    fn turn(&self, id: u64, flow: &Flow) -> (Turn, u64) {
        (self.shares.turn(flow.client, id, flow.crossed), id)
    }

    /// All units before this position are sent.
    fn oldest_unsent(&self) -> u64 {
        let batches = self.flows.values().flat_map(|flow| &flow.batches);
        let firsts = batches.filter_map(|it| it.batch.literals.as_ref().map(|it| it.first));
        firsts.min().unwrap_or_else(|| self.index.end())
    }

    fn may_prepare(&self, now: Instant, id: u64, new_jobs: usize) -> bool {
        let Some(flow) = self.flows.get(&id).filter(|flow| flow.has_gathered(now)) else {
            return false;
        };
        let is_short = flow.crossed < SHORT && flow.batches.is_empty();
        // A short flow's job must not wait behind several long ones.
        let has_room =
            is_short || (self.unsent < UNSENT_MAX && self.packing.len() + new_jobs < PACKING_MAX);
        has_room && flow.batches.len() < AHEAD && !flow.units.is_empty() && flow.credit > 0
    }

    fn finish_if_drained(&mut self, id: u64) {
        let Some(flow) = self.flows.get(&id) else { return };
        if !flow.batches.is_empty() || !flow.units.is_empty() {
            return;
        }
        match flow.ended {
            _ if flow.is_cancelled => _ = self.flows.remove(&id),
            Some(result) => {
                let flow = self.flows.remove(&id);
                self.due.extend(flow.and_then(|flow| flow.head).map(|(head, _)| head));
                self.due.push_back(Message::Finish(id, result));
            }
            None => {}
        }
    }

    /// The next batch of a flow; a job if it has literals.
    fn make_batch(&mut self, id: u64, level: i32) -> Option<Job> {
        let flow = self.flows.get_mut(&id)?;
        let (first, expected) = (self.index.end(), flow.expected);
        let Picked { spans, names, literals, alike, length, literal_bytes } =
            flow.pick(&mut self.index);
        self.as_references += (length - literal_bytes) as u64;
        let digest = digest_of(names);
        let dictionary = match literals.is_empty() {
            true => Vec::new(),
            false => dictionary(&self.index, first, expected, &alike, literal_bytes),
        };
        match dictionary.is_empty() {
            true => self.as_new += literal_bytes as u64,
            false => self.as_differences += literal_bytes as u64,
        }
        let lengths: Vec<_> = literals.iter().map(|(mark, _)| mark.length).collect();
        let coded = (!literals.is_empty()).then(|| Literals {
            first,
            lengths,
            dictionary: dictionary.clone(),
            coding: Coding::Plain,
            payload: 0,
        });
        let batch = Batch { flow: id, length: length as u32, spans, digest, literals: coded };
        let payload = literals.is_empty().then(Bytes::new);
        flow.batches.push_back(Outgoing { batch, payload, sent: 0, number: None });
        if literals.is_empty() {
            return None;
        }
        self.unsent += literal_bytes;
        Some(Job::Pack { first, units: literals, dictionary, level })
    }

    /// A job was given this number.
    pub fn is_packing(&mut self, job: u64, flow: u64) {
        self.packing.insert(job, flow);
    }

    /// A batch is packed.
    pub fn packed(&mut self, job: u64, payload: Bytes, coding: Coding) {
        let Some(flow) = self.packing.remove(&job).and_then(|id| self.flows.get_mut(&id)) else {
            return;
        };
        // Jobs are done in order.
        let waiting = flow.batches.iter_mut().find(|outgoing| outgoing.payload.is_none());
        let Some(outgoing) = waiting else { return };
        if let Some(literals) = &mut outgoing.batch.literals {
            let plain: usize = literals.lengths.iter().map(|length| *length as usize).sum();
            self.unsent = (self.unsent + payload.len()).saturating_sub(plain);
            literals.payload = payload.len() as u32;
            literals.coding = coding;
            if coding == Coding::Plain {
                literals.dictionary.clear();
            }
        }
        outgoing.payload = Some(payload);
    }

    /// The number of the next payload.
    pub fn payloads(&self) -> u64 {
        self.payloads
    }

    /// Fills a record with about `room` bytes at most of what is next.
    pub fn fill(&mut self, mut room: usize, record: &mut Record) {
        while room > 0 {
            if let Some(message) = self.due.pop_front() {
                room = room.saturating_sub(message.weight());
                record.messages.push(message);
                continue;
            }
            let ready = self.flows.iter().filter(|(_, flow)| flow.is_ready());
            let Some((_, id)) = ready.map(|(id, flow)| self.turn(*id, flow)).min() else { break };
            let Some(flow) = self.flows.get_mut(&id) else { break };
            let took = flow.send(&mut self.payloads, room, record);
            flow.crossed += took.header + took.payload;
            self.unsent = self.unsent.saturating_sub(took.payload as usize);
            self.shares.serve(flow.client, took.header + took.payload);
            room = room.saturating_sub((took.header + took.payload) as usize);
            self.finish_if_drained(id);
        }
    }

    /// Whether [`fill`](Self::fill) has something to send.
    pub fn is_ready(&self) -> bool {
        !self.due.is_empty() || self.flows.values().any(Flow::is_ready)
    }

    /// When a unit that is being cut must end, or a head waits no longer.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pausing = self.flows.values().filter(|flow| flow.is_pausing());
        let heads = self.flows.values().filter_map(|flow| flow.head.as_ref());
        let gathering = self.flows.values().filter_map(Flow::gathers_until);
        let pauses = pausing.map(|flow| flow.touched + PAUSE);
        pauses.chain(heads.map(|(_, until)| *until)).chain(gathering).min()
    }

    /// Ends units whose flows have paused, and lets heads go.
    pub fn handle_timeout(&mut self, now: Instant) {
        for flow in self.flows.values_mut() {
            flow.waiting.take_if(|since| *since + GATHER <= now);
            let head = flow.head.take_if(|(_, until)| *until <= now);
            self.due.extend(head.map(|(head, _)| head));
            if flow.is_pausing() && flow.touched + PAUSE <= now {
                flow.cut_off();
                flow.waits_from(now);
            }
        }
    }
}

/// How much of a flow went into a record.
struct Took {
    header: u64,
    payload: u64,
}

/// What a header costs, about, in bytes.
fn cost_of(batch: &Batch) -> u64 {
    let literals = batch.literals.as_ref();
    let numbers = literals.map_or(0, |it| it.lengths.len() + 2 * it.dictionary.len());
    (24 + 3 * batch.spans.len() + 2 * numbers) as u64
}

impl Flow {
    fn cut(&mut self, mut bytes: &[u8]) {
        self.queued += bytes.len();
        let mut cut = Vec::new();
        while let Some(end) = self.cutter.cut(bytes) {
            let (unit, rest) = bytes.split_at(end.consumed);
            self.partial.extend_from_slice(unit);
            cut.push(self.partial.split().freeze());
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
        let pieces: Vec<_> = cut.iter().map(|unit| &unit[..]).collect();
        let mut names = Vec::with_capacity(pieces.len());
        content::names(&pieces, &mut names);
        self.units.extend(names.iter().map(|name| short(name.as_bytes())).zip(cut));
    }

    /// Takes the units of the next batch off the queue, and gives the new ones positions.
    fn pick(&mut self, index: &mut Index) -> Picked {
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
            self.units.push_back((super::name_of(&unit), unit));
        }
    }

    fn literals_max(&self) -> usize {
        if self.passed < FIRST { FIRST_LITERALS_MAX } else { LITERALS_MAX }
    }

    fn waits_from(&mut self, now: Instant) {
        if !self.units.is_empty() {
            self.waiting.get_or_insert(now);
        }
    }

    /// Whether a batch may be made of what waits.
    fn has_gathered(&self, now: Instant) -> bool {
        let is_enough = self.ended.is_some() || self.queued >= self.literals_max();
        is_enough || self.waiting.is_none_or(|since| since + GATHER <= now)
    }

    /// When a batch is to be made of what waits, though it is little.
    fn gathers_until(&self) -> Option<Instant> {
        let may = self.batches.len() < AHEAD && self.credit > 0 && self.ended.is_none();
        self.waiting
            .filter(|_| may && self.queued < self.literals_max())
            .map(|since| since + GATHER)
    }

    fn is_pausing(&self) -> bool {
        !self.partial.is_empty() && self.units.is_empty() && self.batches.is_empty()
    }

    fn is_ready(&self) -> bool {
        self.batches.front().is_some_and(|outgoing| outgoing.payload.is_some())
    }

    /// Sends the next part of the first batch.
    fn send(&mut self, payloads: &mut u64, room: usize, record: &mut Record) -> Took {
        let mut took = Took { header: 0, payload: 0 };
        let Some(outgoing) = self.batches.front_mut() else { return took };
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
}
