//! Sending again, and what the MAC says of what was sent.

use std::net::IpAddr;

use wire::Instant;

use super::flow::length;
use super::{Output, Recover};
use crate::header::before;
use crate::{Header, Kind, Lost, Message, Notice, Outcome, Packet, Tcp, Verdict};

/// A packet that was sent again this often is evicted.
const RESENDS_MAX: u8 = 8;

/// Repeated acknowledgements of data that was sent again this often are no longer dropped, nor are copies of it.
pub(super) const SUPPRESSED_RESENDS_MAX: u8 = 4;

/// The MAC gets a packet this often again before other routers, or the timer, must see to it.
const GIVEN_UP_MAX: u8 = 3;

/// An acknowledgement is sent again no more often than this (InPCM, section 3.8).
pub(super) const ACK_RESENDS_MAX: u8 = 3;

/// Why data is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The MAC has given it up.
    GivenUp,
    /// The next hop was heard forwarding later data.
    Overheard,
    /// The next hop was not heard in time.
    Unheard,
    /// Acknowledgements name it as missing.
    Duplicates,
    /// The timer has expired.
    Timer,
}

impl<P: Packet> Recover<P> {
    /// Sends a cached packet again, to where routing sends the flow now. Returns whether it is still cached.
    pub(super) fn resend(&mut self, now: Instant, slot: usize, index: usize, cause: Cause) -> bool {
        let flow = self.table.flow(slot);
        let Some(next) = flow.next else { return true };
        let key = flow.key;
        let Some(entry) = flow.cache.get_mut(index) else { return false };
        if entry.resends >= RESENDS_MAX {
            flow.cache.remove(index);
            self.counters.evicted_hopeless += 1;
            return false;
        }
        // What one neighbour did not take, another may.
        let other = next.other.filter(|_| cause == Cause::GivenUp && entry.to == next.hop);
        let hop = other.unwrap_or(next.hop);
        entry.resends += 1;
        entry.waiting += 1;
        (entry.at, entry.to) = (now, hop);
        (entry.is_repeated, entry.is_heard) = (true, false);
        let (packet, end) = (entry.packet.clone(), entry.end);
        self.outputs.push_back(Output::Send { packet, next: hop });
        let counter = match cause {
            Cause::GivenUp => &mut self.counters.resent_given_up,
            Cause::Overheard => &mut self.counters.resent_overheard,
            Cause::Unheard => &mut self.counters.resent_unheard,
            Cause::Duplicates => &mut self.counters.resent_duplicates,
            Cause::Timer => &mut self.counters.resent_timer,
        };
        *counter += 1;
        if cause == Cause::Timer {
            self.tell(Notice { from: key.0, to: key.1, lost: Lost::Data(end) });
        }
        true
    }

    /// Sends the last acknowledgement of a flow again.
    pub(super) fn resend_ack(&mut self, now: Instant, slot: usize, cause: Cause) {
        let flow = self.table.flow(slot);
        let key = flow.key;
        let Some(ack) = &mut flow.ack else { return };
        let other = ack.next.other.filter(|_| cause == Cause::GivenUp && ack.to == ack.next.hop);
        let hop = other.unwrap_or(ack.next.hop);
        ack.resends += 1;
        ack.backoff += 1;
        ack.waiting += 1;
        (ack.at, ack.to, ack.is_heard) = (now, hop, false);
        let (packet, number) = (ack.packet.clone(), ack.number);
        self.outputs.push_back(Output::Send { packet, next: hop });
        self.counters.acks_resent += 1;
        if cause == Cause::Timer {
            self.tell(Notice { from: key.1, to: key.0, lost: Lost::Ack(number) });
        }
    }

    /// Tells the routers before this one that a packet was sent again.
    fn tell(&mut self, notice: Notice) {
        if self.config.notify && notice.from.ip() != self.me {
            self.counters.notices_sent += 1;
            let (to, message) = (notice.from.ip(), Message::Notice(notice));
            self.outputs.push_back(Output::Originate { to, message });
        }
    }

    /// The MAC has finished with a packet.
    pub(super) fn finished(
        &mut self,
        now: Instant,
        header: &Header,
        next: IpAddr,
        verdict: Verdict,
    ) {
        self.red.sent(verdict.tries);
        match verdict.outcome {
            Outcome::Acked => self.neighbours.reached(next),
            Outcome::GivenUp => self.neighbours.missed(next),
            Outcome::QueueFull => {}
        }
        if let Kind::Tcp(tcp) = &header.kind {
            self.finished_data(now, header, tcp, verdict.outcome);
            self.finished_ack(now, header, tcp, verdict.outcome);
        }
    }

    fn finished_data(&mut self, now: Instant, header: &Header, tcp: &Tcp, outcome: Outcome) {
        let key = (header.from, header.to);
        let length = length(tcp);
        let end = tcp.seq.wrapping_add(length);
        let Some(slot) = (length > 0).then(|| self.table.find(key)).flatten() else { return };
        let flow = self.table.flow(slot);
        let Some(index) = flow.cache.find(tcp.seq, end) else { return };
        let order = flow.next_order();
        let Some(entry) = flow.cache.get_mut(index) else { return };
        entry.waiting = entry.waiting.saturating_sub(1);
        entry.at = now;
        match outcome {
            Outcome::Acked => (entry.order, entry.given_up) = (order, 0),
            Outcome::GivenUp => {
                entry.order = order;
                entry.given_up = entry.given_up.saturating_add(1);
                let hopeful = entry.given_up <= GIVEN_UP_MAX && entry.waiting == 0;
                if self.config.mac_trigger && hopeful && self.is_reachable(slot) {
                    self.resend(now, slot, index, Cause::GivenUp);
                }
            }
            // The queue is full because the sender sends too much: it must see this loss.
            Outcome::QueueFull if entry.waiting == 0 && self.config.overheard_loss => {
                // Kept to absorb the copy that the router before this one may send.
                (entry.order, entry.is_heard, entry.is_repeated) = (order, true, true);
            }
            Outcome::QueueFull if entry.waiting == 0 => {
                flow.cache.remove(index);
                self.counters.evicted_other += 1;
            }
            Outcome::QueueFull => {}
        }
        self.arm(slot);
    }

    fn finished_ack(&mut self, now: Instant, header: &Header, tcp: &Tcp, outcome: Outcome) {
        if !tcp.is_pure_ack() {
            return;
        }
        let Some(slot) = self.table.find((header.to, header.from)) else { return };
        let Some(ack) = self.table.flow(slot).ack.as_mut().filter(|it| it.number == tcp.ack) else {
            return;
        };
        ack.waiting = ack.waiting.saturating_sub(1);
        ack.at = now;
        let hopeful = ack.waiting == 0 && ack.resends < ACK_RESENDS_MAX;
        let gone = self.neighbours.is_gone(ack.next.hop)
            && ack.next.other.is_none_or(|it| self.neighbours.is_gone(it));
        if outcome == Outcome::GivenUp && self.config.mac_trigger && hopeful && !gone {
            self.resend_ack(now, slot, Cause::GivenUp);
        }
        self.arm(slot);
    }

    /// Whether a next hop of a flow's data is not gone.
    fn is_reachable(&self, slot: usize) -> bool {
        let Some(next) = self.table.get(slot).next else { return false };
        !self.neighbours.is_gone(next.hop)
            || next.other.is_some_and(|it| !self.neighbours.is_gone(it))
    }

    /// Another router has sent this data again.
    pub(super) fn noticed_data(&mut self, now: Instant, key: super::Key, end: u32) {
        let Some(slot) = self.table.find(key) else { return };
        let flow = self.table.flow(slot);
        let Some(index) = flow.cache.iter().position(|it| it.end == end) else { return };
        match self.config.on_notice {
            super::OnNotice::Evict => {
                flow.cache.remove(index);
                self.counters.evicted_other += 1;
            }
            // Once until the next acknowledgement, or invented notices would put it off for ever.
            super::OnNotice::Double if flow.hole() == Some(index) && flow.backoff == 0 => {
                let Some(entry) = flow.cache.get_mut(index).filter(|it| it.has_left()) else {
                    return;
                };
                entry.at = now;
                flow.backoff = 1;
            }
            super::OnNotice::Double => return,
        }
        self.counters.notices_obeyed += 1;
        self.arm(slot);
    }

    /// Another router has sent this acknowledgement again.
    pub(super) fn noticed_ack(&mut self, now: Instant, key: super::Key, number: u32) {
        let Some(slot) = self.table.find(key) else { return };
        let flow = self.table.flow(slot);
        let Some(ack) = flow.ack.as_mut().filter(|it| !before(number, it.number)) else { return };
        match self.config.on_notice {
            super::OnNotice::Evict => flow.ack = None,
            super::OnNotice::Double if ack.waiting == 0 && ack.backoff == 0 => {
                ack.at = now;
                ack.backoff = 1;
            }
            super::OnNotice::Double => return,
        }
        self.counters.notices_obeyed += 1;
        self.arm(slot);
    }
}
