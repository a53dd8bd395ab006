//! The server's end of a pair, for one gateway: asks origins, and lets their answers cross.
//!
//! *In:* the gateway's connection, what origins answer, results of jobs. *Out:* requests to origins, their
//! content, jobs. *What it never does:* cache, or judge a response: what the gateway asks for is asked of the
//! origin each time.

mod credit;

use super::codec::{Fields, Writer};
use super::fetch::{Asked, decode_headers, encode_headers};
use super::messages::Message;
use super::pair::{Event, Pair, State};
use super::report::PairReport;
use super::sender::Sender;
use super::session::{Guest, PairKeys};
use super::tcp::{Dialled, Kind, Reach};
use super::work::{Done, Job};
use super::{FLOWS_MAX, WINDOW, hash_of, url_of_server};
use crate::access::Caller;
use crate::http::check_head;
use crate::input::{FetchError, FetchId, OriginInput};
use crate::output::{Dial, Fetch, OriginOutput};
use bytes::Bytes;
use credit::{Credit, Wait};
use http::header;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use store::{HistoryState, Mark};
use wire::{Instant, PublicKey};

/// The head of a response at most, in bytes of plain text.
const HEAD_MAX: usize = 40 * 1024;
/// Content that origins may send and that waits for the link, over all flows, in bytes, unless [`Far::limit`] says less.
const CONTENT_MAX: u64 = 64 * 1024 * 1024;
/// Credit for an origin is given in steps of at least this many bytes.
const STEP: u64 = 16 * 1024;
/// … and for one that has nothing at least this, whatever others have: most TCP connections are idle.
const LEAST: u64 = 4 * 1024;

/// The settings of the far end for one gateway.
#[derive(Clone, Debug)]
pub struct FarConfig {
    /// The gateway's key.
    pub near_key: PublicKey,
    /// Units in the index at most; each takes about 130 bytes of memory.
    pub units_max: usize,
    /// What is held of what this end sends, and of what it receives.
    pub held: (HistoryState, HistoryState),
}

/// What happens to the far end.
pub enum FarInput {
    /// The gateway has connected from this address, and proven its key. What this machine reaches.
    Connected(Guest, IpAddr, Reach),
    /// Bytes have arrived on its connection.
    Received(Bytes),
    /// The connection has ended.
    Closed,
    /// The worker has done this job.
    Done(u64, Done),
    /// An origin has answered, or the server of a TCP connection has sent bytes, has said all, or has refused.
    Origin(OriginInput),
    /// What this machine reaches may have changed.
    Reaches(Reach),
    /// The time of [`Far::poll_timeout`] has come.
    Tick,
}

/// What the far end asks of its driver.
#[derive(Debug)]
pub enum FarOutput {
    /// End the gateway's connection, once [`Far::poll_transmit`] gives nothing more.
    Hangup,
    /// Do this job → [`FarInput::Done`].
    Work(u64, Job),
    /// Something for an origin: true, with a request, if content follows.
    Origin(OriginOutput, bool),
    /// Make this TCP connection, for the gateway with this address. Grants come by `Origin`, and so does the order to
    /// drop it.
    Dial(FetchId, SocketAddr, IpAddr),
    /// Content of a request, or of a TCP connection.
    Content(FetchId, Bytes),
    /// The content of a request has ended, or of what a client says; with an error, it broke off.
    ContentEnd(FetchId, Result<(), FetchError>),
}

/// The server's end of a pair.
pub struct Far {
    keys: PairKeys,
    pair: Pair,
    /// By the gateway's number.
    flows: BTreeMap<u64, Flow>,
    /// The gateway's number, by ours: it begins anew when the gateway restarts.
    by_fetch: BTreeMap<FetchId, u64>,
    fetches: u64,
    credit: Credit,
    /// Flows for which something may have changed.
    touched: BTreeSet<u64>,
    /// The gateway's address.
    address: IpAddr,
    outputs: VecDeque<FarOutput>,
}

struct Flow {
    fetch: FetchId,
    client: u64,
    /// Bytes that it has: granted ones, and those that wait for the link.
    has: u64,
    /// How much it may have, as far as it has used what it had.
    window: u64,
    /// It waits for credit.
    waits: Option<Wait>,
    /// What the origin may send and has not; negative if its last piece was larger than its credit (`driver::Grants`).
    granted: i64,
    /// The origin has said all.
    is_ended: bool,
    /// It is a TCP connection whose client has not said all: it lasts until both sides have.
    is_heard: bool,
}

impl Flow {
    /// How many more bytes the origin may send.
    fn unused(&self) -> u64 {
        self.granted.max(0) as u64
    }
}

impl Far {
    /// An end without a connection. `marks` are the units of what it has sent, from the oldest on.
    pub fn new(
        config: FarConfig,
        keys: PairKeys,
        chance: &[u8; 32],
        marks: impl Iterator<Item = Mark>,
    ) -> Self {
        let (out, within) = config.held;
        let mut pair = Pair::new(Sender::new(config.units_max, out, marks), within, chance);
        pair.is_far = true;
        Self {
            keys,
            pair,
            flows: BTreeMap::new(),
            by_fetch: BTreeMap::new(),
            fetches: 0,
            credit: Credit::new(CONTENT_MAX),
            touched: BTreeSet::new(),
            address: IpAddr::from([0, 0, 0, 0]),
            outputs: VecDeque::new(),
        }
    }

    /// How far the connection is.
    pub fn state(&self) -> State {
        self.pair.state()
    }

    /// Requests and TCP connections that it has.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// How many units its index has.
    pub fn units(&self) -> usize {
        self.pair.sender.units()
    }

    /// From now on flows have at most this many bytes of content here, and the index this many units.
    pub fn limit(&mut self, content_bytes: u64, units_max: usize) {
        self.credit.set_max(content_bytes.min(CONTENT_MAX));
        self.pair.sender.limit(units_max);
    }

    /// Whether bytes of the connection may be received now.
    pub fn may_receive(&self) -> bool {
        self.pair.may_receive()
    }

    /// All counters.
    pub fn report(&self) -> PairReport {
        self.pair.report()
    }

    /// Handles an event.
    pub fn handle_input(&mut self, now: Instant, input: FarInput) {
        match input {
            FarInput::Connected(guest, address, reach) => {
                // The driver ends the connection that this one replaces.
                self.pair.close(None);
                self.take_events(now);
                self.outputs.retain(|output| !matches!(output, FarOutput::Hangup));
                self.address = address;
                self.pair.reach = reach;
                self.pair.connect(now, guest.accept());
                self.pair.trust();
                self.pair.advance(now, &mut self.keys);
            }
            FarInput::Received(bytes) => self.pair.receive(now, &bytes, &mut self.keys),
            FarInput::Closed => self.pair.close(None),
            FarInput::Done(number, done) => self.pair.done(now, number, done, &mut self.keys),
            FarInput::Origin(input) => self.origin(now, input),
            FarInput::Reaches(reach) => {
                if std::mem::replace(&mut self.pair.reach, reach) != reach
                    && self.pair.state() == State::Up
                {
                    self.pair.say(Message::Reaches(reach));
                }
            }
            FarInput::Tick => {
                self.pair.handle_timeout(now, false);
                self.pair.advance(now, &mut self.keys);
            }
        }
        self.take_events(now);
        self.settle();
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.pair.poll_event(now) {
            match event {
                Event::Up | Event::Doubted => {}
                // It was known before it became ours.
                Event::Known(_) => self.pair.close(None),
                Event::Down(_) => {
                    self.outputs.push_back(FarOutput::Hangup);
                    for id in self.flows.keys().copied().collect::<Vec<_>>() {
                        if let Some(flow) = self.remove(id) {
                            self.cancel(&flow);
                        }
                    }
                }
                Event::Message(Message::Open(id, asked)) => self.open(now, id, *asked),
                Event::Message(Message::Dial(id, dialled)) => self.dial(now, id, dialled),
                Event::Message(Message::Cancel(id)) => {
                    if let Some(flow) = self.remove(id) {
                        // The sender did not know it yet if one record opened and cancelled it.
                        self.pair.sender.cancel(id);
                        self.pair.receiver.cancel(id);
                        self.cancel(&flow);
                    }
                }
                Event::Message(_) | Event::Crossed(..) => {}
                Event::Content(id, bytes) => {
                    if let Some(flow) = self.flows.get(&id) {
                        self.outputs.push_back(FarOutput::Content(flow.fetch, bytes));
                    }
                }
                Event::End(id, result) => {
                    if let Some(flow) = self.flows.get_mut(&id) {
                        flow.is_heard = false;
                        self.touched.insert(id);
                        self.outputs.push_back(FarOutput::ContentEnd(flow.fetch, result));
                    }
                }
                Event::Work(number, job) => self.outputs.push_back(FarOutput::Work(number, job)),
            }
        }
    }

    /// Looks after the flows for which something has changed: forgets those that have ended, and gives credit.
    fn settle(&mut self) {
        self.pair.sender.take_changed(&mut self.touched);
        while let Some(id) = self.touched.pop_first() {
            let Some(flow) = self.flows.get(&id) else { continue };
            let (client, before) = (flow.client, flow.has);
            let has_ended = flow.is_ended && !flow.is_heard;
            if has_ended && !self.pair.sender.has(id) {
                self.remove(id);
            } else {
                self.count(id);
                self.grant(id);
            }
            let after = self.flows.get(&id).map_or(0, |flow| flow.has);
            while after < before
                && let Some(next) = self.credit.next(client)
                && self.grant(next)
            {}
        }
    }

    fn remove(&mut self, id: u64) -> Option<Flow> {
        let flow = self.flows.remove(&id)?;
        self.by_fetch.remove(&flow.fetch);
        if let Some(wait) = flow.waits {
            self.credit.leave(flow.client, wait);
        }
        self.credit.change(flow.client, flow.has, 0);
        Some(flow)
    }

    /// Counts the bytes that a flow has.
    fn count(&mut self, id: u64) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let granted = if flow.is_ended { 0 } else { flow.unused() };
        let has = granted + self.pair.sender.queued(id) as u64;
        self.credit.change(flow.client, std::mem::replace(&mut flow.has, has), has);
    }

    fn cancel(&mut self, flow: &Flow) {
        if !flow.is_ended || flow.is_heard {
            self.outputs.push_back(FarOutput::Origin(OriginOutput::Cancel(flow.fetch), false));
        }
    }

    /// A flow with the gateway's number begins: ours, unless the number cannot be.
    fn begin(&mut self, id: u64, client: u64, is_heard: bool) -> Option<FetchId> {
        if self.flows.contains_key(&id) || self.pair.sender.has(id) {
            // A near end counts them up.
            self.pair.close(None);
            return None;
        }
        if self.flows.len() >= FLOWS_MAX || self.pair.is_crowded() {
            // A near end has no more, but a flow that has ended there may not have ended here, and one that is answered
            // at once takes memory until the near end reads it.
            self.pair.receiver.cancel(id);
            self.pair.say(Message::Finish(id, Err(FetchError::NoRoom)));
            return None;
        }
        self.fetches += 1;
        let fetch = FetchId(self.fetches);
        self.by_fetch.insert(fetch, id);
        let flow = Flow {
            fetch,
            client,
            has: 0,
            window: STEP,
            waits: None,
            granted: 0,
            is_ended: false,
            is_heard,
        };
        self.flows.insert(id, flow);
        self.touched.insert(id);
        Some(fetch)
    }

    fn dial(&mut self, now: Instant, id: u64, dialled: Dialled) {
        let Some(fetch) = self.begin(id, dialled.client, true) else { return };
        let Dialled { to, client } = dialled;
        self.pair.report.tcp_flows += 1;
        self.pair.sender.open(now, id, client, Kind::TCP, url_of_server(to));
        self.outputs.push_back(FarOutput::Dial(fetch, to, self.address));
    }

    fn open(&mut self, now: Instant, id: u64, asked: Asked) {
        let Some(fetch) = self.begin(id, asked.client, false) else { return };
        self.pair.report.requests += 1;
        self.pair.sender.open(now, id, asked.client, Kind::Http, url_of(&asked));
        let Asked { method, path, mut headers, has_content, .. } = asked;
        // What another tenant's request may follow has one reading.
        if check_head(&method, &path, &mut headers, has_content).is_err() {
            self.pair.sender.finish(id, Err(FetchError::Malformed));
            return self.ended(id, false);
        }
        let request = Fetch {
            dial: asked.dial,
            tls: asked.tls,
            client: self.address,
            caller: Caller::Gateway,
            method,
            path,
            headers,
            exchange: None,
            binding: None,
        };
        let request = OriginOutput::Fetch(fetch, Box::new(request));
        self.outputs.push_back(FarOutput::Origin(request, has_content));
    }

    /// More of a request's content may be given to the driver.
    pub fn accept_content(&mut self, now: Instant, fetch: FetchId, bytes: u64) {
        if let Some(id) = self.by_fetch.get(&fetch) {
            self.pair.receiver.grant(*id, bytes);
            self.take_events(now);
            self.settle();
        }
    }

    fn origin(&mut self, now: Instant, input: OriginInput) {
        let (OriginInput::Interim(fetch, ..)
        | OriginInput::Head(fetch, ..)
        | OriginInput::Body(fetch, _)
        | OriginInput::Crossed(fetch, _)
        | OriginInput::Silent(fetch)
        | OriginInput::End(fetch, _)) = &input;
        let Some(id) = self.by_fetch.get(fetch).copied() else { return };
        match input {
            OriginInput::Head(fetch, status, headers) => {
                let mut head = Vec::new();
                encode_headers(&headers, &mut Writer(&mut head));
                // What the near end would refuse would end the connection.
                if head.len() > HEAD_MAX || decode_headers(&mut Fields(&head)).is_err() {
                    self.refuse(id, fetch);
                } else {
                    self.pair.sender.head(now, id, Message::Head(id, status, headers));
                }
            }
            OriginInput::Body(_, bytes) => {
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.granted -= bytes.len() as i64;
                    if flow.unused() < flow.window / 2 {
                        flow.window = (2 * flow.window).min(WINDOW);
                    }
                }
                self.pair.report.content_out_bytes += bytes.len() as u64;
                self.pair.sender.push(now, id, &bytes);
            }
            // Origins have no far end, and the pair has no message for interim responses or silence.
            OriginInput::Crossed(..) | OriginInput::Interim(..) | OriginInput::Silent(_) => {}
            OriginInput::End(_, result) => {
                self.pair.sender.finish(id, result);
                self.ended(id, result.is_ok());
            }
        }
    }

    /// The origin says no more, and hears no more unless it is a server of TCP whose client still speaks.
    fn ended(&mut self, id: u64, may_hear: bool) {
        let Some(flow) = self.flows.get_mut(&id) else { return };
        flow.is_ended = true;
        flow.is_heard &= may_hear;
        self.touched.insert(id);
        if !flow.is_heard {
            self.by_fetch.remove(&flow.fetch);
            self.pair.receiver.cancel(id);
        }
    }

    /// An origin's answer cannot cross.
    fn refuse(&mut self, id: u64, fetch: FetchId) {
        self.pair.sender.finish(id, Err(FetchError::Malformed));
        self.ended(id, false);
        self.outputs.push_back(FarOutput::Origin(OriginOutput::Cancel(fetch), false));
    }

    /// Gives an origin credit, as far as what it sends has room here. False if the flow waits for that.
    fn grant(&mut self, id: u64) -> bool {
        let Some(flow) = self.flows.get_mut(&id) else { return true };
        if let Some(wait) = flow.waits.take() {
            self.credit.leave(flow.client, wait);
        }
        let unused = flow.unused();
        let room = self.pair.sender.room(id).min(flow.window).saturating_sub(unused);
        let is_worth = room >= STEP || (room > 0 && unused == 0);
        if flow.is_ended || !is_worth {
            return true;
        }
        let has_nothing = flow.has == 0;
        let least = if has_nothing { LEAST } else { 0 };
        let bytes = room.min(self.credit.room(flow.client).max(least));
        if !has_nothing && bytes < room.min(STEP) {
            flow.waits = Some(self.credit.wait(flow.client, id));
            return false;
        }
        // What was sent beyond the credit waits here already, and takes none of it.
        let may_send = (unused + bytes) as i64;
        let grant = OriginOutput::Grant(flow.fetch, (may_send - flow.granted) as u64);
        flow.granted = may_send;
        self.outputs.push_back(FarOutput::Origin(grant, false));
        self.count(id);
        true
    }

    /// What the driver is to do next.
    pub fn poll_output(&mut self) -> Option<FarOutput> {
        self.outputs.pop_front()
    }

    /// Whether [`Far::poll_output`] has something.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The next bytes for the connection, whenever it takes some.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let bytes = self.pair.poll_transmit(now);
        self.take_events(now);
        self.settle();
        bytes
    }

    /// When it needs a [`FarInput::Tick`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pair.poll_timeout(false)
    }
}

/// Tells URLs apart, to find the previous version; never zero.
fn url_of(asked: &Asked) -> u64 {
    let host = asked.headers.get(header::HOST).map(|host| host.as_bytes().to_vec());
    let host = host.unwrap_or_else(|| match &asked.dial {
        Dial::Name(host, _) => host.clone().into_bytes(),
        Dial::Address(address) => address.to_string().into_bytes(),
    });
    hash_of(&[&host, &[u8::from(asked.tls)], asked.path.as_bytes()])
}
