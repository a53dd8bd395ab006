//! Pacing between interlay nodes (WINE, chapter 2).
//!
//! *What this is:* the queue above the MAC of a router that is an interlay node. It finds its neighbouring interlay
//! nodes by the header of passing packets, measures the path to each by probes, and lets each have a packet only after
//! the one before has had the time to arrive, so that the routers between them do not interfere with each other.
//! *Who calls it:* [`Layer`](crate::Layer). *What it never does:* read a clock, draw random numbers, look into a
//! packet beyond its [`Header`]. *Where to start:* `send.rs` for a packet's way, `discover.rs` for neighbours.
//!
//! ```text
//! enqueue ──┬─ control ────────────────────────────────┬─> the MAC
//!           ├─ no interlay node known ─> active queue ─┘
//!           └─ a queue each interlay node ─> (rate) ──> active queue
//! ```

mod config;
mod destinations;
mod discover;
mod hold;
mod neighbour;
mod queue;
mod send;
mod thin;
mod window;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use wire::{Instant, TimerQueue};

use crate::table::{Key, Seed, Table};
use crate::{Frame, Header, Interlay, Kind, Message, Packet, Probe};
use destinations::Destinations;
use hold::Holding;
use neighbour::Neighbour;
use queue::Queue;
use send::Urgent;
use thin::Flows;

pub use config::{Config, Follow, Overhead};

/// What pacing has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were given to the MAC at the rate of an interlay node.
    pub paced: u64,
    /// Those of them that had to wait for their time.
    pub held: u64,
    /// The longest such wait.
    pub held_max: Duration,
    /// Packets dropped because an interlay node's queue was full.
    pub dropped: u64,
    /// Packets dropped because the active queue was full, paced ones never.
    pub dropped_active: u64,
    /// Pure ACKs dropped because a newer one took their place.
    pub acks_thinned: u64,
    /// Probes that were sent.
    pub probes_sent: u64,
    /// Answers that gave a measurement.
    pub probes_answered: u64,
    /// Answers to no probe that was under way: late, twice, or forged.
    pub probes_late: u64,
    /// Neighbouring interlay nodes that were found.
    pub neighbours_found: u64,
    /// Those forgotten because their traffic ceased.
    pub neighbours_ended: u64,
    /// Times that a neighbour was left alone because its probes went unanswered.
    pub neighbours_silent: u64,
    /// Neighbours that had answered no probe, forgotten because there were too many.
    pub neighbours_evicted: u64,
    /// Neighbours not taken up because there were too many, and all of them answer.
    pub neighbours_refused: u64,
    /// Times that the MAC did not say what became of its frames, so that it counted as free.
    pub verdicts_missing: u64,
    /// Destinations forgotten because there were too many.
    pub destinations_evicted: u64,
    /// Claims of destinations that were believed.
    pub claims_taken: u64,
    /// Those that were not, and packets that came from where none goes.
    pub claims_refused: u64,
}

/// What pacing asks of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Give this frame to the MAC.
    Transmit {
        /// The frame, with this router's header.
        frame: Frame<P>,
        /// The neighbour.
        next: IpAddr,
    },
    /// A queue was full, and this packet is gone.
    Dropped {
        /// The packet.
        packet: P,
        /// The neighbour that it was for.
        next: IpAddr,
    },
    /// Send this message.
    Originate {
        /// Destination.
        to: IpAddr,
        /// The message.
        message: Message,
    },
}

/// A neighbouring interlay node, as it is known now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Its address.
    pub node: IpAddr,
    /// The estimated rate in bytes per second (equation 2.1, filtered); `None`: not paced.
    pub rate: Option<f64>,
    /// Hops to it; 0 if it was never measured.
    pub hops: u8,
    /// Packets that wait for it.
    pub waiting: usize,
}

/// The pacing of one router.
#[derive(Debug)]
pub struct Pace<P> {
    me: IpAddr,
    config: Config,
    neighbours: Table<IpAddr, Neighbour>,
    /// A queue for each neighbour, by its slot.
    queues: Vec<Queue<P>>,
    destinations: Destinations,
    flows: Flows,
    holding: Holding<P>,
    /// Routing, and messages of the link plane.
    control: VecDeque<Urgent<P>>,
    /// What the MAC gets next (WINE, section 2.1).
    active: Queue<P>,
    /// Frames that the MAC has, and when it last took or returned one.
    in_mac: u32,
    mac_at: Instant,
    /// Three for each neighbour's slot: see [`Timer`].
    timers: TimerQueue,
    probes: u64,
    outputs: VecDeque<Output<P>>,
    counters: Counters,
}

/// What is due for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// When to let the next quantum go.
    Release,
    /// When to send the next probe. It outlives the neighbour, so that however many are found, a slot sends one probe in
    /// each interval.
    Probe,
    /// When to look whether its traffic has ceased.
    Idle,
}

/// No MAC takes as long for a frame: its verdict went astray.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(2);

const TIMERS: [Timer; 3] = [Timer::Release, Timer::Probe, Timer::Idle];

impl<P: Packet> Pace<P> {
    /// Pacing that knows no other interlay node yet; `me` is this router's address.
    pub fn new(me: IpAddr, config: Config) -> Self {
        let config = Config {
            probe_interval: config.probe_interval.max(Duration::from_millis(1)),
            gain: config.gain.clamp(0.0, 1.0),
            mac_frames_max: config.mac_frames_max.max(1),
            neighbours_max: config.neighbours_max.clamp(1, 1 << 16),
            ..config
        };
        let Config { neighbours_max, activity_timeout, seed, .. } = config;
        Self {
            me,
            holding: Holding::new(&config),
            config,
            neighbours: Table::new(neighbours_max, seed),
            queues: Vec::new(),
            destinations: Destinations::new(config.destinations_max, activity_timeout, seed),
            flows: Flows::new(config.flows_max, seed),
            control: VecDeque::new(),
            active: Queue::new(),
            in_mac: 0,
            mac_at: Instant::ZERO,
            timers: TimerQueue::new(TIMERS.len() * neighbours_max),
            probes: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// A packet is to go to a neighbour: at once, or after those before it.
    pub fn enqueue(&mut self, now: Instant, header: &Header, packet: P, next: IpAddr) {
        match header.kind {
            Kind::Control | Kind::Message(_) => self.urgent(header, packet, next),
            Kind::Tcp(_) | Kind::Other if !self.config.last_hop && header.to.ip() == next => {
                self.direct(now, header, packet, next);
            }
            Kind::Tcp(_) | Kind::Other => self.offer(now, packet, next),
        }
        self.pump(now);
    }

    /// The MAC has finished with a frame, so that it can take another. Each frame that it got must come back so.
    pub fn finished(&mut self, now: Instant) {
        self.in_mac = self.in_mac.saturating_sub(1);
        self.mac_at = now;
        self.pump(now);
    }

    /// A packet with this header has gone on by another interface.
    pub fn gone(&mut self, now: Instant, interlay: Interlay) {
        if let Interlay { node, number: Some(number), .. } = interlay {
            self.has_left(now, node, number);
        }
    }

    /// A packet has come from the neighbour `from`, with this header.
    pub fn passed(&mut self, now: Instant, header: &Header, interlay: Interlay, from: IpAddr) {
        let node = interlay.node;
        if node == self.me {
            return;
        }
        if matches!(header.kind, Kind::Tcp(_) | Kind::Other) {
            self.learn(now, header, node, from);
        }
        self.heed(now, header, interlay);
        self.pump(now);
    }

    /// A probe has come for this router, from the neighbour `from`.
    pub fn probe(&mut self, now: Instant, header: &Header, probe: &Probe, from: IpAddr) {
        if header.from.ip() == probe.from && probe.from != self.me {
            self.answer(header, probe);
            if let Some(destination) = probe.towards {
                self.claim(now, probe.from, destination, from);
            }
            self.pump(now);
        }
    }

    /// An answer to a probe has come for this router.
    pub fn echo(&mut self, now: Instant, header: &Header, echo: &Probe) {
        self.measure(now, header, echo);
    }

    /// Performs what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, timer)) = self.timers.next().filter(|(at, _)| *at <= now) {
            self.timers.set(timer, None);
            let Some(key) = self.neighbours.at(timer / TIMERS.len()) else { continue };
            match TIMERS[timer % TIMERS.len()] {
                Timer::Release => self.release(now, key),
                Timer::Probe => self.send_probe(now, key),
                Timer::Idle => self.look_after(now, key),
            }
        }
        while let Some((packet, next)) = self.holding.due(now) {
            self.data(now, &packet.header(), packet, next);
        }
        if self.mac_due().is_some_and(|at| at <= now) {
            self.in_mac = 0;
            self.counters.verdicts_missing += 1;
        }
        self.pump(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timer = self.timers.next().map(|(at, _)| at);
        timer.into_iter().chain(self.holding.next()).chain(self.mac_due()).min()
    }

    /// When the MAC no longer counts as busy, whatever it says.
    fn mac_due(&self) -> Option<Instant> {
        (self.in_mac > 0).then(|| self.mac_at + VERDICT_TIMEOUT)
    }

    /// Takes one output; drain until `None`.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop_front()
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let acks_thinned = self.counters.acks_thinned + self.holding.thinned;
        Counters { destinations_evicted: self.destinations.evicted, acks_thinned, ..self.counters }
    }

    /// The neighbouring interlay nodes that are known now, in no order.
    pub fn neighbours(&self) -> impl Iterator<Item = Estimate> {
        self.neighbours.iter().map(|(key, node, neighbour)| {
            let (rate, hops) = neighbour.estimate().unzip();
            let waiting = self.queues.get(key.slot()).map_or(0, Queue::len);
            Estimate { node: *node, rate, hops: hops.unwrap_or_default(), waiting }
        })
    }

    /// How long after a packet of this many bytes the next may go to this interlay node; `None`: it is not paced.
    pub fn gap(&self, node: IpAddr, bytes: u32) -> Option<Duration> {
        let neighbour = self.neighbours.get(self.neighbours.find(&node)?)?;
        neighbour.is_paced().then(|| neighbour.gap(&self.config, bytes))
    }

    /// How many packets wait here: for their time, and for the MAC.
    pub fn waiting(&self) -> usize {
        let queued = self.queues.iter().map(Queue::len).sum::<usize>();
        queued + self.active.len() + self.control.len() + self.holding.len()
    }

    /// How many frames the MAC has.
    pub fn in_mac(&self) -> u32 {
        self.in_mac
    }

    /// How many rows the tables of destinations and of flows have.
    pub fn rows(&self) -> (usize, usize) {
        (self.destinations.len(), self.flows.len())
    }

    fn set(&mut self, timer: Timer, key: Key, at: Option<Instant>) {
        self.timers.set(TIMERS.len() * key.slot() + timer as usize, at);
    }

    fn timer(&self, timer: Timer, key: Key) -> Option<Instant> {
        self.timers.get(TIMERS.len() * key.slot() + timer as usize)
    }
}
