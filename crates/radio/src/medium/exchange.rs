//! The course of a packet: queue, channel access, RTS and CTS if it is long, tries, ACK if it has
//! an addressee, and the end.

use super::Medium;
use crate::airtime;
use crate::config::Dcf;
use crate::output::{Control, ControlFrame, Destination, Frame, Outcome, Station};
use crate::packets::Packet;
use crate::timers::Timer;
use crate::transceiver::{Answer, Awaited, OnAir};
use std::time::Duration;
use wire::Instant;

impl<F> Medium<F> {
    /// A station is given a packet to send.
    pub(super) fn send(&mut self, packet: Packet<F>) {
        let (from, now) = (packet.from, self.now);
        let last = match packet.to {
            Destination::Station(to) => from.max(to),
            Destination::Broadcast => from,
        };
        self.check(last);
        let id = self.packets.insert(packet);
        let frames_max = self.config.queue_frames_max;
        let station = self.station(from);
        if station.enqueue(id, frames_max) {
            // A channel access due at this very instant stands, even if another station has just
            // begun.
            if station.next(now) {
                self.plan(from);
            }
        } else {
            station.report.queue_full += 1;
            self.outbox.done(id, now, Outcome::QueueFull, 0);
        }
    }

    /// A station gains channel access.
    pub(super) fn take_turn(&mut self, from: Station) {
        let station = self.station(from);
        station.contention.access();
        let current = station.current.expect("a station waits for its turn with a packet");
        let Packet { to, bytes, .. } = *self.packets.get(current.packet);
        match to {
            Destination::Station(to) if self.is_announced(bytes) => {
                let reserves = self.timing.reserved_by_rts(bytes);
                self.send_control(Control::Rts, from, to, reserves);
            }
            _ => self.send_data(from),
        }
    }

    /// Whether an RTS precedes a data frame that carries a packet of this length.
    fn is_announced(&self, packet_bytes: u32) -> bool {
        let longer = |threshold| airtime::data_bytes(packet_bytes) > threshold;
        self.config.rts_threshold.is_some_and(longer)
    }

    /// A station sends the data frame of its packet now.
    fn send_data(&mut self, from: Station) {
        let began = self.now;
        let station = &mut self.stations[usize::from(from.0)];
        let current = station.current.as_mut().expect("it has its turn with a packet");
        let Packet { to, bytes, .. } = *self.packets.get(current.packet);
        let rate = match to {
            Destination::Station(_) => self.timing.data_rate,
            Destination::Broadcast => self.timing.basic_rate,
        };
        let lasts = self.timing.data(bytes, rate);
        let retry = current.tries > 0;
        current.tries += 1;
        let (packet, serial, sequence) = (current.packet, current.serial, current.sequence());
        let frame = Frame { from, to, bytes, rate, sequence, retry, began, ended: began + lasts };
        station.report.count_data(bytes, retry);
        self.begin(from, OnAir::Data { frame, packet, serial }, lasts);
    }

    fn send_control(&mut self, kind: Control, from: Station, to: Station, reserves: Duration) {
        let (began, rate) = (self.now, self.timing.basic_rate);
        let lasts = match kind {
            Control::Ack | Control::Cts => self.timing.ack,
            Control::Rts => self.timing.rts,
        };
        let ended = began + lasts;
        let frame = ControlFrame { kind, from, to, reserves, rate, began, ended };
        self.station(from).report.count_control(kind);
        self.begin(from, OnAir::Control(frame), lasts);
    }

    /// A station's data frame has ended.
    pub(super) fn data_sent(&mut self, from: Station, to: Destination) {
        match to {
            Destination::Station(_) => self.await_answer(from, Awaited::Ack),
            Destination::Broadcast => self.done(from, Outcome::Broadcast),
        }
    }

    /// A station has sent a frame that requires a response.
    pub(super) fn await_answer(&mut self, from: Station, awaited: Awaited) {
        self.station(from).awaits = awaited;
        self.timers.set(Timer::AnswerTimeout, from, self.now + self.timing.answer_timeout);
    }

    /// A station received a frame that requires a response.
    pub(super) fn owe(&mut self, from: Station, answer: Answer) {
        self.station(from).owes = Some(answer);
        self.timers.set(Timer::Answer, from, self.now + self.timing.sifs);
    }

    /// A station received an RTS for it: it responds unless the medium is reserved.
    pub(super) fn owe_cts(&mut self, from: Station, to: Station, until: Instant) {
        let now = self.now;
        if !self.station(from).contention.is_reserved(now) {
            self.owe(from, Answer::Cts { to, until });
        }
    }

    /// A station sends its response, whether the medium is idle or not.
    pub(super) fn answer(&mut self, from: Station) {
        let station = self.station(from);
        match station.owes.take().filter(|_| station.on_air.is_none()) {
            None => {}
            Some(Answer::Ack { to }) => self.send_control(Control::Ack, from, to, Duration::ZERO),
            Some(Answer::Cts { to, until }) => {
                let reserves = until - (self.now + self.timing.ack);
                self.send_control(Control::Cts, from, to, reserves);
            }
            Some(Answer::Data) => self.send_data(from),
        }
    }

    /// A station received an ACK or a CTS for it.
    pub(super) fn answered(&mut self, by: Station, awaited: Awaited) {
        let waits = self.timers.get(Timer::AnswerTimeout, by).is_some();
        let station = self.station(by);
        if !waits || station.awaits != awaited {
            return;
        }
        if awaited == Awaited::Cts {
            let current = station.current.as_mut().expect("it asked for this packet's turn");
            current.short_fails = 0;
        }
        self.timers.clear(Timer::AnswerTimeout, by);
        match awaited {
            Awaited::Ack => self.done(by, Outcome::Acked),
            Awaited::Cts => self.owe(by, Answer::Data),
        }
    }

    /// No response came in time. If a frame is being received and its header has ended, that frame
    /// may be the response (DCF: ACK procedure). The timer is then set to the end of that frame.
    /// The end is handled before this timer, and clears it if the frame is the response.
    pub(super) fn answer_overdue(&mut self, from: Station) {
        let (now, station) = (self.now, &mut self.stations[usize::from(from.0)]);
        let sender = station.receiver.receiving(now, &self.physics, &mut station.chance);
        if let Some(ends) = sender.and_then(|sender| self.timers.get(Timer::End, sender)) {
            self.timers.set(Timer::AnswerTimeout, from, ends);
        } else {
            self.not_answered(from);
        }
    }

    fn not_answered(&mut self, from: Station) {
        let now = self.now;
        let packet = self.station(from).current.expect("it waited for an answer to this").packet;
        let is_announced = self.is_announced(self.packets.get(packet).bytes);
        let (short_max, long_max) = (self.config.short_tries_max, self.config.long_tries_max);
        let tries_for_ever = self.config.dcf == Dcf::Ns3;
        let station = self.station(from);
        let current = station.current.as_mut().expect("it waited for an answer to this");
        let is_over = match station.awaits {
            Awaited::Cts => {
                station.report.rts_frames_failed += 1;
                current.short_fails = current.short_fails.saturating_add(1);
                // ns-3 has no retry limit for RTS.
                current.short_fails >= short_max && !tries_for_ever
            }
            Awaited::Ack => {
                station.report.data_frames_failed += 1;
                let (fails, max) = if is_announced {
                    (&mut current.long_fails, long_max)
                } else {
                    (&mut current.short_fails, short_max)
                };
                *fails += 1;
                *fails >= max
            }
        };
        station.contention.unanswered(now);
        if is_over {
            station.report.given_up += 1;
            self.done(from, Outcome::GivenUp);
        } else {
            station.contention.again(now, &mut station.chance);
            self.plan(from);
        }
    }

    /// A station has finished with its packet, and begins with the next.
    fn done(&mut self, from: Station, outcome: Outcome) {
        let now = self.now;
        let station = self.station(from);
        let done = station.current.take().expect("it was working on this packet");
        station.contention.done(now, &mut station.chance);
        station.next(now);
        self.outbox.done(done.packet, now, outcome, done.tries);
        self.plan(from);
    }

    /// Sets or clears the timer for a station's channel access.
    pub(super) fn plan(&mut self, station: Station) {
        match self.station(station).contention.access_at() {
            Some(at) => self.timers.set(Timer::Access, station, at),
            None => self.timers.clear(Timer::Access, station),
        }
    }
}
