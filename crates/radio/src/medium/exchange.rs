//! A packet's way: queue, turn, tries, ACK or none, and done.

use super::Medium;
use crate::airtime::{self, SIFS};
use crate::output::{Destination, Frame, Outcome, Station};
use crate::packets::Packet;
use crate::timers::Timer;
use crate::transceiver::OnAir;

impl<F> Medium<F> {
    /// A station gets a packet to send.
    pub(super) fn send(&mut self, packet: Packet<F>) {
        let (from, now) = (packet.from, self.now);
        let last = match packet.to {
            Destination::Station(to) => from.max(to),
            Destination::Broadcast => from,
        };
        assert!(usize::from(last.0) < self.stations.len(), "no such station: {last:?}");
        let id = self.packets.insert(packet);
        let frames_max = self.config.queue_frames_max;
        let station = self.station(from);
        if station.enqueue(id, frames_max) {
            // A turn that has come at this very instant stands, whoever else has begun by now.
            if station.next(now) {
                self.plan(from);
            }
        } else {
            station.report.queue_full += 1;
            self.outbox.done(id, now, Outcome::QueueFull, 0);
        }
    }

    /// It is a station's turn.
    pub(super) fn send_data(&mut self, from: Station) {
        let (began, config) = (self.now, &self.config);
        let station = &mut self.stations[usize::from(from.0)];
        station.contention.access();
        let current = station.current.as_mut().expect("a station waits for its turn with a packet");
        let Packet { to, bytes, .. } = *self.packets.get(current.packet);
        let rate = match to {
            Destination::Station(_) => config.data_rate,
            Destination::Broadcast => config.basic_rate,
        };
        let lasts = airtime::data(bytes, rate);
        let retry = current.tries > 0;
        current.tries += 1;
        let (packet, serial, sequence) = (current.packet, current.serial, current.sequence());
        let frame = Frame { from, to, bytes, rate, sequence, retry, began, ended: began + lasts };
        station.report.count_data(bytes, retry);
        self.begin(from, OnAir::Data { frame, packet, serial }, lasts);
    }

    /// A station's data frame has ended.
    pub(super) fn data_sent(&mut self, from: Station, to: Destination) {
        match to {
            Destination::Station(_) => {
                self.timers.set(Timer::AckTimeout, from, self.now + airtime::ack_timeout());
            }
            Destination::Broadcast => self.done(from, Outcome::Broadcast),
        }
    }

    /// A station got a frame that was for it.
    pub(super) fn owe_ack(&mut self, from: Station, to: Station) {
        self.station(from).owes = Some(to);
        self.timers.set(Timer::Ack, from, self.now + SIFS);
    }

    /// A station sends the ACK that it owes, whether the medium is idle or not.
    pub(super) fn send_ack(&mut self, from: Station) {
        let (began, lasts) = (self.now, self.ack_time);
        let station = self.station(from);
        if let Some(to) = station.owes.take().filter(|_| station.on_air.is_none()) {
            station.report.count_ack();
            self.begin(from, OnAir::Ack { to, began }, lasts);
        }
    }

    /// A station received the ACK that it waited for.
    pub(super) fn acked(&mut self, from: Station) {
        if self.timers.get(Timer::AckTimeout, from).is_some() {
            self.timers.clear(Timer::AckTimeout, from);
            self.done(from, Outcome::Acked);
        }
    }

    /// No ACK came in time. If a frame is just being received, its end tells whether it is the ACK
    /// (DCF: ACK procedure); that end comes before this timer, and clears it if it is.
    pub(super) fn ack_overdue(&mut self, from: Station) {
        let sender = self.station(from).receiver.receiving();
        if let Some(ends) = sender.and_then(|sender| self.timers.get(Timer::End, sender)) {
            self.timers.set(Timer::AckTimeout, from, ends);
        } else {
            self.not_acked(from);
        }
    }

    fn not_acked(&mut self, from: Station) {
        let (now, tries_max) = (self.now, self.config.tries_max);
        let station = self.station(from);
        station.report.data_frames_failed += 1;
        let tries = station.current.expect("it waited for this packet's ACK").tries;
        if tries >= tries_max {
            station.report.given_up += 1;
            self.done(from, Outcome::GivenUp);
        } else {
            station.contention.again(now, &mut station.chance);
            self.plan(from);
        }
    }

    /// A station is done with its packet, and turns to the next.
    fn done(&mut self, from: Station, outcome: Outcome) {
        let now = self.now;
        let station = self.station(from);
        let done = station.current.take().expect("it was working on this packet");
        station.contention.done(now, &mut station.chance);
        station.next(now);
        self.outbox.done(done.packet, now, outcome, done.tries);
        self.plan(from);
    }

    /// Sets the timer for a station's turn, as things stand.
    pub(super) fn plan(&mut self, station: Station) {
        match self.station(station).contention.access_at() {
            Some(at) => self.timers.set(Timer::Access, station, at),
            None => self.timers.clear(Timer::Access, station),
        }
    }
}
