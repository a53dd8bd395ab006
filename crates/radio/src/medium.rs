//! The interface of the engine: its contract, and the loop that handles due timers.
//!
//! `air.rs` begins and ends transmissions; `exchange.rs` handles a packet from its arrival through
//! its tries to its end.

mod air;
mod exchange;

use crate::airtime::Timing;
use crate::chance::Chance;
use crate::config::Config;
use crate::contention::Rules;
use crate::hearers::Hearers;
use crate::links::Links;
use crate::outbox::Outbox;
use crate::output::{Input, Output, Station};
use crate::packets::{Packet, Packets};
use crate::physics::Physics;
use crate::report::Report;
use crate::timers::{Timer, Timers};
use crate::transceiver::Transceiver;
use wire::Instant;

/// A shared 802.11 channel and all its stations. `F` is the driver's packet.
///
/// The driver gives one input, drains [`poll_output`](Self::poll_output) until it is empty, and at
/// [`poll_timeout`](Self::poll_timeout) calls [`handle_timeout`](Self::handle_timeout) and drains
/// again. A late call does no harm: every event happens, and is dated, at its proper time.
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
    hearers: Hearers,
    stations: Vec<Transceiver>,
    timers: Timers,
    packets: Packets<F>,
    outbox: Outbox,
}

impl<F> Medium<F> {
    /// A channel before the first transmission. The same seed and inputs give the same outputs.
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
            hearers: Hearers::new(&links, &config, seed),
            stations: chance.map(|c| Transceiver::new(c, rules, config.queue_frames_max)).collect(),
            timers: Timers::new(count),
            packets: Packets::with_capacity(count),
            outbox: Outbox::default(),
            config,
        }
    }

    /// Handles all timers before `now`, then the input.
    ///
    /// Of the timers due exactly at `now`, those that begin the transmission of data are left for
    /// later. Thus stations that are given packets at the same instant also begin to send at the
    /// same instant. If `now` is earlier than in the last call, the last one counts.
    ///
    /// # Panics
    ///
    /// If a station does not exist.
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
                self.hearers.change(from, to, link, is_sending);
            }
        }
    }

    /// Handles all timers until `now`, in order of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        debug_assert!(self.outbox.is_empty(), "drain the outputs of one input before the next");
        self.run(now, Timer::Access);
    }

    /// Takes one output; drain until `None`.
    pub fn poll_output(&mut self) -> Option<Output<'_, F>> {
        self.outbox.poll(&mut self.packets)
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called, unless an input comes first;
    /// `None` if no station sends or waits.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, ..)| at)
    }

    /// The common settings of its stations.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The counters of a station.
    ///
    /// # Panics
    ///
    /// If the station does not exist.
    pub fn report(&self, station: Station) -> &Report {
        &self.stations[usize::from(station.0)].report
    }

    /// The sum of the counters of all stations.
    pub fn total(&self) -> Report {
        let mut total = Report::default();
        self.stations.iter().for_each(|station| total += &station.report);
        total
    }

    /// Handles timers due before `until`; of those due at `until`, only the kinds up to `last`.
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
