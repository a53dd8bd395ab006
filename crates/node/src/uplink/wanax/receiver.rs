//! R: has roots put together, asks S for what is missing, and passes content on as far as credit allows (Wanax §3.1).
//!
//! *In:* headers and payloads, credit, results of jobs. *Out:* jobs, content, what the other end is to be told.

use super::assemble::Parts;
use super::{
    ChunkName, Counts, Done, Job, Listing, NAMES_MAX, PAYLOAD_MAX, REQUESTS_MAX, ROOT_MAX,
    ROOTS_MAX, UNACKED_MAX, WINDOW,
};
use crate::crossed::Crossed;
use crate::input::FetchError;
use crate::uplink::messages::Message;
use crate::uplink::receiver::{Broken, Event};
use crate::uplink::work::Job as Work;
use crate::uplink::{FLOWS_MAX, UNIT_MAX};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Jobs that wait at most: with more nothing is received.
const JOBS_MAX: usize = 16;
/// Content that is put together and not passed on at most, of all flows, in bytes.
const HELD_MAX: usize = 32 * 1024 * 1024;
/// What a root takes besides its bytes until it is passed on.
const ROOT_COST: usize = 256;

/// R of a pair's end.
#[derive(Default)]
pub struct Receiver {
    flows: BTreeMap<u64, Flow>,
    /// Payloads that are not complete, by their numbers.
    arriving: BTreeMap<u64, Arriving>,
    /// The number of the next payload whose header comes.
    payloads: u64,
    /// Roots that are not acknowledged, by their payloads' numbers.
    roots: BTreeMap<u64, Waiting>,
    /// What they take.
    unacked: usize,
    /// Which root a job is for.
    works: BTreeMap<u64, u64>,
    jobs: u64,
    /// Requests that are not answered, and those that are to follow.
    requests: VecDeque<Request>,
    later: VecDeque<Request>,
    /// What content in `flows` takes, in bytes.
    held: usize,
    events: VecDeque<Event>,
    /// Chunks that S believed to be here and that had to be asked for.
    pub wrong_hints: u64,
    /// What the store has done.
    pub counts: Counts,
}

/// Chunks of a root that are missing.
type Request = (u64, Vec<ChunkName>);

struct Arriving {
    what: What,
    /// Bytes that are still to come.
    left: usize,
    payload: BytesMut,
}

/// What a payload is.
enum What {
    /// The list of a root, which has this length, and its content.
    Root(usize),
    /// Chunks of these lengths that were asked for.
    Chunks(Request, Vec<u32>),
    /// Chunks of a root that is given up.
    Unwanted,
}

/// A root whose header has come.
struct Waiting {
    flow: u64,
    length: usize,
    cost: usize,
    /// Once its payload is there.
    parts: Option<Parts>,
    /// What was asked for and has not come, with its length.
    lacks: BTreeMap<ChunkName, u32>,
}

#[derive(Default)]
struct Flow {
    /// Its roots in order, with their content once it is there.
    roots: VecDeque<(u64, Option<Bytes>)>,
    /// How many more bytes may be passed on; negative if the last piece was larger.
    granted: i64,
    /// Bytes of roots whose headers have come and that were not passed on.
    held: u64,
    /// What those take that are put together.
    charged: usize,
    /// Bytes that were passed on since the last credit was said.
    unsaid: u64,
    ended: Option<Result<(), FetchError>>,
}

impl Receiver {
    /// The connection has ended, or another begins.
    pub fn drop_flows(&mut self) {
        let events = std::mem::take(&mut self.events);
        let Self { wrong_hints, counts, jobs, .. } = *self;
        *self = Self { wrong_hints, counts, jobs, ..Self::default() };
        self.events.extend(events.into_iter().filter(Event::outlives_connection));
    }

    /// A flow begins.
    pub fn open(&mut self, flow: u64) {
        if self.flows.len() < FLOWS_MAX {
            self.flows.insert(flow, Flow::default());
        }
    }

    /// This many more bytes of a flow may be passed on.
    pub fn grant(&mut self, id: u64, bytes: u64) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.granted = flow.granted.saturating_add_unsigned(bytes);
            self.advance(id);
        }
    }

    /// A flow is not wanted any more. Its roots that have come are stored all the same: S believes so.
    pub fn cancel(&mut self, id: u64) {
        if self.forget(id) {
            self.events.push_back(Event::Say(Message::Cancel(id)));
        }
    }

    /// The same, but the other end is not told. Whether there was the flow.
    pub fn forget(&mut self, id: u64) -> bool {
        let Some(flow) = self.flows.remove(&id) else { return false };
        self.held -= flow.charged;
        true
    }

    /// A flow cannot go on.
    fn break_off(&mut self, id: u64) {
        self.cancel(id);
        self.events.push_back(Event::End(id, Err(FetchError::Truncated)));
    }

    /// Jobs that wait.
    pub fn jobs(&self) -> usize {
        self.works.len()
    }

    /// Whether enough jobs wait: until some are done, nothing more is received.
    pub fn is_busy(&self) -> bool {
        self.works.len() >= JOBS_MAX
    }

    /// A root's header has come: the lengths of its content, of its list, of its payload.
    pub fn root(&mut self, id: u64, lengths: [u32; 3]) -> Result<(), Broken> {
        let [length, listing, payload] = lengths.map(|length| length as usize);
        let cost = length + payload;
        self.unacked += cost;
        let is_sound = (1..=ROOT_MAX).contains(&length) && (1..=payload).contains(&listing);
        let fits = self.unacked <= UNACKED_MAX && self.roots.len() < ROOTS_MAX;
        if !is_sound || !fits || payload > PAYLOAD_MAX {
            return Err(Broken);
        }
        let number = self.payloads;
        self.payloads += 1;
        let what = What::Root(listing);
        self.arriving.insert(number, Arriving { what, left: payload, payload: BytesMut::new() });
        let waiting = Waiting { flow: id, length, cost, parts: None, lacks: BTreeMap::new() };
        self.roots.insert(number, waiting);
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.held += length as u64;
            if flow.held > WINDOW + ROOT_MAX as u64 || flow.ended.is_some() {
                return Err(Broken);
            }
            flow.roots.push_back((number, None));
        }
        Ok(())
    }

    /// The answer to the oldest request has come.
    pub fn chunks(&mut self, lengths: Vec<u32>) -> Result<(), Broken> {
        let request = self.requests.pop_front().ok_or(Broken)?;
        let length: usize = lengths.iter().map(|length| *length as usize).sum();
        if lengths.len() != request.1.len() || length > ROOT_MAX {
            return Err(Broken);
        }
        self.ask();
        let what = match self.roots.get(&request.0) {
            Some(waiting) => {
                let is_asked = |(name, length): (&ChunkName, &u32)| {
                    *length == 0 || waiting.lacks.get(name) == Some(length)
                };
                if !request.1.iter().zip(&lengths).all(is_asked) {
                    return Err(Broken);
                }
                What::Chunks(request, lengths)
            }
            None => What::Unwanted,
        };
        if length == 0 {
            return self.complete(what, Bytes::new(), 0);
        }
        let number = self.payloads;
        self.payloads += 1;
        self.arriving.insert(number, Arriving { what, left: length, payload: BytesMut::new() });
        Ok(())
    }

    /// The number of the newest payload plus one: parts name theirs by the distance from it.
    pub fn payloads(&self) -> u64 {
        self.payloads
    }

    /// A part of a payload has come.
    pub fn data(&mut self, number: u64, bytes: &[u8]) -> Result<(), Broken> {
        let arriving = self.arriving.get_mut(&number).ok_or(Broken)?;
        arriving.left = arriving.left.checked_sub(bytes.len()).ok_or(Broken)?;
        if !matches!(arriving.what, What::Unwanted) {
            arriving.payload.extend_from_slice(bytes);
        }
        if arriving.left > 0 {
            return Ok(());
        }
        match self.arriving.remove(&number) {
            Some(it) => self.complete(it.what, it.payload.freeze(), number),
            None => Ok(()),
        }
    }

    /// A payload is whole.
    fn complete(&mut self, what: What, payload: Bytes, number: u64) -> Result<(), Broken> {
        match what {
            What::Root(listing) => {
                let contents = payload.slice(listing..);
                let listing = Listing::decode(&payload[..listing]).map_err(|_| Broken)?;
                let waiting = self.roots.get_mut(&number).ok_or(Broken)?;
                if listing.lengths() != (waiting.length, contents.len()) {
                    return Err(Broken);
                }
                let listing = Arc::new(listing);
                let parts = Parts { listing, contents, supplied: BTreeMap::new() };
                waiting.parts = Some(parts.clone());
                self.start(number, parts);
                Ok(())
            }
            What::Chunks(request, lengths) => {
                self.supplied(request, &lengths, &payload);
                Ok(())
            }
            What::Unwanted => Ok(()),
        }
    }

    /// Chunks that were asked for have come.
    fn supplied(&mut self, (number, names): Request, lengths: &[u32], payload: &Bytes) {
        let Some(waiting) = self.roots.get_mut(&number) else { return };
        let Some(parts) = &mut waiting.parts else { return };
        let mut start = 0;
        for (name, length) in names.into_iter().zip(lengths) {
            if *length == 0 {
                // S has dropped the chunk: the flow cannot be continued.
                let flow = waiting.flow;
                self.acknowledge(number);
                if self.flows.contains_key(&flow) {
                    self.break_off(flow);
                }
                return;
            }
            let end = start + *length as usize;
            parts.supplied.insert(name, payload.slice(start..end));
            waiting.lacks.remove(&name);
            start = end;
        }
        if waiting.lacks.is_empty() {
            let parts = parts.clone();
            self.start(number, parts);
        }
    }

    fn start(&mut self, number: u64, parts: Parts) {
        self.jobs += 1;
        self.works.insert(self.jobs, number);
        self.events.push_back(Event::Work(self.jobs, Work::Published(Job::Assemble(parts))));
    }

    /// A job was done.
    pub fn done(&mut self, job: u64, done: Done) -> Result<(), Broken> {
        let Some(number) = self.works.remove(&job) else { return Ok(()) };
        match done {
            Done::Assembled(content, counts) => {
                self.counts = counts;
                self.assembled(number, content);
                Ok(())
            }
            Done::Lacking(names) => {
                self.lacks(number, names);
                Ok(())
            }
            Done::Begun | Done::Listed(..) | Done::False => Err(Broken),
        }
    }

    fn acknowledge(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.roots.remove(&number)?;
        self.unacked -= waiting.cost;
        self.events.push_back(Event::Say(Message::Acknowledge(number)));
        Some(waiting)
    }

    /// A root is put together: S need not keep it.
    fn assembled(&mut self, number: u64, content: Bytes) {
        let Some(waiting) = self.acknowledge(number) else { return };
        let Some(flow) = self.flows.get_mut(&waiting.flow) else { return };
        let Ok(at) = flow.roots.binary_search_by_key(&number, |(it, _)| *it) else { return };
        let sent = waiting.parts.map_or(0, |parts| {
            parts.contents.len() + parts.supplied.values().map(Bytes::len).sum::<usize>()
        });
        let reference = content.len().saturating_sub(sent) as u64;
        self.held += content.len() + ROOT_COST;
        flow.charged += content.len() + ROOT_COST;
        flow.roots[at].1 = Some(content);
        let crossed = Crossed { reference, difference: 0 };
        self.events.push_back(Event::Crossed(waiting.flow, crossed));
        self.advance(waiting.flow);
        // The one that is read least makes room.
        while self.held > HELD_MAX
            && let Some((id, _)) = self.flows.iter().max_by_key(|(_, flow)| flow.charged)
        {
            self.break_off(*id);
        }
    }

    /// S was wrong about these chunks: it is asked for them, unless nobody wants the root.
    fn lacks(&mut self, number: u64, names: Vec<ChunkName>) {
        self.wrong_hints += names.len() as u64;
        let Some(waiting) = self.roots.get_mut(&number) else { return };
        if !self.flows.contains_key(&waiting.flow) {
            self.acknowledge(number);
            return;
        }
        // The other end chooses these names.
        let lengths: BTreeMap<_, _> =
            waiting.parts.iter().flat_map(|parts| parts.listing.places()).collect();
        let length = |name| lengths.get(name).map_or(0, |range: &Range<usize>| range.len() as u32);
        waiting.lacks.extend(names.iter().map(|name| (*name, length(name))));
        let requests = names.chunks(NAMES_MAX).map(|names| (number, names.to_vec()));
        self.later.extend(requests);
        self.ask();
    }

    /// Asks for the next missing chunks.
    fn ask(&mut self) {
        while self.requests.len() < REQUESTS_MAX
            && let Some((root, names)) = self.later.pop_front()
        {
            if !self.roots.contains_key(&root) {
                continue;
            }
            self.events.push_back(Event::Say(Message::Request(root, names.clone())));
            self.requests.push_back((root, names));
        }
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Passes on what is there and granted.
    fn advance(&mut self, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        while flow.granted > 0
            && let Some((_, Some(content))) = flow.roots.front_mut()
        {
            let piece = content.split_to(content.len().min(UNIT_MAX));
            let mut freed = piece.len();
            if content.is_empty() {
                flow.roots.pop_front();
                freed += ROOT_COST;
            }
            let length = piece.len() as u64;
            flow.granted -= length as i64;
            flow.held = flow.held.saturating_sub(length);
            flow.unsaid += length;
            flow.charged -= freed;
            self.held -= freed;
            self.events.push_back(Event::Content(id, piece));
        }
        if flow.unsaid >= WINDOW / 4 {
            let bytes = std::mem::take(&mut flow.unsaid);
            self.events.push_back(Event::Say(Message::Credit(id, bytes)));
        }
        // What is broken off does not wait for a reader that takes no more.
        let is_over = flow.roots.is_empty() || (flow.granted <= 0 && flow.ended != Some(Ok(())));
        if is_over && let Some(result) = flow.ended {
            self.forget(id);
            self.events.push_back(Event::End(id, result));
        }
    }

    /// The content of a flow has ended.
    pub fn finish(&mut self, id: u64, result: Result<(), FetchError>) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.ended = Some(result);
            self.advance(id);
        }
    }
}
