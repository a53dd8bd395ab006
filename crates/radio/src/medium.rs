//! The engine's door: its contract, and the loop that does what is due.
//!
//! `air.rs` begins and ends transmissions; `exchange.rs` takes a packet from its arrival through
//! its tries to its end.

mod air;
mod exchange;

use crate::airtime::Timing;
use crate::chance::Chance;
use crate::config::Config;
use crate::contention::Rules;
use crate::links::Links;
use crate::outbox::Outbox;
use crate::output::{Input, Output, Station};
use crate::packets::{Packet, Packets};
use crate::physics::Physics;
use crate::reach::Reach;
use crate::report::Report;
use crate::timers::{Timer, Timers};
use crate::transceiver::Transceiver;
use wire::Instant;

/// A shared 802.11 channel and all its stations. `F` is the driver's packet.
///
/// Drive it so: give one input, drain [`poll_output`](Self::poll_output) until it is empty, and at
/// [`poll_timeout`](Self::poll_timeout) call [`handle_timeout`](Self::handle_timeout) and drain again.
/// Being late does no harm: everything happens, and is dated, when it was due.
///
/// ```
/// use radio::{Config, Destination, Input, Link, Links, Medium, Outcome, Output, Station};
/// use wire::Instant;
///
/// let (a, b) = (Station(0), Station(1));
/// let mut links = Links::new(2);
/// for (from, to) in [(a, b), (b, a)] {
///     let link = Link { power: 1_000_000, decodable: true, loss: 0.0, overheard_loss: None };
///     links.set(from, to, link);
/// }
/// let mut medium = Medium::new(Config::default(), links, 1);
/// let to = Destination::Station(b);
/// medium.handle_input(Instant::ZERO, Input::Send { from: a, to, bytes: 1500, payload: "hello" });
/// let mut outcome = None;
/// loop {
///     while let Some(output) = medium.poll_output() {
///         match output {
///             Output::Heard { payload, by, .. } => assert_eq!((*payload, by[0].by), ("hello", b)),
///             Output::Done { outcome: how, .. } => outcome = Some(how),
///             Output::HeardControl { .. } => {}
///         }
///     }
///     let Some(at) = medium.poll_timeout() else { break };
///     medium.handle_timeout(at);
/// }
/// assert_eq!(outcome, Some(Outcome::Acked));
/// ```
#[derive(Clone, Debug)]
pub struct Medium<F> {
    config: Config,
    timing: Timing,
    physics: Physics,
    now: Instant,
    reach: Reach,
    stations: Vec<Transceiver>,
    timers: Timers,
    packets: Packets<F>,
    outbox: Outbox,
}

impl<F> Medium<F> {
    /// A channel on which nothing has been sent yet. The same seed and inputs give the same outputs.
    ///
    /// # Panics
    ///
    /// If the PHY lacks one of the rates.
    pub fn new(config: Config, links: Links, seed: u64) -> Self {
        for rate in [config.data_rate, config.basic_rate] {
            assert!(config.phy.has(rate), "{:?} has no such rate: {rate:?}", config.phy);
        }
        let (count, rules) = (links.stations(), Rules::new(&config));
        let chance = (0..count).map(|station| Chance::new(seed, station as u16));
        Self {
            timing: Timing::new(&config),
            physics: Physics::new(&config),
            now: Instant::ZERO,
            reach: Reach::new(&links, &config, seed),
            stations: chance.map(|c| Transceiver::new(c, rules, config.queue_frames_max)).collect(),
            timers: Timers::new(count),
            packets: Packets::with_capacity(count),
            outbox: Outbox::default(),
            config,
        }
    }

    /// Does what is due until `now`, and then takes in one thing that happened.
    ///
    /// Of what is due at `now` itself, all but transmissions of data that would begin: those wait for
    /// further inputs of the same instant, so that stations which are given packets at one instant
    /// begin at one instant. An earlier `now` than the last counts as the last.
    ///
    /// # Panics
    ///
    /// If a station is not among the links'.
    pub fn handle_input(&mut self, now: Instant, input: Input<F>) {
        debug_assert!(self.outbox.is_empty(), "drain the outputs of one input before the next");
        self.run(now, Timer::Answer);
        match input {
            Input::Send { from, to, bytes, payload } => {
                self.send(Packet { from, to, bytes, payload });
            }
            Input::Link { from, to, link } => {
                self.check(from.max(to));
                let is_sending = self.station(from).on_air.is_some();
                self.reach.change(from, to, link, is_sending);
            }
        }
    }

    /// Does all that is due until `now`, in order of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        debug_assert!(self.outbox.is_empty(), "drain the outputs of one input before the next");
        self.run(now, Timer::Access);
    }

    /// Gives out one thing that happened; drain it until `None`.
    pub fn poll_output(&mut self) -> Option<Output<'_, F>> {
        self.outbox.poll(&mut self.packets)
    }

    /// When it wants [`handle_timeout`](Self::handle_timeout), if nothing is sent before; `None` if
    /// nothing is on the air nor waiting.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, ..)| at)
    }

    /// What its stations have in common.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What a station has counted.
    ///
    /// # Panics
    ///
    /// If the station is not among the links'.
    pub fn report(&self, station: Station) -> &Report {
        &self.stations[usize::from(station.0)].report
    }

    /// What all stations have counted, added up.
    pub fn total(&self) -> Report {
        let mut total = Report::default();
        self.stations.iter().for_each(|station| total += &station.report);
        total
    }

    /// Does what is due before `until`, and of what is due then, timers up to `last`.
    fn run(&mut self, until: Instant, last: Timer) {
        let until = until.max(self.now);
        while let Some((at, timer, station)) = self.timers.next() {
            if (at, timer) > (until, last) {
                break;
            }
            self.now = at;
            self.timers.clear(timer, station);
            match timer {
                Timer::End => self.end(station),
                Timer::Header => self.header_ends(station),
                Timer::AnswerTimeout => self.answer_overdue(station),
                Timer::Answer => self.answer(station),
                Timer::Access => self.take_turn(station),
            }
        }
        self.now = until;
    }

    fn check(&self, station: Station) {
        assert!(usize::from(station.0) < self.stations.len(), "no such station: {station:?}");
    }

    fn station(&mut self, station: Station) -> &mut Transceiver {
        &mut self.stations[usize::from(station.0)]
    }
}

#[cfg(test)]
mod tests;
