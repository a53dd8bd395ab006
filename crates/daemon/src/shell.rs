//! The engine's driver: gives it what happens, and does what it says. Everything here runs on one
//! thread; a hit is answered within the call that brings the request.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use crate::disk::Disk;
use crate::links::{Links, Tell};
use crate::places::{Place, Places};
use crate::{clients, origins};
use bytes::Bytes;
use host::clock::Clock;
use host::origin::Pool;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use node::driver::Grants;
use node::{
    ClientInput, ClientOutput, ExchangeId, Fetch, FetchError, FetchId, Head, Input, LinkInput,
    Node, OriginOutput, Output, PeerInfo, PublishedInfo, PutError, Report,
};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;
use std::time::SystemTime;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use wire::{Date, NodeId, Oid, PublicKey};

/// The driver; cloned into every task.
#[derive(Clone)]
pub struct Shell(Rc<Inner>);

struct Inner {
    state: RefCell<State>,
    /// When the engine is going to be woken.
    armed: Cell<Option<wire::Instant>>,
    /// It wants to be woken earlier than that.
    rearm: Notify,
    pub pool: Pool,
    places: Rc<Places>,
    links: Links,
    pub relayed: Cell<u64>,
}

struct State {
    node: Node,
    disk: Disk,
    clock: Clock,
    pending: VecDeque<Input>,
    ports: HashMap<ExchangeId, Rc<RefCell<Port>>>,
    fetches: HashMap<FetchId, (AbortHandle, Rc<Valve>)>,
    exchanges: u64,
}

/// Where the engine leaves what a client is to get.
#[derive(Default)]
pub struct Port {
    /// The head, until it is taken.
    pub head: Option<Head>,
    /// Content on its way.
    pub queue: VecDeque<Bytes>,
    /// How it ended, once it has.
    pub end: Option<End>,
    /// Who waits for any of these.
    pub waker: Option<Waker>,
    /// What came of publishing, or of taking something back.
    pub published: Option<Result<Oid, PutError>>,
    /// The request's content, until somebody sends it on.
    pub content: Option<Incoming>,
    /// The request with which the client's connection is to be joined with its origin's, instead of an answer.
    pub past: Option<Box<Fetch>>,
    /// The connection itself, once it is no longer HTTP.
    pub upgrade: Option<Upgrade>,
}

/// A connection that may leave HTTP, and the place that it keeps then.
pub type Upgrade = (OnUpgrade, Rc<Place>);

/// A connection to an origin that nobody reads here, and what is to be sent there first.
pub struct Past {
    pub origin: TcpStream,
    pub first: Vec<u8>,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is complete.
    Complete,
    /// It cannot be completed.
    Broken,
}

/// How much of an origin's content may be taken.
#[derive(Default)]
pub struct Valve {
    pub grants: Cell<Grants>,
    /// Tells of more that may be taken.
    pub opened: Notify,
}

impl Shell {
    /// Drives an engine, for clients in these places.
    pub fn new(node: Node, disk: Disk, pool: Pool, places: Rc<Places>) -> Self {
        let state = State {
            node,
            disk,
            clock: Clock::start(),
            pending: VecDeque::new(),
            ports: HashMap::new(),
            fetches: HashMap::new(),
            exchanges: 0,
        };
        Self(Rc::new(Inner {
            state: RefCell::new(state),
            armed: Cell::new(None),
            rearm: Notify::new(),
            pool,
            places,
            links: Links::new(),
            relayed: Cell::new(0),
        }))
    }

    /// Tells the engine what happened, and does all that it says, until it says no more.
    pub fn feed(&self, input: Input) {
        let mut state = self.0.state.borrow_mut();
        state.pending.push_back(input);
        while let Some(input) = state.pending.pop_front() {
            let now = state.clock.now();
            state.node.handle_input(now, input);
            while let Some(output) = state.node.poll_output() {
                self.perform(&mut state, output);
            }
        }
        // Whoever is woken too early only looks again: most inputs move what is due to a later time.
        let armed = self.0.armed.get();
        if state.node.poll_timeout().is_some_and(|at| armed.is_none_or(|armed| at < armed)) {
            self.0.rearm.notify_one();
        }
    }

    /// Wakes the engine whenever it wants to be woken; never returns.
    pub async fn tick(&self) {
        loop {
            let clock = {
                let state = self.0.state.borrow();
                self.0.armed.set(state.node.poll_timeout());
                state.clock
            };
            tokio::select! {
                () = clock.wait_until(self.0.armed.get()) => self.feed(Input::Tick),
                () = self.0.rearm.notified() => {}
            }
        }
    }

    /// A new exchange, and where its answer will be left.
    pub fn open(&self) -> (ExchangeId, Rc<RefCell<Port>>) {
        let mut state = self.0.state.borrow_mut();
        state.exchanges += 1;
        let (id, port) = (ExchangeId(state.exchanges), Rc::default());
        state.ports.insert(id, Rc::clone(&port));
        (id, port)
    }

    /// An exchange's client has left, or has everything.
    pub fn close(&self, id: ExchangeId) {
        let removed = self.0.state.borrow_mut().ports.remove(&id);
        if removed.is_some() {
            self.feed(Input::Client(ClientInput::Gone(id)));
        }
    }

    /// A transfer has ended, or was broken off.
    pub fn fetched(&self, id: FetchId) {
        self.0.state.borrow_mut().fetches.remove(&id);
    }

    /// Where an exchange's answer is left.
    pub fn port(&self, id: ExchangeId) -> Option<Rc<RefCell<Port>>> {
        self.0.state.borrow().ports.get(&id).cloned()
    }

    /// The engine's time.
    pub fn clock(&self) -> Clock {
        self.0.state.borrow().clock
    }

    /// Connections to origins.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// Connections of clients.
    pub fn places(&self) -> &Rc<Places> {
        &self.0.places
    }

    /// Connections with peers.
    pub fn links(&self) -> &Links {
        &self.0.links
    }

    /// Bytes that crossed unlooked at.
    pub fn relayed(&self) -> &Cell<u64> {
        &self.0.relayed
    }

    /// What the engine has counted.
    pub fn report(&self) -> Report {
        self.0.state.borrow().node.report()
    }

    /// The answer to a client for which an origin was dialled in vain.
    pub fn dialled_in_vain(&self, error: FetchError) -> (Head, Bytes) {
        self.0.state.borrow().node.dialled_in_vain(error)
    }

    /// The peers that are there.
    pub fn peers(&self) -> Vec<PeerInfo> {
        self.0.state.borrow().node.peers()
    }

    /// All that is published here.
    pub fn published(&self) -> Result<Vec<PublishedInfo>, PutError> {
        self.0.state.borrow().node.published()
    }

    /// Who this node is to its peers, if it is in a mesh.
    pub fn identity(&self) -> Option<(NodeId, PublicKey)> {
        self.0.state.borrow().node.identity()
    }

    /// Looks at the store.
    pub fn with_disk<T>(&self, look: impl FnOnce(&Disk) -> T) -> T {
        look(&self.0.state.borrow().disk)
    }

    /// Tells the engine the date.
    pub fn set_clock(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.feed(Input::Clock(Date::from_unix(since.as_secs())));
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
            // There is no socket for it yet, and no engine that sends one.
            Output::Datagram(..) => {}
            Output::Notice(text) => tracing::warn!("{text}"),
        }
    }

    fn for_client(&self, state: &mut State, output: ClientOutput) {
        match output {
            ClientOutput::Respond(id, head) => state.leave(id, |port| port.head = Some(*head)),
            ClientOutput::Data(id, bytes) => state.leave(id, |port| port.queue.push_back(bytes)),
            ClientOutput::Finish(id) => state.leave_last(id, End::Complete),
            ClientOutput::Abort(id) => state.leave_last(id, End::Broken),
            ClientOutput::Tunnel(id, dial, client, caller) => {
                if let Some(port) = state.ports.remove(&id) {
                    spawn_local(clients::tunnel(self.clone(), port, dial, client, caller));
                }
            }
            ClientOutput::Relay(id, fetch) => {
                if let Some(port) = state.ports.remove(&id) {
                    port.borrow_mut().past = Some(fetch);
                    wake(&port);
                }
            }
            ClientOutput::Published(id, result) => {
                state.leave(id, |port| port.published = Some(result));
            }
        }
    }

    fn at_origin(&self, state: &mut State, output: OriginOutput) {
        match output {
            OriginOutput::Fetch(id, fetch) => {
                let valve = Rc::<Valve>::default();
                let task = origins::fetch(self.clone(), id, *fetch, Rc::clone(&valve));
                state.fetches.insert(id, (spawn_local(task).abort_handle(), valve));
            }
            OriginOutput::TakeIn(exchange, id) => {
                let valve = Rc::<Valve>::default();
                let task = origins::take_in(self.clone(), exchange, id, Rc::clone(&valve));
                state.fetches.insert(id, (spawn_local(task).abort_handle(), valve));
            }
            OriginOutput::Grant(id, bytes) => {
                if let Some((_, valve)) = state.fetches.get(&id) {
                    let mut grants = valve.grants.get();
                    grants.grant(state.clock.now(), bytes);
                    valve.grants.set(grants);
                    valve.opened.notify_one();
                }
            }
            OriginOutput::Cancel(id) => {
                if let Some((task, _)) = state.fetches.remove(&id) {
                    task.abort();
                }
            }
        }
    }

    fn resolve(&self, host: String, client: IpAddr) {
        let shell = self.clone();
        spawn_local(async move {
            let addresses = host::resolve::resolve(&host, 80, client).await;
            let addresses =
                addresses.map(|all| all.into_iter().map(|address| address.ip()).collect());
            shell.feed(Input::Name(host, addresses));
        });
    }
}

impl Tell for Shell {
    fn tell(&self, input: LinkInput) {
        self.feed(Input::Link(input));
    }
}

impl State {
    fn leave(&mut self, id: ExchangeId, put: impl FnOnce(&mut Port)) {
        if let Some(port) = self.ports.get(&id) {
            put(&mut port.borrow_mut());
            wake(port);
        }
    }

    fn leave_last(&mut self, id: ExchangeId, end: End) {
        if let Some(port) = self.ports.remove(&id) {
            port.borrow_mut().end = Some(end);
            wake(&port);
        }
    }
}

impl Port {
    /// Leaves the whole content of an answer.
    pub fn leave_all(&mut self, text: Bytes) {
        self.queue.push_back(text);
        self.end = Some(End::Complete);
    }
}

/// Wakes whoever waits at a port.
pub fn wake(port: &RefCell<Port>) {
    let waker = port.borrow_mut().waker.take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
