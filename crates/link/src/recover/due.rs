//! Timers: one for each flow, for the earliest of what it waits for.

use std::time::Duration;

use wire::Instant;

use super::flow::Flow;
use super::hear::UNHEARD_RESENDS_MAX;
use super::resend::{ACK_RESENDS_MAX, Cause};
use super::{Beta, Recover, Timer};
use crate::Packet;

/// The MAC's verdict has gone astray if it takes longer.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(2);

/// The paper's β.
const BETA: f64 = 1.5;

/// The shortest timeout that senders have: Linux'. Half of it, in seconds, leaves time for one more loss.
const HALF_SENDER_TIMEOUT: f64 = 0.1;

/// β lies between these when it is not constant.
const BETA_RANGE: (f64, f64) = (0.5, 6.0);

/// What neighbours forward counts only after this many samples of how long they take.
const SAMPLES_MIN: u32 = 4;

/// A neighbour gets this long to forward a packet: channels may be busy.
const FORWARDING_MIN: Duration = Duration::from_millis(20);

/// The same for acknowledgements. Most are followed by others that say more.
const FORWARDING_ACK_MIN: Duration = Duration::from_millis(50);

/// Timers are doubled no more often. A flow whose timer then expires without an acknowledgement is over.
const DOUBLINGS_MAX: u8 = 6;

impl<P: Packet> Recover<P> {
    /// Sets a flow's timer, and counts its memory. Call it after each change of a flow.
    pub(super) fn arm(&mut self, slot: usize) {
        self.table.count(slot);
        let flow = self.table.get(slot);
        let times = [self.hole_due(flow), self.unheard_due(flow), self.ack_due(flow)];
        self.timers.set(slot, times.into_iter().flatten().min());
    }

    /// Does what is due for a flow.
    pub(super) fn expire(&mut self, now: Instant, slot: usize) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.ack_due(self.table.get(slot))) {
            self.expire_ack(now, slot);
        }
        if is_due(self.unheard_due(self.table.get(slot))) {
            self.expire_unheard(now, slot);
        }
        if is_due(self.hole_due(self.table.get(slot))) {
            self.expire_hole(now, slot);
        }
    }

    /// When the first unacknowledged packet is to be sent again. Only that one is (InPCM, section 3.7).
    fn hole_due(&self, flow: &Flow<P>) -> Option<Instant> {
        let entry = flow.cache.get(flow.hole()?)?;
        if !entry.has_left() {
            return Some(entry.at + VERDICT_TIMEOUT);
        }
        let timeout = self.timeout(flow)?;
        Some(entry.at + timeout * (1 << flow.backoff.min(DOUBLINGS_MAX)))
    }

    /// How long a flow's packets wait for their acknowledgement.
    fn timeout(&self, flow: &Flow<P>) -> Option<Duration> {
        match self.config.timer {
            Timer::Off => None,
            Timer::TcpLike => Some(flow.rtt.timeout()),
            Timer::Esrto { beta } => Some(self.esrto(flow, beta)),
        }
    }

    /// Equation 1.
    fn esrto(&self, flow: &Flow<P>, beta: Beta) -> Duration {
        let deviation = self.line.at(flow.hops);
        let (least, most) = BETA_RANGE;
        let beta = match beta {
            Beta::Fixed(beta) => beta,
            Beta::Contention => (BETA * self.red.tries()).clamp(least, most),
            Beta::SenderTimeout => {
                flow.rtt.multiple(HALF_SENDER_TIMEOUT, deviation).clamp(least, most)
            }
        };
        flow.rtt.timeout_after(beta * deviation)
    }

    fn expire_hole(&mut self, now: Instant, slot: usize) {
        let flow = self.table.flow(slot);
        let Some(index) = flow.hole() else { return };
        let Some(entry) = flow.cache.get_mut(index) else { return };
        if !entry.has_left() {
            (entry.waiting, entry.at) = (0, now);
            return;
        }
        if flow.backoff >= DOUBLINGS_MAX {
            self.counters.evicted_hopeless += flow.cache.clear();
            return;
        }
        flow.backoff += 1;
        self.resend(now, slot, index, Cause::Timer);
    }

    /// When the next hop should have been heard forwarding the only packet that it was not heard forwarding. If
    /// there are several, it waits for the channel; or it forwards a later one, which tells of those before.
    fn unheard_due(&self, flow: &Flow<P>) -> Option<Instant> {
        if !self.hears(flow) {
            return None;
        }
        let entry = flow.cache.get(self.unheard(flow)?)?;
        let timeout = flow.forwarding.timeout().max(FORWARDING_MIN);
        Some(entry.at.max(flow.heard_at) + timeout * (1 << entry.resends.min(DOUBLINGS_MAX)))
    }

    /// The packet that left and that the next hop was not heard forwarding, if it is the only one.
    fn unheard(&self, flow: &Flow<P>) -> Option<usize> {
        let mut unheard = flow.cache.iter().enumerate().rev().filter(|(_, it)| !it.is_heard);
        let (index, entry) = unheard.next()?;
        let is_alone = unheard.next().is_none();
        (is_alone && entry.has_left() && entry.resends < UNHEARD_RESENDS_MAX).then_some(index)
    }

    /// Whether this router usually hears the next hop forward this flow's data.
    fn hears(&self, flow: &Flow<P>) -> bool {
        self.config.overheard_loss
            && flow.forwarding.samples() >= SAMPLES_MIN
            && !flow.is_next_to_receiver()
    }

    fn expire_unheard(&mut self, now: Instant, slot: usize) {
        if let Some(index) = self.unheard(self.table.get(slot)) {
            self.resend_suspect(now, slot, index, Cause::Unheard);
        }
    }

    /// When the last acknowledgement is to be sent again.
    ///
    /// The paper does so whenever no new data comes. Here it must seem lost, since each copy counts as a loss
    /// report at the sender: the next hop was not heard forwarding it; or that is the sender, nothing is on its
    /// way to cause another acknowledgement, and no data comes.
    fn ack_due(&self, flow: &Flow<P>) -> Option<Instant> {
        let ack = flow.ack.as_ref()?;
        if ack.waiting > 0 {
            return Some(ack.at + VERDICT_TIMEOUT);
        }
        if ack.is_heard || ack.resends >= ACK_RESENDS_MAX {
            return None;
        }
        let is_last_hop = ack.next.hop == flow.key.0.ip();
        let mut since = ack.at;
        let timeout = if !self.config.overheard_loss {
            self.timeout(flow)?
        } else if is_last_hop {
            (flow.sent == Some(ack.number)).then(|| flow.idle.timeout())?
        } else {
            let known = flow.forwarding_acks.samples() >= SAMPLES_MIN;
            since = since.max(flow.heard_ack_at);
            known.then(|| flow.forwarding_acks.timeout().max(FORWARDING_ACK_MIN))?
        };
        Some(since + timeout * (1 << ack.backoff.min(DOUBLINGS_MAX)))
    }

    fn expire_ack(&mut self, now: Instant, slot: usize) {
        let flow = self.table.flow(slot);
        let key = flow.key;
        let Some(ack) = &mut flow.ack else { return };
        if ack.waiting > 0 {
            (ack.waiting, ack.at) = (0, now);
            return;
        }
        let is_last_hop = ack.next.hop == key.0.ip();
        let unheard = self.config.overheard_loss && !is_last_hop;
        self.resend_ack(now, slot, if unheard { Cause::Unheard } else { Cause::Timer });
    }
}
