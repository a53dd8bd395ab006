//! Local recovery of lost TCP packets (InPCM, section 3).
//!
//! *What this is:* [`Recover`], the engine of one router. It keeps copies of TCP packets that it has sent on,
//! and sends one again when that seems lost, sooner than its sender could. *Who calls it:* the link layer.
//! *Where to start:* [`Recover`]; then `data` and `ack`, the paper's algorithms 1 and 2. `hear` is what
//! neighbours' transmissions tell, `due` what timers do, `resend` what the MAC says.

mod ack;
mod cache;
mod config;
mod counters;
mod data;
mod due;
mod estimate;
mod flow;
mod hear;
mod neighbours;
mod red;
mod resend;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::{Instant, TimerQueue};

pub use config::{Beta, Config, LinkRed, OnNotice, Timer};
pub use counters::Counters;
use estimate::Line;
use flow::Key;
use neighbours::Neighbours;
use red::Red;
use table::Table;

use crate::{Flags, Header, Kind, Lost, Message, Next, Notice, Packet, Verdict};

/// What recovery asks of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Send this packet to this neighbour.
    Send {
        /// The packet.
        packet: P,
        /// The neighbour.
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

/// The recovery of one router.
///
/// Packets are judged when they come ([`incoming`](Self::incoming)) and cached when they leave
/// ([`outgoing`](Self::outgoing)). As printed, the paper's algorithms forward no new acknowledgement, and drop a
/// repeated one only if its data is *not* cached; what is meant is the opposite. Their sequence numbers are
/// ns-2's, where an acknowledgement names the last segment received; here, as in TCP, it names the next byte
/// expected, so it is compared with where a segment ends.
#[derive(Debug)]
pub struct Recover<P> {
    me: IpAddr,
    config: Config,
    table: Table<P>,
    /// By flow.
    timers: TimerQueue,
    line: Line,
    red: Red,
    neighbours: Neighbours,
    outputs: VecDeque<Output<P>>,
    counters: Counters,
}

impl<P: Packet> Recover<P> {
    /// Recovery that has seen nothing; `me` is this router's address.
    pub fn new(me: IpAddr, config: Config) -> Self {
        let table = Table::new(config.flows_max, config.seed);
        Self {
            me,
            timers: TimerQueue::new(table.flows_max()),
            table,
            line: Line::new(),
            red: Red::new(config.seed),
            neighbours: Neighbours::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// A packet has come from a neighbour, for this router or to be forwarded. Returns whether to pass it on;
    /// if not, recovery has done what is needed.
    #[must_use]
    pub fn incoming(&mut self, now: Instant, header: &Header) -> bool {
        let Kind::Tcp(tcp) = &header.kind else { return true };
        if tcp.flags.has(Flags::RST) {
            return true;
        }
        let pass = !self.is_needless_data(now, header, tcp);
        pass && !(tcp.flags.has(Flags::ACK) && self.is_needless_ack(now, header, tcp))
    }

    /// A packet leaves this router: its own, or one that it forwards.
    pub fn outgoing(&mut self, now: Instant, header: &Header, packet: P, next: Next) {
        if let Kind::Tcp(tcp) = &header.kind {
            if tcp.flags.has(Flags::RST) {
                self.forget((header.from, header.to));
                self.forget((header.to, header.from));
            } else {
                if tcp.payload > 0 && self.drops_early() {
                    return;
                }
                self.cache_data(now, header, tcp, &packet, next);
                self.cache_ack(now, header, tcp, &packet, next);
            }
        }
        self.counters.sent += 1;
        self.outputs.push_back(Output::Send { packet, next: next.hop });
    }

    /// The MAC has finished with a packet to this neighbour.
    pub fn verdict(
        &mut self,
        now: Instant,
        header: &Header,
        _packet: P,
        next: IpAddr,
        verdict: Verdict,
    ) {
        self.finished(now, header, next, verdict);
    }

    /// A neighbour was heard sending a packet to another router.
    pub fn overheard(&mut self, now: Instant, header: &Header, from: IpAddr) {
        if let Kind::Tcp(tcp) = &header.kind
            && !tcp.flags.has(Flags::RST)
        {
            self.heard_data(now, header, tcp, from);
            self.heard_ack(now, header, tcp, from);
        }
    }

    /// Another router has sent a packet again.
    pub fn notice(&mut self, now: Instant, notice: &Notice) {
        match notice.lost {
            Lost::Data(end) => self.noticed_data(now, (notice.from, notice.to), end),
            Lost::Ack(number) => self.noticed_ack(now, (notice.to, notice.from), number),
        }
    }

    /// Performs what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, slot)) = self.timers.next() {
            if at > now {
                break;
            }
            self.expire(now, slot);
            self.arm(slot);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// Takes one output; drain until `None`.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop_front()
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many bytes of packets are cached.
    pub fn cached_bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Standard deviations of the time from a packet's leaving to its acknowledgement, in seconds, by how many hops the
    /// receiver is away (InPCM, figure 3).
    pub fn deviations(&self) -> impl Iterator<Item = (u8, f64)> {
        self.line.points()
    }

    /// How many flows are remembered.
    pub fn flows(&self) -> usize {
        self.table.len()
    }

    /// The number of a flow, which is new if it was unknown.
    fn flow_of(&mut self, key: Key) -> usize {
        if let Some(slot) = self.table.touch(key) {
            return slot;
        }
        let (counters, timers) = (&mut self.counters, &mut self.timers);
        self.table.add(key, |slot, flow| {
            counters.flows_evicted += 1;
            counters.evicted_other += flow.cache.clear();
            timers.set(slot, None);
        })
    }

    /// Forgets what is known of a flow, if it is known.
    fn forget(&mut self, key: Key) {
        if let Some(slot) = self.table.find(key) {
            let flow = self.table.flow(slot);
            self.counters.evicted_other += flow.cache.clear();
            flow.begin(key);
            self.table.count(slot);
            self.timers.set(slot, None);
        }
    }

    /// Whether Link-RED drops the next data.
    fn drops_early(&mut self) -> bool {
        let Some(config) = &self.config.link_red else { return false };
        let drops = self.red.drops(config);
        self.counters.red_dropped += u64::from(drops);
        drops
    }
}
