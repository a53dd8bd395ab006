//! The gateway's end of the uplink's pair: drives [`Near`], which stands between the engine's requests to
//! origins and the origins.
//!
//! What the pair carries never reaches `origins.rs`, except the content of requests, which is read here. All
//! else goes there as if there were no far end.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

mod tcp;

pub use tcp::Carried;

use crate::config::{Config, FarEnd};
use crate::entropy;
use crate::identity::Identity;
use crate::pair::tcp::Inbox;
use crate::pair::{End, Histories, Results, Work, Workers, carry};
use crate::relayed::Relayed;
use crate::status::UplinkLine;
use bytes::Bytes;
use host::clock::Clock;
use host::traffic::{Traffic, With};
use hyper::body::{Body as _, Incoming};
use node::uplink::{FlowId, Near, NearConfig, NearInput, NearOutput, PairKeys, Reach, TcpId};
use node::{Access, Fetch, FetchError, FetchId, OriginInput, OriginOutput};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_local;

/// What the gateway sends is little: requests and uploads.
const SENT_BYTES: u64 = 64 << 20;
/// What it receives has this part of the store's size.
const RECEIVED_SHARE: u64 = 4;
/// In memory it has at most this much.
const RECEIVED_IN_MEMORY: u64 = 16 << 20;

/// The chunks of a published scheme that its tables have at most: 130 MB of memory.
const CHUNKS_MAX: usize = 1 << 20;

/// A handle to the pair's near end.
#[derive(Clone)]
pub struct Uplink(Rc<Inner>);

struct Inner {
    state: RefCell<State>,
    /// For the connection's task.
    changed: Notify,
    /// For the timer's task.
    rearm: Notify,
    armed: Cell<Option<wire::Instant>>,
    /// For tasks that read the content of requests, and clients of TCP.
    room: Notify,
    /// What the far end reaches, while it answers.
    reach: watch::Sender<Option<Reach>>,
}

struct State {
    near: Near,
    work: Work,
    clock: Clock,
    far: FarEnd,
    /// The number of the current connection, and whether it must end.
    connection: u64,
    is_over: bool,
    /// Clients' TCP connections.
    tcp: HashMap<TcpId, Rc<Inbox>>,
    dialled: u64,
}

/// The engine's driver, as the pair's tasks see it.
pub trait Feed: Clone + 'static {
    /// Gives the pair an input.
    fn uplink(&self, input: NearInput);

    /// Hands on what an input has led to.
    fn apply(&self, outcome: Outcome);

    /// Where bytes of TCP connections are counted.
    fn relayed(&self) -> &Relayed;

    /// What connections count as.
    fn traffic(&self) -> &Traffic;

    /// Sets BBR on a connection, where this process itself may not.
    fn set_bbr(&self, connection: &TcpStream);
}

/// What an input of the pair leads to in the engine's driver.
#[derive(Default)]
pub struct Outcome {
    /// Inputs of the engine.
    pub inputs: Vec<OriginInput>,
    /// Requests that go past the pair, each with the bytes that are granted.
    pub past: Vec<(FetchId, Box<Fetch>, u64)>,
}
impl Uplink {
    /// Opens the histories and starts the worker. `None`, with a warning, if they cannot be used: then there is
    /// no pair.
    pub fn open(config: &Config, identity: &Identity, access: Access) -> Option<(Self, Results)> {
        let far = config.uplink.far.clone()?;
        let (place, size) = (&config.store.place, config.store.size_bytes);
        let received = match place {
            crate::config::Place::Memory => (size / RECEIVED_SHARE).min(RECEIVED_IN_MEMORY),
            crate::config::Place::Dir(_) => size / RECEIVED_SHARE,
        };
        let key = config.mesh.key.is_some().then(|| {
            blake3::derive_key(
                "hearsay 2026 an uplink's history at rest",
                &config.mesh.object_secret(),
            )
        });
        let place = Histories::directory(place, "uplink");
        let warn = |error: &dyn std::fmt::Display| {
            tracing::warn!(
                "cannot keep what crosses the uplink: {error}; running without its far end"
            );
        };
        let sent = SENT_BYTES.min(received);
        let histories =
            Histories::open(&place, (sent, received), key).map_err(|it| warn(&it)).ok()?;
        let scheme = config.experiment.uplink;
        let histories = match scheme {
            Some(_) => {
                histories.with_chunks(&place, received, CHUNKS_MAX).map_err(|it| warn(&it)).ok()?
            }
            None => histories,
        };
        let (held, marks) = (histories.held(), histories.marks());
        let (work, results) = Workers::start(1).map_err(|it| warn(&it)).ok()?.open(histories);
        let near = NearConfig { far_key: far.key, access, held, scheme };
        let keys = PairKeys::new(&identity.seed, &entropy::bytes());
        let near = Near::new(near, keys, &entropy::bytes(), marks.into_iter());
        let state = State {
            near,
            work,
            clock: Clock::start(),
            far,
            connection: 0,
            is_over: false,
            tcp: HashMap::new(),
            dialled: 0,
        };
        let inner = Inner {
            state: RefCell::new(state),
            changed: Notify::new(),
            rearm: Notify::new(),
            armed: Cell::new(None),
            room: Notify::new(),
            reach: watch::Sender::new(None),
        };
        Some((Self(Rc::new(inner)), results))
    }

    /// Whether this goes by the pair.
    pub fn takes(&self, output: &OriginOutput) -> bool {
        self.0.state.borrow_mut().near.takes(output)
    }

    /// Gives the pair an input, and performs what it asks for, except what the outcome says.
    #[must_use]
    pub fn feed<D: Feed>(&self, driver: &D, input: NearInput) -> Outcome {
        let state = &mut *self.0.state.borrow_mut();
        let now = state.clock.now();
        state.near.handle_input(now, input);
        self.drain(driver, state)
    }

    fn drain<D: Feed>(&self, driver: &D, state: &mut State) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(output) = state.near.poll_output() {
            match output {
                NearOutput::Dial => {
                    state.connection += 1;
                    state.is_over = false;
                    let link = Link {
                        uplink: self.clone(),
                        driver: driver.clone(),
                        number: state.connection,
                    };
                    spawn_local(link.run(state.far.clone()));
                }
                NearOutput::Hangup => state.is_over = true,
                NearOutput::Work(number, job) => state.work.give(number, job),
                NearOutput::Origin(input) => outcome.inputs.push(input),
                NearOutput::Past(id, fetch, granted) => outcome.past.push((id, fetch, granted)),
                NearOutput::Notice(text) => tracing::info!("{text}"),
                NearOutput::Tcp(id, bytes) => {
                    if let Some(inbox) = state.tcp.get(&id) {
                        inbox.put(bytes);
                    }
                }
                NearOutput::TcpCrossed(id, crossed) => {
                    if let Some(inbox) = state.tcp.get(&id) {
                        inbox.comes(crossed);
                    }
                }
                NearOutput::TcpEnd(id, result) => {
                    // After the server has said all, the connection may still break off.
                    if let Some(inbox) = state.tcp.get(&id) {
                        inbox.end(result);
                    }
                }
            }
        }
        let reach = state.near.reach();
        self.0.reach.send_if_modified(|told| std::mem::replace(told, reach) != reach);
        self.0.changed.notify_waiters();
        self.0.room.notify_waiters();
        let wanted = state.near.poll_timeout();
        if wanted.is_some_and(|at| self.0.armed.get().is_none_or(|armed| at < armed)) {
            self.0.rearm.notify_one();
        }
        outcome
    }

    /// Feeds the worker's results and the timer; never returns.
    pub async fn run(self, driver: impl Feed, mut results: Results) {
        loop {
            let clock = {
                let state = self.0.state.borrow();
                self.0.armed.set(state.near.poll_timeout());
                state.clock
            };
            tokio::select! {
                result = results.recv() => {
                    let Some((number, done)) = result else { return };
                    driver.uplink(NearInput::Done(number, done));
                }
                () = clock.wait_until(self.0.armed.get()) => driver.uplink(NearInput::Tick),
                () = self.0.rearm.notified() => {}
            }
        }
    }

    /// Feeds the content of a request, as fast as it crosses.
    pub async fn send_content(self, driver: impl Feed, id: FetchId, mut content: Incoming) {
        let flow = FlowId::Fetch(id);
        let result = loop {
            let frame = poll_fn(|cx| Pin::new(&mut content).poll_frame(cx)).await;
            match frame {
                None => break Ok(()),
                Some(Err(_)) => break Err(FetchError::Unsent),
                // Trailers are dropped.
                Some(Ok(frame)) => {
                    let Ok(mut bytes) = frame.into_data() else { continue };
                    while !bytes.is_empty() {
                        let Some(room) = self.room(flow).await else { return };
                        let piece = bytes.split_to(bytes.len().min(room as usize));
                        driver.uplink(NearInput::Content(flow, piece));
                    }
                }
            }
        };
        driver.uplink(NearInput::ContentEnd(flow, result));
    }

    /// How much content there is room for, once there is; `None` if it is not wanted any more.
    async fn room(&self, id: FlowId) -> Option<u64> {
        loop {
            let changed = self.0.room.notified();
            {
                let state = self.0.state.borrow();
                if !state.near.carries(id) {
                    return None;
                }
                let room = state.near.room(id);
                if room > 0 {
                    return Some(room);
                }
            }
            changed.await;
        }
    }

    /// What the far end reaches; `None` while it does not answer. Changes are noticed by the receiver.
    pub fn reach(&self) -> watch::Receiver<Option<Reach>> {
        self.0.reach.subscribe()
    }

    /// Its state and counters, for people.
    pub fn line(&self) -> UplinkLine {
        let state = self.0.state.borrow();
        UplinkLine::new(&state.far, state.near.state(), state.near.report())
    }
}

/// One connection with the far end.
struct Link<D> {
    uplink: Uplink,
    driver: D,
    number: u64,
}

impl<D: Feed> Link<D> {
    async fn run(self, far: FarEnd) {
        match host::pair::dial(&far.host, far.port).await {
            Ok(stream) if self.is_current() => {
                if !host::pair::has_bbr(&stream) {
                    self.driver.set_bbr(&stream);
                }
                self.driver.uplink(NearInput::Connected);
                carry(self.driver.traffic().meter(stream, With::Uplink), &self).await;
            }
            Ok(_) => return,
            Err(error) => tracing::debug!(%error, far = %far, "cannot connect to the far end"),
        }
        if self.is_current() {
            self.driver.uplink(NearInput::Closed);
        }
    }
}

impl<D: Feed> End for Link<D> {
    fn receive(&self, bytes: Bytes) {
        if self.is_current() {
            self.driver.uplink(NearInput::Received(bytes));
        }
    }

    fn transmit(&self) -> Option<Bytes> {
        if !self.is_current() {
            return None;
        }
        let (bytes, outcome) = {
            let state = &mut *self.uplink.0.state.borrow_mut();
            let now = state.clock.now();
            let bytes = state.near.poll_transmit(now);
            if bytes.is_none() && !state.near.has_output() {
                return None;
            }
            (bytes, self.uplink.drain(&self.driver, state))
        };
        self.driver.apply(outcome);
        bytes
    }

    fn may_receive(&self) -> bool {
        self.uplink.0.state.borrow().near.may_receive()
    }

    fn is_over(&self) -> bool {
        self.uplink.0.state.borrow().is_over || !self.is_current()
    }

    fn is_current(&self) -> bool {
        self.uplink.0.state.borrow().connection == self.number
    }

    fn changed(&self) -> &Notify {
        &self.uplink.0.changed
    }
}
