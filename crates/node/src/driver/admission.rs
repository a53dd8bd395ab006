//! Admission control: which clients' connections a node accepts, and which it closes to make room.
//!
//! *What this is:* a count of connections and of the memory that they may use. Each connection is
//! charged for the most memory that it can use in its stage, socket buffers included. So the sum is an
//! upper bound, and no socket needs to be inspected. When there is no room, the longest idle connection
//! is closed first. If none is idle, it is the connection whose head has been incomplete longest. *Who calls
//! it:* a driver, at each event of a connection; the driver then closes the connections that
//! [`Admission::poll_closed`] returns. *What it never does:* wait, or close a connection that waits for
//! our response.

mod meter;

use super::Network;
use super::shares::{Shares, connections_each};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::Instant;

pub use meter::Meter;

/// The most clients' connections at one time, to limit file descriptors. The memory limit may admit fewer.
pub const CONNECTIONS_MAX: usize = 2048;

/// Memory of a connection that waits for its next request, in bytes: its task, the parser's buffer, sockets.
const IDLE_BYTES: u64 = 16 << 10;
/// The most memory of a connection while a request is received or answered, in bytes. It includes
/// 36 KiB of an incomplete head, or the part of a response that a client leaves unread in our buffers and
/// the kernel's. A window above [`WINDOW_MIN`] is counted separately.
const OPEN_BYTES: u64 = 64 << 10;
/// Memory besides, while the links of an index are rewritten that may have to be unpacked, in bytes: the decoder with its
/// window, what the rewriter holds of an unfinished link, and two pieces on their way to the client.
const REWRITE_BYTES: u64 = 320 << 10;
/// Memory of a tunnel, or of another connection that is relayed without parsing, in bytes: two sockets
/// and the piece being relayed.
const TUNNEL_BYTES: u64 = 48 << 10;

/// The window of a response: how many of its bytes may be in flight to the client. At least this …
const WINDOW_MIN: u64 = 16 << 10;
/// … and at most this.
const WINDOW_MAX: u64 = 128 << 10;
/// A window exceeds the minimum by this fraction (an eighth) of the memory still free for windows, at most.
const WINDOW_SHARE: u64 = 8;

/// Once half of the room is taken, a head or body must move at least this many bytes a second …
const PACE_BYTES: u64 = 256;
/// … measured over a minute: this many sweeps.
const PACE_SWEEPS: usize = 12;

/// A tunnel that has carried no bytes for this long may be closed when there is no room.
const QUIET: Duration = Duration::from_secs(60);

/// How often a driver should call [`Admission::sweep`].
pub const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// The number of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(usize);

wire::reasons! {
    /// Why a connection is not accepted; the client is told so.
    pub enum Refused {
        /// This proxy has no room for more connections; try again in some seconds.
        Full = "full",
        /// You have your share of this proxy's connections; close some, or try again in some seconds.
        Share = "share",
    }
}

wire::reasons! {
    /// Why a connection was closed.
    pub enum Closed {
        /// The connection waited for its next request, and room was needed.
        Idle = "idle",
        /// A head was incomplete, and room was needed.
        Head = "head",
        /// A tunnel carried no bytes, and room was needed.
        Tunnel = "tunnel",
        /// The client was too slow, and half of the room was taken.
        Slow = "slow",
    }
}

wire::counters! {
    /// Connections of clients: those that are open, and those for which there was no room.
    #[derive(Copy)]
    pub struct Counters, "client_" {
        Clients () {
            // The driver sets the fields `connections`, `refused` and `past`.
            /// Open connections of clients.
            connections: Gauge, Connections;
            /// Memory that connections of clients may take.
            bytes: Gauge, Bytes;
        }
        Clients (
            "hearsay_client_closed_total", while, "Connections of clients closed for want of room, by what they did."
        ) {
            /// They waited for their next request.
            closed_idle: Counter, Connections, "idle";
            /// Their request's header was incomplete.
            closed_head: Counter, Connections, "head";
            /// They were tunnels in which nothing moved.
            closed_tunnel: Counter, Connections, "tunnel";
            /// Their client was too slow while much memory was taken.
            closed_slow: Counter, Connections, "slow";
        }
        Clients () {
            /// Connections that found no room when they were made.
            full: Counter, Connections;
        }
        Clients ("hearsay_client_refused_total", reason, "Connections of clients not admitted, by reason.") {
            /// There was no room, and the explicit port answered 503.
            refused: Counter, Connections, "full";
            /// Their client had its share of connections.
            over_share: Counter, Connections, "share";
        }
        Clients () {
            /// How often the transparent port stopped listening for want of room, so that connections
            /// went past this proxy.
            past: Counter, Events;
        }
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waiting for the next request.
    Idle,
    /// A head is expected or incomplete: the connection is new, or a part of a later request's head has
    /// arrived.
    Head,
    /// A request is being answered, with a window of `window` bytes, and with this much memory besides.
    Busy { window: u64, besides: u64 },
    /// Bytes are relayed without parsing.
    Tunnel,
    /// The same; either side may speak first.
    Flow,
    /// The connection must be closed; the driver has not reported its end yet.
    Closed,
}

impl Stage {
    fn bytes(self) -> u64 {
        match self {
            Self::Idle => IDLE_BYTES,
            Self::Head => OPEN_BYTES,
            Self::Busy { besides, .. } => OPEN_BYTES + besides,
            Self::Tunnel | Self::Flow => TUNNEL_BYTES,
            Self::Closed => 0,
        }
    }

    /// By how much the window exceeds the minimum, in bytes.
    fn extra(self) -> u64 {
        if let Self::Busy { window, .. } = self { window - WINDOW_MIN } else { 0 }
    }
}

#[derive(Debug)]
struct Connection {
    /// `None` for a client on this machine, which has no limit of its own.
    network: Option<Network>,
    stage: Stage,
    since: Instant,
    pace: Pace,
    meter: Arc<Meter>,
}

/// The room that is needed.
#[derive(Clone, Copy, Debug)]
struct Need {
    slots: usize,
    bytes: u64,
}

impl Need {
    /// The room for a new connection.
    const FIRST: Self = Self { slots: 1, bytes: OPEN_BYTES };
}

/// A connection's byte totals at the last sweeps of its stage, as long as we waited for the client.
#[derive(Clone, Copy, Debug)]
struct Pace {
    since: Instant,
    totals: [u64; PACE_SWEEPS],
    /// How many totals were written. `totals` is a ring: new ones overwrite the oldest.
    count: usize,
}

/// All connections of clients.
#[derive(Debug)]
pub struct Admission {
    connections_max: usize,
    /// One client's share of `connections_max`.
    each_max: usize,
    /// One client's share once half of the room is taken: of the connections that memory admits.
    each_crowded_max: usize,
    /// Memory for connections, in bytes.
    budget: u64,
    /// Memory for windows above [`WINDOW_MIN`], in bytes.
    windows_max: u64,
    slots: Vec<Option<Connection>>,
    vacant: Vec<usize>,
    open: usize,
    bytes: u64,
    windows: u64,
    networks: Shares<Network>,
    closed: VecDeque<(Slot, Closed)>,
    counters: Counters,
}

impl Admission {
    /// No connections yet. The driver has file descriptors for `connections_max`. A quarter of the
    /// memory is for windows.
    pub fn new(connections_max: usize, memory_bytes: u64) -> Self {
        let budget = memory_bytes / 4 * 3;
        let admitted = usize::try_from(budget / OPEN_BYTES).unwrap_or(usize::MAX);
        Self {
            connections_max,
            each_max: connections_each(connections_max),
            each_crowded_max: connections_each(connections_max.min(admitted)),
            budget,
            windows_max: memory_bytes / 4,
            slots: Vec::new(),
            vacant: Vec::new(),
            open: 0,
            bytes: 0,
            windows: 0,
            networks: Shares::default(),
            closed: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// A client has connected; `network` is `None` for a client on this machine. The connection is
    /// accepted if there is room or room can be made, and then has room for its first request.
    pub fn arrive(
        &mut self,
        now: Instant,
        network: Option<Network>,
        meter: Arc<Meter>,
    ) -> Result<Slot, Refused> {
        if self.share_is_taken(network) && !self.make_room_of(now, network) {
            self.counters.over_share += 1;
            return Err(Refused::Share);
        }
        if !self.make_room(now, Need::FIRST, None) {
            self.counters.full += 1;
            return Err(Refused::Full);
        }
        Ok(self.add(now, network, meter))
    }

    /// A client has connected when new clients can no longer be turned away: the connection is accepted
    /// even if there is no room.
    pub fn take(&mut self, now: Instant, network: Option<Network>, meter: Arc<Meter>) -> Slot {
        self.make_room(now, Need::FIRST, None);
        self.add(now, network, meter)
    }

    /// A part of a head has arrived on an idle connection. False if there is no room for it: the driver then
    /// closes the connection.
    #[must_use]
    pub fn head(&mut self, now: Instant, slot: Slot) -> bool {
        match self.stage(slot) {
            Some(Stage::Idle) => self.grow(now, slot, Stage::Head),
            _ => true,
        }
    }

    /// A request is about to be answered. Returns the response's window, or `None` if there is no room: the
    /// driver then refuses the request.
    pub fn begin(&mut self, now: Instant, slot: Slot) -> Option<u64> {
        let left = self.windows_max.saturating_sub(self.windows);
        let window = WINDOW_MIN + (left / WINDOW_SHARE).min(WINDOW_MAX - WINDOW_MIN);
        self.grow(now, slot, Stage::Busy { window, besides: 0 }).then_some(window)
    }

    /// The links of the response will be rewritten. False if there is no room for that: the driver then refuses the request.
    #[must_use]
    pub fn rewrite(&mut self, now: Instant, slot: Slot) -> bool {
        match self.stage(slot) {
            Some(Stage::Busy { window, .. }) => {
                self.grow(now, slot, Stage::Busy { window, besides: REWRITE_BYTES })
            }
            _ => false,
        }
    }

    /// A request has been answered, and no part of the response waits in our memory any more.
    pub fn end(&mut self, now: Instant, slot: Slot) {
        if let Some(Stage::Busy { .. }) = self.stage(slot) {
            self.set(now, slot, Stage::Idle);
        }
    }

    /// From now on the connection's bytes are relayed without parsing.
    pub fn tunnel(&mut self, now: Instant, slot: Slot) {
        if self.stage(slot).is_some_and(|stage| stage != Stage::Closed) {
            self.set(now, slot, Stage::Tunnel);
        }
    }

    /// The connection may be of any protocol: its bytes are relayed from the start, and its server may speak first.
    pub fn flow(&mut self, now: Instant, slot: Slot) {
        if self.stage(slot).is_some_and(|stage| stage != Stage::Closed) {
            self.set(now, slot, Stage::Flow);
        }
    }

    /// A connection has ended.
    pub fn leave(&mut self, slot: Slot) {
        let Some(connection) = self.slots.get_mut(slot.0).and_then(Option::take) else { return };
        self.vacant.push(slot.0);
        self.closed.retain(|(closed, _)| *closed != slot);
        self.forget(&connection);
    }

    /// Measures each connection's rate, and closes slow ones once half of the room is taken. A driver
    /// should call it every [`SWEEP_EVERY`].
    pub fn sweep(&mut self, now: Instant) {
        let is_crowded = self.is_crowded();
        let mut slow = Vec::new();
        for (at, connection) in self.slots.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            // Always measured, so that the rates are known as soon as room becomes scarce.
            if connection.is_slow(now) && is_crowded {
                slow.push(Slot(at));
            }
        }
        for slot in slow {
            self.close(slot, Closed::Slow);
        }
    }

    /// The next connection to be closed, and why. It is no longer counted, but must still
    /// [`leave`](Self::leave).
    pub fn poll_closed(&mut self) -> Option<(Slot, Closed)> {
        self.closed.pop_front()
    }

    /// Whether an eighth of the room is free or can be freed. A driver that has stopped listening for
    /// lack of room waits for this. Without that margin it would start and stop again with each
    /// connection.
    pub fn is_relieved(&self, now: Instant) -> bool {
        let fixed = |it: &&Connection| it.stage != Stage::Closed && it.rank(now).is_none();
        let (mut count, mut bytes) = (0, 0);
        for connection in self.slots.iter().flatten().filter(fixed) {
            count += 1;
            bytes += connection.stage.bytes();
        }
        count <= self.connections_max / 8 * 7 && bytes <= self.budget / 8 * 7
    }

    /// Whether half of the room is taken. What need not come by the daemon should then pass it …
    pub fn is_crowded(&self) -> bool {
        2 * self.open >= self.connections_max || 2 * self.bytes >= self.budget
    }

    /// … until only three eighths are.
    pub fn is_at_ease(&self) -> bool {
        8 * self.open < 3 * self.connections_max && 8 * self.bytes < 3 * self.budget
    }

    /// How many connections are open.
    pub fn len(&self) -> usize {
        self.open
    }

    /// Whether no connection is open.
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// The memory for which all connections are charged, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.windows
    }

    /// The counts since the start.
    pub fn counters(&self) -> Counters {
        Counters { bytes: self.bytes(), ..self.counters }
    }

    fn share_is_taken(&self, network: Option<Network>) -> bool {
        let most = if self.is_crowded() { self.each_crowded_max } else { self.each_max };
        network.is_some_and(|network| self.networks.of(&network) >= most)
    }

    fn add(&mut self, now: Instant, network: Option<Network>, meter: Arc<Meter>) -> Slot {
        let pace = Pace::new(now, meter.total());
        let connection = Connection { network, stage: Stage::Head, since: now, pace, meter };
        self.open += 1;
        self.bytes += connection.stage.bytes();
        if let Some(network) = network {
            self.networks.add(network);
        }
        let at = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(connection);
        Slot(at)
    }

    fn stage(&self, slot: Slot) -> Option<Stage> {
        Some(self.slots.get(slot.0)?.as_ref()?.stage)
    }

    /// Moves a connection to a stage that may need more memory. False if there is no room and none can
    /// be made.
    fn grow(&mut self, now: Instant, slot: Slot, stage: Stage) -> bool {
        let Some(before) = self.stage(slot).filter(|stage| *stage != Stage::Closed) else {
            return false;
        };
        let more = stage.bytes().saturating_sub(before.bytes());
        let has_room = more == 0 || self.make_room(now, Need { slots: 0, bytes: more }, Some(slot));
        if has_room {
            self.set(now, slot, stage);
        }
        has_room
    }

    fn set(&mut self, now: Instant, slot: Slot, stage: Stage) {
        let Some(connection) = self.slots.get_mut(slot.0).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut connection.stage, stage);
        connection.since = now;
        connection.pace = Pace::new(now, connection.meter.total());
        self.bytes = self.bytes - before.bytes() + stage.bytes();
        self.windows = self.windows - before.extra() + stage.extra();
    }

    /// Makes room, if necessary by closing connections other than `spared`. If closing all that may be
    /// closed is not enough, none is closed.
    fn make_room(&mut self, now: Instant, need: Need, spared: Option<Slot>) -> bool {
        let is_enough = |open: usize, taken: u64| {
            open + need.slots <= self.connections_max && taken + need.bytes <= self.budget
        };
        let (mut open, mut taken, mut victims) = (self.open, self.bytes, Vec::new());
        if !is_enough(open, taken) {
            victims = self.closable(now, |slot, _| Some(slot) != spared);
            victims.sort_unstable();
        }
        let mut count = 0;
        for (.., slot) in &victims {
            if is_enough(open, taken) {
                break;
            }
            open -= 1;
            taken -= self.stage(*slot).map_or(0, Stage::bytes);
            count += 1;
        }
        let has_room = is_enough(open, taken);
        victims.truncate(if has_room { count } else { 0 });
        victims.into_iter().for_each(|(why, _, slot)| self.close(slot, why));
        has_room
    }

    /// Makes room for one more connection of a client at its limit, by closing another of the same client.
    fn make_room_of(&mut self, now: Instant, network: Option<Network>) -> bool {
        let victim = self.closable(now, |_, it| it.network == network).into_iter().min();
        if let Some((why, _, slot)) = victim {
            self.close(slot, why);
        }
        victim.is_some()
    }

    /// The connections for which `is_meant` is true and which may be closed. The smallest value is
    /// closed first.
    fn closable(
        &self,
        now: Instant,
        is_meant: impl Fn(Slot, &Connection) -> bool,
    ) -> Vec<(Closed, Instant, Slot)> {
        let all = self.slots.iter().enumerate();
        let all = all.filter_map(|(at, connection)| Some((Slot(at), connection.as_ref()?)));
        all.filter(|(slot, connection)| is_meant(*slot, connection))
            .filter_map(|(slot, it)| Some((it.rank(now)?, it.since, slot)))
            .collect()
    }

    fn close(&mut self, slot: Slot, why: Closed) {
        let Some(connection) = self.slots.get_mut(slot.0).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut connection.stage, Stage::Closed);
        if before == Stage::Closed {
            return;
        }
        connection.meter.reset();
        self.open -= 1;
        self.bytes -= before.bytes();
        self.windows -= before.extra();
        connection.network.take().iter().for_each(|network| self.networks.release(network));
        self.closed.push_back((slot, why));
        *match why {
            Closed::Idle => &mut self.counters.closed_idle,
            Closed::Head => &mut self.counters.closed_head,
            Closed::Tunnel => &mut self.counters.closed_tunnel,
            Closed::Slow => &mut self.counters.closed_slow,
        } += 1;
    }

    fn forget(&mut self, connection: &Connection) {
        if connection.stage != Stage::Closed {
            self.open -= 1;
            self.bytes -= connection.stage.bytes();
            self.windows -= connection.stage.extra();
            connection.network.iter().for_each(|network| self.networks.release(network));
        }
    }
}

impl Connection {
    /// The reason for which the connection may be closed if room is needed; `None` if it may not be closed.
    fn rank(&self, now: Instant) -> Option<Closed> {
        match self.stage {
            Stage::Idle => Some(Closed::Idle),
            Stage::Head => Some(Closed::Head),
            // A tunnel without a first byte is treated like a head that does not arrive.
            Stage::Tunnel if self.meter.total() == 0 => Some(Closed::Head),
            Stage::Tunnel | Stage::Flow => {
                let is_quiet = self.pace.last() == self.meter.total();
                (is_quiet && now - self.pace.since >= QUIET).then_some(Closed::Tunnel)
            }
            Stage::Busy { .. } | Stage::Closed => None,
        }
    }

    /// Measures the connection's rate. A client that waits for us is not slow.
    fn is_slow(&mut self, now: Instant) -> bool {
        let total = self.meter.total();
        let is_measured = match self.stage {
            Stage::Head => true,
            Stage::Busy { .. } => self.meter.is_waiting(),
            Stage::Tunnel | Stage::Flow => {
                if self.pace.last() != total {
                    self.pace = Pace::new(now, total);
                }
                return false;
            }
            Stage::Idle | Stage::Closed => return false,
        };
        if !is_measured {
            self.pace = Pace::new(now, total);
        }
        is_measured && self.pace.is_slow(total)
    }
}

impl Pace {
    fn new(now: Instant, total: u64) -> Self {
        Self { since: now, totals: [total; PACE_SWEEPS], count: 1 }
    }

    fn last(&self) -> u64 {
        self.totals[(self.count - 1) % PACE_SWEEPS]
    }

    /// Adds the total of the present sweep. True if too few bytes have moved over all of the last sweeps.
    fn is_slow(&mut self, total: u64) -> bool {
        let at = self.count % PACE_SWEEPS;
        let first = std::mem::replace(&mut self.totals[at], total);
        let least = PACE_BYTES * PACE_SWEEPS as u64 * SWEEP_EVERY.as_secs();
        self.count += 1;
        self.count > PACE_SWEEPS && total - first < least
    }
}

#[cfg(test)]
mod tests;
