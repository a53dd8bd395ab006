//! Acknowledgements: algorithm 2 (InPCM, section 3.3).

use std::net::IpAddr;

use wire::Instant;

use super::flow::sample_of;
use super::resend::{Cause, SUPPRESSED_RESENDS_MAX};
use super::{Recover, Timer};
use crate::header::before;
use crate::{Header, Next, Packet, Tcp};

/// This many repeated acknowledgements mean a loss (RFC 5681, section 3.2; InPCM, algorithm 2).
const DUPLICATES: u32 = 3;

/// No acknowledgement without data is longer: both headers with all their options. Longer ones are not kept.
const BYTES_MAX: u32 = 120;

/// The last acknowledgement of a flow that left here.
#[derive(Clone, Debug)]
pub(super) struct LastAck<P> {
    /// The next byte that the receiver expects.
    pub(super) number: u32,
    /// The packet.
    pub(super) packet: P,
    /// Where routing sends acknowledgements.
    pub(super) next: Next,
    /// The neighbour it was last sent to.
    pub(super) to: IpAddr,
    /// How many copies are between here and the MAC's verdict.
    pub(super) waiting: u8,
    /// When it last left for the MAC, or the MAC.
    pub(super) at: Instant,
    /// The neighbour was heard forwarding it, or data has come since that it may have caused.
    pub(super) is_heard: bool,
    /// How often it was sent again.
    pub(super) resends: u8,
    /// How often its timer is doubled.
    pub(super) backoff: u8,
}

impl<P: Packet> Recover<P> {
    /// An acknowledgement has come, alone or with data. Returns whether it need not go on.
    pub(super) fn is_needless_ack(&mut self, now: Instant, header: &Header, tcp: &Tcp) -> bool {
        let Some(slot) = self.table.find((header.to, header.from)) else { return false };
        if self.is_probe(header, tcp) {
            return false;
        }
        let flow = self.table.flow(slot);
        // An acknowledgement of data that was never seen here, or not yet sent, changes nothing.
        let Some(sent) = flow.sent.filter(|sent| !before(*sent, tcp.ack)) else { return false };
        let first = flow.cache.get(0).map_or(sent, |it| it.seq);
        let una = flow.una.unwrap_or(first);
        if before(tcp.ack, una) {
            let is_old = flow.una.is_some() && tcp.is_pure_ack() && tcp.sack.blocks().is_empty();
            if !self.config.suppress || !is_old {
                return false;
            }
            if !flow.contradict(tcp.ack) {
                self.forget((header.to, header.from));
                return false;
            }
            self.counters.old_acks_dropped += 1;
            return true;
        }
        let is_new = flow.una.is_none() || tcp.ack != una;
        if is_new {
            flow.hops = Header::TTL.saturating_sub(header.ttl).saturating_add(1);
            self.acknowledged(now, slot, tcp);
        }
        let rank = self.selectively_acknowledged(slot, tcp);
        let drops = !is_new && self.duplicated(now, slot, tcp);
        if is_new {
            self.named_hole(now, slot, rank);
        }
        self.resend_sack_holes(now, slot);
        self.arm(slot);
        drops
    }

    /// Whether an acknowledgement without data begins before what its sender has sent: it asks whether the other end is
    /// there, or has room, and must get there (RFC 9293, sections 3.8.4 and 3.8.6.1).
    fn is_probe(&self, header: &Header, tcp: &Tcp) -> bool {
        if !tcp.is_pure_ack() {
            return false;
        }
        let own = self.table.find((header.from, header.to));
        let sent = own.and_then(|slot| self.table.get(slot).sent);
        sent.is_some_and(|sent| before(tcp.seq, sent))
    }

    /// All data before `tcp.ack` has arrived.
    fn acknowledged(&mut self, now: Instant, slot: usize, tcp: &Tcp) {
        let flow = self.table.flow(slot);
        flow.old = 0;
        let mut timed = Some(None);
        let mut rank = 0;
        while let Some(entry) = flow.cache.pop_acked(tcp.ack) {
            self.counters.evicted_acked += 1;
            // Karn's rule, also for what had to wait for a repeated packet.
            if entry.is_repeated || !entry.has_left() {
                timed = None;
            } else {
                timed = timed.map(|_| (entry.end == tcp.ack).then_some(entry.at));
                rank = rank.max(entry.order);
            }
            if entry.is_doubted {
                self.neighbours.judge(entry.to, entry.resends, false);
            }
            if entry.is_suspect {
                self.neighbours.judge(entry.to, entry.resends.saturating_sub(1), false);
            }
        }
        if let Some(sample) = timed.flatten().and_then(|at| sample_of(now, at))
            && flow.duplicates == 0
        {
            flow.rtt.sample(sample);
            self.line.sample(flow.hops, flow.rtt.standard_deviation());
        }
        flow.una = Some(tcp.ack);
        flow.window = tcp.window;
        flow.duplicates = 0;
        flow.backoff = 0;
        flow.acked_order = flow.acked_order.max(rank);
        if flow.sacked.is_some_and(|(end, _)| !before(tcp.ack, end)) {
            flow.sacked = None;
        }
    }

    /// What SACK blocks name has arrived (RFC 2018). Returns the highest rank that is known to have arrived.
    fn selectively_acknowledged(&mut self, slot: usize, tcp: &Tcp) -> u64 {
        let flow = self.table.flow(slot);
        let (Some(una), Some(sent)) = (flow.una, flow.sent) else { return 0 };
        let mut rank = flow.acked_order;
        for &(first, after) in tcp.sack.blocks() {
            // D-SACKs, and blocks of what was not sent, name nothing new.
            if !before(first, after)
                || !before(una, after)
                || before(first, una)
                || before(sent, after)
            {
                continue;
            }
            self.counters.evicted_acked += flow.cache.remove_within(first, after, |it| {
                rank = rank.max(if it.is_repeated { 0 } else { it.order });
            });
            match &mut flow.sacked {
                Some((end, order)) => {
                    *order = rank.max(*order);
                    *end = if before(*end, after) { after } else { *end };
                }
                None => flow.sacked = Some((after, rank)),
            }
        }
        rank
    }

    /// The receiver has repeated its acknowledgement. Returns whether it need not go on.
    fn duplicated(&mut self, now: Instant, slot: usize, tcp: &Tcp) -> bool {
        let flow = self.table.flow(slot);
        if !tcp.is_pure_ack() || tcp.window != flow.window {
            flow.window = tcp.window;
            return false;
        }
        if has_dsack(tcp) {
            return false;
        }
        let Some(index) = flow.hole() else { return false };
        let Some(entry) = flow.cache.get(index) else { return false };
        // What does not arrive for all these attempts is the sender's concern again.
        if entry.resends >= SUPPRESSED_RESENDS_MAX {
            return false;
        }
        let has_left = entry.has_left();
        let is_doubted = entry.is_doubted;
        let mut resends = false;
        if has_left {
            flow.duplicates += 1;
            resends = if is_doubted {
                true
            } else if self.config.overheard_loss && flow.is_next_to_receiver() {
                self.is_overdue(now, slot, index)
            } else {
                flow.duplicates >= DUPLICATES
                    && (!self.config.overheard_loss || self.may_be_lost(now, slot, index))
            };
        }
        if resends {
            let flow = self.table.flow(slot);
            flow.duplicates = 0;
            if is_doubted && let Some(entry) = flow.cache.get_mut(index) {
                entry.is_doubted = false;
                self.neighbours.judge(entry.to, entry.resends, true);
            }
            self.resend(now, slot, index, Cause::Duplicates);
        }
        // The paper drops all, as its timer will send the data again. Without it, the sender must know.
        let sees_to_it = !self.config.overheard_loss && self.config.timer != Timer::Off;
        let drops = self.config.suppress && (resends || !has_left || sees_to_it);
        self.counters.duplicates_dropped += u64::from(drops);
        drops
    }

    /// Whether a packet can be lost, as acknowledgements say that do not know of it: if it was sent again, not
    /// before that copy could have been acknowledged.
    fn may_be_lost(&self, now: Instant, slot: usize, index: usize) -> bool {
        let flow = self.table.get(slot);
        let entry = flow.cache.get(index);
        entry.is_some_and(|it| it.has_left() && !it.is_repeated)
            || self.is_overdue(now, slot, index)
    }

    /// Whether a packet left so long ago that this acknowledgement would know of it. One that comes sooner may
    /// have been caused by what left before it, also by a packet sent again in vain.
    fn is_overdue(&self, now: Instant, slot: usize, index: usize) -> bool {
        let flow = self.table.get(slot);
        let entry = flow.cache.get(index);
        entry.is_some_and(|it| it.has_left() && now.since(it.at) >= flow.rtt.timeout())
    }

    /// A new acknowledgement names the next packet that is missing. An adjacent receiver gets packets in the
    /// order in which they left: if a later one has arrived, that one is lost.
    fn named_hole(&mut self, now: Instant, slot: usize, rank: u64) {
        let flow = self.table.get(slot);
        if !self.config.overheard_loss || !flow.is_next_to_receiver() {
            return;
        }
        let Some(index) = flow.hole() else { return };
        let is_passed = flow.cache.get(index).is_some_and(|it| it.order < rank);
        let is_lost = is_passed && self.may_be_lost(now, slot, index);
        if is_lost || self.is_overdue(now, slot, index) {
            self.resend(now, slot, index, Cause::Duplicates);
        }
    }

    /// All that is missing below what was acknowledged selectively, and left before that did, is lost. Only
    /// beside the receiver: elsewhere routers nearer to it know first.
    fn resend_sack_holes(&mut self, now: Instant, slot: usize) {
        let flow = self.table.get(slot);
        let Some((end, rank)) = flow.sacked else { return };
        if !self.config.overheard_loss || !flow.is_next_to_receiver() {
            return;
        }
        let mut index = 0;
        while let Some(entry) = self.table.get(slot).cache.get(index) {
            if !before(entry.seq, end) {
                break;
            }
            let is_lost = entry.order < rank && self.may_be_lost(now, slot, index);
            index += usize::from(!is_lost || self.resend(now, slot, index, Cause::Duplicates));
        }
    }

    /// An acknowledgement leaves: the last of each flow is kept, to be sent again.
    pub(super) fn cache_ack(
        &mut self,
        now: Instant,
        header: &Header,
        tcp: &Tcp,
        packet: &P,
        next: Next,
    ) {
        if !tcp.is_pure_ack() || header.bytes > BYTES_MAX || self.is_probe(header, tcp) {
            return;
        }
        let slot = self.flow_of((header.to, header.from));
        let flow = self.table.flow(slot);
        // One of the future must not become the last.
        if flow.sent.is_some_and(|sent| before(sent, tcp.ack)) {
            return;
        }
        let possible = |it: &&LastAck<P>| flow.sent.is_none_or(|sent| !before(sent, it.number));
        if flow.ack.as_ref().filter(possible).is_some_and(|it| before(tcp.ack, it.number)) {
            return;
        }
        let same = flow.ack.as_ref().filter(|it| it.number == tcp.ack);
        let (waiting, resends) = same.map_or((0, 0), |it| (it.waiting, it.resends));
        flow.ack = Some(LastAck {
            number: tcp.ack,
            packet: packet.clone(),
            next,
            to: next.hop,
            waiting: waiting.saturating_add(1),
            at: now,
            is_heard: false,
            resends,
            backoff: 0,
        });
        self.arm(slot);
    }

    /// Data has come: the acknowledgement before it has arrived.
    pub(super) fn new_data_after_idle(&mut self, now: Instant, slot: usize, end: u32) {
        let flow = self.table.flow(slot);
        let is_new = flow.sent.is_some_and(|sent| before(sent, end));
        let was_idle = flow.ack.as_ref().is_some_and(|it| Some(it.number) == flow.sent);
        let Some(ack) = flow.ack.as_mut().filter(|it| is_new && before(it.number, end)) else {
            return;
        };
        if was_idle
            && ack.waiting == 0
            && ack.resends == 0
            && !ack.is_heard
            && let Some(sample) = sample_of(now, ack.at)
        {
            flow.idle.sample(sample);
        }
        ack.is_heard = true;
        self.arm(slot);
    }
}

/// Whether the first SACK block reports a repeated arrival (RFC 2883, section 4).
fn has_dsack(tcp: &Tcp) -> bool {
    let blocks = tcp.sack.blocks();
    let Some(&(first, after)) = blocks.first() else { return false };
    let inside = blocks.get(1).is_some_and(|it| !before(first, it.0) && !before(it.1, after));
    before(first, tcp.ack) || inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Sack};

    /// RFC 2883, section 4: the first block repeats what is below the acknowledgement, or is part of the second block.
    #[test]
    fn a_first_block_below_the_acknowledgement_or_inside_the_second_reports_a_repetition() {
        let blocks: [(&[(u32, u32)], bool); 8] = [
            (&[], false),
            (&[(100, 200)], false),
            (&[(99, 100)], true),
            (&[(50, 60), (300, 400)], true),
            (&[(200, 300), (200, 300)], true),
            (&[(210, 290), (200, 300)], true),
            (&[(199, 300), (200, 300)], false),
            (&[(200, 301), (200, 300)], false),
        ];
        for (blocks, is_repetition) in blocks {
            let mut sack = Sack::default();
            blocks.iter().for_each(|it| sack.push(*it));
            let tcp = Tcp {
                seq: 0,
                ack: 100,
                payload: 0,
                flags: Flags::ACK,
                window: 0,
                sack,
                stamps: None,
                has_other_options: false,
            };
            assert_eq!(has_dsack(&tcp), is_repetition, "{blocks:?}");
        }
    }
}
