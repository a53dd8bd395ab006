//! Transmissions begin and end, and every station that senses them is told.

use super::Medium;
use crate::airtime::SIFS;
use crate::output::{AckFrame, Destination, Frame, Reception, Station};
use crate::reach::Hearer;
use crate::receiver::Ending;
use crate::timers::Timer;
use crate::transceiver::OnAir;
use std::time::Duration;

impl<F> Medium<F> {
    /// A station begins to transmit.
    pub(super) fn begin(&mut self, from: Station, what: OnAir, lasts: Duration) {
        let now = self.now;
        let sender = self.station(from);
        sender.on_air = Some(what);
        sender.report.airtime += lasts;
        sender.receiver.mute();
        self.timers.set(Timer::End, from, now + lasts);
        self.carrier_on(from);
        for place in self.reach.of(from) {
            let hearer = *self.reach.at(place);
            self.station(hearer.station).receiver.begin(now, hearer.signal);
            self.carrier_on(hearer.station);
        }
    }

    /// A station's transmission ends.
    pub(super) fn end(&mut self, from: Station) {
        let sender = self.station(from);
        let what = sender.on_air.take().expect("Timer::End is set while something is on the air");
        sender.receiver.unmute();
        let mut acked = false;
        for place in self.reach.of(from) {
            let hearer = *self.reach.at(place);
            match self.station(hearer.station).receiver.end(hearer.signal) {
                Ending::Missed => {}
                Ending::Weak => self.receive_badly(hearer.station),
                Ending::Disturbed => {
                    self.station(hearer.station).report.disturbed += 1;
                    self.receive_badly(hearer.station);
                }
                Ending::Clear => match what {
                    OnAir::Data { frame, serial, .. } => self.receive_data(place, frame, serial),
                    OnAir::Ack { to, .. } => {
                        acked |= to == hearer.station;
                        self.receive(place, true);
                    }
                },
            }
            self.carrier_off(hearer.station);
        }
        self.carrier_off(from);
        match what {
            OnAir::Data { frame, packet, .. } => {
                self.outbox.heard(frame, packet);
                self.data_sent(from, frame.to);
            }
            OnAir::Ack { to, began } => {
                let (ended, rate) = (self.now, self.config.basic_rate);
                let frame = AckFrame { from, to, rate, began, ended };
                self.outbox.heard_ack(frame);
                if acked {
                    self.acked(to);
                }
            }
        }
    }

    /// A data frame arrived undisturbed. ACKs are short and at the basic rate: of the losses that a
    /// link has, data frames alone have a share.
    fn receive_data(&mut self, place: usize, frame: Frame, serial: u64) {
        let Hearer { station: by, loss, broadcast_loss, .. } = *self.reach.at(place);
        let loss = match frame.to {
            Destination::Station(_) => loss,
            Destination::Broadcast => broadcast_loss,
        };
        let station = self.station(by);
        if station.chance.happens(loss) {
            station.report.lost += 1;
            return self.receive_badly(by);
        }
        let is_new = self.reach.at(place).note(serial);
        self.receive(place, is_new);
        match frame.to {
            Destination::Station(to) if to != by => self.overhear(by),
            Destination::Station(_) => {
                self.count_received(by, is_new);
                self.owe_ack(by, frame.from);
            }
            Destination::Broadcast => self.count_received(by, is_new),
        }
    }

    fn receive(&mut self, place: usize, is_new: bool) {
        let Hearer { station: by, signal, .. } = *self.reach.at(place);
        self.station(by).contention.received_well();
        self.outbox.reception(Reception { by, power: signal.power, is_new });
    }

    fn count_received(&mut self, by: Station, is_new: bool) {
        let report = &mut self.station(by).report;
        *if is_new { &mut report.packets_received } else { &mut report.duplicates } += 1;
    }

    /// A frame was for another: that one now has the medium for its ACK (NAV).
    fn overhear(&mut self, by: Station) {
        let until = self.now + SIFS + self.ack_time;
        let station = self.station(by);
        station.report.overheard += 1;
        station.contention.reserve(until);
    }

    fn receive_badly(&mut self, by: Station) {
        let now = self.now;
        self.station(by).contention.received_badly(now);
    }

    /// A station senses one more transmission. If it is to send at this very instant it still does.
    fn carrier_on(&mut self, at: Station) {
        let now = self.now;
        let going = self.timers.get(Timer::Access, at) == Some(now);
        let station = self.station(at);
        station.contention.carrier_on(now, going, &mut station.chance);
        if !going {
            self.timers.clear(Timer::Access, at);
        }
    }

    /// A station senses one transmission less.
    fn carrier_off(&mut self, at: Station) {
        let now = self.now;
        self.station(at).contention.carrier_off(now);
        self.plan(at);
    }
}
