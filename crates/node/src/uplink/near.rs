//! The gateway's end of the pair: requests to origins go to the far end, and its answers come back as if the
//! origins had given them.
//!
//! *In:* what the node wants of origins, the connection with the far end, results of jobs. *Out:* what origins
//! answer; requests that go past the pair, straight to their origins; jobs. *What it never does:* judge what it
//! carries. While the far end is silent everything goes past it, as if there were none.

mod flows;
mod tcp;

use super::codec::{Fields, Writer};
use super::fetch::{Asked, decode_asked, encode_asked};
use super::messages::Message;
use super::pair::{Event, Pair, State};
use super::report::PairReport;
use super::sender::Sender;
use super::session::{PairKeys, Refused, Session};
use super::tcp::{Kind, Reach};
use super::wanax::Published;
use super::work::{Done, Job};
use super::{FlowId, TcpId};
use crate::access::{Access, is_local};
use crate::crossed::Crossed;
use crate::input::{FetchError, FetchId, OriginInput};
use crate::output::{Dial, Fetch, OriginOutput};
use bytes::Bytes;
use flows::{Flow, Flows};
use http::{HeaderMap, StatusCode, header};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use store::{HistoryState, Mark};
use wire::{Instant, PublicKey};

/// After a connection has failed, the next is tried after this long …
const REDIAL_MIN: Duration = Duration::from_secs(1);
/// … and twice as long after each further failure, up to this.
const REDIAL_MAX: Duration = Duration::from_secs(30);
/// A far end that says nothing at all may be back, or have room, at any moment: the next attempt is no later than this.
const REDIAL_SILENT: Duration = Duration::from_secs(4);
/// A connection that lasts this long was sound: the next is tried soon.
const SOUND: Duration = Duration::from_secs(5);
/// The head of a request at most, in bytes of plain text; longer ones go past the pair.
const HEAD_MAX: usize = 32 * 1024;
/// Content that waits for the link, over all flows, in bytes …
const WAITING_MAX: u64 = 4 * 1024 * 1024;
/// … and with more, of each flow.
const CROWDED: u64 = 4 * 1024;
/// Clients that are told apart at most.
const CLIENTS_MAX: usize = 1024;
/// Units of what the gateway sends that its index has at most: uploads are few.
const UNITS_MAX: usize = 8 * 1024;

/// The settings of the near end.
#[derive(Clone, Debug)]
pub struct NearConfig {
    /// The key that the far end must prove.
    pub far_key: PublicKey,
    /// The node's rules for ports; the far end has its own for addresses.
    pub access: Access,
    /// What is held of what this end sends, and of what it receives.
    pub held: (HistoryState, HistoryState),
    /// The published scheme by which content crosses, in the place of the histories.
    pub scheme: Option<Published>,
}

/// What happens to the near end.
#[derive(Debug)]
pub enum NearInput {
    /// The node wants this of an origin; whether the request has content. Only what [`Near::takes`].
    Origin(OriginOutput, bool),
    /// Content of a request or of a TCP connection, as far as [`Near::room`] allows.
    Content(FlowId, Bytes),
    /// The content of a request has ended, or the client of a TCP connection has said all, or has broken it off.
    ContentEnd(FlowId, Result<(), FetchError>),
    /// A client's TCP connection, to this address, goes by the pair, which [`Near::may_dial`] permits.
    Dial(TcpId, SocketAddr, IpAddr),
    /// The client of a TCP connection takes this many more bytes.
    GrantTcp(TcpId, u64),
    /// The connection with the far end is made.
    Connected,
    /// Bytes have arrived on it.
    Received(Bytes),
    /// It has ended, or could not be made.
    Closed,
    /// The worker has done this job.
    Done(u64, Done),
    /// The time of [`Near::poll_timeout`] has come.
    Tick,
    /// The node's rules for ports have changed.
    Access(Access),
}

/// What the near end asks of its driver.
#[derive(Debug)]
pub enum NearOutput {
    /// Dial the far end → [`NearInput::Connected`] or `Closed`.
    Dial,
    /// End the connection, once [`Near::poll_transmit`] gives nothing more.
    Hangup,
    /// Do this job → [`NearInput::Done`].
    Work(u64, Job),
    /// An origin has answered.
    Origin(OriginInput),
    /// For the client of a TCP connection: bytes that its server sent.
    Tcp(TcpId, Bytes),
    /// How bytes of [`NearOutput::Tcp`] crossed that come next.
    TcpCrossed(TcpId, Crossed),
    /// The server of a TCP connection has said all. With an error the connection is refused, reset or broken off, maybe
    /// after the server has said all. With [`FetchError::NoRoom`] nobody has dialled: the driver may dial itself.
    TcpEnd(TcpId, Result<(), FetchError>),
    /// Send this request straight to its origin, with this many bytes granted: the pair cannot carry it.
    Past(FetchId, Box<Fetch>, u64),
    /// Show this line to the operator.
    Notice(String),
}

/// The gateway's end of a pair.
pub struct Near {
    config: NearConfig,
    keys: PairKeys,
    pair: Pair,
    flows: Flows,
    clients: BTreeMap<IpAddr, u64>,
    outputs: VecDeque<NearOutput>,
    dialling: Dialling,
    /// The last trouble that was told, so that each is told once.
    told: Option<Option<Refused>>,
}

enum Dialling {
    /// The next attempt is at this time, and after how long the one after it.
    At(Instant, Duration),
    /// Dialled; how long to wait if it fails.
    Now(Duration),
    /// Since when; how long to wait if it does not last.
    Connected(Instant, Duration),
}

struct Request {
    /// Until the origin has answered: to be sent elsewhere if the far end cannot.
    fetch: Option<Box<Fetch>>,
    has_content: bool,
    /// What was granted and not delivered.
    granted: u64,
}

impl Near {
    /// An end without a connection. `marks` are the units of what it has sent, from the oldest on.
    pub fn new(
        config: NearConfig,
        keys: PairKeys,
        chance: &[u8; 32],
        marks: impl Iterator<Item = Mark>,
    ) -> Self {
        let (out, within) = config.held;
        let mut pair = Pair::new(Sender::new(UNITS_MAX, out, marks), within, chance);
        pair.scheme = config.scheme;
        Self {
            pair,
            config,
            keys,
            flows: Flows::default(),
            clients: BTreeMap::new(),
            outputs: VecDeque::new(),
            dialling: Dialling::At(Instant::ZERO, REDIAL_MIN),
            told: None,
        }
    }

    /// Whether this goes by the pair: a request that it can carry now, or something about one that it carries.
    pub fn takes(&mut self, output: &OriginOutput) -> bool {
        match output {
            OriginOutput::Fetch(_, fetch) => {
                let takes = self.pair.state() == State::Up && self.may_carry(fetch);
                self.pair.report.requests_past += u64::from(!takes);
                takes
            }
            OriginOutput::Grant(id, _) | OriginOutput::Cancel(id) => {
                self.carries(FlowId::Fetch(*id))
            }
            OriginOutput::TakeIn(..) => false,
        }
    }

    /// Whether the pair carries this.
    pub fn carries(&self, id: FlowId) -> bool {
        self.flows.has(id)
    }

    fn may_carry(&self, fetch: &Fetch) -> bool {
        let (is_near, port) = match &fetch.dial {
            Dial::Address(address) => (is_local(address.ip()), address.port()),
            Dial::Name(host, port) => (is_of_site(host), *port),
        };
        let may_port = self.config.access.check_port(fetch.caller, port).is_ok();
        let fits = || {
            let mut head = Vec::new();
            encode_asked(&self.asked(fetch, 0, false), &mut Writer(&mut head));
            // What the far end would refuse would end the connection.
            head.len() <= HEAD_MAX && decode_asked(&mut Fields(&head)).is_ok()
        };
        // The pair has no message that keeps a connection for one client.
        let is_apart = fetch.headers.contains_key(header::UPGRADE) || fetch.binding.is_some();
        let has_room = self.flows.has_room(fetch.client) && !self.pair.is_crowded();
        !is_near && !is_apart && may_port && has_room && fits()
    }

    fn asked(&self, fetch: &Fetch, client: u64, has_content: bool) -> Asked {
        Asked {
            dial: fetch.dial.clone(),
            tls: fetch.tls,
            client,
            method: fetch.method.clone(),
            path: fetch.path.clone(),
            headers: fetch.headers.clone(),
            has_content,
        }
    }

    /// Whether the far end answers.
    pub fn is_up(&self) -> bool {
        self.pair.state() == State::Up
    }

    /// How far the connection is.
    pub fn state(&self) -> State {
        self.pair.state()
    }

    /// How many bytes of a request's content, or of a TCP connection, may be given now.
    pub fn room(&self, id: FlowId) -> u64 {
        let sender = &self.pair.sender;
        let room = sender.room(id.number());
        match sender.waiting() >= WAITING_MAX {
            true => room.min(CROWDED.saturating_sub(sender.queued(id.number()) as u64)),
            false => room,
        }
    }

    /// Requests and TCP connections that it carries.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes of content that wait for the link.
    pub fn waiting(&self) -> u64 {
        self.pair.sender.waiting()
    }

    /// The families of addresses that the far end reaches; `None` while it does not answer.
    pub fn reach(&self) -> Option<Reach> {
        self.is_up().then_some(self.pair.reach)
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
    pub fn handle_input(&mut self, now: Instant, input: NearInput) {
        match input {
            NearInput::Origin(OriginOutput::Fetch(id, fetch), has_content) => {
                self.open(now, id, fetch, has_content);
            }
            NearInput::Origin(OriginOutput::Grant(id, bytes), _) => {
                let id = FlowId::Fetch(id);
                if let Some(Flow::Fetch(flow)) = self.flows.get_mut(id) {
                    flow.granted = flow.granted.saturating_add(bytes);
                    self.pair.receiver.grant(id.number(), bytes);
                }
            }
            NearInput::Origin(OriginOutput::Cancel(id), _) => self.cancel(FlowId::Fetch(id)),
            NearInput::Origin(OriginOutput::TakeIn(..), _) => {}
            NearInput::Content(id, bytes) => {
                self.pair.report.content_out_bytes += bytes.len() as u64;
                self.pair.sender.push(now, id.number(), &bytes);
            }
            NearInput::ContentEnd(id, result) => self.content_end(id, result),
            NearInput::Dial(id, to, client) => self.dial(now, id, to, client),
            NearInput::GrantTcp(id, bytes) => {
                self.pair.receiver.grant(FlowId::Tcp(id).number(), bytes);
            }
            NearInput::Connected => {
                let wait = match self.dialling {
                    Dialling::At(_, wait) | Dialling::Now(wait) | Dialling::Connected(_, wait) => {
                        wait
                    }
                };
                self.dialling = Dialling::Connected(now, wait);
                self.pair.connect(now, Session::near(&mut self.keys, &self.config.far_key));
            }
            NearInput::Received(bytes) => self.pair.receive(now, &bytes, &mut self.keys),
            NearInput::Closed => match self.dialling {
                Dialling::Now(wait) => self.fail(now, wait.min(REDIAL_SILENT), None),
                Dialling::Connected(..) => self.pair.closed(),
                Dialling::At(..) => {}
            },
            NearInput::Done(number, done) => self.pair.done(now, number, done, &mut self.keys),
            NearInput::Tick => self.tick(now),
            NearInput::Access(access) => self.config.access = access,
        }
        self.take_events(now);
    }

    fn open(&mut self, now: Instant, id: FetchId, fetch: Box<Fetch>, has_content: bool) {
        self.pair.report.requests += 1;
        let address = fetch.client;
        let client = self.client(address);
        let asked = self.asked(&fetch, client, has_content);
        let id = FlowId::Fetch(id);
        let number = id.number();
        self.pair.receiver.open(number);
        if has_content {
            self.pair.sender.open(now, number, client, Kind::Http, 0);
        }
        self.pair.expect(now, Message::Open(number, Box::new(asked)));
        let request = Request { fetch: Some(fetch), has_content, granted: 0 };
        self.flows.insert(id, address, Flow::Fetch(request));
    }

    fn content_end(&mut self, id: FlowId, result: Result<(), FetchError>) {
        match id {
            FlowId::Fetch(_) => self.pair.sender.finish(id.number(), result),
            FlowId::Tcp(id) => self.client_end(id, result),
        }
    }

    /// A flow is not wanted any more.
    fn cancel(&mut self, id: FlowId) {
        if self.flows.remove(id).is_some() {
            self.pair.receiver.cancel(id.number());
            self.pair.sender.cancel(id.number());
        }
    }

    /// A small number that stands for a client.
    fn client(&mut self, address: IpAddr) -> u64 {
        if self.clients.len() >= CLIENTS_MAX {
            self.clients.clear();
        }
        let next = self.clients.len() as u64;
        *self.clients.entry(address).or_insert(next)
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.pair.poll_event(now) {
            match event {
                Event::Up => {
                    self.told = None;
                    self.outputs
                        .push_back(NearOutput::Notice("the far end of the uplink answers".into()));
                }
                Event::Known(key) if key == self.config.far_key => {
                    self.pair.trust();
                    self.pair.advance(now, &mut self.keys);
                }
                Event::Known(_) => self.pair.close(Some(Refused::NotPinned)),
                Event::Doubted => {
                    let waiting = self.flows.unanswered();
                    let silent = waiting.map(|id| NearOutput::Origin(OriginInput::Silent(id)));
                    self.outputs.extend(silent);
                }
                Event::Down(why) => {
                    self.outputs.push_back(NearOutput::Hangup);
                    self.break_off();
                    let wait = match self.dialling {
                        Dialling::Connected(_, wait) if why == Some(Refused::Silent) => {
                            wait.min(REDIAL_SILENT)
                        }
                        _ if why.is_some() => REDIAL_MAX,
                        Dialling::Connected(since, wait) if now.since(since) < SOUND => wait,
                        _ => REDIAL_MIN,
                    };
                    self.fail(now, wait, why);
                }
                Event::Message(Message::Head(id, status, headers)) => {
                    self.head(FlowId::of(id), status, headers);
                }
                Event::Message(Message::Reaches(reach)) => self.pair.reach = reach,
                Event::Message(Message::Cancel(id)) => self.unheard(FlowId::of(id)),
                Event::Message(_) => {}
                Event::Content(id, bytes) => self.content(FlowId::of(id), bytes),
                Event::Crossed(id, crossed) => self.outputs.push_back(match FlowId::of(id) {
                    FlowId::Fetch(id) => NearOutput::Origin(OriginInput::Crossed(id, crossed)),
                    FlowId::Tcp(id) => NearOutput::TcpCrossed(id, crossed),
                }),
                Event::End(id, result) => self.end(FlowId::of(id), result),
                Event::Work(number, job) => self.outputs.push_back(NearOutput::Work(number, job)),
            }
        }
    }

    fn head(&mut self, id: FlowId, status: StatusCode, headers: HeaderMap) {
        let (FlowId::Fetch(fetch), Some(Flow::Fetch(flow))) = (id, self.flows.get_mut(id)) else {
            return;
        };
        // One head, and no other protocol: none was asked for.
        if flow.fetch.is_none() || status.is_informational() {
            return self.pair.close(None);
        }
        flow.fetch = None;
        self.outputs.push_back(NearOutput::Origin(OriginInput::Head(fetch, status, headers)));
    }

    fn content(&mut self, id: FlowId, bytes: Bytes) {
        match (id, self.flows.get_mut(id)) {
            // Content without a head.
            (_, Some(Flow::Fetch(flow))) if flow.fetch.is_some() => self.pair.close(None),
            (FlowId::Fetch(id), Some(Flow::Fetch(flow))) => {
                flow.granted = flow.granted.saturating_sub(bytes.len() as u64);
                self.outputs.push_back(NearOutput::Origin(OriginInput::Body(id, bytes)));
            }
            (FlowId::Tcp(id), Some(_)) => self.outputs.push_back(NearOutput::Tcp(id, bytes)),
            _ => {}
        }
    }

    /// The far end has said all, or cannot.
    fn end(&mut self, id: FlowId, result: Result<(), FetchError>) {
        match id {
            FlowId::Tcp(id) => self.server_end(id, result),
            FlowId::Fetch(fetch) => {
                if let Some(Flow::Fetch(request)) = self.flows.remove(id) {
                    self.answered(fetch, request, result);
                }
            }
        }
    }

    fn answered(&mut self, id: FetchId, request: Request, result: Result<(), FetchError>) {
        self.pair.sender.cancel(FlowId::Fetch(id).number());
        // A response has a head.
        let is_empty = request.fetch.is_some() && result.is_ok();
        let result = if is_empty { Err(FetchError::Malformed) } else { result };
        let elsewhere = matches!(
            result,
            Err(FetchError::Unresolved
                | FetchError::Forbidden(_)
                | FetchError::Refused
                | FetchError::Unreachable
                | FetchError::NoRoom)
        );
        self.outputs.push_back(match request.fetch {
            // What only this site knows or may reach, the gateway reaches itself.
            Some(fetch) if elsewhere && !request.has_content => {
                NearOutput::Past(id, fetch, request.granted)
            }
            _ => NearOutput::Origin(OriginInput::End(id, result)),
        });
    }

    /// The far end is gone: what it has not answered goes past it, if it may be sent twice.
    fn break_off(&mut self) {
        for (id, flow) in self.flows.take() {
            let (id, request) = match (id, flow) {
                (FlowId::Fetch(id), Flow::Fetch(request)) => (id, request),
                (FlowId::Tcp(id), _) => {
                    self.pair.report.tcp_flows_broken += 1;
                    self.outputs.push_back(NearOutput::TcpEnd(id, Err(FetchError::Truncated)));
                    continue;
                }
                (FlowId::Fetch(_), Flow::Tcp(_)) => continue,
            };
            self.pair.report.requests_broken += 1;
            self.outputs.push_back(match request.fetch {
                Some(fetch) if fetch.method.is_safe() && !request.has_content => {
                    NearOutput::Past(id, fetch, request.granted)
                }
                _ => NearOutput::Origin(OriginInput::End(id, Err(FetchError::Truncated))),
            });
        }
    }

    fn fail(&mut self, now: Instant, wait: Duration, why: Option<Refused>) {
        self.dialling = Dialling::At(now + wait, (2 * wait).min(REDIAL_MAX));
        if self.told != Some(why) {
            self.told = Some(why);
            let text = match why {
                Some(why) => {
                    format!("the far end of the uplink cannot be used: {}", why.sentence())
                }
                None => {
                    "the far end of the uplink is silent: requests go straight to origins".into()
                }
            };
            self.outputs.push_back(NearOutput::Notice(text));
        }
    }

    fn tick(&mut self, now: Instant) {
        if let Dialling::At(at, wait) = self.dialling
            && at <= now
        {
            self.dialling = Dialling::Now(wait);
            self.outputs.push_back(NearOutput::Dial);
        }
        self.pair.handle_timeout(now, !self.flows.is_empty());
        self.pair.advance(now, &mut self.keys);
    }

    /// What the driver is to do next.
    pub fn poll_output(&mut self) -> Option<NearOutput> {
        self.outputs.pop_front()
    }

    /// Whether [`Near::poll_output`] has something.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The next bytes for the connection, whenever it takes some.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let bytes = self.pair.poll_transmit(now);
        self.take_events(now);
        bytes
    }

    /// When it needs a [`NearInput::Tick`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let dial = match self.dialling {
            Dialling::At(at, _) => Some(at),
            Dialling::Now(_) | Dialling::Connected(..) => None,
        };
        let pair = self.pair.poll_timeout(!self.flows.is_empty());
        dial.into_iter().chain(pair).min()
    }
}

/// Whether a host name means something inside this site only.
fn is_of_site(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse() {
        return is_local(address);
    }
    let suffixes = [".local", ".lan", ".internal", ".home.arpa", ".localhost"];
    !host.contains('.') || suffixes.iter().any(|suffix| host.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_site_are_not_for_the_far_end() {
        for host in ["printer", "nas.lan", "192.168.1.1", "[fd00::1]", "x.LOCAL.", "localhost"] {
            assert!(is_of_site(host), "{host}");
        }
        for host in ["deb.debian.org", "198.51.100.7", "[2001:db8::1]", "lan.example"] {
            assert!(!is_of_site(host), "{host}");
        }
    }
}
