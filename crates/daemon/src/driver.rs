//! The engine's driver: feeds it inputs, and performs its outputs. Everything here runs on one
//! thread; a hit whose chunks are in memory is answered within the call that feeds the request.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use crate::body_credit::BodyCredit;
use crate::connections::{ConnectionLimit, Permit};
use crate::disk::Disk;
use crate::links::{Links, Tell};
use crate::relayed::Relayed;
use crate::request_log::{Line, RequestLog};
use crate::uplink::{Feed, Outcome, Uplink};
use crate::{clients, engine_log, origins};
use bytes::Bytes;
use classes::{HostPattern, Proven, Reach};
use host::clock::Clock;
use host::datagrams::Datagrams;
use host::helper::Helper;
use host::intercept::FlowPorts;
use host::origin::Pool;
use host::screened::Signs;
use host::traffic::{Metered, Traffic};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use node::account::Account;
use node::uplink::NearInput;
use node::{
    Binding, Caller, ClientInput, ClientOutput, Dial, ExchangeId, Fetch, FetchError, FetchId, Head,
    Input, LinkInput, Looked, Node, OriginOutput, Output, PeerInfo, PublishedInfo, PutError,
    Report,
};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::timeout;
use wire::counters::Reason;
use wire::{Date, NodeId, Oid, PublicKey};

/// How long a client waits for the addresses of a host: as long as for an origin that is silent.
const NAME_WAIT: Duration = host::origin::SILENT;
/// How long an origin may take to be reached, that is dialled to see whether it is.
const PROBE_WAIT: Duration = Duration::from_secs(4);

/// A handle to the driver; each task has a clone.
#[derive(Clone)]
pub struct Driver(Rc<Inner>);

struct Inner {
    state: RefCell<State>,
    /// The time at which the timer task will wake the engine.
    armed: Cell<Option<wire::Instant>>,
    /// Tells the timer task that the engine needs to be woken earlier.
    rearm: Notify,
    network: Network,
    links: Links,
    /// What a mirror's paths stand for.
    reach: RefCell<Reach>,
    relayed: Relayed,
    requests: RequestLog,
    /// Destination ports whose intercepted connections may be of any protocol.
    flow_ports: RefCell<FlowPorts>,
    /// Told when interception rules are seen to be missing.
    rules_lost: Notify,
}

/// What connects the driver with others.
pub struct Network {
    /// Connections to origins.
    pub pool: Pool,
    /// Counts the connections of clients.
    pub limit: Rc<ConnectionLimit>,
    /// The pair of the uplink, if it has a far end.
    pub uplink: Option<Uplink>,
    /// Datagrams to other routers, if the scheme sends any.
    pub datagrams: Option<Datagrams>,
    /// The process that has the rights over the network.
    pub helper: Helper,
}

struct State {
    node: Node,
    /// The router's name.
    name: String,
    disk: Disk,
    clock: Clock,
    pending: VecDeque<Input>,
    outboxes: HashMap<ExchangeId, Rc<RefCell<Outbox>>>,
    fetches: HashMap<FetchId, (AbortHandle, Rc<BodyCredit>)>,
    exchanges: u64,
    bindings: u64,
}

/// An exchange's outbox: the engine's outputs for one client, until the client's task takes them.
#[derive(Default)]
pub struct Outbox {
    /// The response's head, until the client's task takes it.
    pub head: Option<Head>,
    /// Content that the client's task has not taken yet.
    pub queue: VecDeque<Bytes>,
    /// How the response ended; `None` until then.
    pub end: Option<End>,
    /// Wakes the client's task, which waits for an output.
    pub waker: Option<Waker>,
    /// The result of publishing a file, or of removing a published file.
    pub published: Option<Result<Oid, PutError>>,
    /// The request's content, until it is sent to an origin or stored.
    pub content: Option<Incoming>,
    /// The request to send to the origin before the client's connection is joined to it. In this
    /// case there is no response.
    pub past: Option<Box<Fetch>>,
    /// Takes interim responses to the client's connection.
    pub signs: Option<Arc<Signs>>,
    /// The client's connection, if the request may turn it into a tunnel or another protocol.
    pub upgrade: Option<Upgrade>,
}

/// A client's connection that may stop speaking HTTP.
pub type Upgrade = (OnUpgrade, Held);

/// What a connection that is joined with another holds until its end.
pub struct Held {
    pub permit: Rc<Permit>,
    /// The line of the request that led to it, if requests are logged.
    pub line: Option<Rc<Line>>,
}

/// A connection to an origin, to be joined with the client's connection, the bytes to send to the
/// origin first, and what is held meanwhile.
pub struct Past {
    pub origin: Metered,
    pub first: Vec<u8>,
    pub held: Held,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole response was put in the outbox.
    Complete,
    /// The response cannot be completed.
    Broken,
}

impl Driver {
    /// Drives the engine `node` of the router `name`.
    pub fn new(mut node: Node, reach: Reach, name: String, disk: Disk, network: Network) -> Self {
        engine_log::start(node.events());
        let state = State {
            node,
            name,
            disk,
            clock: Clock::start(),
            pending: VecDeque::new(),
            outboxes: HashMap::new(),
            fetches: HashMap::new(),
            exchanges: 0,
            bindings: 0,
        };
        Self(Rc::new(Inner {
            state: RefCell::new(state),
            armed: Cell::new(None),
            rearm: Notify::new(),
            links: Links::new(network.pool.dialler().traffic().clone()),
            network,
            reach: RefCell::new(reach),
            relayed: Relayed::default(),
            requests: RequestLog::default(),
            flow_ports: RefCell::default(),
            rules_lost: Notify::new(),
        }))
    }

    /// Gives the engine an input, and performs its outputs until there are none left.
    pub fn feed(&self, input: Input) {
        self.feed_all([input]);
    }

    /// The same with several inputs, before any that they lead to: content must stay in order.
    fn feed_all(&self, inputs: impl IntoIterator<Item = Input>) {
        let state = &mut *self.0.state.borrow_mut();
        state.pending.extend(inputs);
        while let Some(input) = state.pending.pop_front() {
            let now = state.clock.now();
            state.node.handle_input(now, input);
            while let Some(output) = state.node.poll_output() {
                self.perform(state, output);
            }
            engine_log::drain(&state.name, state.node.events());
        }
        // The timer is rearmed only for an earlier deadline. Most inputs postpone the deadline; a
        // wake-up that is too early is harmless.
        let armed = self.0.armed.get();
        let wanted = state.node.poll_timeout();
        if wanted.is_some_and(|(at, _)| armed.is_none_or(|armed| at < armed)) {
            self.0.rearm.notify_one();
        }
    }

    /// Feeds a tick at each of the engine's deadlines; never returns.
    pub async fn tick(&self) {
        loop {
            let clock = {
                let state = self.0.state.borrow();
                let next = state.node.poll_timeout();
                engine_log::sleeps(&state.name, state.clock.now(), next);
                self.0.armed.set(next.map(|(at, _)| at));
                state.clock
            };
            tokio::select! {
                () = clock.wait_until(self.0.armed.get()) => self.feed(Input::Tick),
                () = self.0.rearm.notified() => {}
            }
        }
    }

    /// Opens an exchange; returns its id and its outbox.
    pub fn open(&self) -> (ExchangeId, Rc<RefCell<Outbox>>) {
        let mut state = self.0.state.borrow_mut();
        state.exchanges += 1;
        let (id, outbox) = (ExchangeId(state.exchanges), Rc::default());
        state.outboxes.insert(id, Rc::clone(&outbox));
        (id, outbox)
    }

    /// Closes an exchange: its client has closed the connection, or has received the whole response.
    pub fn close(&self, id: ExchangeId) {
        let removed = self.0.state.borrow_mut().outboxes.remove(&id);
        if removed.is_some() {
            self.feed(Input::Client(ClientInput::Gone(id)));
        }
    }

    /// Forgets a fetch that has ended or failed.
    pub fn fetched(&self, id: FetchId) {
        self.0.state.borrow_mut().fetches.remove(&id);
    }

    /// The outbox of an open exchange.
    pub fn outbox(&self, id: ExchangeId) -> Option<Rc<RefCell<Outbox>>> {
        self.0.state.borrow().outboxes.get(&id).cloned()
    }

    /// The engine's time.
    pub fn clock(&self) -> Clock {
        self.0.state.borrow().clock
    }

    /// What a mirror's paths stand for.
    pub fn reach(&self) -> Reach {
        self.0.reach.borrow().clone()
    }

    /// A number for a client's connection that is bound to its client.
    pub fn bind(&self) -> Binding {
        let mut state = self.0.state.borrow_mut();
        state.bindings += 1;
        Binding(state.bindings)
    }

    /// The pool of connections to origins.
    pub fn pool(&self) -> &Pool {
        &self.0.network.pool
    }

    /// The limit of clients' connections.
    pub fn limit(&self) -> &Rc<ConnectionLimit> {
        &self.0.network.limit
    }

    /// Datagrams to other routers, if the scheme sends any.
    pub fn datagrams(&self) -> Option<&Datagrams> {
        self.0.network.datagrams.as_ref()
    }

    /// The process that has the rights over the network.
    pub fn helper(&self) -> &Helper {
        &self.0.network.helper
    }

    /// Told when interception rules are seen to be missing.
    pub fn rules_lost(&self) -> &Notify {
        &self.0.rules_lost
    }

    /// The links to peers.
    pub fn links(&self) -> &Links {
        &self.0.links
    }

    /// What was relayed without parsing.
    pub fn relayed(&self) -> &Relayed {
        &self.0.relayed
    }

    /// The log of requests.
    pub fn requests(&self) -> &RequestLog {
        &self.0.requests
    }

    /// Intercepted connections to these ports may be of any protocol.
    pub fn set_flow_ports(&self, ports: FlowPorts) {
        *self.0.flow_ports.borrow_mut() = ports;
    }

    /// The families whose connections are to go by the far end now: those that it reaches, while there is room.
    pub fn reaches(&self) -> node::uplink::Reach {
        let reach = self.pair().and_then(|pair| *pair.reach().borrow());
        reach.filter(|_| !*self.limit().is_crowded().borrow()).unwrap_or_default()
    }

    /// Whether an intercepted connection to this port may be of any protocol.
    pub fn is_flow(&self, port: u16) -> bool {
        self.0.flow_ports.borrow().has(port)
    }

    /// A mirror may ask these hosts, too.
    pub fn allow_mirrored(&self, hosts: Arc<[HostPattern]>) {
        self.0.reach.borrow_mut().allow = hosts;
    }

    /// Has the engine say what it does, if the log shows that now.
    pub fn watch_engine(&self) {
        engine_log::start(self.0.state.borrow_mut().node.events());
    }

    /// The engine's counters and gauges.
    pub fn report(&self) -> Report {
        self.0.state.borrow().node.report()
    }

    /// The archives that were found by their indexes.
    pub fn proven(&self) -> Proven {
        self.0.state.borrow_mut().node.by_class().proven.clone()
    }

    /// Calls `look` with the engine's account of bytes, and returns its result.
    pub fn with_account<T>(&self, look: impl FnOnce(&mut Account) -> T) -> T {
        look(self.0.state.borrow_mut().node.by_class().account)
    }

    /// The content of an answer that is given without the engine.
    pub fn error_text(&self, status: StatusCode, why: impl Reason) -> Bytes {
        node::error_text(&self.0.state.borrow().name, status, &why.clause())
    }

    /// The error response to a client whose origin could not be dialled.
    pub fn dialled_in_vain(&self, error: FetchError) -> (Head, Bytes) {
        node::dialled_in_vain(&self.0.state.borrow().name, error)
    }

    /// The connected peers.
    pub fn peers(&self) -> Vec<PeerInfo> {
        self.0.state.borrow().node.peers()
    }

    /// The objects that are published on this node.
    pub fn published(&self) -> Result<Vec<PublishedInfo>, PutError> {
        self.0.state.borrow().node.published()
    }

    /// The node's id and public key, if it is in a mesh.
    pub fn identity(&self) -> Option<(NodeId, PublicKey)> {
        self.0.state.borrow().node.identity()
    }

    /// Calls `look` with the disk, and returns its result.
    pub fn with_disk<T>(&self, look: impl FnOnce(&Disk) -> T) -> T {
        look(&self.0.state.borrow().disk)
    }

    /// Gives the engine the current date.
    pub fn set_clock(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.feed(Input::Clock(Date::from_unix(since.as_secs())));
    }

    /// The pair of the uplink, if it has a far end.
    pub fn pair(&self) -> Option<&Uplink> {
        self.0.network.uplink.as_ref()
    }

    fn perform(&self, state: &mut State, output: Output) {
        match output {
            Output::Client(output) => self.for_client(state, output),
            Output::Origin(output) => self.at_origin(state, output),
            Output::Link(output) => self.0.links.perform(output, self),
            Output::Store(output) => {
                state.pending.extend(state.disk.perform(output).map(Input::Store));
            }
            Output::Name(host, client) => self.resolve(host, client),
            Output::Probe(dial, client, caller) => self.probe(dial, client, caller),
            Output::Datagram(to, bytes) => {
                self.datagrams().iter().for_each(|it| it.send(to, &bytes))
            }
            Output::Broadcast(bytes) => self.datagrams().iter().for_each(|it| it.broadcast(&bytes)),
            Output::Notice(text) => tracing::warn!("{text}"),
        }
    }

    fn for_client(&self, state: &mut State, output: ClientOutput) {
        match output {
            ClientOutput::Interim(id, status, headers) => state.leave(id, |outbox| {
                if let Some(signs) = &outbox.signs {
                    signs.interims.send(status, &headers);
                }
            }),
            ClientOutput::Respond(id, head) => state.leave(id, |outbox| outbox.head = Some(*head)),
            ClientOutput::Data(id, bytes) => {
                state.leave(id, |outbox| outbox.queue.push_back(bytes))
            }
            ClientOutput::Finish(id) => state.leave_last(id, End::Complete),
            ClientOutput::Abort(id) => state.leave_last(id, End::Broken),
            ClientOutput::Tunnel(id, dial, client, caller) => {
                if let Some(outbox) = state.outboxes.remove(&id) {
                    spawn_local(clients::tunnel(self.clone(), outbox, dial, client, caller));
                }
            }
            ClientOutput::Relay(id, fetch) => {
                if let Some(outbox) = state.outboxes.remove(&id) {
                    outbox.borrow_mut().past = Some(fetch);
                    wake(&outbox);
                }
            }
            ClientOutput::Published(id, result) => {
                state.leave(id, |outbox| outbox.published = Some(result));
            }
        }
    }

    fn at_origin(&self, state: &mut State, output: OriginOutput) {
        if let Some(uplink) = self.pair()
            && uplink.takes(&output)
        {
            return self.by_pair(uplink, state, output);
        }
        match output {
            OriginOutput::Fetch(id, fetch) => self.fetch(state, id, *fetch),
            OriginOutput::TakeIn(exchange, id) => {
                let credit = Rc::<BodyCredit>::default();
                let task = origins::take_in(self.clone(), exchange, id, Rc::clone(&credit));
                state.fetches.insert(id, (spawn_local(task).abort_handle(), credit));
            }
            OriginOutput::Grant(id, bytes) => {
                if let Some((_, credit)) = state.fetches.get(&id) {
                    credit.grant(state.clock.now(), bytes);
                }
            }
            OriginOutput::Cancel(id) => {
                if let Some((task, _)) = state.fetches.remove(&id) {
                    task.abort();
                }
            }
        }
    }

    fn fetch(&self, state: &mut State, id: FetchId, fetch: Fetch) {
        let credit = Rc::<BodyCredit>::default();
        let task = origins::fetch(self.clone(), id, fetch, Rc::clone(&credit));
        state.fetches.insert(id, (spawn_local(task).abort_handle(), credit));
    }

    fn by_pair(&self, uplink: &Uplink, state: &mut State, output: OriginOutput) {
        let content = match &output {
            OriginOutput::Fetch(id, fetch) => {
                let outbox = fetch.exchange.and_then(|exchange| state.outboxes.get(&exchange));
                let content = outbox.and_then(|outbox| outbox.borrow_mut().content.take());
                content.map(|content| (*id, content))
            }
            OriginOutput::Grant(..) | OriginOutput::Cancel(_) | OriginOutput::TakeIn(..) => None,
        };
        let Outcome { inputs, past } =
            uplink.feed(self, NearInput::Origin(output, content.is_some()));
        state.pending.extend(inputs.into_iter().map(Input::Origin));
        past.into_iter().for_each(|it| self.go_past(state, it));
        if let Some((id, content)) = content {
            spawn_local(uplink.clone().send_content(self.clone(), id, content));
        }
    }

    /// Sends a request straight to its origin that the pair could not carry.
    fn go_past(&self, state: &mut State, (id, fetch, granted): (FetchId, Box<Fetch>, u64)) {
        self.fetch(state, id, *fetch);
        if let Some((_, credit)) = state.fetches.get(&id).filter(|_| granted > 0) {
            credit.grant(state.clock.now(), granted);
        }
    }

    /// Sees whether an origin can be dialled.
    fn probe(&self, dial: Dial, client: IpAddr, caller: Caller) {
        let driver = self.clone();
        spawn_local(async move {
            let dialled = driver.pool().dialler().dial(&dial, client, caller);
            let reached = match timeout(PROBE_WAIT, dialled).await {
                // An origin that refuses is there.
                Ok(result) => matches!(result, Ok(_) | Err(FetchError::Refused)),
                Err(_) => false,
            };
            driver.feed(Input::Probed(reached));
        });
    }

    /// Looks up a host's name. Clients wait for a resolver only so long; it may still answer later.
    fn resolve(&self, host: String, client: IpAddr) {
        let driver = self.clone();
        spawn_local(async move {
            let looked = {
                let mut look = std::pin::pin!(host::resolve::resolve(&host, client));
                match timeout(NAME_WAIT, look.as_mut()).await {
                    Ok(looked) => looked,
                    Err(_) => {
                        driver.feed(Input::Name(host.clone(), Looked::Unanswered));
                        look.await
                    }
                }
            };
            driver.feed(Input::Name(host, looked));
        });
    }
}

impl Feed for Driver {
    fn uplink(&self, input: NearInput) {
        if let Some(uplink) = self.pair() {
            let outcome = uplink.feed(self, input);
            self.apply(outcome);
        }
    }

    fn apply(&self, outcome: Outcome) {
        let Outcome { inputs, past } = outcome;
        if !past.is_empty() {
            let state = &mut *self.0.state.borrow_mut();
            past.into_iter().for_each(|it| self.go_past(state, it));
        }
        self.feed_all(inputs.into_iter().map(Input::Origin));
    }

    fn relayed(&self) -> &Relayed {
        Driver::relayed(self)
    }

    fn traffic(&self) -> &Traffic {
        self.pool().dialler().traffic()
    }

    fn set_bbr(&self, connection: &TcpStream) {
        if let Err(error) = self.helper().set_bbr(connection) {
            tracing::debug!(%error, "the uplink's connection is without BBR");
        }
    }
}

impl Tell for Driver {
    fn tell(&self, input: LinkInput) {
        self.feed(Input::Link(input));
    }
}

impl State {
    fn leave(&mut self, id: ExchangeId, put: impl FnOnce(&mut Outbox)) {
        if let Some(outbox) = self.outboxes.get(&id) {
            put(&mut outbox.borrow_mut());
            wake(outbox);
        }
    }

    fn leave_last(&mut self, id: ExchangeId, end: End) {
        if let Some(outbox) = self.outboxes.remove(&id) {
            outbox.borrow_mut().end = Some(end);
            wake(&outbox);
        }
    }
}

impl Outbox {
    /// Puts the whole content of a response into the outbox, and ends the response.
    pub fn leave_all(&mut self, text: Bytes) {
        self.queue.push_back(text);
        self.end = Some(End::Complete);
    }
}

/// Wakes the task that waits for an output in this outbox.
pub fn wake(outbox: &RefCell<Outbox>) {
    let waker = outbox.borrow_mut().waker.take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
