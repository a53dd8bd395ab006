//! Pure ACKs that wait a little although their path is free, so that a newer one can take their place.
//!
//! Only the ACKs of a steady transfer wait: those that follow each other quickly, each acknowledging a good piece more than
//! the one before. One waits until it acknowledges enough, until none has come for some times the usual interval, because
//! then the sender may be waiting for it, or until its longest time is over. A duplicate, or any other segment of the
//! flow, goes at once, after the ACK that waits. Which ACKs may be dropped is what `thin.rs` says.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use wire::{Instant, TimerQueue};

use super::config::Config;
use super::thin::{may_go, supersedes};
use crate::header::before;
use crate::table::{Key, Table};
use crate::{Packet, Tcp};

/// After this many ACKs a transfer is steady.
const STEADY: u8 = 16;
/// An ACK of a steady transfer acknowledges at least this part of what an ACK waits for.
const PIECES: u32 = 16;
/// After this many usual intervals without another ACK, the one that waits goes on.
const IDLE: u32 = 3;
/// The weight of a new interval in their mean is one over this.
const MEMORY: u32 = 8;

/// A packet, and the neighbour at the MAC that it goes to.
pub(super) type Going<P> = (P, IpAddr);

/// The ACKs that wait, one a flow.
#[derive(Debug)]
pub(super) struct Holding<P> {
    flows: Table<(SocketAddr, SocketAddr), Flow>,
    /// By the flow's slot, and so are the timers.
    held: Vec<Option<Held<P>>>,
    timers: TimerQueue,
    /// How long one waits at most, and for how many acknowledged bytes.
    wait: Duration,
    bytes: u32,
    /// ACKs whose place a newer one took.
    pub(super) thinned: u64,
}

#[derive(Debug)]
struct Held<P> {
    going: Going<P>,
    tcp: Tcp,
    flow: Key,
}

#[derive(Debug)]
struct Flow {
    /// What was acknowledged by the last ACK that came, and by the last that went on.
    seen: u32,
    went: u32,
    seen_at: Instant,
    went_at: Instant,
    /// The mean time from one ACK to the next.
    interval: Duration,
    /// How many ACKs in a row were those of a steady transfer.
    steady: u8,
}

impl<P: Packet> Holding<P> {
    pub(super) fn new(config: &Config) -> Self {
        let seed = config.seed;
        Self {
            flows: Table::new(config.flows_max, seed),
            held: Vec::new(),
            timers: TimerQueue::new(config.flows_max),
            wait: config.ack_wait,
            bytes: if config.thin_acks { config.ack_bytes } else { 0 },
            thinned: 0,
        }
    }

    /// A packet is to go: what goes now, in this order. The packet itself may wait.
    pub(super) fn offer(&mut self, now: Instant, going: Going<P>) -> [Option<Going<P>>; 2] {
        let header = going.0.header();
        let Some(tcp) = header.tcp().filter(|_| self.bytes > 0) else { return [None, Some(going)] };
        let name = (header.from, header.to);
        let Some(flow) = self.flows.find(&name) else {
            if tcp.is_pure_ack() {
                self.begin(now, name, tcp);
            }
            return [None, Some(going)];
        };
        self.flows.touch(flow);
        let until = self.note(now, flow, tcp);
        let mut held = self.take(flow);
        if until.is_some() && held.as_ref().is_some_and(|it| supersedes(tcp, &it.tcp)) {
            self.thinned += 1;
            held = None;
        }
        let first = held.map(|it| it.going);
        let Some(until) = until else { return [first, Some(going)] };
        if until <= now || self.is_enough(flow) {
            self.went(now, flow);
            return [first, Some(going)];
        }
        let tcp = *tcp;
        self.keep(until, Held { going, tcp, flow });
        [first, None]
    }

    /// When [`due`](Self::due) has something.
    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// One that has waited for long enough.
    pub(super) fn due(&mut self, now: Instant) -> Option<Going<P>> {
        let (_, slot) = self.timers.next().filter(|(at, _)| *at <= now)?;
        self.timers.set(slot, None);
        let held = self.held.get_mut(slot)?.take()?;
        self.went(now, held.flow);
        Some(held.going)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.held.iter().flatten().count()
    }

    /// The first ACK of a flow. If the table is full, the oldest flow goes, unless its ACK waits.
    fn begin(&mut self, now: Instant, name: (SocketAddr, SocketAddr), tcp: &Tcp) {
        if let Some(oldest) = self.flows.oldest().filter(|_| self.flows.is_full()) {
            if self.held.get(oldest.slot()).is_some_and(Option::is_some) {
                return;
            }
            self.flows.remove(oldest);
        }
        let (seen, went, interval) = (tcp.ack, tcp.ack, self.wait);
        let flow = Flow { seen, went, seen_at: now, went_at: now, interval, steady: 0 };
        self.flows.insert(name, flow);
    }

    /// Notes a segment of a flow: until when it may wait, if it may.
    fn note(&mut self, now: Instant, flow: Key, tcp: &Tcp) -> Option<Instant> {
        let (wait, piece) = (self.wait, self.bytes / PIECES);
        let flow = self.flows.get_mut(flow)?;
        let is_newer = tcp.is_pure_ack() && before(flow.seen, tcp.ack) && may_go(tcp);
        if !is_newer || tcp.ack.wrapping_sub(flow.seen) < piece {
            flow.steady = 0;
            return None;
        }
        let interval = now.since(flow.seen_at);
        flow.interval = (flow.interval * (MEMORY - 1) + interval.min(wait)) / MEMORY;
        flow.steady = if interval < wait { flow.steady.saturating_add(1) } else { 0 };
        (flow.seen, flow.seen_at) = (tcp.ack, now);
        if flow.steady < STEADY {
            (flow.went, flow.went_at) = (tcp.ack, now);
            return None;
        }
        Some((flow.went_at + wait).min(now + flow.interval * IDLE))
    }

    /// Whether the newest ACK of a flow acknowledges enough to go on.
    fn is_enough(&self, flow: Key) -> bool {
        let bytes = self.bytes;
        self.flows.get(flow).is_some_and(|it| it.seen.wrapping_sub(it.went) >= bytes)
    }

    fn went(&mut self, now: Instant, flow: Key) {
        if let Some(flow) = self.flows.get_mut(flow) {
            (flow.went, flow.went_at) = (flow.seen, now);
        }
    }

    fn keep(&mut self, until: Instant, held: Held<P>) {
        let slot = held.flow.slot();
        while self.held.len() <= slot {
            self.held.push(None);
        }
        self.held[slot] = Some(held);
        self.timers.set(slot, Some(until));
    }

    /// Takes the ACK of a flow that waits.
    fn take(&mut self, flow: Key) -> Option<Held<P>> {
        let held = self.held.get_mut(flow.slot())?.take()?;
        self.timers.set(flow.slot(), None);
        Some(held)
    }
}
