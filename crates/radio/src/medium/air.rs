//! Transmissions begin and end, and every station that senses them is told.

use super::Medium;
use crate::config::LossScope;
use crate::contention::Notice;
use crate::output::{Control, ControlFrame, Destination, Frame, Reception, Station};
use crate::reach::Hearer;
use crate::receiver::{Ending, Signal};
use crate::timers::Timer;
use crate::transceiver::{Answer, Awaited, OnAir};
use std::time::Duration;
use wire::Instant;

impl<F> Medium<F> {
    /// A station begins to transmit.
    pub(super) fn begin(&mut self, from: Station, what: OnAir, lasts: Duration) {
        let (now, speed, fading) = (self.now, what.speed(), self.reach.fading());
        let sender = self.station(from);
        sender.on_air = Some(what);
        sender.report.airtime += lasts;
        sender.receiver.mute();
        let ends = now + lasts;
        self.timers.set(Timer::End, from, ends);
        self.carrier_on(from, ends, Notice::All);
        let mut hearers = self.reach.lend(from);
        for hearer in &mut hearers {
            if fading.is_some() {
                hearer.fade(&mut self.station(from).chance);
            }
            if let Some(signal) = hearer.signal((from, speed, ends), fading) {
                let station = &mut self.stations[usize::from(hearer.station.0)];
                let is_followed =
                    station.receiver.begin(now, signal, &self.physics, &mut station.chance);
                if is_followed && self.physics.understands(signal.decodable) {
                    station.contention.reception_begins(now + self.physics.header(speed));
                }
                let notice = station.receiver.notice(now, &self.physics);
                self.carrier_on(hearer.station, ends, notice);
            }
        }
        self.reach.give_back(from, hearers);
    }

    /// A station's transmission ends.
    pub(super) fn end(&mut self, from: Station) {
        let sender = self.station(from);
        let what = sender.on_air.take().expect("Timer::End is set while something is on the air");
        sender.receiver.unmute();
        let (now, speed, fading) = (self.now, what.speed(), self.reach.fading());
        let mut hearers = self.reach.lend(from);
        let mut is_answered = false;
        for hearer in &mut hearers {
            if let Some(signal) = hearer.signal((from, speed, now), fading) {
                is_answered |= self.end_at(hearer, signal, &what);
                self.carrier_off(hearer.station);
            }
        }
        self.reach.give_back(from, hearers);
        self.reach.changes_of(from);
        self.station(from).contention.told();
        self.carrier_off(from);
        match what {
            OnAir::Data { frame, packet, .. } => {
                self.outbox.heard(frame, packet);
                self.data_sent(from, frame.to);
            }
            OnAir::Control(frame) => {
                self.outbox.heard_control(frame);
                match frame.kind {
                    Control::Rts => self.await_answer(from, Awaited::Cts),
                    Control::Cts if is_answered => self.answered(frame.to, Awaited::Cts),
                    Control::Ack if is_answered => self.answered(frame.to, Awaited::Ack),
                    Control::Cts | Control::Ack => {}
                }
            }
        }
    }

    /// A transmission ends for one station that sensed it; says whether it was a control frame that
    /// arrived where it should.
    fn end_at(&mut self, hearer: &mut Hearer, signal: Signal, what: &OnAir) -> bool {
        let by = hearer.station;
        let station = &mut self.stations[usize::from(by.0)];
        let ending = station.receiver.end(self.now, signal, &self.physics, &mut station.chance);
        if ending != Ending::Missed {
            station.contention.reception_ends(self.now);
        }
        match ending {
            Ending::Missed => {}
            Ending::Unread => station.report.disturbed += u64::from(signal.decodable),
            Ending::Weak => self.receive_badly(by),
            Ending::Decodable { chance, .. } if !station.chance.survives(chance) => {
                station.report.disturbed += 1;
                self.receive_badly(by);
            }
            Ending::Decodable { interference_max, .. } => {
                let noise = self.physics.noise + interference_max;
                let reception = Reception { by, power: signal.power, noise, is_new: true };
                match what {
                    OnAir::Data { frame, serial, .. } => {
                        self.receive_data(hearer, reception, frame, *serial);
                    }
                    OnAir::Control(frame) => return self.receive_control(hearer, reception, frame),
                }
            }
        }
        false
    }

    /// A data frame arrived undisturbed.
    fn receive_data(
        &mut self,
        hearer: &mut Hearer,
        reception: Reception,
        frame: &Frame,
        serial: u64,
    ) {
        let by = reception.by;
        let is_for_other = matches!(frame.to, Destination::Station(to) if to != by);
        if !is_for_other && !hearer.reaches {
            return self.receive_badly(by);
        }
        let (now, station) = (self.now, &mut self.stations[usize::from(by.0)]);
        let is_lost = match frame.to {
            _ if is_for_other => hearer.misses(now, &mut station.chance),
            Destination::Station(_) => station.chance.happens(hearer.loss),
            Destination::Broadcast => station.chance.happens(hearer.broadcast_loss),
        };
        if is_lost {
            station.report.lost += 1;
            return self.receive_badly(by);
        }
        let is_new = hearer.note(serial);
        self.receive(Reception { is_new, ..reception });
        match frame.to {
            Destination::Station(to) if to != by => {
                let until = self.now + self.timing.reserved_by_data();
                let station = self.station(by);
                station.report.overheard += 1;
                station.contention.reserve(until, None);
            }
            Destination::Station(_) => {
                self.count_received(by, is_new);
                self.owe(by, Answer::Ack { to: frame.from });
            }
            Destination::Broadcast => self.count_received(by, is_new),
        }
    }

    /// A control frame arrived undisturbed; says whether where it should.
    fn receive_control(
        &mut self,
        hearer: &Hearer,
        reception: Reception,
        frame: &ControlFrame,
    ) -> bool {
        let by = reception.by;
        if !hearer.reaches {
            self.receive_badly(by);
            return false;
        }
        let may_be_lost = self.config.loss_scope == LossScope::All;
        let station = self.station(by);
        if may_be_lost && station.chance.happens(hearer.loss) {
            station.report.lost += 1;
            self.receive_badly(by);
            return false;
        }
        self.receive(reception);
        let until = self.now + frame.reserves;
        if frame.to != by {
            let lapses = (frame.kind == Control::Rts).then(|| self.now + self.timing.nav_timeout);
            if until > self.now {
                self.station(by).contention.reserve(until, lapses);
            }
            return false;
        }
        if frame.kind == Control::Rts {
            self.owe_cts(by, frame.from, until);
        }
        true
    }

    fn receive(&mut self, reception: Reception) {
        self.station(reception.by).contention.received_well();
        self.outbox.reception(reception);
    }

    fn count_received(&mut self, by: Station, is_new: bool) {
        let report = &mut self.station(by).report;
        *if is_new { &mut report.packets_received } else { &mut report.duplicates } += 1;
    }

    fn receive_badly(&mut self, by: Station) {
        let now = self.now;
        self.station(by).contention.received_badly(now);
    }

    /// A station senses one more transmission, until `ends`. If it is to send at this very instant it
    /// still does.
    fn carrier_on(&mut self, at: Station, ends: Instant, notice: Notice) {
        let now = self.now;
        let going = self.timers.get(Timer::Access, at) == Some(now);
        let station = &mut self.stations[usize::from(at.0)];
        station.contention.carrier_on(now, ends, going, notice, &mut station.chance);
        if !going && !station.contention.is_idle() {
            self.timers.clear(Timer::Access, at);
        }
        match notice {
            // Alone on the air it can be read.
            Notice::UntilHeader(until) | Notice::InPreamble(until)
                if station.contention.may_forget() =>
            {
                self.timers.set(Timer::Header, at, until);
            }
            _ => {}
        }
    }

    /// The PHY header ends of the frame that a station follows, if it follows one still.
    pub(super) fn header_ends(&mut self, at: Station) {
        let (now, station) = (self.now, &mut self.stations[usize::from(at.0)]);
        let given_up = station.receiver.gives_up(now, &self.physics, &mut station.chance);
        if let Some(ends) = given_up {
            station.contention.header_lost(now, ends);
            self.plan(at);
        }
    }

    /// A station senses one transmission less.
    fn carrier_off(&mut self, at: Station) {
        let now = self.now;
        self.station(at).contention.carrier_off(now);
        self.plan(at);
    }
}
