//! Drives one gateway's far end: its engine, its worker, its connection, its requests to origins.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use super::fetch::{self, Content};
use super::room::Room;
use super::share::Share;
use super::tcp::{self, Server};
use super::turns::Turns;
use crate::body_credit::BodyCredit;
use crate::config::Place;
use crate::entropy;
use crate::pair::{End, Histories, Results, Work, Workers, carry};
use crate::status::GatewayCounts;
use bytes::Bytes;
use host::clock::Clock;
use host::origin::Pool;
use node::uplink::{Far, FarConfig, FarInput, FarOutput, Guest, PairKeys, State as PairState};
use node::{FetchError, FetchId, OriginOutput};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use wire::PublicKey;

/// How often it is looked which families of addresses this machine reaches.
const REACH_EVERY: Duration = Duration::from_secs(60);
/// What one gateway sends is little: requests and uploads.
const RECEIVED_BYTES: u64 = 256 << 20;

/// A handle to one gateway's far end.
#[derive(Clone)]
pub struct Gateway(Rc<Inner>);

struct Inner {
    key: PublicKey,
    state: RefCell<State>,
    pool: Pool,
    room: Room,
    turns: Turns,
    changed: Notify,
    rearm: Notify,
    armed: Cell<Option<wire::Instant>>,
}

struct State {
    far: Far,
    /// `None` once the far end is closing.
    work: Option<Work>,
    clock: Clock,
    fetches: HashMap<FetchId, Running>,
    /// Where its latest connection came from.
    address: Option<IpAddr>,
    /// The number of the current connection, and whether it must end.
    connection: u64,
    is_over: bool,
    is_finished: bool,
}

enum Running {
    Fetch {
        task: AbortHandle,
        credit: Rc<BodyCredit>,
        content: Option<Content>,
    },
    /// Its task ends by itself, once it is told to.
    Tcp(Rc<Server>),
}

/// What all gateways have in common.
pub struct Setting {
    /// Where histories are.
    pub place: Place,
    /// The size of each.
    pub store_bytes: u64,
    /// The seed of the far end's key.
    pub identity: [u8; 32],
    /// How origins are connected to: each gateway has a pool of its own, made from this one.
    pub pool: Pool,
    /// Threads for the heavy work.
    pub workers: Workers,
    /// Room for connections with servers.
    pub room: Room,
}

/// Opens histories, and makes an engine that knows them.
fn prepare(
    key: PublicKey,
    place: &Place,
    (store_bytes, units_max): (u64, usize),
    keys: PairKeys,
) -> Result<(Far, Histories), String> {
    let place = Histories::directory(place, &key.to_string()[..16]);
    if let Place::Dir(dir) = &place {
        std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    }
    let received = RECEIVED_BYTES.min(store_bytes);
    let histories = Histories::open(&place, (store_bytes, received), None);
    let histories = histories.map_err(|error| error.to_string())?;
    // The gateway says whether it uses a published scheme.
    let histories = histories.with_chunks(&place, store_bytes, units_max);
    let histories = histories.map_err(|error| error.to_string())?;
    let config = FarConfig { near_key: key, units_max, held: histories.held() };
    let far = Far::new(config, keys, &entropy::bytes(), histories.marks().into_iter());
    Ok((far, histories))
}

impl Gateway {
    /// Opens the histories of the gateway with this key. `pool` is its own.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub async fn open(
        key: PublicKey,
        setting: &Rc<Setting>,
        pool: Pool,
        share: Share,
    ) -> Result<Self, String> {
        let (place, sizes) = (setting.place.clone(), (setting.store_bytes, share.units_max));
        let keys = PairKeys::new(&setting.identity, &entropy::bytes());
        // Others go on meanwhile: a large history is read to its end.
        let open = tokio::task::spawn_blocking(move || prepare(key, &place, sizes, keys));
        let (far, histories) = open.await.map_err(|error| error.to_string())??;
        let (work, results) = setting.workers.open(histories);
        let state = State {
            far,
            work: Some(work),
            clock: Clock::start(),
            fetches: HashMap::new(),
            address: None,
            connection: 0,
            is_over: false,
            is_finished: false,
        };
        let inner = Inner {
            key,
            state: RefCell::new(state),
            pool,
            room: setting.room.clone(),
            turns: Turns::default(),
            changed: Notify::new(),
            rearm: Notify::new(),
            armed: Cell::new(None),
        };
        let gateway = Self(Rc::new(inner));
        spawn_local(gateway.clone().run(results));
        Ok(gateway)
    }

    /// What its pair has counted since it was opened.
    pub fn counted(&self) -> GatewayCounts {
        GatewayCounts::of(&self.0.state.borrow().far.report())
    }

    /// The same, with what holds now; and where it connects from, if it is connected.
    pub fn figures(&self) -> (GatewayCounts, Option<IpAddr>) {
        let state = self.0.state.borrow();
        let gateway_up = state.far.state() == PairState::Up;
        let counts = GatewayCounts {
            gateway_up,
            flows: state.far.flows() as u64,
            index_units: state.far.units() as u64,
            ..GatewayCounts::of(&state.far.report())
        };
        (counts, state.address.filter(|_| gateway_up))
    }

    /// How many units its index has.
    pub fn units(&self) -> usize {
        self.0.state.borrow().far.units()
    }

    /// From now on it has this share of the memory.
    pub fn limit(&self, share: Share) {
        self.0.state.borrow_mut().far.limit(share.content_bytes, share.units_max);
    }

    /// Drops idle connections to origins.
    pub fn drop_idle(&self) {
        self.0.pool.clear();
    }

    /// Serves a connection of the gateway until it ends; a newer one replaces it.
    pub async fn serve(self, stream: TcpStream, guest: Guest, address: IpAddr) {
        let number = {
            let mut state = self.0.state.borrow_mut();
            // It was let in, and then its key was removed.
            if state.work.is_none() {
                return;
            }
            state.address = Some(address);
            state.connection += 1;
            state.is_over = false;
            state.connection
        };
        self.feed(FarInput::Connected(guest, address, host::egress::reach()));
        let link = Link { gateway: self.clone(), number };
        carry(stream, &link).await;
        if link.is_current() {
            self.feed(FarInput::Closed);
        }
    }

    /// Gives the engine an input, and performs its outputs.
    pub fn feed(&self, input: FarInput) {
        let state = &mut *self.0.state.borrow_mut();
        let now = state.clock.now();
        state.far.handle_input(now, input);
        self.drain(state);
    }

    fn drain(&self, state: &mut State) {
        while let Some(output) = state.far.poll_output() {
            match output {
                FarOutput::Hangup => state.is_over = true,
                FarOutput::Work(number, job) => {
                    if let Some(work) = &state.work {
                        work.give(number, job);
                    }
                }
                FarOutput::Origin(output, has_content) => {
                    self.at_origin(state, output, has_content);
                }
                FarOutput::Dial(id, to, client) => {
                    let server = Rc::<Server>::default();
                    state.fetches.insert(id, Running::Tcp(Rc::clone(&server)));
                    let dialler = self.0.pool.dialler().clone();
                    spawn_local(tcp::run(self.clone(), dialler, id, (to, client), server));
                }
                FarOutput::Content(id, bytes) => match state.fetches.get(&id) {
                    Some(Running::Fetch { content: Some(content), .. }) => content.send(bytes),
                    Some(Running::Tcp(server)) => server.inbox.put(bytes),
                    Some(Running::Fetch { content: None, .. }) | None => {}
                },
                FarOutput::ContentEnd(id, result) => match state.fetches.get_mut(&id) {
                    Some(Running::Fetch { content, .. }) => {
                        content.take().into_iter().for_each(|content| content.end(result));
                    }
                    Some(Running::Tcp(server)) => server.inbox.end(result),
                    None => {}
                },
            }
        }
        self.0.changed.notify_waiters();
        let wanted = state.far.poll_timeout();
        if wanted.is_some_and(|at| self.0.armed.get().is_none_or(|armed| at < armed)) {
            self.0.rearm.notify_one();
        }
    }

    fn at_origin(&self, state: &mut State, output: OriginOutput, has_content: bool) {
        match output {
            OriginOutput::Fetch(id, request) => {
                let credit = Rc::<BodyCredit>::default();
                let (content, body) = match has_content {
                    true => {
                        let (content, body) = Content::new();
                        (Some(content), Some(body))
                    }
                    false => (None, None),
                };
                let pool = self.0.pool.clone();
                let task = fetch::run(self.clone(), pool, id, *request, body, Rc::clone(&credit));
                let task = spawn_local(task).abort_handle();
                state.fetches.insert(id, Running::Fetch { task, credit, content });
            }
            OriginOutput::Grant(id, bytes) => match state.fetches.get(&id) {
                Some(Running::Fetch { credit, .. }) => credit.grant(state.clock.now(), bytes),
                Some(Running::Tcp(server)) => server.allow(bytes),
                None => {}
            },
            OriginOutput::Cancel(id) => match state.fetches.remove(&id) {
                Some(Running::Fetch { task, .. }) => task.abort(),
                Some(Running::Tcp(server)) => server.inbox.end(Err(FetchError::Truncated)),
                None => {}
            },
            OriginOutput::TakeIn(..) => {}
        }
    }

    /// A place for a connection with a server, unless this gateway has its share.
    pub fn place(&self) -> Result<super::room::Place, FetchError> {
        self.0.room.take(self.0.key).ok_or(FetchError::NoRoom)
    }

    /// Waits until it is the turn of one of this gateway's flows. Each gateway has one turn in a round of the loop, for
    /// what its flow does until it waits again: so no gateway's flows, however many, hold up another gateway.
    pub async fn turn(&self) {
        self.0.turns.next().await;
    }

    /// A request has ended.
    pub fn fetched(&self, id: FetchId) {
        self.0.state.borrow_mut().fetches.remove(&id);
    }

    /// The origin takes this much more of a request's content.
    pub fn accept_content(&self, id: FetchId, bytes: u64) {
        let state = &mut *self.0.state.borrow_mut();
        let now = state.clock.now();
        state.far.accept_content(now, id, bytes);
        self.drain(state);
    }

    /// The engine's time.
    pub fn clock(&self) -> Clock {
        self.0.state.borrow().clock
    }

    /// Feeds the worker's results and the timer, until the worker has ended.
    async fn run(self, mut results: Results) {
        let mut look = tokio::time::interval(REACH_EVERY);
        loop {
            let clock = {
                let state = self.0.state.borrow();
                self.0.armed.set(state.far.poll_timeout());
                state.clock
            };
            tokio::select! {
                result = results.recv() => {
                    let Some((number, done)) = result else { break };
                    self.feed(FarInput::Done(number, done));
                }
                () = clock.wait_until(self.0.armed.get()) => self.feed(FarInput::Tick),
                _ = look.tick() => self.feed(FarInput::Reaches(host::egress::reach())),
                () = self.0.rearm.notified() => {}
            }
        }
        self.0.state.borrow_mut().is_finished = true;
        self.0.changed.notify_waiters();
    }

    /// Ends the connection, and waits until what has crossed is durable.
    pub async fn close(&self) {
        {
            let mut state = self.0.state.borrow_mut();
            state.is_over = true;
            state.work = None;
        }
        self.0.changed.notify_waiters();
        loop {
            let changed = self.0.changed.notified();
            if self.0.state.borrow().is_finished {
                return;
            }
            changed.await;
        }
    }
}

/// One connection of the gateway.
struct Link {
    gateway: Gateway,
    number: u64,
}

impl End for Link {
    fn receive(&self, bytes: Bytes) {
        if self.is_current() {
            self.gateway.feed(FarInput::Received(bytes));
        }
    }

    fn transmit(&self) -> Option<Bytes> {
        if !self.is_current() {
            return None;
        }
        let state = &mut *self.gateway.0.state.borrow_mut();
        let now = state.clock.now();
        let bytes = state.far.poll_transmit(now);
        if bytes.is_some() || state.far.has_output() {
            self.gateway.drain(state);
        }
        bytes
    }

    fn may_receive(&self) -> bool {
        self.gateway.0.state.borrow().far.may_receive()
    }

    fn is_over(&self) -> bool {
        self.gateway.0.state.borrow().is_over || !self.is_current()
    }

    fn is_current(&self) -> bool {
        self.gateway.0.state.borrow().connection == self.number
    }

    fn changed(&self) -> &Notify {
        &self.gateway.0.changed
    }
}
