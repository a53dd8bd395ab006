//! What the transmissions of neighbours tell: what the next hop forwards has arrived there, and since it
//! forwards in order, what it passes over has not.

use std::net::IpAddr;

use wire::Instant;

use super::Recover;
use super::flow::{length, sample_of};
use super::resend::Cause;
use crate::header::before;
use crate::{Flags, Header, Packet, Tcp};

/// Data that was sent again this often, and was not heard from the next hop, is left to the timer.
pub(super) const UNHEARD_RESENDS_MAX: u8 = 3;

impl<P: Packet> Recover<P> {
    /// A neighbour was heard forwarding data.
    pub(super) fn heard_data(&mut self, now: Instant, header: &Header, tcp: &Tcp, from: IpAddr) {
        let length = length(tcp);
        let slot = self.table.find((header.from, header.to)).filter(|_| length > 0);
        let Some(slot) = slot else { return };
        let flow = self.table.flow(slot);
        let end = tcp.seq.wrapping_add(length);
        let Some(index) = flow.cache.find(tcp.seq, end) else { return };
        let Some(entry) = flow.cache.get_mut(index).filter(|it| it.to == from) else { return };
        entry.is_heard = true;
        if std::mem::take(&mut entry.is_suspect) {
            // What it forwards before the new copy has left, it had.
            let was_right = entry.has_left();
            self.neighbours.judge(from, entry.resends.saturating_sub(1), was_right);
        }
        // Of a packet that was sent twice, the copy that was heard may be either.
        let single = entry.has_left() && !entry.is_repeated;
        let (at, order) = (entry.at, entry.order);
        if single && let Some(sample) = sample_of(now, at.max(flow.heard_at)) {
            flow.forwarding.sample(sample);
        }
        flow.heard_at = now;
        if self.config.eldd {
            flow.cache.remove(index);
            self.counters.evicted_eldd += 1;
        }
        if self.config.overheard_loss && single {
            self.resend_passed_over(now, slot, from, order);
        }
        self.arm(slot);
    }

    /// The neighbour `from` has forwarded a packet of rank `order`: those before it that it was not heard
    /// forwarding are lost.
    fn resend_passed_over(&mut self, now: Instant, slot: usize, from: IpAddr, order: u64) {
        let mut index = 0;
        while let Some(entry) = self.table.get(slot).cache.get(index) {
            let seems_lost = entry.to == from
                && entry.has_left()
                && !entry.is_heard
                && entry.order < order
                && entry.resends < UNHEARD_RESENDS_MAX;
            index +=
                usize::from(!seems_lost || self.resend_suspect(now, slot, index, Cause::Overheard));
        }
    }

    /// Sends a packet again that its next hop was not heard forwarding, unless such suspicions are mostly wrong
    /// there. Returns whether it is still cached.
    pub(super) fn resend_suspect(
        &mut self,
        now: Instant,
        slot: usize,
        index: usize,
        cause: Cause,
    ) -> bool {
        let Some(entry) = self.table.flow(slot).cache.get_mut(index) else { return false };
        let (to, resends) = (entry.to, entry.resends);
        if std::mem::take(&mut entry.is_suspect) {
            self.neighbours.judge(to, resends.saturating_sub(1), false);
        }
        if !self.neighbours.suspects(to, resends) {
            // Acknowledgements will tell.
            (entry.is_heard, entry.is_doubted) = (true, true);
            return true;
        }
        entry.is_suspect = true;
        self.resend(now, slot, index, cause)
    }

    /// A neighbour was heard forwarding an acknowledgement.
    pub(super) fn heard_ack(&mut self, now: Instant, header: &Header, tcp: &Tcp, from: IpAddr) {
        if !tcp.flags.has(Flags::ACK) {
            return;
        }
        let Some(slot) = self.table.find((header.to, header.from)) else { return };
        let flow = self.table.flow(slot);
        let Some(ack) = flow.ack.as_mut() else { return };
        if ack.to != from || before(tcp.ack, ack.number) || ack.is_heard {
            return;
        }
        ack.is_heard = true;
        if ack.waiting == 0
            && ack.resends == 0
            && tcp.ack == ack.number
            && let Some(sample) = sample_of(now, ack.at.max(flow.heard_ack_at))
        {
            flow.forwarding_acks.sample(sample);
        }
        flow.heard_ack_at = now;
        self.arm(slot);
    }
}
