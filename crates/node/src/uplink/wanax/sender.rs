//! S: cuts flows into roots, has them listed, and keeps each until R acknowledges it (Wanax §3.1).
//!
//! *In:* content of flows, credit, acknowledgements, requests, results of jobs. *Out:* jobs, and, when the connection
//! takes some more, the next headers and payloads.

use super::{
    ChunkName, Done, Job, LEAVES_MAX, Listing, PAYLOAD_MAX, Published, REQUESTS_MAX, ROOT_MAX,
    ROOTS_MAX, STEP, UNACKED_MAX, WINDOW,
};
use crate::hasher::Map;
use crate::input::FetchError;
use crate::uplink::FLOWS_MAX;
use crate::uplink::messages::Message;
use crate::uplink::receiver::Broken;
use crate::uplink::schedule::{AHEAD, JOBS_MAX, SHORT, Shares, Turn, UNSENT_MAX};
use crate::uplink::sender::{ABORTED_MAX, PAUSE, PAUSE_TCP, Record};
use crate::uplink::tcp::Kind;
use bytes::{Bytes, BytesMut};
use content::nested::{Nested, Root};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use wire::Instant;

/// What a root may take until it is acknowledged.
const COST_MAX: usize = ROOT_MAX + PAYLOAD_MAX;

/// One flow's content on its way.
struct Flow {
    client: u64,
    cutter: Nested,
    /// The root that is being cut.
    partial: Root,
    /// Whole roots, each with the ends of its chunks.
    roots: VecDeque<(Bytes, Vec<Vec<u32>>)>,
    /// Bytes in `partial` and `roots`.
    queued: usize,
    /// How many more bytes R lets cross.
    credit: u64,
    outgoing: VecDeque<Outgoing>,
    /// Bytes of payloads that have crossed.
    crossed: u64,
    /// The sender's count when it was this flow's turn last.
    turn: u64,
    /// A root ends after a pause this long.
    pause: Duration,
    ended: Option<Result<(), FetchError>>,
    /// When content arrived last.
    touched: Instant,
    /// R does not want it any more.
    is_cancelled: bool,
}

/// A root that is being listed, is ready, or is partly sent.
struct Outgoing {
    root: Bytes,
    /// `None` while it is being listed.
    ready: Option<(Arc<Listing>, Bytes)>,
    sent: usize,
    /// Its number among payloads, once its header is sent.
    number: Option<u64>,
}

/// A root whose header is sent and that is not acknowledged.
struct Kept {
    root: Bytes,
    listing: Arc<Listing>,
    /// Where its chunks are, once one was asked for.
    places: Option<Map<ChunkName, Range<usize>>>,
    cost: usize,
}

/// Chunks that R has asked for.
struct Supply {
    lengths: Vec<u32>,
    payload: Bytes,
    sent: usize,
    /// Its number among payloads, once its header is sent.
    number: Option<u64>,
}

/// S of a pair's end.
#[derive(Default)]
pub struct Sender {
    averages: Vec<u32>,
    flows: BTreeMap<u64, Flow>,
    shares: Shares,
    /// Which flow's root a job lists.
    listing: BTreeMap<u64, u64>,
    /// By their payloads' numbers.
    kept: BTreeMap<u64, Kept>,
    /// What roots take that are listed and not acknowledged.
    unacked: usize,
    /// Bytes of payloads that are not sent.
    unsent: usize,
    /// The number of the next payload.
    payloads: u64,
    /// Heads, and ends of flows.
    due: VecDeque<Message>,
    supplies: VecDeque<Supply>,
    supply_bytes: usize,
    /// Turns that flows have had.
    turns: u64,
    /// Bytes of content that crossed as names, and as they are.
    pub as_references: u64,
    pub as_new: u64,
    /// Bytes of lists of names.
    pub name_bytes: u64,
}

impl Sender {
    /// A connection of this scheme begins.
    pub fn begin(&mut self, scheme: Published) {
        self.drop_flows();
        self.averages = scheme.averages();
    }

    /// The connection has ended: nothing is on its way.
    pub fn drop_flows(&mut self) {
        self.flows.clear();
        self.listing.clear();
        self.kept.clear();
        self.due.clear();
        self.supplies.clear();
        (self.unacked, self.unsent, self.supply_bytes, self.payloads) = (0, 0, 0, 0);
    }

    /// A flow begins, for this client.
    pub fn open(&mut self, now: Instant, flow: u64, client: u64, kind: Kind) {
        let state = Flow {
            client,
            cutter: Nested::new(&self.averages),
            partial: Root::default(),
            roots: VecDeque::new(),
            queued: 0,
            credit: WINDOW,
            outgoing: VecDeque::new(),
            crossed: 0,
            turn: 0,
            pause: if kind == Kind::Http { PAUSE } else { PAUSE_TCP },
            ended: None,
            touched: now,
            is_cancelled: false,
        };
        self.flows.insert(flow, state);
    }

    /// What goes before a flow's content.
    pub fn head(&mut self, flow: u64, head: Message) {
        if self.flows.get(&flow).is_some_and(|flow| !flow.is_cancelled) {
            self.due.push_back(head);
        }
    }

    /// Content of a flow.
    pub fn push(&mut self, now: Instant, flow: u64, bytes: &[u8]) {
        let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.is_cancelled) else {
            return;
        };
        flow.touched = now;
        flow.cut(bytes);
    }

    /// A flow's content has ended.
    pub fn finish(&mut self, flow: u64, result: Result<(), FetchError>) {
        let Some(flow) = self.flows.get_mut(&flow) else { return };
        flow.cut_off();
        flow.ended = Some(result);
    }

    /// A flow's source has broken off. What it said last still crosses, unless that is much, or R takes no more.
    pub fn abort(&mut self, flow: u64, why: FetchError) {
        let Some(it) = self.flows.get_mut(&flow) else { return };
        if it.queued > ABORTED_MAX || it.credit == 0 {
            it.drop_queued();
        }
        self.finish(flow, Err(why));
    }

    /// R does not want this flow. What R has heard of still crosses.
    pub fn cancel(&mut self, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        flow.is_cancelled = true;
        flow.drop_queued();
        let all = std::mem::take(&mut flow.outgoing);
        let (begun, others): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|it| it.number.is_some());
        flow.outgoing = begun;
        for (listing, payload) in others.into_iter().filter_map(|it| it.ready) {
            self.unacked -= cost_of(&listing, &payload);
            self.unsent -= payload.len();
        }
        if flow.outgoing.is_empty() {
            self.flows.remove(&id);
        }
    }

    /// R has passed on some of a flow.
    pub fn credit(&mut self, flow: u64, bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.credit = flow.credit.saturating_add(bytes).min(WINDOW);
        }
    }

    /// How many more bytes of a flow's content may wait here.
    pub fn room(&self, flow: u64) -> u64 {
        match self.flows.get(&flow) {
            Some(flow) if flow.ended.is_none() => flow.room(),
            _ => 0,
        }
    }

    /// All flows.
    pub fn flows(&self) -> impl Iterator<Item = u64> {
        self.flows.keys().copied()
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// How many bytes of a flow's content wait here.
    pub fn queued(&self, flow: u64) -> usize {
        self.flows.get(&flow).map_or(0, |flow| flow.queued)
    }

    /// All bytes that wait.
    pub fn waiting(&self) -> u64 {
        let queued: usize = self.flows.values().map(|flow| flow.queued).sum();
        (queued + self.unsent + self.supply_bytes) as u64
    }

    /// What roots take at R that are listed and not acknowledged, in bytes.
    #[cfg(test)]
    pub fn unacked(&self) -> usize {
        self.unacked
    }

    /// Whether anything of this flow is still to cross.
    pub fn has(&self, flow: u64) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Has roots listed; returns jobs, each with the flow that it is for.
    pub fn prepare(&mut self, now: Instant) -> Vec<(u64, Job)> {
        let mut jobs = Vec::new();
        let busy = self.flows.iter().filter(|(_, flow)| !flow.is_idle());
        let mut turns: Vec<_> = busy.map(|(id, flow)| self.turn(*id, flow)).collect();
        turns.sort_unstable();
        for (_, id) in turns {
            while self.may_prepare(id, jobs.len()) {
                let Some(flow) = self.flows.get_mut(&id) else { break };
                let Some((root, ends)) = flow.roots.pop_front() else { break };
                flow.queued -= root.len();
                flow.credit = flow.credit.saturating_sub(root.len() as u64);
                let outgoing = Outgoing { root: root.clone(), ready: None, sent: 0, number: None };
                flow.outgoing.push_back(outgoing);
                jobs.push((id, Job::List { now, root, ends }));
            }
            self.finish_if_drained(id);
        }
        jobs
    }

    fn turn(&self, id: u64, flow: &Flow) -> (Turn, u64) {
        (self.shares.turn(flow.client, flow.crossed, flow.turn), id)
    }

    fn may_prepare(&self, id: u64, new_jobs: usize) -> bool {
        let Some(flow) = self.flows.get(&id) else { return false };
        let listing = self.listing.len() + new_jobs;
        let is_short = flow.crossed < SHORT && flow.outgoing.is_empty();
        let is_turn = is_short || (self.unsent < UNSENT_MAX && listing < JOBS_MAX);
        // R takes more than that for a fault.
        let fits = self.unacked + (listing + 1) * COST_MAX <= UNACKED_MAX
            && self.kept.len() + AHEAD * FLOWS_MAX < ROOTS_MAX;
        is_turn && fits && flow.outgoing.len() < AHEAD && flow.credit > 0
    }

    fn finish_if_drained(&mut self, id: u64) {
        let Some(flow) = self.flows.get(&id) else { return };
        if !flow.outgoing.is_empty() || !flow.roots.is_empty() {
            return;
        }
        match flow.ended {
            _ if flow.is_cancelled => _ = self.flows.remove(&id),
            Some(result) => {
                self.flows.remove(&id);
                self.due.push_back(Message::Finish(id, result));
            }
            None => {}
        }
    }

    /// A job was given this number.
    pub fn is_listing(&mut self, job: u64, flow: u64) {
        self.listing.insert(job, flow);
    }

    /// A job was done.
    pub fn done(&mut self, job: u64, done: Done) {
        let flow = self.listing.remove(&job).and_then(|id| self.flows.get_mut(&id));
        let (Some(flow), Done::Listed(listing, payload)) = (flow, done) else { return };
        // Jobs are done in order.
        let waiting = flow.outgoing.iter_mut().find(|outgoing| outgoing.ready.is_none());
        let Some(outgoing) = waiting else { return };
        let (all, new) = listing.lengths();
        self.as_references += (all - new) as u64;
        self.as_new += new as u64;
        self.name_bytes += (payload.len() - new) as u64;
        self.unsent += payload.len();
        self.unacked += cost_of(&listing, &payload);
        outgoing.ready = Some((listing, payload));
    }

    /// R has put this root together.
    pub fn acknowledged(&mut self, number: u64) {
        if let Some(kept) = self.kept.remove(&number) {
            self.unacked -= kept.cost;
        }
    }

    /// R lacks chunks of a root.
    ///
    /// # Errors
    /// If it asks for more than it may.
    pub fn requested(&mut self, number: u64, names: &[ChunkName]) -> Result<(), Broken> {
        let (mut lengths, mut payload) = (Vec::with_capacity(names.len()), BytesMut::new());
        let mut kept = self.kept.get_mut(&number);
        for name in names {
            let found = kept.as_mut().and_then(|kept| kept.chunk(name));
            lengths.push(found.map_or(0, <[u8]>::len) as u32);
            payload.extend_from_slice(found.unwrap_or_default());
            if payload.len() > ROOT_MAX {
                return Err(Broken);
            }
        }
        self.supply_bytes += payload.len();
        if self.supplies.len() >= REQUESTS_MAX || self.supply_bytes > UNACKED_MAX {
            return Err(Broken);
        }
        self.as_references = self.as_references.saturating_sub(payload.len() as u64);
        self.as_new += payload.len() as u64;
        let supply = Supply { lengths, payload: payload.freeze(), sent: 0, number: None };
        self.supplies.push_back(supply);
        Ok(())
    }

    /// The number of the next payload.
    pub fn payloads(&self) -> u64 {
        self.payloads
    }

    /// Fills a record with about `room` bytes at most of what is next: what R waits for, then new roots.
    pub fn fill(&mut self, mut room: usize, record: &mut Record) {
        while room > 0 {
            if let Some(message) = self.due.pop_front() {
                room = room.saturating_sub(message.weight());
                record.messages.push(message);
                continue;
            }
            if !self.supplies.is_empty() {
                room = room.saturating_sub(self.supply(room, record));
                continue;
            }
            let ready = self.flows.iter().filter(|(_, flow)| flow.is_ready());
            let Some((_, id)) = ready.map(|(id, flow)| self.turn(*id, flow)).min() else { break };
            room = room.saturating_sub(self.send(id, room, record));
        }
    }

    /// Sends the next part of the first answer; returns what it took.
    fn supply(&mut self, room: usize, record: &mut Record) -> usize {
        let Some(supply) = self.supplies.front_mut() else { return 0 };
        let mut took = 0;
        let number = *supply.number.get_or_insert_with(|| {
            let message = Message::Chunks(supply.lengths.clone());
            took = message.weight();
            record.messages.push(message);
            let number = self.payloads;
            self.payloads += u64::from(!supply.payload.is_empty());
            number
        });
        let part = (supply.payload.len() - supply.sent).min(room.saturating_sub(took).max(1));
        if part > 0 {
            record.data.push((number, supply.payload.slice(supply.sent..supply.sent + part)));
            supply.sent += part;
            self.supply_bytes -= part;
        }
        if supply.sent == supply.payload.len() {
            self.supplies.pop_front();
        }
        took + part
    }

    /// Sends the next part of a flow's first root; returns what it took.
    fn send(&mut self, id: u64, room: usize, record: &mut Record) -> usize {
        let Some(flow) = self.flows.get_mut(&id) else { return room };
        let Some(outgoing) = flow.outgoing.front_mut() else { return room };
        let Some((listing, payload)) = &outgoing.ready else { return room };
        let mut took = 0;
        let number = *outgoing.number.get_or_insert_with(|| {
            let (all, new) = listing.lengths();
            let message = Message::Root {
                flow: id,
                length: all as u32,
                listing: (payload.len() - new) as u32,
                payload: payload.len() as u32,
            };
            took = message.weight();
            record.messages.push(message);
            let cost = cost_of(listing, payload);
            let (root, listing) = (outgoing.root.clone(), listing.clone());
            let kept = Kept { root, listing, places: None, cost };
            self.kept.insert(self.payloads, kept);
            self.payloads += 1;
            self.payloads - 1
        });
        let part = (payload.len() - outgoing.sent).min(room.saturating_sub(took).max(1));
        record.data.push((number, payload.slice(outgoing.sent..outgoing.sent + part)));
        outgoing.sent += part;
        self.unsent -= part;
        if outgoing.sent == payload.len() {
            flow.outgoing.pop_front();
        }
        self.turns += 1;
        flow.turn = self.turns;
        flow.crossed += part as u64;
        self.shares.serve(flow.client, (took + part) as u64);
        self.finish_if_drained(id);
        took + part
    }

    /// Whether [`fill`](Self::fill) has something to send.
    pub fn is_ready(&self) -> bool {
        let has_some = !self.due.is_empty() || !self.supplies.is_empty();
        has_some || self.flows.values().any(Flow::is_ready)
    }

    /// When a root that is being cut must end.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pausing = self.flows.values().filter(|flow| flow.is_pausing());
        pausing.map(|flow| flow.touched + flow.pause).min()
    }

    /// Ends roots whose flows have paused.
    pub fn handle_timeout(&mut self, now: Instant) {
        for flow in self.flows.values_mut() {
            if flow.is_pausing() && flow.touched + flow.pause <= now {
                flow.cut_off();
            }
        }
    }
}

/// What a root takes at both ends until it is acknowledged.
fn cost_of(listing: &Listing, payload: &Bytes) -> usize {
    listing.lengths().0 + payload.len()
}

impl Kept {
    /// The chunk of this name.
    fn chunk(&mut self, name: &ChunkName) -> Option<&[u8]> {
        let places = self.places.get_or_insert_with(|| self.listing.places().collect());
        self.root.get(places.get(name)?.clone())
    }
}

impl Flow {
    fn cut(&mut self, mut bytes: &[u8]) {
        self.queued += bytes.len();
        while !bytes.is_empty() {
            let (taken, is_whole) =
                self.cutter.take(&bytes[..bytes.len().min(STEP)], &mut self.partial);
            bytes = &bytes[taken..];
            let leaves = self.partial.ends.last().map_or(0, Vec::len);
            if is_whole {
                self.end_root();
            } else if leaves >= LEAVES_MAX {
                self.cut_off();
            }
        }
    }

    /// Ends the root that is being cut.
    fn cut_off(&mut self) {
        if !self.partial.bytes.is_empty() && self.cutter.finish(&mut self.partial) {
            self.end_root();
        }
    }

    fn end_root(&mut self) {
        // The next one is cut as if nothing were before it.
        self.cutter.restart();
        let root = std::mem::take(&mut self.partial);
        self.roots.push_back((root.bytes.into(), root.ends));
    }

    /// Forgets what waits to be listed.
    fn drop_queued(&mut self) {
        self.roots.clear();
        self.partial.bytes.clear();
        self.queued = 0;
    }

    /// Nothing is to be listed, and more may come.
    fn is_idle(&self) -> bool {
        self.roots.is_empty() && self.ended.is_none() && !self.is_cancelled
    }

    fn room(&self) -> u64 {
        let ahead = (2 * ROOT_MAX as u64).min(self.credit);
        ahead.saturating_sub(self.queued as u64)
    }

    /// Nothing else is under way, and more could have come.
    fn is_pausing(&self) -> bool {
        let is_idle = self.roots.is_empty() && self.outgoing.is_empty();
        is_idle && !self.partial.bytes.is_empty() && self.room() > 0
    }

    fn is_ready(&self) -> bool {
        self.outgoing.front().is_some_and(|outgoing| outgoing.ready.is_some())
    }
}
