//! The receiving half: puts batches together out of old units and literals, checks them, and passes them on as
//! far as credit allows.
//!
//! *In:* headers and payloads, credit, results of jobs. *Out:* jobs, content, what the other end is to be told.
//! What is not passed on yet is kept as positions only: a flow that nobody reads costs no memory, except for what
//! crossed uncut, which is bounded for all flows together.

mod flow;
mod waiting;

use super::messages::{Batch, Literals, Message, WANTS_MAX};
use super::work::{Done, Job};
use super::{BATCH_MAX, Digest, FLOWS_MAX, Span};
use crate::crossed::Crossed;
use crate::input::FetchError;
use bytes::{Bytes, BytesMut};
use flow::{Flow, Part};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of payloads that are not complete, or wait for others, at most.
const ARRIVING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Payloads of uncut bytes that are not complete, at most: each comes with its header.
const ARRIVING_MAX: usize = 4096;
/// Positions that are ahead of the oldest missing one, at most: the worker keeps their units in memory.
pub const EARLY_MAX: u64 = 2048;
/// Units that are wanted again at a time, at most.
pub const WANTED_MAX: usize = 128;
/// Jobs that wait at most: with more nothing is received.
const JOBS_MAX: usize = 64;
/// What the batches of all flows take at most that are not passed on, in spans …
const HELD_MAX: usize = 512 * 1024;
/// … and what a batch takes besides its spans.
const BATCH_COST: usize = 8;
/// Bytes of all flows that wait in memory at most, since they are uncut or were read early. With more, the flow that
/// has most of them is broken off.
const WAITING_MAX: usize = 16 * 1024 * 1024;

/// The other end broke the protocol: the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// What the receiver tells the engine.
#[derive(Debug)]
pub enum Event {
    /// Content of a flow, within its credit.
    Content(u64, Bytes),
    /// How content of a flow crossed that will be passed on.
    Crossed(u64, Crossed),
    /// All of a flow's content was passed on.
    End(u64, Result<(), FetchError>),
    /// Say this to the other end.
    Say(Message),
    /// Do this; the result comes with the same number to [`Receiver::done`].
    Work(u64, Job),
}

impl Event {
    /// Whether it is of use after the connection's end: what was ready before may still be passed on, and jobs and
    /// messages go nowhere.
    pub fn outlives_connection(&self) -> bool {
        matches!(self, Self::Content(..) | Self::End(..))
    }
}

/// The receiving half of a pair's end.
#[derive(Default)]
pub struct Receiver {
    flows: BTreeMap<u64, Flow>,
    /// Payloads that are not complete, by their numbers.
    arriving: BTreeMap<u64, Arriving>,
    /// The number of the next payload whose header comes.
    payloads: u64,
    arriving_bytes: usize,
    /// All positions below have arrived, or were given to the worker.
    known: u64,
    /// So have these.
    early: BTreeSet<u64>,
    /// Flows whose first batch waits for a unit: its position, and the flow.
    lacking: BTreeSet<(u64, u64)>,
    /// Complete payloads whose dictionaries are not known yet.
    waiting: Vec<(Literals, Bytes)>,
    /// Jobs that were given out, by number.
    works: BTreeMap<u64, Work>,
    jobs: u64,
    /// Jobs that lack units, and which.
    stalled: Vec<(Work, BTreeSet<u64>)>,
    /// Units that were asked for and have not come.
    asked: BTreeSet<u64>,
    /// What the parts of all flows take, in spans.
    held: usize,
    /// Bytes of all flows that wait in memory: uncut ones, and those that were read early.
    waits: usize,
    /// Positions below are about to be removed.
    lasting: u64,
    /// The flows whose parts name positions, by the lowest of them.
    naming: BTreeSet<(u64, u64)>,
    events: VecDeque<Event>,
    /// Units that had to be asked for.
    pub wanted: u64,
    /// Flows that were broken off, since what they need is lost or took too much memory.
    pub broken_off: u64,
}

/// A job that was given out, to be repeated if it lacks a unit.
#[derive(Clone, Debug)]
enum Work {
    Unpack(Literals, Bytes),
    /// The first batch of this flow.
    Read(u64, Vec<Span>, Digest),
    Refill(u64, Bytes),
}

/// A payload that is not complete.
enum Arriving {
    Literals {
        literals: Literals,
        payload: BytesMut,
    },
    /// Uncut bytes of this flow. They come in one piece.
    Raw(u64, u32),
}

impl Receiver {
    /// A connection begins: positions below `end` are held.
    pub fn begin(&mut self, end: u64) {
        self.drop_flows();
        (self.known, self.lasting) = (end, 0);
    }

    /// The connection has ended.
    pub fn drop_flows(&mut self) {
        let events = std::mem::take(&mut self.events);
        let Self { wanted, broken_off, known, jobs, .. } = *self;
        *self = Self { wanted, broken_off, known, jobs, ..Self::default() };
        self.events.extend(events.into_iter().filter(Event::outlives_connection));
    }

    /// A flow begins.
    pub fn open(&mut self, flow: u64) {
        self.begin_flow(flow, false);
    }

    /// A TCP flow begins.
    pub fn open_tcp(&mut self, flow: u64) {
        self.begin_flow(flow, true);
    }

    fn begin_flow(&mut self, flow: u64, is_tcp: bool) {
        if self.flows.len() < FLOWS_MAX {
            self.flows.insert(flow, Flow::new(is_tcp));
        }
    }

    /// This many more bytes of a flow may be passed on.
    pub fn grant(&mut self, id: u64, bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.granted = flow.granted.saturating_add_unsigned(bytes);
            self.advance(id);
        }
    }

    /// A flow is not wanted any more.
    pub fn cancel(&mut self, id: u64) {
        if self.forget(id) {
            self.events.push_back(Event::Say(Message::Cancel(id)));
        }
    }

    /// The same, but the other end is not told: it goes on taking what this one sends. Whether there was the flow.
    pub fn forget(&mut self, id: u64) -> bool {
        let Some(flow) = self.flows.remove(&id) else { return false };
        self.held -= flow.cost();
        self.waits -= flow.uncut + flow.early;
        self.naming.remove(&(flow.lowest, id));
        flow.lacks.map(|position| self.lacking.remove(&(position, id)));
        self.stalled.retain(|(work, _)| !matches!(work, Work::Read(of, ..) if *of == id));
        true
    }

    /// A flow cannot go on.
    fn break_off(&mut self, id: u64) {
        self.broken_off += 1;
        self.cancel(id);
        self.events.push_back(Event::End(id, Err(FetchError::Truncated)));
    }

    /// Jobs that wait.
    pub fn jobs(&self) -> usize {
        self.works.len() + self.stalled.len()
    }

    /// Whether enough jobs wait: until some are done, nothing more is received.
    pub fn is_busy(&self) -> bool {
        self.works.len() >= JOBS_MAX
    }

    /// A header has come.
    pub fn batch(&mut self, mut batch: Batch) -> Result<(), Broken> {
        let horizon = self.horizon();
        if batch.spans.iter().any(|span| span.end() > horizon) {
            return Err(Broken);
        }
        let crossed = crossed(&batch);
        if let Some(literals) = batch.literals.take() {
            if !self.may_arrive(&literals, horizon) {
                return Err(Broken);
            }
            let arriving = Arriving::Literals { literals, payload: BytesMut::new() };
            self.expect(arriving);
        }
        // Units that nobody wants are kept all the same: later batches may refer to them.
        let (id, length) = (batch.flow, batch.length);
        self.add(id, length.into(), Part::Batch(batch, crossed))
    }

    /// The next payload is of this.
    fn expect(&mut self, arriving: Arriving) -> u64 {
        let number = self.payloads;
        self.payloads += 1;
        self.arriving.insert(number, arriving);
        number
    }

    /// A few uncut bytes have come.
    pub fn piece(&mut self, id: u64, bytes: Bytes) -> Result<(), Broken> {
        let length = bytes.len();
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.uncut += length;
            self.waits += length;
        }
        self.add(id, length as u64, Part::Uncut(bytes))?;
        self.spare_memory();
        Ok(())
    }

    /// Uncut bytes come as the next payload.
    pub fn raw(&mut self, id: u64, length: u32) -> Result<(), Broken> {
        // Those of a flow that nobody wants come, too.
        let number = self.expect(Arriving::Raw(id, length));
        if self.arriving.len() > ARRIVING_MAX {
            return Err(Broken);
        }
        self.add(id, length.into(), Part::Coming(number))
    }

    fn raw_came(&mut self, number: u64, id: u64, bytes: &[u8]) {
        self.arriving.remove(&number);
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let coming = |part: &&mut Part| matches!(part, Part::Coming(it) if *it == number);
        if let Some(part) = flow.parts.iter_mut().rev().find(coming) {
            *part = Part::Uncut(Bytes::copy_from_slice(bytes));
            flow.uncut += bytes.len();
            self.waits += bytes.len();
        }
        self.advance(id);
        self.spare_memory();
    }

    /// The next part of a flow has come, with this many bytes of content.
    fn add(&mut self, id: u64, length: u64, part: Part) -> Result<(), Broken> {
        let Some(flow) = self.flows.get_mut(&id) else { return Ok(()) };
        flow.held += length;
        if flow.held > flow.window() + BATCH_MAX as u64 || flow.ended.is_some() {
            return Err(Broken);
        }
        self.held += part.cost();
        let lowest = part.lowest().min(flow.lowest);
        if lowest < flow.lowest && !flow.is_hurried {
            self.naming.remove(&(flow.lowest, id));
            self.naming.insert((lowest, id));
            flow.lowest = lowest;
        }
        flow.parts.push_back(part);
        match self.held > HELD_MAX {
            true => self.break_off(id),
            false => {
                self.hurry();
                self.advance(id);
            }
        }
        Ok(())
    }

    /// No position from here on may be spoken of yet.
    fn horizon(&self) -> u64 {
        let stalled = self.stalled.iter().filter_map(|(work, _)| match work {
            Work::Unpack(literals, _) => Some(literals.first),
            Work::Read(..) | Work::Refill(..) => None,
        });
        let oldest = stalled.chain([self.known]).min().unwrap_or_default();
        oldest.saturating_add(EARLY_MAX)
    }

    /// The number of the newest payload plus one: parts name theirs by the distance from it.
    pub fn payloads(&self) -> u64 {
        self.payloads
    }

    /// A part of a payload has come.
    pub fn data(&mut self, number: u64, bytes: &[u8]) -> Result<(), Broken> {
        let (literals, payload) = match self.arriving.get_mut(&number).ok_or(Broken)? {
            Arriving::Literals { literals, payload } => (literals, payload),
            Arriving::Raw(flow, length) if *length as usize == bytes.len() => {
                let flow = *flow;
                self.raw_came(number, flow, bytes);
                return Ok(());
            }
            Arriving::Raw(..) => return Err(Broken),
        };
        payload.extend_from_slice(bytes);
        self.arriving_bytes += bytes.len();
        let (whole, length) = (literals.payload as usize, payload.len());
        if length > whole || self.arriving_bytes > ARRIVING_BYTES_MAX {
            return Err(Broken);
        }
        if length == whole
            && let Some(Arriving::Literals { literals, payload }) = self.arriving.remove(&number)
        {
            self.waiting.push((literals, payload.freeze()));
            self.unpack_what_can_be();
        }
        Ok(())
    }

    /// Whether literals have positions that did not arrive, near the others, and refer to older ones.
    fn may_arrive(&self, literals: &Literals, horizon: u64) -> bool {
        let count = literals.lengths.len() as u64;
        let Some(end) = literals.first.checked_add(count) else { return false };
        let is_known =
            literals.first < self.known || self.early.range(literals.first..end).next().is_some();
        let arriving = self.arriving.values().filter_map(|it| match it {
            Arriving::Literals { literals, .. } => Some(literals),
            Arriving::Raw(..) => None,
        });
        let mut others = arriving.chain(self.waiting.iter().map(|(literals, _)| literals));
        let is_older = |old: &Span| old.end() <= literals.first;
        end <= horizon
            && literals.dictionary.iter().all(is_older)
            && !is_known
            && !others
                .any(|it| it.first < end && literals.first < it.first + it.lengths.len() as u64)
    }

    fn unpack_what_can_be(&mut self) {
        let mut is_news = true;
        while std::mem::take(&mut is_news) {
            let mut at = 0;
            while at < self.waiting.len() {
                let (literals, _) = &self.waiting[at];
                if !literals.dictionary.iter().all(|span| self.is_known(*span)) {
                    at += 1;
                    continue;
                }
                let (literals, payload) = self.waiting.swap_remove(at);
                self.arriving_bytes = self.arriving_bytes.saturating_sub(payload.len());
                self.learn(Span { first: literals.first, count: literals.lengths.len() as u32 });
                self.start(Work::Unpack(literals, payload));
                is_news = true;
            }
        }
        self.wake();
    }

    fn is_known(&self, span: Span) -> bool {
        self.unknown(span).is_none()
    }

    /// The first position of a span that has not come.
    fn unknown(&self, span: Span) -> Option<u64> {
        let mut beyond = span.first.max(self.known)..span.end();
        beyond.find(|position| !self.early.contains(position))
    }

    fn learn(&mut self, span: Span) {
        self.early.extend(span.positions());
        while self.early.remove(&self.known) {
            self.known += 1;
        }
    }

    fn start(&mut self, work: Work) {
        let job = match &work {
            Work::Unpack(literals, payload) => Job::Unpack {
                first: literals.first,
                lengths: literals.lengths.clone(),
                dictionary: literals.dictionary.clone(),
                coding: literals.coding,
                payload: payload.clone(),
            },
            Work::Read(_, spans, digest) => Job::Read(spans.clone(), *digest),
            Work::Refill(position, bytes) => Job::Refill(*position, bytes.clone()),
        };
        self.jobs += 1;
        self.works.insert(self.jobs, work);
        self.events.push_back(Event::Work(self.jobs, job));
    }

    /// A job was done.
    pub fn done(&mut self, number: u64, done: Done) -> Result<(), Broken> {
        let Some(work) = self.works.remove(&number) else { return Ok(()) };
        match (done, work) {
            (Done::Read(units), Work::Read(id, ..)) => self.read(id, units),
            (Done::Lacks(positions), work) => self.stall(work, positions),
            (Done::Unpacked(lasting), _) => {
                self.lasting = self.lasting.max(lasting);
                self.hurry();
                Ok(())
            }
            (Done::Nothing, _) => Ok(()),
            _ => Err(Broken),
        }
    }

    fn read(&mut self, id: u64, units: Vec<Bytes>) -> Result<(), Broken> {
        let Some(flow) = self.flows.get_mut(&id) else { return Ok(()) };
        flow.is_reading = false;
        let length: usize = units.iter().map(Bytes::len).sum();
        let Some(Part::Batch(batch, crossed)) = flow.parts.pop_front() else { return Err(Broken) };
        self.held -= BATCH_COST + batch.spans.len();
        if batch.length as usize != length {
            return Err(Broken);
        }
        flow.ready.extend(units);
        flow.ready_bytes += length;
        if flow.is_hurried {
            flow.early += length;
            self.waits += length;
        }
        if flow.parts.is_empty() {
            self.naming.remove(&(flow.lowest, id));
            (flow.is_hurried, flow.lowest) = (false, u64::MAX);
        }
        self.events.push_back(Event::Crossed(id, crossed));
        self.advance(id);
        self.spare_memory();
        Ok(())
    }

    /// A job lacks units: they are asked for.
    fn stall(&mut self, work: Work, positions: Vec<u64>) -> Result<(), Broken> {
        if matches!(&work, Work::Read(id, ..) if !self.flows.contains_key(id)) {
            return Ok(());
        }
        let lacks: BTreeSet<_> = positions.into_iter().collect();
        let new: Vec<_> = lacks.difference(&self.asked).copied().collect();
        if self.asked.len() + new.len() > WANTED_MAX {
            return self.give_up(work);
        }
        self.asked.extend(&new);
        self.wanted += new.len() as u64;
        for positions in new.chunks(WANTS_MAX) {
            self.events.push_back(Event::Say(Message::Want(positions.to_vec())));
        }
        self.stalled.push((work, lacks));
        Ok(())
    }

    /// A unit that was wanted has come; empty if the other end lacks it too.
    pub fn unit(&mut self, position: u64, bytes: Bytes) -> Result<(), Broken> {
        if !self.asked.remove(&position) {
            return Err(Broken);
        }
        let stalled = std::mem::take(&mut self.stalled);
        if !bytes.is_empty() && stalled.iter().any(|(_, lacks)| lacks.contains(&position)) {
            self.start(Work::Refill(position, bytes.clone()));
        }
        for (work, mut lacks) in stalled {
            match lacks.remove(&position) {
                true if bytes.is_empty() => self.give_up(work)?,
                true if lacks.is_empty() => self.start(work),
                _ => self.stalled.push((work, lacks)),
            }
        }
        Ok(())
    }

    /// What a job was for cannot be had.
    fn give_up(&mut self, work: Work) -> Result<(), Broken> {
        match work {
            Work::Read(id, ..) => {
                self.break_off(id);
                Ok(())
            }
            // Later batches may refer to its units.
            Work::Unpack(..) | Work::Refill(..) => Err(Broken),
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Passes on what is checked and granted, and reads the next batch if there is credit for it.
    fn advance(&mut self, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        loop {
            while flow.granted > 0
                && let Some(bytes) = flow.ready.pop_front()
            {
                flow.granted -= bytes.len() as i64;
                flow.ready_bytes -= bytes.len();
                let passed = flow.early.saturating_sub(flow.ready_bytes);
                (flow.early, self.waits) = (flow.early - passed, self.waits - passed);
                flow.held = flow.held.saturating_sub(bytes.len() as u64);
                flow.unsaid += bytes.len() as u64;
                self.events.push_back(Event::Content(id, bytes));
            }
            let may = flow.granted > 0 || flow.is_hurried;
            if !may || !matches!(flow.parts.front(), Some(Part::Uncut(_))) {
                break;
            }
            if let Some(Part::Uncut(bytes)) = flow.parts.pop_front() {
                self.held -= BATCH_COST;
                flow.uncut -= bytes.len();
                flow.ready_bytes += bytes.len();
                match flow.is_hurried {
                    true => flow.early += bytes.len(),
                    false => self.waits -= bytes.len(),
                }
                flow.ready.push_back(bytes);
            }
        }
        if flow.unsaid >= flow.window() / 4 {
            let bytes = std::mem::take(&mut flow.unsaid);
            self.events.push_back(Event::Say(Message::Credit(id, bytes)));
        }
        // A connection that is broken off does not wait for a reader that takes no more.
        let is_stuck = flow.is_tcp && flow.granted <= 0;
        if let (true, Some(Err(why))) = (is_stuck, flow.ended) {
            self.forget(id);
            self.events.push_back(Event::End(id, Err(why)));
            return;
        }
        if flow.is_reading || (!flow.ready.is_empty() && !flow.is_hurried) {
            return;
        }
        let may_read = flow.granted > 0 || flow.is_hurried;
        match (flow.parts.front(), flow.ended) {
            (None, Some(result)) if flow.ready.is_empty() => {
                self.naming.remove(&(flow.lowest, id));
                self.flows.remove(&id);
                self.events.push_back(Event::End(id, result));
            }
            (Some(Part::Batch(batch, _)), _) if may_read => {
                let (spans, digest) = (batch.spans.clone(), batch.digest);
                self.read_batch(id, spans, digest);
            }
            _ => {}
        }
    }

    /// Reads the first batch of a flow, if all of its units are there.
    fn read_batch(&mut self, id: u64, spans: Vec<Span>, digest: Digest) {
        let lacks = spans.iter().find_map(|span| self.unknown(*span));
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let lacked = std::mem::replace(&mut flow.lacks, lacks);
        lacked.map(|position| self.lacking.remove(&(position, id)));
        if let Some(position) = lacks {
            self.lacking.insert((position, id));
            return;
        }
        flow.is_reading = true;
        self.start(Work::Read(id, spans, digest));
    }

    /// The content of a flow has ended.
    pub fn finish(&mut self, id: u64, result: Result<(), FetchError>) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.ended = Some(result);
            self.advance(id);
        }
    }
}

/// How a batch crossed: what it has besides literals was referred to, and literals with a dictionary are
/// differences.
fn crossed(batch: &Batch) -> Crossed {
    let literals = batch.literals.as_ref();
    let new: u64 = literals.iter().flat_map(|it| &it.lengths).map(|it| u64::from(*it)).sum();
    let differs = literals.is_some_and(|it| !it.dictionary.is_empty());
    Crossed {
        reference: u64::from(batch.length).saturating_sub(new),
        difference: if differs { new.min(batch.length.into()) } else { 0 },
    }
}
