//! The start and the end of transmissions, for the sender and for every station that senses them.

use super::Medium;
use crate::config::LossScope;
use crate::contention::Notice;
use crate::hearers::Hearer;
use crate::output::{Control, ControlFrame, Destination, Frame, Reception, Station};
use crate::receiver::{Ending, Signal};
use crate::timers::Timer;
use crate::transceiver::{Answer, Awaited, OnAir};
use std::time::Duration;
use wire::Instant;

impl<F> Medium<F> {
    /// A station begins to transmit.
    pub(super) fn begin(&mut self, from: Station, what: OnAir, lasts: Duration) {
        let (now, speed, fading) = (self.now, what.speed(), self.hearers.fading());
        let sender = self.station(from);
        sender.on_air = Some(what);
        sender.report.airtime += lasts;
        sender.receiver.mute();
        let ends = now + lasts;
        self.timers.set(Timer::End, from, ends);
        self.carrier_on(from, ends, Notice::All);
        // The hearers are taken out of their table, because stations are changed while they are
        // iterated.
        let mut hearers = self.hearers.lend(from);
        for hearer in &mut hearers {
            // One draw per frame and hearer: fading is constant during a frame.
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
        self.hearers.give_back(from, hearers);
    }

    /// A station's transmission ends.
    pub(super) fn end(&mut self, from: Station) {
        let sender = self.station(from);
        let what = sender.on_air.take().expect("Timer::End is set while something is on the air");
        // The receiver was deaf while the station transmitted.
        sender.receiver.unmute();
        let (now, speed, fading) = (self.now, what.speed(), self.hearers.fading());
        let mut hearers = self.hearers.lend(from);
        let mut is_answered = false;
        for hearer in &mut hearers {
            if let Some(signal) = hearer.signal((from, speed, now), fading) {
                is_answered |= self.end_at(hearer, signal, &what);
                self.carrier_off(hearer.station);
            }
        }
        self.hearers.give_back(from, hearers);
        self.hearers.changes_of(from);
        // ns-3: after its own transmission, the PHY reports all others again.
        self.station(from).contention.report_all();
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
                    // A lost CTS or ACK needs no action here: the timer of the station that waits
                    // for it expires.
                    Control::Cts if is_answered => self.answered(frame.to, Awaited::Cts),
                    Control::Ack if is_answered => self.answered(frame.to, Awaited::Ack),
                    Control::Cts | Control::Ack => {}
                }
            }
        }
    }

    /// A transmission ends at one station that sensed it; returns whether it was a control frame
    /// that its addressee received.
    fn end_at(&mut self, hearer: &mut Hearer, signal: Signal, what: &OnAir) -> bool {
        let by = hearer.station;
        let station = &mut self.stations[usize::from(by.0)];
        let ending = station.receiver.end(self.now, signal, &self.physics, &mut station.chance);
        if ending != Ending::Missed {
            station.contention.reception_ends(self.now);
        }
        match ending {
            Ending::Missed => {}
            // A header that cannot be read begins no reception, so no EIFS follows.
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

    /// A data frame was received without errors.
    fn receive_data(
        &mut self,
        hearer: &mut Hearer,
        reception: Reception,
        frame: &Frame,
        serial: u64,
    ) {
        let by = reception.by;
        let is_for_other = matches!(frame.to, Destination::Station(to) if to != by);
        // This link carries overheard frames only.
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
                // The frame reserves the medium for the ACK, which this station may not be able to
                // sense.
                let until = self.now + self.timing.reserved_by_data();
                let station = self.station(by);
                station.report.overheard += 1;
                station.contention.reserve(until, None);
            }
            Destination::Station(_) => {
                self.count_received(by, is_new);
                // A duplicate is acknowledged too: the ACK of the earlier try was lost.
                self.owe(by, Answer::Ack { to: frame.from });
            }
            Destination::Broadcast => self.count_received(by, is_new),
        }
    }

    /// A control frame was received without errors; returns whether by its addressee.
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
            // If no frame follows the RTS, its reservation must not block this station.
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

    /// A station senses another transmission, which lasts until `ends`. A station that begins to
    /// send at this very instant still does.
    fn carrier_on(&mut self, at: Station, ends: Instant, notice: Notice) {
        let now = self.now;
        let going = self.timers.get(Timer::Access, at) == Some(now);
        let station = &mut self.stations[usize::from(at.0)];
        station.contention.carrier_on(now, ends, going, notice, &mut station.chance);
        if !going && !station.contention.is_idle() {
            self.timers.clear(Timer::Access, at);
        }
        match notice {
            // A transmission that is alone on the air can be read.
            Notice::UntilHeader(until) | Notice::InPreamble(until)
                if station.contention.may_be_wrongly_idle() =>
            {
                self.timers.set(Timer::Header, at, until);
            }
            _ => {}
        }
    }

    /// The PHY header of the frame that a station was locked onto ends.
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
