//! The sending half: cuts flows into units, finds those that have crossed before, and lets the others cross as
//! differences from what is most like them.
//!
//! *In:* content of flows, credit, results of jobs. *Out:* jobs, and, when the connection takes some more, the
//! next headers and payloads. *What it never does:* read an old unit; it knows their names, features and
//! lengths (`index.rs`).

mod flow;
mod queues;

use super::dictionary::dictionary;
use super::index::Index;
use super::messages::{Batch, Coding, Literals, Message};
use super::schedule::{AHEAD, JOBS_MAX, Rate, UNSENT_MAX};
use super::tcp::Kind;
use super::work::Job;
use super::{BATCH_MAX, LITERALS_MAX, digest_of};
use crate::input::FetchError;
use bytes::Bytes;
pub use flow::{ABORTED_MAX, PAUSE, PAUSE_TCP};
use flow::{Flow, Outgoing, Picked, cost_of};
use queues::{Place, Queues};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use store::{HistoryState, Mark};
use wire::Instant;

/// Units that may have positions while an older one is not sent, about: the receiver keeps them in memory.
const UNORDERED_MAX: u64 = 512;

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
    queues: Queues,
    /// Those that have more room or less than their source was told, or have crossed.
    changed: BTreeSet<u64>,
    /// Bytes of content that wait in all flows.
    queued: usize,
    /// Which flow's batch a job packs.
    packing: BTreeMap<u64, u64>,
    /// Bytes of payloads that are not sent.
    unsent: usize,
    /// The number of the next payload.
    payloads: u64,
    /// Heads whose content lets them wait, and ends of flows.
    due: VecDeque<Message>,
    /// Their bytes, about.
    due_bytes: usize,
    /// Bytes of units that crossed as references, with a dictionary, and without one.
    pub as_references: u64,
    pub as_differences: u64,
    pub as_new: u64,
    /// Bytes of content that crossed uncut.
    pub uncut: u64,
    /// Turns that flows have had.
    turns: u64,
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
            queues: Queues::default(),
            changed: BTreeSet::new(),
            queued: 0,
            packing: BTreeMap::new(),
            unsent: 0,
            payloads: 0,
            due: VecDeque::new(),
            due_bytes: 0,
            as_references: 0,
            as_differences: 0,
            as_new: 0,
            uncut: 0,
            turns: 0,
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
        self.queues.clear();
        self.changed.clear();
        self.packing.clear();
        self.due.clear();
        (self.unsent, self.payloads, self.queued, self.due_bytes) = (0, 0, 0, 0);
    }

    /// How many units the index has.
    pub fn units(&self) -> usize {
        self.index.len()
    }

    /// The index has at most this many units from now on.
    pub fn limit(&mut self, units_max: usize) {
        self.index.limit(units_max);
    }

    /// The receiver does not hold older positions any more.
    pub fn raise_floor(&mut self, floor: u64) {
        self.index.raise_floor(floor);
    }

    /// A flow begins, for this client. `url` is a hash of the URL, or of the server of a TCP flow, or zero.
    pub fn open(&mut self, now: Instant, flow: u64, client: u64, kind: Kind, url: u64) {
        let mut new = Flow::new(now, flow, client, kind);
        new.expect(url, self.index.of_url(url));
        self.flows.insert(flow, new);
    }

    /// What goes before a flow's content.
    pub fn head(&mut self, now: Instant, flow: u64, head: Message) {
        self.with(flow, |flow| {
            if !flow.is_cancelled {
                flow.head = Some((head, now + HEAD_WAIT));
            }
        });
    }

    /// Content of a flow.
    pub fn push(&mut self, now: Instant, flow: u64, bytes: &[u8]) {
        let Some(it) = self.flows.get(&flow).filter(|flow| !flow.is_cancelled) else { return };
        let is_short_again = it.is_sparse(now) && !self.queues.is_ahead(it.client);
        self.with(flow, |flow| {
            if is_short_again {
                flow.crossed = 0;
            }
            flow.push(now, bytes);
        });
    }

    /// A flow's content has ended.
    pub fn finish(&mut self, flow: u64, result: Result<(), FetchError>) {
        self.with(flow, |flow| flow.end(result));
    }

    /// A flow's source has broken off. What it said last still crosses, unless that is much.
    pub fn abort(&mut self, flow: u64, why: FetchError) {
        self.with(flow, |flow| flow.abort(why));
    }

    /// The receiver does not want this flow.
    pub fn cancel(&mut self, id: u64) {
        if self.with(id, Flow::cancel) == Some(true) {
            self.remove(id);
        }
    }

    /// The receiver has passed on some of a flow.
    pub fn credit(&mut self, flow: u64, bytes: u64) {
        self.with(flow, |flow| flow.allow(bytes));
    }

    /// Changes a flow, if there is such a one.
    fn with<T>(&mut self, id: u64, change: impl FnOnce(&mut Flow) -> T) -> Option<T> {
        let flow = self.flows.get_mut(&id)?;
        let before = flow.queued;
        let outcome = change(flow);
        self.queued = self.queued + flow.queued - before;
        self.changed.insert(id);
        self.place(id);
        Some(outcome)
    }

    /// Puts a flow where it stands now.
    fn place(&mut self, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let now = Place::of(flow);
        let before = std::mem::replace(&mut flow.place, now);
        self.queues.move_to(id, flow.client, before, now);
    }

    fn remove(&mut self, id: u64) -> Option<Flow> {
        let flow = self.flows.remove(&id)?;
        self.queues.move_to(id, flow.client, flow.place, Place::default());
        Some(flow)
    }

    /// Adds the flows to `all` that have more room or less since this was called last, or have crossed.
    pub fn take_changed(&mut self, all: &mut BTreeSet<u64>) {
        all.append(&mut self.changed);
    }

    /// How many more bytes of a flow's content may wait here.
    pub fn room(&self, flow: u64) -> u64 {
        let flow = self.flows.get(&flow).filter(|flow| flow.ended.is_none());
        flow.map_or(0, Flow::room)
    }

    /// How many bytes of a flow's content wait here.
    pub fn queued(&self, flow: u64) -> usize {
        self.flows.get(&flow).map_or(0, |flow| flow.queued)
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// All bytes that wait.
    pub fn waiting(&self) -> u64 {
        (self.queued + self.unsent) as u64
    }

    /// Whether anything of this flow is still to cross.
    pub fn has(&self, flow: u64) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Makes batches of what waits; returns jobs, each with the flow that it is for.
    pub fn prepare(&mut self, now: Instant, rate: &Rate) -> Vec<(u64, Job)> {
        self.handle_timeout(now);
        let mut jobs = Vec::new();
        let end = self.oldest_unsent() + UNORDERED_MAX;
        while self.index.end() < end
            && let Some(id) = self.next_to_batch(jobs.len())
        {
            jobs.extend(self.make_batch(id, rate.level()).map(|job| (id, job)));
            self.place(id);
        }
        for id in self.queues.take_over() {
            self.finish_if_drained(id);
        }
        jobs
    }

    /// All units before this position are sent, and so is all that was put together before it: what a batch names is not
    /// far from being sent.
    fn oldest_unsent(&self) -> u64 {
        self.queues.oldest_placed().unwrap_or_else(|| self.index.end())
    }

    fn next_to_batch(&self, new_jobs: usize) -> Option<u64> {
        let has_room = self.unsent < UNSENT_MAX && self.packing.len() + new_jobs < JOBS_MAX;
        self.queues.next_to_batch(has_room)
    }

    fn finish_if_drained(&mut self, id: u64) {
        let Some(flow) = self.flows.get(&id) else { return };
        if !flow.is_drained() {
            return;
        }
        match flow.ended {
            _ if flow.is_cancelled => {
                self.remove(id);
                self.changed.insert(id);
            }
            Some(result) => {
                self.changed.insert(id);
                let flow = self.remove(id);
                flow.and_then(|flow| flow.head).into_iter().for_each(|(head, _)| self.say(head));
                self.say(Message::Finish(id, result));
            }
            None => {}
        }
    }

    fn say(&mut self, message: Message) {
        self.due_bytes += message.weight();
        self.due.push_back(message);
    }

    /// Bytes of the heads and ends that go before all content, about.
    pub fn due_bytes(&self) -> usize {
        self.due_bytes
    }

    /// The next batch of a flow; a job if it has literals.
    fn make_batch(&mut self, id: u64, level: i32) -> Option<Job> {
        let flow = self.flows.get_mut(&id)?;
        let (first, expected, level) = (self.index.end(), flow.expected, flow.level(level));
        let Picked { spans, names, literals, alike, length, literal_bytes } =
            flow.pick(&mut self.index);
        self.queued -= length;
        self.changed.insert(id);
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
        let cost = cost_of(&batch);
        flow.batches.push_back(Outgoing::new(batch, first));
        if literals.is_empty() {
            flow.kind.judge(length as u64, cost);
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
        let Some(id) = self.packing.remove(&job) else { return };
        let Some(flow) = self.flows.get_mut(&id) else { return };
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
        let cost = cost_of(&outgoing.batch) + payload.len() as u64;
        let length = outgoing.batch.length.into();
        outgoing.payload = Some(payload);
        flow.kind.judge(length, cost);
        self.place(id);
    }

    /// The number of the next payload.
    pub fn payloads(&self) -> u64 {
        self.payloads
    }

    /// Fills a record with about `room` bytes at most of what is next.
    pub fn fill(&mut self, mut room: usize, record: &mut Record) {
        while room > 0 {
            if let Some(message) = self.due.pop_front() {
                self.due_bytes -= message.weight();
                room = room.saturating_sub(message.weight());
                record.messages.push(message);
                continue;
            }
            let Some(id) = self.queues.next_to_send() else { break };
            let Some(flow) = self.flows.get_mut(&id) else { break };
            let took = flow.send(&mut self.payloads, room, record);
            self.turns += 1;
            flow.turn = self.turns;
            flow.crossed += took.bytes();
            self.unsent = self.unsent.saturating_sub(took.payload as usize);
            self.uncut += took.uncut;
            self.queued -= took.uncut as usize;
            if took.uncut > 0 {
                self.changed.insert(id);
            }
            self.queues.serve(flow.client, took.bytes());
            self.place(id);
            room = room.saturating_sub(took.bytes() as usize);
            self.finish_if_drained(id);
        }
    }

    /// Whether [`fill`](Self::fill) has something to send.
    pub fn is_ready(&self) -> bool {
        !self.due.is_empty() || self.queues.next_to_send().is_some()
    }

    /// When a unit that is being cut must end, or a head waits no longer.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.queues.poll_timeout()
    }

    /// Ends units whose flows have paused, and lets heads go.
    pub fn handle_timeout(&mut self, now: Instant) {
        for id in self.queues.due(now) {
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            let head = flow.head.take_if(|(_, until)| *until <= now);
            flow.handle_timeout(now);
            head.into_iter().for_each(|(head, _)| self.say(head));
            self.place(id);
        }
    }
}
