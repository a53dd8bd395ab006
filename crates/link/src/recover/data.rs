//! Data packets: algorithm 1 (InPCM, section 3.3), and the share of memory that each flow gets.

use std::time::Duration;

use wire::Instant;

use super::cache::Entry;
use super::flow::{Seen, length};
use super::resend::SUPPRESSED_RESENDS_MAX;
use super::{Output, Recover};
use crate::{Flags, Header, Next, Packet, Tcp};

/// No IP packet carries more.
const LENGTH_MAX: u32 = 65_536;

/// What the budget is charged for a packet, in bytes: at least this, since small ones have an entry too.
const COST_MIN: u32 = 512;

/// Data that the receiver has is answered if no acknowledgement has left for so long: half of the shortest timeout
/// that senders have. What comes sooner is repeated by a router.
const ANSWER_AFTER: Duration = Duration::from_millis(100);

/// Control bits with which a data packet may be dropped if nothing in it is new.
const PLAIN: Flags = Flags(Flags::ACK.0 | Flags::PSH.0);

impl<P: Packet> Recover<P> {
    /// Data has come. Returns whether it need not go on: the receiver has it, so its last acknowledgement goes
    /// back again; or a copy of it is on its way from here.
    pub(super) fn is_needless_data(&mut self, now: Instant, header: &Header, tcp: &Tcp) -> bool {
        let length = length(tcp);
        let key = (header.from, header.to);
        let Some(slot) = self.table.find(key).filter(|_| length > 0) else { return false };
        let end = tcp.seq.wrapping_add(length);
        self.new_data_after_idle(now, slot, end);
        let flow = self.table.flow(slot);
        if header.to.ip() == self.me {
            // The router is the receiver: its TCP must see everything.
            if flow.saw(tcp.seq, end) == Seen::Another {
                self.forget(key);
            }
            return false;
        }
        let plain = PLAIN | tcp.flags == PLAIN && !tcp.has_other_options;
        // A byte or none below a zero window, or before the last acknowledgement, may be a probe or a
        // keep-alive: only the receiver answers (RFC 9293, sections 3.8.4 and 3.8.6.1).
        if !plain || length <= 1 || (flow.una.is_some() && flow.window == 0) {
            return false;
        }
        if flow.has_acked(end) {
            if !flow.contradict(end) {
                self.forget(key);
                return false;
            }
            return self.config.suppress && self.answers(now, slot, header, tcp);
        }
        self.absorbs(now, slot, tcp, end)
    }

    /// Whether a copy of this data is about to leave, or has left so recently that no acknowledgement could
    /// have told of its loss. Then it is the last router that repeats itself.
    fn absorbs(&mut self, now: Instant, slot: usize, tcp: &Tcp, end: u32) -> bool {
        let flow = self.table.flow(slot);
        let Some(entry) = flow.cache.find(tcp.seq, end).and_then(|it| flow.cache.get(it)) else {
            return false;
        };
        // The sender knows of a loss only after a round trip, of which the way from here to the receiver and
        // back is a part: what is repeated sooner is repeated by a router.
        let is_recent = || flow.rtt.smoothed().is_some_and(|rtt| now.since(entry.at) < rtt);
        let is_on_its_way = if self.config.overheard_loss {
            !entry.has_left() || (entry.resends < SUPPRESSED_RESENDS_MAX && is_recent())
        } else {
            self.config.mac_trigger && !entry.has_left()
        };
        let copy = entry.packet.header();
        let same = copy
            .tcp()
            .is_some_and(|it| (it.ack, it.window, it.flags) == (tcp.ack, tcp.window, tcp.flags));
        let absorbs = is_on_its_way && same;
        self.counters.data_absorbed += u64::from(absorbs);
        absorbs
    }

    /// Answers data that the receiver has with its last acknowledgement. Not if the data acknowledges something
    /// new itself, or the acknowledgement is not at hand.
    fn answers(&mut self, now: Instant, slot: usize, header: &Header, tcp: &Tcp) -> bool {
        let back = self.table.find((header.to, header.from));
        let is_old = back.is_some_and(|it| {
            let back = self.table.get(it);
            back.una == Some(tcp.ack) && back.window == tcp.window
        });
        let flow = self.table.flow(slot);
        let una = flow.una;
        let Some(ack) = flow.ack.as_mut().filter(|it| is_old && Some(it.number) == una) else {
            return false;
        };
        self.counters.data_answered += 1;
        // One that left just now is still on its way.
        let is_late = !self.config.overheard_loss || now.since(ack.at) >= ANSWER_AFTER;
        if ack.waiting == 0 && is_late {
            ack.waiting = 1;
            ack.at = now;
            ack.is_heard = false;
            self.counters.acks_answered += 1;
            let (packet, next) = (ack.packet.clone(), ack.next.hop);
            self.outputs.push_back(Output::Send { packet, next });
        }
        true
    }

    /// Data leaves: it is cached until it is acknowledged.
    pub(super) fn cache_data(
        &mut self,
        now: Instant,
        header: &Header,
        tcp: &Tcp,
        packet: &P,
        next: Next,
    ) {
        let length = length(tcp);
        if !(1..=LENGTH_MAX).contains(&length) {
            return;
        }
        let key = (header.from, header.to);
        let slot = self.flow_of(key);
        let end = tcp.seq.wrapping_add(length);
        // A SYN begins a connection anew, unless it is the last one again.
        if tcp.flags.has(Flags::SYN) && self.table.get(slot).sent != Some(end) {
            self.forget(key);
        }
        match self.table.flow(slot).saw(tcp.seq, end) {
            Seen::Ours => {}
            Seen::Stray => return,
            Seen::Another => {
                self.forget(key);
                self.table.flow(slot).saw(tcp.seq, end);
            }
        }
        let flow = self.table.flow(slot);
        flow.next = Some(next);
        if flow.has_acked(end) {
            return;
        }
        if let Some(entry) = flow.cache.find(tcp.seq, end).and_then(|it| flow.cache.get_mut(it)) {
            // Its sender, or a router before this one, has sent it again.
            if std::mem::take(&mut entry.is_doubted) {
                self.neighbours.judge(entry.to, entry.resends, true);
            }
            entry.packet = packet.clone();
            entry.waiting = entry.waiting.saturating_add(1);
            (entry.at, entry.to) = (now, next.hop);
            (entry.is_repeated, entry.is_heard) = (true, false);
        } else if self.has_room(slot, cost(header)) {
            self.counters.cached += 1;
            self.counters.evicted_other += self.table.flow(slot).cache.insert(Entry {
                waiting: 1,
                at: now,
                ..Entry::new((tcp.seq, end), cost(header), packet.clone(), next.hop)
            });
        }
        self.arm(slot);
    }

    /// Makes room for a packet of a flow. The flow that has most gives way: what the next hop was heard
    /// forwarding, else its newest. If that is the packet's own flow, it has no room: the losses of its oldest
    /// packets will be known first.
    fn has_room(&mut self, slot: usize, bytes: u32) -> bool {
        if bytes > self.config.cache_bytes {
            return false;
        }
        while self.table.bytes() + u64::from(bytes) > u64::from(self.config.cache_bytes) {
            let largest = self.table.largest(slot, bytes);
            let cache = &mut self.table.flow(largest).cache;
            let heard = cache.iter().position(|it| it.is_heard);
            let index = match heard {
                Some(index) => index,
                None if largest == slot => return false,
                None => cache.len().saturating_sub(1),
            };
            if cache.remove(index).is_none() {
                return false;
            }
            self.counters.evicted_budget += 1;
            self.arm(largest);
        }
        true
    }
}

/// What a packet costs of the budget for cached packets.
fn cost(header: &Header) -> u32 {
    header.bytes.max(COST_MIN)
}
